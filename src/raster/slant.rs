//! Turning a raster by a small angle, and points with it.

use super::Raster;

/// A turn about the centre that makes lines level which fall by `degrees` to the right; the raster grows so that no corner is
/// lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levelling {
    sin: f32,
    cos: f32,
    from: [f32; 2],
    to: [f32; 2],
    pub width: usize,
    pub height: usize,
}

impl Levelling {
    /// For a raster of `width x height`.
    pub fn new(width: usize, height: usize, degrees: f32) -> Self {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let (w, h) = (width as f32, height as f32);
        let new_width = (w * cos.abs() + h * sin.abs()).round() as usize;
        let new_height = (w * sin.abs() + h * cos.abs()).round() as usize;
        Levelling {
            sin,
            cos,
            from: [(w - 1.0) / 2.0, (h - 1.0) / 2.0],
            to: [(new_width as f32 - 1.0) / 2.0, (new_height as f32 - 1.0) / 2.0],
            width: new_width,
            height: new_height,
        }
    }

    /// Where a point of the old raster stands in the new one.
    pub fn point(&self, p: [f32; 2]) -> [f32; 2] {
        let (x, y) = (p[0] - self.from[0], p[1] - self.from[1]);
        [self.to[0] + x * self.cos + y * self.sin, self.to[1] + y * self.cos - x * self.sin]
    }

    /// The raster, turned; bilinear, corners white.
    pub fn apply(&self, raster: &Raster) -> Raster {
        let mut out = Raster::filled(self.width, self.height, [255; 3]);
        let stride = raster.width * 3;
        for (y, row) in out.rgb.chunks_exact_mut((self.width * 3).max(1)).enumerate() {
            let dy = y as f32 - self.to[1];
            for (x, pixel) in row.chunks_exact_mut(3).enumerate() {
                let dx = x as f32 - self.to[0];
                let sx = self.from[0] + dx * self.cos - dy * self.sin;
                let sy = self.from[1] + dx * self.sin + dy * self.cos;
                if sx < 0.0 || sy < 0.0 {
                    continue;
                }
                let (left, top) = (sx as usize, sy as usize);
                if left + 1 >= raster.width || top + 1 >= raster.height {
                    continue;
                }
                let (a, b) = (sx - left as f32, sy - top as f32);
                let at = top * stride + left * 3;
                let corners = &raster.rgb[at..at + stride + 6];
                for (channel, value) in pixel.iter_mut().enumerate() {
                    let read = |k: usize| f32::from(corners[k + channel]);
                    let above = read(0) + (read(3) - read(0)) * a;
                    let below = read(stride) + (read(stride + 3) - read(stride)) * a;
                    *value = (above + (below - above) * b + 0.5) as u8;
                }
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_falling_line_becomes_level() {
        let slope = 3f32.to_radians().tan();
        let mut page = Raster::filled(400, 200, [255; 3]);
        for x in 50..350 {
            let y = (80.0 + (x as f32 - 50.0) * slope).round() as usize;
            for y in y - 1..=y + 1 {
                page.rgb[(y * 400 + x) * 3..][..3].fill(0);
            }
        }
        let level = Levelling::new(400, 200, 3.0);
        let turned = level.apply(&page);
        let (a, b) = (level.point([50.0, 80.0]), level.point([349.0, 80.0 + 299.0 * slope]));
        assert!((a[1] - b[1]).abs() < 0.1, "{a:?} {b:?}");
        let row = a[1].round() as usize;
        assert!((a[0] as usize + 2..b[0] as usize - 2).all(|x| turned.pixel(x, row)[0] < 100));
        assert!(turned.width > 400 && turned.height > 200);
        assert_eq!(turned.pixel(0, 0), [255; 3]);
    }
}
