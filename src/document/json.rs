//! Pages <-> `page-0001.json`. Byte for byte the same between runs: fixed key order, two decimals, one element a line.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::characters::escaped_json;
use crate::document::{Element, Page};
use crate::geometry::Rect;

/// Version of page files, in their key `schema`; described by `page.schema.json`.
pub const PAGE_SCHEMA: &str = "docparse.page/1";
/// Version of document files; described by `document.schema.json`.
pub const DOCUMENT_SCHEMA: &str = "docparse.document/1";

/// Which model read a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelId {
    pub name: String,
    /// Of its manifest and graphs.
    pub sha256: String,
}

/// What a page was made from and by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageHeader {
    /// Version of the program.
    pub docparse: String,
    /// `null` with `--model none`.
    pub model: Option<ModelId>,
    pub settings_sha256: String,
    pub input_sha256: String,
    /// Name of the input file, without folders.
    pub input: String,
}

impl PageHeader {
    /// A header of this version of the program; `model`: name and sha256.
    pub fn new(
        model: Option<(String, String)>,
        settings_sha256: &str,
        input_sha256: &str,
        input: &str,
    ) -> PageHeader {
        PageHeader {
            docparse: env!("CARGO_PKG_VERSION").into(),
            model: model.map(|(name, sha256)| ModelId { name, sha256 }),
            settings_sha256: settings_sha256.into(),
            input_sha256: input_sha256.into(),
            input: input.into(),
        }
    }
}

/// Why a page or document file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: not a page file: {source}", path.display())]
    Json { path: PathBuf, source: serde_json::Error },
    #[error("{}: schema `{found}`, expected `{PAGE_SCHEMA}`", path.display())]
    Schema { path: PathBuf, found: String },
    #[error("writing the document: {0}")]
    Write(#[from] io::Error),
}

#[derive(Deserialize)]
struct PageFile {
    schema: String,
    #[serde(flatten)]
    header: PageHeader,
    page: Page,
}

/// The text of a page file.
pub fn page_json(page: &Page, header: &PageHeader) -> String {
    let page = rounded(page);
    let mut out = String::from("{\n");
    head(&mut out, PAGE_SCHEMA, header);
    out.push_str("  \"page\": {\n");
    for (key, value) in page_fields(&page) {
        out.push_str(&format!("    \"{key}\": {value},\n"));
    }
    let elements: Vec<String> = page.elements.iter().map(|e| format!("\n      {}", compact(e))).collect();
    let end = if elements.is_empty() { "" } else { "\n    " };
    out.push_str(&format!("    \"elements\": [{}{end}]\n  }}\n}}\n", elements.join(",")));
    out
}

/// Reads a page file back.
pub fn read_page(path: &Path) -> Result<(PageHeader, Page), DocumentError> {
    let text = std::fs::read(path).map_err(|source| DocumentError::Read { path: path.into(), source })?;
    let file: PageFile =
        serde_json::from_slice(&text).map_err(|source| DocumentError::Json { path: path.into(), source })?;
    if file.schema != PAGE_SCHEMA {
        return Err(DocumentError::Schema { path: path.into(), found: file.schema });
    }
    Ok((file.header, file.page))
}

/// The lines that page and document files begin with.
pub(crate) fn head(out: &mut String, schema: &str, header: &PageHeader) {
    let fields = [
        ("schema", compact(&schema)),
        ("docparse", compact(&header.docparse)),
        ("model", compact(&header.model)),
        ("settings_sha256", compact(&header.settings_sha256)),
        ("input_sha256", compact(&header.input_sha256)),
        ("input", compact(&header.input)),
    ];
    for (key, value) in fields {
        out.push_str(&format!("  \"{key}\": {value},\n"));
    }
}

/// What is said of a page besides its elements, in the order of the file.
pub(crate) fn page_fields(page: &Page) -> Vec<(&'static str, String)> {
    let mut out = vec![
        ("number", compact(&page.number)),
        ("width", compact(&page.width)),
        ("height", compact(&page.height)),
        ("turn", compact(&page.turn)),
        ("skew_deg", compact(&page.skew_deg)),
        ("status", compact(&page.status)),
    ];
    out.extend(page.reason.iter().map(|reason| ("reason", compact(reason))));
    out.push(("text_layer", compact(&page.text_layer)));
    out.push(("verification", compact(&page.verification)));
    out
}

/// JSON on one line, with nothing in it that acts on a terminal.
pub(crate) fn compact(value: &impl Serialize) -> String {
    escaped_json(serde_json::to_string(value).expect("these types have string keys and no failing parts"))
}

/// Two decimals; what is no number becomes 0.
fn round(value: f32) -> f32 {
    let rounded = (f64::from(value) * 100.0).round() / 100.0;
    if rounded.is_finite() && rounded != 0.0 { rounded as f32 } else { 0.0 }
}

fn round_box(bbox: &mut Rect) {
    for value in [&mut bbox.x0, &mut bbox.y0, &mut bbox.x1, &mut bbox.y1] {
        *value = round(*value);
    }
}

/// The page as its file holds it: what is read back equals this.
pub(crate) fn rounded(page: &Page) -> Page {
    let mut page = page.clone();
    for value in [&mut page.width, &mut page.height, &mut page.skew_deg] {
        *value = round(*value);
    }
    page.elements.iter_mut().for_each(round_element);
    page
}

fn round_element(element: &mut Element) {
    round_box(&mut element.bbox);
    element.lines.iter_mut().for_each(|line| round_box(&mut line.bbox));
    element.runs.iter_mut().for_each(|run| run.confidence = round(run.confidence));
    if let Some(style) = &mut element.style {
        style.size = round(style.size);
    }
}
