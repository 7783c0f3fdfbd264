//! Running matter: headers, footers and page numbers at the edges of a page, and footnotes at the bottom of its columns.

use crate::geometry::{Rect, hull};
use crate::lines::{hull_of, median};
use crate::page::{Kind, Region, Rules, Word};

use super::regions::{letter_width, line_boxes, runs_of};
use crate::patterns::{CAPTION, FOOTNOTE, IMPRINT, PAGE_NUMBER, plain};

/// Running matter stands in this outer share of what is printed, and of the page.
const EDGE: f32 = 0.12;

/// A page number alone stands in this outer share of what is printed.
const NUMBER_EDGE: f32 = 0.06;

/// More lines than this are no header or footer that the network may call so.
const MOST_LINES: usize = 3;

/// Type below this share of the body's size is small.
const SMALL: f32 = 0.9;

/// Type above this multiple of the body's size is large.
const LARGE: f32 = 1.25;

/// A page needs as many words beside its edge bands for these to be told from its text.
const LEAST_BODY_WORDS: usize = 15;

/// What the rules about edges need to know of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sheet {
    /// Height of the raster, px.
    pub(super) height: f32,
    /// First and last printed row, px.
    pub(super) top: f32,
    pub(super) bottom: f32,
    /// Usual height of the letters of the body, px.
    pub(super) body: f32,
}

/// Changes to Header, Footer or PageNumber what the layout network or the rules below take for running matter, and back to
/// text what the network took for it in the middle of the page or tight to the body. Where most of a page would be running
/// matter, none of it is.
pub(super) fn mark_running(regions: &mut [Region], sheet: Sheet) {
    for at in 0..regions.len() {
        let region = &regions[at];
        if is_running(region.kind) && !at_edge(region, sheet) {
            regions[at].kind = Kind::Text;
        } else if region.kind == Kind::Header && stands_out(region, regions, sheet) {
            regions[at].kind = Kind::Heading;
        } else if is_running(region.kind) && tight_to_body(at, regions, sheet) {
            let line = line_boxes(&region.words).len() == 1 && region.kind == Kind::Header;
            regions[at].kind = if line { Kind::Heading } else { Kind::Text };
        }
    }
    for region in regions.iter_mut() {
        if (is_plain(region.kind) || is_running(region.kind)) && is_page_number(region, sheet) {
            region.kind = Kind::PageNumber;
        }
    }
    mark_bands(regions, sheet, Edge::Top);
    mark_bands(regions, sheet, Edge::Bottom);
    free_below_title(regions);
    let length = |r: &Region| r.words.iter().map(|w| w.text.chars().count()).sum::<usize>();
    let all: usize = regions.iter().map(length).sum();
    let running: usize = regions.iter().filter(|r| is_running(r.kind)).map(length).sum();
    if 2 * running > all {
        for region in regions.iter_mut().filter(|r| is_running(r.kind)) {
            region.kind = Kind::Text;
        }
    }
}

pub(super) fn is_running(kind: Kind) -> bool {
    matches!(kind, Kind::Header | Kind::Footer | Kind::PageNumber)
}

fn is_plain(kind: Kind) -> bool {
    matches!(kind, Kind::Text | Kind::Reference | Kind::Caption | Kind::Other)
}

fn at_edge(region: &Region, sheet: Sheet) -> bool {
    let place = (region.bbox.center().1 - sheet.top) / (sheet.bottom - sheet.top).max(1.0);
    !(EDGE..=1.0 - EDGE).contains(&place) && line_boxes(&region.words).len() <= MOST_LINES
}

/// Running matter stands apart. What has the size of the body, and a text region less than 0.6 of its line height away, is the
/// first heading or the last line of the page's text.
fn tight_to_body(at: usize, regions: &[Region], sheet: Sheet) -> bool {
    let region = &regions[at];
    let b = region.bbox;
    let size = median(region.words.iter().map(|w| w.size));
    let line = median(region.words.iter().map(|w| w.bbox.height()));
    let text =
        |r: &Region| matches!(r.kind, Kind::Text | Kind::List | Kind::Reference) && !r.words.is_empty();
    let near = |r: &Region| r.bbox.overlap_x(&b) > 0.0 && -r.bbox.overlap_y(&b) < 0.6 * line;
    size >= SMALL * sheet.body
        && !PAGE_NUMBER.is_match(&plain(&region.words))
        && regions.iter().enumerate().any(|(k, r)| k != at && text(r) && near(r))
}

