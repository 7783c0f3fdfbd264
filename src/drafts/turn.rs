//! Which way up is a page picture? The shape of its lines tells quarter turns, reading a few of them both ways the half turn.

use super::ocr::cut_line;
use super::recognise::Reading;
use crate::raster::Raster;
use crate::raster::quad::Quad;

/// Lines that are read both ways.
const SAMPLE: usize = 6;
/// Longer than this many times its thickness, a line shows its direction.
const LONG: f32 = 2.0;
/// Characters of a line that count.
const ENOUGH: usize = 12;
/// Readings this good of lines that lie are not doubted.
const SURE: f32 = 0.9;
/// How much better the other way must read.
const BETTER: f32 = 1.05;

/// Do most of the long lines stand?
fn standing(quads: &[Quad]) -> bool {
    let (mut up, mut along) = (0.0, 0.0);
    for quad in quads {
        let (w, h) = (quad.width(), quad.height());
        if w.max(h) > LONG * w.min(h) {
            *(if h > w { &mut up } else { &mut along }) += w.max(h);
        }
    }
    up > along
}

/// Quarter turns clockwise, 0..=3, that make the page upright. `read` reads upright crops of lines.
pub(crate) fn quarter_turns<E>(
    raster: &Raster,
    quads: &[Quad],
    mut read: impl FnMut(&[Raster]) -> Result<Vec<Reading>, E>,
) -> Result<u8, E> {
    let standing = standing(quads);
    let mut sample: Vec<&Quad> = quads.iter().filter(|q| (q.height() > q.width()) == standing).collect();
    sample.sort_by(|a, b| b.width().max(b.height()).total_cmp(&a.width().max(a.height())));
    sample.truncate(SAMPLE);
    let crops: Vec<Raster> = sample.iter().map(|q| cut_line(raster, q)).collect();
    let upright = quality(&read(&crops)?);
    let quarter = if standing { 3 } else { 0 };
    if !standing && upright >= SURE * ENOUGH as f32 {
        return Ok(0);
    }
    let turned: Vec<Raster> = crops.iter().map(|c| c.turned_clockwise(2)).collect();
    let other = quality(&read(&turned)?);
    Ok(if other > upright * BETTER { (quarter + 2) % 4 } else { quarter })
}

/// How much of some lines was read, and how surely: 0..=[`ENOUGH`].
fn quality(readings: &[Reading]) -> f32 {
    let sum: f32 = readings.iter().map(|r| r.confidence * r.characters.len().min(ENOUGH) as f32).sum();
    sum / readings.len().max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drafts::recognise::ReadChar;

    fn reading(good: bool) -> Reading {
        let confidence = if good { 0.95 } else { 0.4 };
        Reading { characters: vec![ReadChar { character: 'x', x: 0.5, confidence }; 20], confidence }
    }

    fn quad(x: f32, y: f32, w: f32, h: f32) -> Quad {
        Quad([[x, y], [x + w, y], [x + w, y + h], [x, y + h]])
    }

    fn turns(quads: &[Quad], good_first: bool) -> u8 {
        let mut calls = 0;
        let result: Result<u8, ()> = quarter_turns(&Raster::filled(200, 200, [255; 3]), quads, |crops| {
            assert!(crops.iter().all(|c| c.width > c.height));
            calls += 1;
            Ok(crops.iter().map(|_| reading((calls == 1) == good_first)).collect())
        });
        result.unwrap()
    }

    #[test]
    fn shapes_tell_quarters_and_readings_tell_halves() {
        let lying = [quad(10.0, 10.0, 100.0, 10.0), quad(10.0, 30.0, 90.0, 10.0), quad(0.0, 0.0, 10.0, 50.0)];
        let standing = [quad(10.0, 10.0, 10.0, 100.0), quad(30.0, 10.0, 10.0, 90.0)];
        assert_eq!(turns(&lying, true), 0);
        assert_eq!(turns(&lying, false), 2);
        assert_eq!(turns(&standing, true), 3);
        assert_eq!(turns(&standing, false), 1);
        assert_eq!(turns(&[], true), 0);
    }
}
