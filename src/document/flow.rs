//! Elements as one flow: paragraphs that go on in the next column or on the next page, and tables that go on on the next
//! page, become one element. Holds back no more than what may still go on.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::document::composed::runs_from;
use crate::document::table_flow;
use crate::document::text::{Joint, Writer};
use crate::document::{Element, ElementKind, Line, Page, PageStatus, Run};
use crate::geometry::Rect;
use crate::lines::is_cjk;

/// An element of the whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DocumentElement {
    /// Page on which it begins, 1-based.
    pub page: u32,
    #[serde(flatten)]
    pub element: Element,
    /// Where it goes on: the elements of page files that were joined to it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub continued: Vec<Part>,
}

/// An element of a page file that continues one before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub page: u32,
    pub id: String,
    pub bbox: Rect,
    /// Its first character in the joined text.
    pub start: usize,
    pub lines: Vec<Line>,
}

impl DocumentElement {
    pub(crate) fn new(page: u32, element: Element) -> DocumentElement {
        DocumentElement { page, element, continued: Vec::new() }
    }

    /// Page and box of its last part.
    pub(crate) fn end(&self) -> (u32, Rect) {
        self.continued.last().map_or((self.page, self.element.bbox), |part| (part.page, part.bbox))
    }

    fn end_lines(&self) -> &[Line] {
        self.continued.last().map_or(&self.element.lines, |part| &part.lines)
    }

    /// Notes that `next`, whose text begins at the character `start` of the joined text, was joined.
    pub(crate) fn add_part(&mut self, next: DocumentElement, start: usize) {
        let Element { id, bbox, lines, .. } = next.element;
        self.continued.push(Part { page: next.page, id, bbox, start, lines });
    }

    /// Appends runs of a text that begins at the character `shift`.
    pub(crate) fn add_runs(&mut self, runs: Vec<Run>, shift: usize) {
        let own = &mut self.element.runs;
        if let Some(last) = own.last_mut() {
            last.end = shift;
        }
        for run in runs {
            let run = Run { start: run.start + shift, end: run.end + shift, ..run };
            match own.last_mut() {
                Some(last) if last.source == run.source && last.confidence == run.confidence => {
                    last.end = run.end;
                }
                _ => own.push(run),
            }
        }
    }
}

/// Where a page begins, and how it came out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PageStart {
    pub(crate) number: u32,
    pub(crate) height: f32,
    pub(crate) failed: Option<String>,
}

impl PageStart {
    pub(crate) fn new(page: &Page) -> PageStart {
        let failed = (page.status == PageStatus::Failed)
            .then(|| page.reason.clone().unwrap_or_else(|| "no reason given".into()));
        PageStart { number: page.number, height: page.height, failed }
    }
}

/// What flows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Page(PageStart),
    Element(Box<DocumentElement>),
}

/// Most items held back, and longest text that is still joined to, bytes.
const MOST_HELD: usize = 500;
const LONGEST_TEXT: usize = 1 << 20;

/// Joins what goes on. Items come out in the order in which they went in, less those that were joined.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The element that may go on, and what came after it.
    held: VecDeque<Item>,
    /// Heights of the pages, points: of the one before and of the current one.
    heights: [f32; 2],
}

impl Flow {
    /// Takes an item; hands on through `out` what is settled.
    pub(crate) fn push<E>(
        &mut self,
        item: Item,
        out: &mut impl FnMut(Item) -> Result<(), E>,
    ) -> Result<(), E> {
        let next = match item {
            Item::Element(next) if !passes(next.element.kind) => next,
            Item::Element(_) => return self.hold(item, out),
            Item::Page(ref start) => {
                self.heights = [self.heights[1], start.height];
                let failed = start.failed.is_some();
                self.hold(item, out)?;
                return if failed { self.flush(out) } else { Ok(()) };
            }
        };
        let next = match self.join(next) {
            Some(next) => next,
            None => return Ok(()),
        };
        self.flush(out)?;
        match next.element.kind {
            ElementKind::Paragraph | ElementKind::ListItem | ElementKind::Table => {
                self.held.push_back(Item::Element(next));
                Ok(())
            }
            _ => out(Item::Element(next)),
        }
    }

