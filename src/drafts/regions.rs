//! Words and layout regions brought together: runs of words, which region takes which run, regions made from what no region
//! takes, tables that grow over their left-out columns.

use crate::clock::worked;
use crate::geometry::Rect;
use crate::lines::{chunks, hull_of, line_indices, lines_of, median};
use crate::page::{Kind, Region, Source, Word};
use crate::tables::aligned;

use super::reads::prose;
use crate::patterns::{HEADING_NUMBER, MARK, plain};

/// Words further apart than this many line heights belong to different runs.
const RUN_GAP: f32 = 0.7;

/// How many of the latest blocks a line outside all regions may join: others are far above it.
const RECENT_BLOCKS: usize = 200;

/// A region without text or grid.
pub(super) fn bare_region(kind: Kind, score: f32, bbox: Rect) -> Region {
    Region { kind, score, bbox, words: Vec::new(), cells: None, markup: None, stop: None }
}

/// A region of `words`, as large as they are.
pub(super) fn region_of(kind: Kind, score: f32, words: Vec<Word>) -> Region {
    let bbox = hull_of(&words);
    Region { words, ..bare_region(kind, score, bbox) }
}

/// Pieces of text lines between gaps wider than `em` line heights, top to bottom; a lone list mark joins the run after it.
pub(super) fn runs_of(words: &[Word], em: f32) -> Vec<Vec<Word>> {
    let mut out: Vec<Vec<Word>> = Vec::new();
    for line in lines_of(words) {
        let size = median(line.iter().map(|w| w.bbox.height()));
        let first = out.len();
        for chunk in chunks(&line, em * size) {
            let mark = out.get(first..).and_then(|runs| runs.last()).and_then(|run| match run.as_slice() {
                [only] if MARK.is_match(&only.text) => Some(only.bbox.x1),
                _ => None,
            });
            match (mark, out.last_mut(), chunk.first()) {
                (Some(x1), Some(last), Some(next)) if next.bbox.x0 - x1 < 2.5 * size => last.extend(chunk),
                _ => out.push(chunk),
            }
        }
    }
    out
}

/// Mean width of a letter of a picture's text, px. A line's height there depends on whether its letters have tails; their mean width
/// does not. `None` for other text, and for what is no run of small letters.
pub(super) fn letter_width(words: &[Word]) -> Option<f32> {
    if words.iter().any(|w| w.source != Source::Ocr) {
        return None;
    }
    let letters = || words.iter().flat_map(|w| w.text.chars());
    let (all, small) = (letters().count(), letters().filter(|c| c.is_lowercase()).count());
    let width: f32 = words.iter().map(|w| w.bbox.width()).sum();
    (2 * small > all).then(|| width / all as f32)
}

/// Which words went where.
#[derive(Debug)]
pub(super) struct Assigned {
    /// For each region, its words, line by line.
    pub(super) members: Vec<Vec<Word>>,
    /// Words that no region takes.
    pub(super) left: Vec<Word>,
}

/// How well a region suits a run.
struct Claim {
    region: usize,
    rank: f32,
    /// Share of the run's width inside the region.
    cover: f32,
}

/// Gives every run of words to the region that covers most of it; a run across regions side by side goes word by word.
pub(super) fn assign(words: &[Word], regions: &[Region]) -> Assigned {
    let page = hull_of(words);
    let mut out = Assigned { members: vec![Vec::new(); regions.len()], left: Vec::new() };
    for run in runs_of(words, RUN_GAP) {
        let hull = hull_of(&run);
        let claims = claims_on(&hull, regions, page);
        let apart = side_by_side(&claims, regions, 0.15 * hull.height());
        if apart.len() >= 2 {
            for word in run {
                let middle = word.bbox.center().0;
                let away =
                    |&r: &usize| (regions[r].bbox.x0 - middle).max(middle - regions[r].bbox.x1).max(0.0);
                let nearest = apart.iter().copied().min_by(|a, b| away(a).total_cmp(&away(b)));
                match nearest {
                    Some(region) => out.members[region].push(word),
                    None => out.left.push(word),
                }
            }
            continue;
        }
        match claims.first().filter(|c| suffices(c, regions[c.region].kind, &hull, page)) {
            Some(claim) => out.members[claim.region].extend(run),
            None => out.left.extend(run),
        }
    }
    out
}

