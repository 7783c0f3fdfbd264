//! What changed between two output folders: files, pages, elements. Both trees are walked by name; two pages at most are held.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::names;
use super::output::OutputError;
use crate::document::{Element, ElementKind, Page, PageStatus, read_page};

/// What became of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum PageChange {
    /// Only the second folder has it.
    Added,
    /// Only the first has it.
    Removed,
    /// One of its files cannot be read.
    Unreadable {
        reason: String,
    },
    Changed(PageDifference),
}

/// How two readings of one page differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageDifference {
    /// Likeness of the texts, 0..1; 1 = the same words in the same order.
    pub similarity: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<(PageStatus, PageStatus)>,
    pub elements: Vec<ElementChange>,
}

/// What became of an element.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum ElementChange {
    Added {
        id: String,
        kind: ElementKind,
        text: String,
    },
    Removed {
        id: String,
        kind: ElementKind,
        text: String,
    },
    /// The same text, another kind or heading level.
    Kind {
        id: String,
        before: String,
        after: String,
        text: String,
    },
    Text {
        id: String,
        kind: ElementKind,
        similarity: f64,
        before: String,
        after: String,
    },
    /// Only the box, its lines, runs or markup are others.
    Form {
        id: String,
        kind: ElementKind,
    },
}

/// A page of a file that is not the same in both folders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedPage {
    /// The file's folder below the output folders.
    pub output: String,
    pub page: u32,
    #[serde(flatten)]
    pub change: PageChange,
}

/// Figures of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compared {
    pub pages: usize,
    pub same: usize,
    pub changed: usize,
    pub added: usize,
    pub removed: usize,
    pub unreadable: usize,
}

/// Compares the page JSON below `first` and `second`; `observe` hears of every page that is not the same, in the order of names.
/// What only says how a page was made (version, model, settings) does not count.
pub fn compare(
    first: &Path,
    second: &Path,
    observe: &mut dyn FnMut(ChangedPage),
) -> Result<Compared, OutputError> {
    let (before, after) = (page_files(first)?, page_files(second)?);
    let mut compared = Compared::default();
    for key in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        compared.pages += 1;
        let change = match (before.get(key), after.get(key)) {
            (Some(a), Some(b)) => match (read_page(a), read_page(b)) {
                (Ok((_, a)), Ok((_, b))) => difference(&a, &b).map(PageChange::Changed),
                (Err(error), _) | (_, Err(error)) => {
                    Some(PageChange::Unreadable { reason: error.to_string() })
                }
            },
            (Some(_), None) => Some(PageChange::Removed),
            _ => Some(PageChange::Added),
        };
        let counter = match &change {
            None => &mut compared.same,
            Some(PageChange::Added) => &mut compared.added,
            Some(PageChange::Removed) => &mut compared.removed,
            Some(PageChange::Unreadable { .. }) => &mut compared.unreadable,
            Some(PageChange::Changed(_)) => &mut compared.changed,
        };
        *counter += 1;
        if let Some(change) = change {
            observe(ChangedPage { output: key.0.clone(), page: key.1, change });
        }
    }
    Ok(compared)
}

/// The page JSON files below `root`, by their file's folder and page number. Links are not followed.
fn page_files(root: &Path) -> Result<BTreeMap<(String, u32), PathBuf>, OutputError> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        for entry in entries.map_err(OutputError::at(&folder))? {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if let Some(number) = entry.file_name().to_str().and_then(page_number) {
                let output = names::text(folder.strip_prefix(root).unwrap_or(&folder));
                found.insert((output, number), path);
            }
        }
    }
    Ok(found)
}

fn page_number(name: &str) -> Option<u32> {
    name.strip_prefix("page-")?.strip_suffix(".json")?.parse().ok()
}

/// `None` if both readings are the same.
fn difference(a: &Page, b: &Page) -> Option<PageDifference> {
    let status = (a.status != b.status).then_some((a.status, b.status));
    let elements = element_changes(&a.elements, &b.elements);
    let sized = (a.width, a.height, a.turn) == (b.width, b.height, b.turn);
    if status.is_none() && elements.is_empty() && sized {
        return None;
    }
    let text = |page: &Page| page.elements.iter().map(|e| e.text.as_str()).collect::<Vec<_>>().join("\n");
    Some(PageDifference { similarity: similarity(&text(a), &text(b)), status, elements })
}

