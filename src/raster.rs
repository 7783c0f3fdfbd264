//! Pixels of a page: 8-bit RGB, row-major, and the few picture operations that the networks need.

/// Connected groups of set pixels.
pub mod components;

/// Pixels -> normalised planes, the input of a network.
pub mod planes;

/// Quadrilaterals: smallest rotated rectangles, cut out upright.
pub mod quad;

/// Scaling.
pub mod resize;

/// Turning by a small angle.
pub mod slant;

/// `height x width x 3` bytes, RGB.
#[derive(Clone, PartialEq, Eq)]
pub struct Raster {
    pub width: usize,
    pub height: usize,
    pub rgb: Vec<u8>,
}

impl std::fmt::Debug for Raster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Raster({} x {})", self.width, self.height)
    }
}

impl Raster {
    /// A raster of one colour.
    pub fn filled(width: usize, height: usize, color: [u8; 3]) -> Self {
        let rgb = color.iter().copied().cycle().take(width * height * 3).collect();
        Raster { width, height, rgb }
    }

    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }

    /// Luma (BT.601) of every pixel, row-major.
    pub fn gray(&self) -> Vec<u8> {
        self.rgb
            .chunks_exact(3)
            .map(|p| {
                ((u32::from(p[0]) * 299 + u32::from(p[1]) * 587 + u32::from(p[2]) * 114 + 500) / 1000) as u8
            })
            .collect()
    }

    /// Nothing stands on it: all but white, or all but of one colour (standard deviation under one level).
    pub fn is_blank(&self) -> bool {
        if self.rgb.iter().all(|&v| v > 245) {
            return true;
        }
        let (mut sum, mut squares) = (0u64, 0u64);
        for &v in &self.rgb {
            sum += u64::from(v);
            squares += u64::from(v) * u64::from(v);
        }
        let n = self.rgb.len().max(1) as f64;
        let mean = sum as f64 / n;
        squares as f64 / n - mean * mean < 1.0
    }

    /// Turned by `quarters` x 90 degrees clockwise.
    pub fn turned_clockwise(&self, quarters: u8) -> Raster {
        let (w, h) = (self.width, self.height);
        let quarters = quarters % 4;
        if quarters == 0 {
            return self.clone();
        }
        let (nw, nh) = if quarters % 2 == 1 { (h, w) } else { (w, h) };
        let mut rgb = vec![0; self.rgb.len()];
        for y in 0..nh {
            for x in 0..nw {
                let (sx, sy) = match quarters {
                    1 => (y, h - 1 - x),
                    2 => (w - 1 - x, h - 1 - y),
                    _ => (w - 1 - y, x),
                };
                let (from, to) = ((sy * w + sx) * 3, (y * nw + x) * 3);
                rgb[to..to + 3].copy_from_slice(&self.rgb[from..from + 3]);
            }
        }
        Raster { width: nw, height: nh, rgb }
    }

    /// The part inside `[x0, x1) x [y0, y1)`, clipped to the raster; `None` when nothing is left.
    pub fn cropped(&self, x0: i64, y0: i64, x1: i64, y1: i64) -> Option<Raster> {
        let (x0, y0) = (x0.clamp(0, self.width as i64) as usize, y0.clamp(0, self.height as i64) as usize);
        let (x1, y1) = (x1.clamp(0, self.width as i64) as usize, y1.clamp(0, self.height as i64) as usize);
        if x1 <= x0 || y1 <= y0 {
            return None;
        }
        let (width, height) = (x1 - x0, y1 - y0);
        let mut rgb = Vec::with_capacity(width * height * 3);
        for y in y0..y1 {
            rgb.extend_from_slice(&self.rgb[(y * self.width + x0) * 3..(y * self.width + x1) * 3]);
        }
        Some(Raster { width, height, rgb })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_quarter_turns_are_none_and_one_moves_the_corner() {
        let mut r = Raster::filled(3, 2, [0, 0, 0]);
        r.rgb[0] = 9; // red at (0, 0)
        let t = r.turned_clockwise(1);
        assert_eq!((t.width, t.height), (2, 3));
        assert_eq!(t.pixel(1, 0), [9, 0, 0]);
        assert_eq!(t.turned_clockwise(3), r);
        assert_eq!(r.turned_clockwise(2).pixel(2, 1), [9, 0, 0]);
    }

    #[test]
    fn white_and_plain_pages_are_blank_and_a_written_one_is_not() {
        assert!(Raster::filled(50, 50, [250, 248, 255]).is_blank());
        assert!(Raster::filled(50, 50, [90, 90, 90]).is_blank());
        let mut page = Raster::filled(50, 50, [255, 255, 255]);
        page.rgb[..60].fill(0);
        assert!(!page.is_blank());
    }
}