/// Regions that cover more than a tenth of the run, best first. Tables keep their cells, small regions win inside figures.
fn claims_on(run: &Rect, regions: &[Region], page: Rect) -> Vec<Claim> {
    worked(regions.len());
    let mut claims: Vec<Claim> = regions
        .iter()
        .enumerate()
        .filter_map(|(region, r)| {
            let b = &r.bbox;
            if run.overlap_y(b) < 0.5 * run.height() {
                return None;
            }
            let cover = run.overlap_x(b).max(0.0) / run.width().max(1e-6);
            let table = if r.kind == Kind::Table { 0.5 } else { 0.0 };
            let rank = cover + table - 0.2 * b.area() / page.area().max(1.0);
            (cover > 0.1).then_some(Claim { region, rank, cover })
        })
        .collect();
    claims.sort_by(|a, b| b.rank.total_cmp(&a.rank));
    claims
}

/// Claimants that share no width with any other (`slack` px aside).
fn side_by_side(claims: &[Claim], regions: &[Region], slack: f32) -> Vec<usize> {
    let alone = |c: &&Claim| {
        c.cover > 0.15
            && claims
                .iter()
                .filter(|o| o.region != c.region)
                .all(|o| regions[c.region].bbox.overlap_x(&regions[o.region].bbox) < slack)
    };
    claims.iter().filter(alone).map(|c| c.region).collect()
}

/// Is the claim good enough? Three quarters of the run, or a part of it if little sticks out or the region is of a kind whose
/// boxes come out short.
fn suffices(claim: &Claim, kind: Kind, run: &Rect, page: Rect) -> bool {
    let short = matches!(kind, Kind::Header | Kind::Footer | Kind::Title | Kind::Heading);
    let outside = (1.0 - claim.cover) * run.width();
    claim.cover >= 0.75 || claim.cover >= 0.3 && (short || outside < 0.2 * page.width())
}

/// Gives a run that no region takes to the text region whose line it continues: the last word of a line that is spaced out, the
/// number before a heading, the mark before an item. Returns the words that are still left.
pub(super) fn join_strays(regions: &mut [Region], left: &[Word]) -> Vec<Word> {
    let text = |k: Kind| {
        matches!(k, Kind::Text | Kind::List | Kind::Reference | Kind::Caption | Kind::Title | Kind::Heading)
    };
    let lines: Vec<(usize, Rect)> = regions
        .iter()
        .enumerate()
        .filter(|(_, r)| text(r.kind))
        .flat_map(|(k, r)| lines_of(&r.words).into_iter().map(move |line| (k, usual_box(&line))))
        .collect();
    let mut out = Vec::new();
    for run in runs_of(left, RUN_GAP) {
        worked(lines.len());
        let hull = hull_of(&run);
        let said = plain(&run);
        let leads = MARK.is_match(&said) || HEADING_NUMBER.is_match(&said);
        let gap = |b: &Rect| -b.overlap_x(&hull);
        let continues = |b: &Rect| {
            let height = hull.height().min(b.height());
            let reach = if leads && hull.x1 < b.x0 { 2.5 } else { 1.2 } * height;
            let sizes = hull.height() / b.height().max(1e-6);
            b.overlap_y(&hull) > 0.7 * height && gap(b) < reach && (0.7..1.4).contains(&sizes)
        };
        let line = lines
            .iter()
            .filter(|(k, b)| continues(b) && !reaches_over(*k, &hull, regions))
            .min_by(|(_, a), (_, b)| gap(a).total_cmp(&gap(b)));
        match line {
            Some(&(k, _)) => regions[k].words.extend(run),
            None => out.extend(run),
        }
    }
    out
}

