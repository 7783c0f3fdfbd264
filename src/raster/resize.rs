//! Scaling with OpenCV's geometry, which the networks were trained with: half-pixel centres, bilinear without smoothing for
//! growing and for layout, area means for shrinking. Results are rounded to 8 bits.

use super::Raster;

/// Where the pixels of a target come from: `source = (target + 0.5) * scale - 0.5 - offset`, per axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    pub scale: f32,
    pub offset: f32,
}

impl Axis {
    /// The whole of `from` pixels squeezed or stretched onto `to` pixels.
    pub fn fit(from: usize, to: usize) -> Self {
        Axis { scale: from as f32 / to.max(1) as f32, offset: 0.0 }
    }
}

/// A tap of the bilinear filter: two source indices and the share of the second; `None`: outside of the source.
#[derive(Clone, Copy)]
struct Tap {
    low: Option<usize>,
    high: Option<usize>,
    share: f32,
}

fn taps(axis: Axis, from: usize, to: usize, clamp: bool) -> Vec<Tap> {
    let index = |i: i64| -> Option<usize> {
        if (0..from as i64).contains(&i) {
            Some(i as usize)
        } else if clamp {
            Some(i.clamp(0, from as i64 - 1) as usize)
        } else {
            None
        }
    };
    (0..to)
        .map(|t| {
            let at = (t as f32 + 0.5) * axis.scale - 0.5 - axis.offset;
            let low = at.floor();
            Tap { low: index(low as i64), high: index(low as i64 + 1), share: at - low }
        })
        .collect()
}

/// Samples `raster` bilinearly onto `width x height`; what lies outside of it is white. With [`Axis::fit`] on both axes use
/// [`Raster::resized_linear`], which repeats the edge instead.
pub fn sample_linear(raster: &Raster, width: usize, height: usize, x: Axis, y: Axis) -> Raster {
    sample(raster, width, height, x, y, false)
}

fn sample(raster: &Raster, width: usize, height: usize, x: Axis, y: Axis, clamp: bool) -> Raster {
    let mut out = Raster::filled(width, height, [255; 3]);
    if raster.width == 0 || raster.height == 0 || width == 0 {
        return out;
    }
    let columns = taps(x, raster.width, width, clamp);
    let rows = taps(y, raster.height, height, clamp);
    let stride = raster.width * 3;
    let white = vec![255u8; stride];
    let line = |at: Option<usize>| at.map_or(&white[..], |r| &raster.rgb[r * stride..(r + 1) * stride]);
    for (row, target) in rows.iter().zip(out.rgb.chunks_exact_mut(width * 3)) {
        if row.low.is_none() && row.high.is_none() {
            continue;
        }
        let (above, below) = (line(row.low), line(row.high));
        for (tap, pixel) in columns.iter().zip(target.chunks_exact_mut(3)) {
            for (channel, value) in pixel.iter_mut().enumerate() {
                let read =
                    |line: &[u8], at: Option<usize>| at.map_or(255.0, |c| f32::from(line[c * 3 + channel]));
                let top = read(above, tap.low) * (1.0 - tap.share) + read(above, tap.high) * tap.share;
                let bottom = read(below, tap.low) * (1.0 - tap.share) + read(below, tap.high) * tap.share;
                *value = (top + (bottom - top) * row.share + 0.5) as u8;
            }
        }
    }
    out
}

/// Source pixels under one target pixel: index of the first, and the weights, which add up to one.
fn area_weights(from: usize, to: usize) -> Vec<(usize, Vec<f32>)> {
    let scale = from as f64 / to as f64;
    (0..to)
        .map(|t| {
            let (start, end) = (t as f64 * scale, ((t + 1) as f64 * scale).min(from as f64));
            let first = start.floor() as usize;
            let last = (end.ceil() as usize).clamp(first + 1, from);
            let weights: Vec<f64> =
                (first..last).map(|i| (end.min((i + 1) as f64) - start.max(i as f64)).max(0.0)).collect();
            let sum: f64 = weights.iter().sum::<f64>().max(1e-9);
            (first, weights.iter().map(|w| (w / sum) as f32).collect())
        })
        .collect()
}

impl Raster {
    /// Bilinear, without smoothing; the edge pixels are repeated.
    pub fn resized_linear(&self, width: usize, height: usize) -> Raster {
        if (width, height) == (self.width, self.height) {
            return self.clone();
        }
        sample(self, width, height, Axis::fit(self.width, width), Axis::fit(self.height, height), true)
    }

    /// Means over the area under each target pixel. Axes must not grow: falls back to [`Raster::resized_linear`].
    pub fn resized_area(&self, width: usize, height: usize) -> Raster {
        if width > self.width || height > self.height || width == 0 || height == 0 {
            return self.resized_linear(width, height);
        }
        let columns = area_weights(self.width, width);
        let rows = area_weights(self.height, height);
        let stride = self.width * 3;
        let mut rgb = Vec::with_capacity(width * height * 3);
        let mut sums = vec![0f32; stride];
        for (first, weights) in &rows {
            sums.fill(0.0);
            for (k, weight) in weights.iter().enumerate() {
                let line = &self.rgb[(first + k) * stride..(first + k + 1) * stride];
                for (sum, &value) in sums.iter_mut().zip(line) {
                    *sum += f32::from(value) * weight;
                }
            }
            for (first, weights) in &columns {
                let mut mean = [0f32; 3];
                let pixels = sums[first * 3..(first + weights.len()) * 3].chunks_exact(3);
                for (pixel, weight) in pixels.zip(weights) {
                    for (m, value) in mean.iter_mut().zip(pixel) {
                        *m += value * weight;
                    }
                }
                rgb.extend(mean.map(|m| (m + 0.5) as u8));
            }
        }
        Raster { width, height, rgb }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(width: usize, height: usize) -> Raster {
        let rgb = (0..height)
            .flat_map(|y| (0..width).flat_map(move |x| [(x * 10) as u8, (y * 10) as u8, 7]))
            .collect();
        Raster { width, height, rgb }
    }

    #[test]
    fn area_takes_the_mean_of_the_pixels_below() {
        let small = ramp(6, 4).resized_area(2, 2);
        assert_eq!(small.pixel(0, 0), [10, 5, 7]);
        assert_eq!(small.pixel(1, 1), [40, 25, 7]);
        // 3 -> 2: one and a half pixels each, (0 + 10 / 2) / 1.5
        assert_eq!(ramp(3, 2).resized_area(2, 2).pixel(0, 0)[0], 3);
    }

    #[test]
    fn linear_uses_half_pixel_centres_and_repeats_the_edge() {
        let wide = ramp(2, 1).resized_linear(4, 1);
        let reds: Vec<u8> = (0..4).map(|x| wide.pixel(x, 0)[0]).collect();
        assert_eq!(reds, [0, 3, 8, 10]);
    }

    #[test]
    fn sampling_outside_is_white() {
        let x = Axis { scale: 1.0, offset: 2.0 };
        let y = Axis { scale: 1.0, offset: 0.0 };
        let placed = sample_linear(&ramp(2, 2), 5, 3, x, y);
        assert_eq!(placed.pixel(1, 0), [255, 255, 255]);
        assert_eq!(placed.pixel(3, 1), [10, 10, 7]);
        assert_eq!(placed.pixel(3, 2), [255, 255, 255]);
    }
}
