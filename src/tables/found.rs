//! Tables that nothing announces but their drawn lines: complete grids, and rows between long horizontal lines.

use crate::clock::worked;
use crate::geometry::{Rect, hull};
use crate::lines::{chunks, lines_of, median};
use crate::page::{Rules, Word};

use super::fill::{crowded, fill};
use super::ruled::{TOLERANCE, ruled};

/// Pages with more lines than this are drawings: looking for grids takes quadratic time.
const MOST_LINES: usize = 4000;

/// A grid of fewer filled cells is a box around text.
const LEAST_FILLED: usize = 6;

/// Ends of lines that belong together differ by less than this, px.
const ALIKE: f32 = 4.0;
/// Share of the lines of text between two drawn lines that are in pieces.
const PARTED: f32 = 0.7;
/// Rows of a table that has no vertical lines.
const LEAST_ROWS: usize = 3;
/// Mean characters of its cells: two columns of running text between two lines have more.
const LONGEST_CELL: f32 = 28.0;

/// Boxes of complete drawn grids that hold one piece of text a cell: at least two rows and columns, six filled cells, and half
/// of all cells filled.
pub(crate) fn drawn_tables(rules: &Rules, words: &[Word]) -> Vec<Rect> {
    let horizontal = rules.horizontal.iter().map(|&(x0, x1, y)| Rect::new(x0, y, x1, y));
    let vertical = rules.vertical.iter().map(|&(y0, y1, x)| Rect::new(x, y0, x, y1));
    let lines: Vec<Rect> = horizontal.chain(vertical).collect();
    if lines.len() > MOST_LINES {
        return Vec::new();
    }
    connected(&lines).into_iter().filter(|b| is_table(*b, rules, words)).collect()
}

/// Boxes of tables that have only horizontal lines (LaTeX's booktabs): three or more of one length below each other, and between
/// them rows of text with gaps where the columns are.
pub(crate) fn lined_tables(rules: &Rules, words: &[Word]) -> Vec<Rect> {
    if rules.horizontal.len() > MOST_LINES {
        return Vec::new();
    }
    let mut left = rules.horizontal.clone();
    left.sort_by(|a, b| a.2.total_cmp(&b.2));
    let mut out = Vec::new();
    while let Some(&(x0, x1, _)) = left.first() {
        worked(left.len());
        let same = |l: &(f32, f32, f32)| (l.0 - x0).abs() < ALIKE && (l.1 - x1).abs() < ALIKE;
        let mut levels: Vec<f32> = left.iter().filter(|l| same(l)).map(|l| l.2).collect();
        left.retain(|l| !same(l));
        levels.dedup_by(|b, a| *b - *a < ALIKE);
        out.extend(between_lines((x0, x1), &levels, words));
    }
    out
}

/// Runs of at least two strips between neighbouring lines that hold rows of cells.
fn between_lines((x0, x1): (f32, f32), levels: &[f32], words: &[Word]) -> Vec<Rect> {
    let mut out: Vec<Rect> = Vec::new();
    let mut run: Vec<Rect> = Vec::new();
    let strips = levels.windows(2).map(|pair| Rect::new(x0, pair[0], x1, pair[1]));
    for strip in strips.map(Some).chain([None]) {
        if let Some(strip) = strip.filter(|strip| holds_rows(strip, words)) {
            run.push(strip);
            continue;
        }
        if run.len() >= 2 {
            out.extend(hull(run.iter().copied()));
        }
        run.clear();
    }
    out.retain(|b| is_lined_table(*b, words));
    out
}

/// Are most lines of text inside `strip` in pieces, and are they within it?
fn holds_rows(strip: &Rect, words: &[Word]) -> bool {
    let inside = words_in(strip, words);
    let lines = lines_of(&inside);
    let parted = lines.iter().filter(|line| pieces(line) > 1).count();
    !lines.is_empty() && parted as f32 >= PARTED * lines.len() as f32
}

fn pieces(line: &[Word]) -> usize {
    chunks(line, median(line.iter().map(|w| w.bbox.height()))).len()
}

fn is_lined_table(bbox: Rect, words: &[Word]) -> bool {
    worked(words.len());
    let inside = words_in(&bbox, words);
    let beside = |w: &&Word| w.bbox.overlap_y(&bbox) > 0.5 * w.bbox.height() && w.bbox.overlap_x(&bbox) > 0.0;
    // Words that reach out of it: the lines have nothing to do with the text.
    if words.iter().filter(beside).count() > inside.len() {
        return false;
    }
    let lines = lines_of(&inside);
    let text: usize = lines.iter().flatten().map(|w| w.text.chars().count()).sum();
    let count: usize = lines.iter().map(|line| pieces(line)).sum();
    lines.len() >= LEAST_ROWS && (text as f32) < LONGEST_CELL * count as f32
}

fn words_in(bbox: &Rect, words: &[Word]) -> Vec<Word> {
    worked(words.len());
    let inside = |w: &&Word| {
        let (_, y) = w.bbox.center();
        w.bbox.x0 > bbox.x0 - ALIKE && w.bbox.x1 < bbox.x1 + ALIKE && (bbox.y0..=bbox.y1).contains(&y)
    };
    words.iter().filter(inside).cloned().collect()
}

