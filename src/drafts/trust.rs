//! Is the text layer what the picture shows? A few of its lines are read from the picture and compared.

use unicode_normalization::UnicodeNormalization;

use crate::geometry::Rect;
use crate::lines::{chunks, hull_of, lines_of, median, rtl_share};
use crate::page::Word;

/// Share of impossible characters above which a layer is garbage without a look at the picture.
const MOST_SUSPICIOUS: f32 = 0.15;
/// Median likeness of the sampled lines from which on the layer is believed.
const LIKE: f32 = 0.6;
/// Lines that are read.
const SAMPLE: usize = 4;
/// Characters of a line that are read: a reading costs by its length.
const ENOUGH: usize = 24;
/// Shorter pieces say too little.
const LEAST: usize = 6;
/// Share of a line's characters that the recogniser must be able to write.
const KNOWN: f32 = 0.85;
/// Right-to-left lines are in an order of their own.
const MOST_RTL: f32 = 0.3;
/// Share of a line's height that is cut out around it.
const MARGIN: f32 = 0.12;

/// Share of characters that cannot be right, over all words.
pub(crate) fn suspicious_share(words: &[Word]) -> f32 {
    let (mut bad, mut all) = (0.0, 0.0);
    for word in words {
        let n = word.text.chars().count() as f32;
        bad += word.suspicious * n;
        all += n;
    }
    if all > 0.0 { bad / all } else { 0.0 }
}

/// Is the layer garbage by its own characters?
pub(crate) fn is_garbage(words: &[Word]) -> bool {
    suspicious_share(words) > MOST_SUSPICIOUS
}

/// A piece of a text line, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) bbox: Rect,
}

/// Pieces of the layer that are worth reading from the picture: spread from the longest to the middling ones. `knows` tells the
/// characters that the recogniser can write.
pub(crate) fn sample(words: &[Word], mut knows: impl FnMut(char) -> bool) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for line in lines_of(words) {
        let gap = line.first().map_or(0.0, |w| w.bbox.height());
        pieces.extend(chunks(&line, gap).iter().filter_map(|chunk| piece(chunk, &mut knows)));
    }
    pieces.sort_by_key(|p| std::cmp::Reverse(p.text.chars().count().min(40)));
    let pool = pieces.len().min(SAMPLE.max(pieces.len() / 2));
    let n = pieces.len().min(SAMPLE);
    (0..n).map(|k| pieces[if n > 1 { k * (pool - 1) / (n - 1) } else { 0 }].clone()).collect()
}

/// The start of a chunk, if it can be judged.
fn piece(chunk: &[Word], knows: &mut impl FnMut(char) -> bool) -> Option<Piece> {
    let mut length = 0;
    let fits = chunk.iter().take_while(|w| {
        let n = w.text.chars().count();
        let fits = length + n <= ENOUGH;
        length += n + 1;
        fits
    });
    let part = &chunk[..fits.count().max(1).min(chunk.len())];
    let text = part.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
    let n = text.chars().count();
    let known = text.chars().filter(|&c| c == ' ' || knows(c)).count();
    let judged = n >= LEAST && known as f32 > KNOWN * n as f32 && rtl_share(&text) < MOST_RTL;
    judged.then(|| Piece { text, bbox: hull_of(part) })
}

/// What is cut out of the page for a piece.
pub(crate) fn cut_box(bbox: &Rect) -> [i64; 4] {
    let margin = MARGIN * bbox.height();
    [
        (bbox.x0 - margin).max(0.0) as i64,
        (bbox.y0 - margin).max(0.0) as i64,
        (bbox.x1 + margin + 1.0) as i64,
        (bbox.y1 + margin + 1.0) as i64,
    ]
}

/// Median likeness of what the layer says and what was read, 0..1; `None` if nothing can be compared.
pub(crate) fn likeness<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> Option<f32> {
    let values: Vec<f32> = pairs.into_iter().filter_map(|(layer, read)| similarity(layer, &read)).collect();
    (!values.is_empty()).then(|| median(values))
}

/// Does that likeness speak for the layer?
pub(crate) fn is_like(likeness: f32) -> bool {
    likeness >= LIKE
}

/// Share of common letters and digits, in order; `None` if the layer's text has none or the reading only has others.
fn similarity(layer: &str, read: &str) -> Option<f32> {
    if read.is_empty() {
        return Some(0.0);
    }
    let letters = |s: &str| -> Vec<char> {
        s.nfkc().filter(|c| c.is_alphanumeric() || *c == '_').flat_map(char::to_lowercase).collect()
    };
    let (a, b) = (letters(layer), letters(read));
    if a.is_empty() || b.is_empty() {
        return None;
    }
    Some(rapidfuzz::distance::indel::normalized_similarity(a.iter().copied(), b.iter().copied()) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::word;

    #[test]
    fn impossible_characters_count_by_length() {
        let mut bad = word("\u{fffd}\u{fffd}\u{fffd}", 0.0, 0.0, 30.0, 10.0);
        bad.suspicious = 1.0;
        let good = word("abcdefg", 40.0, 0.0, 90.0, 10.0);
        assert!((suspicious_share(&[bad.clone(), good.clone()]) - 0.3).abs() < 1e-6);
        assert!(is_garbage(&[bad, good.clone()]) && !is_garbage(&[good]) && !is_garbage(&[]));
    }

    #[test]
    fn only_what_the_recogniser_can_write_is_sampled_and_only_the_start() {
        let words = [
            word("A", 0.0, 0.0, 8.0, 10.0),
            word("quite", 12.0, 0.0, 50.0, 10.0),
            word("ordinary", 54.0, 0.0, 110.0, 10.0),
            word("line-of-words", 114.0, 0.0, 200.0, 10.0),
            word("привет", 0.0, 20.0, 60.0, 30.0),
            word("abc", 0.0, 40.0, 30.0, 50.0),
        ];
        let pieces = sample(&words, |c| c.is_ascii());
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0].text, "A quite ordinary");
        assert_eq!(pieces[0].bbox, Rect::new(0.0, 0.0, 110.0, 10.0));
        assert!(sample(&[], |_| true).is_empty());
    }

    #[test]
    fn likeness_ignores_case_spaces_and_ligatures() {
        let like = |pairs: &[(&'static str, &str)]| likeness(pairs.iter().map(|&(a, b)| (a, b.to_owned())));
        assert_eq!(like(&[("The ofﬁce, 12", "the OFFICE 12")]), Some(1.0));
        assert_eq!(like(&[("some text", "")]), Some(0.0));
        assert_eq!(like(&[("---", "--")]), None);
        assert!(!is_like(like(&[("qwrtz pxc", "The office")]).unwrap()));
    }
}
