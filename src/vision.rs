//! Raster -> what the vision graph reads: gray ink at the model's scale and the cells that hold ink. And what it says -> the visual tokens that the
//! prefill graph reads: those cells, or the characters on them.
//!
//! ```text
//! page raster (px) --[PixelMapping]--> model raster (px, padded to whole cells) --> cells [row, column] with ink
//!   masses of characters --[masses]--> characters --[visual_tokens]--> visual tokens
//! ```

pub(crate) mod masses;
pub mod native;
pub mod picture;
pub mod prompt;
pub mod tiles;
pub mod visual_tokens;

use fast_image_resize as fir;

use crate::geometry::Rect;
use crate::graphs::manifest::FixedGrid;
use crate::lines::median;
use crate::page::Word;
use crate::raster::Raster;

/// Scales outside of this range come from wrong type sizes (training: at most 4 from a text layer's own size).
const SCALE_RANGE: (f32, f32) = (0.05, 4.0);

/// Page pixels <-> pixels of the model's raster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PixelMapping {
    /// Model pixels per page pixel, along x and y (they differ by rounding of the raster's size only).
    pub scale_x: f32,
    pub scale_y: f32,
}

impl PixelMapping {
    pub fn uniform(scale: f32) -> Self {
        PixelMapping { scale_x: scale, scale_y: scale }
    }

    /// A rectangle of the page in model pixels.
    pub fn to_model(&self, r: Rect) -> Rect {
        Rect::new(r.x0 * self.scale_x, r.y0 * self.scale_y, r.x1 * self.scale_x, r.y1 * self.scale_y)
    }

    /// A rectangle of the model's raster in page pixels.
    pub fn to_page(&self, r: Rect) -> Rect {
        Rect::new(r.x0 / self.scale_x, r.y0 / self.scale_y, r.x1 / self.scale_x, r.y1 / self.scale_y)
    }
}

/// A cell of the model's raster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellIndex {
    pub row: usize,
    pub column: usize,
}

/// One page as the vision and prefill graphs read it.
#[derive(Clone, Debug, PartialEq)]
pub struct VisionInput {
    /// `[height, width]`, 0..1, 1 = black; the padding is 0.
    pub ink: Vec<f32>,
    /// A whole number of cells each.
    pub width: usize,
    pub height: usize,
    /// Cells with ink, row by row.
    pub cells: Vec<CellIndex>,
    pub cell_width: usize,
    pub cell_height: usize,
    pub mapping: PixelMapping,
}

/// Makes the model's raster of a page.
///
/// The scale comes from the words' type sizes; without words from `raster_dpi` (pixels per inch of `raster`) and the manifest's
/// default. It is lowered until the raster and its cells are within the manifest's limits.
pub fn fixed_grid(raster: &Raster, words: &[Word], raster_dpi: f32, grid: &FixedGrid) -> VisionInput {
    let gray = raster.gray();
    let mut scale = first_scale(raster, words, raster_dpi, grid);
    loop {
        let input = at_scale(raster, &gray, scale, grid);
        let count = input.cells.len();
        let smallest = input.width <= grid.cell_width && input.height <= grid.cell_height;
        if count <= grid.max_cells || smallest {
            return input;
        }
        // Cells fall with the square of the scale; a little more, so that ragged edges do not cost another round.
        scale *= (grid.max_cells as f32 / count as f32).sqrt().min(0.97);
    }
}

/// The mapping of [`fixed_grid`] for a page whose cells are within the limit, without a look at the pixels.
pub fn first_mapping(raster: &Raster, words: &[Word], raster_dpi: f32, grid: &FixedGrid) -> PixelMapping {
    mapping(raster, inner_size(raster, first_scale(raster, words, raster_dpi, grid)))
}

/// Model pixels per page pixel within the limit of the raster's sides.
fn first_scale(raster: &Raster, words: &[Word], raster_dpi: f32, grid: &FixedGrid) -> f32 {
    let longest = raster.width.max(raster.height).max(1) as f32;
    page_scale(words, raster_dpi, grid).min(grid.max_side as f32 / longest)
}

