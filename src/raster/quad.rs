//! Quadrilaterals: the smallest rotated rectangle around points, and cutting one out of a page, upright.

use super::Raster;
use crate::geometry::Rect;

/// Corners of a rectangle of a text line, which may lean: top left, top right, bottom right, bottom left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quad(pub [[f32; 2]; 4]);

fn distance(a: [f32; 2], b: [f32; 2]) -> f32 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

impl Quad {
    /// From four corners in any order: the two left ones and the two right ones, each sorted by height.
    pub fn ordered(mut corners: [[f32; 2]; 4]) -> Self {
        corners.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let [a, b, c, d] = corners;
        let (top_left, bottom_left) = if a[1] <= b[1] { (a, b) } else { (b, a) };
        let (top_right, bottom_right) = if c[1] <= d[1] { (c, d) } else { (d, c) };
        Quad([top_left, top_right, bottom_right, bottom_left])
    }

    /// Length of the top edge.
    pub fn width(&self) -> f32 {
        distance(self.0[0], self.0[1])
    }

    /// Length of the left edge.
    pub fn height(&self) -> f32 {
        distance(self.0[0], self.0[3])
    }

    /// The upright box around it.
    pub fn bbox(&self) -> Rect {
        let [first, rest @ ..] = self.0;
        rest.iter().fold(Rect::new(first[0], first[1], first[0], first[1]), |b, p| {
            Rect::new(b.x0.min(p[0]), b.y0.min(p[1]), b.x1.max(p[0]), b.y1.max(p[1]))
        })
    }

    /// Slope of the top edge in degrees, clockwise, -90..=90.
    pub fn angle_deg(&self) -> f32 {
        let [a, b, ..] = self.0;
        (b[1] - a[1]).atan2((b[0] - a[0]).max(0.0)).to_degrees()
    }

    pub fn map(&self, f: impl FnMut([f32; 2]) -> [f32; 2]) -> Self {
        Quad(self.0.map(f))
    }
}

/// A rectangle in any position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotatedRect {
    pub center: [f32; 2],
    /// Unit vector along `width`.
    pub axis: [f32; 2],
    pub width: f32,
    pub height: f32,
}

impl RotatedRect {
    pub fn corners(&self) -> [[f32; 2]; 4] {
        let (u, v) = (self.axis, [-self.axis[1], self.axis[0]]);
        [(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)].map(|(a, b)| {
            let (a, b) = (a * self.width, b * self.height);
            [self.center[0] + a * u[0] + b * v[0], self.center[1] + a * u[1] + b * v[1]]
        })
    }

    pub fn grown(&self, by: f32) -> Self {
        RotatedRect { width: self.width + 2.0 * by, height: self.height + 2.0 * by, ..*self }
    }
}

/// The rectangle of least area around some points; one of its sides lies on a side of their convex hull. `None` for no points.
pub fn min_area_rect(points: &[[f32; 2]]) -> Option<RotatedRect> {
    let hull = convex_hull(points);
    let mut best: Option<RotatedRect> = None;
    for (i, &a) in hull.iter().enumerate() {
        let b = hull[(i + 1) % hull.len()];
        let length = distance(a, b);
        let u = if length > 0.0 { [(b[0] - a[0]) / length, (b[1] - a[1]) / length] } else { [1.0, 0.0] };
        let mut span = [f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY, f32::NEG_INFINITY];
        for p in &hull {
            let (s, t) = (p[0] * u[0] + p[1] * u[1], p[1] * u[0] - p[0] * u[1]);
            span = [span[0].min(s), span[1].max(s), span[2].min(t), span[3].max(t)];
        }
        let (width, height) = (span[1] - span[0], span[3] - span[2]);
        if best.is_none_or(|r| width * height < r.width * r.height) {
            let (s, t) = ((span[0] + span[1]) / 2.0, (span[2] + span[3]) / 2.0);
            best = Some(RotatedRect {
                center: [s * u[0] - t * u[1], s * u[1] + t * u[0]],
                axis: u,
                width,
                height,
            });
        }
    }
    best
}

/// Corners of the convex hull (Andrew's monotone chains), without points on its sides.
fn convex_hull(points: &[[f32; 2]]) -> Vec<[f32; 2]> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    sorted.dedup();
    if sorted.len() < 3 {
        return sorted;
    }
    let chain = |points: &mut dyn Iterator<Item = [f32; 2]>| {
        let mut out: Vec<[f32; 2]> = Vec::new();
        for p in points {
            while let [.., a, b] = out[..] {
                if (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0.0 {
                    break;
                }
                out.pop();
            }
            out.push(p);
        }
        out.pop();
        out
    };
    let mut hull = chain(&mut sorted.iter().copied());
    hull.extend(chain(&mut sorted.iter().rev().copied()));
    hull
}

/// Weights of the bicubic kernel with `a = -0.75` (OpenCV's) for the taps -1, 0, 1, 2 at fraction `t`.
fn cubic(t: f32) -> [f32; 4] {
    const A: f32 = -0.75;
    let near = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f32| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)]
}

