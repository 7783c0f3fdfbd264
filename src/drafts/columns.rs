//! Columns of running text that the layout network took for one region: it would be read across.

use crate::geometry::Rect;
use crate::lines::{hull_of, lines_of, median};
use crate::page::{Kind, Region, Word};

use super::regions::region_of;

/// Least width of the white column between two columns, font heights.
const GUTTER: f32 = 0.8;
/// Lines that a column has at least.
const LEAST_LINES: usize = 4;
/// Characters of a column's middling line: fewer are labels or numbers.
const LEAST_CHARACTERS: usize = 15;
/// Share of its column that a middling line of running text fills; ragged lists fill less, and show by their number of lines that
/// they are columns.
const FILLED: f32 = 0.75;
const MANY_LINES: usize = 8;
const FILLED_OF_MANY: f32 = 0.55;

/// A region of text with a white column through all of it, in its columns; others stay.
pub(super) fn part_columns(region: Region) -> Vec<Region> {
    if !matches!(region.kind, Kind::Text | Kind::List | Kind::Reference) {
        return vec![region];
    }
    let Some(middle) = gutter(&region.words) else { return vec![region] };
    let (left, right): (Vec<Word>, Vec<Word>) =
        region.words.iter().cloned().partition(|w| w.bbox.center().0 < middle);
    if !(is_column(&left) && is_column(&right)) {
        return vec![region];
    }
    let part = |words: Vec<Word>| region_of(region.kind, region.score, words);
    part_columns(part(left)).into_iter().chain(part_columns(part(right))).collect()
}

/// The middle of the widest place that no word reaches into, if it is wide enough.
pub(super) fn gutter(words: &[Word]) -> Option<f32> {
    let mut boxes: Vec<Rect> = words.iter().map(|w| w.bbox).collect();
    boxes.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    let mut right = boxes.first()?.x1;
    let mut widest = (0.0, 0.0);
    for b in boxes {
        if b.x0 - right > widest.0 {
            widest = (b.x0 - right, (b.x0 + right) / 2.0);
        }
        right = right.max(b.x1);
    }
    (widest.0 > GUTTER * median(words.iter().map(|w| w.size))).then_some(widest.1)
}

fn is_column(words: &[Word]) -> bool {
    let lines = lines_of(words);
    let width = hull_of(words).width();
    let characters = |line: &Vec<Word>| line.iter().map(|w| w.text.chars().count()).sum::<usize>() as f32;
    let filled = if lines.len() >= MANY_LINES { FILLED_OF_MANY } else { FILLED };
    lines.len() >= LEAST_LINES
        && median(lines.iter().map(characters)) >= LEAST_CHARACTERS as f32
        && median(lines.iter().map(|line| hull_of(line).width())) >= filled * width
}

#[cfg(test)]
mod tests {
    use super::super::regions::bare_region;
    use super::*;
    use crate::lines::tests::word;

    fn column(x: f32, lines: usize, pitch: f32, text: &str) -> Vec<Word> {
        (0..lines)
            .flat_map(|line| (0..5).map(move |k| (line, k)))
            .map(|(line, k)| {
                let (x, y) = (x + 40.0 * k as f32, pitch * line as f32);
                word(text, x, y, x + 36.0, y + 10.0)
            })
            .collect()
    }

    fn parts(kind: Kind, words: Vec<Word>) -> Vec<usize> {
        let region = Region { words, ..bare_region(kind, 0.9, Rect::default()) };
        part_columns(region).iter().map(|r| r.words.len()).collect()
    }

    #[test]
    fn columns_of_running_text_are_parted_whatever_their_line_pitch() {
        let words = [column(0.0, 7, 16.0, "words"), column(220.0, 9, 12.0, "other")].concat();
        assert_eq!(parts(Kind::Text, words.clone()), [35, 45]);
        assert_eq!(parts(Kind::Table, words), [80]);
    }

    #[test]
    fn numbers_beside_text_and_a_line_across_keep_it_whole() {
        let mut words = column(60.0, 7, 16.0, "words");
        words.extend((0..7).map(|k| word("12.", 0.0, 16.0 * k as f32, 20.0, 16.0 * k as f32 + 10.0)));
        assert_eq!(parts(Kind::Text, words), [42]);
        let mut words = [column(0.0, 7, 16.0, "words"), column(220.0, 7, 16.0, "other")].concat();
        words.push(word("across", 150.0, 200.0, 300.0, 210.0));
        assert_eq!(parts(Kind::Text, words), [71]);
    }
}
