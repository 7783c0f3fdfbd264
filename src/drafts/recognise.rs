//! Reading of one text line: PP-OCRv6 (`PP-OCRv6_rec_small.onnx`), connectionist temporal classification.
//!
//! Input `[N, 3, 48, W]`, BGR, -1..1, padded on the right with 0. Output `[N, W / 8, 18710]` probabilities: class 0 is the
//! blank, then the metadata's characters, last the space. Greedy: repeats are dropped, then blanks.

use std::collections::HashSet;
use std::path::Path;

use ndarray::{ArrayView2, Ix3};

use super::network::{Network, output};
use crate::clock::look;
use crate::graphs::GraphError;
use crate::graphs::runtime::RuntimeError;
use crate::page::Source;
use crate::raster::Raster;
use crate::raster::planes::{Normalisation, write_planes};

const NAME: &str = "recognition";
const HEIGHT: usize = 48;
/// Pixels a step.
const STEP: usize = 8;
const LEAST_WIDTH: usize = 48;
/// Wider lines (aspect over 66) are squeezed.
const MOST_WIDTH: usize = 3200;
/// Lines that go into one run: at most this many, and at most this many steps in all (one step of the output is 75 kB).
const MOST_LINES: usize = 8;
const MOST_STEPS: usize = 640;
/// Crops higher than this are shrunk by area means, so that strokes do not vanish.
const HIGH: usize = 60;

/// A character that was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadChar {
    pub character: char,
    /// Its centre, as a share of the crop's width.
    pub x: f32,
    /// Its probability.
    pub confidence: f32,
}

/// What stands in one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub characters: Vec<ReadChar>,
    /// Mean of the characters' probabilities; 0 for none.
    pub confidence: f32,
    /// Who read it: [`Source::Ocr`] or [`Source::Glyph`].
    pub source: Source,
}

impl Default for Reading {
    fn default() -> Self {
        Reading { characters: Vec::new(), confidence: 0.0, source: Source::Ocr }
    }
}

impl Reading {
    pub fn text(&self) -> String {
        self.characters.iter().map(|c| c.character).collect()
    }
}

/// The text recognition network.
#[derive(Debug)]
pub struct Recogniser {
    network: Network,
    /// By class; empty for the blank.
    alphabet: Vec<String>,
    known: HashSet<char>,
}

impl Recogniser {
    pub fn open(path: &Path, threads: usize) -> Result<Self, RuntimeError> {
        let network = Network::open(path, NAME, threads)?;
        let listed = network
            .characters()
            .map_err(|e| RuntimeError::Load { path: path.to_path_buf(), message: e.to_string() })?;
        let alphabet: Vec<String> =
            std::iter::once(String::new()).chain(listed).chain(std::iter::once(" ".to_owned())).collect();
        let known = alphabet.iter().flat_map(|s| s.chars()).collect();
        Ok(Recogniser { network, alphabet, known })
    }

    /// Can the network write this character?
    pub fn knows(&self, c: char) -> bool {
        self.known.contains(&c)
    }

    /// Reads upright crops of single lines. Lines of about the same width go through the network together; plain crops are
    /// not looked at.
    pub fn read(&mut self, crops: &[Raster]) -> Result<Vec<Reading>, GraphError> {
        let mut out = vec![Reading::default(); crops.len()];
        let widths: Vec<usize> = crops.iter().map(input_width).collect();
        let mut order: Vec<usize> = (0..crops.len()).filter(|&i| !crops[i].is_blank()).collect();
        order.sort_by_key(|&i| widths[i]);
        let mut rest = &order[..];
        while let Some(&first) = rest.first() {
            let together = rest
                .iter()
                .enumerate()
                .take(MOST_LINES)
                .take_while(|&(n, &i)| {
                    let near = widths[i] * 20 <= widths[first] * 23 + 16 * 20;
                    n == 0 || near && (n + 1) * widths[i].div_ceil(STEP) <= MOST_STEPS
                })
                .count();
            let (batch, after) = rest.split_at(together);
            rest = after;
            look();
            for (&i, reading) in batch.iter().zip(self.read_batch(crops, batch, &widths)?) {
                out[i] = reading;
            }
        }
        Ok(out)
    }

