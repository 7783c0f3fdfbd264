//! Which pages of an earlier run stand. A page stands if all its files are there and its JSON names the same input, settings
//! and model, and did not fail.
//!
//! Where JSON was not asked for, the page JSON goes once the document is complete; then the journal's line of the file stands
//! for all its pages at once.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::identity::Provenance;
use super::journal::FileRecord;
use super::output::{document_name, page_name};
use super::pages::PageRanges;
use crate::document::PageStatus;
use crate::settings::Format;

/// What an earlier run left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub pages: BTreeMap<u32, PageStatus>,
    /// Every page stands, and so do the files of the whole document, although their page JSON is gone.
    pub document: bool,
}

/// The part of a page file by which it is judged.
#[derive(Deserialize)]
struct PageHead {
    number: u32,
    status: PageStatus,
    #[serde(flatten)]
    provenance: Provenance,
    elements: Vec<ElementHead>,
}

#[derive(Deserialize)]
struct ElementHead {
    #[serde(default)]
    image: Option<String>,
}

/// Finds the pages among `selected` (ascending) whose files in `folder` stand for what this run would write.
pub fn kept_pages(
    folder: &Path,
    selected: &[u32],
    provenance: &Provenance,
    formats: &[Format],
    finished: Option<&FileRecord>,
) -> Kept {
    let complete = |page: u32| formats.iter().all(|&format| folder.join(page_name(page, format)).is_file());
    let pages: BTreeMap<u32, PageStatus> = selected
        .iter()
        .filter(|&&page| complete(page))
        .filter_map(|&page| Some((page, standing(folder, page, provenance)?)))
        .collect();
    if pages.len() == selected.len() || formats.contains(&Format::Json) {
        return Kept { pages, document: false };
    }
    let whole = finished.filter(|record| {
        record.provenance == *provenance
            && record.failed.is_empty()
            && record.pages == PageRanges::of(selected).to_string()
            && selected.iter().all(|&page| complete(page))
            && formats.iter().all(|&format| folder.join(document_name(format)).is_file())
    });
    match whole {
        None => Kept { pages, document: false },
        Some(record) => {
            let status = |page: &u32| {
                if record.partial.contains(page) { PageStatus::Partial } else { PageStatus::Ok }
            };
            Kept { pages: selected.iter().map(|page| (*page, status(page))).collect(), document: true }
        }
    }
}

/// The status of the page if its JSON and the figures that it names stand.
fn standing(folder: &Path, page: u32, provenance: &Provenance) -> Option<PageStatus> {
    let bytes = std::fs::read(folder.join(page_name(page, Format::Json))).ok()?;
    let head: PageHead = serde_json::from_slice(&bytes).ok()?;
    let figures =
        head.elements.iter().filter_map(|e| e.image.as_ref()).all(|name| folder.join(name).is_file());
    let stands =
        head.number == page && head.status != PageStatus::Failed && head.provenance == *provenance && figures;
    stands.then_some(head.status)
}
