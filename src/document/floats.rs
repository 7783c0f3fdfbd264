//! Table and figure regions -> elements.

use crate::document::assemble::Assembly;
use crate::document::composed::Composed;
use crate::document::escape::{BlockStart, inline};
use crate::document::grid::{Grid, GridCell};
use crate::document::lists::is_mark_paragraph;
use crate::document::paragraphs::paragraphs;
use crate::document::text::{Lines, lines_of};
use crate::document::{ElementKind, model_text};
use crate::page::{Cell, Markup, Region, Word};

impl Assembly<'_> {
    pub(crate) fn table(&mut self, region: &Region, cells: &[Cell]) {
        let lines: Lines = cells.iter().flat_map(|cell| lines_of(&cell.words)).collect();
        if let Some(grid) = self.grid(cells) {
            self.put_grid(region, &grid, &lines);
        }
        // Words that no cell took.
        for paragraph in paragraphs(lines_of(&region.words)) {
            self.plain(region, ElementKind::Paragraph, &paragraph);
        }
    }

    fn grid(&self, cells: &[Cell]) -> Option<Grid> {
        Grid::new(cells.iter().map(|cell| GridCell::new(cell, self.cell_text(&cell.words))).collect())
    }

    /// A cell's text: one line, or one for each list item in it.
    fn cell_text(&self, words: &[Word]) -> Composed {
        let parts = self.parts(words);
        let items = parts.iter().filter(|p| is_mark_paragraph(&p.text)).count() > 1;
        let mut out = Composed::default();
        for part in &parts {
            if items && !out.is_empty() {
                out.append("\n", part);
            } else {
                self.writer.join(&mut out, part);
            }
        }
        out
    }

    fn parts(&self, words: &[Word]) -> Vec<Composed> {
        paragraphs(lines_of(words)).iter().map(|p| self.writer.unwrapped(p)).collect()
    }

    pub(crate) fn put_grid(&mut self, region: &Region, grid: &Grid, lines: &Lines) {
        let links = self.context.links;
        let before = self.elements.len();
        self.put(region, ElementKind::Table, grid.text(), grid.markdown(links), lines);
        if let Some(element) = self.elements.get_mut(before) {
            element.html = Some(grid.html(links));
            element.bbox = region.bbox.scaled(1.0 / self.context.scale);
        }
    }

    /// A figure, with its data if a model read them, and with the text found in it after it.
    pub(crate) fn figure(&mut self, region: &Region) {
        self.figures += 1;
        let links = self.context.links;
        let name = format!("page-{:04}-figure-{}.png", self.number, self.figures);
        let image = self.context.figures.then_some(name);
        let mut markdown: Vec<String> = image.iter().map(|name| format!("![]({name})")).collect();
        let grid = region.cells.as_ref().and_then(|cells| self.grid(cells));
        markdown.extend(grid.iter().map(|grid| grid.markdown(links)));
        let mut text = grid.as_ref().map_or_else(Composed::default, Grid::text);
        let mut parts = self.parts(&region.words);
        parts.extend(region.markup.iter().flat_map(|markup| written_text(markup, region.score)));
        for part in parts.iter().filter(|p| !p.is_empty()) {
            markdown.push(inline(part, links, BlockStart::At(0)));
            text.append(if text.is_empty() { "" } else { "\n" }, part);
        }
        let lines = lines_of(&region.words);
        let mut element = self.element(region, region.kind.into(), text, markdown.join("\n\n"), &lines);
        element.html = grid.map(|grid| grid.html(links));
        element.image = image;
        element.bbox = region.bbox.scaled(1.0 / self.context.scale);
        self.elements.push(element);
    }
}

/// Paragraphs of what a model wrote about a figure.
fn written_text(markup: &Markup, confidence: f32) -> Vec<Composed> {
    match markup {
        Markup::Html(html) => model_text::parts(&model_text::html(html), confidence),
        Markup::Text(text) | Markup::Markdown(text) | Markup::Latex(text) => {
            model_text::parts(text, confidence)
        }
    }
}
