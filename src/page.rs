//! What is known of one page before and while it is read. All boxes are in pixels of the upright raster.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::geometry::Rect;

/// Where a piece of text came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    Model,
    TextLayer,
    Ocr,
    Glyph,
    Table,
    Tesseract,
    /// The layout network: kinds and boxes of regions.
    Layout,
}

impl Source {
    /// All sources, each at its own index.
    pub const ALL: [Source; 7] = [
        Source::Model,
        Source::TextLayer,
        Source::Ocr,
        Source::Glyph,
        Source::Table,
        Source::Tesseract,
        Source::Layout,
    ];
}

/// One word of the page. Words of a text layer come in content order, words of the OCR line by line.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    pub text: String,
    pub bbox: Rect,
    /// Font height in pixels (ascent to descent).
    pub size: f32,
    pub bold: bool,
    /// Lower-case font name without its subset prefix; empty where unknown (pictures).
    pub font: Arc<str>,
    /// Number of the line in content order (text layer) or of the detected line (OCR).
    pub line: u32,
    /// No space between this word and the one before it in the content (a jump without a space character).
    pub glue: bool,
    /// 0..1; 1 for a text layer.
    pub confidence: f32,
    pub source: Source,
    /// Index into [`PageEvidence::links`] of the link that covers the word.
    pub link: Option<u32>,
    /// Share of the word's characters that cannot be right (unmapped, private use, replacement, control), 0..1.
    pub suspicious: f32,
    /// A formula that stands for one word: its LaTeX; `text` then is what its characters say in a row.
    pub latex: Option<Arc<str>>,
}

/// One glyph of a text layer: what is lost where glyphs become words, and formulas need.
#[derive(Clone, Debug, PartialEq)]
pub struct Glyph {
    pub character: char,
    /// What is painted, pixels of the upright raster.
    pub ink: Rect,
    /// Level of the baseline, pixels.
    pub baseline: f32,
    /// Font size (1 em), pixels.
    pub size: f32,
    /// Lower-case font name without its subset prefix.
    pub font: Arc<str>,
    pub bold: bool,
    /// Index of the word in which it stands.
    pub word: u32,
}

/// Straight drawn lines. Thin painted paths and the edges of painted boxes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// `(x0, x1, y)`
    pub horizontal: Vec<(f32, f32, f32)>,
    /// `(y0, y1, x)`
    pub vertical: Vec<(f32, f32, f32)>,
}

impl Rules {
    pub fn is_empty(&self) -> bool {
        self.horizontal.is_empty() && self.vertical.is_empty()
    }
}

/// A hyperlink of the PDF.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    pub bbox: Rect,
    /// An absolute URI; links inside the document are left out.
    pub uri: String,
}

/// What a region is. Every layout network's and every model's labels are mapped to these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The document's title.
    Title,
    /// A section heading.
    Heading,
    Text,
    List,
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

/// A typed rectangle of the page in reading order, with the words that stand in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub kind: Kind,
    /// Score of the layout network, 0..1; 0 for regions made from text that no region claimed.
    pub score: f32,
    pub bbox: Rect,
    pub words: Vec<Word>,
    /// Grid of a table region, once known. Its words then stand in the cells, not in `words`.
    pub cells: Option<Vec<Cell>>,
    /// Text that is already markup (LaTeX, HTML, Markdown) rather than words: what models without grounding write.
    pub markup: Option<Markup>,
    /// Why the region's stream stopped, if a model read it.
    pub stop: Option<StopReason>,
}

/// Finished content of a region in one of the formats that models write.
#[derive(Clone, Debug, PartialEq)]
pub enum Markup {
    Text(String),
    Markdown(String),
    Latex(String),
    Html(String),
}

/// Why a stream stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model ended it.
    End,
    /// The loop guard ended it.
    Loop,
    /// Its token budget ran out.
    Budget,
    /// The draft was written without a model, or the model did not look at it.
    Unverified,
    /// The model's layout has no such region; what the drafters saw stands at the end of the page.
    Unclaimed,
}

/// A table cell: its place in the grid, its box, its words.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub row: usize,
    pub col: usize,
    /// Rows and columns it spans, at least 1.
    pub rows: usize,
    pub cols: usize,
    pub bbox: Rect,
    pub words: Vec<Word>,
    pub header: bool,
}

/// What one page gave before any network looked at it: the pixels and, for PDF pages, what the file itself says.
#[derive(Clone, Debug)]
pub struct PageEvidence {
    /// 1-based page number in its file.
    pub number: u32,
    /// Upright raster: the page's own rotation and the turn of its text (where a text layer tells it) are undone.
    pub raster: crate::raster::Raster,
    /// Pixels per point of `raster`; pictures: their dpi / 72, or 1 where the file does not say.
    pub scale: f32,
    /// Quarter turns clockwise that were applied to the page as its file shows it, to make it upright: 0..3.
    pub turn: u8,
    /// The text layer as words; empty for pictures and scans without one.
    pub words: Vec<Word>,
    /// The words' glyphs, in the same order.
    pub glyphs: Vec<Glyph>,
    pub rules: Rules,
    pub links: Vec<Link>,
    /// Share of the page that its largest embedded picture covers, 0..1; 1 for picture inputs.
    pub picture_share: f32,
    /// Characters of the text layer that are drawn invisible (render mode 3), share 0..1.
    pub hidden_share: f32,
    /// True for picture files (PNG, JPEG, TIFF), false for PDF pages.
    pub is_picture: bool,
}

/// What a document gave as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DocumentInfo {
    pub page_count: u32,
    /// Title, author, subject, keywords, creator, producer, creation date as the file gives them; empty ones left out.
    pub metadata: Vec<(String, String)>,
    pub bookmarks: Vec<Bookmark>,
}

/// An entry of the PDF's outline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bookmark {
    pub title: String,
    /// 1 for the outermost level.
    pub level: u32,
    /// 1-based; `None` where the target is not a page of the document.
    pub page: Option<u32>,
}
