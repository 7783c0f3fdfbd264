//! Reads lines with the pack's vision graph instead of the recognition network: about a third of the cost, worse at hard lines. So
//! only lines of which it is sure are kept; the others are for the recognition network.
//!
//! ```text
//! crops --[strips of one height, below each other]--> ink --[vision graph]--> masses --[masses, line]--> characters --[sure?]--> Reading
//! ```

mod line;

use self::line::{Placed, placed};
use super::recognise::{ReadChar, Reading};
use crate::clock::look;
use crate::graphs::GraphError;
use crate::graphs::manifest::{GlyphLines, PackError};
use crate::graphs::onnx::{GlyphMap, VisionGraph};
use crate::graphs::pack::Pack;
use crate::graphs::runtime::SessionOptions;
use crate::page::Source;
use crate::raster::Raster;
use crate::vision::masses::{LINE, Masses, SLOT_HEIGHT, SLOT_WIDTH};
use crate::vision::{PixelMapping, VisionInput};

/// Height of a line in its strip, px: an x-height of about 7.7 px, and up to 10 where a line has no tall letters; the graph was trained on
/// 6.5 to 10.5 px.
const LINE_HEIGHT: usize = 28;
/// Height of a strip, px: whole slots.
const STRIP_HEIGHT: usize = 40;
/// Blank paper left and right of a line, px.
const MARGIN: usize = 8;
/// Share of a crop's height that is x-height: 0.43 of the font's, of which the crop has a margin of 0.18 above and below.
const X_HEIGHT_SHARE: f32 = 0.43 * 0.64;
/// Widths are whole cells of any pack.
const CELL: usize = 32;
/// Wider lines are left to the recognition network.
const MOST_WIDTH: usize = 3200;
/// Pixels that go into one run (4 bytes a class and slot come out).
const MOST_PIXELS: usize = 48 * 4096;
/// A column with less ink than this share of the line's darkest is blank.
const BLANK: f32 = 0.3;

/// The reader of lines.
#[derive(Debug)]
pub struct GlyphReader {
    graph: VisionGraph,
    /// By class; `None` where a class stands for no one character.
    characters: Vec<Option<char>>,
    /// By class, relative to the mean one.
    advances: Vec<f32>,
    options: GlyphLines,
}

impl GlyphReader {
    /// `None` for a pack whose manifest does not offer its glyphs for reading.
    pub fn open(pack: &Pack, options: SessionOptions) -> Result<Option<Self>, PackError> {
        let Some(lines) = pack.manifest.extras.glyph_lines else { return Ok(None) };
        let vocabulary = &pack.grammar.vocabulary;
        let classes = 1 + pack.manifest.dims.vocabulary;
        let token = |class: usize| class.checked_sub(1).map(|t| t as crate::graphs::TokenId);
        let advance =
            |class: usize| pack.manifest.protocol.advance.get(class.wrapping_sub(1)).copied().unwrap_or(1.0);
        Ok(Some(GlyphReader {
            graph: pack.vision_graph(options)?,
            characters: (0..classes).map(|c| vocabulary.token_char(token(c)?)).collect(),
            advances: (0..classes).map(advance).collect(),
            options: lines,
        }))
    }

    /// Reads upright crops of single lines; `None` for those of which it is not sure.
    pub fn read(&mut self, crops: &[Raster]) -> Result<Vec<Option<Reading>>, GraphError> {
        let mut out = vec![None; crops.len()];
        let widths: Vec<usize> = crops.iter().map(strip_width).collect();
        let mut order: Vec<usize> =
            (0..crops.len()).filter(|&i| widths[i] <= MOST_WIDTH && !crops[i].is_blank()).collect();
        order.sort_by_key(|&i| widths[i]);
        let mut rest = &order[..];
        while let Some(&first) = rest.first() {
            let fits = |n: usize, i: usize| {
                n == 0
                    || (n + 1) * STRIP_HEIGHT * widths[i] <= MOST_PIXELS && 4 * widths[i] <= 5 * widths[first]
            };
            let count = rest.iter().enumerate().take_while(|&(n, &i)| fits(n, i)).count();
            let (together, after) = rest.split_at(count);
            rest = after;
            look();
            for (&i, reading) in together.iter().zip(self.read_together(crops, together)?) {
                out[i] = reading;
            }
        }
        Ok(out)
    }

