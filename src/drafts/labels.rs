//! Labels and their values beside each other: forms, invoices, data sheets. Read column by column they say nothing.

use crate::clock::worked;
use crate::geometry::Rect;
use crate::lines::{hull_of, lines_of, median};
use crate::page::{Kind, Region, Word};

use super::columns::gutter;
use super::regions::region_of;

/// Fewer pairs may stand beside each other by chance.
const LEAST_PAIRS: usize = 4;
/// A label and its value stand on one level, to this share of a line's height.
const LEVEL: f32 = 0.35;
/// Share of the labels that have a value.
const PAIRED: f32 = 0.8;
/// Share of the lines that must look like labels, or like values.
const ALIKE: f32 = 0.6;
/// A label is not longer than this, characters.
const LONGEST_LABEL: usize = 40;

/// Text whose left column labels the right one becomes a table: columns of one region, and regions beside each other.
pub(super) fn pair_labels(regions: Vec<Region>) -> Vec<Region> {
    let mut regions: Vec<Region> = regions.into_iter().map(within).collect();
    let mut at = 0;
    while at < regions.len() {
        worked(regions.len());
        match (0..regions.len()).find(|&other| other != at && beside(&regions, at, other)) {
            Some(other) => {
                let values = regions.remove(other);
                let at_now = if other < at { at - 1 } else { at };
                let labels = &mut regions[at_now];
                labels.words.extend(values.words);
                *labels = region_of(Kind::Table, labels.score, std::mem::take(&mut labels.words));
                at = at_now + 1;
            }
            None => at += 1,
        }
    }
    regions
}

fn is_text(region: &Region) -> bool {
    matches!(region.kind, Kind::Text | Kind::List)
}

fn within(region: Region) -> Region {
    let Some(middle) = gutter(&region.words).filter(|_| is_text(&region)) else { return region };
    let (left, right): (Vec<&Word>, Vec<&Word>) =
        region.words.iter().partition(|w| w.bbox.center().0 < middle);
    let column = |words: Vec<&Word>| words.into_iter().cloned().collect::<Vec<Word>>();
    if label(&column(left), &column(right)) {
        region_of(Kind::Table, region.score, region.words)
    } else {
        region
    }
}

/// Does region `left` hold the labels of region `right`, with nothing between them?
fn beside(regions: &[Region], left: usize, right: usize) -> bool {
    let (a, b) = (&regions[left], &regions[right]);
    let gap = Rect::new(a.bbox.x1, a.bbox.y0.max(b.bbox.y0), b.bbox.x0, a.bbox.y1.min(b.bbox.y1));
    let between = |r: &Region| r.bbox.overlap_x(&gap) > 1.0 && r.bbox.overlap_y(&gap) > 1.0;
    let parted = || {
        worked(regions.len());
        regions.iter().enumerate().any(|(k, r)| k != left && k != right && between(r))
    };
    // The cheap questions first: a drawing has thousands of regions.
    is_text(a)
        && is_text(b)
        && a.words.len() >= LEAST_PAIRS
        && gap.x1 > gap.x0
        && gap.height() > 0.7 * a.bbox.height().min(b.bbox.height())
        && !parted()
        && label(&a.words, &b.words)
}

/// Do the lines of `labels` name those of `values`? They end with a colon, or have no digits where most of the others have.
fn label(labels: &[Word], values: &[Word]) -> bool {
    let (labels, values) = (lines(labels), lines(values));
    let size = median(labels.iter().map(|(b, _)| b.height()));
    let level = |(b, _): &&(Rect, String)| {
        values.iter().any(|(v, _)| (v.center().1 - b.center().1).abs() < LEVEL * size)
    };
    worked(labels.len().saturating_mul(values.len()));
    let paired = labels.iter().filter(level).count();
    let share = |lines: &[(Rect, String)], fits: &dyn Fn(&str) -> bool| {
        lines.iter().filter(|(_, text)| fits(text)).count() as f32 / lines.len().max(1) as f32
    };
    let digits = |text: &str| text.chars().any(|c| c.is_ascii_digit());
    let named = share(&labels, &|text| text.ends_with([':', '：'])) >= ALIKE
        || share(&labels, &|text| !digits(text)) >= PAIRED && share(&values, &digits) >= ALIKE;
    paired >= LEAST_PAIRS
        && paired as f32 >= PAIRED * labels.len() as f32
        && named
        && labels.iter().all(|(_, text)| text.chars().count() <= LONGEST_LABEL)
}

fn lines(words: &[Word]) -> Vec<(Rect, String)> {
    let text = |line: &Vec<Word>| line.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
    lines_of(words).iter().map(|line| (hull_of(line), text(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::word;

    fn column(x: f32, lines: &[&str]) -> Vec<Word> {
        let line = |(k, text): (usize, &&str)| {
            let y = 14.0 * k as f32;
            word(text, x, y, x + 6.0 * text.chars().count() as f32, y + 10.0)
        };
        lines.iter().enumerate().map(line).collect()
    }

    fn region(words: Vec<Word>) -> Region {
        region_of(Kind::Text, 0.9, words)
    }

    fn kinds(regions: Vec<Region>) -> Vec<(Kind, usize)> {
        pair_labels(regions).iter().map(|r| (r.kind, r.words.len())).collect()
    }

    const LABELS: [&str; 4] = ["Voltage", "Alternator", "Battery", "Pressure"];
    const VALUES: [&str; 4] = ["12 Volts", "60 amp", "850 CCA", "4.8 psi"];

    #[test]
    fn labels_and_values_are_a_table_in_one_region_and_in_two() {
        let both = [column(0.0, &LABELS), column(200.0, &VALUES)];
        assert_eq!(kinds(vec![region(both.concat())]), [(Kind::Table, 8)]);
        assert_eq!(kinds(both.map(region).to_vec()), [(Kind::Table, 8)]);
        let names = column(200.0, &["Ada", "Bob", "Cid", "Dot"]);
        let asked = column(0.0, &["Name:", "Father:", "Uncle:", "Aunt:"]);
        assert_eq!(kinds(vec![region(names.clone()), region(asked)]), [(Kind::Table, 8)]);
        assert_eq!(kinds(vec![region(column(0.0, &LABELS)), region(names)]).len(), 2, "words beside words");
    }

    #[test]
    fn what_stands_between_or_on_other_levels_parts_them() {
        let (labels, values) = (region(column(0.0, &LABELS)), region(column(200.0, &VALUES)));
        let between = Region { kind: Kind::Formula, ..region(column(120.0, &["a", "b", "c", "d"])) };
        assert_eq!(kinds(vec![labels.clone(), between, values.clone()]).len(), 3);
        let mut lower = values;
        lower
            .words
            .iter_mut()
            .for_each(|w| w.bbox = Rect::new(w.bbox.x0, w.bbox.y0 + 7.0, w.bbox.x1, w.bbox.y1 + 7.0));
        lower.bbox = hull_of(&lower.words);
        assert_eq!(kinds(vec![labels, lower]).len(), 2);
    }
}
