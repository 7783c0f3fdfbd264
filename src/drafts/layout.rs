//! Page layout: PicoDet trained on CDLA (`layout_cdla.onnx`), ten classes.
//!
//! Input `[1, 3, 800, 608]`, BGR, ImageNet constants, the page squeezed (bilinear, aspect not kept). Outputs: four class maps
//! `[1, A, 10]`, already through the sigmoid, then four box maps `[1, A, 32]`, for strides 8 16 32 64, `A` cells row by row.
//! 32 = left, top, right, bottom x 8 bins: the softmax's expectation times the stride is the distance from the cell's centre.

use std::path::Path;

use ndarray::Ix3;

use super::network::{Network, numbers, output};
use crate::geometry::Rect;
use crate::graphs::GraphError;
use crate::graphs::runtime::RuntimeError;
use crate::lines::median;
use crate::page::{Kind, Region, Word};
use crate::raster::Raster;
use crate::raster::planes::{Normalisation, write_planes};
use crate::raster::resize::{Axis, sample_linear};

const NAME: &str = "layout";
const WIDTH: usize = 608;
const HEIGHT: usize = 800;
const STRIDES: [usize; 4] = [8, 16, 32, 64];
const BINS: usize = 8;
/// Cells whose best score is lower are forgotten at once.
const FLOOR: f32 = 0.1;
/// Boxes that overlap a better one by more than this (intersection over union) are the same region.
const SAME: f32 = 0.5;
/// Boxes that lie in a better one by more than this share are part of it, unless it is a figure.
const INSIDE: f32 = 0.75;
/// Share of the smaller of two titles above which they are one title.
const ONE_TITLE: f32 = 0.6;
/// Narrower or lower boxes (page pixels) are noise.
const LEAST_SIDE: f32 = 4.0;
/// Pages with a longest side below this are crops of pages rather than pages.
const SMALL_PICTURE: usize = 900;
/// Height of a text line, in network pixels, that the network knows from its training pages.
const LINE_HEIGHT: f32 = 10.0;

/// Least score of a region.
pub const THRESHOLD: f32 = 0.35;

const CLASSES: usize = 10;
/// `text title figure figure_caption table table_caption header footer reference equation`, the model's own order.
const KINDS: [Kind; CLASSES] = [
    Kind::Text,
    Kind::Heading,
    Kind::Figure,
    Kind::Caption,
    Kind::Table,
    Kind::Caption,
    Kind::Header,
    Kind::Footer,
    Kind::Reference,
    Kind::Formula,
];

/// A cell of the network's maps that may be a region.
#[derive(Clone, Debug, PartialEq)]
struct Candidate {
    /// In pixels of the canvas.
    bbox: Rect,
    scores: [f32; CLASSES],
}

/// What one run of the network saw. Regions are made from it for any threshold and any kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutMaps {
    candidates: Vec<Candidate>,
    canvas: Canvas,
}

/// The white sheet on which the page was laid: its size, and where the page stands on it, in page pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Canvas {
    width: f32,
    height: f32,
    left: f32,
    top: f32,
    page_width: f32,
    page_height: f32,
}

impl Canvas {
    /// The page itself; landscape pages and small pictures stand on a portrait sheet on which their lines are as high as on
    /// the pages that the network was trained with.
    fn for_page(raster: &Raster, words: &[Word]) -> Self {
        let (w, h) = (raster.width as f32, raster.height as f32);
        let whole = Canvas { width: w, height: h, left: 0.0, top: 0.0, page_width: w, page_height: h };
        if h >= 0.9 * w && raster.width.max(raster.height) >= SMALL_PICTURE {
            return whole;
        }
        let size = median(words.iter().map(|word| word.size));
        let scale =
            if size > 0.0 { (LINE_HEIGHT / size).min(1.0) } else { HEIGHT as f32 / w.max(h).max(1.0) };
        let height = h.max((HEIGHT as f32 / scale).round());
        let width = w.max((WIDTH as f32 / scale).round());
        let aspect = HEIGHT as f32 / WIDTH as f32;
        let (height, width) = (height.max((width * aspect).round()), width.max((height / aspect).round()));
        let (left, top) = (((width - w) / 2.0).floor(), ((height - h) / 8.0).floor());
        Canvas { width, height, left, top, ..whole }
    }

    fn draw(&self, raster: &Raster) -> Raster {
        let x = Axis { scale: self.width / WIDTH as f32, offset: self.left };
        let y = Axis { scale: self.height / HEIGHT as f32, offset: self.top };
        if self.width == self.page_width && self.height == self.page_height {
            raster.resized_linear(WIDTH, HEIGHT)
        } else {
            sample_linear(raster, WIDTH, HEIGHT, x, y)
        }
    }

