//! Program text: lines with their indents, from the advance of one character.

use crate::document::composed::Composed;
use crate::document::text::Lines;
use crate::lines::{hull_of, median};

/// An indent or gap is never wider than this, characters.
const WIDEST: usize = 200;

/// Lines -> program text.
pub(crate) fn code(lines: &Lines) -> Composed {
    let advance = advance(lines);
    let left = lines.iter().flatten().map(|w| w.bbox.x0).fold(f32::INFINITY, f32::min);
    let tops: Vec<f32> = lines.iter().map(|l| hull_of(l.iter().copied()).y0).collect();
    let pitch = median(tops.windows(2).map(|w| w[1] - w[0])).max(1e-6);
    let mut out = Composed::default();
    for (k, line) in lines.iter().enumerate() {
        if k > 0 {
            // A gap of two lines is one empty line; more say no more.
            let rows = ((tops[k] - tops[k - 1]) / pitch).round().clamp(1.0, 2.0) as usize;
            out.push_gap(&"\n".repeat(rows));
        }
        let mut width = 0;
        for word in line {
            let column = ((word.bbox.x0 - left) / advance).round().clamp(0.0, 4000.0) as usize;
            let gap = match column.saturating_sub(width) {
                gap if width == 0 || gap > 2 => gap.min(WIDEST),
                _ => usize::from(!word.glue),
            };
            let text: String = word.text.chars().filter(|c| !c.is_control()).collect();
            out.push_gap(&" ".repeat(gap));
            width += gap + text.chars().count();
            out.push_word(&text, word);
        }
    }
    out
}

fn advance(lines: &Lines) -> f32 {
    let words = || lines.iter().flatten();
    let widths = words().filter_map(|w| {
        let count = w.text.chars().count();
        (count > 1).then(|| w.bbox.width() / count as f32)
    });
    let median_width = median(widths);
    let fallback = words().next().map_or(1.0, |w| w.size / 2.0);
    if median_width > 0.0 { median_width } else { fallback.max(1e-3) }
}

/// Program text as a fenced block; the fence is longer than any in the text.
pub(crate) fn fenced(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}\n{text}\n{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::text::lines_of;
    use crate::lines::tests::word;
    use crate::page::Word;

    fn set(lines: &[(f32, f32, &str)]) -> Vec<Word> {
        let line = |&(x, y, text): &(f32, f32, &str)| {
            let width = text.len() as f32 * 6.0;
            word(text, x, y, x + width, y + 10.0)
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn indents_and_empty_lines_stay() {
        let words = set(&[
            (0.0, 0.0, "def"),
            (24.0, 0.0, "f():"),
            (24.0, 12.0, "return"),
            (66.0, 12.0, "1"),
            (0.0, 36.0, "f()"),
            (0.0, 48.0, "g()"),
        ]);
        assert_eq!(code(&lines_of(&words)).text, "def f():\n    return 1\n\nf()\ng()");
    }

    #[test]
    fn a_fence_is_longer_than_those_inside() {
        assert_eq!(fenced("a\n```\nb"), "````\na\n```\nb\n````");
    }
}