/// Letters this much wider than the body's are of a larger type.
const WIDE: f32 = 1.4;

/// Is the region, of a picture, set in wider letters than the body? A single word may be the section's name in a magazine's head.
fn set_wide(region: &Region, regions: &[Region]) -> bool {
    let Some(width) = letter_width(&region.words).filter(|_| region.words.len() > 1) else { return false };
    let body = regions.iter().filter(|r| r.kind == Kind::Text && r.words.len() > LEAST_BODY_WORDS);
    let usual = median(body.filter_map(|r| letter_width(&r.words)));
    usual > 0.0 && width > WIDE * usual
}

/// Headers are set no larger than the text. What is larger, or bold and a little larger, is a title.
fn stands_out(region: &Region, regions: &[Region], sheet: Sheet) -> bool {
    let size = median(region.words.iter().map(|w| w.size));
    let bold = |r: &Region| 2 * r.words.iter().filter(|w| w.bold).count() > r.words.len();
    let plain_body =
        regions.iter().any(|r| r.kind == Kind::Text && r.words.len() > LEAST_BODY_WORDS && !bold(r));
    let letters = region.words.iter().flat_map(|w| w.text.chars()).filter(|c| c.is_alphabetic()).count();
    let larger = size > LARGE * sheet.body
        || bold(region) && plain_body && size > 1.04 * sheet.body
        || set_wide(region, regions);
    larger && letters >= 4 && !number_apart(&region.words) && !IMPRINT.is_match(&plain(&region.words))
}

/// Nothing below a page's title is a header.
fn free_below_title(regions: &mut [Region]) {
    let top = |r: &&Region| matches!(r.kind, Kind::Title | Kind::Heading);
    let Some(bottom) = regions.iter().filter(top).map(|r| r.bbox.y1).reduce(f32::min) else { return };
    for region in regions.iter_mut().filter(|r| r.kind == Kind::Header && r.bbox.y0 >= bottom) {
        region.kind = Kind::Text;
    }
}

fn is_page_number(region: &Region, sheet: Sheet) -> bool {
    let reach = NUMBER_EDGE * (sheet.bottom - sheet.top);
    let edge = region.bbox.y1 < sheet.top + reach || region.bbox.y0 > sheet.bottom - reach;
    edge && PAGE_NUMBER.is_match(&plain(&region.words))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    Top,
    Bottom,
}

/// Marks the outermost bands of text at one edge as running matter: short regions on one level in the outer part of the page,
/// with a sign that they are no text of the page. White must stand between them and the rest; bands may be close to each
/// other (a line and the page number under it), three at most.
fn mark_bands(regions: &mut [Region], sheet: Sheet, edge: Edge) {
    let mut passed: Vec<usize> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for _ in 0..3 {
        let band = outermost_band(regions, &passed, edge);
        let spread = is_spread(regions, &band);
        let signed = spread || band.iter().any(|&i| has_sign(&regions[i], sheet));
        if band.is_empty() || !signed || !band.iter().all(|&i| could_run(&regions[i], sheet, edge)) {
            return;
        }
        passed.extend(&band);
        open.extend(band);
        let others: Vec<&Region> = (0..regions.len())
            .filter(|i| !passed.contains(i))
            .map(|i| &regions[i])
            .filter(|r| !r.words.is_empty())
            .collect();
        let body_words: usize = others.iter().filter(|r| reads_as_body(r.kind)).map(|r| r.words.len()).sum();
        let white = white_between(regions, &open, &others);
        if body_words < LEAST_BODY_WORDS {
            return;
        }
        if white > if spread { 0.3 } else { 1.2 } {
            for i in open.drain(..).filter(|&i| !is_running(regions[i].kind)).collect::<Vec<_>>() {
                regions[i].kind = if edge == Edge::Top { Kind::Header } else { Kind::Footer };
            }
        }
    }
}

/// Three or more lines on one level with wide gaps between them: left, middle and right of a footer.
fn is_spread(regions: &[Region], band: &[usize]) -> bool {
    let mut boxes: Vec<Rect> = band.iter().map(|&i| regions[i].bbox).collect();
    boxes.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    boxes.len() >= 3 && boxes.windows(2).all(|p| p[1].x0 - p[0].x1 > 3.0 * p[0].height().max(p[1].height()))
}

fn reads_as_body(kind: Kind) -> bool {
    !matches!(kind, Kind::Table | Kind::Figure | Kind::Chart) && !is_running(kind)
}

