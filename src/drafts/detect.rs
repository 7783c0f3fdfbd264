//! Text detection: PP-OCRv6 (`PP-OCRv6_det_small.onnx`), differentiable binarisation.
//!
//! Input `[1, 3, H, W]`, multiples of 32, BGR, -1..1. Output `[1, 1, H, W]`, the probability of text. Pixels over 0.3, dilated
//! 2 x 2, form groups; the smallest rotated rectangle around each, mean probability at least 0.5, grown on every side by
//! `area * 1.6 / perimeter` (the network was trained on shrunken boxes).

use std::path::Path;

use ndarray::Ix4;

use super::network::{Network, numbers, output};
use crate::graphs::GraphError;
use crate::graphs::runtime::RuntimeError;
use crate::raster::Raster;
use crate::raster::components::{PixelRun, components};
use crate::raster::planes::{Normalisation, write_planes};
use crate::raster::quad::{Quad, RotatedRect, min_area_rect};

const NAME: &str = "detection";
/// The shortest side is scaled up to this, as long as the longest stays within its bound.
const SHORT_SIDE: f32 = 736.0;
/// Longest side of the first look, px.
const LONG_SIDE: f32 = 960.0;
/// Longest side of the second look, for pages with small print.
const FINE_SIDE: f32 = 1600.0;
/// A quarter of the lines thinner than this (network pixels, grown boxes): lines may have been lost.
const THIN: f32 = 11.0;
const PIXEL: f32 = 0.3;
const BOX: f32 = 0.5;
const GROWTH: f32 = 1.6;
/// Shortest side of a group, and of a grown box, network pixels.
const LEAST_SIDE: f32 = 3.0;
const LEAST_GROWN: f32 = 5.0;
/// More lines than this are noise (halftone, textures); the first ones are kept.
const MOST_LINES: usize = 3000;

/// The text detection network.
#[derive(Debug)]
pub struct Detector {
    network: Network,
}

impl Detector {
    pub fn open(path: &Path, threads: usize) -> Result<Self, RuntimeError> {
        Ok(Detector { network: Network::open(path, NAME, threads)? })
    }

    /// Text lines, top to bottom, in pixels of `raster`. Looks at a small picture first, and at a finer one when the lines
    /// found there are thin.
    pub fn detect(&mut self, raster: &Raster) -> Result<Vec<Quad>, GraphError> {
        let (quads, scale) = self.look(raster, LONG_SIDE)?;
        let mut thin: Vec<f32> = quads.iter().map(|q| q.width().min(q.height()) * scale).collect();
        thin.sort_by(f32::total_cmp);
        let small_print = thin.get(thin.len() / 4).is_some_and(|&t| t < THIN);
        if scale < 1.0 && small_print {
            return Ok(self.look(raster, FINE_SIDE)?.0);
        }
        Ok(quads)
    }

    /// -> quads and the network's pixels per picture pixel.
    fn look(&mut self, raster: &Raster, long_side: f32) -> Result<(Vec<Quad>, f32), GraphError> {
        let (w, h) = (raster.width.max(1) as f32, raster.height.max(1) as f32);
        let scale = (SHORT_SIDE / w.min(h)).max(1.0).min(long_side / w.max(h));
        let side = |v: f32| ((v * scale / 32.0).round_ties_even() as usize * 32).max(32);
        let (width, height) = (side(w), side(h));
        let picture = if scale < 1.0 {
            raster.resized_area(width, height)
        } else {
            raster.resized_linear(width, height)
        };
        let mut input = vec![0.0; 3 * width * height];
        write_planes(&picture, &Normalisation::CENTRED, &mut input, width, height);
        let outputs = self.network.run([1, 3, height, width], &input)?;
        let map = output::<Ix4>(&outputs, 0, NAME)?;
        if map.shape() != [1, 1, height, width] {
            let message = format!("output of shape {:?}", map.shape());
            return Err(GraphError { graph: NAME.into(), message });
        }
        let back = [w / width as f32, h / height as f32];
        let rects = boxes(numbers(&map), width);
        let quads =
            rects.iter().map(|r| Quad::ordered(r.corners().map(|p| [p[0] * back[0], p[1] * back[1]])));
        Ok((quads.collect(), scale))
    }
}