/// Hulls of groups of lines that touch each other.
fn connected(lines: &[Rect]) -> Vec<Rect> {
    let mut seen = vec![false; lines.len()];
    let mut out = Vec::new();
    for first in 0..lines.len() {
        if seen[first] {
            continue;
        }
        seen[first] = true;
        let mut hull = lines[first];
        let mut open = vec![first];
        while let Some(at) = open.pop() {
            worked(lines.len());
            let reach = lines[at].grown(TOLERANCE, TOLERANCE);
            hull = hull.union(&lines[at]);
            for (k, line) in lines.iter().enumerate() {
                if !seen[k] && reach.overlap_x(line) >= 0.0 && reach.overlap_y(line) >= 0.0 {
                    seen[k] = true;
                    open.push(k);
                }
            }
        }
        out.push(hull);
    }
    out
}

fn is_table(bbox: Rect, rules: &Rules, words: &[Word]) -> bool {
    let Some(mut cells) = ruled(rules, bbox) else {
        return false;
    };
    worked(words.len());
    let inside: Vec<Word> = words
        .iter()
        .filter(|w| {
            let (x, y) = w.bbox.center();
            (bbox.x0..=bbox.x1).contains(&x) && (bbox.y0..=bbox.y1).contains(&y)
        })
        .cloned()
        .collect();
    fill(&mut cells, &inside);
    let filled = cells.iter().filter(|c| !c.words.is_empty()).count();
    filled >= LEAST_FILLED && 2 * filled >= cells.len() && crowded(&cells) <= 0.2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::word;

    fn grid(x: f32, y: f32) -> Rules {
        Rules {
            horizontal: (0..4).map(|k| (x, x + 300.0, y + 30.0 * k as f32)).collect(),
            vertical: (0..4).map(|k| (y, y + 90.0, x + 100.0 * k as f32)).collect(),
        }
    }

    fn words(x: f32, y: f32, count: usize) -> Vec<Word> {
        (0..count)
            .map(|k| {
                let (x, y) = (x + 100.0 * (k % 3) as f32 + 10.0, y + 30.0 * (k / 3) as f32 + 8.0);
                word("cell", x, y, x + 40.0, y + 14.0)
            })
            .collect()
    }

    #[test]
    fn two_grids_with_words_are_two_tables() {
        let mut rules = grid(50.0, 100.0);
        let second = grid(50.0, 400.0);
        rules.horizontal.extend(second.horizontal);
        rules.vertical.extend(second.vertical);
        let mut all = words(50.0, 100.0, 9);
        all.extend(words(50.0, 400.0, 7));
        let found = drawn_tables(&rules, &all);
        assert_eq!(found, [Rect::new(50.0, 100.0, 350.0, 190.0), Rect::new(50.0, 400.0, 350.0, 490.0)]);
    }

    /// Three lines 300 px wide, `rows` rows of words below the second, at `columns`.
    fn lined(rows: usize, columns: &[f32]) -> (Rules, Vec<Word>) {
        let bottom = 140.0 + 20.0 * rows as f32;
        let levels = [100.0, 130.0, bottom];
        let rules = Rules { horizontal: levels.map(|y| (50.0, 350.0, y)).to_vec(), vertical: Vec::new() };
        let row = |y: f32| columns.iter().map(move |&x| word("cell", x, y, x + 36.0, y + 10.0));
        let words = (0..rows).flat_map(|k| row(136.0 + 20.0 * k as f32)).chain(row(110.0)).collect();
        (rules, words)
    }

    #[test]
    fn rows_between_three_lines_are_a_table_and_running_text_between_them_is_not() {
        let (rules, words) = lined(3, &[60.0, 150.0, 240.0]);
        assert_eq!(lined_tables(&rules, &words), [Rect::new(50.0, 100.0, 350.0, 200.0)]);
        let (rules, words) = lined(3, &[60.0, 100.0, 140.0, 180.0]);
        assert_eq!(lined_tables(&rules, &words), [], "no gaps");
        let (rules, words) = lined(3, &[30.0, 150.0, 330.0]);
        assert_eq!(lined_tables(&rules, &words), [], "text runs over the ends of the lines");
        let (mut rules, words) = lined(3, &[60.0, 150.0, 240.0]);
        rules.horizontal.pop();
        assert_eq!(lined_tables(&rules, &words), [], "a head and no end");
    }

    #[test]
    fn empty_grid_and_box_around_text_are_no_tables() {
        assert_eq!(drawn_tables(&grid(50.0, 100.0), &words(50.0, 100.0, 3)), []);
        let frame = Rules {
            horizontal: vec![(0.0, 300.0, 0.0), (0.0, 300.0, 90.0)],
            vertical: vec![(0.0, 90.0, 0.0), (0.0, 90.0, 300.0)],
        };
        assert_eq!(drawn_tables(&frame, &words(0.0, 0.0, 9)), []);
    }
}
