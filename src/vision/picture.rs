//! A page's raster as models read it that take a picture and a prompt: colours at the sizes that their processors choose.

use fast_image_resize as fir;

use crate::graphs::manifest::{PixelRule, Preprocessing, ResizeFilter};
use crate::raster::Raster;

use super::native::{Patches, native_patches};
use super::tiles::{aspect_tiles, capped_tiles};

/// A page whose lightest and darkest pixel differ by less than this (of 255) holds nothing to read.
const LEAST_CONTRAST: u8 = 16;

/// What the vision graph reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Planes {
    Tiles(Tiles),
    Patches(Patches),
}

/// Square tiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiles {
    pub count: usize,
    /// Side of a tile, px.
    pub side: usize,
    /// Tiles of one call of the graph.
    pub per_call: usize,
    /// `[count, 3, side, side]`
    pub values: Vec<f32>,
}

/// Where the visual tokens stand in the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisualLayout {
    /// Tiles row by row, each with the same number of tokens, then perhaps the whole page as one more; without a grid
    /// (0 x 0) the whole page alone.
    Tiles { columns: usize, rows: usize, whole: bool, tokens: usize },
    /// Tokens row by row.
    Grid { columns: usize, rows: usize },
}

/// A page as the vision graph reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub planes: Planes,
    pub layout: VisualLayout,
}

/// The page as `preprocessing` says. `None` for a page without anything to see, and for `fixed-grid` packs.
pub fn picture(raster: &Raster, preprocessing: &Preprocessing) -> Option<Picture> {
    if is_blank(raster) {
        return None;
    }
    match preprocessing {
        Preprocessing::FixedGrid(_) => None,
        Preprocessing::AspectTiles(rule) => Some(aspect_tiles(raster, rule)),
        Preprocessing::CappedTiles(rule) => Some(capped_tiles(raster, rule)),
        Preprocessing::NativeGrid(rule) => Some(native_patches(raster, rule)),
    }
}

fn is_blank(raster: &Raster) -> bool {
    let (lightest, darkest) =
        raster.rgb.iter().fold((0, 255), |(light, dark), &p| (p.max(light), p.min(dark)));
    raster.rgb.is_empty() || lightest - darkest < LEAST_CONTRAST
}

/// The raster at another size, first its width, then its height, as Pillow does: after the first step numbers are cut to 0..255. The
/// original's own pixels if the size is the same; black if a side is 0.
pub(super) fn resized(raster: &Raster, width: usize, height: usize, filter: ResizeFilter) -> Raster {
    let wide =
        if raster.width == width { None } else { Some(stretched(raster, width, raster.height, filter)) };
    let wide = wide.as_ref().unwrap_or(raster);
    if wide.height == height { wide.clone() } else { stretched(wide, width, height, filter) }
}

/// The raster at a size of which one side is its own.
fn stretched(raster: &Raster, width: usize, height: usize, filter: ResizeFilter) -> Raster {
    let black = || Raster::filled(width, height, [0; 3]);
    let sizes = [raster.width, raster.height, width, height].map(|side| u32::try_from(side).unwrap_or(0));
    let [from_width, from_height, to_width, to_height] = sizes;
    if sizes.contains(&0) {
        return black();
    }
    let Ok(source) = fir::images::ImageRef::new(from_width, from_height, &raster.rgb, fir::PixelType::U8x3)
    else {
        return black();
    };
    let mut target = fir::images::Image::new(to_width, to_height, fir::PixelType::U8x3);
    let kernel = match filter {
        ResizeFilter::Bicubic => fir::FilterType::CatmullRom,
        ResizeFilter::Lanczos => fir::FilterType::Lanczos3,
    };
    let options = fir::ResizeOptions::new().resize_alg(fir::ResizeAlg::Convolution(kernel));
    match fir::Resizer::new().resize(&source, &mut target, &options) {
        Ok(()) => Raster { width, height, rgb: target.into_vec() },
        Err(_) => black(),
    }
}

/// Writes a rectangle of `raster` as three planes of numbers, `[3, height, width]`.
pub(super) fn push_planes(
    out: &mut Vec<f32>,
    raster: &Raster,
    (left, top): (usize, usize),
    (width, height): (usize, usize),
    rule: &PixelRule,
) {
    for channel in 0..3 {
        let number = |pixel: u8| (f32::from(pixel) / 255.0 - rule.mean[channel]) / rule.std[channel];
        for y in top..top + height {
            let start = (y * raster.width + left) * 3;
            let row = &raster.rgb[start..start + width * 3];
            out.extend(row.iter().skip(channel).step_by(3).map(|&pixel| number(pixel)));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The page of `scripts/reference/published/page.py`.
    pub(crate) fn reference_page(width: usize, height: usize) -> Raster {
        let mut raster = Raster::filled(width, height, [20; 3]);
        for y in 0..height {
            for x in 0..width {
                if !(x / 9 + y / 13).is_multiple_of(3) {
                    for c in 0..3 {
                        raster.rgb[(y * width + x) * 3 + c] =
                            ((x * (3 + c) + y * (2 + 2 * c) + 40 * c) % 256) as u8;
                    }
                }
            }
        }
        raster
    }

    /// The largest difference between the numbers of some planes, `[n, 3, ...]`, and the reference's pixels, in 255ths.
    pub(crate) fn largest_difference(
        values: &[f32],
        plane: usize,
        rule: &PixelRule,
        reference: &[u8],
    ) -> f32 {
        assert_eq!(values.len(), reference.len());
        let pixel = |(at, value): (usize, &f32)| {
            let channel = at / plane % 3;
            (value * rule.std[channel] + rule.mean[channel]) * 255.0
        };
        let differences =
            values.iter().enumerate().map(pixel).zip(reference).map(|(a, &b)| (a - f32::from(b)).abs());
        differences.fold(0.0, f32::max)
    }

    #[test]
    fn a_page_of_one_colour_has_no_picture() {
        assert!(is_blank(&Raster::filled(40, 30, [250, 248, 251])));
        assert!(is_blank(&Raster { width: 0, height: 0, rgb: Vec::new() }));
        assert!(!is_blank(&reference_page(40, 30)));
    }

    #[test]
    fn planes_are_cut_by_channel() {
        let mut raster = Raster::filled(3, 2, [0, 255, 51]);
        raster.rgb[3..6].copy_from_slice(&[255, 0, 0]);
        let rule = PixelRule { filter: ResizeFilter::Bicubic, mean: [0.5, 0.0, 0.0], std: [0.5, 1.0, 0.2] };
        let mut out = Vec::new();
        push_planes(&mut out, &raster, (1, 0), (2, 1), &rule);
        assert_eq!(out, [1.0, -1.0, 0.0, 1.0, 0.0, 1.0]);
    }
}
