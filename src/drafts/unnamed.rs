//! Characters of a text layer that its fonts do not name (no `ToUnicode`, codes that mean nothing): read from the picture, beside
//! the characters that are known.

use std::collections::HashMap;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

use crate::lines::hull_of;
use crate::page::{Glyph, Word};
use crate::raster::Raster;

use super::nets::Nets;
use super::recognise::Reading;
use super::trust::cut_box;

/// Pieces of a page that are read at most.
const MOST_PIECES: usize = 64;
/// Times that one glyph of a font is read.
const SAMPLES: usize = 3;
/// Words with fewer known characters are read together with their neighbours.
const FEW: usize = 4;
/// Neighbours stand this close, font heights.
const NEAR: f32 = 1.0;
/// Letters that one glyph shows at most: ffi.
const MOST_LETTERS: usize = 3;
/// Share of a piece's known characters that may be read otherwise.
const MOST_WRONG: f32 = 0.2;

/// A glyph without a name: its font and its code there. Code 0 is what pdfium gives to all that it knows nothing of.
type Key = (Arc<str>, char);

/// Does the character say nothing about what is printed? U+21B5 is what Quartz names the ligature ff of TeX's fonts.
fn is_unnamed(c: char) -> bool {
    c == char::REPLACEMENT_CHARACTER || c == '\u{21b5}' || ('\u{e000}'..='\u{f8ff}').contains(&c)
}

/// A word with unnamed characters, its neighbours, and what they say without spaces.
struct Piece {
    word: usize,
    around: std::ops::Range<usize>,
    pattern: Vec<char>,
    /// Where the word's characters stand in it.
    own: std::ops::Range<usize>,
}

/// Puts what is printed in the place of unnamed characters. `glyphs` are those of `words`.
pub(super) fn name_characters(words: &mut [Word], glyphs: &[Glyph], raster: &Raster, nets: &mut Nets) {
    let unnamed = words.iter().any(|w| w.text.contains(is_unnamed));
    if !unnamed || nets.recogniser().is_none() {
        return;
    }
    let keys = keys(words, glyphs);
    let pieces = pieces(words, &keys);
    let crops: Vec<Raster> = pieces.iter().filter_map(|piece| crop(piece, words, raster)).collect();
    if crops.len() != pieces.len() {
        return;
    }
    let Some(readings) = nets.read(&crops) else { return };
    // By word, what its own reading shows.
    let own: HashMap<usize, Vec<String>> = pieces
        .iter()
        .zip(&readings)
        .filter_map(|(piece, reading)| Some((piece.word, shown(piece, reading)?)))
        .collect();
    let mut votes: HashMap<&Key, HashMap<String, usize>> = HashMap::new();
    for (&word, shown) in &own {
        for (key, letters) in keys[word].iter().zip(shown).filter(|(key, _)| key.1 != '\0') {
            *votes.entry(key).or_default().entry(letters.clone()).or_default() += 1;
        }
    }
    let named: HashMap<&Key, String> =
        votes.into_iter().filter_map(|(key, votes)| Some((key, best(votes)?))).collect();
    for (at, word) in words.iter_mut().enumerate() {
        let letters = |k: usize| {
            let key = keys[at].get(k)?;
            named.get(key).cloned().or_else(|| own.get(&at).and_then(|own| own.get(k)).cloned())
        };
        rename(word, letters);
    }
}

/// The letters that most readings agree on; of equals the first in order.
fn best(votes: HashMap<String, usize>) -> Option<String> {
    votes.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0))).map(|(letters, _)| letters)
}

/// By word, the keys of its unnamed characters.
fn keys(words: &[Word], glyphs: &[Glyph]) -> Vec<Vec<Key>> {
    let mut keys: Vec<Vec<Key>> = vec![Vec::new(); words.len()];
    // U+0002 is pdfium's mark for a hyphen.
    let shows_nothing = |c: char| c != '\u{2}' && c.is_control() || is_unnamed(c);
    for glyph in glyphs.iter().filter(|g| shows_nothing(g.character)) {
        if let Some(keys) = keys.get_mut(glyph.word as usize) {
            keys.push((glyph.font.clone(), glyph.character));
        }
    }
    for (keys, word) in keys.iter_mut().zip(words) {
        if keys.len() != word.text.chars().filter(|&c| is_unnamed(c)).count() {
            keys.clear();
        }
    }
    keys
}

