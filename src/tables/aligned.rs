//! White columns -> a grid of cells: a row for each text line, wrapped lines joined to the row that they belong to.

use std::collections::BTreeSet;

use crate::clock::worked;
use crate::geometry::Rect;
use crate::lines::{chunks, hull_of, lines_of, median};
use crate::page::{Cell, Rules, Word};

use super::empty_cell;
use super::ruled::{TOLERANCE, levels};

/// A piece of a row, over columns `first..=last`.
struct Piece {
    first: usize,
    last: usize,
    words: Vec<Word>,
}

struct Row {
    pieces: Vec<Piece>,
    y0: f32,
    y1: f32,
}

impl Row {
    fn columns(&self) -> BTreeSet<usize> {
        self.pieces.iter().flat_map(|p| p.first..=p.last).collect()
    }

    fn middle(&self) -> f32 {
        (self.y0 + self.y1) / 2.0
    }
}

/// Chunks of a text line with their hulls.
type Chunks = Vec<(Rect, Vec<Word>)>;

/// Cells of a table without a drawn grid, row by row, each word in exactly one: columns are parted by white gaps that run
/// through all rows and by drawn verticals. `None` where there are fewer than four words or no gap.
pub(crate) fn aligned(words: &[Word], rules: &Rules) -> Option<Vec<Cell>> {
    if words.len() < 4 {
        return None;
    }
    let size = median(words.iter().map(|w| w.bbox.height()));
    let verticals = tall_verticals(hull_of(words), rules);
    let rows = chunked_lines(words, size, &verticals);
    let cuts = column_cuts(&rows, size, &verticals);
    if cuts.is_empty() {
        return None;
    }
    let hull = hull_of(words);
    let mut edges: Vec<f32> = Vec::with_capacity(cuts.len() + 2);
    edges.push(hull.x0 - 1.0);
    edges.extend(&cuts);
    edges.push(hull.x1 + 1.0);
    let grid = rows.into_iter().map(|row| placed(row, &cuts, size)).collect();
    let mut grid = join_wrapped(grid, &edges, rules, size);
    drop_header_columns(&mut grid, &mut edges);
    Some(cells_of(grid, &edges))
}

/// Places of drawn verticals that run through most of the table's height, inside it.
fn tall_verticals(hull: Rect, rules: &Rules) -> Vec<f32> {
    let tall = rules.vertical.iter().filter(|l| {
        l.1.min(hull.y1) - l.0.max(hull.y0) > 0.6 * hull.height() && hull.x0 < l.2 && l.2 < hull.x1
    });
    levels(tall.map(|l| l.2), TOLERANCE)
}

/// Text lines in chunks: parted by gaps (narrower ones count in tables of many lines) and by verticals between words.
fn chunked_lines(words: &[Word], size: f32, verticals: &[f32]) -> Vec<Chunks> {
    let lines = lines_of(words);
    let gap = if lines.len() >= 5 { 0.35 } else { 0.6 } * size;
    lines
        .iter()
        .map(|line| {
            chunks(line, gap)
                .into_iter()
                .flat_map(|chunk| cut_at(chunk, verticals))
                .map(|chunk| (hull_of(&chunk), chunk))
                .collect()
        })
        .collect()
}

fn cut_at(chunk: Vec<Word>, verticals: &[f32]) -> Vec<Vec<Word>> {
    let mut out: Vec<Vec<Word>> = Vec::new();
    let mut before = f32::NEG_INFINITY;
    for word in chunk {
        worked(verticals.len());
        let middle = word.bbox.center().0;
        match out.last_mut() {
            Some(last) if !verticals.iter().any(|&x| before < x && x < middle) => last.push(word),
            _ => out.push(vec![word]),
        }
        before = middle;
    }
    out
}

