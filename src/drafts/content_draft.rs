//! A region's words, cells or markup -> the draft of its content branch.
//!
//! ```text
//! line   [y] [pitch] word word ...        y: centre of the line, pitch: mean advance of its characters, spaces included
//! word   [x] character character ...      x: left edge; it stands for the space before the word, glued words have none
//!        (with `grounded-steps`: [down] and [gap] where they reach; the pitch is that of the words, of the mean character)
//! table  ROW CELL line line ... CELL ...  empty cells are a CELL alone, a spanning cell stands once
//! markup character SPACE character ...
//! ```

use std::ops::Range;

use crate::decode::protocol::{DraftToken, PositionState, Protocol};
use crate::geometry::Rect;
use crate::graphs::TokenId;
use crate::graphs::manifest::ContentFormat;
use crate::lines::{hull_of, median, rtl_share};
use crate::page::{Cell, Markup, Region, Source, Word};
use crate::tokens::content::{ContentDraft, ContentOrigin, WordPlace};
use crate::tokens::formats;
use crate::tokens::grammar::{Grammar, GroundedTokens};
use crate::vision::PixelMapping;

/// A step back by more than this share of the font height starts a line (training data: 12 px at an x-height of 8.5).
const STEP_BACK: f32 = 0.6;
/// Words that share less than this part of the smaller one's height are not on one line.
const SAME_LINE: f32 = 0.3;
/// A table with more rows is not drafted.
const MOST_ROWS: usize = 4096;

/// Drafts the content of a region. `None` where nothing is known of it: the model then writes it alone.
pub fn content_draft(region: &Region, grammar: &Grammar, mapping: &PixelMapping) -> Option<ContentDraft> {
    let place = grammar.content_start(mapping.to_model(region.bbox));
    let mut writer = Writer { grammar, mapping, place, draft: ContentDraft::default() };
    match grammar.grounded_content(region.kind) {
        None => writer.text(region, grammar.content_format(region.kind))?,
        Some(tokens) => writer.grounded(region, tokens)?,
    }
    let end = grammar.branch_end_token()?;
    let least = writer.draft.tokens.iter().map(|t| t.confidence).fold(1.0, f32::min);
    let source = writer.draft.tokens.last().map_or(Source::Layout, |t| t.source);
    writer.push(end, least, source, ContentOrigin::End);
    Some(writer.draft)
}

/// Collects the tokens of one draft.
struct Writer<'a> {
    grammar: &'a Grammar,
    mapping: &'a PixelMapping,
    /// Where the tokens so far have led.
    place: PositionState,
    draft: ContentDraft,
}

