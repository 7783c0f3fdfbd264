//! Which rows of a table are its header.

use std::collections::BTreeSet;

use crate::page::Cell;

/// Marks the header cells of a grid: what a network said, else the first row and the rows that it governs: those that its
/// tall cells reach into, and those below a cell that spans some of the columns (a group head over its columns).
pub(super) fn mark(cells: &mut [Cell]) {
    if cells.iter().any(|c| c.header) {
        return;
    }
    let rows = cells.iter().map(|c| c.row + c.rows).max().unwrap_or(0);
    let mut depth = 1;
    let mut row = 0;
    while row < depth {
        depth = depth.max(reach(cells, row));
        row += 1;
    }
    if depth >= rows {
        depth = 1;
    }
    for cell in cells.iter_mut() {
        cell.header = cell.row < depth;
    }
}

/// First row after those that the cells of header row `row` govern.
fn reach(cells: &[Cell], row: usize) -> usize {
    let columns = cells.iter().map(|c| c.col + c.cols).max().unwrap_or(0);
    let here = || cells.iter().filter(|c| c.row == row);
    let tall = here().filter(|c| c.cols < columns).map(|c| c.row + c.rows).max().unwrap_or(row + 1);
    let grouped: BTreeSet<usize> = here()
        .filter(|c| c.cols > 1 && c.cols < columns && !c.words.is_empty())
        .flat_map(|c| c.col..c.col + c.cols)
        .collect();
    let named = cells
        .iter()
        .filter(|c| c.row == row + 1 && grouped.contains(&c.col) && !c.words.is_empty())
        .all(|c| !is_value(c));
    if grouped.is_empty() || !named { tall } else { tall.max(row + 2) }
}

/// A cell of digits and signs only, years aside: those stand in headers too.
fn is_value(cell: &Cell) -> bool {
    let text: String = cell.words.iter().map(|w| w.text.as_str()).collect();
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let year = text.len() == 4 && digits == 4 && (text.starts_with("19") || text.starts_with("20"));
    digits > 0 && !year && !text.chars().any(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::super::empty_cell;
    use super::*;
    use crate::geometry::Rect;
    use crate::lines::tests::word;

    fn table(rows: &[&[(&str, usize)]]) -> Vec<Cell> {
        let mut out = Vec::new();
        for (r, row) in rows.iter().enumerate() {
            let mut col = 0;
            for &(text, cols) in *row {
                let mut cell = empty_cell(r, col, Rect::default());
                cell.cols = cols;
                if !text.is_empty() {
                    cell.words.push(word(text, 0.0, 0.0, 10.0, 10.0));
                }
                out.push(cell);
                col += cols;
            }
        }
        out
    }

    fn depth(mut cells: Vec<Cell>) -> usize {
        mark(&mut cells);
        cells.iter().filter(|c| c.header).map(|c| c.row + 1).max().unwrap_or(0)
    }

    #[test]
    fn group_head_takes_the_row_below_it_along() {
        let grouped = table(&[
            &[("", 1), ("Men", 2)],
            &[("Age", 1), ("n", 1), ("%", 1)],
            &[("20", 1), ("3", 1), ("4", 1)],
        ]);
        assert_eq!(depth(grouped), 2);
        let plain = table(&[&[("Age", 1), ("n", 1)], &[("20", 1), ("3", 1)]]);
        assert_eq!(depth(plain), 1);
        let values = table(&[
            &[("", 1), ("Men", 2)],
            &[("20", 1), ("3.5", 1), ("4", 1)],
            &[("20", 1), ("3", 1), ("4", 1)],
        ]);
        assert_eq!(depth(values), 1);
    }

    #[test]
    fn what_the_network_says_stays() {
        let mut cells = table(&[&[("a", 1)], &[("b", 1)], &[("c", 1)]]);
        cells[1].header = true;
        mark(&mut cells);
        assert_eq!(cells.iter().map(|c| c.header).collect::<Vec<_>>(), [false, true, false]);
    }
}