/// Grown rectangles of the text lines of a probability map.
fn boxes(map: &[f32], width: usize) -> Vec<RotatedRect> {
    components(&dilated(map, width), width)
        .iter()
        .take(MOST_LINES)
        .filter_map(|group| {
            let rect = min_area_rect(&outline(group))?;
            if rect.width.min(rect.height) < LEAST_SIDE || mean_inside(map, width, &rect) < BOX {
                return None;
            }
            let grown = rect.grown(rect.width * rect.height * GROWTH / (2.0 * (rect.width + rect.height)));
            (grown.width.min(grown.height) >= LEAST_GROWN).then_some(grown)
        })
        .collect()
}

/// Pixels over the threshold, each spread one to the right and below (a 2 x 2 dilation).
fn dilated(map: &[f32], width: usize) -> Vec<u8> {
    let mut mask = vec![0u8; map.len()];
    for (at, _) in map.iter().enumerate().filter(|(_, p)| **p > PIXEL) {
        let right = at % width + 1 < width;
        mask[at] = 1;
        if right {
            mask[at + 1] = 1;
        }
        if at + width < map.len() {
            mask[at + width] = 1;
            if right {
                mask[at + width + 1] = 1;
            }
        }
    }
    mask
}

fn outline(group: &[PixelRun]) -> Vec<[f32; 2]> {
    group.iter().flat_map(|r| [[r.x0 as f32, r.y as f32], [r.x1 as f32, r.y as f32]]).collect()
}

/// Mean of the map over the pixels inside `rect`.
fn mean_inside(map: &[f32], width: usize, rect: &RotatedRect) -> f32 {
    let bounds = Quad(rect.corners()).bbox();
    let height = map.len() / width.max(1);
    let (half_w, half_h) = (rect.width / 2.0 + 0.5, rect.height / 2.0 + 0.5);
    let rows = (bounds.y0.floor().max(0.0) as usize)..((bounds.y1.ceil().max(0.0) as usize + 1).min(height));
    let columns =
        (bounds.x0.floor().max(0.0) as usize)..((bounds.x1.ceil().max(0.0) as usize + 1).min(width));
    let (mut sum, mut n) = (0.0, 0u32);
    for y in rows {
        let dy = y as f32 - rect.center[1];
        for x in columns.clone() {
            let dx = x as f32 - rect.center[0];
            let along = dx * rect.axis[0] + dy * rect.axis[1];
            let across = dy * rect.axis[0] - dx * rect.axis[1];
            if along.abs() <= half_w && across.abs() <= half_h {
                sum += map[y * width + x];
                n += 1;
            }
        }
    }
    sum / n.max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_of_the_map_is_grown_by_its_area_over_its_perimeter() {
        let width = 100;
        let mut map = vec![0f32; width * 60];
        for y in 20..29 {
            map[y * width + 10..y * width + 69].fill(0.9);
        }
        map[50 * width + 50] = 0.9; // too small
        let found = boxes(&map, width);
        assert_eq!(found.len(), 1);
        let b = Quad(found[0].corners()).bbox();
        // dilated: x 10..=69, y 20..=29, so 59 x 9; grown by 59 * 9 * 1.6 / 136 = 6.25
        assert!((b.x0 - 3.75).abs() < 0.1 && (b.x1 - 75.25).abs() < 0.1, "{b:?}");
        assert!((b.y0 - 13.75).abs() < 0.1 && (b.y1 - 35.25).abs() < 0.1, "{b:?}");
    }

    #[test]
    fn an_unsure_bar_is_no_text() {
        let width = 100;
        let mut map = vec![0f32; width * 60];
        for y in 20..29 {
            map[y * width + 10..y * width + 69].fill(0.4);
        }
        assert!(boxes(&map, width).is_empty());
    }
}
