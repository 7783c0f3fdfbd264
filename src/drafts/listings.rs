//! Program text that the layout network took for a table.

use crate::lines::lines_of;
use crate::page::{Kind, Region, Word};
use crate::patterns::monospaced;

use super::regions::{region_of, runs_of};

/// Fewer lines are cells.
const LEAST_LINES: usize = 3;
/// A gap between columns, font heights.
const COLUMN_GAP: f32 = 2.0;
/// Share of the lines that are in one piece, where they are program text and no columns.
const WHOLE: f32 = 0.7;

/// A table that holds program text, in pieces: the listings as code, the lines above, between and below as text. Other regions stay.
pub(super) fn part_listings(region: Region) -> Vec<Region> {
    if region.kind != Kind::Table || !monospaced_anywhere(&region.words) {
        return vec![region];
    }
    let lines = lines_of(&region.words);
    let mut runs: Vec<(bool, Vec<Vec<Word>>)> = Vec::new();
    for line in lines {
        let is_code = monospaced(&line);
        match runs.last_mut().filter(|(kind, _)| *kind == is_code) {
            Some((_, lines)) => lines.push(line),
            None => runs.push((is_code, vec![line])),
        }
    }
    let fits = runs.iter().all(|(is_code, lines)| !is_code || is_listing(lines));
    let text =
        runs.iter().filter(|(is_code, _)| !is_code).all(|(_, lines)| lines.iter().all(|line| is_whole(line)));
    if !fits || !text {
        return vec![region];
    }
    let part = |(is_code, lines): (bool, Vec<Vec<Word>>)| {
        region_of(if is_code { Kind::Code } else { Kind::Text }, region.score, lines.concat())
    };
    runs.into_iter().map(part).collect()
}

fn monospaced_anywhere(words: &[Word]) -> bool {
    words.iter().any(|word| monospaced([word]))
}

fn is_whole(line: &[Word]) -> bool {
    runs_of(line, COLUMN_GAP).len() == 1
}

fn is_listing(lines: &[Vec<Word>]) -> bool {
    let whole = lines.iter().filter(|line| is_whole(line)).count();
    lines.len() >= LEAST_LINES && whole as f32 >= WHOLE * lines.len() as f32
}

#[cfg(test)]
mod tests {
    use super::super::regions::bare_region;
    use super::*;
    use crate::geometry::Rect;
    use crate::lines::tests::word;

    /// A word a piece at the given places, 14 px a line.
    fn table(lines: &[(&str, &[f32])]) -> Region {
        let mut words = Vec::new();
        for (row, (font, places)) in lines.iter().enumerate() {
            let y = 14.0 * row as f32;
            words.extend(places.iter().map(|&x| Word {
                font: (*font).into(),
                line: row as u32,
                ..word("words", x, y, x + 30.0, y + 10.0)
            }));
        }
        Region { words, ..bare_region(Kind::Table, 0.9, Rect::default()) }
    }

    fn kinds(region: Region) -> Vec<(Kind, usize)> {
        part_listings(region).iter().map(|r| (r.kind, r.words.len())).collect()
    }

    #[test]
    fn a_listing_with_text_below_it_is_no_table() {
        let code: (&str, &[f32]) = ("dejavusansmono", &[0.0, 33.0]);
        let text: (&str, &[f32]) = ("times", &[0.0, 33.0, 66.0]);
        assert_eq!(kinds(table(&[code, code, code, text])), [(Kind::Code, 6), (Kind::Text, 3)]);
    }

    #[test]
    fn columns_in_a_typewriter_font_and_cells_of_code_stay_a_table() {
        let columns: (&str, &[f32]) = ("courier", &[0.0, 100.0]);
        assert_eq!(kinds(table(&[columns; 4])), [(Kind::Table, 8)]);
        let cell: (&str, &[f32]) = ("courier", &[0.0]);
        let row: (&str, &[f32]) = ("times", &[0.0, 100.0]);
        assert_eq!(kinds(table(&[cell, row, cell, row])), [(Kind::Table, 6)]);
    }
}
