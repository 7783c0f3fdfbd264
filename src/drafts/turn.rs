//! Which way up is a page picture? The shape of its lines tells quarter turns, reading a few of them both ways the half turn.

use super::ocr::cut_line;
use super::recognise::Reading;
use crate::geometry::Rect;
use crate::lines::{STANDING, is_cjk};
use crate::page::{PageEvidence, Rules, Word};
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

/// Which way up a page is, and how well its lines read that way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Turn {
    /// Quarter turns clockwise, 0..=3, that make the page upright.
    pub(crate) quarters: u8,
    /// Share of a sample of lines that was read, weighted by how surely, 0..=1; `None` where there are no lines.
    pub(crate) legible: Option<f32>,
}

/// Finds which way up a page is. `read` reads upright crops of lines.
pub(crate) fn quarter_turns<E>(
    raster: &Raster,
    quads: &[Quad],
    mut read: impl FnMut(&[Raster]) -> Result<Vec<Reading>, E>,
) -> Result<Turn, E> {
    let standing = standing(quads);
    let mut sample: Vec<&Quad> = quads.iter().filter(|q| (q.height() > q.width()) == standing).collect();
    sample.sort_by(|a, b| b.width().max(b.height()).total_cmp(&a.width().max(a.height())));
    sample.truncate(SAMPLE);
    let crops: Vec<Raster> = sample.iter().map(|q| cut_line(raster, q)).collect();
    let upright = quality(&read(&crops)?);
    let quarter = if standing { 3 } else { 0 };
    if !standing && upright >= SURE * ENOUGH as f32 {
        return Ok(Turn { quarters: 0, legible: Some(upright / ENOUGH as f32) });
    }
    let turned: Vec<Raster> = crops.iter().map(|c| c.turned_clockwise(2)).collect();
    let other = quality(&read(&turned)?);
    let legible = (!crops.is_empty()).then_some(upright.max(other) / ENOUGH as f32);
    let quarters = if other > upright * BETTER { (quarter + 2) % 4 } else { quarter };
    Ok(Turn { quarters, legible })
}

/// How much of some lines was read, and how surely: 0..=[`ENOUGH`].
fn quality(readings: &[Reading]) -> f32 {
    let sum: f32 = readings.iter().map(|r| r.confidence * r.characters.len().min(ENOUGH) as f32).sum();
    sum / readings.len().max(1) as f32
}

/// Where a point of a `w x h` page stands after `quarters` turns clockwise.
fn turned_point((x, y): (f32, f32), quarters: u8, w: f32, h: f32) -> (f32, f32) {
    match quarters % 4 {
        1 => (h - y, x),
        2 => (w - x, h - y),
        3 => (y, w - x),
        _ => (x, y),
    }
}

fn turned_rect(r: Rect, quarters: u8, w: f32, h: f32) -> Rect {
    let (a, b) = (turned_point((r.x0, r.y0), quarters, w, h), turned_point((r.x1, r.y1), quarters, w, h));
    Rect::new(a.0.min(b.0), a.1.min(b.1), a.0.max(b.0), a.1.max(b.1))
}

/// Words of a `w x h` page after `quarters` turns clockwise.
pub(crate) fn turned_words(words: &[Word], quarters: u8, w: f32, h: f32) -> Vec<Word> {
    words.iter().map(|word| Word { bbox: turned_rect(word.bbox, quarters, w, h), ..word.clone() }).collect()
}

/// Drawn lines of a `w x h` page after `quarters` turns clockwise.
pub(crate) fn turned_rules(rules: &Rules, quarters: u8, w: f32, h: f32) -> Rules {
    let lines = |lines: &[(f32, f32, f32)], across: bool| -> Vec<(f32, f32, f32)> {
        let turned = lines.iter().map(|&(a, b, at)| {
            let rect = if across { Rect::new(a, at, b, at) } else { Rect::new(at, a, at, b) };
            let r = turned_rect(rect, quarters, w, h);
            if across == quarters.is_multiple_of(2) { (r.x0, r.x1, r.y0) } else { (r.y0, r.y1, r.x0) }
        });
        turned.collect()
    };
    let (across, down) = (lines(&rules.horizontal, true), lines(&rules.vertical, false));
    let (horizontal, vertical) = if quarters.is_multiple_of(2) { (across, down) } else { (down, across) };
    Rules { horizontal, vertical }
}

