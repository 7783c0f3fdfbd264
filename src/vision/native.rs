//! A page as patches at about its own size: `qwen-native`.
//!
//! Patches come in blocks of `merge x merge` that become one visual token: blocks row by row, and within a block row by row.

use crate::graphs::manifest::NativeGrid;
use crate::raster::Raster;

use super::picture::{Picture, Planes, VisualLayout, push_planes, resized};

/// A page's patches and how they see one another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patches {
    pub count: usize,
    /// Side of a patch, px.
    pub side: usize,
    /// `[count, 3, side, side]`
    pub values: Vec<f32>,
    /// Row and column of each patch, `[count, 2]`.
    pub places: Vec<i64>,
    pub windows: Option<Windows>,
    pub stretch: Option<Stretch>,
}

/// Attention windows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windows {
    /// Most patches of a window.
    pub size: usize,
    /// Patches of each window, `[windows, size]`; -1 fills windows at the page's edges.
    pub patches: Vec<i64>,
    /// Where each patch stands in `patches`, `[count]`.
    pub back: Vec<i64>,
}

/// Four of the learnt places for each patch, and their weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    /// `[count, 4]`
    pub places: Vec<i64>,
    /// `[count, 4]`, sums of 1.
    pub weights: Vec<f32>,
}

/// Width and height of the picture: whole visual tokens, an area within the rule's bounds, about the page's aspect ratio.
pub fn native_size(width: usize, height: usize, rule: &NativeGrid) -> (usize, usize) {
    let (mut width, mut height) = (width.max(1) as f64, height.max(1) as f64);
    let longest = width.max(height);
    if rule.max_side > 0 && longest > rule.max_side as f64 {
        let scale = rule.max_side as f64 / longest;
        (width, height) = ((width * scale).round().max(1.0), (height * scale).round().max(1.0));
    }
    let token = (rule.patch * rule.merge) as f64;
    let (least, most) = (rule.min_pixels as f64, rule.max_pixels as f64);
    let nearest = |side: f64| (side / token).round_ties_even() * token;
    let area = nearest(width) * nearest(height);
    let sized = if area > most {
        let shrink = (width * height / most).sqrt();
        [width, height].map(|side| (side / shrink / token).floor() * token)
    } else if area < least {
        let grow = (least / (width * height)).sqrt();
        [width, height].map(|side| (side * grow / token).ceil() * token)
    } else {
        [width, height].map(nearest)
    };
    // A page like a ribbon would be larger than allowed with its short side at one token.
    let [width, height] = sized.map(|side| side.clamp(token, (most / token).max(token)));
    (width as usize, height as usize)
}

/// The page as the rule says.
pub(super) fn native_patches(raster: &Raster, rule: &NativeGrid) -> Picture {
    let (width, height) = native_size(raster.width, raster.height, rule);
    let page = resized(raster, width, height, rule.pixels.filter);
    let (patch, merge) = (rule.patch, rule.merge);
    let (columns, rows) = (width / patch, height / patch);
    let mut patches = Patches { count: columns * rows, side: patch, ..Patches::default() };
    patches.values.reserve(patches.count * 3 * patch * patch);
    for (row, column) in in_blocks(rows, columns, merge) {
        push_planes(&mut patches.values, &page, (column * patch, row * patch), (patch, patch), &rule.pixels);
        patches.places.extend([row as i64, column as i64]);
    }
    if rule.window > 0 {
        patches.windows = Some(windows(rows, columns, merge, rule.window));
    }
    if rule.place_side > 0 {
        patches.stretch = Some(stretch(rows, columns, merge, rule.place_side));
    }
    let layout = VisualLayout::Grid { columns: columns / merge, rows: rows / merge };
    Picture { planes: Planes::Patches(patches), layout }
}

/// Rows and columns of the patches in their order.
fn in_blocks(rows: usize, columns: usize, merge: usize) -> impl Iterator<Item = (usize, usize)> {
    let blocks = (0..rows / merge).flat_map(move |row| (0..columns / merge).map(move |column| (row, column)));
    blocks.flat_map(move |(row, column)| {
        (0..merge * merge).map(move |n| (row * merge + n / merge, column * merge + n % merge))
    })
}

