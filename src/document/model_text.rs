//! What models without grounding write (text, Markdown, LaTeX, HTML) -> pieces of a page.

use crate::document::assemble::formula_block;
use crate::document::code::fenced;
use crate::document::composed::Composed;
use crate::document::escape::{BlockStart, inline};
use crate::document::grid::{Grid, GridCell};
use crate::document::lists::Mark;
use crate::document::markup::{Block, blocks, harmless, latex, plain};
use crate::document::text::Writer;
use crate::document::{ElementKind, table_html};
use crate::page::{Kind, Markup, Source};

/// A piece of a page without words of its own.
pub(crate) enum Piece {
    Grid(Grid),
    Text { kind: ElementKind, level: Option<u8>, text: Composed, markdown: String, latex: Option<String> },
}

/// Pieces of a region of `kind` whose content `source` wrote with `confidence`.
pub(crate) fn pieces(kind: Kind, markup: &Markup, source: Source, confidence: f32) -> Vec<Piece> {
    let maker = Maker { kind, source, confidence };
    match markup {
        Markup::Text(text) if kind == Kind::Code => maker.code(text),
        Markup::Text(text) if kind == Kind::Formula => maker.formula_text(text),
        Markup::Text(text) => parts(text, confidence).into_iter().map(|part| maker.text(part)).collect(),
        Markup::Latex(source) => maker.formula(source),
        Markup::Html(html) => maker.html(html),
        Markup::Markdown(text) if kind == Kind::Code && !text.contains("```") => maker.code(text),
        Markup::Markdown(text) => blocks(text).into_iter().flat_map(|block| maker.block(block)).collect(),
    }
}

/// Text without tags.
pub(crate) fn html(html: &str) -> String {
    table_html::plain(html)
}

/// Paragraphs of a plain text: parted by empty lines, their lines joined as on a page.
pub(crate) fn parts(text: &str, confidence: f32) -> Vec<Composed> {
    let writer = Writer::default();
    let normal = text.replace("\r\n", "\n");
    let paragraphs = normal.split("\n\n").map(|paragraph| {
        let mut out = Composed::default();
        for line in paragraph.lines().map(str::trim).filter(|l| !l.is_empty()) {
            let line: String =
                line.chars().map(|c| if c == '\t' { ' ' } else { c }).filter(|c| !c.is_control()).collect();
            writer.join(&mut out, &Composed::whole(&line, Source::Model, confidence));
        }
        out
    });
    paragraphs.filter(|p| !p.is_empty()).collect()
}

struct Maker {
    kind: Kind,
    source: Source,
    confidence: f32,
}

impl Maker {
    fn whole(&self, text: &str) -> Composed {
        Composed::whole(text, self.source, self.confidence)
    }

    fn piece(&self, kind: ElementKind, text: Composed, markdown: String) -> Piece {
        Piece::Text { kind, level: None, text, markdown, latex: None }
    }

    /// A paragraph in the form that the region's kind asks for.
    fn text(&self, mut text: Composed) -> Piece {
        match self.kind {
            Kind::Title | Kind::Heading => {
                let markdown = inline(&text, &[], BlockStart::Nowhere);
                self.piece(self.kind.into(), text, markdown)
            }
            Kind::List | Kind::Text | Kind::Other => {
                let in_list = self.kind == Kind::List;
                match Mark::of(&text.text, in_list).or(in_list.then_some(Mark::None)) {
                    Some(mark) => {
                        let markdown = mark.item(&mut text, &[]);
                        self.piece(ElementKind::ListItem, text, markdown)
                    }
                    None => self.paragraph(text),
                }
            }
            _ => self.paragraph(text),
        }
    }

    fn paragraph(&self, text: Composed) -> Piece {
        let markdown = inline(&text, &[], BlockStart::At(0));
        let kind = match self.kind {
            // Text that only looked like these.
            Kind::Table | Kind::List | Kind::Formula | Kind::Code => ElementKind::Paragraph,
            kind => kind.into(),
        };
        self.piece(kind, text, markdown)
    }

    fn code(&self, text: &str) -> Vec<Piece> {
        let text = text.trim_matches('\n');
        if text.trim().is_empty() {
            return Vec::new();
        }
        vec![self.piece(ElementKind::Code, self.whole(text), fenced(text))]
    }

    fn formula(&self, source: &str) -> Vec<Piece> {
        let source = latex(source);
        if source.is_empty() {
            return Vec::new();
        }
        vec![Piece::Text {
            kind: ElementKind::Formula,
            level: None,
            text: self.whole(&source),
            markdown: formula_block(&source),
            latex: Some(source),
        }]
    }

    /// A formula that is no LaTeX.
    fn formula_text(&self, text: &str) -> Vec<Piece> {
        let pieces = parts(text, self.confidence).into_iter();
        pieces
            .map(|text| {
                let markdown = formula_block(&text.text.replace('$', "\\$"));
                self.piece(ElementKind::Formula, text, markdown)
            })
            .collect()
    }

    fn html(&self, html: &str) -> Vec<Piece> {
        match Grid::new(table_html::cells(html, self.confidence)) {
            Some(grid) => vec![Piece::Grid(grid)],
            None => {
                parts(&table_html::plain(html), self.confidence).into_iter().map(|p| self.text(p)).collect()
            }
        }
    }

    fn block(&self, block: Block) -> Vec<Piece> {
        match block {
            Block::Heading(level, text) => {
                let kind = if self.kind == Kind::Title { ElementKind::Title } else { ElementKind::Heading };
                let text = self.whole(&text);
                let markdown = inline(&text, &[], BlockStart::Nowhere);
                if text.is_empty() {
                    return Vec::new();
                }
                vec![Piece::Text { kind, level: Some(level), text, markdown, latex: None }]
            }
            Block::Item(mark, source) => {
                let ordered = mark.starts_with(|c: char| c.is_ascii_digit());
                let markdown = format!("{} {}", if ordered { &mark } else { "-" }, harmless(&source));
                let text = if ordered { format!("{mark} {}", plain(&source)) } else { plain(&source) };
                self.known(ElementKind::ListItem, &text, markdown)
            }
            Block::Table(rows) => {
                let cells = rows.iter().enumerate().flat_map(|(row, cells)| {
                    cells.iter().enumerate().map(move |(col, text)| GridCell {
                        row,
                        col,
                        rows: 1,
                        cols: 1,
                        header: row == 0,
                        content: self.whole(text),
                    })
                });
                Grid::new(cells.collect()).map(Piece::Grid).into_iter().collect()
            }
            Block::Html(html) => self.html(&html),
            Block::Formula(source) => self.formula(&source),
            Block::Code(text) => self.code(&text),
            Block::Paragraph(source) => match self.kind {
                Kind::Title | Kind::Heading => vec![self.text(self.whole(&plain(&source)))],
                Kind::Table | Kind::List | Kind::Formula | Kind::Code => {
                    self.known(ElementKind::Paragraph, &plain(&source), harmless(&source))
                }
                kind => self.known(kind.into(), &plain(&source), harmless(&source)),
            },
        }
    }

    fn known(&self, kind: ElementKind, text: &str, markdown: String) -> Vec<Piece> {
        if text.is_empty() { Vec::new() } else { vec![self.piece(kind, self.whole(text), markdown)] }
    }
}
