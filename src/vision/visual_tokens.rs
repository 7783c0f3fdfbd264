//! The visual tokens of a page: its cells with ink; or, of what the vision graph reads, one for every character and one for every block of ink
//! without characters (as `scripts/train/visual_tokens.py` does).

use super::masses::{Found, Masses, PAGE, SLOT_HEIGHT, SLOT_WIDTH};
use super::{CellIndex, VisionInput};
use crate::graphs::manifest::CharacterTokens;
use crate::graphs::onnx::GlyphMap;

/// How far up or down the centre of a neighbour on the same line may be, and how far away at most; px.
const SAME_LINE: f32 = 8.0;
const MOST_GAP: f32 = 80.0;
/// Blocks of so many cells each way tell of ink without characters, if none is nearer to them than so many px.
const BLOCK_CELLS: usize = 2;
const BLOCK_MARGIN: f32 = 12.0;

/// V visual tokens: cells row by row; or characters by rows of cells and then from left to right, and blocks after them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VisualTokens {
    /// (x, y), px of the model's raster.
    pub centres: Vec<(f32, f32)>,
    /// The cell that each lies in.
    pub cells: Vec<CellIndex>,
    /// Of characters and blocks only, `[V, 3]`: class of the vision graph's map of the token, of the one on its left and of the one on its right; 0: no character.
    pub classes: Vec<i64>,
    /// Likewise: mass, distance to the character on the left and on the right (px; `MOST_GAP` where there is none).
    pub facts: Vec<f32>,
}

impl VisualTokens {
    /// The cells with ink.
    pub fn of_cells(input: &VisionInput) -> Self {
        let (width, height) = (input.cell_width as f32, input.cell_height as f32);
        let centre = |c: &CellIndex| ((c.column as f32 + 0.5) * width, (c.row as f32 + 0.5) * height);
        let centres = input.cells.iter().map(centre).collect();
        VisualTokens { centres, cells: input.cells.clone(), ..Self::default() }
    }

    /// The characters that the vision graph reads off the page `input` by its `map`, and the ink without them.
    pub fn of_characters(map: &GlyphMap<'_>, input: &VisionInput, options: CharacterTokens) -> Self {
        let mut found = characters(map, options.none_weight);
        let row = |f: &Found| (f.y / input.cell_height as f32).floor();
        found.sort_by(|a, b| row(a).total_cmp(&row(b)).then(a.x.total_cmp(&b.x)));
        let mut tokens = Self::default();
        for (f, [left, right]) in found.iter().zip(neighbours(&found)) {
            let classes = [f.class, left.class, right.class];
            tokens.put(input, (f.x, f.y), classes, [f.mass, left.away, right.away]);
        }
        for centre in blocks_without(&found, input) {
            tokens.put(input, centre, [0; 3], [0.0, MOST_GAP, MOST_GAP]);
        }
        tokens
    }

    fn put(&mut self, input: &VisionInput, (x, y): (f32, f32), classes: [u16; 3], facts: [f32; 3]) {
        let cell = |at: f32, size: usize, whole: usize| {
            ((at / size as f32).max(0.0) as usize).min((whole / size).saturating_sub(1))
        };
        let (row, column) =
            (cell(y, input.cell_height, input.height), cell(x, input.cell_width, input.width));
        self.centres.push((x, y));
        self.cells.push(CellIndex { row, column });
        self.classes.extend(classes.map(i64::from));
        self.facts.extend(facts);
    }

    /// `[V, parts]`: order 0 and, with three parts, y and x in model pixels.
    pub fn positions(&self, parts: usize) -> Vec<f32> {
        self.centres.iter().flat_map(|&(x, y)| [0.0, y, x].into_iter().take(parts)).collect()
    }
}

/// The characters of a page; places in px.
fn characters(map: &GlyphMap<'_>, none_weight: f32) -> Vec<Found> {
    let plane = map.rows * map.columns;
    // The graph learnt with "none" weighted: its probabilities are put right for that.
    let scale: Vec<f32> =
        map.probabilities[..plane].iter().map(|none| none / none_weight + 1.0 - none).collect();
    let mass = |class: usize, row: usize, column: usize| {
        let slot = row * map.columns + column;
        map.probabilities[class * plane + slot] / scale[slot]
    };
    let found = Masses::new(map.rows, map.columns, map.classes, mass).take_characters(PAGE);
    found
        .into_iter()
        .map(|f| Found { x: f.x * SLOT_WIDTH as f32, y: f.y * SLOT_HEIGHT as f32, ..f })
        .collect()
}

/// A character beside another one on its line; class 0 and `MOST_GAP` where there is none.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    class: u16,
    away: f32,
}

/// The next characters on the left and on the right of each.
fn neighbours(found: &[Found]) -> Vec<[Neighbour; 2]> {
    let mut by_height: Vec<&Found> = found.iter().collect();
    by_height.sort_by(|a, b| a.y.total_cmp(&b.y));
    let beside = |f: &Found| {
        let from = by_height.partition_point(|other| other.y < f.y - SAME_LINE);
        let to = by_height.partition_point(|other| other.y < f.y + SAME_LINE);
        let mut sides = [Neighbour { class: 0, away: MOST_GAP }; 2];
        for other in &by_height[from..to] {
            let away = other.x - f.x;
            let side = &mut sides[usize::from(away > 0.0)];
            if away != 0.0 && away.abs() < side.away {
                *side = Neighbour { class: other.class, away: away.abs() };
            }
        }
        sides
    };
    found.iter().map(beside).collect()
}

