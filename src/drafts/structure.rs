//! A page's words and its networks' answers -> regions in reading order with words or cells in them.
//!
//! ```text
//! layout --> words to regions --> second thoughts --> the rest becomes regions --> running matter --> order --> table grids
//! ```

use crate::geometry::{Rect, hull};
use crate::lines::{hull_of, lines_of, median, rtl_share};
use crate::page::{Kind, Region, Rules, Word};
use crate::raster::Raster;
use crate::tables::{drawn_tables, lined_tables, read_table};

use super::columns::part_columns;
use super::contents::{part_contents, part_line_numbers};
use super::labels::pair_labels;
use super::listings::part_listings;
use super::mathematics::write_display;
use super::order::{Direction, xycut};
use super::reads::{Verdict, second_thoughts};
use super::regions::{
    assign, bare_region, fit_box, group_leftover, grow_tables, join_edges, join_heading_pieces, join_numbers,
    join_strays, region_of, runs_of, tabular,
};
use super::running::{Sheet, is_running, mark_footnotes, mark_running, part_footnotes};
use super::{PageNets, PageWords};
use crate::patterns::{CAPTION, monospaced, plain};

/// Share of the page that a picture covers which may be its background.
const GROUND: f32 = 0.5;

/// All regions of a page in reading order: headers first, footers and page numbers last. Every word of the page stands in exactly
/// one region, in its words or in its cells. Figures and charts without words are kept if there is something to see in them.
pub fn draft_regions(page: &PageWords, nets: &mut dyn PageNets) -> Vec<Region> {
    let (line_numbers, words) = part_line_numbers(&page.words);
    let mut regions = filled_regions(page, &words, nets);
    let sheet = sheet_of(page, &regions);
    if page.from_layer {
        part_all_footnotes(&mut regions, sheet.body);
    }
    mark_running(&mut regions, sheet);
    join_heading_pieces(&mut regions);
    mark_footnotes(&mut regions, &page.rules, sheet);
    regions = regions.into_iter().flat_map(part_listings).flat_map(|r| part_table(r, &page.rules)).collect();
    for region in &mut regions {
        let running_text = matches!(region.kind, Kind::Text | Kind::Figure | Kind::Reference | Kind::Formula);
        if running_text && monospaced(&region.words) {
            region.kind = Kind::Code;
        }
    }
    regions.extend(line_numbers);
    let mut regions = ordered(regions, page, sheet);
    for region in regions.iter_mut().filter(|r| r.kind == Kind::Table) {
        grid(region, &page.rules, nets);
    }
    write_display(&mut regions, &page.glyphs, &page.rules);
    regions
}

/// The regions that the layout network sees, in reading order, for a model to read: no drafter reads words.
pub fn unread_regions(page: &PageWords, nets: &mut dyn PageNets) -> Vec<Region> {
    let mut regions = nets.layout(&[]);
    regions.retain(|r| shows_something(&page.raster, r.bbox));
    let sheet = sheet_of(page, &regions);
    ordered(regions, page, sheet)
}

/// The layout's regions that stood second thoughts, with their words, and text regions for the words that are left.
fn filled_regions(page: &PageWords, words: &[Word], nets: &mut dyn PageNets) -> Vec<Region> {
    let (contents, words) = part_contents(words);
    let mut regions = nets.layout(&[]);
    let in_contents =
        |r: &Region| contents.iter().any(|c| r.bbox.intersection(&c.bbox) > 0.5 * r.bbox.area());
    regions.retain(|r| !in_contents(r));
    give_words(&mut regions, &words);
    let mut rejected = Vec::new();
    regions.retain_mut(|region| match second_thoughts(region) {
        Verdict::Is(kind) => {
            region.kind = kind;
            true
        }
        Verdict::Rejected => {
            rejected.push(region.bbox);
            false
        }
    });
    if !rejected.is_empty() {
        let seen_again = nets.layout(&[Kind::Table, Kind::Figure]);
        regions.extend(replacements(seen_again, &rejected, &regions));
        regions.retain(|r| !in_contents(r));
    }
    add_drawn_tables(&mut regions, page);
    let grounds = take_grounds(&mut regions, &page.raster);
    let left = give_words(&mut regions, &words);
    let left = join_strays(&mut regions, &left);
    regions.retain_mut(|r| keeps(r, &page.raster));
    regions.iter_mut().for_each(fit_box);
    let obstacles: Vec<Rect> = regions.iter().filter(|r| !r.words.is_empty()).map(|r| r.bbox).collect();
    let groups = join_edges(&mut regions, group_leftover(&left, &obstacles));
    regions.extend(groups.into_iter().map(|mut region| {
        if tabular(&region.words) {
            region.kind = Kind::Table;
        }
        region
    }));
    join_numbers(&mut regions);
    let mut regions: Vec<Region> = pair_labels(regions).into_iter().flat_map(part_columns).collect();
    regions.extend(grounds);
    regions.extend(contents);
    grow_tables(regions)
}