/// Does the chunk stand over several chunks of many other rows? Group heads and notes do; they do not close a gap.
fn spans(b: &Rect, own_row: usize, rows: &[Chunks]) -> bool {
    worked(rows.iter().map(Vec::len).sum());
    let over: Vec<usize> = rows
        .iter()
        .enumerate()
        .filter(|&(r, _)| r != own_row)
        .map(|(_, row)| row.iter().filter(|(o, _)| b.overlap_x(o) > 0.3 * o.width()).count())
        .collect();
    let several = over.iter().filter(|&&n| n >= 2).count() as f32;
    let any = over.iter().filter(|&&n| n >= 1).count() as f32;
    over.len() >= 2 && several >= (0.3 * any).max(2.0)
}

/// Places between columns: white gaps at least 0.3 letter heights wide, and verticals away from those.
fn column_cuts(rows: &[Chunks], size: f32, verticals: &[f32]) -> Vec<f32> {
    let mut taken: Vec<(f32, f32)> = Vec::new();
    for (r, row) in rows.iter().enumerate() {
        taken.extend(row.iter().filter(|(b, _)| !spans(b, r, rows)).map(|(b, _)| (b.x0, b.x1)));
    }
    taken.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut cuts = Vec::new();
    let mut end: Option<f32> = None;
    for (low, high) in taken {
        if let Some(end) = end
            && low - end >= (0.3 * size).max(1.0)
        {
            cuts.push((end + low) / 2.0);
        }
        end = Some(end.map_or(high, |e| e.max(high)));
    }
    let lone: Vec<f32> =
        verticals.iter().copied().filter(|x| cuts.iter().all(|c| (x - c).abs() > 0.8 * size)).collect();
    cuts.extend(lone);
    cuts.sort_by(f32::total_cmp);
    cuts
}

/// A text line's chunks in their columns; chunks that share a column become one piece.
fn placed(row: Chunks, cuts: &[f32], size: f32) -> Row {
    let mut out = Row { pieces: Vec::new(), y0: f32::INFINITY, y1: f32::NEG_INFINITY };
    for (b, words) in row {
        out.y0 = out.y0.min(b.y0);
        out.y1 = out.y1.max(b.y1);
        let first = cuts.partition_point(|&x| x < b.x0 + 0.3 * size);
        let last = cuts.partition_point(|&x| x < b.x1 - 0.3 * size).max(first);
        match out.pieces.last_mut() {
            Some(piece) if piece.last >= first => {
                piece.last = piece.last.max(last);
                piece.words.extend(words);
            }
            _ => out.pieces.push(Piece { first, last, words }),
        }
    }
    out
}

/// What decides whether a text line continues the row above it.
struct Wrapping<'a> {
    size: f32,
    columns: usize,
    /// Usual white space between two text lines.
    pitch: f32,
    /// Levels of drawn horizontals if those part the rows.
    bands: Option<Vec<f32>>,
    rules: &'a Rules,
}

impl Wrapping<'_> {
    fn continues(&self, above: &Row, row: &Row) -> bool {
        worked(self.rules.horizontal.len() + 8 * (above.pieces.len() + row.pieces.len()));
        let gap = row.y0 - above.y1;
        let (over, own) = (above.columns(), row.columns());
        if let Some(bands) = &self.bands {
            let parted = bands.iter().any(|&y| above.middle() < y && y < row.middle());
            let full = own.len() == self.columns && self.columns > 2 && own == over;
            return !parted && gap < 1.2 * self.size && !full;
        }
        let ruled = self.rules.horizontal.iter().any(|l| above.y1 - 2.0 <= l.2 && l.2 <= row.y0 + 2.0);
        let tight = gap < (0.35 * self.size).min(self.pitch + 0.1 * self.size);
        let few = self.columns > 2
            && !own.contains(&0)
            && own.len() <= (self.columns / 2).max(1)
            && own.is_subset(&over);
        let first_only = self.columns >= 2
            && own.len() == 1
            && own.contains(&0)
            && gap < 0.2 * self.size
            && self.pitch > 0.35 * self.size;
        !ruled && tight && (few || first_only)
    }
}