/// Width and height of the page in model pixels.
fn inner_size(raster: &Raster, scale: f32) -> (usize, usize) {
    let sized = |side: usize| ((side as f32 * scale).round() as usize).max(1);
    (sized(raster.width), sized(raster.height))
}

fn mapping(raster: &Raster, (width, height): (usize, usize)) -> PixelMapping {
    PixelMapping {
        scale_x: width as f32 / raster.width.max(1) as f32,
        scale_y: height as f32 / raster.height.max(1) as f32,
    }
}

/// Model pixels per page pixel, before any limit: from the median type size, each word counted once a character.
fn page_scale(words: &[Word], raster_dpi: f32, grid: &FixedGrid) -> f32 {
    let sizes = words.iter().filter(|w| w.size > 0.0 && w.size.is_finite());
    let size = median(sizes.flat_map(|w| std::iter::repeat_n(w.size, w.text.chars().count().min(40))));
    let scale = if size > 0.0 {
        grid.x_height / (grid.x_height_share * size)
    } else {
        grid.default_dpi / if raster_dpi > 0.0 { raster_dpi } else { grid.default_dpi }
    };
    scale.clamp(SCALE_RANGE.0, SCALE_RANGE.1)
}

/// The page at one scale.
fn at_scale(raster: &Raster, gray: &[u8], scale: f32, grid: &FixedGrid) -> VisionInput {
    let (inner_width, inner_height) = inner_size(raster, scale);
    let scaled = resized(gray, (raster.width, raster.height), (inner_width, inner_height));
    let width = inner_width.next_multiple_of(grid.cell_width);
    let height = inner_height.next_multiple_of(grid.cell_height);
    let mut ink = vec![0.0; width * height];
    for (to, from) in ink.chunks_exact_mut(width).zip(scaled.chunks_exact(inner_width)) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = 1.0 - f32::from(from) / 255.0;
        }
    }
    let mapping = mapping(raster, (inner_width, inner_height));
    let cells = cells_with_ink(&ink, width, grid);
    VisionInput {
        ink,
        width,
        height,
        cells,
        cell_width: grid.cell_width,
        cell_height: grid.cell_height,
        mapping,
    }
}

/// Gray pixels at another size: area average when smaller, bilinear when larger. White if the raster is empty.
fn resized(gray: &[u8], from: (usize, usize), to: (usize, usize)) -> Vec<u8> {
    if from == to {
        return gray.to_vec();
    }
    let white = || vec![255; to.0 * to.1];
    if from.0 == 0 || from.1 == 0 {
        return white();
    }
    let (Ok(from_width), Ok(from_height)) = (u32::try_from(from.0), u32::try_from(from.1)) else {
        return white();
    };
    let mut target = fir::images::Image::new(to.0 as u32, to.1 as u32, fir::PixelType::U8);
    let Ok(source) = fir::images::ImageRef::new(from_width, from_height, gray, fir::PixelType::U8) else {
        return white();
    };
    let options =
        fir::ResizeOptions::new().resize_alg(fir::ResizeAlg::Convolution(fir::FilterType::Bilinear));
    match fir::Resizer::new().resize(&source, &mut target, &options) {
        Ok(()) => target.into_vec(),
        Err(_) => white(),
    }
}