/// Complete drawn grids, and rows between drawn lines, that the layout did not see become tables; text regions inside them give up
/// their words.
fn add_drawn_tables(regions: &mut Vec<Region>, page: &PageWords) {
    let grids = drawn_tables(&page.rules, &page.words).into_iter();
    for bbox in grids.chain(lined_tables(&page.rules, &page.words)) {
        let seen: Vec<Rect> = regions.iter().filter(|r| r.kind == Kind::Table).map(|r| r.bbox).collect();
        if !seen.iter().any(|t| t.overlap_of_smaller(&bbox) > 0.3) {
            regions.retain(|r| r.bbox.intersection(&bbox) < 0.75 * r.bbox.area());
            regions.push(bare_region(Kind::Table, 0.0, bbox));
        }
    }
}

/// Takes out the pictures that fill most of the page and lie behind other regions: what is printed on them is not part of them.
fn take_grounds(regions: &mut Vec<Region>, raster: &Raster) -> Vec<Region> {
    let page = (raster.width * raster.height) as f32;
    let boxes: Vec<Rect> = regions.iter().filter(|r| !r.words.is_empty()).map(|r| r.bbox).collect();
    let is_ground = |r: &Region| {
        let on_it = boxes.iter().filter(|b| **b != r.bbox && holds(&r.bbox, b)).count();
        r.kind == Kind::Figure && r.bbox.area() > GROUND * page && on_it >= 2
    };
    let (mut grounds, others): (Vec<Region>, Vec<Region>) = regions.drain(..).partition(is_ground);
    *regions = others;
    grounds.iter_mut().for_each(|ground| ground.words.clear());
    grounds.retain(|ground| shows_something(raster, ground.bbox));
    grounds
}

/// Puts the words into the regions; returns those that no region takes.
fn give_words(regions: &mut [Region], words: &[Word]) -> Vec<Word> {
    let assigned = assign(words, regions);
    for (region, members) in regions.iter_mut().zip(assigned.members) {
        region.words = members;
    }
    assigned.left
}

/// Regions of the second look inside the boxes of rejected regions that no other region covers.
fn replacements(seen_again: Vec<Region>, rejected: &[Rect], kept: &[Region]) -> Vec<Region> {
    let mut taken: Vec<Rect> = kept.iter().map(|r| r.bbox).collect();
    let mut out = Vec::new();
    for region in seen_again {
        let inside = rejected.iter().any(|b| region.bbox.overlap_of_smaller(b) > 0.75);
        if inside && !taken.iter().any(|t| region.bbox.overlap_of_smaller(t) > 0.3) {
            taken.push(region.bbox);
            out.push(region);
        }
    }
    out
}

/// Regions without words are kept as pictures where they are figures, charts or tables (of a script that nothing read) and
/// show something.
fn keeps(region: &mut Region, raster: &Raster) -> bool {
    if !region.words.is_empty() {
        return true;
    }
    if region.kind == Kind::Table {
        region.kind = Kind::Figure;
    }
    matches!(region.kind, Kind::Figure | Kind::Chart) && shows_something(raster, region.bbox)
}