/// The region with words nearest to the edge, and those on its level; regions in `marked` are passed over.
fn outermost_band(regions: &[Region], marked: &[usize], edge: Edge) -> Vec<usize> {
    let candidates: Vec<usize> =
        (0..regions.len()).filter(|i| !marked.contains(i) && !regions[*i].words.is_empty()).collect();
    let key = |i: &usize| if edge == Edge::Top { regions[*i].bbox.y0 } else { -regions[*i].bbox.y1 };
    let Some(first) = candidates.iter().copied().min_by(|a, b| key(a).total_cmp(&key(b))) else {
        return Vec::new();
    };
    let b = regions[first].bbox;
    let level = |i: &usize| {
        let o = regions[*i].bbox;
        o.overlap_y(&b) > 0.3 * o.height().min(b.height())
    };
    candidates.into_iter().filter(level).collect()
}

/// Short, in the outer part of the page, of a kind that running matter comes as. A heading with nothing below it is none.
fn could_run(region: &Region, sheet: Sheet, edge: Edge) -> bool {
    let b = region.bbox;
    let place = b.center().1 / sheet.height.max(1.0);
    let outer = !(EDGE..=1.0 - EDGE).contains(&place);
    let logo = region.kind == Kind::Figure && region.words.len() <= 6 && b.height() < 0.08 * sheet.height;
    let heading = edge == Edge::Bottom && matches!(region.kind, Kind::Title | Kind::Heading);
    let small = region.words.len() <= 10 && region.words.iter().all(|w| w.size < SMALL * sheet.body);
    let most_lines = if small { 3 } else { 2 };
    let text = (is_plain(region.kind) || heading)
        && line_boxes(&region.words).len() <= most_lines
        && !CAPTION.is_match(&plain(&region.words));
    outer && (is_running(region.kind) || logo || text)
}

/// A sign of running matter: the network says so, it is a page number or has one at its end, it says what only imprints say,
/// or it is set small and is no footnote.
fn has_sign(region: &Region, sheet: Sheet) -> bool {
    let text = plain(&region.words);
    let size = median(region.words.iter().map(|w| w.size));
    is_running(region.kind)
        || PAGE_NUMBER.is_match(&text)
        || IMPRINT.is_match(&text)
        || number_apart(&region.words)
        || size < SMALL * sheet.body && !FOOTNOTE.is_match(&text)
}

/// Does a line begin or end with a number that stands apart from its text?
fn number_apart(words: &[Word]) -> bool {
    let runs = runs_of(words, 1.5);
    let ends = [runs.first(), runs.last()];
    runs.len() >= 2
        && line_boxes(words).len() == 1
        && ends.into_iter().flatten().any(|run| PAGE_NUMBER.is_match(&plain(run)))
}

/// White between the band and the nearest other region, in line heights of the band.
fn white_between(regions: &[Region], band: &[usize], others: &[&Region]) -> f32 {
    let hull = hull(band.iter().map(|&i| regions[i].bbox)).unwrap_or_default();
    let line = median(band.iter().flat_map(|&i| regions[i].words.iter().map(|w| w.bbox.height())));
    let gap = others.iter().map(|r| -r.bbox.overlap_y(&hull)).fold(f32::INFINITY, f32::min);
    gap / line.max(1.0)
}

/// Marks small text at the bottom of its column as a footnote: it starts with a mark, or a short rule stands above it.
pub(super) fn mark_footnotes(regions: &mut [Region], rules: &Rules, sheet: Sheet) {
    let found: Vec<usize> = (0..regions.len()).filter(|&i| is_footnote(i, regions, rules, sheet)).collect();
    for i in found {
        regions[i].kind = Kind::Footnote;
    }
}

fn is_footnote(at: usize, regions: &[Region], rules: &Rules, sheet: Sheet) -> bool {
    let region = &regions[at];
    let b = region.bbox;
    let size = median(region.words.iter().map(|w| w.size));
    let low = b.center().1 > (sheet.top + sheet.bottom) / 2.0;
    if !matches!(region.kind, Kind::Text | Kind::Other) || !low || size >= SMALL * sheet.body {
        return false;
    }
    let text_below = regions.iter().enumerate().any(|(k, r)| {
        let small = median(r.words.iter().map(|w| w.size)) < SMALL * sheet.body;
        k != at
            && !is_running(r.kind)
            && !r.words.is_empty()
            && !small
            && r.bbox.overlap_x(&b) > 0.0
            && r.bbox.y0 >= b.y1 - size
    });
    !text_below && (FOOTNOTE.is_match(&plain(&region.words)) || rule_above(&b, size, rules))
}