/// Joins wrapped lines: fewer cells than usual, first column empty, tight to the row above, no line between. Where drawn
/// horizontals part the rows, whatever stands between two of them is one row.
fn join_wrapped(grid: Vec<Row>, edges: &[f32], rules: &Rules, size: f32) -> Vec<Row> {
    let (Some(first), Some(last), Some(left), Some(right)) =
        (grid.first(), grid.last(), edges.first(), edges.last())
    else {
        return grid;
    };
    let long = rules
        .horizontal
        .iter()
        .filter(|l| l.1 - l.0 > 0.3 * (right - left) && first.y0 < l.2 && l.2 < last.y1);
    let bands = levels(long.map(|l| l.2), TOLERANCE);
    let banded = bands.len() >= 3 && bands.len() as f32 >= 0.3 * (grid.len() - 1) as f32;
    let wrapping = Wrapping {
        size,
        columns: edges.len() - 1,
        pitch: median(grid.windows(2).map(|p| p[1].y0 - p[0].y1)),
        bands: banded.then_some(bands),
        rules,
    };
    let mut out: Vec<Row> = Vec::with_capacity(grid.len());
    for row in grid {
        match out.last_mut() {
            Some(above) if wrapping.continues(above, &row) => append(above, row),
            _ => out.push(row),
        }
    }
    out
}

fn append(above: &mut Row, row: Row) {
    above.y1 = above.y1.max(row.y1);
    for piece in row.pieces {
        worked(above.pieces.len());
        if let Some(p) = above.pieces.iter_mut().find(|p| p.first <= piece.first && piece.first <= p.last) {
            p.words.extend(piece.words);
            continue;
        }
        let next = above.pieces.iter().map(|p| p.first).filter(|&f| f > piece.first).min();
        let last = next.map_or(piece.last, |n| piece.last.min(n - 1));
        above.pieces.push(Piece { last, ..piece });
    }
}

/// A column that only the first row has text in belongs to the column before it.
fn drop_header_columns(grid: &mut [Row], edges: &mut Vec<f32>) {
    for column in (1..edges.len() - 1).rev() {
        worked(grid.iter().map(|row| row.pieces.len()).sum());
        let rows: Vec<usize> =
            (0..grid.len()).filter(|&r| grid[r].pieces.iter().any(|p| p.first == column)).collect();
        if grid.len() <= 3 || edges.len() <= 3 || rows != [0] {
            continue;
        }
        for row in grid.iter_mut() {
            row.pieces.sort_by_key(|p| p.first);
            let mut pieces: Vec<Piece> = Vec::new();
            for mut piece in std::mem::take(&mut row.pieces) {
                piece.first -= usize::from(piece.first >= column);
                piece.last -= usize::from(piece.last >= column);
                match pieces.last_mut() {
                    Some(before) if before.last >= piece.first => {
                        before.last = before.last.max(piece.last);
                        before.words.extend(piece.words);
                    }
                    _ => pieces.push(piece),
                }
            }
            row.pieces = pieces;
        }
        edges.remove(column);
    }
}