/// Pairs elements that are alike, in order, and names what is left on either side.
fn element_changes(a: &[Element], b: &[Element]) -> Vec<ElementChange> {
    let mut changes = Vec::new();
    let pairs = pairs(a, b);
    let (mut i, mut j) = (0, 0);
    for (k, l) in pairs.into_iter().chain([(a.len(), b.len())]) {
        changes.extend(a.get(i..k).unwrap_or_default().iter().map(|e| ElementChange::Removed {
            id: e.id.clone(),
            kind: e.kind,
            text: e.text.clone(),
        }));
        changes.extend(b.get(j..l).unwrap_or_default().iter().map(|e| ElementChange::Added {
            id: e.id.clone(),
            kind: e.kind,
            text: e.text.clone(),
        }));
        if let (Some(x), Some(y)) = (a.get(k), b.get(l)) {
            changes.extend(element_change(x, y));
        }
        (i, j) = (k + 1, l + 1);
    }
    changes
}

fn element_change(a: &Element, b: &Element) -> Option<ElementChange> {
    let (id, kind) = (b.id.clone(), b.kind);
    if a.text != b.text {
        let similarity = similarity(&a.text, &b.text);
        return Some(ElementChange::Text {
            id,
            kind,
            similarity,
            before: a.text.clone(),
            after: b.text.clone(),
        });
    }
    if (a.kind, a.level) != (b.kind, b.level) {
        return Some(ElementChange::Kind {
            id,
            before: kind_text(a),
            after: kind_text(b),
            text: b.text.clone(),
        });
    }
    // Ids only count.
    let same = Element { id: a.id.clone(), ..b.clone() } == *a;
    (!same).then_some(ElementChange::Form { id, kind })
}

fn kind_text(element: &Element) -> String {
    let name = serde_json::to_value(element.kind).expect("kinds are plain names");
    let name = name.as_str().unwrap_or_default();
    element.level.map_or_else(|| name.to_owned(), |level| format!("{name} {level}"))
}

/// Elements whose texts are at least this alike are one element that changed.
const ALIKE: f64 = 0.5;

/// More elements on a side than this are paired by their place only: the table grows with the product.
const MOST_PAIRED: usize = 400;

/// Indices of elements that belong together, ascending on both sides: the alignment with the most likeness.
fn pairs(a: &[Element], b: &[Element]) -> Vec<(usize, usize)> {
    let start = a.iter().zip(b).take_while(|(x, y)| x.text == y.text).count();
    let most = a.len().min(b.len()) - start;
    let end = a.iter().rev().zip(b.iter().rev()).take(most).take_while(|(x, y)| x.text == y.text).count();
    let (middle_a, middle_b) = (&a[start..a.len() - end], &b[start..b.len() - end]);
    let middle: Vec<(usize, usize)> = match middle_a.len().max(middle_b.len()) <= MOST_PAIRED {
        true => aligned(middle_a, middle_b),
        false => (0..middle_a.len().min(middle_b.len())).map(|k| (k, k)).collect(),
    };
    let before = (0..start).map(|k| (k, k));
    let after = (0..end).map(|k| (a.len() - end + k, b.len() - end + k));
    before.chain(middle.into_iter().map(|(k, l)| (start + k, start + l))).chain(after).collect()
}

