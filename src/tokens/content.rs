//! Kept tokens of a content branch -> a region's words, cells or markup.
//!
//! Each token of a draft has an origin: what of the region it stands for. Where draft tokens stood, the region keeps what it
//! had (words with their boxes, fonts and confidences, cells with their spans), so a region whose draft stood as a whole comes
//! back as it was. Where the model wrote, words come from its tokens.

use crate::decode::protocol::{DraftToken, KeptToken, PositionState, Protocol};
use crate::graphs::TokenId;
use crate::page::{Kind, Markup, Region, StopReason};
use crate::vision::PixelMapping;

use super::cells::{ReadCell, ReadRow, rebuilt_grid, same_grid};
use super::formats;
use super::grammar::{Grammar, GroundedTokens};
use super::positions::Axis;
use super::words::{Piece, WordReader};

/// A word of a region: in one of its cells, or among its own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordPlace {
    /// Index into the region's cells.
    pub cell: Option<u32>,
    /// Index into the cell's or the region's words.
    pub word: u32,
}

/// What a token of a content draft stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentOrigin {
    /// [y], [down] or [pitch] of a line.
    Line,
    /// [x] or [gap] of a word.
    Word(WordPlace),
    /// Bytes of a word's text.
    Piece { place: WordPlace, start: u32, end: u32 },
    /// The start of a row of the table.
    Row(u32),
    /// A cell, by its index in the region's cells.
    Cell(u32),
    /// Bytes of the region's markup.
    Markup { start: u32, end: u32 },
    /// A token of text that was made from the whole region.
    Whole,
    /// The end of the branch.
    End,
}

/// The draft of one region's content. A token's `origin` is its own index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContentDraft {
    /// With the end token.
    pub tokens: Vec<DraftToken>,
    /// One for each token.
    pub origins: Vec<ContentOrigin>,
}

impl ContentDraft {
    /// What the draft token behind a kept token stands for; `None` for tokens of the model's own.
    pub fn origin_of(&self, token: &KeptToken) -> Option<ContentOrigin> {
        self.origins.get(usize::try_from(token.origin?).ok()?).copied()
    }

    /// Did the draft stand as a whole, in order and with nothing else?
    fn stood_whole(&self, kept: &[KeptToken]) -> bool {
        kept.len() == self.tokens.len()
            && kept.iter().zip(0..).all(|(token, index)| token.origin == Some(index))
    }
}

/// The region as its branch wrote it. `original` is the drafted region (or, for a region that only the model saw, an empty one
/// with the trunk's kind and box); `kept` are the branch's tokens without the child token.
pub fn read_region(
    kept: &[KeptToken],
    draft: Option<&ContentDraft>,
    original: &Region,
    grammar: &Grammar,
    mapping: &PixelMapping,
    stop: Option<StopReason>,
) -> Region {
    match grammar.grounded_content(original.kind) {
        Some(tokens) => Reader { tokens, grammar, mapping, draft, original }.read(kept, stop),
        None if draft.is_some_and(|d| d.stood_whole(kept)) => Region { stop, ..original.clone() },
        None => {
            let ids: Vec<TokenId> = kept.iter().map(|t| t.id).collect();
            let markup = formats::read(&ids, grammar.content_format(original.kind), grammar);
            Region { words: Vec::new(), cells: None, markup, stop, ..original.clone() }
        }
    }
}

/// Reads one grounded branch.
struct Reader<'a> {
    tokens: &'a GroundedTokens,
    grammar: &'a Grammar,
    mapping: &'a PixelMapping,
    draft: Option<&'a ContentDraft>,
    original: &'a Region,
}

