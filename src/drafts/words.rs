//! A page's words: the text layer where it says what the picture shows, the OCR where it does not or says too little.

use std::borrow::Cow;

use super::mathematics::write_inline;
use super::nets::Nets;
use super::ocr::{cut_line, words_of_line};
use super::recognise::Reading;
use super::skew::common_slant;
use super::tesseract::{TesseractPage, needs_tesseract};
use super::turn::{laid_down, quarter_turns, text_stands, turned_rules, turned_words};
use super::unnamed::name_characters;
use super::{PageWords, TextLayer, trust};
use crate::page::{PageEvidence, Rules, Word};
use crate::raster::Raster;
use crate::raster::quad::Quad;
use crate::raster::slant::Levelling;
use crate::settings::Drafters;

/// Likeness below which the text of somebody else's OCR is worse than that of ours: two good readings of a clean scan have 0.97
/// and up.
const GOOD_READING: f32 = 0.9;
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

/// A page of whose lines the network can read less than this, one way up or the other, may be in a script that it lacks. Scans
/// in its own have 0.9 and up.
const LEGIBLE: f32 = 0.85;

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

/// Settles the words of a page; one whose text stands is laid on its side, where its lines run from left to right. Without the OCR networks a text layer is taken unless its own characters are impossible.
pub fn page_words(evidence: PageEvidence, nets: &mut Nets, drafters: &Drafters) -> PageWords {
    let ocr = drafters.ocr && nets.has_ocr();
    let evidence =
        if drafters.text_layer && text_stands(&evidence.words) { laid_down(evidence) } else { evidence };
    let mut words = if drafters.text_layer { evidence.words.clone() } else { Vec::new() };
    let verdict = judge(&evidence, &words, nets, ocr);
    if ocr && matches!(verdict, Verdict::Complete | Verdict::Partial(_)) {
        name_characters(&mut words, &evidence.glyphs, &evidence.raster, nets);
    }
    let page = |raster: Raster, words: Vec<Word>, text_layer: TextLayer| PageWords {
        raster,
        words,
        glyphs: Vec::new(),
        rules: evidence.rules.clone(),
        turn: evidence.turn % 4,
        skew_deg: 0.0,
        text_layer,
        from_layer: matches!(text_layer, TextLayer::Used | TextLayer::Incomplete),
    };
    let (text_layer, better_than_nothing) = match verdict {
        Verdict::Complete => {
            let words = write_inline(&words, &evidence.glyphs, &evidence.rules);
            return PageWords { glyphs: evidence.glyphs, ..page(evidence.raster, words, TextLayer::Used) };
        }
        Verdict::Partial(missing) => {
            let mut all = write_inline(&words, &evidence.glyphs, &evidence.rules);
            let added = read_lines(&evidence.raster, &missing, &missing, nets);
            all.extend(added.into_iter().map(|w| Word { line: w.line + OCR_LINES, ..w }));
            return PageWords {
                glyphs: evidence.glyphs,
                ..page(evidence.raster, all, TextLayer::Incomplete)
            };
        }
        Verdict::Absent => (TextLayer::None, false),
        Verdict::Garbage => (TextLayer::Garbage, false),
        Verdict::Doubtful(text_layer) => (text_layer, true),
    };
    if !ocr {
        return PageWords { from_layer: false, ..page(evidence.raster, Vec::new(), text_layer) };
    }
    if nets.languages().iter().any(|language| needs_tesseract(language))
        && let Some(page) = nets.tesseract(&evidence.raster)
    {
        return read_by_tesseract(page, &evidence, text_layer);
    }
    let upright = find_upright(&evidence.raster, nets);
    let turn = (evidence.turn + upright.turn) % 4;
    if upright.turn != 0 && better_than_nothing {
        let (w, h) = (evidence.raster.width as f32, evidence.raster.height as f32);
        let turned = turned_words(&words, upright.turn, w, h);
        if likeness(&upright.raster, &turned, nets).is_some_and(trust::is_like) {
            let rules = turned_rules(&evidence.rules, upright.turn, w, h);
            return PageWords { rules, turn, ..page(upright.raster.into_owned(), turned, TextLayer::Used) };
        }
    }
    if upright.legible < LEGIBLE
        && let Some(page) = nets.tesseract(&evidence.raster)
    {
        return read_by_tesseract(page, &evidence, text_layer);
    }
    let read = read_upright(&upright, nets);
    if read.words.is_empty() && better_than_nothing {
        drop(upright);
        return page(evidence.raster, words, TextLayer::Used);
    }
    let rules = if read.levelled.is_some() {
        Rules::default()
    } else {
        turned_rules(
            &evidence.rules,
            upright.turn,
            evidence.raster.width as f32,
            evidence.raster.height as f32,
        )
    };
    PageWords {
        glyphs: Vec::new(),
        raster: read.levelled.unwrap_or_else(|| upright.raster.into_owned()),
        words: read.words,
        rules,
        turn,
        skew_deg: read.skew_deg,
        text_layer,
        from_layer: false,
    }
}

