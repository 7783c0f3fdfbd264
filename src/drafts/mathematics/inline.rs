//! Formulas in running text: words that hold mathematics become one word with its LaTeX.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

use super::display::bars_in;
use super::expression::{Bar, SCRIPT_SIZE, expression};
use super::faces::{Face, is_mathematical, is_mathematical_letter, plain};
use super::latex::latex;
use super::symbols::{accent, closing, is_binary, is_closing, is_function, is_large_operator, is_relation};
use crate::geometry::{Rect, hull};
use crate::lines::{hull_of, rtl_share};
use crate::page::{Glyph, Rules, Word};

/// Words further apart are not parts of one formula, em: table cells, columns.
const WORD_GAP: f32 = 0.8;
/// Scripts are at least this far from the baseline of their letter, em.
const SCRIPT_SHIFT: f32 = 0.1;
/// Limits stand this close to their operator, em.
const LIMIT_GAP: f32 = 0.6;
/// Words back that a word may go on from: a limit comes after the other one.
const LOOK_BACK: usize = 3;
/// A formula of more words is none.
const MOST_WORDS: usize = 200;
/// Letters of an upright name that carries a script or an argument.
const NAME: usize = 4;
/// Height and depth of a formula's line, em.
const HEIGHT: f32 = 0.75;
const DEPTH: f32 = 0.25;