/// What is to be read: of each glyph a few occurrences, of those without even a code all.
fn pieces(words: &[Word], keys: &[Vec<Key>]) -> Vec<Piece> {
    let mut seen: HashMap<&Key, usize> = HashMap::new();
    let mut out = Vec::new();
    for (at, keys) in keys.iter().enumerate() {
        let wanted = keys.iter().any(|key| key.1 == '\0' || seen.get(key).copied().unwrap_or(0) < SAMPLES);
        if !wanted || out.len() == MOST_PIECES {
            continue;
        }
        if let Some(piece) = piece(words, at) {
            keys.iter().for_each(|key| *seen.entry(key).or_default() += 1);
            out.push(piece);
        }
    }
    out
}

fn piece(words: &[Word], at: usize) -> Option<Piece> {
    let word = &words[at];
    // A sign at the beginning of a line is a bullet.
    let leads = at.checked_sub(1).is_none_or(|before| words[before].line != word.line);
    if leads && word.text.chars().all(is_unnamed) {
        return None;
    }
    let known = |word: &Word| word.text.chars().filter(|&c| !is_unnamed(c)).count();
    let near = |a: &Word, b: &Word| {
        a.line == b.line && b.bbox.x0 - a.bbox.x1 < NEAR * word.size && b.bbox.x0 > a.bbox.x0
    };
    let mut around = at..at + 1;
    if known(word) < FEW {
        if at > 0 && near(&words[at - 1], word) {
            around.start -= 1;
        }
        if at + 1 < words.len() && near(word, &words[at + 1]) {
            around.end += 1;
        }
    }
    let count = |range: std::ops::Range<usize>| -> usize {
        words[range].iter().map(|w| w.text.chars().count()).sum()
    };
    let start = count(around.start..at);
    let own = start..start + count(at..at + 1);
    let pattern: Vec<char> = words[around.clone()].iter().flat_map(|w| w.text.chars()).collect();
    let anchors = pattern.iter().filter(|&&c| c.is_alphanumeric()).count();
    (anchors >= 2).then_some(Piece { word: at, around, pattern, own })
}

fn crop(piece: &Piece, words: &[Word], raster: &Raster) -> Option<Raster> {
    let [x0, y0, x1, y1] = cut_box(&hull_of(&words[piece.around.clone()]));
    raster.cropped(x0, y0, x1, y1).filter(|crop| crop.width.min(crop.height) > 3)
}

/// What the reading shows in place of the unnamed characters of the piece's word; `None` if it does not agree about the rest.
fn shown(piece: &Piece, reading: &Reading) -> Option<Vec<String>> {
    let read: Vec<char> =
        reading.characters.iter().map(|c| c.character).filter(|c| !c.is_whitespace()).collect();
    let filled = aligned(&piece.pattern, &read)?;
    let own = piece.own.clone().filter(|&k| is_unnamed(piece.pattern[k]));
    own.map(|k| filled[k].clone()).collect::<Option<Vec<String>>>()
}

