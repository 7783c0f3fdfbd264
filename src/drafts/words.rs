//! A page's words: the text layer where it says what the picture shows, the OCR where it does not or says too little.

use super::nets::Nets;
use super::ocr::{cut_line, words_of_line};
use super::recognise::Reading;
use super::skew::common_slant;
use super::turn::quarter_turns;
use super::{PageWords, TextLayer, trust};
use crate::page::{PageEvidence, Rules, Word};
use crate::raster::Raster;
use crate::raster::quad::Quad;
use crate::raster::slant::Levelling;
use crate::settings::Drafters;

/// A picture that covers more of the page may hold text of its own.
const LARGE_PICTURE: f32 = 0.3;
/// Letters of a text layer below which drawn outlines may be the page's real text.
const FEW_LETTERS: usize = 200;
/// Ink outside of the words, as a multiple of the ink in them, that is worth a look.
const MUCH_INK: usize = 2;
/// Brightness below which a pixel is ink.
const INK: u8 = 128;
/// Share of the detected lines that the layer covers: below the first it is ignored, from the second on it is complete.
const COVERS_LITTLE: f32 = 0.35;
const COVERS_ALL: f32 = 0.9;
/// Lines covered by less are not in the layer.
const UNCOVERED: f32 = 0.1;
/// Side of the squares in which coverage is counted, px.
const GRAIN: usize = 4;
/// Added to the line numbers of the OCR where they stand beside those of a layer.
const OCR_LINES: u32 = 100_000;
/// Lines that are cut out at a time.
const LINES_AT_ONCE: usize = 128;

/// What the checks say of the text layer.
enum Verdict {
    Absent,
    /// Its words, and nothing but them.
    Complete,
    /// Its words, and lines that only the picture has.
    Partial(Vec<Quad>),
    Garbage,
    /// It says little of what the picture shows, or something else than could be read there: better than nothing.
    Doubtful(TextLayer),
}

/// Settles the words of a page. Without the OCR networks a text layer is taken unless its own characters are impossible.
pub fn page_words(evidence: PageEvidence, nets: &mut Nets, drafters: &Drafters) -> PageWords {
    let ocr = drafters.ocr && nets.has_ocr();
    let words = if drafters.text_layer { evidence.words.clone() } else { Vec::new() };
    let verdict = judge(&evidence, &words, nets, ocr);
    let page = |raster: Raster, words: Vec<Word>, text_layer: TextLayer| PageWords {
        raster,
        words,
        rules: evidence.rules.clone(),
        turn: evidence.turn % 4,
        skew_deg: 0.0,
        text_layer,
        from_layer: matches!(text_layer, TextLayer::Used | TextLayer::Incomplete),
    };
    let (text_layer, better_than_nothing) = match verdict {
        Verdict::Complete => return page(evidence.raster, words, TextLayer::Used),
        Verdict::Partial(missing) => {
            let mut all = words;
            let added = read_lines(&evidence.raster, &missing, &missing, nets);
            all.extend(added.into_iter().map(|w| Word { line: w.line + OCR_LINES, ..w }));
            return page(evidence.raster, all, TextLayer::Incomplete);
        }
        Verdict::Absent => (TextLayer::None, false),
        Verdict::Garbage => (TextLayer::Garbage, false),
        Verdict::Doubtful(text_layer) => (text_layer, true),
    };
    if !ocr {
        return PageWords { from_layer: false, ..page(evidence.raster, Vec::new(), text_layer) };
    }
    let read = read_picture(&evidence.raster, nets);
    if read.words.is_empty() && better_than_nothing {
        return page(evidence.raster, words, TextLayer::Used);
    }
    let moved = read.turn != 0 || read.skew_deg != 0.0;
    PageWords {
        raster: read.raster.unwrap_or(evidence.raster),
        words: read.words,
        rules: if moved { Rules::default() } else { evidence.rules },
        turn: (evidence.turn + read.turn) % 4,
        skew_deg: read.skew_deg,
        text_layer,
        from_layer: false,
    }
}

fn judge(evidence: &PageEvidence, words: &[Word], nets: &mut Nets, ocr: bool) -> Verdict {
    let letters: usize = words.iter().map(|w| w.text.chars().count()).sum();
    if letters == 0 {
        return Verdict::Absent;
    }
    if trust::is_garbage(words) {
        return Verdict::Garbage;
    }
    match if ocr { likeness(&evidence.raster, words, nets) } else { None } {
        Some(0.0) => return Verdict::Garbage,
        Some(value) if !trust::is_like(value) => return Verdict::Doubtful(TextLayer::Garbage),
        _ => {}
    }
    let unexplained = evidence.picture_share > LARGE_PICTURE
        || letters < FEW_LETTERS && has_ink_beside(&evidence.raster, words);
    let quads =
        if ocr && unexplained { nets.detect(&evidence.raster).unwrap_or_default() } else { Vec::new() };
    let shares = coverage(&quads, words, evidence.raster.width, evidence.raster.height);
    let width: f32 = quads.iter().map(|q| q.bbox().width()).sum();
    if width <= 0.0 {
        return Verdict::Complete;
    }
    let covered: f32 = quads.iter().zip(&shares).map(|(q, s)| q.bbox().width() * s).sum();
    match covered / width {
        share if share < COVERS_LITTLE => Verdict::Doubtful(TextLayer::Incomplete),
        share if share < COVERS_ALL => {
            let missing: Vec<Quad> =
                quads.iter().zip(&shares).filter(|(_, s)| **s < UNCOVERED).map(|(q, _)| *q).collect();
            if missing.is_empty() { Verdict::Complete } else { Verdict::Partial(missing) }
        }
        _ => Verdict::Complete,
    }
}

