//! Which pages of an earlier run stand. A page stands if all its files are there and its JSON names the same input, settings
//! and model, and did not fail.
//!
//! Where JSON was not asked for, the page JSON goes once the document is complete; then the journal's line of the file stands
//! for all its pages at once.

use std::collections::BTreeMap;
use std::path::Path;

use super::journal::FileRecord;
use super::output::{document_name, page_name};
use super::pages::PageRanges;
use crate::document::{PageHeader, PageStatus, read_page};
use crate::settings::Format;

/// What an earlier run left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    pub pages: BTreeMap<u32, PageStatus>,
    /// Every page stands, and so do the files of the whole document, although their page JSON is gone.
    pub document: bool,
}

/// Finds the pages among `selected` (ascending) whose files in `folder` stand for what this run would write.
pub fn kept_pages(
    folder: &Path,
    selected: &[u32],
    header: &PageHeader,
    formats: &[Format],
    finished: Option<&FileRecord>,
) -> Kept {
    let complete = |page: u32| formats.iter().all(|&format| folder.join(page_name(page, format)).is_file());
    let pages: BTreeMap<u32, PageStatus> = selected
        .iter()
        .filter(|&&page| complete(page))
        .filter_map(|&page| Some((page, standing(folder, page, header)?)))
        .collect();
    if pages.len() == selected.len() || formats.contains(&Format::Json) {
        return Kept { pages, document: false };
    }
    let whole = finished.filter(|record| {
        record.header == *header
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
fn standing(folder: &Path, number: u32, header: &PageHeader) -> Option<PageStatus> {
    let (found, page) = read_page(&folder.join(page_name(number, Format::Json))).ok()?;
    let figures =
        page.elements.iter().filter_map(|e| e.image.as_ref()).all(|name| folder.join(name).is_file());
    let stands = page.number == number && page.status != PageStatus::Failed && found == *header && figures;
    stands.then_some(page.status)
}