/// For each character of `pattern` that is unnamed the letters of `read` in its place. `None` if too many of the known characters
/// differ.
fn aligned(pattern: &[char], read: &[char]) -> Option<Vec<Option<String>>> {
    let (rows, columns) = (pattern.len() + 1, read.len() + 1);
    // Cost, and how many read characters the step took; the pattern's character is always taken unless `Skip`.
    let mut cost = vec![f32::INFINITY; rows * columns];
    let mut step: Vec<Step> = vec![Step::Take(0); rows * columns];
    cost[0] = 0.0;
    for i in 0..rows {
        for j in 0..columns {
            let at = i * columns + j;
            let mut offer = |from: usize, price: f32, how: Step| {
                if cost[from] + price < cost[at] {
                    (cost[at], step[at]) = (cost[from] + price, how);
                }
            };
            if j > 0 {
                offer(at - 1, 1.0, Step::Skip);
            }
            if i == 0 {
                continue;
            }
            let above = at - columns;
            offer(above, 1.0, Step::Take(0));
            if is_unnamed(pattern[i - 1]) {
                for count in 1..=MOST_LETTERS.min(j) {
                    offer(above - count, 0.05 * (count - 1) as f32, Step::Take(count));
                }
            } else if j > 0 {
                offer(above - 1, if alike(pattern[i - 1], read[j - 1]) { 0.0 } else { 1.0 }, Step::Take(1));
            }
        }
    }
    let known = pattern.iter().filter(|&&c| !is_unnamed(c)).count();
    if cost[rows * columns - 1].floor() > MOST_WRONG * known as f32 {
        return None;
    }
    let mut out = vec![None; pattern.len()];
    let (mut i, mut j) = (rows - 1, columns - 1);
    while i > 0 || j > 0 {
        match step[i * columns + j] {
            Step::Skip => j -= 1,
            Step::Take(count) => {
                i -= 1;
                j -= count;
                out[i] = (count > 0).then(|| read[j..j + count].iter().collect());
            }
        }
    }
    Some(out)
}

/// How a character is accounted for.
#[derive(Clone, Copy)]
enum Step {
    /// The next character of the pattern, with so many that were read.
    Take(usize),
    /// A character that was read, and nothing of the pattern.
    Skip,
}

fn alike(a: char, b: char) -> bool {
    let plain = |c: char| c.nfkc().next().map(|c| c.to_lowercase().next().unwrap_or(c));
    plain(a) == plain(b)
}

fn rename(word: &mut Word, letters: impl Fn(usize) -> Option<String>) {
    let (mut text, mut seen, mut left) = (String::new(), 0, 0);
    for c in word.text.chars() {
        if !is_unnamed(c) {
            text.push(c);
            continue;
        }
        match letters(seen) {
            Some(letters) => text.push_str(&letters),
            None => {
                text.push(c);
                left += 1;
            }
        }
        seen += 1;
    }
    if left < seen {
        word.suspicious *= left as f32 / seen as f32;
        word.text = text.nfc().collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(pattern: &str, read: &str) -> Option<Vec<String>> {
        let pattern: Vec<char> = pattern.chars().collect();
        let read: Vec<char> = read.chars().collect();
        Some(
            aligned(&pattern, &read)?
                .into_iter()
                .zip(pattern)
                .filter(|(_, c)| is_unnamed(*c))
                .map(|(s, _)| s.unwrap_or_default())
                .collect(),
        )
    }

    #[test]
    fn unnamed_characters_take_what_stands_between_the_known_ones() {
        assert_eq!(fill("di\u{fffd}culties", "difficulties"), Some(vec!["ffi".into()]));
        assert_eq!(fill("e\u{21b5}orts", "efforts"), Some(vec!["ff".into()]));
        assert_eq!(fill("\u{fffd}0.9393", "-0.9393"), Some(vec!["-".into()]));
        assert_eq!(fill("a\u{e001}b\u{e002}cd", "a+b=cd"), Some(vec!["+".into(), "=".into()]));
    }

    #[test]
    fn a_reading_of_something_else_names_nothing() {
        assert_eq!(fill("di\u{fffd}culties", "entirely"), None);
        assert_eq!(fill("di\u{fffd}culties", ""), None);
        assert_eq!(fill("\u{fffd}5.25", "5.25"), None, "nothing was read in its place");
        assert_eq!(
            fill("di\u{fffd}cultjes", "difficulties"),
            Some(vec!["ffi".into()]),
            "one letter may differ"
        );
    }

    #[test]
    fn a_word_is_renamed_where_something_is_known() {
        let mut word = crate::lines::tests::word("a\u{fffd}b\u{fffd}", 0.0, 0.0, 40.0, 10.0);
        word.suspicious = 0.5;
        rename(&mut word, |k| (k == 0).then(|| "fi".to_owned()));
        assert_eq!((word.text.as_str(), word.suspicious), ("afib\u{fffd}", 0.25));
    }
}