/// Reads a few lines of the layer from the picture: their median likeness, `None` if none can be judged.
fn likeness(raster: &Raster, words: &[Word], nets: &mut Nets) -> Option<f32> {
    let recogniser = nets.recogniser()?;
    let pieces = trust::sample(words, |c| recogniser.knows(c));
    let (texts, crops): (Vec<&str>, Vec<Raster>) = pieces
        .iter()
        .filter_map(|piece| {
            let [x0, y0, x1, y1] = trust::cut_box(&piece.bbox);
            let crop = raster.cropped(x0, y0, x1, y1)?;
            (crop.width.min(crop.height) > 3).then_some((piece.text.as_str(), crop))
        })
        .unzip();
    let readings = nets.read(&crops)?;
    trust::likeness(texts.into_iter().zip(readings.iter().map(Reading::text)))
}

/// A grid of [`GRAIN`] px squares, true where a word stands.
struct Covered {
    columns: usize,
    rows: usize,
    squares: Vec<bool>,
}

impl Covered {
    fn by(words: &[Word], width: usize, height: usize) -> Self {
        let (columns, rows) = (width / GRAIN + 1, height / GRAIN + 1);
        let mut squares = vec![false; columns * rows];
        let square = |v: f32, most: usize| (v.max(0.0) as usize / GRAIN).min(most);
        for word in words {
            let b = word.bbox;
            let (left, right) = (square(b.x0, columns - 1), square(b.x1, columns - 1));
            for y in square(b.y0, rows - 1)..=square(b.y1, rows - 1) {
                squares[y * columns + left..=y * columns + right.max(left)].fill(true);
            }
        }
        Covered { columns, rows, squares }
    }
}

/// For each line the share of its length, along its middle, on which words stand.
fn coverage(quads: &[Quad], words: &[Word], width: usize, height: usize) -> Vec<f32> {
    let covered = Covered::by(words, width, height);
    let square = |v: f32, most: usize| (v.max(0.0) as usize / GRAIN).min(most);
    quads
        .iter()
        .map(|quad| {
            let b = quad.bbox();
            let row = square(b.center().1, covered.rows - 1) * covered.columns;
            let (left, right) = (square(b.x0, covered.columns - 1), square(b.x1, covered.columns - 1));
            let squares = &covered.squares[row + left..=row + right.max(left)];
            squares.iter().filter(|s| **s).count() as f32 / squares.len() as f32
        })
        .collect()
}

/// Is there much more ink beside the words than in them?
fn has_ink_beside(raster: &Raster, words: &[Word]) -> bool {
    let covered = Covered::by(words, raster.width, raster.height);
    let (mut inside, mut outside) = (0, 0);
    for y in (0..raster.height).step_by(GRAIN / 2) {
        for x in (0..raster.width).step_by(GRAIN / 2) {
            if raster.pixel(x, y)[1] < INK {
                let hit = covered.squares[y / GRAIN * covered.columns + x / GRAIN];
                *(if hit { &mut inside } else { &mut outside }) += 1;
            }
        }
    }
    outside > MUCH_INK * inside
}

/// What the OCR found on a picture.
#[derive(Default)]
struct PictureRead {
    /// The picture upright and level; `None`: as it was.
    raster: Option<Raster>,
    words: Vec<Word>,
    turn: u8,
    skew_deg: f32,
}

/// Finds which way up the picture is and how it slants, and reads it.
fn read_picture(raster: &Raster, nets: &mut Nets) -> PictureRead {
    if raster.is_blank() {
        return PictureRead::default();
    }
    let Some(quads) = nets.detect(raster) else { return PictureRead::default() };
    let turn = quarter_turns(raster, &quads, |crops| nets.read(crops).ok_or(())).unwrap_or(0);
    if turn == 0 {
        return read_upright(raster, quads, nets);
    }
    let upright = raster.turned_clockwise(turn);
    let quads = nets.detect(&upright).unwrap_or_default();
    let read = read_upright(&upright, quads, nets);
    PictureRead { raster: Some(read.raster.unwrap_or(upright)), turn, ..read }
}

/// Lines are read where they slant; the page and their places are levelled afterwards, so pixels are resampled only once.
fn read_upright(raster: &Raster, quads: Vec<Quad>, nets: &mut Nets) -> PictureRead {
    let Some(slant) = common_slant(&quads) else {
        let words = read_lines(raster, &quads, &quads, nets);
        return PictureRead { words, ..PictureRead::default() };
    };
    let level = Levelling::new(raster.width, raster.height, slant);
    let places: Vec<Quad> = quads.iter().map(|q| q.map(|p| level.point(p))).collect();
    let words = read_lines(raster, &quads, &places, nets);
    PictureRead { raster: Some(level.apply(raster)), words, turn: 0, skew_deg: slant }
}

/// Reads lines that stand at `quads` of `raster`; the words stand at `places`.
fn read_lines(raster: &Raster, quads: &[Quad], places: &[Quad], nets: &mut Nets) -> Vec<Word> {
    let mut words = Vec::new();
    let mut line = 0;
    for (quads, places) in quads.chunks(LINES_AT_ONCE).zip(places.chunks(LINES_AT_ONCE)) {
        let crops: Vec<Raster> = quads.iter().map(|q| cut_line(raster, q)).collect();
        let Some(readings) = nets.read(&crops) else { return words };
        for (place, reading) in places.iter().zip(&readings) {
            words.extend(words_of_line(place, reading, line));
            line += 1;
        }
    }
    words
}
