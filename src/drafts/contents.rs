//! Tables of contents and line numbers: what the layout network tears apart, though the words alone tell what it is.

use crate::clock::worked;
use crate::geometry::Rect;
use crate::lines::{chunks, hull_of, lines_of, median};
use crate::page::{Kind, Region, Word};
use crate::patterns::{HEADING_NUMBER, PAGE_NUMBER, leader};

use super::regions::{bare_region, line_boxes, region_of};

/// Fewer numbers in the margin than this do not count lines.
const LEAST_NUMBERS: usize = 12;
/// Fewer entries without dots are rows of something else.
const LEAST_UNDOTTED: usize = 4;
/// A page with more numbers than this is a table.
const MOST_NUMBERS: usize = 2000;

/// The tables of contents among the words, as list regions, and the other words.
pub(super) fn part_contents(words: &[Word]) -> (Vec<Region>, Vec<Word>) {
    let lines = lines_of(words);
    let entries: Vec<Rect> = lines.iter().flat_map(|line| entries_of(line)).collect();
    let mut regions: Vec<Region> = Vec::new();
    let mut rest = words.to_vec();
    for group in grouped(entries).into_iter().chain(undotted(&lines)) {
        let bbox = grown(&group, &lines);
        let (inside, outside): (Vec<Word>, Vec<Word>) = rest.into_iter().partition(|w| holds(&bbox, w));
        if 5 * group.len() < 2 * line_boxes(&inside).len() {
            rest = inside.into_iter().chain(outside).collect();
            continue;
        }
        rest = outside;
        regions.push(region_of(Kind::List, 0.0, inside));
    }
    (regions, rest)
}

/// Numbered entries under one another without dots, whose page numbers stand in a column of their own and never fall.
fn undotted(lines: &[Vec<Word>]) -> Vec<Vec<Rect>> {
    let mut groups: Vec<Vec<(Rect, u32)>> = Vec::new();
    for line in lines {
        let Some((bbox, page)) = undotted_entry(line) else { continue };
        let height = bbox.height();
        match groups.last_mut() {
            Some(group)
                if group.last().is_some_and(|(last, before)| {
                    (last.x1 - bbox.x1).abs() < 0.5 * height
                        && bbox.y0 - last.y1 < 5.0 * height
                        && *before <= page
                }) =>
            {
                group.push((bbox, page));
            }
            _ => groups.push(vec![(bbox, page)]),
        }
    }
    groups.retain(|group| group.len() >= LEAST_UNDOTTED);
    groups.into_iter().map(|group| group.into_iter().map(|(bbox, _)| bbox).collect()).collect()
}

/// A line of a section number, a title and, far from it, a page number.
fn undotted_entry(line: &[Word]) -> Option<(Rect, u32)> {
    let [first, title @ .., last] = line else { return None };
    let height = median(line.iter().map(|w| w.bbox.height()));
    let page = last.text.parse().ok().filter(|_| last.text.len() <= 3)?;
    let apart = last.bbox.x0 - title.last()?.bbox.x1 > 2.0 * height;
    let titled = title.iter().any(|w| w.text.chars().any(char::is_alphabetic))
        && chunks(title, 2.0 * height).len() == 1;
    (HEADING_NUMBER.is_match(&first.text) && apart && titled).then(|| (hull_of(line), page))
}

/// The parts of a line that end with a page number after a row of dots.
fn entries_of(line: &[Word]) -> Vec<Rect> {
    let height = median(line.iter().map(|w| w.bbox.height()));
    chunks(line, 5.0 * height)
        .iter()
        .filter(|part| {
            let number = part.last().is_some_and(|w| PAGE_NUMBER.is_match(&w.text));
            number && leader(part).is_some_and(|(from, end)| from > 0 && end + 1 == part.len())
        })
        .map(hull_of)
        .collect()
}

/// Entries under one another whose page numbers end on one line.
fn grouped(mut entries: Vec<Rect>) -> Vec<Vec<Rect>> {
    entries.sort_by(|a, b| a.y0.total_cmp(&b.y0));
    let mut groups: Vec<Vec<Rect>> = Vec::new();
    for entry in entries {
        worked(groups.len());
        let height = entry.height();
        let continues = |g: &&mut Vec<Rect>| {
            g.last()
                .is_some_and(|last| (last.x1 - entry.x1).abs() < height && entry.y0 - last.y1 < 5.0 * height)
        };
        match groups.iter_mut().find(continues) {
            Some(group) => group.push(entry),
            None => groups.push(vec![entry]),
        }
    }
    groups
}

/// The box of the entries, grown over neighbours that end with a page number in the same place, without dots before it.
fn grown(group: &[Rect], lines: &[Vec<Word>]) -> Rect {
    let height = median(group.iter().map(Rect::height));
    let mut bbox = crate::geometry::hull(group.iter().copied()).unwrap_or_default();
    let numbered = |bbox: &Rect, line: &[Word]| -> Option<Rect> {
        worked(line.len());
        let inside: Vec<Word> = line
            .iter()
            .filter(|w| w.bbox.x0 > bbox.x0 - 4.0 * height && w.bbox.x1 < bbox.x1 + height)
            .cloned()
            .collect();
        let last = inside.last().filter(|w| PAGE_NUMBER.is_match(&w.text))?;
        let apart = inside.iter().rev().nth(1).is_none_or(|w| last.bbox.x0 - w.bbox.x1 > height);
        let hull = hull_of(&inside);
        let gap = -hull.overlap_y(bbox);
        ((last.bbox.x1 - bbox.x1).abs() < 0.7 * height && apart && inside.len() > 1 && gap < 4.0 * height)
            .then_some(hull)
    };
    // Up and down, until no further line joins.
    for _ in 0..lines.len() {
        let before = bbox;
        for line in lines {
            if let Some(hull) = numbered(&bbox, line) {
                bbox = bbox.union(&hull);
            }
        }
        if bbox == before {
            break;
        }
    }
    bbox
}