fn read_by_tesseract(page: TesseractPage, evidence: &PageEvidence, text_layer: TextLayer) -> PageWords {
    let TesseractPage { words, turn, raster } = page;
    let (w, h) = (evidence.raster.width as f32, evidence.raster.height as f32);
    PageWords {
        raster,
        words,
        glyphs: Vec::new(),
        rules: turned_rules(&evidence.rules, turn, w, h),
        turn: (evidence.turn + turn) % 4,
        skew_deg: 0.0,
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
        Some(value) if is_of_a_scan(evidence) && value < GOOD_READING => {
            return Verdict::Doubtful(TextLayer::Garbage);
        }
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

/// Is the layer what somebody's OCR read from a scan?
fn is_of_a_scan(evidence: &PageEvidence) -> bool {
    evidence.hidden_share > 0.5 && evidence.picture_share > LARGE_PICTURE
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

/// A picture the right way up, and its text lines.
struct Upright<'a> {
    raster: Cow<'a, Raster>,
    /// Quarter turns clockwise that it took.
    turn: u8,
    quads: Vec<Quad>,
    /// See [`super::turn::Turn`]; 1 without lines.
    legible: f32,
}

/// Finds the text lines of a picture, and which way up it is.
fn find_upright<'a>(raster: &'a Raster, nets: &mut Nets) -> Upright<'a> {
    let quads = if raster.is_blank() { None } else { nets.detect(raster) }.unwrap_or_default();
    let found = quarter_turns(raster, &quads, |crops| nets.read(crops).ok_or(())).unwrap_or_default();
    let (turn, legible) = (found.quarters, found.legible.unwrap_or(1.0));
    if turn == 0 {
        return Upright { raster: Cow::Borrowed(raster), turn, quads, legible };
    }
    let turned = raster.turned_clockwise(turn);
    let quads = nets.detect(&turned).unwrap_or_default();
    Upright { raster: Cow::Owned(turned), turn, quads, legible }
}

/// What the OCR read.
struct UprightRead {
    words: Vec<Word>,
    /// The picture with its lines made level, if they were not.
    levelled: Option<Raster>,
    skew_deg: f32,
}

/// Lines are read where they slant; the page and their places are levelled afterwards, so pixels are resampled only once.
fn read_upright(page: &Upright<'_>, nets: &mut Nets) -> UprightRead {
    let (raster, quads) = (&*page.raster, &page.quads);
    let Some(slant) = common_slant(quads) else {
        return UprightRead { words: read_lines(raster, quads, quads, nets), levelled: None, skew_deg: 0.0 };
    };
    let level = Levelling::new(raster.width, raster.height, slant);
    let places: Vec<Quad> = quads.iter().map(|q| q.map(|p| level.point(p))).collect();
    let words = read_lines(raster, quads, &places, nets);
    UprightRead { words, levelled: Some(level.apply(raster)), skew_deg: slant }
}