fn aligned(a: &[Element], b: &[Element]) -> Vec<(usize, usize)> {
    let likeness: Vec<Vec<f64>> = a.iter().map(|x| b.iter().map(|y| worth(x, y)).collect()).collect();
    // best[i][j]: the most likeness that a[i..] and b[j..] can have.
    let mut best = vec![vec![0.0; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            let paired = likeness[i][j] + best[i + 1][j + 1];
            best[i][j] = f64::max(paired, f64::max(best[i + 1][j], best[i][j + 1]));
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        if likeness[i][j] > 0.0 && best[i][j] == likeness[i][j] + best[i + 1][j + 1] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[i][j] == best[i + 1][j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// What pairing two elements is worth; 0 = they are not the same.
fn worth(a: &Element, b: &Element) -> f64 {
    let alike = match (a.text.is_empty(), b.text.is_empty()) {
        // Figures have no text: their place tells.
        (true, true) => f64::from(a.bbox.iou(&b.bbox)),
        _ => similarity(&a.text, &b.text),
    };
    if alike < ALIKE { 0.0 } else { alike + if a.kind == b.kind { 0.01 } else { 0.0 } }
}

/// Texts longer than this are compared word by word, in characters.
const LONG: usize = 2_000;

/// Likeness of two texts, 0..1: that of their characters by insertions and removals, of long texts that of their words.
/// Rounded to four places; 1 only for equal texts.
fn similarity(a: &str, b: &str) -> f64 {
    if a == b {
        return 1.0;
    }
    let likeness = if a.len().max(b.len()) > LONG {
        rapidfuzz::distance::indel::normalized_similarity(words(a), words(b))
    } else {
        rapidfuzz::distance::indel::normalized_similarity(a.chars(), b.chars())
    };
    ((likeness * 1e4).round() / 1e4).min(0.9999)
}

/// A number for each word.
fn words(text: &str) -> Vec<u64> {
    let number = |word: &str| {
        let mut hasher = DefaultHasher::new();
        word.hash(&mut hasher);
        hasher.finish()
    };
    text.split_whitespace().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{PageHeader, page_json};
    use crate::geometry::Rect;

    fn element(number: usize, kind: ElementKind, text: &str) -> Element {
        Element {
            id: format!("p1e{number}"),
            kind,
            level: None,
            bbox: Rect::new(0.0, number as f32 * 10.0, 50.0, number as f32 * 10.0 + 8.0),
            text: text.into(),
            markdown: text.into(),
            html: None,
            latex: None,
            lines: Vec::new(),
            stop: None,
            runs: Vec::new(),
            style: None,
            image: None,
        }
    }

    fn page(texts: &[&str]) -> Page {
        let elements =
            texts.iter().enumerate().map(|(k, text)| element(k + 1, ElementKind::Paragraph, text)).collect();
        Page {
            number: 1,
            width: 100.0,
            height: 100.0,
            turn: 0,
            skew_deg: 0.0,
            status: PageStatus::Ok,
            reason: None,
            text_layer: "none".into(),
            verification: "unverified".into(),
            elements,
        }
    }

    #[test]
    fn a_page_is_the_same_as_itself() {
        let one = page(&["alpha", "beta"]);
        assert_eq!(difference(&one, &one), None);
        // Another way to the same text is no change of it.
        assert_eq!(difference(&one, &Page { verification: "verified".into(), ..one.clone() }), None);
    }

    #[test]
    fn an_element_that_was_put_in_does_not_change_those_after_it() {
        let mut after = page(&["alpha", "something else", "beta"]);
        after.elements[2].bbox = page(&["", "beta"]).elements[1].bbox;
        let changes = difference(&page(&["alpha", "beta"]), &after).unwrap().elements;
        let added = ElementChange::Added {
            id: "p1e2".into(),
            kind: ElementKind::Paragraph,
            text: "something else".into(),
        };
        assert_eq!(changes, [added]);
    }

    #[test]
    fn text_kind_and_form_are_told_apart() {
        let before = page(&["the quick brown fox", "Heading", "same"]);
        let mut after = page(&["the quick brown fax", "Heading", "same"]);
        (after.elements[1].kind, after.elements[1].level) = (ElementKind::Heading, Some(2));
        after.elements[2].bbox.x1 += 1.0;
        let changes = difference(&before, &after).unwrap().elements;
        assert!(matches!(&changes[0], ElementChange::Text { similarity, .. } if *similarity > 0.9));
        assert!(matches!(&changes[1], ElementChange::Kind { before, after, .. }
            if before == "paragraph" && after == "heading 2"));
        assert!(matches!(&changes[2], ElementChange::Form { .. }));
    }

    #[test]
    fn what_is_not_alike_went_and_came() {
        let changes = difference(&page(&["alpha"]), &page(&["12345 67890"])).unwrap();
        assert!(changes.similarity < 0.2);
        assert!(matches!(
            &changes.elements[..],
            [ElementChange::Removed { .. }, ElementChange::Added { .. }]
        ));
    }

    #[test]
    fn very_many_elements_are_compared_all_the_same() {
        let many: Vec<String> = (0..3000).map(|k| format!("element {k}")).collect();
        let other: Vec<String> = (0..3000).map(|k| format!("other {k}")).collect();
        let texts = |all: &[String]| page(&all.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(difference(&texts(&many), &texts(&other)).unwrap().elements.len(), 3000);
    }

    #[test]
    fn trees_are_compared_by_name() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let put = |root: &Path, name: &str, page: &Page| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, page_json(page, &PageHeader::new(None, "s", "i", "a.pdf"))).unwrap();
        };
        for root in [first.path(), second.path()] {
            put(root, "a/page-0001.json", &page(&["same"]));
        }
        put(first.path(), "a/page-0002.json", &page(&["before"]));
        put(second.path(), "b/c/page-0001.json", &page(&["after"]));
        std::fs::write(second.path().join("a/page-0003.json"), "{").unwrap();
        std::fs::write(first.path().join("a/page-0003.json"), "{").unwrap();
        let mut seen = Vec::new();
        let compared = compare(first.path(), second.path(), &mut |page| seen.push(page)).unwrap();
        let expected = Compared { pages: 4, same: 1, changed: 0, added: 1, removed: 1, unreadable: 1 };
        assert_eq!(compared, expected);
        let names: Vec<(&str, u32)> = seen.iter().map(|page| (page.output.as_str(), page.page)).collect();
        assert_eq!(names, [("a", 2), ("a", 3), ("b/c", 1)]);
        assert!(compare(first.path(), &second.path().join("none"), &mut |_| {}).is_err());
    }
}
