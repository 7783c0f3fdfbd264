//! A table's cells with their text -> GitHub table, HTML, plain text.

use crate::document::composed::Composed;
use crate::document::escape::{BlockStart, html, inline};
use crate::page::{Cell, Link};

/// Largest grid in which holes are filled, cells.
const LARGEST_GRID: usize = 4_000_000;

/// A cell with its finished text; line ends part paragraphs.
#[derive(Clone, Debug)]
pub(crate) struct GridCell {
    pub(crate) row: usize,
    pub(crate) col: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) header: bool,
    pub(crate) content: Composed,
}

impl GridCell {
    pub(crate) fn new(cell: &Cell, content: Composed) -> GridCell {
        let Cell { row, col, rows, cols, header, .. } = *cell;
        GridCell { row, col, rows, cols, header, content }
    }
}

/// Cells without empty rows and columns, by row, then column.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    rows: usize,
    cols: usize,
    cells: Vec<GridCell>,
}

impl Grid {
    /// Drops rows and columns that hold no text or in which no cell begins. `None` if nothing is left.
    pub(crate) fn new(cells: Vec<GridCell>) -> Option<Grid> {
        let rows = live(&cells, |c| (c.row, c.rows));
        let cols = live(&cells, |c| (c.col, c.cols));
        let mut kept: Vec<GridCell> = cells
            .into_iter()
            .filter_map(|cell| {
                let (row, row_count) = place(&rows, cell.row, cell.rows)?;
                let (col, col_count) = place(&cols, cell.col, cell.cols)?;
                Some(GridCell { row, col, rows: row_count, cols: col_count, ..cell })
            })
            .collect();
        kept.sort_by_key(|c| (c.row, c.col));
        (!kept.is_empty()).then_some(Grid { rows: rows.len(), cols: cols.len(), cells: kept })
    }

    /// GitHub table where that says everything, else HTML.
    pub(crate) fn markdown(&self, links: &[Link]) -> String {
        let flat = |c: &GridCell| c.rows == 1 && c.cols == 1 && !c.content.text.contains('\n');
        let apart = self.cells.windows(2).all(|w| (w[0].row, w[0].col) != (w[1].row, w[1].col));
        if apart && self.cells.iter().all(flat) { self.github(links) } else { self.html(links) }
    }

    fn github(&self, links: &[Link]) -> String {
        let mut out = String::new();
        let mut cells = self.cells.iter().peekable();
        for row in 0..self.rows {
            out.push('|');
            for col in 0..self.cols {
                out.push(' ');
                if let Some(cell) = cells.next_if(|c| (c.row, c.col) == (row, col)) {
                    let text = inline(&cell.content, links, BlockStart::Nowhere).replace('|', "\\|");
                    out.push_str(&text);
                }
                out.push_str(" |");
            }
            out.push('\n');
            if row == 0 {
                out.push('|');
                out.push_str(&" --- |".repeat(self.cols));
                out.push('\n');
            }
        }
        out.pop();
        out
    }

    /// One row a line, holes as empty cells.
    pub(crate) fn html(&self, links: &[Link]) -> String {
        let mut open = Occupancy::new(self.rows, self.cols);
        let mut out = String::from("<table>\n");
        let mut cells = self.cells.iter().peekable();
        for row in 0..self.rows {
            out.push_str("<tr>");
            let mut at = 0;
            while let Some(cell) = cells.next_if(|c| c.row == row) {
                out.push_str(&"<td></td>".repeat(open.holes(row, at, cell.col)));
                at = at.max(cell.col);
                open.take(cell);
                out.push_str(&html_cell(cell, links));
            }
            out.push_str(&"<td></td>".repeat(open.holes(row, at, self.cols)));
            out.push_str("</tr>\n");
        }
        out.push_str("</table>");
        out
    }

    /// Cells parted by tabs, rows by line ends; a spanning cell stands at its first place.
    pub(crate) fn text(&self) -> Composed {
        let mut out = Composed::default();
        let (mut row, mut col) = (0, 0);
        let mut gap = String::new();
        let mut advance = |to_row: usize, to_col: usize, gap: &mut String| {
            while row < to_row {
                gap.push_str(&"\t".repeat((self.cols - 1).saturating_sub(col)));
                gap.push('\n');
                (row, col) = (row + 1, 0);
            }
            gap.push_str(if to_col < col { " " } else { "" });
            gap.push_str(&"\t".repeat(to_col.saturating_sub(col)));
            col = col.max(to_col);
        };
        for cell in &self.cells {
            advance(cell.row, cell.col, &mut gap);
            if !cell.content.is_empty() {
                out.append(&gap, &cell.content.on_one_line());
                gap.clear();
            }
        }
        advance(self.rows - 1, self.cols - 1, &mut gap);
        out.push_gap(&gap);
        out
    }
}

/// Rows (or columns) in which a cell begins and some cell has text, ascending.
fn live(cells: &[GridCell], range: impl Fn(&GridCell) -> (usize, usize)) -> Vec<usize> {
    let mut begun: Vec<usize> = cells.iter().map(|c| range(c).0).collect();
    begun.sort_unstable();
    begun.dedup();
    // How many texts begin to cover each place, less those that end before it.
    let mut change = vec![0isize; begun.len() + 1];
    for cell in cells.iter().filter(|c| !c.content.is_empty()) {
        let (start, count) = range(cell);
        if let Some((from, places)) = place(&begun, start, count) {
            change[from] += 1;
            change[from + places] -= 1;
        }
    }
    let mut covering = 0;
    let covered = change.iter().map(|step| {
        covering += step;
        covering > 0
    });
    begun.iter().zip(covered).filter(|(_, covered)| *covered).map(|(&at, _)| at).collect()
}

