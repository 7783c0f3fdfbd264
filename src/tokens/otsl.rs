//! OTSL, the table language of DocTags -> an HTML table.
//!
//! `<fcel>` a cell with text, `<ecel>` an empty one, `<ched>` a column's head, `<rhed>` a row's, `<srow>` a section's; `<lcel>` joins the cell to
//! its left, `<ucel>` to the one above, `<xcel>` to both; `<nl>` ends a row.

use std::sync::LazyLock;

use regex::Regex;

static CELL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"<(fcel|ecel|lcel|ucel|xcel|ched|rhed|srow|nl)>").expect("a constant pattern")
});

/// More columns or rows than this come from a loop; further cells are left out.
const MOST: usize = 512;

/// Is `tag` one of the table's?
pub(super) fn is_cell(tag: &str) -> bool {
    matches!(tag, "fcel" | "ecel" | "lcel" | "ucel" | "xcel" | "ched" | "rhed" | "srow" | "nl")
}

/// A place of the grid.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    Cell { text: String, header: bool },
    Left,
    Above,
    Both,
}

/// The table as HTML with spans. Text before the first cell is left out; a join without a cell to join is an empty cell.
pub(super) fn html(text: &str) -> String {
    let grid = grid(text);
    let mut out = String::from("<table>");
    for (row, places) in grid.iter().enumerate() {
        out.push_str("<tr>");
        for (column, place) in places.iter().enumerate() {
            let Place::Cell { text, header } = place else {
                if owner(&grid, row, column).is_none() {
                    out.push_str("<td></td>");
                }
                continue;
            };
            let (rows, columns) = spans(&grid, row, column);
            let name = if *header { "th" } else { "td" };
            out += &format!("<{name}");
            for (attribute, span) in [("rowspan", rows), ("colspan", columns)] {
                if span > 1 {
                    out += &format!(" {attribute}=\"{span}\"");
                }
            }
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            out += &format!(">{text}</{name}>");
        }
        out.push_str("</tr>");
    }
    out + "</table>"
}

fn grid(text: &str) -> Vec<Vec<Place>> {
    let mut rows: Vec<Vec<Place>> = vec![Vec::new()];
    let tags: Vec<regex::Captures<'_>> = CELL.captures_iter(text).collect();
    for (index, found) in tags.iter().enumerate() {
        let start = found.get(0).map_or(0, |tag| tag.end());
        let end = tags.get(index + 1).and_then(|next| next.get(0)).map_or(text.len(), |tag| tag.start());
        let content = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
        let place = match &found[1] {
            "nl" => {
                if rows.len() < MOST {
                    rows.push(Vec::new());
                }
                continue;
            }
            "lcel" => Place::Left,
            "ucel" => Place::Above,
            "xcel" => Place::Both,
            tag => Place::Cell { text: content, header: matches!(tag, "ched" | "rhed" | "srow") },
        };
        if let Some(row) = rows.last_mut().filter(|row| row.len() < MOST) {
            row.push(place);
        }
    }
    rows.retain(|row| !row.is_empty());
    rows
}

/// The cell that a place belongs to.
fn owner(grid: &[Vec<Place>], row: usize, column: usize) -> Option<(usize, usize)> {
    let (mut row, mut column) = (row, column);
    loop {
        (row, column) = match grid.get(row)?.get(column)? {
            Place::Cell { .. } => return Some((row, column)),
            Place::Left => (row, column.checked_sub(1)?),
            Place::Above => (row.checked_sub(1)?, column),
            Place::Both => (row.checked_sub(1)?, column.checked_sub(1)?),
        };
    }
}

/// Rows and columns of a cell: as far as joins lead back to it along its first row and column.
fn spans(grid: &[Vec<Place>], row: usize, column: usize) -> (usize, usize) {
    let joined = |r: usize, c: usize| owner(grid, r, c) == Some((row, column));
    let columns = (column + 1..grid[row].len()).take_while(|&c| joined(row, c)).count() + 1;
    let rows = (row + 1..grid.len()).take_while(|&r| joined(r, column)).count() + 1;
    (rows, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_become_spans() {
        let table = "<ched>a<lcel><ched>b<nl><fcel>1<fcel>2 &<ecel><nl><fcel>x<lcel><fcel>y<nl><ucel><xcel><fcel>z<nl>";
        let expected = "<table><tr><th colspan=\"2\">a</th><th>b</th></tr><tr><td>1</td><td>2 &amp;</td><td></td></tr>\
            <tr><td rowspan=\"2\" colspan=\"2\">x</td><td>y</td></tr><tr><td>z</td></tr></table>";
        assert_eq!(html(table), expected);
    }

    #[test]
    fn joins_with_nothing_are_empty_cells() {
        assert_eq!(html("<lcel><fcel>1"), "<table><tr><td></td><td>1</td></tr></table>");
        assert_eq!(html("<ucel><nl>"), "<table><tr><td></td></tr></table>");
        assert_eq!(html("nothing"), "<table></table>");
    }

    #[test]
    fn a_loop_of_cells_is_bounded() {
        assert_eq!(html(&"<fcel>1".repeat(9000)).matches("<td>").count(), MOST);
    }
}