/// Does most of a text layer run from top to bottom?
pub(crate) fn text_stands(words: &[Word]) -> bool {
    let stands = |word: &&Word| {
        word.bbox.height() > STANDING * word.bbox.width()
            && word.text.chars().nth(1).is_some()
            && word.text.chars().all(is_cjk)
    };
    let letters =
        |words: &mut dyn Iterator<Item = &Word>| words.map(|word| word.text.chars().count()).sum::<usize>();
    2 * letters(&mut words.iter().filter(stands)) > letters(&mut words.iter())
}

/// The page a quarter turn counter-clockwise: lines that stood, the first on the right, are lines from left to right, the first at
/// the top. The OCR reads pictures of such pages so too.
pub(crate) fn laid_down(page: PageEvidence) -> PageEvidence {
    const QUARTERS: u8 = 3;
    let (w, h) = (page.raster.width as f32, page.raster.height as f32);
    PageEvidence {
        raster: page.raster.turned_clockwise(QUARTERS),
        words: turned_words(&page.words, QUARTERS, w, h),
        // Only formulas are made from them.
        glyphs: Vec::new(),
        rules: turned_rules(&page.rules, QUARTERS, w, h),
        turn: (page.turn + QUARTERS) % 4,
        ..page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drafts::drawn::evidence;
    use crate::drafts::recognise::ReadChar;
    use crate::lines::lines_of;
    use crate::lines::tests::word;

    fn reading(good: bool) -> Reading {
        let confidence = if good { 0.95 } else { 0.4 };
        Reading {
            characters: vec![ReadChar { character: 'x', x: 0.5, confidence }; 20],
            confidence,
            ..Reading::default()
        }
    }

    fn quad(x: f32, y: f32, w: f32, h: f32) -> Quad {
        Quad([[x, y], [x + w, y], [x + w, y + h], [x, y + h]])
    }

    fn turns(quads: &[Quad], good_first: bool) -> u8 {
        let mut calls = 0;
        let result: Result<Turn, ()> = quarter_turns(&Raster::filled(200, 200, [255; 3]), quads, |crops| {
            assert!(crops.iter().all(|c| c.width > c.height));
            calls += 1;
            Ok(crops.iter().map(|_| reading((calls == 1) == good_first)).collect())
        });
        let turn = result.unwrap();
        assert_eq!(turn.legible.is_some(), !quads.is_empty());
        turn.quarters
    }

    #[test]
    fn a_page_whose_text_stands_is_read_by_columns_from_the_right() {
        let column =
            |text: &str, x: f32| word(text, x, 20.0, x + 10.0, 20.0 + 12.0 * text.chars().count() as f32);
        let words = vec![column("天地玄黄", 80.0), column("宇宙", 60.0), column("Note", 60.0)];
        assert!(text_stands(&words[..2]) && !text_stands(&words[1..]));
        let mut page = Raster::filled(100, 200, [255; 3]);
        page.rgb[(25 * 100 + 85) * 3..][..3].fill(0);
        let laid = laid_down(evidence(page, words, 0.0));
        let lines: Vec<String> = lines_of(&laid.words[..2]).iter().map(|line| line[0].text.clone()).collect();
        assert_eq!(lines, ["天地玄黄", "宇宙"]);
        assert_eq!((laid.turn, laid.words[0].bbox), (3, Rect::new(20.0, 10.0, 68.0, 20.0)));
        assert!(laid.raster.pixel(25, 14)[0] == 0);
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

    #[test]
    fn rules_and_words_turn_with_the_page() {
        let rules = Rules { horizontal: vec![(10.0, 50.0, 20.0)], vertical: vec![(5.0, 90.0, 60.0)] };
        let once = turned_rules(&rules, 1, 100.0, 200.0);
        assert_eq!(once.vertical, [(10.0, 50.0, 180.0)]);
        assert_eq!(once.horizontal, [(110.0, 195.0, 60.0)]);
        assert_eq!(turned_rules(&once, 3, 200.0, 100.0), rules);
        assert_eq!(turned_rules(&turned_rules(&rules, 2, 100.0, 200.0), 2, 100.0, 200.0), rules);
    }
}