impl Raster {
    /// Cuts a quadrilateral out, upright, at its own size; beyond the raster's edge its border is repeated. The two side
    /// edges are taken as parallel, which they are for rectangles.
    pub fn cut(&self, quad: &Quad) -> Raster {
        let [tl, tr, br, bl] = quad.0;
        let width = (distance(tl, tr).max(distance(bl, br)).max(1.0) as usize).min(4 * self.width.max(1));
        let height = (distance(tl, bl).max(distance(tr, br)).max(1.0) as usize).min(4 * self.height.max(1));
        let mut out = Raster::filled(width, height, [255; 3]);
        if self.width == 0 || self.height == 0 {
            return out;
        }
        let along = [(tr[0] - tl[0]) / width as f32, (tr[1] - tl[1]) / width as f32];
        let down = [(bl[0] - tl[0]) / height as f32, (bl[1] - tl[1]) / height as f32];
        for (y, row) in out.rgb.chunks_exact_mut(width * 3).enumerate() {
            for (x, pixel) in row.chunks_exact_mut(3).enumerate() {
                let (x, y) = (x as f32, y as f32);
                let at = [tl[0] + along[0] * x + down[0] * y, tl[1] + along[1] * x + down[1] * y];
                pixel.copy_from_slice(&self.cubic_at(at));
            }
        }
        out
    }

    fn cubic_at(&self, at: [f32; 2]) -> [u8; 3] {
        let (fx, fy) = (at[0].floor(), at[1].floor());
        let (wx, wy) = (cubic(at[0] - fx), cubic(at[1] - fy));
        let (x, y) = (fx as i64, fy as i64);
        let (right, bottom) = (self.width as i64 - 1, self.height as i64 - 1);
        let mut sum = [0f32; 3];
        let columns = [-1i64, 0, 1, 2].map(|k| (x + k).clamp(0, right) as usize * 3);
        for (k, weight) in (-1i64..).zip(wy) {
            let start = (y + k).clamp(0, bottom) as usize * self.width * 3;
            let line = &self.rgb[start..start + self.width * 3];
            for (&column, share) in columns.iter().zip(wx) {
                let share = share * weight;
                for (s, &value) in sum.iter_mut().zip(&line[column..column + 3]) {
                    *s += f32::from(value) * share;
                }
            }
        }
        sum.map(|s| (s + 0.5) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pixels of a bar of 60 x 10 around (100, 50), leaning by `degrees` clockwise.
    fn bar(degrees: f32) -> Vec<[f32; 2]> {
        let (s, c) = degrees.to_radians().sin_cos();
        let mut out = Vec::new();
        for y in 0..100 {
            for x in 0..200 {
                let (dx, dy) = (x as f32 - 100.0, y as f32 - 50.0);
                let (along, across) = (dx * c + dy * s, dy * c - dx * s);
                if along.abs() <= 30.0 && across.abs() <= 5.0 {
                    out.push([x as f32, y as f32]);
                }
            }
        }
        out
    }

    #[test]
    fn the_smallest_rectangle_of_a_leaning_bar_is_the_bar() {
        for degrees in [0.0, 7.0, -20.0, 40.0] {
            let quad = Quad::ordered(min_area_rect(&bar(degrees)).unwrap().corners());
            assert!((quad.width() - 60.0).abs() < 2.0, "{degrees}: {quad:?}");
            assert!((quad.height() - 10.0).abs() < 2.0, "{degrees}: {quad:?}");
            assert!((quad.angle_deg() - degrees).abs() < 2.0, "{degrees}: {}", quad.angle_deg());
        }
        assert_eq!(min_area_rect(&[]), None);
        assert_eq!(min_area_rect(&[[3.0, 4.0]]).unwrap().center, [3.0, 4.0]);
    }

    #[test]
    fn a_cut_turns_the_leaning_bar_upright() {
        let mut page = Raster::filled(200, 100, [255; 3]);
        for p in bar(20.0) {
            let at = (p[1] as usize * 200 + p[0] as usize) * 3;
            page.rgb[at..at + 3].fill(0);
        }
        let quad = Quad::ordered(min_area_rect(&bar(20.0)).unwrap().grown(4.0).corners());
        let cut = page.cut(&quad);
        assert!(cut.pixel(cut.width / 2, cut.height / 2)[0] < 20);
        assert!((5..cut.width - 5).all(|x| cut.pixel(x, 0)[0] > 200));
        assert!((10..cut.width - 10).all(|x| cut.pixel(x, cut.height / 2)[0] < 60));
    }

    #[test]
    fn a_cut_along_the_pixels_copies_them_even_past_the_edge() {
        let rgb = (0..60).map(|v| v * 4).collect();
        let page = Raster { width: 5, height: 4, rgb };
        let cut = page.cut(&Quad([[1.0, 1.0], [4.0, 1.0], [4.0, 3.0], [1.0, 3.0]]));
        assert_eq!(Some(cut), page.cropped(1, 1, 4, 3));
        let beyond = page.cut(&Quad([[-3.0, 0.0], [0.0, 0.0], [0.0, 1.0], [-3.0, 1.0]]));
        assert_eq!(beyond.pixel(0, 0), page.pixel(0, 0));
    }
}
