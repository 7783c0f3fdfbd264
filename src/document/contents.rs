//! Tables of contents: lines with a row of dots before the page number at their end.

use crate::document::text::Lines;
use crate::lines::median;
use crate::page::Word;
use crate::patterns::{PAGE_NUMBER, leader, undotted};

/// The entries of a table of contents, each with its lines, rows of dots cut down to one sign; `None` where the lines are
/// none. An entry ends with its page number; a line without one is its title's first part, or short and an entry of its own.
pub(crate) fn entries(lines: &Lines) -> Option<Vec<Vec<Vec<Word>>>> {
    let lines: Vec<Vec<Word>> = lines.iter().map(|l| l.iter().map(|w| (*w).clone()).collect()).collect();
    let right = |l: &[Word]| l.iter().map(|w| w.bbox.x1).fold(f32::NEG_INFINITY, f32::max);
    let left = |l: &[Word]| l.iter().map(|w| w.bbox.x0).fold(f32::INFINITY, f32::min);
    let edge = lines.iter().map(|l| right(l)).fold(f32::NEG_INFINITY, f32::max);
    let start = lines.iter().map(|l| left(l)).fold(f32::INFINITY, f32::min);
    let dotted = lines.iter().filter(|l| ends_after_dots(l)).count();
    if (dotted == 0 || 5 * dotted < 2 * lines.len()) && !rising(&lines, edge) {
        return None;
    }
    let mut out: Vec<Vec<Vec<Word>>> = Vec::new();
    let mut open: Vec<Vec<Word>> = Vec::new();
    for line in lines {
        let height = median(line.iter().map(|w| w.bbox.height()));
        let numbered =
            line.last().is_some_and(|w| PAGE_NUMBER.is_match(&w.text)) && edge - right(&line) < height;
        let short = right(&line) < start + 0.6 * (edge - start);
        open.push(without_dots(&line));
        if numbered || short {
            out.push(std::mem::take(&mut open));
        }
    }
    if !open.is_empty() {
        out.push(open);
    }
    Some(out)
}

/// Do most lines end with a number that stands apart at the right edge, never smaller than the one before?
fn rising(lines: &[Vec<Word>], edge: f32) -> bool {
    let numbers: Vec<u32> = lines
        .iter()
        .filter_map(|line| {
            let [.., before, last] = line.as_slice() else { return None };
            let height = last.bbox.height();
            let apart = last.bbox.x0 - before.bbox.x1 > 1.2 * height && edge - last.bbox.x1 < 0.5 * height;
            last.text.parse().ok().filter(|_| apart)
        })
        .collect();
    numbers.len() >= 4 && 10 * numbers.len() >= 7 * lines.len() && numbers.is_sorted()
}

fn ends_after_dots(line: &[Word]) -> bool {
    leader(line).is_some_and(|(_, end)| end + 1 == line.len())
}

fn without_dots(line: &[Word]) -> Vec<Word> {
    let Some((from, end)) = leader(line) else { return line.to_vec() };
    let mut out = line[..from].to_vec();
    let first = undotted(&line[from]);
    if !first.text.is_empty() {
        out.push(first);
    }
    let dots = &line[end - 1];
    out.push(Word { text: "…".into(), glue: false, ..dots.clone() });
    out.extend_from_slice(&line[end..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::text::lines_of;
    use crate::lines::tests::word;

    #[test]
    fn entries_end_with_their_page_number_and_rows_of_dots_shrink() {
        let mut words = vec![word("Part", 0.0, 0.0, 30.0, 10.0)];
        for (row, (title, number)) in [("Aims", "2"), ("Means......", "11")].iter().enumerate() {
            let y = 14.0 * (row + 1) as f32;
            words.push(word(title, 0.0, y, 50.0, y + 10.0));
            words
                .extend((0..9).map(|k| word(".", 60.0 + 9.0 * k as f32, y, 62.0 + 9.0 * k as f32, y + 10.0)));
            words.push(word(number, 190.0, y, 200.0, y + 10.0));
        }
        let found = entries(&lines_of(&words)).expect("a table of contents");
        let text =
            |e: &Vec<Vec<Word>>| e.iter().flatten().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
        assert_eq!(found.iter().map(text).collect::<Vec<_>>(), ["Part", "Aims … 2", "Means … 11"]);
    }

    #[test]
    fn ordinary_lines_are_no_entries() {
        let words = [word("We", 0.0, 0.0, 30.0, 10.0), word("...", 40.0, 0.0, 50.0, 10.0)];
        assert!(entries(&lines_of(&words)).is_none());
    }
}
