//! Text with its sources: each run in a `span` whose class says where it came from and how sure that is.

use crate::document::table_html::{Piece, pieces, span};
use crate::document::{Element, Run};
use crate::page::Source;

use super::encoding::push_escaped;

/// Below these, a run is marked as less sure and as doubtful. A text layer has 1, good OCR about 0.95 and up.
const UNSURE: f32 = 0.9;
const DOUBTFUL: f32 = 0.7;

/// The class of a source's runs.
pub(super) fn class(source: Source) -> &'static str {
    match source {
        Source::Model => "by-model",
        Source::TextLayer => "by-text-layer",
        Source::Ocr => "by-ocr",
        Source::Glyph => "by-glyph",
        Source::Table => "by-table",
        Source::Tesseract => "by-tesseract",
        Source::Layout => "by-layout",
    }
}

/// A source as the legend names it.
pub(super) fn name(source: Source) -> &'static str {
    match source {
        Source::Model => "model",
        Source::TextLayer => "text layer",
        Source::Ocr => "OCR",
        Source::Glyph => "glyphs",
        Source::Table => "table network",
        Source::Tesseract => "Tesseract",
        Source::Layout => "layout network",
    }
}

/// The element's text as HTML.
pub(super) fn marked_text(element: &Element) -> String {
    let mut out = String::with_capacity(element.text.len() * 2);
    let mut marks = Marks::new(&element.runs);
    for (at, c) in element.text.chars().enumerate() {
        marks.step(at, &mut out);
        push_escaped(&mut out, c.encode_utf8(&mut [0; 4]));
    }
    marks.close(&mut out);
    out
}

/// The element's table as HTML, rebuilt from the rows, cells, spans and text of `html`; other tags are dropped. Cells are marked
/// as long as their text is that of the element.
pub(super) fn marked_table(html: &str, element: &Element) -> String {
    let text: Vec<char> = element.text.chars().collect();
    let mut at = Some(0);
    let mut marks = Marks::new(&element.runs);
    let mut out = String::from("<table>");
    let mut open = Open::default();
    for piece in pieces(html) {
        match piece {
            Piece::Text(piece) => {
                if open.cell.is_none() {
                    continue;
                }
                for c in piece.chars() {
                    at = at.and_then(|at| following(&text, at, c));
                    match at {
                        Some(next) if !c.is_whitespace() => marks.step(next - 1, &mut out),
                        None => marks.close(&mut out),
                        Some(_) => {}
                    }
                    push_escaped(&mut out, c.encode_utf8(&mut [0; 4]));
                }
            }
            Piece::Tag { name, attributes } => {
                marks.close(&mut out);
                open.tag(&name, attributes, &mut out);
            }
        }
    }
    marks.close(&mut out);
    open.close_row(&mut out);
    out + "</table>"
}

/// One past the place of `c` in `text`, white space aside; `None` if something else stands there.
fn following(text: &[char], at: usize, c: char) -> Option<usize> {
    if c.is_whitespace() {
        return Some(at);
    }
    let gap = text.get(at..)?.iter().take_while(|c| c.is_whitespace()).count();
    (text.get(at + gap) == Some(&c)).then_some(at + gap + 1)
}

/// The tags of a table that are open.
#[derive(Default)]
struct Open {
    row: bool,
    cell: Option<&'static str>,
}

impl Open {
    fn tag(&mut self, name: &str, attributes: &str, out: &mut String) {
        match name {
            "tr" => {
                self.close_row(out);
                out.push_str("<tr>");
                self.row = true;
            }
            "td" | "th" => {
                self.close_cell(out);
                if !self.row {
                    out.push_str("<tr>");
                    self.row = true;
                }
                let cell = if name == "th" { "th" } else { "td" };
                *out += &format!("<{cell} dir=auto");
                for key in ["rowspan", "colspan"] {
                    let count = span(attributes, key);
                    if count > 1 {
                        *out += &format!(" {key}={count}");
                    }
                }
                out.push('>');
                self.cell = Some(cell);
            }
            "/td" | "/th" => self.close_cell(out),
            "/tr" => self.close_row(out),
            "br" if self.cell.is_some() => out.push_str("<br>"),
            _ => {}
        }
    }

    fn close_cell(&mut self, out: &mut String) {
        if let Some(cell) = self.cell.take() {
            *out += &format!("</{cell}>");
        }
    }

    fn close_row(&mut self, out: &mut String) {
        self.close_cell(out);
        if std::mem::take(&mut self.row) {
            out.push_str("</tr>");
        }
    }
}

/// Opens and closes the `span`s of runs while their text is walked through.
struct Marks<'a> {
    runs: &'a [Run],
    open: Option<usize>,
}

impl<'a> Marks<'a> {
    fn new(runs: &'a [Run]) -> Self {
        Marks { runs, open: None }
    }

    /// Before character `at` of the text.
    fn step(&mut self, at: usize, out: &mut String) {
        let holds = |run: &Run| run.start <= at && at < run.end;
        if self.open.and_then(|k| self.runs.get(k)).is_some_and(holds) {
            return;
        }
        self.close(out);
        let Some(k) = self.runs.iter().position(holds) else { return };
        let run = &self.runs[k];
        let sure = match run.confidence {
            c if c < DOUBTFUL => " doubtful",
            c if c < UNSURE => " unsure",
            _ => "",
        };
        *out += &format!(
            "<span class=\"{}{sure}\" title=\"{}, {:.2}\">",
            class(run.source),
            name(run.source),
            run.confidence
        );
        self.open = Some(k);
    }

    fn close(&mut self, out: &mut String) {
        if self.open.take().is_some() {
            out.push_str("</span>");
        }
    }
}
