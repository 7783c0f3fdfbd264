//! Axis-parallel rectangles. Origin top left, y down; the unit is the caller's (pixels of an upright raster, or points).

use serde::{Deserialize, Serialize};

/// A rectangle `[x0, y0, x1, y1]` with `x0 <= x1` and `y0 <= y1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f32; 4]", into = "[f32; 4]")]
pub struct Rect {
    pub x0: f32,
    pub y0: f32,
    pub x1: f32,
    pub y1: f32,
}

impl From<[f32; 4]> for Rect {
    fn from([x0, y0, x1, y1]: [f32; 4]) -> Self {
        Rect { x0, y0, x1, y1 }
    }
}

impl From<Rect> for [f32; 4] {
    fn from(r: Rect) -> Self {
        [r.x0, r.y0, r.x1, r.y1]
    }
}

impl Rect {
    pub fn new(x0: f32, y0: f32, x1: f32, y1: f32) -> Self {
        Rect { x0, y0, x1, y1 }
    }

    pub fn width(&self) -> f32 {
        self.x1 - self.x0
    }

    pub fn height(&self) -> f32 {
        self.y1 - self.y0
    }

    pub fn area(&self) -> f32 {
        self.width().max(0.0) * self.height().max(0.0)
    }

    pub fn center(&self) -> (f32, f32) {
        ((self.x0 + self.x1) / 2.0, (self.y0 + self.y1) / 2.0)
    }

    /// Length shared on the x axis; negative: the gap between the two.
    pub fn overlap_x(&self, other: &Rect) -> f32 {
        self.x1.min(other.x1) - self.x0.max(other.x0)
    }

    /// Length shared on the y axis; negative: the gap between the two.
    pub fn overlap_y(&self, other: &Rect) -> f32 {
        self.y1.min(other.y1) - self.y0.max(other.y0)
    }

    /// Area shared by both.
    pub fn intersection(&self, other: &Rect) -> f32 {
        self.overlap_x(other).max(0.0) * self.overlap_y(other).max(0.0)
    }

    /// Intersection over union, 0..1.
    pub fn iou(&self, other: &Rect) -> f32 {
        let shared = self.intersection(other);
        shared / (self.area() + other.area() - shared).max(1e-6)
    }

    /// Intersection over the smaller of the two areas, 0..1.
    pub fn overlap_of_smaller(&self, other: &Rect) -> f32 {
        self.intersection(other) / self.area().min(other.area()).max(1e-6)
    }

    /// The smallest rectangle that holds both.
    pub fn union(&self, other: &Rect) -> Rect {
        Rect::new(self.x0.min(other.x0), self.y0.min(other.y0), self.x1.max(other.x1), self.y1.max(other.y1))
    }

    pub fn translated(&self, dx: f32, dy: f32) -> Rect {
        Rect::new(self.x0 + dx, self.y0 + dy, self.x1 + dx, self.y1 + dy)
    }

    pub fn scaled(&self, factor: f32) -> Rect {
        Rect::new(self.x0 * factor, self.y0 * factor, self.x1 * factor, self.y1 * factor)
    }

    /// Grown by `dx` on the left and right and `dy` above and below.
    pub fn grown(&self, dx: f32, dy: f32) -> Rect {
        Rect::new(self.x0 - dx, self.y0 - dy, self.x1 + dx, self.y1 + dy)
    }
}

/// The smallest rectangle that holds all; `None` for none.
pub fn hull(boxes: impl IntoIterator<Item = Rect>) -> Option<Rect> {
    boxes.into_iter().reduce(|a, b| a.union(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iou_of_half_shifted_square_is_a_third() {
        let a = Rect::new(0.0, 0.0, 2.0, 2.0);
        let b = Rect::new(1.0, 0.0, 3.0, 2.0);
        assert!((a.iou(&b) - 1.0 / 3.0).abs() < 1e-6);
        assert!((a.overlap_of_smaller(&b) - 0.5).abs() < 1e-6);
        assert_eq!(hull([a, b]), Some(Rect::new(0.0, 0.0, 3.0, 2.0)));
    }
}