/// A short drawn line just above a box, starting at its left edge: the footnote rule.
fn rule_above(b: &Rect, size: f32, rules: &Rules) -> bool {
    rules.horizontal.iter().any(|&(x0, x1, y)| {
        let width = x1 - x0;
        (x0 - b.x0).abs() < 2.0 * size
            && width < 0.7 * b.width().max(20.0 * size)
            && width > 2.0 * size
            && y < b.y0 + 0.5 * size
            && b.y0 - y < 2.0 * size
    })
}

/// Parts off the footnotes that the layout put into one region with the body above them: from the first small line that starts
/// with a mark on, if everything below it is small too and everything above is not.
pub(super) fn part_footnotes(region: &mut Region, body: f32) -> Option<Region> {
    if !matches!(region.kind, Kind::Text | Kind::Reference) {
        return None;
    }
    let lines = crate::lines::lines_of(&region.words);
    let small = |line: &[Word]| median(line.iter().map(|w| w.size)) < SMALL * body;
    let at = lines.iter().rposition(|line| !small(line))? + 1;
    let notes = lines.get(at..)?;
    let first = notes.first()?;
    if !FOOTNOTE.is_match(&plain(first)) || lines[..at].iter().filter(|l| small(l)).count() * 4 > at {
        return None;
    }
    let words: Vec<Word> = notes.concat();
    let bbox = hull_of(&words);
    region.words = lines[..at].concat();
    region.bbox = hull_of(&region.words);
    Some(Region { kind: Kind::Text, bbox, words, ..region.clone() })
}

#[cfg(test)]
mod tests {
    use super::super::regions::region_of;
    use super::*;
    use crate::lines::tests::word;
    use crate::page::Source;

    const SHEET: Sheet = Sheet { height: 1000.0, top: 30.0, bottom: 970.0, body: 20.0 };

    /// A region of one line of words, 100 px each, `size` high.
    fn line(kind: Kind, text: &str, x: f32, y: f32, size: f32) -> Region {
        let words: Vec<Word> = text
            .split(' ')
            .enumerate()
            .map(|(k, t)| word(t, x + 105.0 * k as f32, y, x + 105.0 * k as f32 + 100.0, y + size))
            .collect();
        region_of(kind, 0.5, words)
    }

    fn body() -> Vec<Region> {
        (0..5)
            .map(|k| line(Kind::Text, "some words of the body", 50.0, 200.0 + 25.0 * k as f32, 20.0))
            .collect()
    }

    fn kinds_with(extra: Vec<Region>) -> Vec<Kind> {
        let n = extra.len();
        let mut regions = extra;
        regions.extend(body());
        mark_running(&mut regions, SHEET);
        regions.iter().take(n).map(|r| r.kind).collect()
    }

    /// Words of a picture, `width` px a letter.
    fn pictured(kind: Kind, text: &str, y: f32, width: f32) -> Region {
        let mut x = 50.0;
        let words = text.split(' ').map(|t| {
            let end = x + width * t.len() as f32;
            let word = Word { source: Source::Ocr, ..word(t, x, y, end, y + 20.0) };
            x = end + width;
            word
        });
        region_of(kind, 0.5, words.collect())
    }

    #[test]
    fn wide_letters_of_a_picture_are_a_title_however_high_their_line_is() {
        let text = "many small words of the body of the page that go on and on and on for a while";
        let kinds = |head: &str, width: f32| {
            let mut regions = vec![pictured(Kind::Header, head, 40.0, width)];
            regions.extend((0..4).map(|k| pictured(Kind::Text, text, 200.0 + 40.0 * k as f32, 9.0)));
            mark_running(&mut regions, SHEET);
            regions[0].kind
        };
        assert_eq!(kinds("Tides in Small Harbours", 15.0), Kind::Heading);
        assert_eq!(kinds("Tides in Small Harbours", 9.0), Kind::Header);
        assert_eq!(kinds("LETTERS ON TIDES", 15.0), Kind::Header, "capitals are wide in any size");
    }

    #[test]
    fn number_at_the_edge_is_a_page_number_and_one_in_the_middle_is_not() {
        let got = kinds_with(vec![
            line(Kind::Text, "12", 500.0, 950.0, 20.0),
            line(Kind::Text, "13", 50.0, 500.0, 20.0),
        ]);
        assert_eq!(got, [Kind::PageNumber, Kind::Text]);
    }

