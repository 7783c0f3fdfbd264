//! Lines that repeat at the edge of a document's pages: running headers, footers, page numbers.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::document::{Element, ElementKind, Page};

/// What makes two edge lines the same, digits aside, as a hash: documents may have very many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EdgeKey(u64);

/// Type that is larger by this factor is seen to be so.
const LARGER: f32 = 1.15;
/// Longest text that can be a running line, characters.
const LONGEST: usize = 200;

/// The key of an element that stands at the edge of its page. The title of a document may repeat on its pages; on the first it
/// is none of the running lines: what is called a title there, or a heading than which nothing is set larger.
pub(crate) fn edge_key(element: &Element, page: &Page) -> Option<EdgeKey> {
    use ElementKind::{Chart, Figure, Heading, Table, Title};
    let size = |e: &Element| e.style.as_ref().map_or(0.0, |s| s.size);
    let exact = element.style.as_ref().is_some_and(|s| s.exact);
    let smaller = exact && page.elements.iter().any(|e| size(e) > LARGER * size(element));
    if page.number == 1 && (element.kind == Title || element.kind == Heading && !smaller) {
        return None;
    }
    let edge = element.style.as_ref().is_some_and(|s| s.edge);
    if !edge
        || element.text.chars().nth(LONGEST - 1).is_some()
        || matches!(element.kind, Table | Figure | Chart)
    {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    letters(&element.text).hash(&mut hasher);
    (element.bbox.y0 > 0.5 * page.height).hash(&mut hasher);
    // The title of a document or a chapter often runs on its pages, in smaller type.
    element.style.as_ref().filter(|s| s.exact).map(|s| (2.0 * s.size).round() as i32).hash(&mut hasher);
    Some(EdgeKey(hasher.finish()))
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphabetic()).flat_map(char::to_lowercase).take(60).collect()
}

/// The running lines of a document.
#[derive(Debug)]
pub(crate) struct RunningLines {
    keys: HashSet<EdgeKey>,
}

impl RunningLines {
    /// From how many pages have each edge line: those that stand on at least 40 % of three or more pages, and on three.
    pub(crate) fn new(counts: &HashMap<EdgeKey, u32>, pages: usize) -> RunningLines {
        let least = (0.4 * pages as f64).max(3.0);
        RunningLines {
            keys: counts.iter().filter(|(_, n)| f64::from(**n) >= least).map(|(key, _)| *key).collect(),
        }
    }

    pub(crate) fn holds(&self, key: EdgeKey) -> bool {
        self.keys.contains(&key)
    }

    /// Turns the running lines of a page into headers, footers and page numbers.
    pub(crate) fn mark(&self, page: &mut Page) {
        let height = page.height;
        let runs = |e: &Element| {
            let known = matches!(e.kind, ElementKind::Header | ElementKind::Footer | ElementKind::PageNumber);
            !known && edge_key(e, page).is_some_and(|key| self.holds(key))
        };
        let running: Vec<bool> = page.elements.iter().map(runs).collect();
        for (element, _) in page.elements.iter_mut().zip(running).filter(|(_, runs)| *runs) {
            let is_number =
                letters(&element.text).is_empty() && element.text.contains(|c: char| c.is_ascii_digit());
            element.kind = match element.bbox.y0 > 0.5 * height {
                _ if is_number => ElementKind::PageNumber,
                true => ElementKind::Footer,
                false => ElementKind::Header,
            };
            if element.level.take().is_some() {
                element.markdown = element.markdown.trim_start_matches('#').trim_start().to_string();
            }
        }
    }
}