/// Reads lines that stand at `quads` of `raster`; the words stand at `places`.
fn read_lines(raster: &Raster, quads: &[Quad], places: &[Quad], nets: &mut Nets) -> Vec<Word> {
    let mut words = Vec::new();
    let mut line = 0;
    for (quads, places) in quads.chunks(LINES_AT_ONCE).zip(places.chunks(LINES_AT_ONCE)) {
        let crops: Vec<Raster> = quads.iter().map(|q| cut_line(raster, q)).collect();
        let Some(readings) = nets.read_lines(crops) else { return words };
        for (place, reading) in places.iter().zip(&readings) {
            words.extend(words_of_line(place, reading, line));
            line += 1;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drafts::drawn::{LINES, evidence, models, page};
    use crate::page::Source;
    use crate::raster::slant::Levelling;

    fn nets() -> Nets {
        Nets::new(&models(), &Drafters::ALL, 1)
    }

    /// Text of the words by line.
    fn text(words: &[Word]) -> Vec<String> {
        let mut lines: Vec<(u32, String)> = Vec::new();
        for w in words {
            match lines.last_mut() {
                Some((line, text)) if *line == w.line => *text += &format!(" {}", w.text),
                _ => lines.push((w.line, w.text.clone())),
            }
        }
        lines.into_iter().map(|(_, text)| text).collect()
    }

    fn assert_reads(read: &[Word]) {
        let (read, wanted) = (text(read).join("\n"), LINES.join("\n"));
        let like = rapidfuzz::distance::indel::normalized_similarity(read.chars(), wanted.chars());
        assert!(like > 0.95, "{like}: {read}");
    }

    #[test]
    fn a_picture_is_read_and_its_words_stand_where_they_were_drawn() {
        let (raster, wanted) = page();
        let mut nets = nets();
        let read = page_words(evidence(raster, Vec::new(), 1.0), &mut nets, &Drafters::ALL);
        assert_reads(&read.words);
        assert_eq!((read.turn, read.skew_deg, read.text_layer), (0, 0.0, TextLayer::None));
        assert!(!read.from_layer && read.words.iter().all(|w| w.source == Source::Ocr));
        for (a, b) in read.words.iter().zip(&wanted) {
            assert!(a.bbox.iou(&b.bbox) > 0.6, "{} {:?} {:?}", a.text, a.bbox, b.bbox);
        }
        let stats = nets.take_stats();
        assert_eq!((stats.detection.calls, stats.layout.calls), (1, 0));
        assert_eq!(nets.take_warnings(), [""; 0]);
    }

    #[test]
    fn upside_down_and_slanting_pages_are_set_right() {
        let (raster, wanted) = page();
        let slanting = Levelling::new(raster.width, raster.height, -2.0).apply(&raster);
        let read =
            page_words(evidence(slanting.turned_clockwise(2), Vec::new(), 1.0), &mut nets(), &Drafters::ALL);
        assert_reads(&read.words);
        assert_eq!(read.turn, 2);
        assert!((read.skew_deg - 2.0).abs() < 0.3, "{}", read.skew_deg);
        let heights: Vec<f32> = read.words.iter().map(|w| w.bbox.height()).collect();
        assert!(heights.iter().all(|&h| h < 1.4 * wanted[0].bbox.height()), "{heights:?}");
    }

    #[test]
    fn a_true_layer_is_kept_and_a_false_one_is_not() {
        let (raster, words) = page();
        let mut nets = nets();
        let kept = page_words(evidence(raster.clone(), words.clone(), 0.0), &mut nets, &Drafters::ALL);
        assert_eq!((kept.text_layer, &kept.words), (TextLayer::Used, &words));
        let stats = nets.take_stats();
        assert_eq!((stats.recognition.calls, stats.detection.calls), (4, 0));
        let rotated = |c: char| char::from_u32('A' as u32 + (c as u32 - 'A' as u32 + 13) % 26).unwrap_or(c);
        let lies = words.iter().map(|w| Word { text: w.text.chars().map(rotated).collect(), ..w.clone() });
        let read = page_words(evidence(raster, lies.collect(), 0.0), &mut nets, &Drafters::ALL);
        assert_eq!(read.text_layer, TextLayer::Garbage);
        assert_reads(&read.words);
    }

    #[test]
    fn a_true_layer_that_stands_on_its_head_is_turned_with_the_page() {
        let (raster, words) = page();
        let (w, h) = (raster.width as f32, raster.height as f32);
        let mut nets = nets();
        let upside_down = evidence(raster.turned_clockwise(2), turned_words(&words, 2, w, h), 0.0);
        let read = page_words(upside_down, &mut nets, &Drafters::ALL);
        assert_eq!((read.text_layer, read.turn, read.from_layer), (TextLayer::Used, 2, true));
        assert_eq!((&read.raster, &read.words), (&raster, &words));
    }

    #[test]
    fn lines_that_only_a_picture_has_are_added_to_the_layer() {
        let (raster, mut words) = page();
        words.retain(|w| w.line < 3);
        let read = page_words(evidence(raster, words.clone(), 0.9), &mut nets(), &Drafters::ALL);
        assert_eq!(read.text_layer, TextLayer::Incomplete);
        assert_eq!(read.words[..words.len()], words);
        assert_reads(&read.words);
    }

    #[test]
    fn without_ocr_a_layer_is_taken_unless_its_characters_are_impossible() {
        let (raster, mut words) = page();
        let no_ocr = Drafters { ocr: false, ..Drafters::ALL };
        let mut nets = Nets::new(&models(), &no_ocr, 1);
        let kept = page_words(evidence(raster.clone(), words.clone(), 1.0), &mut nets, &no_ocr);
        assert_eq!((kept.text_layer, &kept.words), (TextLayer::Used, &words));
        for w in &mut words {
            w.suspicious = 0.5;
        }
        let dropped = page_words(evidence(raster.clone(), words.clone(), 1.0), &mut nets, &no_ocr);
        assert_eq!((dropped.text_layer, dropped.words.len()), (TextLayer::Garbage, 0));
        let ignored = page_words(evidence(raster, words, 1.0), &mut nets, &Drafters::NONE);
        assert_eq!((ignored.text_layer, ignored.words.len()), (TextLayer::None, 0));
    }

    #[test]
    fn blank_pages_cost_no_run() {
        let mut nets = nets();
        let blank = Raster::filled(800, 1000, [255; 3]);
        let read = page_words(evidence(blank, Vec::new(), 0.0), &mut nets, &Drafters::ALL);
        assert!(read.words.is_empty());
        assert_eq!(nets.take_stats().detection.calls, 0);
    }
}
