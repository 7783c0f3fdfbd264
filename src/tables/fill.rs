//! Words into cells, and grids put right once the words are in them.

use std::collections::{BTreeMap, BTreeSet};

use crate::clock::worked;
use crate::geometry::Rect;
use crate::lines::{chunks, hull_of, lines_of, median};
use crate::page::{Cell, Word};

use super::empty_cell;

/// Pieces of a cell's lines that stand further apart than this many line heights belong to different columns.
const PIECE_GAP: f32 = 0.9;

/// Words this close, in line heights, have only a space between them.
const SPACE: f32 = 0.35;

/// Puts every word into the cell that holds its centre, else into the nearest one (vertical distance counts 1.5 times).
/// Words that the cells held before are dropped. Returns the share of words that no cell holds; 1 without cells.
pub(crate) fn fill(cells: &mut [Cell], words: &[Word]) -> f32 {
    for cell in cells.iter_mut() {
        cell.words.clear();
    }
    let mut outside = 0usize;
    for word in words {
        let Some((at, inside)) = nearest(cells, word.bbox.center()) else {
            return 1.0;
        };
        outside += usize::from(!inside);
        cells[at].words.push(word.clone());
    }
    outside as f32 / words.len().max(1) as f32
}

/// Like [`fill`], and pieces of text that a boundary between two cells of one row cuts through go whole to the cell that holds
/// most of them: a network's boxes are not exact. Only for words as close as words of a sentence, and not for numbers.
pub(crate) fn fill_pieces(cells: &mut [Cell], words: &[Word]) -> f32 {
    let outside = fill(cells, words);
    for line in lines_of(words) {
        let height = median(line.iter().map(|w| w.bbox.height()));
        for piece in chunks(&line, SPACE * height) {
            let letters = piece.iter().filter(|w| w.text.chars().any(char::is_alphabetic)).count();
            if 2 * letters > piece.len() {
                unite(cells, &piece);
            }
        }
    }
    outside
}

/// Moves the words of a piece to the one cell that holds most of its width, if its cells are neighbours in one row.
fn unite(cells: &mut [Cell], piece: &[Word]) {
    let homes: Vec<usize> = piece.iter().filter_map(|w| Some(nearest(cells, w.bbox.center())?.0)).collect();
    let width = |home: usize| -> f32 {
        worked(homes.len());
        homes.iter().zip(piece).filter(|(h, _)| **h == home).map(|(_, w)| w.bbox.width()).sum()
    };
    let Some(main) = homes.iter().copied().max_by(|&a, &b| width(a).total_cmp(&width(b))) else {
        return;
    };
    let neighbours =
        |a: &Cell, b: &Cell| a.row == b.row && (a.col + a.cols == b.col || b.col + b.cols == a.col);
    for (&home, word) in homes.iter().zip(piece) {
        if home == main || !neighbours(&cells[home], &cells[main]) {
            continue;
        }
        if let Some(at) = cells[home].words.iter().position(|w| w == word) {
            let moved = cells[home].words.remove(at);
            cells[main].words.push(moved);
        }
    }
}

/// The cell for a point, and whether it holds the point. Among several that do, the one whose middle is nearest.
fn nearest(cells: &[Cell], (x, y): (f32, f32)) -> Option<(usize, bool)> {
    worked(4 * cells.len());
    let distance = |b: &Rect| (b.x0 - x).max(x - b.x1).max(0.0) + 1.5 * (b.y0 - y).max(y - b.y1).max(0.0);
    let off_middle = |b: &Rect| (b.center().1 - y).abs() + 0.5 * (b.center().0 - x).abs();
    let best = (0..cells.len()).min_by(|&a, &b| {
        let (p, q) = (&cells[a].bbox, &cells[b].bbox);
        let (near, far) = (distance(p), distance(q));
        near.total_cmp(&far)
            .then_with(|| if near > 0.0 { a.cmp(&b) } else { off_middle(p).total_cmp(&off_middle(q)) })
    })?;
    Some((best, distance(&cells[best].bbox) <= 0.0))
}

/// Lines of a cell, each in pieces that stand apart.
fn pieces(words: &[Word]) -> Vec<Vec<Vec<Word>>> {
    lines_of(words)
        .iter()
        .map(|line| {
            let height = line.first().map_or(0.0, |w| w.bbox.height());
            chunks(line, PIECE_GAP * height)
        })
        .collect()
}

