//! Drawn lines found in the picture, for pages whose PDF does not tell them.

use crate::geometry::Rect;
use crate::page::Rules;
use crate::raster::components::{PixelRun, components, runs_of};

/// Side of the square whose mean brightness a pixel is compared with, px.
const WINDOW: usize = 31;
/// Levels that ink must be darker than that mean.
const DARKER: i32 = 12;
/// Shortest straight run that is a line, px, and as a share of the width (horizontal) and height (vertical) of the area.
const LEAST_RUN: usize = 25;
const SHARE_OF_WIDTH: usize = 12;
const SHARE_OF_HEIGHT: usize = 25;
/// Thicker bars are no lines, px (dilation of one pixel on either side included).
const THICK: usize = 14;
/// Smaller areas are not looked at, px.
const LEAST_AREA_SIDE: usize = 20;

/// Dark straight runs inside `bbox` of a gray page (`width` pixels a row), in page pixels.
pub fn picture_rules(gray: &[u8], width: usize, bbox: Rect) -> Rules {
    let height = gray.len() / width.max(1);
    let bound = |v: f32, most: usize| (v.max(0.0) as usize).min(most);
    let (x0, x1) = (bound(bbox.x0, width), bound(bbox.x1, width));
    let (y0, y1) = (bound(bbox.y0, height), bound(bbox.y1, height));
    if x1 < x0 + LEAST_AREA_SIDE || y1 < y0 + LEAST_AREA_SIDE {
        return Rules::default();
    }
    let (w, h) = (x1 - x0, y1 - y0);
    let area: Vec<u8> = (y0..y1).flat_map(|y| &gray[y * width + x0..y * width + x1]).copied().collect();
    let ink = ink_mask(&area, w);
    let place =
        |(a, b, c): (f32, f32, f32), dx: usize, dy: usize| (a + dx as f32, b + dx as f32, c + dy as f32);
    let horizontal = straight_runs(&ink, w, LEAST_RUN.max(w / SHARE_OF_WIDTH));
    let vertical = straight_runs(&transposed(&ink, w), h, LEAST_RUN.max(h / SHARE_OF_HEIGHT));
    Rules {
        horizontal: horizontal.into_iter().map(|r| place(r, x0, y0)).collect(),
        vertical: vertical.into_iter().map(|r| place(r, y0, x0)).collect(),
    }
}

/// Pixels darker than the mean of their surroundings.
fn ink_mask(gray: &[u8], width: usize) -> Vec<u8> {
    let height = gray.len() / width;
    let stride = width + 1;
    let mut sums = vec![0u32; stride * (height + 1)]; // may wrap; differences do not

    for y in 0..height {
        let mut row = 0u32;
        for x in 0..width {
            row = row.wrapping_add(u32::from(gray[y * width + x]));
            sums[(y + 1) * stride + x + 1] = sums[y * stride + x + 1].wrapping_add(row);
        }
    }
    let half = WINDOW / 2;
    let mut mask = vec![0u8; gray.len()];
    for y in 0..height {
        let (top, bottom) = (y.saturating_sub(half), (y + half + 1).min(height));
        for x in 0..width {
            let (left, right) = (x.saturating_sub(half), (x + half + 1).min(width));
            let sum = sums[bottom * stride + right]
                .wrapping_add(sums[top * stride + left])
                .wrapping_sub(sums[top * stride + right])
                .wrapping_sub(sums[bottom * stride + left]);
            let n = ((bottom - top) * (right - left)) as u32;
            let mean = ((sum + n / 2) / n) as i32;
            mask[y * width + x] = u8::from(i32::from(gray[y * width + x]) < mean - DARKER);
        }
    }
    mask
}

fn transposed(mask: &[u8], width: usize) -> Vec<u8> {
    let height = mask.len() / width;
    let mut out = vec![0u8; mask.len()];
    for (y, row) in mask.chunks_exact(width).enumerate() {
        for (x, &v) in row.iter().enumerate() {
            out[x * height + y] = v;
        }
    }
    out
}

/// Thin groups of runs of at least `least` pixels along the rows: `(start, end, middle row)`.
fn straight_runs(mask: &[u8], width: usize, least: usize) -> Vec<(f32, f32, f32)> {
    let height = mask.len() / width;
    let mut long = vec![0u8; mask.len()];
    for PixelRun { y, x0, x1 } in runs_of(mask, width) {
        if x1 + 1 - x0 < least {
            continue;
        }
        let (left, right) = (x0.saturating_sub(1), (x1 + 2).min(width));
        for row in y.saturating_sub(1)..(y + 2).min(height) {
            long[row * width + left..row * width + right].fill(1);
        }
    }
    components(&long, width)
        .iter()
        .filter_map(|group| {
            let top = group.iter().map(|r| r.y).min()?;
            let bottom = group.iter().map(|r| r.y).max()? + 1;
            let start = group.iter().map(|r| r.x0).min()?;
            let end = group.iter().map(|r| r.x1).max()? + 1;
            let middle = (top + bottom) as f32 / 2.0;
            (bottom - top < THICK).then_some((start as f32, end as f32, middle))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 300 x 200 page with one rule of each direction, a word-sized bar and a thick bar.
    fn page() -> Vec<u8> {
        let mut gray = vec![250u8; 300 * 200];
        let mut draw = |x0: usize, x1: usize, y0: usize, y1: usize| {
            for y in y0..y1 {
                gray[y * 300 + x0..y * 300 + x1].fill(30);
            }
        };
        draw(50, 250, 40, 42);
        draw(120, 122, 60, 180);
        draw(200, 215, 100, 103);
        draw(200, 280, 120, 145);
        gray
    }

    #[test]
    fn thin_long_runs_are_rules() {
        let rules = picture_rules(&page(), 300, Rect::new(10.0, 10.0, 300.0, 200.0));
        assert_eq!(rules.horizontal.len(), 1, "{rules:?}");
        let (a, b, y) = rules.horizontal[0];
        assert!((a - 50.0).abs() <= 1.0 && (b - 250.0).abs() <= 1.0 && (y - 41.0).abs() <= 0.5);
        assert_eq!(rules.vertical.len(), 1, "{rules:?}");
        let (a, b, x) = rules.vertical[0];
        assert!((a - 60.0).abs() <= 1.0 && (b - 180.0).abs() <= 1.0 && (x - 121.0).abs() <= 0.5);
    }

    #[test]
    fn areas_off_the_page_have_none() {
        assert!(picture_rules(&page(), 300, Rect::new(400.0, 0.0, 500.0, 90.0)).is_empty());
        assert!(picture_rules(&[], 0, Rect::new(0.0, 0.0, 50.0, 50.0)).is_empty());
    }
}