/// The number of a heading or an item that stands alone on a line of one region goes to the region whose first line it leads.
pub(super) fn join_numbers(regions: &mut Vec<Region>) {
    let text = |k: Kind| matches!(k, Kind::Text | Kind::List | Kind::Title | Kind::Heading | Kind::Other);
    let firsts: Vec<Option<Rect>> = regions
        .iter()
        .map(|r| lines_of(&r.words).first().filter(|_| text(r.kind)).map(|line| usual_box(line)))
        .collect();
    for at in 0..regions.len() {
        if !text(regions[at].kind) {
            continue;
        }
        let lines = lines_of(&regions[at].words);
        for line in &lines {
            let [number] = line.as_slice() else { continue };
            if !(HEADING_NUMBER.is_match(&number.text) || MARK.is_match(&number.text)) {
                continue;
            }
            worked(firsts.len());
            let b = number.bbox;
            let leads = |(_, f): &(usize, Rect)| {
                let height = b.height().min(f.height());
                let gap = f.x0 - b.x1;
                b.overlap_y(f) > 0.7 * height
                    && (0.0..2.5 * height).contains(&gap)
                    && (0.7..1.4).contains(&(b.height() / f.height().max(1e-6)))
            };
            let firsts = firsts.iter().enumerate().filter_map(|(k, f)| f.filter(|_| k != at).map(|f| (k, f)));
            if let Some((to, _)) = firsts.filter(leads).min_by(|a, b| a.1.x0.total_cmp(&b.1.x0)) {
                regions[at].words.retain(|w| w.bbox != b);
                regions[to].words.push(number.clone());
                fit_box(&mut regions[to]);
                fit_box(&mut regions[at]);
            }
        }
    }
    regions.retain(|r| !r.words.is_empty() || !text(r.kind));
}

/// A line's box with the usual top and bottom of its words: bullets and formula signs are often taller.
fn usual_box(line: &[Word]) -> Rect {
    let hull = hull_of(line);
    Rect { y0: median(line.iter().map(|w| w.bbox.y0)), y1: median(line.iter().map(|w| w.bbox.y1)), ..hull }
}

/// Would region `at`, grown over `hull`, overlap another region that neither of them overlaps now?
fn reaches_over(at: usize, hull: &Rect, regions: &[Region]) -> bool {
    let overlap = |a: &Rect, b: &Rect| a.overlap_x(b) > 3.0 && a.overlap_y(b) > 3.0;
    let own = hull_of(&regions[at].words);
    let both = own.union(hull);
    let others = regions.iter().enumerate().filter(|(k, r)| *k != at && !r.words.is_empty());
    others.map(|(_, r)| hull_of(&r.words)).any(|b| overlap(&both, &b) && !overlap(&own, &b))
}

/// Boxes of regions that hold words become those words' hulls; tables, figures and charts only grow.
pub(super) fn fit_box(region: &mut Region) {
    if region.words.is_empty() {
        return;
    }
    let hull = hull_of(&region.words);
    let keeps = matches!(region.kind, Kind::Figure | Kind::Chart | Kind::Table);
    region.bbox = if keeps { region.bbox.union(&hull) } else { hull };
}

/// A block of lines under one another.
struct Block {
    bbox: Rect,
    height: f32,
    words: Vec<Word>,
}

/// Text regions from words outside all regions: runs, then blocks of runs of one size close to one another that do not reach
/// over any of the `obstacles`.
pub(super) fn group_leftover(words: &[Word], obstacles: &[Rect]) -> Vec<Region> {
    let mut blocks: Vec<Block> = Vec::new();
    for run in runs_of(words, 0.9) {
        worked(RECENT_BLOCKS + obstacles.len());
        let bbox = hull_of(&run);
        let height = median(run.iter().map(|w| w.bbox.height()));
        let recent = blocks.len().saturating_sub(RECENT_BLOCKS);
        let joins = |block: &&mut Block| {
            let gap = bbox.y0 - block.bbox.y1;
            let ratio = height / block.height.max(1e-6);
            let over = bbox.overlap_x(&block.bbox) > 0.3 * bbox.width().min(block.bbox.width());
            let close = gap < 0.8 * height.min(block.height) && gap > -0.8 * height;
            let both = bbox.union(&block.bbox);
            over && close
                && (0.75..1.33).contains(&ratio)
                && !obstacles.iter().any(|o| both.overlap_x(o) > 3.0 && both.overlap_y(o) > 3.0)
        };
        match blocks[recent..].iter_mut().rev().find(joins) {
            Some(block) => {
                block.words.extend(run);
                block.bbox = block.bbox.union(&bbox);
                block.height = height;
            }
            None => blocks.push(Block { bbox, height, words: run }),
        }
    }
    blocks.into_iter().map(|b| Region { words: b.words, ..bare_region(Kind::Text, 0.0, b.bbox) }).collect()
}