/// A drawn cell over several columns whose text comes in pieces, one a column, becomes several cells: header rows are often
/// drawn without verticals.
pub(crate) fn unspan(cells: Vec<Cell>) -> Vec<Cell> {
    let mut edges = BTreeMap::new();
    for cell in &cells {
        edges.insert(cell.col, cell.bbox.x0);
        edges.insert(cell.col + cell.cols, cell.bbox.x1);
    }
    cells.into_iter().flat_map(|cell| parted(&cell, &edges).unwrap_or_else(|| vec![cell])).collect()
}

/// The cells that `cell` falls into; `None` where it is one.
fn parted(cell: &Cell, edges: &BTreeMap<usize, f32>) -> Option<Vec<Cell>> {
    if cell.cols < 2 || cell.rows != 1 {
        return None;
    }
    let lines = pieces(&cell.words);
    if lines.iter().all(|l| l.len() < 2) {
        return None;
    }
    let mut parts = Vec::new();
    for col in cell.col..cell.col + cell.cols {
        let (x0, x1) = (*edges.get(&col)?, *edges.get(&(col + 1))?);
        parts.push(empty_cell(cell.row, col, Rect::new(x0, cell.bbox.y0, x1, cell.bbox.y1)));
    }
    for piece in lines.into_iter().flatten() {
        let hull = hull_of(&piece);
        let middle = hull.center().0;
        let part = parts.iter_mut().find(|p| p.bbox.x0 - 4.0 <= middle && middle <= p.bbox.x1 + 4.0)?;
        if hull.width() > 1.3 * part.bbox.width() {
            return None;
        }
        part.words.extend(piece);
    }
    if parts.iter().filter(|p| !p.words.is_empty()).count() < 2 {
        return None;
    }
    let mut out: Vec<Cell> = Vec::new();
    for part in parts {
        match out.last_mut() {
            Some(last) if part.words.is_empty() => {
                last.cols += 1;
                last.bbox.x1 = part.bbox.x1;
            }
            _ => out.push(part),
        }
    }
    Some(out)
}

/// Share of filled cells whose lines come in several pieces far apart: the grid does not part all columns.
pub(crate) fn crowded(cells: &[Cell]) -> f32 {
    let filled: Vec<usize> = cells.iter().filter(|c| !c.words.is_empty()).map(most_pieces).collect();
    filled.iter().filter(|&&n| n > 1).count() as f32 / filled.len().max(1) as f32
}

/// Share of rows with a cell whose lines come in three or more pieces.
pub(crate) fn crowded_rows(cells: &[Cell]) -> f32 {
    let rows = cells.iter().map(|c| c.row + 1).max().unwrap_or(1);
    let crowded: BTreeSet<usize> = cells.iter().filter(|c| most_pieces(c) > 2).map(|c| c.row).collect();
    crowded.len() as f32 / rows as f32
}

fn most_pieces(cell: &Cell) -> usize {
    pieces(&cell.words).iter().map(Vec::len).max().unwrap_or(0)
}

/// Share of rows in which every one of three or more filled cells holds several lines: the drawing does not part all rows.
pub(crate) fn stacked(cells: &[Cell]) -> f32 {
    let mut rows: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for cell in cells.iter().filter(|c| c.rows == 1 && !c.words.is_empty()) {
        rows.entry(cell.row).or_default().push(lines_of(&cell.words).len());
    }
    let multi = rows.values().filter(|lines| lines.len() >= 3 && lines.iter().all(|&n| n >= 2)).count();
    multi as f32 / rows.len().max(1) as f32
}

/// Right-to-left tables: the rightmost column becomes the first.
pub(crate) fn mirror(cells: &mut [Cell]) {
    let columns = cells.iter().map(|c| c.col + c.cols).max().unwrap_or(0);
    for cell in cells.iter_mut() {
        cell.col = columns - cell.col - cell.cols;
    }
}