/// Centres of the blocks with ink and without a character in or near them, row by row.
fn blocks_without(found: &[Found], input: &VisionInput) -> Vec<(f32, f32)> {
    let count = |whole: usize, cell: usize| (whole / cell).div_ceil(BLOCK_CELLS);
    let (rows, columns) = (count(input.height, input.cell_height), count(input.width, input.cell_width));
    let (width, height) = ((BLOCK_CELLS * input.cell_width) as f32, (BLOCK_CELLS * input.cell_height) as f32);
    let mut ink = vec![false; rows * columns];
    for cell in &input.cells {
        ink[cell.row / BLOCK_CELLS * columns + cell.column / BLOCK_CELLS] = true;
    }
    let range = |at: f32, size: f32, count: usize| {
        let block = |at: f32| (at / size).floor().max(0.0) as usize;
        block(at - BLOCK_MARGIN)..(block(at + BLOCK_MARGIN) + 1).min(count)
    };
    for f in found {
        for row in range(f.y, height, rows) {
            for column in range(f.x, width, columns) {
                ink[row * columns + column] = false;
            }
        }
    }
    let centre = |(index, _): (usize, &bool)| {
        (((index % columns) as f32 + 0.5) * width, ((index / columns) as f32 + 0.5) * height)
    };
    ink.iter().enumerate().filter(|(_, ink)| **ink).map(centre).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vision::PixelMapping;

    /// A page of 6 x 8 cells of 16 px, all with ink.
    fn page() -> VisionInput {
        let cells = (0..6).flat_map(|row| (0..8).map(move |column| CellIndex { row, column })).collect();
        let mapping = PixelMapping::uniform(1.0);
        VisionInput {
            ink: Vec::new(),
            width: 128,
            height: 96,
            cells,
            cell_width: 16,
            cell_height: 16,
            mapping,
        }
    }

    /// Characters (class, x, y) with all their mass, as the vision graph says it; "none" is doubled by its weight of one half.
    fn tokens(characters: &[(usize, f32, f32)]) -> VisualTokens {
        let (classes, rows, columns) = (4, 12, 32);
        let near = |at: f32, slot: usize| (1.0 - (at - (slot as f32 + 0.5)).abs()).max(0.0);
        let mut probabilities = vec![0.0f32; classes * rows * columns];
        for row in 0..rows {
            for column in 0..columns {
                let at = |class: usize| (class * rows + row) * columns + column;
                let mut right = [0.0f32; 4];
                for &(class, x, y) in characters {
                    right[class] += near(x / SLOT_WIDTH as f32, column) * near(y / SLOT_HEIGHT as f32, row);
                }
                let none = 1.0 - right.iter().sum::<f32>();
                let whole = none * 0.5 + 1.0 - none;
                probabilities[at(0)] = none * 0.5 / whole;
                for class in 1..classes {
                    probabilities[at(class)] = right[class] / whole;
                }
            }
        }
        let map = GlyphMap { classes, rows, columns, probabilities: &probabilities };
        VisualTokens::of_characters(&map, &page(), CharacterTokens { none_weight: 0.5 })
    }

    #[test]
    fn a_character_is_a_token_with_its_neighbours() {
        let tokens = tokens(&[(2, 30.0, 40.0), (1, 19.0, 42.0), (3, 70.0, 44.0), (1, 20.0, 70.0)]);
        assert_eq!(tokens.classes[..12], [1, 0, 2, 2, 1, 3, 3, 2, 0, 1, 0, 0]);
        assert_eq!(tokens.cells[0], CellIndex { row: 2, column: 1 });
        let facts: Vec<i32> = tokens.facts[..12].iter().map(|fact| fact.round() as i32).collect();
        assert_eq!(facts, [1, 80, 11, 1, 11, 40, 1, 40, 80, 1, 80, 80]);
        let (x, y) = tokens.centres[0];
        assert!((x - 19.0).abs() < 0.1 && (y - 42.0).abs() < 0.1, "{x} {y}");
        assert!((tokens.facts[0] - 1.0).abs() < 1e-3, "the weight of none is undone: {}", tokens.facts[0]);
    }

    #[test]
    fn ink_without_characters_is_told_in_blocks() {
        let tokens = tokens(&[(2, 40.0, 40.0)]);
        // Of 3 x 4 blocks the one around the character and, 8 px away each, two beside it and the one between those.
        assert_eq!((tokens.classes[0], tokens.classes.len()), (2, 3 * 9));
        assert_eq!(tokens.centres[1], (80.0, 16.0));
        assert_eq!(tokens.positions(3)[3..6], [0.0, 16.0, 80.0]);
        assert_eq!(tokens.positions(1).len(), 9);
    }
}
