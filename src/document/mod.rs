//! Elements, pages and documents: what is written. Boxes here are in points, origin top left of the upright page.

pub mod assemble;
mod code;
mod composed;
mod escape;
mod floats;
mod flow;
mod grid;
mod headings;
pub mod html;
pub mod json;
mod lists;
pub mod markdown;
mod markup;
mod model_text;
mod paragraphs;
pub mod patterns;
mod running;
mod table_flow;
mod table_html;
mod text;
pub mod whole;

pub use assemble::{PageContext, assemble, printed_area};
pub use flow::{DocumentElement, Part};
pub use html::write_html;
pub use json::{DocumentError, PageHeader, page_json, read_page};
pub use markdown::{page_markdown, page_text};
pub use whole::{DocumentOutputs, write_document};

use serde::{Deserialize, Serialize};

use crate::geometry::Rect;
use crate::page::{Kind, Source, StopReason};

/// One assembled piece of a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Element {
    /// `p3e7`: page 3, seventh element, 1-based.
    pub id: String,
    #[serde(rename = "type")]
    pub kind: ElementKind,
    /// Heading level 1..6 as far as the page alone tells; `document.json` has the level within the document. List items: nesting, 1 = outermost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub level: Option<u8>,
    pub bbox: Rect,
    /// Plain text: paragraphs unwrapped and de-hyphenated, table cells separated by tabs and rows by line ends.
    pub text: String,
    /// Markdown of this element alone.
    pub markdown: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub html: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub latex: Option<String>,
    pub lines: Vec<Line>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stop: Option<StopReason>,
    /// Where the characters of `text` came from; ranges in Unicode characters, in order, without overlaps.
    pub runs: Vec<Run>,
    /// What later passes over the document need: type size, weight, whether it stands at the page's edge.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub style: Option<Style>,
    /// File name of a saved figure, relative to the page file.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub image: Option<String>,
}

/// The `type` of an element in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ElementKind {
    Title,
    Heading,
    Paragraph,
    ListItem,
    Table,
    Formula,
    Figure,
    Chart,
    Caption,
    Code,
    Footnote,
    Reference,
    Header,
    Footer,
    PageNumber,
    Other,
}

impl From<Kind> for ElementKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Title => ElementKind::Title,
            Kind::Heading => ElementKind::Heading,
            Kind::Text => ElementKind::Paragraph,
            Kind::List => ElementKind::ListItem,
            Kind::Table => ElementKind::Table,
            Kind::Formula => ElementKind::Formula,
            Kind::Figure => ElementKind::Figure,
            Kind::Chart => ElementKind::Chart,
            Kind::Caption => ElementKind::Caption,
            Kind::Code => ElementKind::Code,
            Kind::Footnote => ElementKind::Footnote,
            Kind::Reference => ElementKind::Reference,
            Kind::Header => ElementKind::Header,
            Kind::Footer => ElementKind::Footer,
            Kind::PageNumber => ElementKind::PageNumber,
            Kind::Other => ElementKind::Other,
        }
    }
}

/// A text line as it stands on the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub text: String,
    pub bbox: Rect,
}

/// A run of characters of an element's `text` with one source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// First character, and one past the last.
    pub start: usize,
    pub end: usize,
    pub source: Source,
    /// Lowest confidence in the run, 0..1, rounded to two places.
    pub confidence: f32,
}

/// Typography of an element, for passes over the whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Style {
    /// Median font height, points.
    pub size: f32,
    pub bold: bool,
    /// Stands in the outer tenth of what is printed on the page.
    pub edge: bool,
    /// False where the size is measured on a picture and so only roughly known.
    pub exact: bool,
}

/// How a page came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageStatus {
    Ok,
    Partial,
    Failed,
}

/// One page as it is written to `page-0001.json`: page-local evidence only, final once written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// 1-based.
    pub number: u32,
    /// Points, of the upright page.
    pub width: f32,
    pub height: f32,
    /// Quarter turns clockwise x 90 that made the page upright: 0, 90, 180 or 270.
    pub turn: u16,
    /// Slant of the text lines that was undone before OCR, degrees, positive = clockwise on the page as found.
    pub skew_deg: f32,
    pub status: PageStatus,
    /// Why the page is partial or failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// What the text layer was found to be: `none`, `used`, `garbage`, `incomplete`.
    pub text_layer: String,
    /// What a model checked: `verified` every draft, `partly` those that did not stand by their drafter's own confidence, `settled`
    /// where all did, `unverified` with `--model none` or where the model failed.
    pub verification: String,
    pub elements: Vec<Element>,
}