    /// A box in input pixels -> in canvas pixels.
    fn input_to_canvas(&self, b: Rect) -> Rect {
        let (w, h) = (WIDTH as f32, HEIGHT as f32);
        let (sx, sy) = (self.width / w, self.height / h);
        let x = |v: f32| v.clamp(0.0, w) * sx;
        let y = |v: f32| v.clamp(0.0, h) * sy;
        Rect::new(x(b.x0), y(b.y0), x(b.x1), y(b.y1))
    }

    /// A box in canvas pixels -> the part of it on the page, in page pixels.
    fn canvas_to_page(self, b: Rect) -> Option<Rect> {
        let x = |v: f32| (v - self.left).clamp(0.0, self.page_width);
        let y = |v: f32| (v - self.top).clamp(0.0, self.page_height);
        let cut = Rect::new(x(b.x0), y(b.y0), x(b.x1), y(b.y1));
        (cut.x1 > cut.x0 && cut.y1 > cut.y0).then_some(cut)
    }
}

/// The layout network.
#[derive(Debug)]
pub struct LayoutNet {
    network: Network,
}

impl LayoutNet {
    pub fn open(path: &Path, threads: usize) -> Result<Self, RuntimeError> {
        Ok(LayoutNet { network: Network::open(path, NAME, threads)? })
    }

    /// One run of the network. `words` (may be empty) tell the size of the type on small pictures.
    pub fn candidates(&mut self, raster: &Raster, words: &[Word]) -> Result<LayoutMaps, GraphError> {
        let canvas = Canvas::for_page(raster, words);
        let mut input = vec![0.0; 3 * WIDTH * HEIGHT];
        write_planes(&canvas.draw(raster), &Normalisation::IMAGENET, &mut input, WIDTH, HEIGHT);
        let outputs = self.network.run([1, 3, HEIGHT, WIDTH], &input)?;
        let mut candidates = Vec::new();
        for (level, &stride) in STRIDES.iter().enumerate() {
            let scores = output::<Ix3>(&outputs, level, NAME)?;
            let distances = output::<Ix3>(&outputs, level + STRIDES.len(), NAME)?;
            let columns = WIDTH.div_ceil(stride);
            decode(numbers(&scores), numbers(&distances), stride, columns, &mut candidates);
        }
        for c in &mut candidates {
            c.bbox = canvas.input_to_canvas(c.bbox);
        }
        Ok(LayoutMaps { candidates, canvas })
    }
}

/// Cells of one stride whose best score reaches [`FLOOR`], boxes in input pixels.
fn decode(scores: &[f32], distances: &[f32], stride: usize, columns: usize, out: &mut Vec<Candidate>) {
    let cells = scores.as_chunks::<CLASSES>().0.iter().zip(distances.as_chunks::<{ 4 * BINS }>().0);
    for (cell, (scores, distances)) in cells.enumerate() {
        if !scores.iter().any(|&s| s > FLOOR) {
            continue;
        }
        let mut side = [0f32; 4];
        for (value, bins) in side.iter_mut().zip(distances.chunks_exact(BINS)) {
            *value = expectation(bins) * stride as f32;
        }
        let (cx, cy) = (
            ((cell % columns) as f32 + 0.5) * stride as f32,
            ((cell / columns) as f32 + 0.5) * stride as f32,
        );
        let bbox = Rect::new(cx - side[0], cy - side[1], cx + side[2], cy + side[3]);
        out.push(Candidate { bbox, scores: *scores });
    }
}

/// Expected index under the softmax of `logits`.
fn expectation(logits: &[f32]) -> f32 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (mut sum, mut weighted) = (0.0, 0.0);
    for (i, logit) in logits.iter().enumerate() {
        let e = (logit - top).exp();
        sum += e;
        weighted += e * i as f32;
    }
    if sum > 0.0 { weighted / sum } else { 0.0 }
}

/// Regions from one run's maps: every cell's best class among the kinds that are not in `skip`, scores of at least
/// `threshold`, non-maximum suppression across all kinds. Best first, boxes in page pixels, no words.
pub fn regions(maps: &LayoutMaps, threshold: f32, skip: &[Kind]) -> Vec<Region> {
    let mut best: Vec<(f32, usize, Rect)> = maps
        .candidates
        .iter()
        .filter_map(|c| {
            let allowed = (0..CLASSES).filter(|&k| !skip.contains(&KINDS[k]));
            let class = allowed.max_by(|&a, &b| c.scores[a].total_cmp(&c.scores[b]))?;
            Some((c.scores[class], class, c.bbox))
        })
        .filter(|(score, _, b)| *score >= threshold && b.width() >= LEAST_SIDE && b.height() >= LEAST_SIDE)
        .collect();
    best.sort_by(|a, b| b.0.total_cmp(&a.0));
    suppress(&best)
        .into_iter()
        .filter_map(|(score, class, canvas_box)| {
            let bbox = maps.canvas.canvas_to_page(canvas_box)?;
            let kind = KINDS[class];
            Some(Region { kind, score, bbox, words: Vec::new(), cells: None, markup: None, stop: None })
        })
        .collect()
}