/// Cells whose darkest pixel has more ink than the threshold.
fn cells_with_ink(ink: &[f32], width: usize, grid: &FixedGrid) -> Vec<CellIndex> {
    let columns = width / grid.cell_width;
    let mut cells = Vec::new();
    for (row, band) in ink.chunks_exact(width * grid.cell_height).enumerate() {
        let mut darkest = vec![0.0f32; columns];
        for line in band.chunks_exact(width) {
            for (darkest, pixels) in darkest.iter_mut().zip(line.chunks_exact(grid.cell_width)) {
                *darkest = pixels.iter().copied().fold(*darkest, f32::max);
            }
        }
        let inked = darkest.iter().enumerate().filter(|(_, ink)| **ink > grid.ink_threshold);
        cells.extend(inked.map(|(column, _)| CellIndex { row, column }));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::visual_tokens::VisualTokens;
    use super::*;
    use crate::graphs::manifest::Preprocessing;
    use crate::lines::tests::word;

    fn grid() -> FixedGrid {
        let manifest = crate::graphs::manifest::tests::tiny();
        let preprocessing = crate::graphs::manifest::tests::parse(&manifest).unwrap().preprocessing;
        let Preprocessing::FixedGrid(grid) = preprocessing else { panic!("a fixed grid") };
        grid
    }

    /// A white raster with black rectangles.
    fn page(width: usize, height: usize, black: &[(usize, usize, usize, usize)]) -> Raster {
        let mut raster = Raster::filled(width, height, [255; 3]);
        for &(x0, y0, x1, y1) in black {
            for y in y0..y1 {
                raster.rgb[(y * width + x0) * 3..(y * width + x1) * 3].fill(0);
            }
        }
        raster
    }

    #[test]
    fn cells_with_ink_and_their_centres() {
        let raster = page(70, 40, &[(0, 0, 3, 3), (65, 33, 68, 36)]);
        let input = fixed_grid(&raster, &[], 136.0, &grid());
        assert_eq!((input.width, input.height), (96, 48));
        assert_eq!(input.cells, [CellIndex { row: 0, column: 0 }, CellIndex { row: 2, column: 2 }]);
        assert_eq!(VisualTokens::of_cells(&input).positions(3), [0.0, 8.0, 16.0, 0.0, 40.0, 80.0]);
        assert_eq!(input.ink[0], 1.0);
        assert_eq!(input.ink[69], 0.0);
        assert_eq!(input.ink[95], 0.0, "the padding has no ink");
    }

    #[test]
    fn the_scale_makes_letters_as_high_as_the_model_expects() {
        let raster = page(800, 600, &[(10, 10, 400, 30)]);
        let words = [word("twenty", 10.0, 10.0, 90.0, 30.0), word("four", 100.0, 10.0, 140.0, 30.0)];
        let input = fixed_grid(&raster, &words, 200.0, &grid());
        // Font height 20 px, lower-case letters 0.43 of it: 8.6 px, to become 8.5.
        assert!((input.mapping.scale_x - 8.5 / 8.6).abs() < 2e-3, "{:?}", input.mapping);
        let by_dpi = fixed_grid(&raster, &[], 200.0, &grid());
        assert!((by_dpi.mapping.scale_x - 0.68).abs() < 2e-3, "{:?}", by_dpi.mapping);
        let there = by_dpi.mapping.to_model(Rect::new(100.0, 50.0, 200.0, 80.0));
        let back = by_dpi.mapping.to_page(there);
        assert!((back.x1 - 200.0).abs() < 1e-3 && (back.y0 - 50.0).abs() < 1e-3);
        assert!((there.x0 - 68.0).abs() < 0.1);
    }

    #[test]
    fn a_dark_page_is_made_smaller_until_its_cells_fit() {
        let raster = page(900, 900, &[(0, 0, 900, 900)]);
        let limits = FixedGrid { max_cells: 200, max_side: 640, ..grid() };
        let input = fixed_grid(&raster, &[], 136.0, &limits);
        assert!(!input.cells.is_empty() && input.cells.len() <= 200, "{}", input.cells.len());
        assert!(input.width <= 640);
    }

    #[test]
    fn a_blank_or_empty_raster_has_no_cells() {
        assert!(fixed_grid(&page(100, 100, &[]), &[], 136.0, &grid()).cells.is_empty());
        let empty = Raster { width: 0, height: 0, rgb: Vec::new() };
        assert!(fixed_grid(&empty, &[], 0.0, &grid()).cells.is_empty());
    }
}