impl Reader<'_> {
    fn read(&self, kept: &[KeptToken], stop: Option<StopReason>) -> Region {
        let end = kept.iter().position(|t| self.grammar.is_branch_end(t.id)).unwrap_or(kept.len());
        let kept = &kept[..end];
        if self.is_markup(kept) {
            return Region { markup: self.markup(kept), stop, ..self.without_content() };
        }
        let mut words = WordReader::new(self.original, *self.mapping);
        let mut rows: Vec<ReadRow> = Vec::new();
        let mut loose = None;
        let mut place = self.grammar.content_start(self.mapping.to_model(self.original.bbox));
        for token in kept {
            place = self.grammar.feed(place, token.id).1;
            if token.id == self.tokens.row || token.id == self.tokens.cell {
                let done = words.take();
                match rows.last_mut().and_then(|row| row.cells.last_mut()) {
                    Some(cell) => cell.words.extend(done),
                    None => loose.get_or_insert_with(Vec::new).extend(done),
                }
                self.open_place(token, &mut rows);
            } else {
                self.read_token(token, &place, &mut words);
            }
        }
        let done = words.take();
        match rows.last_mut().and_then(|row| row.cells.last_mut()) {
            Some(cell) => cell.words.extend(done),
            None => loose.get_or_insert_with(Vec::new).extend(done),
        }
        self.assemble(rows, loose.unwrap_or_default(), stop)
    }

    /// Starts a row or a cell of a table.
    fn open_place(&self, token: &KeptToken, rows: &mut Vec<ReadRow>) {
        let origin = self.draft.and_then(|d| d.origin_of(token));
        if token.id == self.tokens.row {
            let base = match origin {
                Some(ContentOrigin::Row(row)) => Some(row),
                _ => None,
            };
            rows.push(ReadRow { base, cells: Vec::new() });
            return;
        }
        let base = match origin {
            Some(ContentOrigin::Cell(cell)) => Some(cell as usize),
            _ => None,
        };
        if rows.is_empty() {
            rows.push(ReadRow { base: None, cells: Vec::new() });
        }
        if let Some(row) = rows.last_mut() {
            row.cells.push(ReadCell { base, words: Vec::new() });
        }
    }

    /// `place`: the state after the token.
    fn read_token(&self, token: &KeptToken, place: &PositionState, words: &mut WordReader<'_>) {
        let origin = self.draft.and_then(|d| d.origin_of(token));
        match (self.grammar.coordinate(token.id), origin) {
            (Some((Axis::Y | Axis::Down, _)), _) => words.line(place.y),
            (Some((Axis::Pitch, pitch)), _) => words.pitch(pitch),
            (Some((Axis::X | Axis::Gap, _)), Some(ContentOrigin::Word(word))) => {
                words.word(place.x, Some(word));
            }
            (Some((Axis::X | Axis::Gap, _)), _) => words.word(place.x, None),
            (None, Some(ContentOrigin::Piece { place, start, end })) => {
                words.drafted(Piece { place, start: start as usize, end: end as usize });
            }
            (None, _) if token.id == self.tokens.space => words.space(),
            (None, _) => {
                if let Some(c) = self.character(token.id) {
                    words.written(c, self.grammar.advance(token.id), token.probability);
                }
            }
        }
    }

    /// The character of a text token; the replacement character for the unknown one.
    fn character(&self, token: TokenId) -> Option<char> {
        if token == self.tokens.unknown {
            return Some(char::REPLACEMENT_CHARACTER);
        }
        self.grammar.vocabulary.token_char(token)
    }

    /// Formulas are written as LaTeX without places; markup that was drafted may stand in part.
    fn is_markup(&self, kept: &[KeptToken]) -> bool {
        let grounded = kept.iter().any(|t| {
            self.grammar.coordinate(t.id).is_some() || t.id == self.tokens.row || t.id == self.tokens.cell
        });
        let written = kept.iter().any(|t| self.character(t.id).is_some());
        !grounded && (written || self.original.markup.is_some())
    }

    fn markup(&self, kept: &[KeptToken]) -> Option<Markup> {
        let source = match &self.original.markup {
            Some(Markup::Text(s) | Markup::Markdown(s) | Markup::Latex(s) | Markup::Html(s)) => s.as_str(),
            None => "",
        };
        let mut text = String::new();
        for token in kept {
            match self.draft.and_then(|d| d.origin_of(token)) {
                Some(ContentOrigin::Markup { start, end }) => {
                    text.push_str(source.get(start as usize..end as usize).unwrap_or_default());
                }
                _ if token.id == self.tokens.space => text.push(' '),
                _ => text.extend(self.character(token.id)),
            }
        }
        Some(match &self.original.markup {
            Some(Markup::Text(_)) => Markup::Text(text),
            Some(Markup::Markdown(_)) => Markup::Markdown(text),
            Some(Markup::Html(_)) => Markup::Html(text),
            Some(Markup::Latex(_)) => Markup::Latex(text),
            None if self.original.kind == Kind::Formula => Markup::Latex(text),
            None => Markup::Text(text),
        })
    }

    /// The region's frame. Words stay where markup or cells hold the content: the branch did not write them.
    fn without_content(&self) -> Region {
        let drafted_apart =
            self.original.markup.is_some() || self.original.cells.as_ref().is_some_and(|c| !c.is_empty());
        Region {
            words: if drafted_apart { self.original.words.clone() } else { Vec::new() },
            cells: None,
            markup: None,
            ..self.original.clone()
        }
    }

    fn assemble(
        &self,
        rows: Vec<ReadRow>,
        loose: Vec<crate::page::Word>,
        stop: Option<StopReason>,
    ) -> Region {
        let mut region = Region { stop, ..self.without_content() };
        let known = self.original.cells.as_deref().unwrap_or_default();
        if rows.is_empty() {
            region.words = loose;
            region.cells = self.original.cells.clone().filter(Vec::is_empty);
            return region;
        }
        if !loose.is_empty() {
            region.words = loose;
        }
        let drafted = self.draft.map(|d| d.origins.as_slice()).unwrap_or_default();
        region.cells = Some(if same_grid(&rows, drafted) {
            let mut cells = known.to_vec();
            for read in rows.into_iter().flat_map(|row| row.cells) {
                if let Some(cell) = read.base.and_then(|base| cells.get_mut(base)) {
                    cell.words = read.words;
                }
            }
            cells
        } else {
            rebuilt_grid(rows, known, self.original.bbox)
        });
        region
    }
}

#[cfg(test)]
mod tests;
