//! Drawn lines -> a grid of cells.

use crate::clock::worked;
use crate::geometry::Rect;
use crate::page::{Cell, Rules};

use super::empty_cell;

/// Lines closer than this are one line drawn twice (edges of a thin box), px at 200 dpi.
pub(super) const TOLERANCE: f32 = 6.0;

/// A grid of more cells is a pattern, not a table.
const MAX_CELLS: usize = 4000;

/// A line counts as drawn between two others if it covers this share of the way.
const DRAWN: f32 = 0.6;

/// Least share of all separators of a grid that must be drawn.
const COMPLETE: f32 = 0.75;

/// Centres of clusters of values closer than `tolerance`, sorted.
pub(super) fn levels(values: impl IntoIterator<Item = f32>, tolerance: f32) -> Vec<f32> {
    let mut sorted: Vec<f32> = values.into_iter().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f32::total_cmp);
    sorted
        .chunk_by(|a, b| b - a <= tolerance)
        .map(|cluster| cluster.iter().sum::<f32>() / cluster.len() as f32)
        .collect()
}

/// Do the lines `(from, to, at)` that run at `at` cover most of `from..to`?
fn drawn(lines: &[(f32, f32, f32)], at: f32, from: f32, to: f32) -> bool {
    worked(lines.len());
    let mut spans: Vec<(f32, f32)> =
        lines.iter().filter(|l| (l.2 - at).abs() <= TOLERANCE).map(|l| (l.0, l.1)).collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut covered, mut end) = (0.0, from);
    for (low, high) in spans {
        let (low, high) = (low.max(end), high.min(to));
        if high > low {
            covered += high - low;
            end = high;
        }
    }
    covered > DRAWN * (to - from)
}

/// Separators of a grid: is there a line right of, and below, each of its smallest cells?
struct Grid {
    xs: Vec<f32>,
    ys: Vec<f32>,
    right: Vec<Vec<bool>>,
    below: Vec<Vec<bool>>,
}

impl Grid {
    fn rows(&self) -> usize {
        self.ys.len() - 1
    }

    fn cols(&self) -> usize {
        self.xs.len() - 1
    }

    /// Share of the separators inside and around the grid that are drawn; the smaller of the two directions.
    fn completeness(&self) -> f32 {
        let share = |marks: &[Vec<bool>]| {
            let all = marks.iter().map(Vec::len).sum::<usize>().max(1);
            marks.iter().flatten().filter(|&&m| m).count() as f32 / all as f32
        };
        share(&self.right).min(share(&self.below))
    }

    /// How many columns and rows the cell that starts at `(row, col)` spans.
    fn span(&self, row: usize, col: usize, taken: &[Vec<bool>]) -> (usize, usize) {
        let mut cols = 1;
        while col + cols < self.cols() && !self.right[row][col + cols - 1] && !taken[row][col + cols] {
            cols += 1;
        }
        let mut rows = 1;
        while row + rows < self.rows()
            && (col..col + cols).all(|c| !self.below[row + rows - 1][c] && !taken[row + rows][c])
            && (col..col + cols - 1).all(|c| !self.right[row + rows][c])
        {
            rows += 1;
        }
        (rows, cols)
    }
}