    /// Hands on all that is held.
    pub(crate) fn flush<E>(&mut self, out: &mut impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
        self.held.drain(..).try_for_each(out)
    }

    fn hold<E>(&mut self, item: Item, out: &mut impl FnMut(Item) -> Result<(), E>) -> Result<(), E> {
        if self.held.is_empty() {
            return out(item);
        }
        self.held.push_back(item);
        if self.held.len() > MOST_HELD { self.flush(out) } else { Ok(()) }
    }

    /// Joins `next` to what is held, or gives it back.
    fn join(&mut self, next: Box<DocumentElement>) -> Option<Box<DocumentElement>> {
        let heights = self.heights;
        let between = self.held.iter().skip(1).filter_map(|item| match item {
            Item::Element(e) => Some(&e.element),
            Item::Page(_) => None,
        });
        let clear = between.clone().all(table_flow::may_stand_between);
        let Some(Item::Element(open)) = self.held.front_mut() else { return Some(next) };
        if open.element.text.len() > LONGEST_TEXT {
            return Some(next);
        }
        if open.element.kind == ElementKind::Table {
            if !clear || !table_flow::continues(open, &next, heights) {
                return Some(next);
            }
            table_flow::join(open, *next);
        } else {
            if !continues(open, &next) {
                return Some(next);
            }
            join_text(open, *next);
        }
        None
    }
}

/// What may stand between the two halves of a paragraph.
fn passes(kind: ElementKind) -> bool {
    use ElementKind::{Caption, Chart, Figure, Footer, Footnote, Header, PageNumber};
    matches!(kind, Header | Footer | PageNumber | Footnote | Figure | Chart | Caption)
}

/// Does the paragraph or item go on in the paragraph `next`?
fn continues(open: &DocumentElement, next: &DocumentElement) -> bool {
    let (page, end) = open.end();
    let breaks = page != next.page || next.element.bbox.y0 < end.y0 - 0.5 * end.height().min(20.0);
    let item = open.element.kind == ElementKind::ListItem;
    let begin = &next.element.bbox;
    let height = next.element.lines.first().map_or(0.0, |l| l.bbox.height());
    let hangs = begin.x0 > end.x0 - 0.2 * height && begin.y0 < end.y1 + 0.8 * height;
    if next.element.kind != ElementKind::Paragraph || item && !breaks && !hangs {
        return false;
    }
    let (Some(last), Some(first)) = (open.element.text.chars().last(), next.element.text.chars().next())
    else {
        return false;
    };
    if is_cjk(last) && is_cjk(first) {
        return breaks && goes_on_cjk(open, next, last);
    }
    first.is_lowercase() && (last.is_lowercase() || matches!(last, ',' | ';' | '-' | '\u{ad}' | '\u{2010}'))
}

/// Chinese and Japanese have no capitals: the last line must be full and the next paragraph must not begin with an indent.
fn goes_on_cjk(open: &DocumentElement, next: &DocumentElement, last: char) -> bool {
    const ENDS: &str = "。！？：；」』）】》…．";
    let lines = open.end_lines();
    let (Some(end), [first, second, ..]) = (lines.last(), next.element.lines.as_slice()) else {
        return false;
    };
    let right = lines.iter().map(|l| l.bbox.x1).fold(f32::NEG_INFINITY, f32::max);
    let size = end.bbox.height();
    lines.len() > 1
        && !ENDS.contains(last)
        && end.bbox.x1 > right - 1.5 * size
        && (first.bbox.x0 - second.bbox.x0).abs() < 0.8 * size
}

fn join_text(open: &mut DocumentElement, next: DocumentElement) {
    let joint = Writer::default().joint(&open.element.text, &next.element.text);
    match joint {
        Joint::Space => {
            open.element.text.push(' ');
            open.element.markdown.push(' ');
        }
        Joint::Nothing => {}
        Joint::DropHyphen => {
            let hyphen = open.element.text.pop();
            if open.element.markdown.chars().last() == hyphen {
                open.element.markdown.pop();
            }
        }
    }
    let start = open.element.text.chars().count();
    open.element.runs.retain(|run| run.start < start);
    open.element.text.push_str(&next.element.text);
    open.element.markdown.push_str(&next.element.markdown);
    open.add_runs(runs_from(&next.element.runs, 0), start);
    open.add_part(next, start);
}
