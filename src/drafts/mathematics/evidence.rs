//! What glyphs and words say about whether there is a formula.

use std::collections::HashMap;
use std::ops::Range;

use super::expression::SCRIPT_SIZE;
use super::faces::{Face, is_mathematical, is_mathematical_letter, plain};
use super::symbols::{accent, closing, is_binary, is_closing, is_function, is_large_operator, is_relation};
use crate::lines::rtl_share;
use crate::page::{Glyph, Word};

/// Letters of a word that is one, whatever fonts it takes them from.
const LEAST_WORD: usize = 5;

/// Scripts are at least this far from the baseline of their letter, em.
const SCRIPT_SHIFT: f32 = 0.1;

/// What a word is for a formula.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Holds mathematics.
    Formula,
    /// Numbers, signs, italic letters: part of a formula beside others.
    Between,
    Text,
}

/// Lines, by their number, that are set in italics: there italic letters are no variables.
pub(super) fn slanted_lines(words: &[Word], glyphs: &[Glyph]) -> HashMap<u32, bool> {
    let mut counts: HashMap<u32, (usize, usize)> = HashMap::new();
    for glyph in glyphs.iter().filter(|g| g.character.is_alphabetic()) {
        let Some(word) = words.get(glyph.word as usize) else { continue };
        let count = counts.entry(word.line).or_default();
        count.0 += usize::from(plain(glyph).1 == Face::Italic && !is_mathematical(&glyph.font));
        count.1 += 1;
    }
    counts.into_iter().map(|(line, (italic, all))| (line, 2 * italic > all)).collect()
}

pub(super) fn role(word: &Word, glyphs: &[Glyph], place: Range<usize>, slanted: bool) -> Role {
    let unknown =
        |at: usize| matches!(plain(&glyphs[at]).0, '\0'..='\u{1f}' | '\u{fffd}' | '\u{e000}'..='\u{f8ff}');
    let no_formula = place.is_empty()
        || place.clone().any(unknown)
        || rtl_share(&word.text) > 0.0
        || is_word_with_foreign_letters(word, &glyphs[place.clone()]);
    if no_formula {
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

/// A word of letters some of which come from a font of symbols: ligatures of old fonts do.
fn is_word_with_foreign_letters(word: &Word, glyphs: &[Glyph]) -> bool {
    let foreign = glyphs.iter().filter(|g| is_mathematical(&g.font)).count();
    let level = glyphs.iter().all(|g| (g.baseline - glyphs[0].baseline).abs() < SCRIPT_SHIFT * g.size);
    word.text.chars().count() >= LEAST_WORD
        && word.text.chars().all(|c| c.is_ascii_alphabetic() || ".,;:-".contains(c))
        && level
        && 2 * foreign < glyphs.len()
}

/// An italic letter that may be a variable: alone, or one of a few that are multiplied; or a bold letter that stands alone.
pub(super) fn is_variable(glyphs: &[Glyph], at: usize, slanted: bool) -> bool {
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
pub(super) fn is_evidence(glyphs: &[Glyph], at: usize) -> bool {
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
pub(super) fn is_small(glyphs: &[Glyph], at: usize) -> bool {
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
    // 10th is no power.
    let ordinal = own.is_alphabetic() && own_face != Face::Italic;
    variable || lowered || ten && raised && !ordinal
}

/// An accent as a glyph of its own.
pub(super) fn is_accent(glyph: &Glyph) -> bool {
    !glyph.character.is_ascii() && accent(glyph.character).is_some()
}

/// Characters that join parts of a formula.
pub(super) fn joins(c: char) -> bool {
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
