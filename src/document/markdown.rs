//! Elements -> Markdown and plain text.

use std::convert::Infallible;
use std::io::{self, Write};

use crate::document::code::fenced;
use crate::document::flow::{DocumentElement, Flow, Item, PageStart};
use crate::document::{Element, ElementKind, Page};
use crate::settings::OutputSettings;

/// Markdown of one page, ending in a line end; empty for an empty page.
pub fn page_markdown(page: &Page, settings: &OutputSettings) -> String {
    let mut out = Vec::new();
    let mut writer = MarkdownWriter::new(&mut out, settings.running_matter);
    let written = write_page(page, &mut |item| match item {
        Item::Page(start) => writer.page(&start, false),
        Item::Element(element) => writer.element(&element.element),
    })
    .and_then(|()| writer.finish());
    written.expect("a vector takes everything");
    String::from_utf8(out).expect("only strings were written")
}

/// Plain text of one page, ending in a line end; empty for an empty page.
pub fn page_text(page: &Page, settings: &OutputSettings) -> String {
    let mut out = Vec::new();
    let mut writer = TextWriter::new(&mut out, settings.running_matter);
    let written = write_page(page, &mut |item| match item {
        Item::Page(_) => Ok(()),
        Item::Element(element) => writer.element(&element.element),
    })
    .and_then(|()| writer.finish());
    written.expect("a vector takes everything");
    String::from_utf8(out).expect("only strings were written")
}

/// Sends a page's elements through [`Flow`].
fn write_page(page: &Page, out: &mut impl FnMut(Item) -> io::Result<()>) -> io::Result<()> {
    let mut flow = Flow::default();
    let mut items: Vec<Item> = Vec::new();
    let mut collect = |item: Item| -> Result<(), Infallible> {
        items.push(item);
        Ok(())
    };
    let elements =
        page.elements.iter().cloned().map(|e| Item::Element(Box::new(DocumentElement::new(page.number, e))));
    for item in std::iter::once(Item::Page(PageStart::new(page))).chain(elements) {
        let Ok(()) = flow.push(item, &mut collect);
    }
    let Ok(()) = flow.flush(&mut collect);
    items.into_iter().try_for_each(out)
}

/// Headers, footers and page numbers.
pub(crate) fn is_running(kind: ElementKind) -> bool {
    matches!(kind, ElementKind::Header | ElementKind::Footer | ElementKind::PageNumber)
}

/// Writes elements as Markdown, one after another.
pub(crate) struct MarkdownWriter<W: Write> {
    out: W,
    running_matter: bool,
    begun: bool,
    /// Program text not yet written: the next element may go on with it.
    code: Option<String>,
    /// The list in which the last block stands.
    list: List,
}

impl<W: Write> MarkdownWriter<W> {
    pub(crate) fn new(out: W, running_matter: bool) -> Self {
        MarkdownWriter { out, running_matter, begun: false, code: None, list: List::default() }
    }

    /// The comment at the beginning of a page: that it failed, or (`marker`) its number.
    pub(crate) fn page(&mut self, start: &PageStart, marker: bool) -> io::Result<()> {
        let text = match &start.failed {
            Some(reason) => format!("page {} failed: {}", start.number, comment(reason)),
            None if marker => format!("page {}", start.number),
            None => return Ok(()),
        };
        self.list = List::default();
        self.block(&format!("<!-- {text} -->"), "\n\n")
    }

    pub(crate) fn element(&mut self, element: &Element) -> io::Result<()> {
        if is_running(element.kind) && !self.running_matter || element.markdown.is_empty() {
            return Ok(());
        }
        match element.kind {
            ElementKind::Code => {
                self.list = List::default();
                match &mut self.code {
                    Some(code) => code.extend(["\n", &element.text]),
                    None => self.code = Some(element.text.clone()),
                }
                Ok(())
            }
            ElementKind::ListItem => {
                let (text, gap) = self.list.item(element);
                self.block(&text, gap)
            }
            _ => {
                self.list = List::default();
                self.block(&element.markdown, "\n\n")
            }
        }
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.flush_code()?;
        if self.begun { self.out.write_all(b"\n") } else { Ok(()) }
    }

    fn flush_code(&mut self) -> io::Result<()> {
        match self.code.take() {
            Some(code) => self.put(&fenced(&code), "\n\n"),
            None => Ok(()),
        }
    }

    fn block(&mut self, text: &str, gap: &str) -> io::Result<()> {
        self.flush_code()?;
        self.put(text, gap)
    }

    fn put(&mut self, text: &str, gap: &str) -> io::Result<()> {
        if self.begun {
            self.out.write_all(gap.as_bytes())?;
        }
        self.begun = true;
        self.out.write_all(text.as_bytes())
    }
}

/// Text that cannot end the comment that it stands in.
fn comment(text: &str) -> String {
    text.replace("--", "- -").replace(['\n', '\r', '>'], " ")
}

/// The open levels of a list.
#[derive(Debug, Default)]
struct List {
    /// Column at which each level's text begins.
    columns: Vec<usize>,
    /// Last character of each level's mark: `-`, `.` or `)`.
    marks: Vec<char>,
}

impl List {
    /// Indented Markdown of an item, and what stands between it and the block before.
    fn item(&mut self, element: &Element) -> (String, &'static str) {
        let level = usize::from(element.level.unwrap_or(1)).clamp(1, self.columns.len() + 1);
        let mark = element.markdown.split(' ').next().unwrap_or_default();
        let kind = mark.chars().last().unwrap_or('-');
        let gap = match self.marks.get(level - 1) {
            _ if self.columns.is_empty() => "\n\n",
            Some(&before) if before != kind => "\n\n",
            // Right under a parent's text only a bullet or a 1 begins a list.
            None if kind != '-' && mark.trim_end_matches(['.', ')']) != "1" => "\n\n",
            _ => "\n",
        };
        self.columns.truncate(level - 1);
        self.marks.truncate(level - 1);
        let indent = self.columns.last().copied().unwrap_or(0);
        self.columns.push(indent + mark.chars().count() + 1);
        self.marks.push(kind);
        let space = " ".repeat(indent);
        let rest = " ".repeat(indent + mark.chars().count() + 1);
        (format!("{space}{}", element.markdown.replace('\n', &format!("\n{rest}"))), gap)
    }
}

/// Writes elements as plain text, one after another.
pub(crate) struct TextWriter<W: Write> {
    out: W,
    running_matter: bool,
    before: Option<ElementKind>,
}

impl<W: Write> TextWriter<W> {
    pub(crate) fn new(out: W, running_matter: bool) -> Self {
        TextWriter { out, running_matter, before: None }
    }

    pub(crate) fn element(&mut self, element: &Element) -> io::Result<()> {
        if is_running(element.kind) && !self.running_matter || element.text.is_empty() {
            return Ok(());
        }
        let item = element.kind == ElementKind::ListItem;
        let gap = match self.before.replace(element.kind) {
            None => "",
            Some(ElementKind::ListItem) if item => "\n",
            Some(ElementKind::Code) if element.kind == ElementKind::Code => "\n",
            Some(_) => "\n\n",
        };
        self.out.write_all(gap.as_bytes())?;
        if item {
            self.out.write_all("  ".repeat(usize::from(element.level.unwrap_or(1)) - 1).as_bytes())?;
            if element.markdown.starts_with("- ") {
                self.out.write_all(b"- ")?;
            }
        }
        self.out.write_all(element.text.as_bytes())
    }

    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.before.is_some() { self.out.write_all(b"\n") } else { Ok(()) }
    }
}