/// Drops boxes that a better one already stands for; a title widens the title that it overlaps. Input best first.
fn suppress(candidates: &[(f32, usize, Rect)]) -> Vec<(f32, usize, Rect)> {
    let mut out: Vec<(f32, usize, Rect)> = Vec::new();
    'next: for &(score, class, bbox) in candidates {
        for (_, other, kept) in &mut out {
            let (union, share) = (bbox.iou(kept), bbox.overlap_of_smaller(kept));
            if *other == class && KINDS[class] == Kind::Heading && share > ONE_TITLE && union <= SAME {
                *kept = kept.union(&bbox);
            }
            if union > SAME || share > INSIDE && KINDS[*other] != Kind::Figure {
                continue 'next;
            }
        }
        out.push((score, class, bbox));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(class: usize, score: f32) -> [f32; CLASSES] {
        let mut s = [0.02; CLASSES];
        s[class] = score;
        s
    }

    fn maps(candidates: Vec<Candidate>) -> LayoutMaps {
        let canvas = Canvas {
            width: 1000.0,
            height: 1000.0,
            left: 0.0,
            top: 0.0,
            page_width: 1000.0,
            page_height: 1000.0,
        };
        LayoutMaps { candidates, canvas }
    }

    #[test]
    fn a_cell_becomes_the_box_around_its_centre() {
        let mut distances = [0f32; 64];
        for side in 0..4 {
            distances[32 + side * 8 + side] = 100.0; // second cell: 0, 1, 2, 3 strides
        }
        let mut class_scores = [0f32; 20];
        class_scores[10 + 4] = 0.8;
        let mut out = Vec::new();
        decode(&class_scores, &distances, 8, 1, &mut out);
        assert_eq!(out.len(), 1);
        let b = out[0].bbox;
        let wanted = Rect::new(4.0, 12.0 - 8.0, 4.0 + 16.0, 12.0 + 24.0);
        assert!((b.x0 - wanted.x0).abs() + (b.y0 - wanted.y0).abs() < 1e-3, "{b:?}");
        assert!((b.x1 - wanted.x1).abs() + (b.y1 - wanted.y1).abs() < 1e-3, "{b:?}");
    }

    #[test]
    fn overlapping_boxes_go_across_kinds_and_figures_keep_what_is_in_them() {
        let table = Candidate { bbox: Rect::new(0.0, 0.0, 100.0, 100.0), scores: scores(4, 0.9) };
        let rival = Candidate { bbox: Rect::new(0.0, 0.0, 100.0, 90.0), scores: scores(2, 0.6) };
        let figure = Candidate { bbox: Rect::new(200.0, 0.0, 400.0, 100.0), scores: scores(2, 0.8) };
        let inner = Candidate { bbox: Rect::new(210.0, 10.0, 250.0, 30.0), scores: scores(0, 0.5) };
        let weak = Candidate { bbox: Rect::new(500.0, 0.0, 600.0, 30.0), scores: scores(0, 0.2) };
        let maps = maps(vec![weak, inner, rival, figure, table]);
        let kinds = |skip: &[Kind]| regions(&maps, 0.35, skip).iter().map(|r| r.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&[]), [Kind::Table, Kind::Figure, Kind::Text]);
        assert_eq!(kinds(&[Kind::Table]), [Kind::Figure, Kind::Figure, Kind::Text]);
        assert_eq!(kinds(&[Kind::Table, Kind::Figure]), [Kind::Text]);
    }

    #[test]
    fn two_halves_of_a_title_become_one() {
        let left = Candidate { bbox: Rect::new(0.0, 0.0, 100.0, 20.0), scores: scores(1, 0.9) };
        let right = Candidate { bbox: Rect::new(70.0, 0.0, 110.0, 20.0), scores: scores(1, 0.7) };
        let found = regions(&maps(vec![left, right]), 0.35, &[]);
        assert_eq!(found[0].bbox, Rect::new(0.0, 0.0, 110.0, 20.0));
    }

    #[test]
    fn small_pictures_stand_on_a_sheet_and_pages_do_not() {
        let page = Canvas::for_page(&Raster::filled(800, 1100, [255; 3]), &[]);
        assert_eq!((page.width, page.height), (800.0, 1100.0));
        let crop = Canvas::for_page(&Raster::filled(300, 100, [255; 3]), &[]);
        assert!(crop.width >= 300.0 && crop.height > crop.width);
        let on_page =
            crop.canvas_to_page(Rect::new(crop.left - 5.0, crop.top, crop.left + 50.0, crop.top + 20.0));
        assert_eq!(on_page, Some(Rect::new(0.0, 0.0, 50.0, 20.0)));
        assert_eq!(crop.canvas_to_page(Rect::new(0.0, crop.top + 200.0, 20.0, crop.top + 300.0)), None);
    }
}
