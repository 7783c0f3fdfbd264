//! Text lines of a region -> paragraphs: parted at indents, list marks, short last lines, gaps and changes of font.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use regex::Regex;

use crate::document::text::{Lines, is_rtl, line_text};
use crate::geometry::Rect;
use crate::lines::{hull_of, is_cjk, median};
use crate::page::Word;
use crate::patterns::{BULLET, NUMBER, monospaced};

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

/// Parts the lines of footnotes: a note begins with a sign, or with the number after the one before.
pub(crate) fn footnotes(lines: Lines<'_>) -> Vec<Lines<'_>> {
    let text = |line: &[&Word]| line.iter().map(|w| w.text.as_str()).collect::<String>();
    let mark = |line: &[&Word]| Mark::of(&text(line));
    let mut out: Vec<Lines> = Vec::new();
    let mut last = lines.first().map_or(Mark::None, |line| mark(line));
    let mut open: Lines = Vec::new();
    for line in lines {
        let here = mark(&line);
        let follows = match (last, here) {
            (Mark::Sign, Mark::Sign) => true,
            (Mark::Number(a), Mark::Number(b)) => b == a + 1,
            (Mark::Sign, Mark::Number(1)) | (Mark::Number(_), Mark::Sign) => true,
            _ => false,
        };
        if follows && !open.is_empty() {
            out.push(std::mem::take(&mut open));
            last = here;
        }
        open.push(line);
    }
    if !open.is_empty() {
        out.push(open);
    }
    out.into_iter().flat_map(paragraphs).collect()
}

/// What a footnote begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Sign,
    Number(u32),
    None,
}

impl Mark {
    fn of(text: &str) -> Mark {
        let digits =
            text.trim_start_matches('(').chars().take_while(char::is_ascii_digit).collect::<String>();
        match digits.parse() {
            Ok(number) if digits.len() <= 3 => Mark::Number(number),
            _ if text.starts_with(['*', '∗', '†', '‡', '§', '¶', '⋆', '★']) => Mark::Sign,
            _ => Mark::None,
        }
    }
}

/// Lines further apart than this many line heights do not go on from each other; those of double-spaced type are 1.2 apart.
const APART: f32 = 1.6;

/// How many lines up and down show how wide the text is set.
const NEARBY: usize = 4;

/// The measures of a region's lines.
struct Block {
    boxes: Vec<Rect>,
    texts: Vec<String>,
    faces: Vec<Face>,
    /// Lines of program text.
    mono: Vec<bool>,
    /// Do all lines begin with a label (`Name: Ada`)?
    labelled: bool,
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
        let texts: Vec<String> = lines.iter().map(|l| line_text(l, rtl).text).collect();
        Block {
            mono: lines.iter().map(|l| monospaced(l.iter().copied())).collect(),
            labelled: texts.iter().all(|t| LABEL.is_match(t)),
            texts,
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
            || gap > APART * self.size
            || self.marked(begin, k)
            || self.labelled
            || self.mono[k] != self.mono[k - 1] && self.displayed(if self.mono[k] { k } else { k - 1 })
            || self.forced(lines, begin, k)
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
        let text = &self.texts[k];
        // Dashes and a lone `o` also begin lines of a sentence.
        let doubtful = text.starts_with(['o', '-', '–', '—', '*', '∗', '·']);
        bulleted(text) && (!doubtful || short || bulleted(&self.texts[begin]))
            || text.starts_with(['†', '‡', '§', '¶'])
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

    /// Is line `k` indented, or shorter than the others?
    fn displayed(&self, k: usize) -> bool {
        self.boxes[k].x0 > self.left + 0.8 * self.size || self.boxes[k].x1 < self.right - 2.0 * self.size
    }

    /// Did line `k - 1` end although the first word of line `k` had room in it?
    fn forced(&self, lines: &Lines, begin: usize, k: usize) -> bool {
        let Some(word) = lines[k].first() else { return false };
        let first = word.text.chars().next().unwrap_or_default();
        let (top, here) = (&self.boxes[begin], &self.boxes[k]);
        let item = bulleted(&self.texts[begin]) || NUMBER.is_match(&self.texts[begin]);
        if item && here.x0 > top.x0 + 0.5 * self.size {
            return false;
        }
        if first.is_lowercase() || is_cjk(first) || self.texts[k - 1].ends_with(['-', '\u{ad}', '\u{2010}']) {
            return false;
        }
        let near = &self.boxes[k.saturating_sub(NEARBY)..(k + NEARBY).min(self.boxes.len())];
        let left = near.iter().map(|b| b.x0).fold(f32::INFINITY, f32::min);
        let right = near.iter().map(|b| b.x1).fold(f32::NEG_INFINITY, f32::max);
        let before = &self.boxes[k - 1];
        let room = if self.rtl { before.x0 - left } else { right - before.x1 };
        let other_side = if self.rtl { right - before.x1 } else { before.x0 - left };
        // Centred lines have room on both sides.
        let room = if (room - other_side).abs() < 0.5 * self.size { room + other_side } else { room };
        room > word.bbox.width() + 1.5 * self.size
    }

    fn after_short_line(&self, lines: &Lines, k: usize) -> bool {
        let first = lines[k].first().and_then(|w| w.text.chars().next());
        lines.len() > 2
            && self.boxes[k - 1].x1 < self.left + 0.6 * (self.right - self.left)
            && first.is_some_and(char::is_uppercase)
    }
}

/// A short label at the beginning of a line.
static LABEL: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\p{Lu}[^:.,;]{1,30}:(\s|$)").expect("a constant pattern"));

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
    fn a_line_that_ends_although_the_next_word_had_room_ends_a_paragraph() {
        let lines = [("Ada", 0.0, 90.0), ("London", 0.0, 100.0), ("1815", 0.0, 40.0), ("a", 0.0, 200.0)];
        assert_eq!(split(&lines), ["Ada", "London", "1815|a"]);
        let words = [
            word("Jane", 70.0, 0.0, 130.0, 10.0),
            word("Harbour", 0.0, 14.0, 50.0, 24.0),
            word("Office", 55.0, 14.0, 200.0, 24.0),
            word("Northwick", 60.0, 28.0, 140.0, 38.0),
        ];
        assert_eq!(paragraphs(lines_of(&words)).len(), 2);
    }

    #[test]
    fn footnotes_begin_with_the_next_number_or_a_sign() {
        let words = [
            word("1See", 0.0, 0.0, 99.0, 10.0),
            word("7", 0.0, 14.0, 5.0, 24.0),
            word("more", 10.0, 14.0, 99.0, 24.0),
            word("2There", 0.0, 28.0, 99.0, 38.0),
        ];
        assert_eq!(footnotes(lines_of(&words)).len(), 2);
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
    fn lines_far_apart_stand_alone() {
        let spaced = |pitch: f32| {
            let line = |k: usize| word("long", 0.0, pitch * k as f32, 99.0, pitch * k as f32 + 10.0);
            let words: Vec<Word> = (0..3).map(line).collect();
            paragraphs(lines_of(&words)).len()
        };
        assert_eq!((spaced(22.0), spaced(28.0)), (1, 3));
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
