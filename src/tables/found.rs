//! Tables that nothing announces but their drawn lines.

use crate::geometry::Rect;
use crate::page::{Rules, Word};

use super::fill::{crowded, fill};
use super::ruled::{TOLERANCE, ruled};

/// Pages with more lines than this are drawings: looking for grids takes quadratic time.
const MOST_LINES: usize = 4000;

/// A grid of fewer filled cells is a box around text.
const LEAST_FILLED: usize = 6;

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
