//! Text lines of a region -> paragraphs: parted at indents, list marks, short last lines, gaps and changes of font.

use std::collections::HashMap;
use std::sync::Arc;

use crate::document::patterns::{BULLET, MONO, NUMBER};
use crate::document::text::{Lines, is_rtl, line_text};
use crate::geometry::Rect;
use crate::lines::{hull_of, median};
use crate::page::Word;

/// Font and weight.
pub(crate) type Face = (Arc<str>, bool);

/// The font and weight that most characters of these words have.
pub(crate) fn face<'a>(words: impl IntoIterator<Item = &'a Word>) -> Face {
    let mut counts: HashMap<(&Arc<str>, bool), (usize, usize)> = HashMap::new();
    for (at, word) in words.into_iter().enumerate() {
        // The earlier face wins a tie.
        let entry = counts.entry((&word.font, word.bold)).or_insert((0, usize::MAX - at));
        entry.0 += word.text.chars().count();
    }
    counts
        .into_iter()
        .max_by_key(|(_, count)| *count)
        .map_or_else(|| ("".into(), false), |((f, b), _)| (f.clone(), b))
}

/// Have all words of more than one character this face?
pub(crate) fn uniform(words: &[&Word], wanted: &Face) -> bool {
    words.iter().filter(|w| w.text.chars().nth(1).is_some()).all(|w| w.font == wanted.0 && w.bold == wanted.1)
}

/// Is this text set in a typewriter font? Text layers only: pictures have no fonts.
pub(crate) fn typewriter<'a>(words: impl IntoIterator<Item = &'a Word>) -> bool {
    let (mut all, mut mono) = (0, 0);
    for word in words {
        let count = word.text.chars().count();
        all += count;
        mono += if MONO.is_match(&word.font) { count } else { 0 };
    }
    mono as f32 > 0.8 * all as f32
}

