//! Formulas in running text: words that hold mathematics become one word with its LaTeX.

use std::ops::Range;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

use super::bars::Bar;
use super::display::bars_in;
use super::evidence::{Role, is_small, role, slanted_lines};
use super::expression::{DEPTH, HEIGHT, SCRIPT_SIZE, expression};
use super::extent::extent;
use super::faces::plain;
use super::latex::latex;
use super::symbols::{closing, is_binary, is_closing, is_function, is_relation};
use crate::geometry::{Rect, hull};
use crate::lines::hull_of;
use crate::page::{Glyph, Rules, Word};

/// Words further apart are not parts of one formula, em: table cells, columns.
const WORD_GAP: f32 = 0.8;
/// Limits stand this close to their operator, em.
const LIMIT_GAP: f32 = 0.6;
/// Words back that a word may go on from: a limit comes after the other one.
const LOOK_BACK: usize = 3;
/// A formula of more words is none.
const MOST_WORDS: usize = 200;

/// Words of a text layer -> the same, with formulas as words of their own. `glyphs` are those of `words`.
pub(in crate::drafts) fn write_inline(words: &[Word], glyphs: &[Glyph], rules: &Rules) -> Vec<Word> {
    let page = Page::new(words, glyphs, rules);
    let mut out = Vec::with_capacity(words.len());
    let mut at = 0;
    for span in page.spans() {
        if let Some(made) = page.formula(&span) {
            out.extend_from_slice(&words[at..span.start]);
            out.extend(made);
            at = span.end;
        }
    }
    out.extend_from_slice(&words[at..]);
    out
}

/// A page's words, the glyphs in them, and what they are.
struct Page<'a> {
    words: &'a [Word],
    glyphs: &'a [Glyph],
    rules: &'a Rules,
    /// Which glyphs stand in each word.
    places: Vec<Range<usize>>,
    roles: Vec<Role>,
}

impl<'a> Page<'a> {
    fn new(words: &'a [Word], glyphs: &'a [Glyph], rules: &'a Rules) -> Self {
        let places = places(words.len(), glyphs);
        let slanted = slanted_lines(words, glyphs);
        let role = |at: usize| {
            let slanted = slanted.get(&words[at].line).copied().unwrap_or(false);
            role(&words[at], glyphs, places[at].clone(), slanted)
        };
        let roles = (0..words.len()).map(role).collect();
        Page { words, glyphs, rules, places, roles }
    }

    /// Words that make one formula.
    fn spans(&self) -> Vec<Range<usize>> {
        let mut out: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        while at < self.words.len() {
            if self.roles[at] != Role::Formula {
                at += 1;
                continue;
            }
            let least = out.last().map_or(0, |span| span.end);
            let start = self.start(at, least);
            let end = self.end(at);
            out.push(start..end);
            at = end;
        }
        out
    }

    fn last_character(&self, word: usize) -> Option<char> {
        self.glyphs[self.places[word].clone()].last().map(|g| plain(g).0)
    }

    fn first_character(&self, word: usize) -> Option<char> {
        self.glyphs[self.places[word].clone()].first().map(|g| plain(g).0)
    }

    /// Signs need something on both sides.
    fn leads_on(&self, word: usize) -> bool {
        self.last_character(word).is_some_and(|c| is_relation(c) || is_binary(c) || c == '(')
    }

    fn leans_back(&self, word: usize) -> bool {
        self.first_character(word)
            .is_some_and(|c| is_relation(c) || is_binary(c) || matches!(c, ')' | ']' | '}'))
            || self.places[word].start > 0 && is_small(self.glyphs, self.places[word].start)
    }

    /// Goes back from the formula word `at` over what its first sign needs.
    fn start(&self, at: usize, least: usize) -> usize {
        let mut start = at;
        while start > least
            && self.roles[start - 1] == Role::Between
            && self.follows(start - 1, start)
            && (self.leans_back(start)
                || self.leads_on(start - 1)
                || is_function(&self.words[start - 1].text))
        {
            start -= 1;
        }
        start
    }

    /// Goes on from the formula word `at`: to the last formula word of the line, and over what the last sign needs.
    fn end(&self, at: usize) -> usize {
        let mut end = at + 1;
        let mut ahead = end;
        while ahead < self.words.len()
            && ahead - at < MOST_WORDS
            && self.roles[ahead] != Role::Text
            && self.follows(at.max(ahead.saturating_sub(LOOK_BACK)), ahead)
        {
            ahead += 1;
            let needed = self.leads_on(ahead - 2)
                || self.leans_back(ahead - 1) && !self.leads_on(ahead - 1)
                || self.is_open(at..ahead - 1);
            if self.roles[ahead - 1] == Role::Formula || needed && end + 2 >= ahead {
                end = ahead;
            }
        }
        end
    }

    /// Does a glyph that is not of the formula stand right above a bar? The numerator of a fraction that the span lacks.
    fn carries(&self, bar: &Bar, em: f32, inside: &Range<usize>) -> bool {
        self.glyphs.iter().enumerate().any(|(at, g)| {
            let (x, y) = g.ink.center();
            !inside.contains(&at) && bar.x0 < x && x < bar.x1 && y < bar.y && g.ink.y1 > bar.y - 0.6 * em
        })
    }