/// Lines that the layout left out above or below a text region go to it where they are set as its own lines are. Returns the other groups.
pub(super) fn join_edges(regions: &mut [Region], groups: Vec<Region>) -> Vec<Region> {
    let blocks: Vec<(usize, Setting)> = regions
        .iter()
        .enumerate()
        .filter(|(_, r)| matches!(r.kind, Kind::Text | Kind::List | Kind::Reference))
        .filter_map(|(k, r)| Some((k, Setting::of(&r.words)?)))
        .collect();
    let mut out = Vec::new();
    for group in groups {
        worked(blocks.len());
        match blocks.iter().find(|(_, block)| block.goes_on_with(&group)) {
            Some(&(k, _)) => {
                regions[k].words.extend(group.words);
                fit_box(&mut regions[k]);
            }
            None => out.push(group),
        }
    }
    out
}

/// How the lines of a block of two or more are set.
struct Setting {
    bbox: Rect,
    height: f32,
    gap: f32,
    bold: bool,
}

impl Setting {
    fn of(words: &[Word]) -> Option<Setting> {
        let boxes = line_boxes(words);
        let gap = median(boxes.windows(2).map(|w| w[1].y0 - w[0].y1));
        let bold = mostly_bold(words);
        (boxes.len() > 1).then(|| Setting {
            bbox: hull_of(words),
            height: median(words.iter().map(|w| w.bbox.height())),
            gap,
            bold,
        })
    }

    fn goes_on_with(&self, group: &Region) -> bool {
        let (own, other) = (&self.bbox, &group.bbox);
        let gap = (other.y0 - own.y1).max(own.y0 - other.y1);
        let height = median(group.words.iter().map(|w| w.bbox.height()));
        gap > -0.3 * self.height
            && gap < self.gap + 0.25 * self.height
            && (0.9..1.1).contains(&(height / self.height.max(1e-6)))
            && (other.x0 - own.x0).abs() < 0.5 * self.height
            && other.x1 < own.x1 + 2.0 * self.height
            && mostly_bold(&group.words) == self.bold
    }
}

fn mostly_bold(words: &[Word]) -> bool {
    2 * words.iter().filter(|w| w.bold).count() > words.len()
}

/// A heading of a picture takes the pieces of its line that were found apart: in a line without tails a space is wide for its height,
/// not for its letters.
pub(super) fn join_heading_pieces(regions: &mut Vec<Region>) {
    let is_line = |r: &Region| line_boxes(&r.words).len() == 1;
    let mut at = 0;
    while at < regions.len() {
        worked(regions.len());
        let heading = &regions[at];
        let width =
            letter_width(&heading.words).filter(|_| heading.kind == Kind::Heading && is_line(heading));
        let piece = width.and_then(|width| {
            regions.iter().position(|other| {
                let (a, b) = (&heading.bbox, &other.bbox);
                let gap = (b.x0 - a.x1).max(a.x0 - b.x1);
                other.kind == Kind::Text
                    && (0.0..1.2 * width).contains(&gap)
                    && a.overlap_y(b) > 0.7 * a.height().max(b.height())
                    && is_line(other)
            })
        });
        let Some(piece) = piece else {
            at += 1;
            continue;
        };
        at -= usize::from(piece < at);
        let piece = regions.remove(piece);
        let heading = &mut regions[at];
        heading.words.extend(piece.words);
        heading.words.sort_by(|a, b| a.bbox.x0.total_cmp(&b.bbox.x0));
        fit_box(heading);
    }
}

