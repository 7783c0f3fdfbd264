//! Words -> text lines -> chunks between wide gaps. Used by table grids, regions and paragraphs alike.

use crate::clock::worked;
use crate::geometry::{Rect, hull};
use crate::page::Word;

/// The box of some words; an empty one at the origin for none.
pub fn hull_of<'a>(words: impl IntoIterator<Item = &'a Word>) -> Rect {
    let mut count = 0;
    let boxes = words.into_iter().inspect(|_| count += 1).map(|w| w.bbox);
    let hull = hull(boxes).unwrap_or_default();
    worked(count);
    hull
}

/// Median of some values; 0 for none. Even counts take the mean of the middle two.
pub fn median(values: impl IntoIterator<Item = f32>) -> f32 {
    let mut v: Vec<f32> = values.into_iter().collect();
    worked(v.len());
    if v.is_empty() {
        return 0.0;
    }
    v.sort_by(f32::total_cmp);
    let mid = v.len() / 2;
    if v.len() % 2 == 1 { v[mid] } else { (v[mid - 1] + v[mid]) / 2.0 }
}

/// Groups words into lines, top to bottom, each sorted by x. A word joins the line that it overlaps by more than half of the
/// smaller height. Returns indices into `words`.
pub fn line_indices(words: &[Word]) -> Vec<Vec<usize>> {
    struct Open {
        y0: f32,
        y1: f32,
        members: Vec<usize>,
    }
    worked(4 * words.len());
    let mut order: Vec<usize> = (0..words.len()).collect();
    order.sort_by(|&a, &b| words[a].bbox.center().1.total_cmp(&words[b].bbox.center().1));
    let mut open: Vec<Open> = Vec::new();
    for i in order {
        let b = words[i].bbox;
        let recent = open.len().saturating_sub(6);
        let mut best = None;
        let mut share = 0.5;
        for (k, line) in open.iter().enumerate().skip(recent) {
            let smaller = (b.y1 - b.y0).min(line.y1 - line.y0).max(1e-6);
            let overlap = (b.y1.min(line.y1) - b.y0.max(line.y0)) / smaller;
            if overlap > share {
                share = overlap;
                best = Some(k);
            }
        }
        match best {
            None => open.push(Open { y0: b.y0, y1: b.y1, members: vec![i] }),
            Some(k) => {
                let line = &mut open[k];
                line.members.push(i);
                let n = line.members.len() as f32;
                line.y0 += (b.y0 - line.y0) / n;
                line.y1 += (b.y1 - line.y1) / n;
            }
        }
    }
    open.sort_by(|a, b| (a.y0 + a.y1).total_cmp(&(b.y0 + b.y1)));
    open.into_iter()
        .map(|mut line| {
            line.members.sort_by(|&a, &b| words[a].bbox.x0.total_cmp(&words[b].bbox.x0));
            line.members
        })
        .collect()
}

/// [`line_indices`], as clones of the words.
pub fn lines_of(words: &[Word]) -> Vec<Vec<Word>> {
    line_indices(words).into_iter().map(|line| line.into_iter().map(|i| words[i].clone()).collect()).collect()
}

/// Splits a line (sorted by x) at gaps wider than `gap`.
pub fn chunks(line: &[Word], gap: f32) -> Vec<Vec<Word>> {
    worked(4 * line.len());
    let mut out: Vec<Vec<Word>> = Vec::new();
    let mut right = f32::NEG_INFINITY;
    for word in line {
        if out.is_empty() || word.bbox.x0 - right > gap {
            out.push(Vec::new());
            right = f32::NEG_INFINITY;
        }
        right = right.max(word.bbox.x1);
        if let Some(last) = out.last_mut() {
            last.push(word.clone());
        }
    }
    out
}

/// Share of right-to-left letters among the letters of `text`, 0..1.
pub fn rtl_share(text: &str) -> f32 {
    use unicode_bidi::{BidiClass, bidi_class};
    let letters = text.chars().filter(|c| c.is_alphabetic());
    let (mut all, mut rtl) = (0u32, 0u32);
    for c in letters {
        all += 1;
        rtl += u32::from(matches!(bidi_class(c), BidiClass::R | BidiClass::AL));
    }
    rtl as f32 / all.max(1) as f32
}

/// A character of the scripts that set no spaces between words (Chinese, Japanese; full-width forms and their punctuation).
pub fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}')
}

/// Is this a character of a script that writes words without spaces between them: Thai, Lao, Burmese, Khmer?
pub fn is_spaceless(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
}

/// This many times as high as wide, a line of several characters stands: it runs from top to bottom.
pub const STANDING: f32 = 1.5;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::page::Source;

    /// A plain word for tests.
    pub(crate) fn word(text: &str, x0: f32, y0: f32, x1: f32, y1: f32) -> Word {
        Word {
            text: text.into(),
            bbox: Rect::new(x0, y0, x1, y1),
            size: y1 - y0,
            bold: false,
            font: "".into(),
            line: 0,
            glue: false,
            confidence: 1.0,
            source: Source::TextLayer,
            link: None,
            suspicious: 0.0,
            latex: None,
        }
    }

    #[test]
    fn words_of_two_lines_come_sorted() {
        let words = [
            word("b", 20.0, 1.0, 30.0, 11.0),
            word("c", 0.0, 20.0, 10.0, 30.0),
            word("a", 0.0, 0.0, 10.0, 10.0),
        ];
        let lines = lines_of(&words);
        let text: Vec<String> = lines.iter().map(|l| l.iter().map(|w| w.text.as_str()).collect()).collect();
        assert_eq!(text, ["ab", "c"]);
        assert_eq!(chunks(&lines[0], 5.0).len(), 2);
        assert_eq!(chunks(&lines[0], 10.0).len(), 1);
    }
}
