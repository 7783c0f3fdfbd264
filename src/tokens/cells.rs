//! Row and cell tokens -> a table's grid.

use crate::geometry::Rect;
use crate::lines::hull_of;
use crate::page::{Cell, Word};

use super::content::ContentOrigin;

/// A row as a branch wrote it.
pub(super) struct ReadRow {
    /// The drafted row whose token stood.
    pub(super) base: Option<u32>,
    pub(super) cells: Vec<ReadCell>,
}

/// A cell as a branch wrote it.
pub(super) struct ReadCell {
    /// The drafted cell whose token stood: an index into the region's cells.
    pub(super) base: Option<usize>,
    pub(super) words: Vec<Word>,
}

/// Widest and highest span that is believed; a table network has been seen to claim more.
const MOST_SPAN: usize = 256;

/// Are the rows and cells exactly the drafted ones?
pub(super) fn same_grid(rows: &[ReadRow], drafted: &[ContentOrigin]) -> bool {
    let mut wanted = drafted.iter().filter(|o| matches!(o, ContentOrigin::Row(_) | ContentOrigin::Cell(_)));
    for row in rows {
        if row.base.is_none() || wanted.next() != row.base.map(ContentOrigin::Row).as_ref() {
            return false;
        }
        for cell in &row.cells {
            let base = cell.base.and_then(|base| u32::try_from(base).ok());
            if base.is_none() || wanted.next() != base.map(ContentOrigin::Cell).as_ref() {
                return false;
            }
        }
    }
    wanted.next().is_none()
}

/// A grid from rows that are not the drafted ones: each cell takes the next free place of its row; drafted cells keep their
/// spans, boxes and header marks. A cell of the model's has the box of its words, or none at the region's corner.
pub(super) fn rebuilt_grid(rows: Vec<ReadRow>, known: &[Cell], region: Rect) -> Vec<Cell> {
    // Rows that a cell above still covers, by column.
    let mut covered: Vec<usize> = Vec::new();
    let mut cells = Vec::new();
    for (row, read) in rows.into_iter().enumerate() {
        let mut col = 0;
        for cell in read.cells {
            while covered.get(col).is_some_and(|&until| until > row) {
                col += 1;
            }
            let base = cell.base.and_then(|base| known.get(base));
            let span = |size: usize| size.clamp(1, MOST_SPAN);
            let (height, width) = base.map_or((1, 1), |b| (span(b.rows), span(b.cols)));
            if covered.len() < col + width {
                covered.resize(col + width, 0);
            }
            covered[col..col + width].fill(row + height);
            let corner = Rect::new(region.x0, region.y0, region.x0, region.y0);
            let written = if cell.words.is_empty() { corner } else { hull_of(&cell.words) };
            cells.push(Cell {
                row,
                col,
                rows: height,
                cols: width,
                bbox: base.map_or(written, |b| b.bbox),
                header: base.is_some_and(|b| b.header),
                words: cell.words,
            });
            col += width;
        }
    }
    cells
}