/// First place and number of places that a range has among the live ones.
fn place(live: &[usize], start: usize, count: usize) -> Option<(usize, usize)> {
    let from = live.partition_point(|&k| k < start);
    let to = live.partition_point(|&k| k < start.saturating_add(count.max(1)));
    (to > from).then_some((from, to - from))
}

fn html_cell(cell: &GridCell, links: &[Link]) -> String {
    let tag = if cell.header { "th" } else { "td" };
    let span = |name: &str, n: usize| if n > 1 { format!(" {name}=\"{n}\"") } else { String::new() };
    format!(
        "<{tag}{}{}>{}</{tag}>",
        span("rowspan", cell.rows),
        span("colspan", cell.cols),
        html(&cell.content, links)
    )
}

/// Which places of a grid are taken; empty for grids too large to fill.
struct Occupancy {
    cols: usize,
    taken: Vec<bool>,
}

impl Occupancy {
    fn new(rows: usize, cols: usize) -> Occupancy {
        let size = rows.saturating_mul(cols);
        Occupancy { cols, taken: if size <= LARGEST_GRID { vec![false; size] } else { Vec::new() } }
    }

    fn take(&mut self, cell: &GridCell) {
        for row in cell.row..cell.row + cell.rows {
            let from = row.saturating_mul(self.cols).saturating_add(cell.col);
            if let Some(places) = self.taken.get_mut(from..from.saturating_add(cell.cols)) {
                places.fill(true);
            }
        }
    }

    /// Free places of a row from `from` up to `to`.
    fn holes(&self, row: usize, from: usize, to: usize) -> usize {
        let base = row.saturating_mul(self.cols);
        let places = self.taken.get(base.saturating_add(from)..base.saturating_add(to));
        places.map_or(0, |p| p.iter().filter(|taken| !**taken).count())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::page::Source;

    fn cell(row: usize, col: usize, text: &str) -> GridCell {
        let content =
            if text.is_empty() { Composed::default() } else { Composed::whole(text, Source::Table, 1.0) };
        GridCell { row, col, rows: 1, cols: 1, header: false, content }
    }

    #[test]
    fn a_plain_grid_becomes_a_github_table() {
        let grid = Grid::new(vec![
            cell(0, 0, "a|b"),
            cell(0, 2, "c"),
            cell(2, 0, "1"),
            cell(2, 1, ""),
            cell(2, 2, "*x*"),
        ]);
        let grid = grid.expect("a grid");
        insta::assert_snapshot!(grid.markdown(&[]), @r"
        | a\|b | c |
        | --- | --- |
        | 1 | \*x\* |
        ");
        assert_eq!(grid.text().text, "a|b\tc\n1\t*x*");
    }

    #[test]
    fn spans_and_several_lines_become_html_with_holes_filled() {
        let mut head = cell(0, 0, "H & <I>");
        (head.cols, head.header) = (2, true);
        let grid = Grid::new(vec![head, cell(1, 1, "x\ny"), cell(2, 0, "z")]).expect("a grid");
        insta::assert_snapshot!(grid.markdown(&[]), @r#"
        <table>
        <tr><th colspan="2">H &amp; &lt;I&gt;</th></tr>
        <tr><td></td><td>x<br>y</td></tr>
        <tr><td>z</td><td></td></tr>
        </table>
        "#);
        assert_eq!(grid.text().text, "H & <I>\t\n\tx y\nz\t");
    }

    proptest! {
        #[test]
        fn odd_grids_neither_panic_nor_lose_text(
            cells in prop::collection::vec((0usize..5, 0usize..5, 0usize..4, 0usize..4, "[a-z\n]{0,3}"), 0..12),
        ) {
            let cells: Vec<GridCell> = cells
                .into_iter()
                .map(|(row, col, rows, cols, text)| GridCell { rows, cols, ..cell(row, col, &text) })
                .collect();
            let letters = |s: &str| s.chars().filter(char::is_ascii_lowercase).count();
            let all: usize = cells.iter().map(|c| letters(&c.content.text)).sum();
            if let Some(grid) = Grid::new(cells) {
                let text = grid.text();
                prop_assert_eq!(letters(&text.text), all);
                prop_assert_eq!(text.text.split('\n').count(), grid.rows);
                let end = text.runs.last().map_or(0, |r| r.end);
                prop_assert_eq!(end, text.text.chars().count());
            } else {
                prop_assert_eq!(all, 0);
            }
        }

        #[test]
        fn the_largest_numbers_are_no_trouble(row in prop::sample::select(vec![0usize, usize::MAX - 1, usize::MAX]), rows in prop::sample::select(vec![0usize, 1, usize::MAX])) {
            let odd = GridCell { rows, cols: rows, ..cell(row, row, "a") };
            if let Some(grid) = Grid::new(vec![odd, cell(0, 0, "b")]) {
                prop_assert!(grid.cells.len() <= 2);
            }
        }
    }
}