/// Do at least 0.5 % of the pixels inside `bbox` differ from the usual one by more than 40 of 255? Looks at 64 x 64 places.
fn shows_something(raster: &Raster, bbox: Rect) -> bool {
    const SIDE: usize = 64;
    if raster.width == 0 || raster.height == 0 {
        return false;
    }
    let place = |low: f32, length: f32, k: usize, most: usize| {
        ((low + length * (k as f32 + 0.5) / SIDE as f32).max(0.0) as usize).min(most - 1)
    };
    let mut levels: Vec<f32> = Vec::with_capacity(SIDE * SIDE);
    for j in 0..SIDE {
        let y = place(bbox.y0, bbox.height(), j, raster.height);
        for k in 0..SIDE {
            let x = place(bbox.x0, bbox.width(), k, raster.width);
            let [r, g, b] = raster.pixel(x, y);
            levels.push((f32::from(r) + f32::from(g) + f32::from(b)) / 3.0);
        }
    }
    let usual = median(levels.iter().copied());
    let different = levels.iter().filter(|&&v| (v - usual).abs() > 40.0).count();
    different as f32 > 0.005 * levels.len() as f32
}

fn sheet_of(page: &PageWords, regions: &[Region]) -> Sheet {
    let printed = hull(page.words.iter().map(|w| w.bbox)).unwrap_or_default();
    let body: Vec<f32> = regions
        .iter()
        .filter(|r| matches!(r.kind, Kind::Text | Kind::Reference))
        .flat_map(|r| &r.words)
        .flat_map(|w| std::iter::repeat_n(w.size, w.text.chars().count()))
        .collect();
    let body = if body.is_empty() { median(page.words.iter().map(|w| w.size)) } else { median(body) };
    Sheet { height: page.raster.height as f32, top: printed.y0, bottom: printed.y1, body }
}

fn part_all_footnotes(regions: &mut Vec<Region>, body: f32) {
    let notes: Vec<Region> = regions.iter_mut().filter_map(|r| part_footnotes(r, body)).collect();
    regions.extend(notes);
}

/// Parts a caption off the top of a table and notes off its bottom: whole lines without gaps that begin as such, outside the
/// drawn part of the table.
fn part_table(mut region: Region, rules: &Rules) -> Vec<Region> {
    if region.kind != Kind::Table {
        return vec![region];
    }
    let mut lines = lines_of(&region.words);
    let drawn = drawn_extent(&region.bbox, rules);
    let single = |line: &Vec<Word>| runs_of(line, 1.5).len() == 1;
    let outside = |line: &Vec<Word>| {
        drawn.is_none_or(|(top, bottom)| {
            let b = hull_of(line);
            b.center().1 < top || b.center().1 > bottom
        })
    };
    let begins = |line: &Vec<Word>| CAPTION.is_match(&plain(line));
    let mut out = Vec::new();
    let head = lines.iter().take_while(|l| single(l) && outside(l)).count();
    if head > 0 && head + 2 <= lines.len() && lines.first().is_some_and(begins) {
        let rest = lines.split_off(head);
        out.push(parted(&region, Kind::Caption, lines.concat()));
        lines = rest;
    }
    let tail = lines.iter().rev().take_while(|l| single(l) && outside(l)).count();
    let from = lines.len() - tail;
    let note = (from..lines.len()).find(|&k| begins(&lines[k]));
    if let Some(at) = note.filter(|&at| at >= 2) {
        let notes = lines.split_off(at);
        out.push(parted(&region, Kind::Caption, notes.concat()));
    }
    if !out.is_empty() {
        region.words = lines.concat();
        region.bbox = hull_of(&region.words);
    }
    out.push(region);
    out
}

fn parted(table: &Region, kind: Kind, words: Vec<Word>) -> Region {
    region_of(kind, table.score, words)
}

/// First and last level of the long horizontals and tall verticals drawn inside a table's box.
fn drawn_extent(bbox: &Rect, rules: &Rules) -> Option<(f32, f32)> {
    let inside = |y: f32| y > bbox.y0 - 6.0 && y < bbox.y1 + 6.0;
    let horizontal = rules
        .horizontal
        .iter()
        .filter(|l| inside(l.2) && l.1.min(bbox.x1) - l.0.max(bbox.x0) > 0.5 * bbox.width())
        .map(|l| l.2);
    let levels: Vec<f32> = horizontal.collect();
    let top = levels.iter().copied().reduce(f32::min)?;
    let bottom = levels.iter().copied().reduce(f32::max)?;
    Some((top, bottom))
}

