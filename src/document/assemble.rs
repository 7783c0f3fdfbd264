//! Regions with words -> elements in reading order. Nothing that stands on the page is lost: text that fits no form stays a
//! paragraph.

use crate::document::code::{code, fenced};
use crate::document::composed::Composed;
use crate::document::escape::{BlockStart, inline};
use crate::document::headings::{Body, Heading, heading_like, levels};
use crate::document::lists::{Mark, is_mark_paragraph, lettered, list_levels};
use crate::document::paragraphs::{Face, face, footnotes, paragraphs};
use crate::document::text::{Lines, Writer, lines_of, page_lines};
use crate::document::{Element, ElementKind, Line, Style, contents, markup, model_text};
use crate::geometry::Rect;
use crate::lines::{hull_of, median};
use crate::page::{Kind, Link, Markup, Region, Source, Word};
use crate::patterns::{BULLET, PAGE_NUMBER, monospaced};

/// What assembly must know of the page besides its regions.
#[derive(Clone, Copy, Debug)]
pub struct PageContext<'a> {
    /// Pixels per point of the raster in which boxes are measured.
    pub scale: f32,
    /// What is printed on the page, pixels: the box of all words ([`printed_area`]).
    pub printed: Rect,
    /// Type sizes come from fonts (text layer), not from the picture.
    pub from_layer: bool,
    /// What [`Word::link`] counts in.
    pub links: &'a [Link],
    /// Are figures saved as pictures? Then figures name their file.
    pub figures: bool,
}

/// The box of all words of some regions, pixels.
pub fn printed_area(regions: &[Region]) -> Rect {
    hull_of(regions.iter().flat_map(words_of))
}

/// Turns the regions of page `number` (1-based), which stand in reading order, into elements. Heading levels are those within
/// the page.
pub fn assemble(number: u32, regions: &[Region], context: &PageContext) -> Vec<Element> {
    let mut assembly = Assembly {
        number,
        context: *context,
        writer: Writer::new(regions.iter().flat_map(words_of)),
        body: body(regions),
        figures: 0,
        elements: Vec::new(),
    };
    for region in regions {
        assembly.region(region);
    }
    let mut elements = assembly.elements;
    list_levels(&mut elements);
    page_levels(&mut elements);
    for (at, element) in elements.iter_mut().enumerate() {
        element.id = format!("p{number}e{}", at + 1);
    }
    elements
}

fn words_of(region: &Region) -> impl Iterator<Item = &Word> {
    region.words.iter().chain(region.cells.iter().flatten().flat_map(|c| &c.words))
}

/// Size and face that most characters of the running text have.
fn body(regions: &[Region]) -> Body {
    let running = |r: &&Region| matches!(r.kind, Kind::Text | Kind::List | Kind::Reference | Kind::Other);
    let words: Vec<&Word> = regions.iter().filter(running).flat_map(|r| &r.words).collect();
    let size = if words.is_empty() {
        median(regions.iter().flat_map(words_of).map(|w| w.size))
    } else {
        median(words.iter().flat_map(|w| std::iter::repeat_n(w.size, w.text.chars().count())))
    };
    Body { size: size.max(1e-3), face: face(words) }
}

/// Levels of a page's headings among themselves.
fn page_levels(elements: &mut [Element]) {
    let headings: Vec<Heading> = elements.iter().filter_map(heading_of).collect();
    let mut levels = levels(&headings).into_iter();
    for element in elements.iter_mut().filter(|e| heading_of(e).is_some()) {
        // A model that writes Markdown says the level itself.
        let level = element.level.or(levels.next()).unwrap_or(2);
        set_level(element, level);
    }
}

/// What decides the level of an element that is a heading.
pub(crate) fn heading_of(element: &Element) -> Option<Heading> {
    let title = match element.kind {
        ElementKind::Title => true,
        ElementKind::Heading => false,
        _ => return None,
    };
    let style = element.style.as_ref();
    Some(Heading::new(&element.text, style.map_or(1.0, |s| s.size), style.is_some_and(|s| s.exact), title))
}

/// Gives a heading its level, in its Markdown too.
pub(crate) fn set_level(element: &mut Element, level: u8) {
    let level = level.clamp(1, 6);
    let marks = element.markdown.bytes().take_while(|&b| b == b'#').count();
    let text = match element.markdown[marks..].strip_prefix(' ') {
        Some(text) if element.level.is_some() && marks > 0 => text,
        _ => &element.markdown,
    };
    element.markdown = format!("{} {text}", "#".repeat(usize::from(level)));
    element.level = Some(level);
}