    fn read_together(
        &mut self,
        crops: &[Raster],
        which: &[usize],
    ) -> Result<Vec<Option<Reading>>, GraphError> {
        let width = which.iter().map(|&i| strip_width(&crops[i])).max().unwrap_or(CELL);
        let mut ink = vec![0.0; width * STRIP_HEIGHT * which.len()];
        let lines: Vec<usize> = ink
            .chunks_exact_mut(width * STRIP_HEIGHT)
            .zip(which)
            .map(|(strip, &i)| draw_strip(&crops[i], strip, width))
            .collect();
        let input = VisionInput {
            ink,
            width,
            height: STRIP_HEIGHT * which.len(),
            cells: Vec::new(),
            cell_width: CELL,
            cell_height: STRIP_HEIGHT,
            mapping: PixelMapping::uniform(1.0),
        };
        let output = self.graph.run(&input)?;
        let Some(map) = output.glyphs() else { return Ok(vec![None; which.len()]) };
        let strips = input.ink.chunks_exact(width * STRIP_HEIGHT).enumerate();
        Ok(strips.zip(lines).map(|((n, strip), inner)| self.reading(&map, n, strip, width, inner)).collect())
    }

    /// The reading of strip `n`, whose line is `inner` px wide, if it can be trusted.
    fn reading(
        &self,
        map: &GlyphMap<'_>,
        n: usize,
        strip: &[f32],
        width: usize,
        inner: usize,
    ) -> Option<Reading> {
        let rows = STRIP_HEIGHT / SLOT_HEIGHT;
        let columns = ((inner + 2 * MARGIN) / SLOT_WIDTH + 1).min(map.columns);
        if map.classes > self.characters.len() || map.rows < (n + 1) * rows {
            return None;
        }
        let plane = map.rows * map.columns;
        let mass = |class: usize, _: usize, column: usize| {
            let at = class * plane + n * rows * map.columns + column;
            (0..rows).map(|row| map.probabilities[at + row * map.columns]).sum()
        };
        let mut masses = Masses::new(1, columns, map.classes, mass);
        let found = masses.take_characters(LINE);
        let x_height = X_HEIGHT_SHARE * LINE_HEIGHT as f32;
        let blank = blank_columns(strip, width);
        let line =
            placed(&found, SLOT_WIDTH as f32, x_height, &blank, |class| self.advances[usize::from(class)]);
        is_sure(&self.options, &line, masses.heaviest()).then(|| self.text(&line, inner))?
    }

    /// `None` where a character is of no known class.
    fn text(&self, line: &[Placed], inner: usize) -> Option<Reading> {
        let share = |x: f32| ((x - MARGIN as f32) / inner.max(1) as f32).clamp(0.0, 1.0);
        let mut characters: Vec<ReadChar> = Vec::with_capacity(line.len() * 6 / 5);
        for p in line {
            let character = self.characters[usize::from(p.class)]?;
            let read = ReadChar { character, x: share(p.x), confidence: p.mass };
            if let Some(last) = characters.last().filter(|_| p.spaced) {
                characters.push(ReadChar { character: ' ', x: 0.5 * (last.x + read.x), confidence: 1.0 });
            }
            characters.push(read);
        }
        let confidence = line.iter().map(|p| p.mass).sum::<f32>() / line.len().max(1) as f32;
        Some(Reading { characters, confidence, source: Source::Glyph })
    }
}

/// Are the characters sure enough, and is nothing left that could be one?
fn is_sure(options: &GlyphLines, line: &[Placed], left: f32) -> bool {
    let mut masses: Vec<f32> = line.iter().map(|p| p.mass).collect();
    masses.sort_by(f32::total_cmp);
    let lower = masses.get(masses.len() / 10).copied().unwrap_or(0.0);
    line.len() >= options.least_characters && lower >= options.least_mass && left <= options.most_left_over
}

/// Width of a line's strip, px: whole cells.
fn strip_width(crop: &Raster) -> usize {
    (line_width(crop) + 2 * MARGIN).next_multiple_of(CELL)
}