/// Headers, then the body by cuts, then footers and page numbers.
fn ordered(regions: Vec<Region>, page: &PageWords, sheet: Sheet) -> Vec<Region> {
    let text: String = page.words.iter().map(|w| w.text.as_str()).collect();
    let direction = if rtl_share(&text) > 0.5 { Direction::RightToLeft } else { Direction::LeftToRight };
    let gutter = (0.4 * sheet.body).max(2.0);
    let (running, body): (Vec<Region>, Vec<Region>) = regions.into_iter().partition(|r| is_running(r.kind));
    let (headers, footers): (Vec<Region>, Vec<Region>) =
        running.into_iter().partition(|r| r.kind == Kind::Header);
    let filled: Vec<Rect> = body.iter().filter(|r| !r.words.is_empty()).map(|r| r.bbox).collect();
    let (grounds, body): (Vec<Region>, Vec<Region>) = body.into_iter().partition(|r| is_ground(r, &filled));
    let mut body = by_cuts(body, gutter, direction);
    for ground in grounds {
        let at = body.iter().position(|r| holds(&ground.bbox, &r.bbox)).unwrap_or(body.len());
        body.insert(at, ground);
    }
    let mut out = by_cuts(headers, gutter, direction);
    out.extend(body);
    out.extend(by_cuts(footers, gutter, direction));
    out
}

fn by_cuts(regions: Vec<Region>, gutter: f32, direction: Direction) -> Vec<Region> {
    let boxes: Vec<Rect> = regions.iter().map(|r| r.bbox).collect();
    let floats: Vec<bool> =
        regions.iter().map(|r| matches!(r.kind, Kind::Figure | Kind::Chart | Kind::Caption)).collect();
    let mut slots: Vec<Option<Region>> = regions.into_iter().map(Some).collect();
    xycut(&boxes, gutter, direction, &floats)
        .into_iter()
        .filter_map(|i| slots.get_mut(i).and_then(Option::take))
        .collect()
}

/// A picture behind other regions: it would close every gutter, so it takes no part in the cuts.
fn is_ground(region: &Region, filled: &[Rect]) -> bool {
    region.words.is_empty() && filled.iter().any(|b| holds(&region.bbox, b))
}

fn holds(outer: &Rect, inner: &Rect) -> bool {
    let (x, y) = inner.center();
    outer.x0 <= x && x <= outer.x1 && outer.y0 <= y && y <= outer.y1
}