pub(crate) struct Assembly<'a> {
    pub(crate) number: u32,
    pub(crate) context: PageContext<'a>,
    pub(crate) writer: Writer,
    pub(crate) body: Body,
    pub(crate) figures: usize,
    pub(crate) elements: Vec<Element>,
}

impl Assembly<'_> {
    fn region(&mut self, region: &Region) {
        if matches!(region.kind, Kind::Figure | Kind::Chart) {
            self.figure(region);
        } else if let Some(cells) = &region.cells {
            self.table(region, cells);
        } else if let Some(markup) = &region.markup {
            self.markup(region, markup);
        } else {
            self.words(region);
        }
    }

    fn words(&mut self, region: &Region) {
        let lines = lines_of(&region.words);
        if lines.is_empty() {
            return;
        }
        if matches!(region.kind, Kind::Text | Kind::List | Kind::Reference | Kind::Other)
            && let Some(entries) = contents::entries(&lines)
        {
            return self.contents(region, &entries);
        }
        match region.kind {
            Kind::Code => self.code(region, &lines),
            Kind::Text | Kind::List | Kind::Reference | Kind::Other | Kind::Formula
                if monospaced(&region.words) =>
            {
                self.code(region, &lines);
            }
            Kind::Title | Kind::Heading => {
                let text = self.writer.unwrapped(&lines);
                self.heading(region, region.kind.into(), text, &lines);
            }
            Kind::Formula => self.formula_words(region, &lines),
            Kind::Header | Kind::Footer | Kind::PageNumber => self.plain(region, region.kind.into(), &lines),
            Kind::Caption | Kind::Footnote => {
                let note = region.kind == Kind::Footnote;
                for paragraph in if note { footnotes(lines) } else { paragraphs(lines) } {
                    self.plain(region, region.kind.into(), &paragraph);
                }
            }
            _ => self.running_text(region, lines),
        }
    }

    /// A table of contents, each entry a list item.
    fn contents(&mut self, region: &Region, entries: &[Vec<Vec<Word>>]) {
        for entry in entries {
            let lines: Lines = entry.iter().map(|line| line.iter().collect()).collect();
            let text = self.writer.unwrapped(&lines);
            let numbered = lines.last().and_then(|l| l.last()).is_some_and(|w| PAGE_NUMBER.is_match(&w.text));
            if !numbered {
                if heading_like(&lines, &text.text, &self.body) {
                    self.heading(region, ElementKind::Heading, text, &lines);
                } else {
                    self.plain_text(region, ElementKind::Paragraph, text, &lines);
                }
                continue;
            }
            let mark = Mark::of(&text.text, false).filter(|mark| matches!(mark, Mark::Ordered(_)));
            self.item(region, mark.unwrap_or(Mark::None), text, &lines);
        }
    }

    /// Paragraphs, list items and the headings that layout took for text.
    fn running_text(&mut self, region: &Region, lines: Lines) {
        let parts: Vec<(Lines, Composed)> = paragraphs(lines)
            .into_iter()
            .map(|lines| {
                let text = self.writer.unwrapped(&lines);
                (lines, text)
            })
            .collect();
        let any_mark = parts.iter().any(|(_, text)| is_mark_paragraph(&text.text));
        let many_letters = parts.iter().filter(|(_, text)| lettered(&text.text)).count() > 1;
        let list = region.kind == Kind::List;
        // One `o` at the beginning of a paragraph is a word, two are bullets.
        let circles = parts.iter().filter(|(_, text)| text.text.starts_with("o ")).count();
        let single: Vec<bool> = parts.iter().map(|(lines, _)| lines.len() == 1).collect();
        let faces: Vec<Face> = parts.iter().map(|(lines, _)| face(lines.iter().flatten().copied())).collect();
        // A line among lines of its kind is none of the headings: addresses, authors.
        let heads = |at: usize| {
            single.len() == 1 || single.get(at + 1).is_some_and(|s| !s || faces[at + 1] != faces[at])
        };
        let mut program: Lines = Vec::new();
        for (at, (lines, text)) in parts.into_iter().enumerate() {
            if monospaced(lines.iter().flatten().copied()) && !BULLET.is_match(&text.text) {
                program.extend(lines);
                continue;
            }
            self.program(region, &mut program);
            let mark = Mark::of(&text.text, list || many_letters)
                .filter(|_| list || circles > 1 || !text.text.starts_with("o "))
                .or((list && !any_mark).then_some(Mark::None))
                // The number of a reference is part of it.
                .filter(|mark| region.kind != Kind::Reference || matches!(mark, Mark::Bullet(_)));
            if region.kind == Kind::Text && heads(at) && heading_like(&lines, &text.text, &self.body) {
                self.heading(region, ElementKind::Heading, text, &lines);
            } else if let Some(mark) = mark {
                self.item(region, mark, text, &lines);
            } else {
                let kind = match region.kind {
                    Kind::Text | Kind::Other | Kind::Reference => region.kind.into(),
                    _ => ElementKind::Paragraph,
                };
                self.plain_text(region, kind, text, &lines);
            }
        }
        self.program(region, &mut program);
    }

    /// Writes the lines of program text that stood between paragraphs.
    fn program(&mut self, region: &Region, lines: &mut Lines) {
        if !lines.is_empty() {
            self.code(region, lines);
            lines.clear();
        }
    }

    pub(crate) fn plain(&mut self, region: &Region, kind: ElementKind, lines: &Lines) {
        let text = self.writer.unwrapped(lines);
        self.plain_text(region, kind, text, lines);
    }

    fn plain_text(&mut self, region: &Region, kind: ElementKind, text: Composed, lines: &Lines) {
        // A reference's own number makes a list of it, which is what it is.
        let start = match Mark::of(&text.text, false) {
            Some(Mark::Ordered(_)) if kind == ElementKind::Reference => BlockStart::Nowhere,
            _ => BlockStart::At(0),
        };
        let markdown = inline(&text, self.context.links, start);
        self.put(region, kind, text, markdown, lines);
    }

    fn heading(&mut self, region: &Region, kind: ElementKind, text: Composed, lines: &Lines) {
        let markdown = inline(&text, self.context.links, BlockStart::Nowhere);
        self.put(region, kind, text, markdown, lines);
    }

    fn item(&mut self, region: &Region, mark: Mark, mut text: Composed, lines: &Lines) {
        let markdown = mark.item(&mut text, self.context.links);
        self.put(region, ElementKind::ListItem, text, markdown, lines);
    }

    fn code(&mut self, region: &Region, lines: &Lines) {
        let text = code(lines);
        let markdown = fenced(&text.text);
        self.put(region, ElementKind::Code, text, markdown, lines);
    }

    /// A formula of which only the characters are known.
    fn formula_words(&mut self, region: &Region, lines: &Lines) {
        let text = self.writer.unwrapped(lines);
        let markdown = formula_block(&text.text.replace('$', "\\$"));
        self.put(region, ElementKind::Formula, text, markdown, lines);
    }

    pub(crate) fn put(
        &mut self,
        region: &Region,
        kind: ElementKind,
        text: Composed,
        markdown: String,
        lines: &Lines,
    ) {
        if !text.text.trim().is_empty() {
            let element = self.element(region, kind, text, markdown, lines);
            self.elements.push(element);
        }
    }

    pub(crate) fn element(
        &self,
        region: &Region,
        kind: ElementKind,
        text: Composed,
        markdown: String,
        lines: &Lines,
    ) -> Element {
        let words = || lines.iter().flatten().copied();
        let bbox = if lines.is_empty() { region.bbox } else { hull_of(words()) };
        let scale = self.context.scale;
        let page_lines: Vec<Line> = page_lines(lines, scale);
        Element {
            id: String::new(),
            kind,
            level: None,
            bbox: bbox.scaled(1.0 / scale),
            text: text.text,
            markdown,
            html: None,
            latex: None,
            lines: page_lines,
            stop: region.stop,
            runs: text.runs,
            style: (!lines.is_empty()).then(|| Style {
                size: median(words().map(|w| w.size)) / scale,
                bold: face(words()).1,
                edge: self.at_edge(&bbox),
                exact: self.context.from_layer,
            }),
            image: None,
        }
    }

    /// In the outer tenth of what is printed?
    fn at_edge(&self, bbox: &Rect) -> bool {
        let printed = &self.context.printed;
        let tenth = 0.1 * printed.height();
        bbox.y1 < printed.y0 + tenth || bbox.y0 > printed.y1 - tenth
    }

    fn markup(&mut self, region: &Region, markup: &Markup) {
        let none = Lines::new();
        // Words beside markup are what it was made from.
        let (source, confidence) =
            region.words.first().map_or((Source::Model, region.score), |w| (w.source, w.confidence));
        for piece in model_text::pieces(region.kind, markup, source, confidence) {
            match piece {
                model_text::Piece::Grid(grid) => self.put_grid(region, &grid, &none),
                model_text::Piece::Text { kind, level, text, markdown, latex } => {
                    let mut element = self.element(region, kind, text, markdown, &none);
                    element.latex = latex;
                    if let Some(level) = level {
                        set_level(&mut element, level);
                    }
                    self.elements.push(element);
                }
            }
        }
    }
}

/// A display formula.
pub(crate) fn formula_block(body: &str) -> String {
    format!("$$\n{}\n$$", markup::latex(body))
}

#[cfg(test)]
pub(crate) mod tests;