/// Text beside a table on the table's own lines is a column that the layout left out.
pub(super) fn grow_tables(mut regions: Vec<Region>) -> Vec<Region> {
    let mut at = 0;
    while at < regions.len() {
        if regions[at].kind == Kind::Table {
            worked(regions.len());
            let beside: Vec<usize> =
                (0..regions.len()).filter(|&k| k != at && continues(&regions[at], &regions[k])).collect();
            for &k in beside.iter().rev() {
                let column = regions.remove(k);
                at -= usize::from(k < at);
                let table = &mut regions[at];
                table.bbox = table.bbox.union(&column.bbox);
                table.words.extend(column.words);
            }
        }
        at += 1;
    }
    regions
}

fn continues(table: &Region, other: &Region) -> bool {
    let text =
        matches!(other.kind, Kind::Text | Kind::Reference | Kind::Caption | Kind::Title | Kind::Heading);
    let (b, q) = (&other.bbox, &table.bbox);
    let apart = (b.x0 - q.x1).max(q.x0 - b.x1);
    if !text || b.overlap_y(q) < 0.8 * b.height() || apart > 0.5 * q.width() {
        return false;
    }
    let rows = line_boxes(&table.words);
    let lines = line_boxes(&other.words);
    worked(rows.len().saturating_mul(lines.len()));
    let on_row = |l: &&Rect| rows.iter().any(|r| (l.center().1 - r.center().1).abs() < 0.25 * l.height());
    let on = lines.iter().filter(on_row).count();
    rows.len() >= 3 && !lines.is_empty() && on as f32 >= 0.8 * lines.len() as f32 && !prose(&other.words)
}

/// Hulls of the text lines of some words, top to bottom.
pub(super) fn line_boxes(words: &[Word]) -> Vec<Rect> {
    line_indices(words).iter().map(|line| hull_of(line.iter().map(|&i| &words[i]))).collect()
}