    fn read_batch(
        &mut self,
        crops: &[Raster],
        batch: &[usize],
        widths: &[usize],
    ) -> Result<Vec<Reading>, GraphError> {
        let widest = batch.iter().map(|&i| widths[i]).max().unwrap_or(LEAST_WIDTH);
        let width = widest.next_multiple_of(STEP).clamp(LEAST_WIDTH, MOST_WIDTH);
        let mut input = vec![0.0; batch.len() * 3 * HEIGHT * width];
        for (&i, planes) in batch.iter().zip(input.chunks_exact_mut(3 * HEIGHT * width)) {
            let (crop, target) = (&crops[i], widths[i].min(width));
            let line = if crop.height > HIGH {
                crop.resized_area(target, HEIGHT)
            } else {
                crop.resized_linear(target, HEIGHT)
            };
            write_planes(&line, &Normalisation::CENTRED, planes, width, HEIGHT);
        }
        let outputs = self.network.run([batch.len(), 3, HEIGHT, width], &input)?;
        let probabilities = output::<Ix3>(&outputs, 0, NAME)?;
        let readings = probabilities.outer_iter().zip(batch).map(|(line, &i)| {
            let filled = widths[i].min(width) as f32 / width as f32;
            decode(&line, filled, &self.alphabet)
        });
        Ok(readings.collect())
    }
}

/// Width of a crop scaled to the network's height.
fn input_width(crop: &Raster) -> usize {
    (HEIGHT * crop.width).div_ceil(crop.height.max(1)).clamp(16, MOST_WIDTH)
}

/// Greedy decoding of `[steps, classes]`; `filled` is the share of the steps that the line fills, the rest is padding.
fn decode(probabilities: &ArrayView2<'_, f32>, filled: f32, alphabet: &[String]) -> Reading {
    let steps = probabilities.nrows();
    let mut characters = Vec::new();
    let (mut last, mut sum, mut kept) = (0, 0.0, 0u32);
    for (step, row) in probabilities.outer_iter().enumerate() {
        let (class, confidence) = arg_max(row.to_slice().unwrap_or_default());
        if class != last && class != 0 {
            let x = ((step as f32 + 0.5) / (steps as f32 * filled)).min(1.0);
            let text = alphabet.get(class).map_or("", String::as_str);
            characters.extend(text.chars().map(|character| ReadChar { character, x, confidence }));
            sum += confidence;
            kept += 1;
        }
        last = class;
    }
    Reading { characters, confidence: sum / kept.max(1) as f32, source: Source::Ocr }
}

/// Index and value of the largest; the first of equal ones. In lanes, so that it runs at memory speed.
fn arg_max(row: &[f32]) -> (usize, f32) {
    const LANES: usize = 16;
    let (chunks, tail) = row.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane = if value > *lane { value } else { *lane };
        }
    }
    let top = lanes.iter().chain(tail).copied().fold(f32::NEG_INFINITY, f32::max);
    (row.iter().position(|&v| v == top).unwrap_or(0), top)
}

#[cfg(test)]
mod tests {
    use ndarray::aview2;

    use super::*;

    fn alphabet() -> Vec<String> {
        ["", "a", "b", " "].map(str::to_owned).to_vec()
    }

    fn row(class: usize, p: f32) -> [f32; 4] {
        let mut r = [(1.0 - p) / 3.0; 4];
        r[class] = p;
        r
    }

    #[test]
    fn repeats_and_blanks_are_dropped_and_positions_ignore_padding() {
        let steps = [
            row(1, 0.9),
            row(1, 0.8),
            row(0, 0.9),
            row(1, 0.7),
            row(3, 0.8),
            row(2, 0.6),
            row(0, 1.0),
            row(0, 1.0),
        ];
        let reading = decode(&aview2(&steps), 0.75, &alphabet());
        assert_eq!(reading.text(), "aa b");
        assert!((reading.confidence - 0.75).abs() < 1e-6);
        let x: Vec<f32> = reading.characters.iter().map(|c| c.x).collect();
        assert!((x[0] - 0.5 / 6.0).abs() < 1e-6 && (x[3] - 5.5 / 6.0).abs() < 1e-6, "{x:?}");
    }

    #[test]
    fn nothing_but_blanks_is_an_empty_reading() {
        assert_eq!(decode(&aview2(&[row(0, 0.9)]), 1.0, &alphabet()), Reading::default());
        assert_eq!(decode(&aview2::<f32, 4>(&[]), 1.0, &alphabet()), Reading::default());
        assert_eq!(decode(&aview2(&[row(2, f32::NAN)]), 1.0, &alphabet()).text(), "");
    }

    #[test]
    fn the_first_of_the_largest_is_found_in_lanes_and_tail() {
        for at in [0, 15, 16, 40, 50] {
            let mut row = vec![0.1; 51];
            row[at] = 0.5;
            assert_eq!(arg_max(&row), (at, 0.5));
        }
    }
}
