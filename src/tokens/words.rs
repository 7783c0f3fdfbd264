//! Character and coordinate tokens -> words.
//!
//! A word starts at its [x] or [gap]. Where the characters of another drafted word follow without one, a word starts too, glued to the
//! one before it: the model dropped the space.

use crate::geometry::Rect;
use crate::lines::median;
use crate::page::{Region, Source, Word};
use crate::vision::PixelMapping;

use super::content::WordPlace;

/// Font height over mean character advance, for words that only the model saw: Latin text fonts have an ascent-to-descent
/// height of about 1.15 em and a mean advance, spaces included, of about half an em.
const HEIGHT_PER_PITCH: f32 = 2.3;

/// Characters of a drafted word that a kept token stands for.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) place: WordPlace,
    /// Bytes of the word's text.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// How a word was started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// By the drafted [x] or [gap] of this word.
    Drafted(WordPlace),
    /// By an [x], a [gap] or a space of the model's.
    Written,
    /// By its characters, right after another word.
    Joined,
    /// By its characters, first in its line.
    First,
}

/// The word that is being read.
struct OpenWord {
    start: Start,
    /// Left edge, model pixels.
    x: Option<f32>,
    /// The drafted word whose characters stand in it.
    base: Option<WordPlace>,
    /// Bytes of the base that have come in order.
    read: usize,
    /// Nothing but the base's characters, in order, so far.
    intact: bool,
    text: String,
    /// Sum of the relative widths of the model's characters.
    advance: f32,
    /// Lowest probability of the model's characters.
    probability: f32,
    /// Has a character of the model's.
    written: bool,
}

impl OpenWord {
    fn new(start: Start, x: Option<f32>, base: Option<WordPlace>) -> Self {
        OpenWord {
            start,
            x,
            base,
            read: 0,
            intact: true,
            text: String::new(),
            advance: 0.0,
            probability: 1.0,
            written: false,
        }
    }
}

/// A word that is done, and its line among the branch's lines.
struct DoneWord {
    word: Word,
    line: u32,
    drafted: bool,
}

/// Collects words, place by place (a cell, or the region itself).
pub(super) struct WordReader<'a> {
    original: &'a Region,
    mapping: PixelMapping,
    /// Median font height of the region's own words, page pixels; 0 for none.
    size: f32,
    /// First line number that no drafted word has.
    fresh_line: u32,
    /// Lines read so far.
    lines: u32,
    y: Option<f32>,
    pitch: Option<f32>,
    open: Option<OpenWord>,
    done: Vec<DoneWord>,
}

impl<'a> WordReader<'a> {
    pub(super) fn new(original: &'a Region, mapping: PixelMapping) -> Self {
        let cells = original.cells.as_deref().unwrap_or_default();
        let words = || original.words.iter().chain(cells.iter().flat_map(|c| &c.words));
        WordReader {
            original,
            mapping,
            size: median(words().map(|w| w.size)),
            fresh_line: words().map(|w| w.line).max().map_or(0, |line| line.saturating_add(1)),
            lines: 0,
            y: None,
            pitch: None,
            open: None,
            done: Vec::new(),
        }
    }

    /// A line starts at `y`; its pitch is not known yet.
    pub(super) fn line(&mut self, y: f32) {
        self.close(None);
        self.lines = self.lines.saturating_add(1);
        self.y = Some(y);
        self.pitch = None;
    }

    /// [pitch]
    pub(super) fn pitch(&mut self, pitch: f32) {
        self.pitch = Some(pitch).filter(|p| *p > 0.0);
    }

    /// A word starts at `x`.
    pub(super) fn word(&mut self, x: f32, place: Option<WordPlace>) {
        self.close(Some(x));
        let start = place.map_or(Start::Written, Start::Drafted);
        self.open = Some(OpenWord::new(start, Some(x), place));
    }

    /// A space between words without places.
    pub(super) fn space(&mut self) {
        self.close(None);
        self.open = Some(OpenWord::new(Start::Written, None, None));
    }

    /// Characters of a drafted word that stood.
    pub(super) fn drafted(&mut self, piece: Piece) {
        let other = |w: &OpenWord| w.base.is_some_and(|base| base != piece.place);
        match &mut self.open {
            // The place stood, but the characters of its word did not: another word took its place.
            Some(open) if other(open) && open.text.is_empty() => {
                open.start = Start::Written;
                open.base = None;
            }
            Some(open) if other(open) => self.close(None),
            _ => {}
        }
        let text = self.original_word(piece.place).and_then(|w| w.text.get(piece.start..piece.end));
        let Some(text) = text.map(str::to_owned) else { return };
        let open = self.open_word();
        open.base = Some(piece.place);
        open.intact &= piece.start == open.read;
        open.read = piece.end;
        open.text.push_str(&text);
    }