/// Width of a line at the strips' scale, px.
fn line_width(crop: &Raster) -> usize {
    (LINE_HEIGHT * crop.width).div_ceil(crop.height.max(1)).max(1)
}

/// Draws a crop's ink into the middle of a strip; returns the line's width.
fn draw_strip(crop: &Raster, strip: &mut [f32], width: usize) -> usize {
    let inner = line_width(crop);
    let scaled = if crop.height > LINE_HEIGHT {
        crop.resized_area(inner, LINE_HEIGHT)
    } else {
        crop.resized_linear(inner, LINE_HEIGHT)
    };
    let gray = scaled.gray();
    let paper = f32::from(paper(&gray));
    let top = (STRIP_HEIGHT - LINE_HEIGHT) / 2;
    for (row, pixels) in gray.chunks_exact(inner).enumerate() {
        let at = (top + row) * width + MARGIN;
        for (ink, &pixel) in strip[at..at + inner].iter_mut().zip(pixels) {
            *ink = ((paper - f32::from(pixel)) / 255.0).max(0.0);
        }
    }
    inner
}

/// The lightness that most of the lighter pixels have: the upper quartile.
fn paper(gray: &[u8]) -> u8 {
    let mut sorted = gray.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() * 3 / 4).copied().unwrap_or(255)
}

fn blank_columns(strip: &[f32], width: usize) -> Vec<bool> {
    let mut darkest = vec![0.0f32; width];
    for row in strip.chunks_exact(width) {
        for (dark, &ink) in darkest.iter_mut().zip(row) {
            *dark = dark.max(ink);
        }
    }
    let most = darkest.iter().copied().fold(0.0, f32::max);
    darkest.iter().map(|&ink| ink < BLANK * most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: GlyphLines = GlyphLines { least_mass: 0.8, most_left_over: 0.3, least_characters: 3 };

    fn line(masses: &[f32]) -> Vec<Placed> {
        masses.iter().map(|&mass| Placed { class: 1, x: 0.0, mass, spaced: false }).collect()
    }

    #[test]
    fn a_line_is_sure_if_its_characters_are_and_nothing_is_left() {
        assert!(is_sure(&OPTIONS, &line(&[0.9; 20]), 0.1));
        assert!(!is_sure(&OPTIONS, &line(&[0.9, 0.9, 0.9, 0.4, 0.4]), 0.0), "unsure characters");
        assert!(!is_sure(&OPTIONS, &line(&[0.9; 20]), 0.6), "something was not read");
        assert!(!is_sure(&OPTIONS, &line(&[1.0; 2]), 0.0), "too short");
        assert!(!is_sure(&OPTIONS, &[], 0.0));
        assert!(!is_sure(&OPTIONS, &line(&[0.9; 20]), f32::NAN));
    }

    #[test]
    fn a_strip_holds_the_ink_of_the_line_on_white_paper() {
        let mut crop = Raster::filled(100, 56, [200; 3]);
        for y in 20..40 {
            crop.rgb[(y * 100 + 50) * 3..(y * 100 + 60) * 3].fill(0);
        }
        let width = strip_width(&crop);
        assert_eq!(width, 96, "50 px and two margins, in whole cells");
        let mut strip = vec![0.0; width * STRIP_HEIGHT];
        assert_eq!(draw_strip(&crop, &mut strip, width), 50);
        let at = |x: usize, y: usize| strip[y * width + x];
        assert_eq!(at(MARGIN + 2, 24), 0.0, "paper has no ink, grey or not");
        assert!((at(MARGIN + 27, 22) - 200.0 / 255.0).abs() < 0.01);
        let blank = blank_columns(&strip, width);
        assert!(blank[MARGIN + 2] && !blank[MARGIN + 27] && blank[90]);
    }

    #[test]
    fn a_crop_without_pixels_is_no_trouble() {
        let crop = Raster::filled(0, 0, [0; 3]);
        let mut strip = vec![0.0; strip_width(&crop) * STRIP_HEIGHT];
        draw_strip(&crop, &mut strip, strip_width(&crop));
        assert!(crop.is_blank());
    }
}
