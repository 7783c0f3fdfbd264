//! Everything that proposes what stands on a page: the text layer, and small networks for layout, text lines, reading and
//! tables. Nothing in here decides what the model accepts.

/// Text lines in a picture.
pub mod detect;

#[cfg(test)]
pub(crate) mod drawn;

/// Text of lines by the pack's vision graph.
pub mod glyphs;

/// Regions of a page.
pub mod layout;

/// Formulas of the text layer.
mod mathematics;

/// One small network: session, metadata, errors.
pub(crate) mod network;

/// The networks of a worker, loaded when first needed, and their statistics.
pub mod nets;

/// Lines that were read -> words.
pub(crate) mod ocr;

/// Text of one line.
pub mod recognise;

/// The common slant of the lines.
pub(crate) mod skew;

/// Structure of one table.
pub mod table_net;

/// The `tesseract` program, for scripts that the OCR network does not know.
pub mod tesseract;

/// Is the text layer what the picture shows?
pub(crate) mod trust;

/// Quarter turns that make a page upright.
pub(crate) mod turn;

/// Characters that the text layer does not name.
mod unnamed;

/// A page's words: from the text layer, the OCR, or both.
pub mod words;

mod columns;
mod contents;
mod labels;
mod listings;
pub mod order;
mod reads;
mod regions;
mod running;
pub mod structure;

pub mod content_draft;
pub mod trunk_draft;

use crate::geometry::Rect;
use crate::page::{Cell, Glyph, Kind, Region, Rules, Word};
use crate::raster::Raster;

/// What is known of the text layer of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLayer {
    /// The page has none (pictures, scans).
    None,
    /// Its words are the page's words.
    Used,
    /// It says something else than the picture shows; it was ignored.
    Garbage,
    /// It covers part of what the picture shows; the OCR read the rest.
    Incomplete,
}

/// A page whose words are settled: from its text layer, from the OCR, or from both.
#[derive(Clone, Debug)]
pub struct PageWords {
    /// Upright raster; the OCR may have turned it further than the evidence's, and undone a slant.
    pub raster: Raster,
    pub words: Vec<Word>,
    /// Glyphs of the text layer, in content order; empty where the words are not its words.
    pub glyphs: Vec<Glyph>,
    /// Drawn lines of the PDF; empty for pictures (then taken from the picture where needed).
    pub rules: Rules,
    /// Quarter turns clockwise that were applied in all: 0..3.
    pub turn: u8,
    pub skew_deg: f32,
    pub text_layer: TextLayer,
    /// Was the type size measured by a font (text layer) rather than on the picture?
    pub from_layer: bool,
}

/// A table network's reading of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableReading {
    /// Cells without words; boxes in pixels of the page raster.
    pub cells: Vec<Cell>,
    /// Mean probability of its tokens, 0..1.
    pub confidence: f32,
}

/// The networks that look at one page's pixels, behind one interface so that structure can be tested without them.
pub trait PageNets {
    /// Layout regions without words, best first, kinds in `skip` left out; boxes in pixels of the page raster.
    fn layout(&mut self, skip: &[Kind]) -> Vec<Region>;
    /// Structure of the table inside `bbox`; `None` without a table network.
    fn table(&mut self, bbox: Rect) -> Option<TableReading>;
    /// Dark straight lines in the picture inside `bbox`.
    fn picture_rules(&mut self, bbox: Rect) -> Rules;
}