/// Cells of the grid that is drawn inside `bbox`, row by row; a missing separator makes a span. `None` where there are fewer
/// than two rows or columns, or where more than a quarter of the separators is missing.
pub(crate) fn ruled(rules: &Rules, bbox: Rect) -> Option<Vec<Cell>> {
    let horizontal: Vec<_> = rules
        .horizontal
        .iter()
        .copied()
        .filter(|l| {
            l.2 >= bbox.y0 - TOLERANCE && l.2 <= bbox.y1 + TOLERANCE && l.1 > bbox.x0 && l.0 < bbox.x1
        })
        .collect();
    let vertical: Vec<_> = rules
        .vertical
        .iter()
        .copied()
        .filter(|l| {
            l.2 >= bbox.x0 - TOLERANCE && l.2 <= bbox.x1 + TOLERANCE && l.1 > bbox.y0 && l.0 < bbox.y1
        })
        .collect();
    let ys = levels(horizontal.iter().map(|l| l.2), TOLERANCE);
    let xs = levels(vertical.iter().map(|l| l.2), TOLERANCE);
    if ys.len() < 3 || xs.len() < 3 || (ys.len() - 1) * (xs.len() - 1) > MAX_CELLS {
        return None;
    }
    let (rows, cols) = (ys.len() - 1, xs.len() - 1);
    let right = (0..rows)
        .map(|r| (0..cols).map(|c| drawn(&vertical, xs[c + 1], ys[r], ys[r + 1])).collect())
        .collect();
    let below = (0..rows)
        .map(|r| (0..cols).map(|c| drawn(&horizontal, ys[r + 1], xs[c], xs[c + 1])).collect())
        .collect();
    let grid = Grid { xs, ys, right, below };
    (grid.completeness() >= COMPLETE).then(|| cells_of(&grid))
}

fn cells_of(grid: &Grid) -> Vec<Cell> {
    let mut taken = vec![vec![false; grid.cols()]; grid.rows()];
    let mut cells = Vec::new();
    for row in 0..grid.rows() {
        for col in 0..grid.cols() {
            if taken[row][col] {
                continue;
            }
            let (rows, cols) = grid.span(row, col, &taken);
            for line in taken.iter_mut().skip(row).take(rows) {
                line[col..col + cols].fill(true);
            }
            let bbox = Rect::new(grid.xs[col], grid.ys[row], grid.xs[col + cols], grid.ys[row + rows]);
            cells.push(Cell { rows, cols, ..empty_cell(row, col, bbox) });
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a grid with the given edges, all drawn.
    fn full(xs: &[f32], ys: &[f32]) -> Rules {
        let (x0, x1) = (xs[0], xs[xs.len() - 1]);
        let (y0, y1) = (ys[0], ys[ys.len() - 1]);
        Rules {
            horizontal: ys.iter().map(|&y| (x0, x1, y)).collect(),
            vertical: xs.iter().map(|&x| (y0, y1, x)).collect(),
        }
    }

    const BOX: Rect = Rect { x0: 0.0, y0: 0.0, x1: 300.0, y1: 90.0 };

    #[test]
    fn full_grid_gives_every_cell() {
        let cells = ruled(&full(&[0.0, 100.0, 200.0, 300.0], &[0.0, 30.0, 60.0, 90.0]), BOX).unwrap();
        assert_eq!(cells.len(), 9);
        assert_eq!((cells[4].row, cells[4].col), (1, 1));
        assert_eq!(cells[4].bbox, Rect::new(100.0, 30.0, 200.0, 60.0));
    }

    #[test]
    fn missing_separator_makes_a_span() {
        let mut rules = full(&[0.0, 100.0, 200.0, 300.0], &[0.0, 30.0, 60.0, 90.0]);
        rules.vertical[1] = (30.0, 90.0, 100.0);
        let cells = ruled(&rules, BOX).unwrap();
        assert_eq!(cells.len(), 8);
        assert_eq!((cells[0].rows, cells[0].cols), (1, 2));
    }

    #[test]
    fn horizontal_lines_alone_are_no_grid() {
        let mut rules = full(&[0.0, 100.0, 300.0], &[0.0, 30.0, 60.0, 90.0]);
        rules.vertical.clear();
        assert_eq!(ruled(&rules, BOX), None);
    }

    #[test]
    fn lines_drawn_as_thin_boxes_count_once() {
        let cells = ruled(&full(&[0.0, 1.5, 100.0, 101.0, 300.0], &[0.0, 2.0, 45.0, 90.0]), BOX).unwrap();
        assert_eq!(cells.len(), 4);
    }
}