/// Puts a table's words into a grid; without one the region becomes text.
fn grid(region: &mut Region, rules: &Rules, nets: &mut dyn PageNets) {
    match read_table(region.bbox, &region.words, rules, nets) {
        Some(cells) => {
            region.cells = Some(cells);
            region.words.clear();
        }
        None => region.kind = Kind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TimeLimit;
    use crate::drafts::{TableReading, TextLayer};
    use crate::lines::tests::word;
    use proptest::prelude::*;

    /// Answers with fixed layouts: the first for all kinds, the second where some are left out.
    struct Scripted {
        first: Vec<Region>,
        second: Vec<Region>,
    }

    impl PageNets for Scripted {
        fn layout(&mut self, skip: &[Kind]) -> Vec<Region> {
            if skip.is_empty() { self.first.clone() } else { self.second.clone() }
        }
        fn table(&mut self, _bbox: Rect) -> Option<TableReading> {
            None
        }
        fn picture_rules(&mut self, _bbox: Rect) -> Rules {
            Rules::default()
        }
    }

    fn page(words: Vec<Word>) -> PageWords {
        PageWords {
            raster: Raster::filled(800, 1000, [255, 255, 255]),
            words,
            glyphs: Vec::new(),
            rules: Rules::default(),
            turn: 0,
            skew_deg: 0.0,
            text_layer: TextLayer::Used,
            from_layer: true,
        }
    }

    fn region(kind: Kind, b: [f32; 4]) -> Region {
        bare_region(kind, 0.9, b.into())
    }

    /// One line of words 45 px apart, named by `name` and a number.
    fn line(name: &str, count: usize, x: f32, y: f32) -> Vec<Word> {
        (0..count)
            .map(|k| {
                let x = x + 45.0 * k as f32;
                word(&format!("{name}{k}"), x, y, x + 40.0, y + 14.0)
            })
            .collect()
    }

    fn block(name: &str, count: usize, x: f32, y: f32, lines: usize) -> Vec<Word> {
        (0..lines).flat_map(|r| line(&format!("{name}{r}"), count, x, y + 18.0 * r as f32)).collect()
    }

    fn words_in(region: &Region) -> usize {
        region.words.len() + region.cells.iter().flatten().map(|c| c.words.len()).sum::<usize>()
    }

    #[test]
    fn a_page_whose_time_is_over_is_given_up() {
        let late = TimeLimit::start(std::time::Duration::ZERO, 1);
        let page = page(block("crowd", 40, 10.0, 10.0, 50));
        let mut nets = Scripted { first: Vec::new(), second: Vec::new() };
        assert!(late.hold(|| draft_regions(&page, &mut nets)).is_none());
    }

    #[test]
    fn title_columns_table_and_page_number_come_in_order() {
        let mut words = line("title", 6, 200.0, 40.0);
        words.extend(block("right", 7, 420.0, 100.0, 8));
        words.extend(block("left", 7, 50.0, 100.0, 8));
        for r in 0..4 {
            let y = 400.0 + 20.0 * r as f32;
            words.extend((0..4).map(|c| {
                word(&format!("{r}{c}"), 100.0 + 150.0 * c as f32, y, 130.0 + 150.0 * c as f32, y + 14.0)
            }));
        }
        words.push(word("7", 390.0, 970.0, 400.0, 984.0));
        let first = vec![
            region(Kind::Table, [90.0, 395.0, 600.0, 480.0]),
            region(Kind::Text, [418.0, 98.0, 740.0, 250.0]),
            region(Kind::Heading, [200.0, 38.0, 420.0, 56.0]),
            region(Kind::Text, [48.0, 98.0, 370.0, 250.0]),
        ];
        let total = words.len();
        let got = draft_regions(&page(words), &mut Scripted { first, second: Vec::new() });
        let kinds: Vec<Kind> = got.iter().map(|r| r.kind).collect();
        assert_eq!(kinds, [Kind::Heading, Kind::Text, Kind::Text, Kind::Table, Kind::PageNumber]);
        assert_eq!(got[1].words[0].text, "left00");
        let cells = got[3].cells.as_ref().unwrap();
        assert_eq!((cells.len(), got[3].words.len()), (16, 0));
        assert_eq!(got.iter().map(words_in).sum::<usize>(), total);
    }

    #[test]
    fn prose_taken_for_a_table_gets_a_second_look() {
        let words: Vec<Word> = (0..5)
            .flat_map(|r| {
                let y = 100.0 + 18.0 * r as f32;
                (0..9).map(move |k| {
                    word("sentence", 50.0 + 45.0 * k as f32, y, 90.0 + 45.0 * k as f32, y + 14.0)
                })
            })
            .collect();
        let first = vec![region(Kind::Table, [40.0, 95.0, 480.0, 200.0])];
        let second = vec![region(Kind::Reference, [45.0, 95.0, 470.0, 195.0])];
        let got = draft_regions(&page(words), &mut Scripted { first, second });
        assert_eq!(got.iter().map(|r| r.kind).collect::<Vec<_>>(), [Kind::Reference]);
    }

    #[test]
    fn figure_without_words_is_kept_if_it_shows_something() {
        let mut page = page(block("w", 8, 50.0, 100.0, 5));
        for y in 400..500 {
            for x in 100..200 {
                let at = (y * page.raster.width + x) * 3;
                page.raster.rgb[at..at + 3].copy_from_slice(&[0, 0, 90]);
            }
        }
        let first = vec![
            region(Kind::Figure, [50.0, 350.0, 400.0, 600.0]),
            region(Kind::Figure, [50.0, 700.0, 400.0, 900.0]),
        ];
        let got = draft_regions(&page, &mut Scripted { first, second: Vec::new() });
        assert_eq!(got.iter().map(|r| r.kind).collect::<Vec<_>>(), [Kind::Text, Kind::Figure]);
        assert_eq!(got[1].bbox.y0, 350.0);
    }

    #[test]
    fn words_on_a_picture_behind_the_page_are_no_part_of_it() {
        let mut page = page(block("left", 6, 50.0, 100.0, 5));
        page.words.extend(block("right", 6, 420.0, 100.0, 5));
        page.words.extend(block("below", 6, 50.0, 300.0, 2));
        page.raster.rgb[800 * 3 * 700..].fill(90);
        let first = vec![
            region(Kind::Figure, [0.0, 60.0, 800.0, 1000.0]),
            region(Kind::Text, [418.0, 98.0, 740.0, 200.0]),
            region(Kind::Text, [48.0, 98.0, 370.0, 200.0]),
        ];
        let got = draft_regions(&page, &mut Scripted { first, second: Vec::new() });
        let kinds: Vec<(Kind, usize)> = got.iter().map(|r| (r.kind, r.words.len())).collect();
        assert_eq!(kinds, [(Kind::Figure, 0), (Kind::Text, 30), (Kind::Text, 12), (Kind::Text, 30)]);
        assert_eq!(got[1].words[0].text, "left00");
    }

    #[test]
    fn drawn_grid_that_the_layout_missed_is_a_table() {
        let mut words = block("w", 8, 50.0, 100.0, 5);
        for k in 0..9 {
            let (x, y) = (100.0 + 100.0 * (k % 3) as f32, 404.0 + 30.0 * (k / 3) as f32);
            words.push(word("cell", x + 10.0, y, x + 50.0, y + 14.0));
        }
        let mut page = page(words);
        page.rules.horizontal = (0..4).map(|k| (100.0, 400.0, 400.0 + 30.0 * k as f32)).collect();
        page.rules.vertical = (0..4).map(|k| (400.0, 490.0, 100.0 + 100.0 * k as f32)).collect();
        let first = vec![region(Kind::Text, [105.0, 400.0, 395.0, 485.0])];
        let got = draft_regions(&page, &mut Scripted { first, second: Vec::new() });
        assert_eq!(got.iter().map(|r| r.kind).collect::<Vec<_>>(), [Kind::Text, Kind::Table]);
        assert_eq!(got[1].cells.as_ref().map(Vec::len), Some(9));
    }

    #[test]
    fn caption_line_leaves_its_table() {
        let mut words = vec![
            word("Table", 100.0, 300.0, 140.0, 314.0),
            word("2:", 144.0, 300.0, 160.0, 314.0),
            word("Harvests", 164.0, 300.0, 230.0, 314.0),
        ];
        for r in 0..4 {
            let y = 330.0 + 20.0 * r as f32;
            words.extend(
                (0..3).map(|c| word("1", 100.0 + 150.0 * c as f32, y, 130.0 + 150.0 * c as f32, y + 14.0)),
            );
        }
        let first = vec![region(Kind::Table, [90.0, 295.0, 450.0, 420.0])];
        let got = draft_regions(&page(words), &mut Scripted { first, second: Vec::new() });
        assert_eq!(got.iter().map(|r| r.kind).collect::<Vec<_>>(), [Kind::Caption, Kind::Table]);
        assert_eq!(got[1].cells.as_ref().map(Vec::len), Some(12));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_word_stands_in_one_region(
            raw in proptest::collection::vec((0f32..750.0, 0u16..60, 4f32..90.0, 8f32..22.0), 0..80),
            boxes in proptest::collection::vec((0f32..700.0, 0f32..900.0, 10f32..500.0, 10f32..300.0, 0usize..9), 0..8),
        ) {
            let words: Vec<Word> = raw.iter().enumerate()
                .map(|(k, &(x, r, w, h))| { let y = f32::from(r) * 16.0; word(&k.to_string(), x, y, x + w, y + h) })
                .collect();
            let kinds = [Kind::Text, Kind::Table, Kind::Figure, Kind::Header, Kind::Heading, Kind::Caption, Kind::Formula, Kind::Footer, Kind::Reference];
            let first: Vec<Region> = boxes.iter().map(|&(x, y, w, h, k)| region(kinds[k], [x, y, x + w, y + h])).collect();
            let second = first.iter().filter(|r| !matches!(r.kind, Kind::Table | Kind::Figure)).cloned().collect();
            let total = words.len();
            let got = draft_regions(&page(words), &mut Scripted { first, second });
            let mut ids: Vec<usize> = got.iter()
                .flat_map(|r| r.words.iter().chain(r.cells.iter().flatten().flat_map(|c| &c.words)))
                .map(|w| w.text.parse().unwrap())
                .collect();
            ids.sort_unstable();
            prop_assert_eq!(ids, (0..total).collect::<Vec<_>>());
        }
    }
}
