//! Table structure: SLANet-plus (`slanet-plus.onnx`).
//!
//! Input `[1, 3, 488, 488]`, BGR, ImageNet constants, longest side scaled to 488, top left, the rest 0. The decoding loop is
//! inside the graph. Outputs: `[1, T, 8]` four corners per step, times 488 = input pixels; `[1, T, 50]` probabilities of the
//! tokens: 0 start, 1..48 the metadata's list (without `<td>`, with `<td></td>` at its end), 49 end. A plain cell is
//! `<td></td>`; a cell that spans is `<td`, attributes, `>`, `</td>`. A cell's box stands at its `<td></td>` or `<td` step.

use std::collections::HashSet;
use std::path::Path;

use ndarray::Ix3;

use super::TableReading;
use super::network::{Network, numbers, output};
use crate::geometry::Rect;
use crate::graphs::GraphError;
use crate::graphs::runtime::RuntimeError;
use crate::page::Cell;
use crate::raster::Raster;
use crate::raster::planes::{Normalisation, write_planes};

const NAME: &str = "table";
/// Side of the network's square input, px.
pub const SIDE: usize = 488;
/// Tokens of the metadata's list that the network was trained with.
const LISTED: usize = 48;
/// Cells of a table that are read; more is noise.
const MOST_CELLS: usize = 5000;

/// A structure token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    HeadStart,
    HeadEnd,
    Row,
    Cell,
    OpenCell,
    Colspan(usize),
    Rowspan(usize),
    Close,
    /// Start, body and row ends: nothing to do.
    Other,
}

fn token(text: &str) -> Token {
    let number =
        || text.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(1).clamp(1, 50);
    match text {
        "<thead>" => Token::HeadStart,
        "</thead>" => Token::HeadEnd,
        "<tr>" => Token::Row,
        "<td></td>" => Token::Cell,
        "<td" => Token::OpenCell,
        ">" => Token::Close,
        _ if text.contains("rowspan") => Token::Rowspan(number()),
        _ if text.contains("colspan") => Token::Colspan(number()),
        _ => Token::Other,
    }
}

/// The token list by class.
fn tokens(listed: Vec<String>) -> Vec<Token> {
    let mut names: Vec<String> = listed.into_iter().take(LISTED).collect();
    if !names.iter().any(|t| t == "<td></td>") {
        names.push("<td></td>".into());
    }
    names.retain(|t| t != "<td>");
    std::iter::once(Token::Other)
        .chain(names.iter().map(|t| token(t)))
        .chain(std::iter::once(Token::End))
        .collect()
}

/// The table network.
#[derive(Debug)]
pub struct TableNet {
    network: Network,
    tokens: Vec<Token>,
}

impl TableNet {
    pub fn open(path: &Path, threads: usize) -> Result<Self, RuntimeError> {
        let network = Network::open(path, NAME, threads)?;
        let listed = network
            .characters()
            .map_err(|e| RuntimeError::Load { path: path.to_path_buf(), message: e.to_string() })?;
        Ok(TableNet { network, tokens: tokens(listed) })
    }

    /// Reads the picture of one table; boxes in pixels of `crop`.
    pub fn read(&mut self, crop: &Raster) -> Result<TableReading, GraphError> {
        let longest = crop.width.max(crop.height).max(1);
        let scale = SIDE as f32 / longest as f32;
        let side = |v: usize| (v * SIDE / longest).max(1);
        let (width, height) = (side(crop.width), side(crop.height));
        let small =
            if scale < 1.0 { crop.resized_area(width, height) } else { crop.resized_linear(width, height) };
        let mut input = vec![0.0; 3 * SIDE * SIDE];
        write_planes(&small, &Normalisation::IMAGENET, &mut input, SIDE, SIDE);
        let outputs = self.network.run([1, 3, SIDE, SIDE], &input)?;
        let corners = output::<Ix3>(&outputs, 0, NAME)?;
        let probabilities = output::<Ix3>(&outputs, 1, NAME)?;
        let steps: Vec<(Token, f32)> = probabilities
            .rows()
            .into_iter()
            .map(|row| {
                let best = row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
                best.map_or((Token::End, 0.0), |(i, &p)| {
                    (self.tokens.get(i).copied().unwrap_or(Token::Other), p)
                })
            })
            .collect();
        Ok(decode(&steps, numbers(&corners), SIDE as f32 / scale))
    }
}

/// A grid that is being filled, row by row.
#[derive(Default)]
struct Grid {
    cells: Vec<Cell>,
    taken: HashSet<(usize, usize)>,
    rows: usize,
    col: usize,
}