/// Do the words form a grid? Four rows and three columns or more, two thirds of the cells filled, numbers in a quarter of them
/// or many cells, and no running text.
pub(super) fn tabular(words: &[Word]) -> bool {
    if words.len() < 8 {
        return false;
    }
    let Some(cells) = aligned(words, &crate::page::Rules::default()) else {
        return false;
    };
    let rows = cells.iter().map(|c| c.row + 1).max().unwrap_or(0);
    let cols = cells.iter().map(|c| c.col + 1).max().unwrap_or(0);
    let filled: Vec<_> = cells.iter().filter(|c| !c.words.is_empty()).collect();
    let numbers =
        filled.iter().filter(|c| c.words.iter().any(|w| w.text.contains(|ch: char| ch.is_numeric()))).count();
    rows >= 4
        && cols >= 3
        && filled.len() as f32 >= 0.65 * cells.len() as f32
        && (numbers as f32 > 0.25 * filled.len() as f32 || rows * cols >= 40)
        && !prose(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::word;
    use proptest::prelude::*;

    fn region(kind: Kind, b: [f32; 4]) -> Region {
        bare_region(kind, 0.9, b.into())
    }

    #[test]
    fn pieces_of_a_pictures_heading_are_joined() {
        let piece = |kind, text: &str, x: f32| {
            let word = Word { source: Source::Ocr, ..word(text, x, 0.0, x + 9.0 * text.len() as f32, 10.0) };
            region_of(kind, 0.5, vec![word])
        };
        let joined = |gap: f32, kind| {
            let mut regions = vec![piece(Kind::Text, "Tides", 0.0), piece(kind, "harbours", 45.0 + gap)];
            join_heading_pieces(&mut regions);
            regions.iter().map(|r| (r.kind, plain(&r.words))).collect::<Vec<_>>()
        };
        assert_eq!(joined(10.0, Kind::Heading), [(Kind::Heading, "Tides harbours".to_owned())]);
        assert_eq!(joined(14.0, Kind::Heading).len(), 2, "another column");
        assert_eq!(joined(10.0, Kind::Text).len(), 2);
    }

    /// Words `w0 w1 ...` of 40 px, 5 px apart, from `x` on.
    fn line(count: usize, x: f32, y: f32) -> Vec<Word> {
        (0..count)
            .map(|k| {
                let x = x + 45.0 * k as f32;
                word(&format!("w{k}"), x, y, x + 40.0, y + 10.0)
            })
            .collect()
    }

    #[test]
    fn a_first_line_that_the_layout_left_out_goes_to_its_text() {
        let joined = |y: f32, x: f32, bold: bool| {
            let mut regions =
                vec![region_of(Kind::Text, 0.9, [line(5, 0.0, 14.0), line(5, 0.0, 28.0)].concat())];
            let lost: Vec<Word> = line(4, x, y).into_iter().map(|w| Word { bold, ..w }).collect();
            let left = join_edges(&mut regions, vec![region_of(Kind::Text, 0.0, lost)]);
            (regions[0].words.len(), left.len())
        };
        assert_eq!(joined(0.0, 0.0, false), (14, 0), "above");
        assert_eq!(joined(42.0, 0.0, false), (14, 0), "below");
        assert_eq!(joined(50.0, 0.0, false), (10, 1), "a paragraph of its own");
        assert_eq!(joined(0.0, 60.0, false), (10, 1), "set otherwise");
        assert_eq!(joined(0.0, 0.0, true), (10, 1), "a heading");
    }

    #[test]
    fn list_mark_joins_the_text_after_it() {
        let mut words = vec![word("•", 0.0, 0.0, 4.0, 10.0)];
        words.extend(line(2, 20.0, 0.0));
        words.extend(line(1, 300.0, 0.0));
        let runs = runs_of(&words, RUN_GAP);
        assert_eq!(runs.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn run_that_sticks_out_goes_whole_to_its_region() {
        let regions = [region(Kind::Text, [0.0, 0.0, 180.0, 40.0])];
        let mut words = line(5, 0.0, 0.0);
        words.extend(line(2, 0.0, 200.0));
        let got = assign(&words, &regions);
        assert_eq!((got.members[0].len(), got.left.len()), (5, 2));
    }

    #[test]
    fn run_across_two_columns_is_parted_at_the_words() {
        let regions =
            [region(Kind::Text, [0.0, 0.0, 133.0, 40.0]), region(Kind::Text, [136.0, 0.0, 270.0, 40.0])];
        let got = assign(&line(6, 0.0, 0.0), &regions);
        assert_eq!(got.members.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn small_region_wins_inside_a_figure_and_a_table_over_text() {
        let regions = [
            region(Kind::Figure, [0.0, 0.0, 500.0, 500.0]),
            region(Kind::Caption, [0.0, 0.0, 230.0, 12.0]),
            region(Kind::Text, [0.0, 300.0, 230.0, 312.0]),
            region(Kind::Table, [0.0, 300.0, 230.0, 340.0]),
        ];
        let mut words = line(5, 0.0, 0.0);
        words.extend(line(5, 0.0, 300.0));
        let got = assign(&words, &regions);
        assert_eq!(got.members.iter().map(Vec::len).collect::<Vec<_>>(), [0, 5, 0, 5]);
    }

    #[test]
    fn a_lone_number_goes_to_the_heading_that_it_leads() {
        let mut words = line(3, 0.0, 0.0);
        words.push(word("1.1", 0.0, 20.0, 15.0, 30.0));
        let mut regions = vec![
            Region { words, ..region(Kind::Heading, [0.0, 0.0, 130.0, 30.0]) },
            Region { words: line(2, 25.0, 20.0), ..region(Kind::Heading, [25.0, 20.0, 110.0, 30.0]) },
        ];
        join_numbers(&mut regions);
        assert_eq!(regions.iter().map(|r| r.words.len()).collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn stray_words_join_the_line_that_they_continue() {
        let mut regions = vec![
            Region { words: line(4, 100.0, 0.0), ..region(Kind::Heading, [100.0, 0.0, 280.0, 10.0]) },
            Region { words: line(4, 100.0, 50.0), ..region(Kind::Text, [100.0, 50.0, 280.0, 60.0]) },
        ];
        let strays = vec![
            word("2.1", 60.0, 0.0, 80.0, 10.0),
            word("of", 286.0, 50.0, 300.0, 60.0),
            word("far", 310.0, 0.0, 330.0, 10.0),
        ];
        let left = join_strays(&mut regions, &strays);
        assert_eq!((regions[0].words.len(), regions[1].words.len(), left.len()), (5, 5, 1));
        let beside = Region { words: line(4, 284.0, 10.0), ..region(Kind::Text, [284.0, 10.0, 460.0, 20.0]) };
        regions.push(beside);
        let dot = word(".", 285.0, 0.0, 290.0, 10.0);
        regions[0].words.extend(line(4, 100.0, 14.0));
        assert_eq!(join_strays(&mut regions, &[dot]).len(), 1);
    }

    #[test]
    fn leftover_lines_form_blocks_that_do_not_reach_over_a_region() {
        let mut words = line(3, 0.0, 0.0);
        words.extend(line(3, 0.0, 14.0));
        words.extend(line(3, 0.0, 60.0));
        let blocks = group_leftover(&words, &[]);
        assert_eq!(blocks.iter().map(|b| b.words.len()).collect::<Vec<_>>(), [6, 3]);
        let obstacle = Rect::new(0.0, 5.0, 100.0, 16.0);
        assert_eq!(group_leftover(&words, &[obstacle]).len(), 3);
    }

    #[test]
    fn column_left_out_by_the_layout_joins_its_table() {
        let mut table = region(Kind::Table, [100.0, 0.0, 300.0, 70.0]);
        let mut column = region(Kind::Text, [320.0, 20.0, 360.0, 70.0]);
        for r in 0..4 {
            table.words.extend(line(2, 110.0, 20.0 * r as f32));
            if r > 0 {
                column.words.extend(line(1, 320.0, 20.0 * r as f32));
            }
        }
        let below =
            Region { words: line(3, 100.0, 120.0), ..region(Kind::Text, [100.0, 120.0, 300.0, 130.0]) };
        let got = grow_tables(vec![column, table, below]);
        assert_eq!(
            got.iter().map(|r| (r.kind, r.words.len())).collect::<Vec<_>>(),
            [(Kind::Table, 11), (Kind::Text, 3)]
        );
    }

    #[test]
    fn numbers_in_rows_and_columns_are_tabular() {
        let words: Vec<Word> = (0..20)
            .map(|k| {
                let (x, y) = ((k % 4) as f32 * 60.0, (k / 4) as f32 * 15.0);
                word(&k.to_string(), x, y, x + 20.0, y + 10.0)
            })
            .collect();
        assert!(tabular(&words));
        assert!(!tabular(&line(12, 0.0, 0.0)));
    }

    proptest! {
        #[test]
        fn assignment_and_blocks_keep_every_word(raw in proptest::collection::vec((0f32..600.0, 0f32..600.0, 4f32..90.0), 0..60), boxes in proptest::collection::vec((0f32..500.0, 0f32..500.0, 10f32..400.0, 10f32..200.0), 0..8)) {
            let words: Vec<Word> = raw.iter().enumerate().map(|(k, &(x, y, w))| word(&k.to_string(), x, y, x + w, y + 10.0)).collect();
            let kinds = [Kind::Text, Kind::Table, Kind::Figure, Kind::Header];
            let regions: Vec<Region> = boxes.iter().enumerate().map(|(k, &(x, y, w, h))| region(kinds[k % 4], [x, y, x + w, y + h])).collect();
            let got = assign(&words, &regions);
            let obstacles: Vec<Rect> = regions.iter().map(|r| r.bbox).collect();
            let blocks = group_leftover(&got.left, &obstacles);
            let mut ids: Vec<usize> = got.members.iter().flatten().chain(blocks.iter().flat_map(|b| &b.words)).map(|w| w.text.parse().unwrap()).collect();
            ids.sort_unstable();
            prop_assert_eq!(ids, (0..words.len()).collect::<Vec<_>>());
        }
    }
}