/// Drops rows and columns without text, renumbers the others, sorts by row and column.
pub(crate) fn tidy(cells: Vec<Cell>) -> Vec<Cell> {
    let filled = || cells.iter().filter(|c| !c.words.is_empty());
    let rows: BTreeSet<usize> = filled().flat_map(|c| c.row..c.row + c.rows).collect();
    let cols: BTreeSet<usize> = filled().flat_map(|c| c.col..c.col + c.cols).collect();
    let mut out: Vec<Cell> = cells
        .into_iter()
        .filter_map(|cell| {
            let row = rows.range(..cell.row).count();
            let col = cols.range(..cell.col).count();
            let row_span = rows.range(cell.row..cell.row + cell.rows).count();
            let col_span = cols.range(cell.col..cell.col + cell.cols).count();
            (row_span > 0 && col_span > 0).then_some(Cell {
                row,
                col,
                rows: row_span,
                cols: col_span,
                ..cell
            })
        })
        .collect();
    out.sort_by_key(|c| (c.row, c.col));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::word;

    fn grid(rows: usize, cols: usize) -> Vec<Cell> {
        (0..rows * cols)
            .map(|k| {
                let (r, c) = (k / cols, k % cols);
                let (x, y) = (c as f32 * 100.0, r as f32 * 20.0);
                empty_cell(r, c, Rect::new(x, y, x + 100.0, y + 20.0))
            })
            .collect()
    }

    fn text(cell: &Cell) -> String {
        cell.words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_go_to_the_cell_that_holds_them_or_the_nearest() {
        let mut cells = grid(2, 2);
        let words = [
            word("a", 10.0, 5.0, 20.0, 15.0),
            word("d", 150.0, 25.0, 160.0, 35.0),
            word("out", 205.0, 2.0, 230.0, 12.0),
        ];
        assert!((fill(&mut cells, &words) - 1.0 / 3.0).abs() < 1e-6);
        assert_eq!(cells.iter().map(text).collect::<Vec<_>>(), ["a", "out", "", "d"]);
        assert_eq!(fill(&mut [], &words), 1.0);
    }

    #[test]
    fn piece_cut_by_a_boundary_goes_to_the_cell_that_holds_most_of_it() {
        let mut cells = grid(1, 2);
        let words = [
            word("Fused", 62.0, 5.0, 98.0, 15.0),
            word("aluminum", 101.0, 5.0, 150.0, 15.0),
            word("oxide", 153.0, 5.0, 180.0, 15.0),
        ];
        fill_pieces(&mut cells, &words);
        assert_eq!((cells[0].words.len(), cells[1].words.len()), (0, 3));
        let numbers = [word("12", 85.0, 5.0, 98.0, 15.0), word("13", 101.0, 5.0, 130.0, 15.0)];
        fill_pieces(&mut cells, &numbers);
        assert_eq!((cells[0].words.len(), cells[1].words.len()), (1, 1));
    }

    #[test]
    fn spanning_cell_with_one_piece_a_column_is_parted() {
        let mut cells = grid(2, 3);
        cells.drain(1..3);
        cells[0].cols = 3;
        cells[0].bbox.x1 = 300.0;
        fill(&mut cells, &[word("x", 10.0, 5.0, 40.0, 15.0), word("z", 210.0, 5.0, 240.0, 15.0)]);
        let cells = unspan(cells);
        assert_eq!(cells.len(), 5);
        assert_eq!((text(&cells[0]), cells[0].cols), ("x".to_string(), 2));
        assert_eq!((text(&cells[1]), cells[1].col), ("z".to_string(), 2));
    }

    #[test]
    fn spanning_cell_with_one_piece_stays_whole() {
        let mut cells = grid(1, 2);
        cells.pop();
        cells[0].cols = 2;
        cells[0].bbox.x1 = 200.0;
        fill(&mut cells, &[word("a", 60.0, 5.0, 95.0, 15.0), word("b", 100.0, 5.0, 130.0, 15.0)]);
        assert_eq!(unspan(cells).len(), 1);
    }

    #[test]
    fn crowded_and_stacked_cells_are_noticed() {
        let mut cells = grid(1, 3);
        let mut words = Vec::new();
        for c in 0..3 {
            let x = c as f32 * 100.0;
            words.push(word("up", x + 5.0, 1.0, x + 30.0, 9.0));
            words.push(word("low", x + 5.0, 11.0, x + 30.0, 19.0));
        }
        fill(&mut cells, &words);
        assert_eq!((crowded(&cells), stacked(&cells)), (0.0, 1.0));
        words.push(word("far", 70.0, 1.0, 90.0, 9.0));
        fill(&mut cells, &words);
        assert!((crowded(&cells) - 1.0 / 3.0).abs() < 1e-6);
        assert_eq!(crowded_rows(&cells), 0.0);
    }

    #[test]
    fn rows_and_columns_without_text_go() {
        let mut cells = grid(3, 3);
        fill(&mut cells, &[word("a", 10.0, 5.0, 20.0, 15.0), word("b", 250.0, 45.0, 260.0, 55.0)]);
        let cells = tidy(cells);
        assert_eq!(
            cells.iter().map(|c| (c.row, c.col)).collect::<Vec<_>>(),
            [(0, 0), (0, 1), (1, 0), (1, 1)]
        );
        assert_eq!(text(&cells[3]), "b");
    }

    #[test]
    fn mirrored_table_starts_at_the_right() {
        let mut cells = grid(1, 3);
        cells.pop();
        cells[1].cols = 2;
        mirror(&mut cells);
        assert_eq!((cells[0].col, cells[1].col), (2, 0));
    }
}
