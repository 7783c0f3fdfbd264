//! The common slant of a page's text lines.

use crate::raster::quad::Quad;

/// Lines at least this many times as long as high show their slant well: one pixel at an end is half a degree at most.
const LONG: f32 = 8.0;
/// Long lines that are needed.
const ENOUGH: usize = 3;
/// Smaller slants do no harm, degrees.
const LEAST: f32 = 0.4;
/// Larger ones are no accident of a scanner, degrees.
const MOST: f32 = 20.0;
/// Lines within this of the median agree with it, degrees.
const AGREE: f32 = 0.7;
/// Share of the lines, by length, that must agree.
const QUORUM: f32 = 0.7;

/// Degrees by which the text lines fall to the right, if they do and agree on it.
pub(crate) fn common_slant(quads: &[Quad]) -> Option<f32> {
    let mut lines: Vec<(f32, f32)> = quads
        .iter()
        .filter(|q| q.width() > LONG * q.height())
        .map(|q| (q.angle_deg(), q.width()))
        .filter(|(angle, length)| angle.is_finite() && length.is_finite())
        .collect();
    if lines.len() < ENOUGH {
        return None;
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f32 = lines.iter().map(|l| l.1).sum();
    let mut before = 0.0;
    let middle = lines.iter().find(|l| {
        before += l.1;
        before >= total / 2.0
    })?;
    let slant = middle.0;
    let agreeing: f32 = lines.iter().filter(|l| (l.0 - slant).abs() <= AGREE).map(|l| l.1).sum();
    ((LEAST..=MOST).contains(&slant.abs()) && agreeing >= QUORUM * total).then_some(slant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(y: f32, degrees: f32) -> Quad {
        let (s, c) = degrees.to_radians().sin_cos();
        let at = |a: f32, b: f32| [100.0 + a * c - b * s, y + a * s + b * c];
        Quad([at(0.0, 0.0), at(400.0, 0.0), at(400.0, 20.0), at(0.0, 20.0)])
    }

    #[test]
    fn lines_that_agree_give_their_slant() {
        let quads: Vec<Quad> = [1.4, 1.5, 1.6, 1.5, -9.0].iter().map(|&a| line(50.0 * a, a)).collect();
        assert!((common_slant(&quads).unwrap() - 1.5).abs() < 0.05);
    }

    #[test]
    fn level_pages_and_quarrelling_lines_give_none() {
        let slant = |angles: &[f32]| common_slant(&angles.iter().map(|&a| line(0.0, a)).collect::<Vec<_>>());
        assert_eq!(slant(&[0.1, 0.0, -0.2, 0.1]), None);
        assert_eq!(slant(&[2.0, 6.0, 10.0, 14.0]), None);
        assert_eq!(slant(&[2.0, 2.0]), None);
    }
}