impl Grid {
    fn add(&mut self, bbox: Rect, rows: usize, cols: usize, header: bool) {
        let row = self.rows.saturating_sub(1);
        while self.taken.contains(&(row, self.col)) {
            self.col += 1;
        }
        for r in row..row + rows {
            self.taken.extend((self.col..self.col + cols).map(|c| (r, c)));
        }
        self.cells.push(Cell { row, col: self.col, rows, cols, bbox, words: Vec::new(), header });
        self.col += cols;
    }
}

/// Steps (token, probability) and their corners (shares of `side` pixels) -> cells.
fn decode(steps: &[(Token, f32)], corners: &[f32], side: f32) -> TableReading {
    let mut grid = Grid::default();
    let mut header = false;
    let mut open: Option<(usize, usize, usize)> = None; // step, rows, columns
    let (mut sum, mut read) = (0.0, 0u32);
    for (step, &(token, probability)) in steps.iter().enumerate() {
        if (token == Token::End && step > 0) || grid.cells.len() >= MOST_CELLS {
            break;
        }
        sum += probability;
        read += 1;
        match (token, &mut open) {
            (Token::HeadStart, _) => header = true,
            (Token::HeadEnd, _) => header = false,
            (Token::Row, _) => {
                grid.rows += 1;
                grid.col = 0;
            }
            (Token::Cell, _) => grid.add(box_at(corners, step, side), 1, 1, header),
            (Token::OpenCell, _) => open = Some((step, 1, 1)),
            (Token::Rowspan(n), Some(span)) => span.1 = n,
            (Token::Colspan(n), Some(span)) => span.2 = n,
            (Token::Close, Some((at, rows, cols))) => {
                grid.add(box_at(corners, *at, side), *rows, *cols, header);
                open = None;
            }
            _ => {}
        }
    }
    TableReading { cells: grid.cells, confidence: sum / read.max(1) as f32 }
}

fn box_at(corners: &[f32], step: usize, side: f32) -> Rect {
    let points = corners.get(step * 8..step * 8 + 8).unwrap_or(&[0.0; 8]);
    let (mut b, finite) = (
        Rect::new(f32::INFINITY, f32::INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY),
        points.iter().all(|v| v.is_finite()),
    );
    if !finite {
        return Rect::default();
    }
    for p in points.chunks_exact(2) {
        let (x, y) = (p[0] * side, p[1] * side);
        b = Rect::new(b.x0.min(x), b.y0.min(y), b.x1.max(x), b.y1.max(y));
    }
    b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_push_later_cells_aside() {
        use Token::*;
        let tokens = [
            Other,
            HeadStart,
            Row,
            OpenCell,
            Rowspan(2),
            Close,
            Other,
            OpenCell,
            Colspan(2),
            Close,
            Other,
            Other,
            HeadEnd,
            Row,
            Cell,
            Cell,
            End,
            Cell,
        ];
        let steps: Vec<(Token, f32)> = tokens.iter().map(|&t| (t, 0.5)).collect();
        let mut corners = vec![0.0; steps.len() * 8];
        corners[3 * 8..4 * 8].copy_from_slice(&[0.1, 0.2, 0.3, 0.2, 0.3, 0.4, 0.1, 0.4]);
        let reading = decode(&steps, &corners, 100.0);
        let places: Vec<_> = reading.cells.iter().map(|c| (c.row, c.col, c.rows, c.cols, c.header)).collect();
        assert_eq!(
            places,
            [(0, 0, 2, 1, true), (0, 1, 1, 2, true), (1, 1, 1, 1, false), (1, 2, 1, 1, false)]
        );
        let b = reading.cells[0].bbox;
        assert!((b.x0 - 10.0).abs() < 1e-4 && (b.y1 - 40.0).abs() < 1e-4, "{b:?}");
        assert!((reading.confidence - 0.5).abs() < 1e-6);
    }

    #[test]
    fn plain_cells_stand_last_in_the_list_and_short_corners_do_no_harm() {
        let list = tokens(["<thead>", "<td>", "<td", " colspan=\"12\""].map(str::to_owned).to_vec());
        assert_eq!(
            list,
            [Token::Other, Token::HeadStart, Token::OpenCell, Token::Colspan(12), Token::Cell, Token::End]
        );
        assert_eq!(decode(&[(Token::Row, 1.0), (Token::Cell, 1.0)], &[], 100.0).cells.len(), 1);
        assert_eq!(decode(&[(Token::End, 1.0)], &[], 100.0).cells.len(), 0);
    }
}