/// Parts a region's lines into paragraphs.
pub(crate) fn paragraphs(lines: Lines<'_>) -> Vec<Lines<'_>> {
    if lines.len() < 2 {
        return if lines.is_empty() { Vec::new() } else { vec![lines] };
    }
    let block = Block::new(&lines);
    let mut out: Vec<Lines> = Vec::new();
    let mut begin = 0;
    for k in 1..lines.len() {
        if block.begins(&lines, begin, k) {
            out.push(lines[begin..k].to_vec());
            begin = k;
        }
    }
    out.push(lines[begin..].to_vec());
    out
}

/// The measures of a region's lines.
struct Block {
    boxes: Vec<Rect>,
    texts: Vec<String>,
    faces: Vec<Face>,
    rtl: bool,
    /// Median line height.
    size: f32,
    /// Median distance between lines.
    usual_gap: f32,
    left: f32,
    right: f32,
}

impl Block {
    fn new(lines: &Lines) -> Block {
        let rtl = is_rtl(lines.iter().flatten());
        let boxes: Vec<Rect> = lines.iter().map(|l| hull_of(l.iter().copied())).collect();
        Block {
            texts: lines.iter().map(|l| line_text(l, rtl).text).collect(),
            faces: lines.iter().map(|l| face(l.iter().copied())).collect(),
            rtl,
            size: median(boxes.iter().map(Rect::height)),
            usual_gap: median(boxes.windows(2).map(|w| w[1].y0 - w[0].y1)),
            left: boxes.iter().map(|b| b.x0).fold(f32::INFINITY, f32::min),
            right: boxes.iter().map(|b| b.x1).fold(f32::NEG_INFINITY, f32::max),
            boxes,
        }
    }

    /// Does line `k` begin a paragraph, where the one before it began with line `begin`?
    fn begins(&self, lines: &Lines, begin: usize, k: usize) -> bool {
        let gap = self.boxes[k].y0 - self.boxes[k - 1].y1;
        self.changes_face(lines, begin, k, gap)
            || gap > self.usual_gap + 0.45 * self.size
            || self.marked(begin, k)
            || !self.rtl && (self.indented(k) || self.after_short_line(lines, k))
    }

    fn changes_face(&self, lines: &Lines, begin: usize, k: usize, gap: f32) -> bool {
        let (before, here) = (&self.faces[k - 1], &self.faces[k]);
        before != here
            && (uniform(&lines[k - 1], before) || uniform(&lines[k], here))
            && (before.1 != here.1 && k - begin <= 2 || gap > self.usual_gap + 0.15 * self.size)
    }

    fn marked(&self, begin: usize, k: usize) -> bool {
        let short = self.boxes[k - 1].x1 < self.right - 1.5 * self.size;
        bulleted(&self.texts[k])
            || NUMBER.is_match(&self.texts[k]) && (short || NUMBER.is_match(&self.texts[begin]))
    }

    fn indented(&self, k: usize) -> bool {
        let (before, here) = (&self.boxes[k - 1], &self.boxes[k]);
        !NUMBER.is_match(&self.texts[k - 1])
            && !BULLET.is_match(&self.texts[k - 1])
            && here.x0 > before.x0 + 0.8 * self.size
            && (before.x0 - self.left).abs() < 0.5 * self.size
            && here.x0 < self.left + 4.0 * self.size
            && before.x1 < self.right - 0.3 * self.size
    }

    fn after_short_line(&self, lines: &Lines, k: usize) -> bool {
        let first = lines[k].first().and_then(|w| w.text.chars().next());
        lines.len() > 2
            && self.boxes[k - 1].x1 < self.left + 0.6 * (self.right - self.left)
            && first.is_some_and(char::is_uppercase)
    }
}

/// Does a line begin with a bullet? A line may be nothing else.
fn bulleted(text: &str) -> bool {
    BULLET.is_match(text) || text.chars().nth(2).is_none() && BULLET.is_match(&format!("{text} "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::text::lines_of;
    use crate::lines::tests::word;

    /// Lines of one word each: `(text, left, right)`, 14 px apart.
    fn split(lines: &[(&str, f32, f32)]) -> Vec<String> {
        let words: Vec<Word> = lines
            .iter()
            .enumerate()
            .map(|(n, (t, x0, x1))| word(t, *x0, n as f32 * 14.0, *x1, n as f32 * 14.0 + 10.0))
            .collect();
        let text = |p: Lines| p.iter().map(|l| l[0].text.clone()).collect::<Vec<_>>().join("|");
        paragraphs(lines_of(&words)).into_iter().map(text).collect()
    }

    #[test]
    fn an_indent_after_a_line_that_is_not_full_begins_a_paragraph() {
        let lines = [("one", 0.0, 200.0), ("end", 0.0, 150.0), ("New", 15.0, 200.0), ("on", 0.0, 200.0)];
        assert_eq!(split(&lines), ["one|end", "New|on"]);
        let full = [("one", 0.0, 200.0), ("end", 0.0, 200.0), ("new", 15.0, 200.0), ("on", 0.0, 200.0)];
        assert_eq!(split(&full), ["one|end|new|on"]);
    }

    #[test]
    fn a_capital_after_a_short_line_begins_a_paragraph() {
        assert_eq!(
            split(&[("one", 0.0, 200.0), ("end.", 0.0, 80.0), ("New", 0.0, 200.0)]),
            ["one|end.", "New"]
        );
    }

    #[test]
    fn bullets_and_numbers_begin_items() {
        let lines = [("• a", 0.0, 200.0), ("more", 10.0, 200.0), ("• b", 0.0, 200.0)];
        assert_eq!(split(&lines), ["• a|more", "• b"]);
        let lines = [("1. a", 0.0, 200.0), ("more", 10.0, 200.0), ("2. b", 0.0, 200.0)];
        assert_eq!(split(&lines), ["1. a|more", "2. b"]);
    }

    #[test]
    fn a_wider_gap_parts() {
        let words = [
            word("a", 0.0, 0.0, 99.0, 10.0),
            word("b", 0.0, 14.0, 99.0, 24.0),
            word("c", 0.0, 40.0, 99.0, 50.0),
            word("d", 0.0, 54.0, 99.0, 64.0),
        ];
        assert_eq!(paragraphs(lines_of(&words)).len(), 2);
    }

    #[test]
    fn a_bold_line_stands_apart() {
        let mut words = [
            word("Run-in", 0.0, 0.0, 60.0, 10.0),
            word("text", 0.0, 14.0, 99.0, 24.0),
            word("more", 0.0, 28.0, 99.0, 38.0),
        ];
        words[0].bold = true;
        assert_eq!(paragraphs(lines_of(&words)).len(), 2);
    }
}
