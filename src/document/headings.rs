//! What is a heading, and at which level.

use std::sync::LazyLock;

use regex::Regex;

use crate::document::paragraphs::{Face, face, uniform};
use crate::document::text::Lines;
use crate::lines::median;
use crate::patterns::{BULLET, CAPTION, SECTION};

static THREE_LETTERS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\p{Alphabetic}{3}").expect("a constant pattern"));
/// A capital, or a letter of a script without capitals, after nothing but digits and punctuation.
static BEGINS_LARGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[\W\d]*[A-Z\u{c0}-\u{de}\u{370}-\u{3ab}\u{400}-\u{42f}\u{5d0}-\u{5ea}\u{600}-\u{6ff}\u{3040}-\u{30ff}\u{3400}-\u{9fff}\u{ac00}-\u{d7af}]")
        .expect("a constant pattern")
});

/// What running text on a page looks like.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    /// Median font height by characters, pixels.
    pub(crate) size: f32,
    pub(crate) face: Face,
}

/// Does a paragraph stand out: one or two short lines, clearly larger, or in a bolder or other font than the body's?
pub(crate) fn heading_like(lines: &Lines, text: &str, body: &Body) -> bool {
    let length = text.chars().count();
    if lines.len() > 2
        || !(3..=110).contains(&length)
        || !THREE_LETTERS.is_match(text)
        || BULLET.is_match(text)
        || CAPTION.is_match(text)
        || text.ends_with(['.', ',', ';', ':'])
        || !BEGINS_LARGE.is_match(text)
    {
        return false;
    }
    let size = median(lines.iter().flatten().map(|w| w.size));
    if size > 1.25 * body.size {
        return true;
    }
    if body.face.0.is_empty() {
        // Pictures have no fonts: capitals on a line of their own.
        return lines.len() == 1 && length <= 60 && in_capitals(text);
    }
    size >= 0.97 * body.size && other_face(lines, text, &body.face)
}

fn in_capitals(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_uppercase()).filter(|w| w.chars().count() >= 3).count();
    words >= 2 && !text.chars().any(char::is_lowercase)
}

/// One or two bold lines, or a short one in title case in another font.
fn other_face(lines: &Lines, text: &str, body: &Face) -> bool {
    let own = face(lines.iter().flatten().copied());
    if !lines.iter().all(|line| uniform(line, &own)) {
        return false;
    }
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphabetic()).filter(|w| w.chars().nth(3).is_some()).collect();
    let capitals = words.iter().filter(|w| w.starts_with(char::is_uppercase)).count();
    own.1 && !body.1
        || lines.len() == 1
            && own.0 != body.0
            && !text.contains(',')
            && text.chars().nth(5).is_some()
            && text.split_whitespace().count() <= 8
            && capitals as f32 > 0.6 * words.len() as f32
}

/// What decides a heading's level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Heading {
    /// Font height; any unit, the same for all.
    pub(crate) size: f32,
    /// Measured by a font, not on a picture.
    pub(crate) exact: bool,
    /// The document's title.
    pub(crate) title: bool,
    /// Dots in its section number: 0 for `2`, 1 for `2.1`.
    pub(crate) depth: Option<u8>,
}

impl Heading {
    pub(crate) fn new(text: &str, size: f32, exact: bool, title: bool) -> Heading {
        let number = SECTION.captures(text).and_then(|found| found.get(1)).map_or("", |m| m.as_str());
        let depth =
            number.starts_with(|c: char| c.is_ascii_digit()).then(|| number.matches('.').count() as u8);
        Heading { size: if size.is_finite() && size > 0.0 { size } else { 1.0 }, exact, title, depth }
    }
}

/// Levels 1..6 of headings that belong together: by section number where there is one, else by rank of size.
pub(crate) fn levels(headings: &[Heading]) -> Vec<u8> {
    // Sizes measured on pictures scatter.
    let tolerance = if headings.iter().all(|h| h.exact) { 1.07 } else { 1.5 };
    let titled = headings.iter().any(|h| h.title);
    let ranks = ranks(headings, tolerance);
    let top = headings.iter().filter(|h| h.depth == Some(0) && !h.title).map(|h| h.size).reduce(f32::max);
    // Headings of one size are sections under a title that is not among them, unless they tower over numbered sections.
    let outermost = match (ranks.as_slice(), top) {
        _ if titled => 2,
        ([only], Some(top)) if *only > tolerance * top => 1,
        ([_], _) => 2,
        _ => 1,
    };
    let level = |h: &Heading| match h.depth {
        _ if h.title => 1,
        Some(depth) => {
            let over = top.map_or(1, |top| ranks.iter().filter(|&&r| r > tolerance * top).count());
            over.max(1) + 1 + usize::from(depth)
        }
        None => outermost + ranks.iter().position(|r| r / h.size <= tolerance).unwrap_or(ranks.len()),
    };
    headings.iter().map(|h| level(h).min(6) as u8).collect()
}

/// Sizes of the headings without a number, descending, those close to one another counted once.
fn ranks(headings: &[Heading], tolerance: f32) -> Vec<f32> {
    let mut sizes: Vec<f32> =
        headings.iter().filter(|h| h.depth.is_none() && !h.title).map(|h| h.size).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let mut ranks: Vec<f32> = Vec::new();
    for size in sizes {
        if ranks.last().is_none_or(|last| last / size > tolerance) {
            ranks.push(size);
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::text::lines_of;
    use crate::lines::tests::word;
    use crate::page::Word;

    fn of(list: &[(&str, f32)]) -> Vec<u8> {
        let headings: Vec<Heading> = list.iter().map(|(t, s)| Heading::new(t, *s, true, false)).collect();
        levels(&headings)
    }

    #[test]
    fn numbers_decide_before_sizes() {
        let list = [
            ("A Title", 20.0),
            ("1 Introduction", 14.0),
            ("1.1 Aim", 14.0),
            ("2.1.3 Deep", 11.0),
            ("Thanks", 14.0),
        ];
        assert_eq!(of(&list), [1, 2, 3, 4, 2]);
    }

    #[test]
    fn a_single_size_is_the_second_level() {
        assert_eq!(of(&[("One", 14.0), ("Two", 14.2)]), [2, 2]);
    }

    #[test]
    fn a_named_title_stands_over_all() {
        let headings = [Heading::new("Paper", 10.0, true, true), Heading::new("Large", 20.0, true, false)];
        assert_eq!(levels(&headings), [1, 2]);
    }

    #[test]
    fn sizes_of_pictures_need_a_larger_difference() {
        let sizes = [20.0, 15.0, 9.0].map(|s| Heading::new("Heading", s, false, false));
        assert_eq!(levels(&sizes), [1, 1, 2]);
    }

    fn stands_out(text: &str, size: f32, bold: bool, font: &str) -> bool {
        let words: Vec<Word> =
            vec![Word { bold, font: font.into(), size, ..word(text, 0.0, 0.0, 90.0, 10.0) }];
        heading_like(&lines_of(&words), text, &Body { size: 10.0, face: ("serif".into(), false) })
    }

    #[test]
    fn larger_or_bolder_lines_are_headings_and_sentences_are_not() {
        assert!(stands_out("Results", 14.0, false, "serif"));
        assert!(stands_out("Results", 10.0, true, "serif"));
        assert!(stands_out("Results and More", 10.0, false, "sans"));
        assert!(!stands_out("Results", 10.0, false, "serif"));
        assert!(!stands_out("Results.", 14.0, true, "serif"));
        assert!(!stands_out("Figure 3 Results", 14.0, true, "serif"));
    }
}