    /// Does a bracket wait to be closed?
    fn is_open(&self, words: Range<usize>) -> bool {
        let glyphs = &self.glyphs[self.places[words.start].start..self.places[words.end - 1].end];
        let count = |kind: fn(char) -> bool| glyphs.iter().filter(|g| kind(plain(g).0)).count();
        count(|c| closing(c).is_some()) > count(is_closing)
    }

    /// Does the word `second` go on from those between `first` and it, on the same line or as a script or limit, and without a
    /// wide gap?
    fn follows(&self, first: usize, second: usize) -> bool {
        let before = &self.glyphs[self.places[first].start..self.places[second].start];
        let own = &self.glyphs[self.places[second].clone()];
        let ink = |glyphs: &[Glyph]| hull(glyphs.iter().map(|g| g.ink));
        let size = |glyphs: &[Glyph]| glyphs.iter().map(|g| g.size).fold(0.0, f32::max);
        let (Some(a), Some(b)) = (ink(before), ink(own)) else { return false };
        let em = size(before).max(size(own));
        let small =
            own[0].size < SCRIPT_SIZE * em || before.last().is_some_and(|g| g.size < SCRIPT_SIZE * em);
        let large = a.height().max(b.height()) > em;
        let apart = (b.y0 - a.y1).max(a.y0 - b.y1);
        (a.overlap_y(&b) > 0.0 || (small || large) && apart < LIMIT_GAP * em)
            && b.x0 - a.x1 < WORD_GAP * em
            && b.x1 > a.x1 - 2.0 * em
    }

    /// The words of a span -> what stands before the formula, the formula, and what stands behind. `None` where nothing comes of it.
    fn formula(&self, span: &Range<usize>) -> Option<Vec<Word>> {
        let words = &self.words[span.clone()];
        let first_glyph = self.places[span.start].start;
        let glyphs = &self.glyphs[first_glyph..self.places[span.end - 1].end];
        let range = extent(glyphs)?;
        let inside = &glyphs[range.clone()];
        if !inside.iter().any(|g| plain(g).0.is_alphanumeric()) {
            return None;
        }
        let refs: Vec<&Glyph> = inside.iter().collect();
        let ink = hull(inside.iter().map(|g| g.ink))?;
        let size = inside.iter().map(|g| g.size).fold(0.0, f32::max);
        let mut bars = bars_in(self.rules, &ink.grown(0.4 * size, 0.4 * size));
        let on_page = first_glyph + range.start..first_glyph + range.end;
        bars.retain(|bar| !self.carries(bar, size, &on_page));
        let source = latex(&expression(&refs, &bars));
        if source.trim().is_empty() {
            return None;
        }
        let (first, last) = (words.first()?, words.last()?);
        let baseline = inside.iter().find(|g| g.size > SCRIPT_SIZE * size)?.baseline;
        let whole = hull_of(words);
        let (cut_left, cut_right) = (range.start > 0, range.end < glyphs.len());
        let x0 = if cut_left { ink.x0 } else { whole.x0 };
        let x1 = if cut_right { ink.x1.max(x0 + 1.0) } else { whole.x1 };
        let rest = |part: &[Glyph]| part.iter().map(|g| g.character).nfc().collect();
        let mut out = Vec::new();
        if cut_left {
            let bbox = Rect { x1: x0, ..first.bbox };
            out.push(Word { text: rest(&glyphs[..range.start]), bbox, ..first.clone() });
        }
        out.push(Word {
            text: reading(words, glyphs, &range),
            bbox: Rect::new(x0, baseline - HEIGHT * size, x1, baseline + DEPTH * size).union(&ink),
            size: words.iter().map(|w| w.size).fold(0.0, f32::max),
            glue: cut_left || first.glue,
            confidence: words.iter().map(|w| w.confidence).fold(1.0, f32::min),
            suspicious: 0.0,
            latex: Some(Arc::from(source.trim())),
            ..first.clone()
        });
        if cut_right {
            let bbox = Rect { x0: x1, ..last.bbox };
            out.push(Word { text: rest(&glyphs[range.end..]), bbox, glue: true, ..last.clone() });
        }
        Some(out)
    }
}

/// Which glyphs stand in each word.
fn places(words: usize, glyphs: &[Glyph]) -> Vec<Range<usize>> {
    let mut out = Vec::with_capacity(words);
    let mut at = 0;
    for word in 0..words {
        let start = at;
        while glyphs.get(at).is_some_and(|g| g.word as usize == word) {
            at += 1;
        }
        out.push(start..at);
    }
    out
}

/// What the formula's characters say in a row.
fn reading(words: &[Word], glyphs: &[Glyph], range: &Range<usize>) -> String {
    let first = glyphs.first().map_or(0, |g| g.word);
    let mut out = String::new();
    let mut before: Option<u32> = None;
    for glyph in &glyphs[range.clone()] {
        if before.is_some_and(|word| word != glyph.word) {
            let glued = words.get(glyph.word.saturating_sub(first) as usize).is_some_and(|w| w.glue);
            out.push_str(if glued { "" } else { " " });
        }
        out.push(glyph.character);
        before = Some(glyph.word);
    }
    out.nfc().collect()
}