impl Writer<'_> {
    fn push(&mut self, id: TokenId, confidence: f32, source: Source, origin: ContentOrigin) {
        let Ok(index) = u32::try_from(self.draft.tokens.len()) else { return };
        self.draft.tokens.push(DraftToken { id, confidence, source, origin: index });
        self.draft.origins.push(origin);
        self.place = self.grammar.feed(self.place, id).1;
    }

    /// Text of the whole region through the tokenizer.
    fn text(&mut self, region: &Region, format: ContentFormat) -> Option<()> {
        let text = formats::text_of(region, format)?;
        let words = || region.words.iter().chain(region.cells.iter().flatten().flat_map(|c| &c.words));
        let confidence = words().map(|w| w.confidence).fold(1.0, f32::min);
        let source = words().next().map_or(Source::Layout, |w| w.source);
        for id in self.grammar.vocabulary.encode(&text).ok()? {
            self.push(id, confidence, source, ContentOrigin::Whole);
        }
        Some(())
    }

    fn grounded(&mut self, region: &Region, tokens: &GroundedTokens) -> Option<()> {
        if let Some(Markup::Text(text) | Markup::Markdown(text) | Markup::Latex(text) | Markup::Html(text)) =
            &region.markup
        {
            let made_from = region.words.first();
            let (confidence, source) =
                made_from.map_or((region.score, Source::Table), |w| (w.confidence, w.source));
            self.markup(text, confidence, source, tokens);
            return Some(());
        }
        match region.cells.as_deref() {
            Some(cells) if !cells.is_empty() => self.table(cells, region.score, tokens),
            _ if region.words.is_empty() => None,
            _ => {
                self.lines(&region.words, None, tokens);
                Some(())
            }
        }
    }

    fn markup(&mut self, text: &str, confidence: f32, source: Source, tokens: &GroundedTokens) {
        for (at, c) in text.char_indices() {
            let own =
                if c.is_whitespace() { Some(tokens.space) } else { self.grammar.vocabulary.char_token(c) };
            let (id, confidence) = Self::judged(own, confidence, tokens);
            let (Ok(start), Ok(end)) = (u32::try_from(at), u32::try_from(at + c.len_utf8())) else { return };
            self.push(id, confidence, source, ContentOrigin::Markup { start, end });
        }
    }

    fn table(&mut self, cells: &[Cell], confidence: f32, tokens: &GroundedTokens) -> Option<()> {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        order.sort_by_key(|&i| (cells[i].row, cells[i].col));
        let rows = cells.iter().map(|c| c.row).max().map_or(0, |row| row.saturating_add(1));
        if rows > MOST_ROWS {
            return None;
        }
        let mut order = order.into_iter().peekable();
        for row in 0..rows {
            self.push(tokens.row, confidence, Source::Table, ContentOrigin::Row(u32::try_from(row).ok()?));
            while let Some(index) = order.next_if(|&i| cells[i].row == row) {
                let cell = u32::try_from(index).ok()?;
                self.push(tokens.cell, confidence, Source::Table, ContentOrigin::Cell(cell));
                self.lines(&cells[index].words, Some(cell), tokens);
            }
        }
        Some(())
    }

    /// Lines of some words in their order.
    fn lines(&mut self, words: &[Word], cell: Option<u32>, tokens: &GroundedTokens) {
        for range in line_ranges(words) {
            let line = &words[range.clone()];
            let Some(first) = line.first() else { continue };
            let y = median(line.iter().map(|w| self.mapping.to_model(w.bbox).center().1));
            let (y_token, pitch) = match &tokens.steps {
                Some(steps) => (steps.line(y, &self.place, &tokens.y), self.pitch_of_words(line, tokens)),
                None => (tokens.y.token(y), self.pitch_with_spaces(line)),
            };
            let (confidence, source) = (first.confidence, first.source);
            self.push(y_token, confidence, source, ContentOrigin::Line);
            self.push(tokens.pitch.token(pitch), confidence, source, ContentOrigin::Line);
            for (index, word) in line.iter().enumerate() {
                let Ok(number) = u32::try_from(range.start + index) else { return };
                self.word(word, WordPlace { cell, word: number }, starts_place(line, index), tokens);
            }
        }
    }

    /// Mean advance of a line's characters, spaces included, model pixels.
    fn pitch_with_spaces(&self, line: &[Word]) -> f32 {
        let characters: usize = line.iter().map(|w| w.text.chars().count()).sum();
        let spaces = line.iter().skip(1).filter(|w| !w.glue).count();
        let width = self.mapping.to_model(hull_of(line)).width();
        width / (characters + spaces).max(1) as f32
    }

    /// Width of a line's mean character, model pixels: of its words (glued ones as one), over their relative widths.
    fn pitch_of_words(&self, line: &[Word], tokens: &GroundedTokens) -> f32 {
        let ids = |w: &Word| {
            self.grammar.vocabulary.pieces(&w.text).into_iter().map(|p| p.token.unwrap_or(tokens.unknown))
        };
        let advance: f32 = line.iter().flat_map(ids).map(|id| self.grammar.advance(id)).sum();
        let (mut width, mut start) = (0.0, 0);
        for index in 1..=line.len() {
            if index == line.len() || starts_place(line, index) {
                width += self.mapping.to_model(hull_of(&line[start..index])).width();
                start = index;
            }
        }
        if advance > 0.0 { width / advance } else { 0.0 }
    }

    /// A character's token and confidence. A model cannot judge characters that its vocabulary lacks: they stand.
    fn judged(token: Option<TokenId>, confidence: f32, tokens: &GroundedTokens) -> (TokenId, f32) {
        token.map_or((tokens.unknown, 1.0), |token| (token, confidence))
    }

    /// `placed`: the word has a place of its own.
    fn word(&mut self, word: &Word, place: WordPlace, placed: bool, tokens: &GroundedTokens) {
        if placed {
            let x = self.mapping.to_model(word.bbox).x0;
            let token = match &tokens.steps {
                Some(steps) => steps.word(x, &self.place, &tokens.x),
                None => tokens.x.token(x),
            };
            self.push(token, word.confidence, word.source, ContentOrigin::Word(place));
        }
        for piece in self.grammar.vocabulary.pieces(&word.text) {
            let (Ok(start), Ok(end)) = (u32::try_from(piece.start), u32::try_from(piece.end)) else { return };
            let (id, confidence) = Self::judged(piece.token, word.confidence, tokens);
            self.push(id, confidence, word.source, ContentOrigin::Piece { place, start, end });
        }
    }
}

/// Has a word of a line a place of its own? Glued words have none, but a word of spaces has no characters: it, and what is
/// glued to it, would be lost.
fn starts_place(line: &[Word], index: usize) -> bool {
    let blank = |w: &Word| w.text.trim().is_empty();
    index == 0 || !line[index].glue || blank(&line[index]) || blank(&line[index - 1])
}

/// Splits words, in their order, where a new line starts: no shared height with the word before, or a step back against the
/// direction of reading.
fn line_ranges(words: &[Word]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let joins = index > 0 && continues_line(&words[index - 1], word);
        match ranges.last_mut().filter(|_| joins) {
            Some(range) => range.end = index + 1,
            None => ranges.push(index..index + 1),
        }
    }
    ranges
}

fn continues_line(before: &Word, word: &Word) -> bool {
    let (a, b): (Rect, Rect) = (before.bbox, word.bbox);
    let smaller = a.height().min(b.height());
    if a.overlap_y(&b) <= SAME_LINE * smaller {
        return false;
    }
    let step = STEP_BACK * before.size.max(smaller);
    if rtl_share(&before.text) > 0.5 || rtl_share(&word.text) > 0.5 {
        b.x0 <= a.x0 + step
    } else {
        b.x0 >= a.x0 - step
    }
}