fn cells_of(grid: Vec<Row>, edges: &[f32]) -> Vec<Cell> {
    let columns = edges.len() - 1;
    let mut out: Vec<Cell> = Vec::new();
    for (r, mut row) in grid.into_iter().enumerate() {
        row.pieces.sort_by_key(|p| p.first);
        let mut next = 0;
        for piece in row.pieces {
            let last = piece.last.min(columns - 1);
            let first = piece.first.min(last);
            if first < next
                && let Some(cell) = out.last_mut()
            {
                cell.words.extend(piece.words);
                continue;
            }
            out.extend(
                (next..first).map(|c| empty_cell(r, c, Rect::new(edges[c], row.y0, edges[c + 1], row.y1))),
            );
            let bbox = Rect::new(edges[first], row.y0, edges[last + 1], row.y1);
            out.push(Cell { cols: last - first + 1, words: piece.words, ..empty_cell(r, first, bbox) });
            next = last + 1;
        }
        out.extend(
            (next..columns).map(|c| empty_cell(r, c, Rect::new(edges[c], row.y0, edges[c + 1], row.y1))),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::word;
    use proptest::prelude::*;

    /// Words at the given columns (100 px each) of rows `pitch` px apart, 10 px high.
    fn lay(rows: &[&[(usize, &str)]], pitch: f32) -> Vec<Word> {
        let mut out = Vec::new();
        for (r, row) in rows.iter().enumerate() {
            for &(c, text) in *row {
                let (x, y) = (c as f32 * 100.0, r as f32 * pitch);
                for (k, part) in text.split(' ').enumerate() {
                    let x = x + 22.0 * k as f32;
                    out.push(word(part, x, y, x + 20.0, y + 10.0));
                }
            }
        }
        out
    }

    fn texts(cells: &[Cell]) -> Vec<Vec<String>> {
        let rows = cells.iter().map(|c| c.row + 1).max().unwrap_or(0);
        (0..rows)
            .map(|r| {
                let row = cells.iter().filter(|c| c.row == r);
                row.map(|c| c.words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ")).collect()
            })
            .collect()
    }

    #[test]
    fn white_columns_part_a_plain_table() {
        let words = lay(
            &[
                &[(0, "Name"), (1, "Year"), (2, "Sum")],
                &[(0, "a b"), (1, "1"), (2, "2")],
                &[(0, "c"), (2, "4")],
            ],
            14.0,
        );
        let cells = aligned(&words, &Rules::default()).unwrap();
        assert_eq!(texts(&cells), [vec!["Name", "Year", "Sum"], vec!["a b", "1", "2"], vec!["c", "", "4"]]);
    }

    #[test]
    fn wrapped_line_joins_the_row_above() {
        let words = lay(
            &[
                &[(0, "k"), (1, "long text"), (2, "1")],
                &[(1, "goes on")],
                &[(0, "m"), (1, "x"), (2, "2")],
                &[(0, "n"), (1, "y"), (2, "3")],
            ],
            12.0,
        );
        let cells = aligned(&words, &Rules::default()).unwrap();
        assert_eq!(texts(&cells)[0], ["k", "long text goes on", "1"]);
        assert_eq!(texts(&cells).len(), 3);
    }

    #[test]
    fn group_head_spans_its_columns() {
        let mut words = lay(
            &[
                &[],
                &[(0, "a"), (1, "b"), (2, "c")],
                &[(0, "1"), (1, "2"), (2, "3")],
                &[(0, "4"), (1, "5"), (2, "6")],
            ],
            14.0,
        );
        words.push(word("Head-over-both", 105.0, 0.0, 215.0, 10.0));
        let cells = aligned(&words, &Rules::default()).unwrap();
        let head = cells.iter().find(|c| !c.words.is_empty()).unwrap();
        assert_eq!((head.row, head.col, head.cols), (0, 1, 2));
    }

    #[test]
    fn running_text_has_no_columns() {
        let words: Vec<Word> = (0..40)
            .map(|k| {
                let (x, y) = ((k % 10) as f32 * 32.0 + (k / 10) as f32 * 7.0, (k / 10) as f32 * 14.0);
                word("word", x, y, x + 29.0, y + 10.0)
            })
            .collect();
        assert_eq!(aligned(&words, &Rules::default()), None);
    }

    proptest! {
        #[test]
        fn no_word_is_lost(raw in proptest::collection::vec((0f32..500.0, 0u8..12, 5f32..120.0), 4..60), lines in proptest::collection::vec(0f32..200.0, 0..6)) {
            let words: Vec<Word> = raw.iter().enumerate()
                .map(|(k, &(x, r, w))| word(&k.to_string(), x, f32::from(r) * 14.0, x + w, f32::from(r) * 14.0 + 10.0))
                .collect();
            let rules = Rules { horizontal: lines.iter().map(|&y| (0.0, 600.0, y)).collect(), vertical: Vec::new() };
            if let Some(cells) = aligned(&words, &rules) {
                let mut got: Vec<usize> = cells.iter().flat_map(|c| &c.words).map(|w| w.text.parse().unwrap()).collect();
                got.sort_unstable();
                prop_assert_eq!(got, (0..words.len()).collect::<Vec<_>>());
            }
        }
    }
}