    #[test]
    fn small_or_imprint_line_apart_at_the_bottom_is_a_footer() {
        assert_eq!(kinds_with(vec![line(Kind::Text, "Annual Report", 50.0, 940.0, 14.0)]), [Kind::Footer]);
        assert_eq!(kinds_with(vec![line(Kind::Text, "© 2020 Someone", 50.0, 940.0, 20.0)]), [Kind::Footer]);
        assert_eq!(kinds_with(vec![line(Kind::Text, "Last words", 50.0, 940.0, 20.0)]), [Kind::Text]);
        assert_eq!(kinds_with(vec![line(Kind::Text, "* See there", 50.0, 940.0, 14.0)]), [Kind::Text]);
    }

    #[test]
    fn neighbours_of_a_page_number_are_running_too() {
        let got = kinds_with(vec![
            line(Kind::Text, "Chapter Methods", 50.0, 35.0, 20.0),
            line(Kind::Text, "12", 900.0, 35.0, 20.0),
        ]);
        assert_eq!(got, [Kind::Header, Kind::PageNumber]);
    }

    #[test]
    fn items_spread_over_the_last_line_are_a_footer() {
        let mut regions: Vec<Region> = [("Revision 2", 50.0), ("P/N 119", 420.0), ("June", 850.0)]
            .map(|(t, x)| line(Kind::Text, t, x, 945.0, 20.0))
            .into();
        regions.push(line(Kind::Text, "last line of the body just above it", 50.0, 915.0, 20.0));
        assert_eq!(kinds_with(regions), [Kind::Footer, Kind::Footer, Kind::Footer, Kind::Text]);
    }

    #[test]
    fn heading_beside_the_page_number_below_everything_is_a_footer() {
        let got = kinds_with(vec![
            line(Kind::Heading, "COMPANY", 50.0, 940.0, 30.0),
            line(Kind::Text, "1", 900.0, 945.0, 20.0),
        ]);
        assert_eq!(got, [Kind::Footer, Kind::PageNumber]);
    }

    #[test]
    fn header_tight_to_the_text_below_it_is_a_heading() {
        let tight = vec![
            line(Kind::Header, "2. BACKGROUND", 50.0, 35.0, 20.0),
            line(Kind::Text, "text below", 50.0, 60.0, 20.0),
        ];
        assert_eq!(kinds_with(tight), [Kind::Heading, Kind::Text]);
        let apart = vec![
            line(Kind::Header, "2. BACKGROUND", 50.0, 35.0, 20.0),
            line(Kind::Text, "text below", 50.0, 85.0, 20.0),
        ];
        assert_eq!(kinds_with(apart), [Kind::Header, Kind::Text]);
    }

    #[test]
    fn header_in_the_middle_and_most_of_a_page_are_text() {
        assert_eq!(kinds_with(vec![line(Kind::Header, "No header", 50.0, 600.0, 20.0)]), [Kind::Text]);
        let mut only = vec![
            line(Kind::Header, "All there is", 50.0, 35.0, 20.0),
            line(Kind::Text, "x", 50.0, 900.0, 20.0),
        ];
        mark_running(&mut only, SHEET);
        assert_eq!(only[0].kind, Kind::Text);
    }

    #[test]
    fn small_text_with_a_mark_at_the_bottom_of_its_column_is_a_footnote() {
        let mut regions = body();
        regions.push(line(Kind::Text, "1 See the book", 50.0, 900.0, 14.0));
        regions.push(line(Kind::Text, "small without mark", 550.0, 900.0, 14.0));
        mark_footnotes(&mut regions, &Rules::default(), SHEET);
        assert_eq!(regions.iter().skip(5).map(|r| r.kind).collect::<Vec<_>>(), [Kind::Footnote, Kind::Text]);
        let rules = Rules { horizontal: vec![(550.0, 650.0, 890.0)], vertical: Vec::new() };
        mark_footnotes(&mut regions, &rules, SHEET);
        assert_eq!(regions[6].kind, Kind::Footnote);
    }

    #[test]
    fn footnote_is_parted_from_the_body_above_it() {
        let mut region = line(Kind::Text, "body text", 50.0, 860.0, 20.0);
        region.words.extend(line(Kind::Text, "1 See there", 50.0, 900.0, 14.0).words);
        let note = part_footnotes(&mut region, 20.0).unwrap();
        assert_eq!((region.words.len(), note.words.len()), (2, 3));
        assert_eq!(part_footnotes(&mut region, 20.0), None);
    }
}