/// What a word is for a formula.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Holds mathematics.
    Formula,
    /// Numbers, signs, italic letters: part of a formula beside others.
    Between,
    Text,
}

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
    fn carries(&self, bar: &Bar, em: f32, first: &Glyph, count: usize) -> bool {
        let start = self.glyphs.iter().position(|g| std::ptr::eq(g, first)).unwrap_or(0);
        self.glyphs.iter().enumerate().any(|(at, g)| {
            let (x, y) = g.ink.center();
            !(start..start + count).contains(&at)
                && bar.x0 < x
                && x < bar.x1
                && y < bar.y
                && g.ink.y1 > bar.y - 0.6 * em
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
        let glyphs = &self.glyphs[self.places[span.start].start..self.places[span.end - 1].end];
        let range = trimmed(glyphs, false)?;
        let inside = &glyphs[range.clone()];
        if !inside.iter().any(|g| plain(g).0.is_alphanumeric()) {
            return None;
        }
        let refs: Vec<&Glyph> = inside.iter().collect();
        let ink = hull(inside.iter().map(|g| g.ink))?;
        let size = inside.iter().map(|g| g.size).fold(0.0, f32::max);
        let mut bars = bars_in(self.rules, &ink.grown(0.4 * size, 0.4 * size));
        bars.retain(|bar| !self.carries(bar, size, &inside[0], inside.len()));
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

/// Lines, by their number, that are set in italics: there italic letters are no variables.
fn slanted_lines(words: &[Word], glyphs: &[Glyph]) -> HashMap<u32, bool> {
    let mut counts: HashMap<u32, (usize, usize)> = HashMap::new();
    for glyph in glyphs.iter().filter(|g| g.character.is_alphabetic()) {
        let Some(word) = words.get(glyph.word as usize) else { continue };
        let count = counts.entry(word.line).or_default();
        count.0 += usize::from(plain(glyph).1 == Face::Italic && !is_mathematical(&glyph.font));
        count.1 += 1;
    }
    counts.into_iter().map(|(line, (italic, all))| (line, 2 * italic > all)).collect()
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

fn role(word: &Word, glyphs: &[Glyph], place: Range<usize>, slanted: bool) -> Role {
    let unknown =
        |at: usize| matches!(plain(&glyphs[at]).0, '\0'..='\u{1f}' | '\u{fffd}' | '\u{e000}'..='\u{f8ff}');
    if place.is_empty() || place.clone().any(unknown) || rtl_share(&word.text) > 0.0 {
        Role::Text
    } else if place.clone().any(|at| is_evidence(glyphs, at)) {
        Role::Formula
    } else if is_function(&word.text) || { place }
        .all(|at| joins(plain(&glyphs[at]).0) || is_variable(glyphs, at, slanted))
    {
        Role::Between
    } else {
        Role::Text
    }
}

/// An italic letter that may be a variable: alone, or one of a few that are multiplied; or a bold letter that stands alone.
fn is_variable(glyphs: &[Glyph], at: usize, slanted: bool) -> bool {
    let face = plain(&glyphs[at]).1;
    let most = match face {
        Face::Italic if !slanted => 3,
        Face::Italic | Face::Bold => 1,
        _ => return false,
    };
    let letter = |k: usize| plain(&glyphs[k]).0.is_alphabetic() && glyphs[k].word == glyphs[at].word;
    let alike = |k: usize| letter(k) && plain(&glyphs[k]).1 == face;
    let before = (0..at).rev().take_while(|&k| alike(k)).count();
    let after = (at + 1..glyphs.len()).take_while(|&k| alike(k)).count();
    let inside_word =
        at - before > 0 && letter(at - before - 1) || at + after + 1 < glyphs.len() && letter(at + after + 1);
    letter(at) && before + after < most && !(face == Face::Bold && inside_word)
}

/// Does this glyph show that there is a formula?
fn is_evidence(glyphs: &[Glyph], at: usize) -> bool {
    let glyph = &glyphs[at];
    let (c, _) = plain(glyph);
    let ornament = closing(c).is_some()
        || is_closing(c)
        || matches!(
            c,
            '‖' | '•'
                | '∙'
                | '∗'
                | '*'
                | '·'
                | '⋄'
                | '□'
                | '■'
                | '▪'
                | '†'
                | '‡'
                | '§'
                | '¶'
                | '–'
                | '—'
                | '−'
                | '∖'
        );
    if is_mathematical_letter(glyph.character) {
        return true;
    }
    if is_mathematical(&glyph.font) {
        return c.is_alphabetic() || !c.is_ascii() && !ornament && !c.is_whitespace();
    }
    is_large_operator(c) || is_script(glyphs, at)
}

/// Is the glyph smaller than the one before it, right beside it, and off its baseline?
fn is_small(glyphs: &[Glyph], at: usize) -> bool {
    let Some(base) = at.checked_sub(1).map(|k| &glyphs[k]) else { return false };
    let glyph = &glyphs[at];
    let off = (base.baseline - glyph.baseline).abs();
    glyph.size < SCRIPT_SIZE * base.size
        && off > SCRIPT_SHIFT * base.size
        && off < base.size
        && (glyph.ink.x0 - base.ink.x1).abs() < 0.4 * base.size
}

/// A script on a single italic letter, a lowered italic letter, or a power of ten.
fn is_script(glyphs: &[Glyph], at: usize) -> bool {
    if !is_small(glyphs, at) {
        return false;
    }
    let (base, glyph) = (&glyphs[at - 1], &glyphs[at]);
    let raised = glyph.baseline < base.baseline;
    let (c, face) = plain(base);
    let (own, own_face) = plain(glyph);
    let before = at.checked_sub(2).filter(|&k| glyphs[k].word == base.word).map(|k| plain(&glyphs[k]).0);
    let variable = c.is_alphabetic() && face == Face::Italic && before.is_none_or(|b| !b.is_alphabetic());
    let lowered = !raised && c.is_alphabetic() && own.is_alphabetic() && own_face == Face::Italic;
    let ten = c == '0'
        && before == Some('1')
        && at
            .checked_sub(3)
            .is_none_or(|k| glyphs[k].word != base.word || !plain(&glyphs[k]).0.is_ascii_digit());
    variable || lowered || ten && raised
}

/// An accent as a glyph of its own.
fn is_accent(glyph: &Glyph) -> bool {
    !glyph.character.is_ascii() && accent(glyph.character).is_some()
}

/// Characters that join parts of a formula.
fn joins(c: char) -> bool {
    c.is_ascii_digit()
        || is_relation(c)
        || is_binary(c)
        || closing(c).is_some()
        || is_closing(c)
        || matches!(
            c,
            '.' | ',' | '|' | '/' | '!' | '′' | '\u{338}' | '∞' | '…' | '⋯' | '∂' | '%' | '‖' | '√'
        )
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

/// The glyphs of the formula in a span: without the text before and behind, the sentence's punctuation and its brackets.
fn trimmed(glyphs: &[Glyph], slanted: bool) -> Option<Range<usize>> {
    let c = |at: usize| plain(&glyphs[at]).0;
    let belongs = |at: usize| {
        joins(c(at)) || is_small(glyphs, at) || is_variable(glyphs, at, slanted) || is_accent(&glyphs[at])
    };
    let word = |at: usize| glyphs[at].word;
    let mut start = (0..glyphs.len()).find(|&at| is_evidence(glyphs, at))?;
    let mut end = (start..glyphs.len()).rev().find(|&at| is_evidence(glyphs, at))? + 1;
    loop {
        let at = start;
        while start > 0 && belongs(start - 1) {
            start -= 1;
        }
        start -= name_before(glyphs, start);
        if start == at {
            break;
        }
    }
    while end < glyphs.len() && belongs(end) {
        end += 1;
    }
    loop {
        let count = |kind: fn(char) -> bool| (start..end).filter(|&at| kind(c(at))).count();
        let (opened, closed) = (count(|c| closing(c).is_some()), count(is_closing));
        if end - start < 2 {
            break;
        }
        let (first, last) = (c(start), c(end - 1));
        let stop = matches!(last, '.' | ',' | ';' | ':' | '!' | '-' | '–' | '—' | '/' | '%');
        // A sign before text, as in `n-th`, is not the formula's.
        let hanging = is_binary(last) && end < glyphs.len() && word(end) == word(end - 1);
        if !is_small(glyphs, end - 1) && (stop || hanging || is_closing(last) && closed > opened) {
            end -= 1;
        } else if matches!(first, '.' | ',' | ';' | ':' | '–' | '—' | '/' | ')' | ']')
            || closing(first).is_some() && opened > closed
        {
            start += 1;
        } else {
            break;
        }
    }
    Some(start..end)
}

/// Letters of an upright name right before a formula's glyph `start`: a function, or a short name that carries a script or has
/// an argument.
fn name_before(glyphs: &[Glyph], start: usize) -> usize {
    let Some(glyph) = glyphs.get(start) else { return 0 };
    let letter = |k: &usize| glyphs[*k].word == glyph.word && plain(&glyphs[*k]).0.is_alphabetic();
    let letters = (0..start).rev().take_while(letter).count();
    let name: String = glyphs[start - letters..start].iter().map(|g| plain(g).0).collect();
    let short = letters <= NAME && (is_small(glyphs, start) || plain(glyph).0 == '(');
    if is_function(&name) || short { letters } else { 0 }
}