fn holds(bbox: &Rect, word: &Word) -> bool {
    let (x, y) = word.bbox.center();
    (bbox.x0..=bbox.x1).contains(&x) && (bbox.y0..=bbox.y1).contains(&y)
}

/// Numbers in a margin that count the page's lines, as one region, and the other words. They stand in a column of their own, with
/// next to nothing on its outer side, count evenly upwards and run over most of the page.
pub(super) fn part_line_numbers(words: &[Word]) -> (Option<Region>, Vec<Word>) {
    let numbers: Vec<&Word> = words.iter().filter(|w| number(w).is_some()).collect();
    let over = |a: &Word, b: &Word| a.bbox.overlap_x(&b.bbox) > 0.0;
    if numbers.len() > MOST_NUMBERS {
        return (None, words.to_vec());
    }
    // The column that holds most numbers.
    let most = numbers.iter().max_by_key(|n| numbers.iter().filter(|w| over(w, n)).count());
    let Some(&widest) = most else { return (None, words.to_vec()) };
    let mut column: Vec<&Word> = numbers.iter().filter(|w| over(w, widest)).copied().collect();
    column.sort_by(|a, b| a.bbox.y0.total_cmp(&b.bbox.y0));
    let strip = hull_of(column.iter().copied());
    let on_left = words.iter().filter(|w| w.bbox.x1 <= strip.x0).count();
    let on_right = words.iter().filter(|w| w.bbox.x0 >= strip.x1).count();
    let crossing = words.len().saturating_sub(column.len() + on_left + on_right);
    if column.len() < LEAST_NUMBERS
        || strip.height() < 0.6 * hull_of(words).height()
        || 10 * crossing > column.len()
        || 10 * on_left.min(on_right) > words.len()
        || !counts_up(&column)
    {
        return (None, words.to_vec());
    }
    let (column, rest): (Vec<Word>, Vec<Word>) =
        words.iter().cloned().partition(|w| number(w).is_some() && over(w, widest));
    (Some(Region { words: column, ..bare_region(Kind::PageNumber, 0.0, strip) }), rest)
}

fn number(word: &Word) -> Option<u32> {
    word.text.parse().ok().filter(|_| word.text.len() <= 4)
}

/// Do the numbers go up by ones, or by fives?
fn counts_up(column: &[&Word]) -> bool {
    let counts: Vec<u32> = column.iter().filter_map(|w| number(w)).collect();
    let steps: Vec<u32> = counts.windows(2).map(|p| p[1].saturating_sub(p[0])).collect();
    [1, 5].iter().any(|step| steps.iter().filter(|s| *s == step).count() as f32 > 0.85 * steps.len() as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::tests::word;

    fn entry(title: &str, y: f32, dots: bool, page: &str) -> Vec<Word> {
        let mut out = vec![word(title, 50.0, y, 120.0, y + 10.0)];
        if dots {
            out.extend((0..20).map(|k| {
                let x = 130.0 + 8.0 * k as f32;
                word(".", x, y, x + 2.0, y + 10.0)
            }));
        }
        out.push(word(page, 300.0, y, 306.0, y + 10.0));
        out
    }

    #[test]
    fn entries_with_dots_and_their_neighbours_are_a_table_of_contents() {
        let mut words = entry("Preface", 100.0, false, "1");
        words.extend(entry("Aims", 114.0, true, "2"));
        words.extend(entry("Means", 128.0, true, "3"));
        let total = words.len();
        words.push(word("Text", 50.0, 200.0, 306.0, 210.0));
        let (regions, rest) = part_contents(&words);
        assert_eq!((regions.len(), rest.len()), (1, 1));
        assert_eq!((regions[0].words.len(), regions[0].kind), (total, Kind::List));
    }

    #[test]
    fn numbered_entries_whose_page_numbers_never_fall_are_a_table_of_contents() {
        let list = |pages: [&str; 4]| -> Vec<Word> {
            let entries = pages.iter().enumerate().flat_map(|(k, page)| {
                let y = 100.0 + 14.0 * k as f32;
                let number = word(&format!("{}", k + 1), 30.0, y, 36.0, y + 10.0);
                std::iter::once(number).chain(entry("Foo", y, false, page))
            });
            entries.collect()
        };
        assert_eq!(part_contents(&list(["2", "2", "3", "12"])).0.len(), 1);
        assert_eq!(part_contents(&list(["2", "4", "3", "12"])).0.len(), 0);
    }

    #[test]
    fn dots_among_many_plain_lines_are_none() {
        let mut words = entry("Sum", 100.0, true, "2");
        words.extend((1..5).flat_map(|k| entry("Rest", 100.0 + 14.0 * k as f32, false, "3")));
        assert_eq!(part_contents(&words).0, []);
    }

    #[test]
    fn numbers_that_count_the_lines_leave_the_text() {
        let mut words = Vec::new();
        for k in 0..20 {
            let y = 20.0 * k as f32;
            words.push(word(&(k + 1).to_string(), 10.0, y, 20.0, y + 10.0));
            words.push(word("text", 40.0, y, 300.0, y + 10.0));
        }
        let (numbers, rest) = part_line_numbers(&words);
        assert_eq!((numbers.map(|r| r.words.len()), rest.len()), (Some(20), 20));
        words[10].text = "x".into();
        words[12].text = "y".into();
        words[14].text = "z".into();
        assert_eq!(part_line_numbers(&words).0, None);
    }
}