    /// A character of the model's, and its width relative to the line's pitch.
    pub(super) fn written(&mut self, c: char, advance: f32, probability: f32) {
        let open = self.open_word();
        open.text.push(c);
        open.advance += advance;
        open.probability = open.probability.min(probability);
        open.written = true;
        open.intact = false;
    }

    /// Ends the place: its words, in order.
    pub(super) fn take(&mut self) -> Vec<Word> {
        self.close(None);
        let mut done = std::mem::take(&mut self.done);
        self.number_lines(&mut done);
        // Another place starts with a line of its own.
        self.lines = self.lines.saturating_add(1);
        done.into_iter().map(|d| d.word).collect()
    }

    fn open_word(&mut self) -> &mut OpenWord {
        let start = match self.done.last() {
            Some(last) if last.line == self.lines => Start::Joined,
            _ => Start::First,
        };
        self.open.get_or_insert_with(|| OpenWord::new(start, None, None))
    }

    fn original_word(&self, place: WordPlace) -> Option<&'a Word> {
        let words = match place.cell {
            None => &self.original.words,
            Some(cell) => &self.original.cells.as_ref()?.get(cell as usize)?.words,
        };
        words.get(place.word as usize)
    }

    /// Ends the open word; the next one of its line starts at `next_x`.
    fn close(&mut self, next_x: Option<f32>) {
        let Some(open) = self.open.take() else { return };
        let base = open.base.and_then(|place| self.original_word(place));
        // A word of spaces alone has no characters to keep.
        let whole = base.filter(|b| open.intact && (open.read == b.text.len() || b.text.trim().is_empty()));
        if open.text.is_empty() && whole.is_none() {
            return;
        }
        let mut word = match (whole, base) {
            (Some(base), _) => base.clone(),
            (None, Some(base)) => Word {
                source: if open.written { Source::Model } else { base.source },
                confidence: base.confidence.min(open.probability),
                text: open.text,
                latex: None,
                ..base.clone()
            },
            (None, None) => self.model_word(&open, next_x),
        };
        word.glue = match (open.start, base) {
            (Start::Drafted(_) | Start::First, Some(base)) => base.glue,
            (Start::Joined, _) => true,
            _ => false,
        };
        self.done.push(DoneWord { word, line: self.lines, drafted: base.is_some() });
    }

    /// A word that only the model saw, placed by its line's centre and pitch and its own left edge.
    fn model_word(&self, open: &OpenWord, next_x: Option<f32>) -> Word {
        let frame = self.mapping.to_model(self.original.bbox);
        let height = if self.size > 0.0 {
            self.size * self.mapping.scale_y
        } else {
            self.pitch.map_or(frame.height().max(1.0), |pitch| pitch * HEIGHT_PER_PITCH)
        };
        let pitch = self.pitch.unwrap_or(height / HEIGHT_PER_PITCH);
        let before =
            self.done.last().filter(|d| d.line == self.lines).map(|d| self.mapping.to_model(d.word.bbox).x1);
        let x0 = open.x.or(before).unwrap_or(frame.x0);
        let mut x1 = x0 + pitch * open.advance;
        if let Some(next) = next_x.filter(|next| *next > x0) {
            x1 = x1.min(next);
        }
        let y = self.y.unwrap_or(frame.center().1);
        let bbox = self.mapping.to_page(Rect::new(x0, y - height / 2.0, x1, y + height / 2.0));
        Word {
            text: open.text.clone(),
            size: bbox.height(),
            bbox,
            bold: false,
            font: "".into(),
            line: 0,
            glue: false,
            confidence: open.probability,
            source: Source::Model,
            link: None,
            suspicious: 0.0,
            latex: None,
        }
    }

    /// Words of the model's take the number of a drafted word of their line, or a fresh one.
    fn number_lines(&self, done: &mut [DoneWord]) {
        for i in 0..done.len() {
            if done[i].drafted {
                continue;
            }
            let line = done[i].line;
            let before = done[..i].iter().rev().take_while(|d| d.line == line).find(|d| d.drafted);
            let after = || done[i..].iter().take_while(|d| d.line == line).find(|d| d.drafted);
            let fresh = self.fresh_line.saturating_add(line);
            done[i].word.line = before.or_else(after).map_or(fresh, |d| d.word.line);
        }
    }
}
