//! Where a formula begins and ends among the glyphs of its words.

use std::ops::Range;

use super::evidence::{is_accent, is_evidence, is_small, is_variable, joins};
use super::faces::plain;
use super::symbols::{closing, is_binary, is_closing, is_function};
use crate::page::Glyph;

/// Letters of an upright name that carries a script or an argument.
const NAME: usize = 4;

/// The glyphs of the formula in a span: without the text before and behind, the sentence's punctuation and its brackets.
pub(super) fn extent(glyphs: &[Glyph]) -> Option<Range<usize>> {
    let c = |at: usize| plain(&glyphs[at]).0;
    let belongs = |at: usize| {
        joins(c(at)) || is_small(glyphs, at) || is_variable(glyphs, at, false) || is_accent(&glyphs[at])
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
