//! A page that was read -> the bytes of its files.

use serde::{Deserialize, Serialize};

use super::identity::Provenance;
use crate::document::{ElementKind, Page};
use crate::settings::{Format, OutputSettings};

/// Version of the page JSON's form.
pub const PAGE_SCHEMA: &str = "docparse.page/1";

/// `page-0001.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PageFile {
    pub schema: String,
    #[serde(flatten)]
    pub provenance: Provenance,
    #[serde(flatten)]
    pub page: Page,
}

/// The bytes of a page's file in one format.
pub fn page_bytes(page: &Page, provenance: &Provenance, format: Format, output: &OutputSettings) -> Vec<u8> {
    match format {
        Format::Json => {
            let file = page_file(page, provenance);
            let mut bytes = serde_json::to_vec_pretty(&file).expect("page values are plain data");
            bytes.push(b'\n');
            bytes
        }
        Format::Markdown => joined(page, output, |e| &e.markdown).into_bytes(),
        Format::Text => joined(page, output, |e| &e.text).into_bytes(),
    }
}

/// The page's JSON on one line, line end included: what goes to stdout.
pub fn page_json_line(page: &Page, provenance: &Provenance) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(&page_file(page, provenance)).expect("page values are plain data");
    bytes.push(b'\n');
    bytes
}

fn page_file(page: &Page, provenance: &Provenance) -> PageFile {
    PageFile { schema: PAGE_SCHEMA.into(), provenance: provenance.clone(), page: page.clone() }
}

fn joined(page: &Page, output: &OutputSettings, part: fn(&crate::document::Element) -> &String) -> String {
    let running = [ElementKind::Header, ElementKind::Footer, ElementKind::PageNumber];
    let parts: Vec<&str> = page
        .elements
        .iter()
        .filter(|e| output.running_matter || !running.contains(&e.kind))
        .map(|e| part(e).trim_end())
        .filter(|text| !text.is_empty())
        .collect();
    if parts.is_empty() { String::new() } else { parts.join("\n\n") + "\n" }
}