/// Squares of `side x side` patches, from the top left corner.
fn windows(rows: usize, columns: usize, merge: usize, side: usize) -> Windows {
    let across = columns.div_ceil(side);
    let size = side * side;
    let mut out = Windows { size, patches: vec![-1; rows.div_ceil(side) * across * size], back: Vec::new() };
    let mut filled = vec![0; rows.div_ceil(side) * across];
    for (patch, (row, column)) in in_blocks(rows, columns, merge).enumerate() {
        let window = row / side * across + column / side;
        let place = window * size + filled[window];
        filled[window] += 1;
        out.patches[place] = patch as i64;
        out.back.push(place as i64);
    }
    out
}

/// The square of `side x side` places stretched over the page, corners on corners, bilinear.
fn stretch(rows: usize, columns: usize, merge: usize, side: usize) -> Stretch {
    let along = |index: usize, size: usize| {
        let at = index as f32 * (side - 1) as f32 / size.saturating_sub(1).max(1) as f32;
        let low = at.floor();
        let next = (low as usize + 1).min(side - 1);
        [(low as usize, 1.0 - (at - low)), (next, at - low)]
    };
    let mut out = Stretch::default();
    for (row, column) in in_blocks(rows, columns, merge) {
        for (y, y_weight) in along(row, rows) {
            for (x, x_weight) in along(column, columns) {
                out.places.push((y * side + x) as i64);
                out.weights.push(y_weight * x_weight);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::manifest::{PixelRule, ResizeFilter};
    use crate::vision::picture::tests::reference_page;

    fn rule() -> NativeGrid {
        NativeGrid {
            patch: 14,
            merge: 2,
            min_pixels: 56 * 56,
            max_pixels: 28 * 28 * 1280,
            max_side: 0,
            window: 0,
            place_side: 0,
            pixels: PixelRule { filter: ResizeFilter::Bicubic, mean: [0.5; 3], std: [0.5; 3] },
        }
    }

    /// Sizes that the reference processor of Qwen2.5-VL chooses.
    #[test]
    fn sizes_are_the_reference_processors() {
        assert_eq!(native_size(1700, 2200, &rule()), (868, 1120));
        assert_eq!(native_size(995, 1288, &rule()), (868, 1120));
        assert_eq!(native_size(42, 70, &rule()), (56, 56));
        assert_eq!(native_size(10, 10, &rule()), (56, 56));
    }

    #[test]
    fn the_longest_side_is_bounded_first() {
        let rule = NativeGrid { max_side: 1288, max_pixels: 12_845_056, ..rule() };
        assert_eq!(native_size(1700, 2200, &rule), (1008, 1288));
        let (width, height) = native_size(30_000, 2, &NativeGrid { max_side: 0, ..rule });
        assert!(width * height <= rule.max_pixels && height == 28, "{width} x {height}");
    }

    #[test]
    fn patches_come_in_blocks_and_windows_hold_each_once() {
        let rule = NativeGrid { patch: 4, merge: 2, window: 4, min_pixels: 1, ..rule() };
        let picture = native_patches(&reference_page(48, 24), &rule);
        assert_eq!(picture.layout, VisualLayout::Grid { columns: 6, rows: 3 });
        let Planes::Patches(patches) = picture.planes else { panic!("patches") };
        assert_eq!(patches.places[..10], [0, 0, 0, 1, 1, 0, 1, 1, 0, 2]);
        let windows = patches.windows.unwrap();
        assert_eq!((windows.size, windows.patches.len()), (16, 3 * 2 * 16));
        let found: Vec<i64> = windows.back.iter().map(|&place| windows.patches[place as usize]).collect();
        assert_eq!(found, (0..72).collect::<Vec<i64>>());
        assert_eq!(windows.patches.iter().filter(|&&p| p < 0).count(), 6 * 16 - 72);
    }

    #[test]
    fn the_corners_of_the_places_are_the_pages() {
        let stretch = stretch(2, 4, 2, 8);
        assert_eq!(stretch.places[..4], [0, 1, 8, 9]);
        assert_eq!(stretch.weights[..4], [1.0, 0.0, 0.0, 0.0]);
        let last = stretch.places.len() - 4;
        assert_eq!(stretch.places[last..], [63; 4]);
        for weights in stretch.weights.chunks(4) {
            assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        }
    }
}
