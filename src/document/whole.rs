//! Page files -> `document.md`, `document.json`, `document.txt`. The files are read twice, one page at a time: once for what
//! only the whole document tells (heading levels, lines that repeat at the edge of its pages), once to write.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use crate::document::assemble::{heading_of, set_level};
use crate::document::flow::{Flow, Item, PageStart};
use crate::document::headings::{Heading, levels};
use crate::document::json::{
    DOCUMENT_SCHEMA, DocumentError, PageHeader, compact, head, page_fields, read_page,
};
use crate::document::markdown::{MarkdownWriter, TextWriter};
use crate::document::running::{EdgeKey, RunningLines, edge_key};
use crate::document::{DocumentElement, Page};
use crate::page::DocumentInfo;
use crate::settings::OutputSettings;

/// Where the document's forms go; a form without a place is not written.
#[derive(Default)]
pub struct DocumentOutputs<'a> {
    pub markdown: Option<&'a mut dyn Write>,
    pub json: Option<&'a mut dyn Write>,
    pub text: Option<&'a mut dyn Write>,
}

/// Writes a document from its page files, which stand in page order.
pub fn write_document(
    pages: &[PathBuf],
    info: &DocumentInfo,
    header: &PageHeader,
    settings: &OutputSettings,
    mut outputs: DocumentOutputs,
) -> Result<(), DocumentError> {
    if let Some(json) = outputs.json.as_deref_mut() {
        json.write_all(json_head(info, header).as_bytes())?;
    }
    let survey = survey(pages, outputs.json.as_deref_mut())?;
    let mut sinks = Sinks::new(outputs, settings);
    let mut flow = Flow::default();
    let mut headings = survey.levels.iter().copied();
    for path in pages {
        let (_, mut page) = read_page(path)?;
        survey.running.mark(&mut page);
        flow.push(Item::Page(PageStart::new(&page)), &mut |item| sinks.item(&item))?;
        for mut element in page.elements {
            if heading_of(&element).is_some()
                && let Some(level) = headings.next()
            {
                set_level(&mut element, level);
            }
            let element = Box::new(DocumentElement::new(page.number, element));
            flow.push(Item::Element(element), &mut |item| sinks.item(&item))?;
        }
    }
    flow.flush(&mut |item| sinks.item(&item))?;
    sinks.finish()
}

/// What the first reading finds out.
struct Survey {
    running: RunningLines,
    /// Levels of the headings that are no running lines, in order.
    levels: Vec<u8>,
}

/// Reads all pages for what only the whole tells; writes their entries into the JSON.
fn survey(pages: &[PathBuf], mut json: Option<&mut (dyn Write + '_)>) -> Result<Survey, DocumentError> {
    let mut counts: HashMap<EdgeKey, u32> = HashMap::new();
    let mut headings: Vec<(Heading, Option<EdgeKey>)> = Vec::new();
    for (at, path) in pages.iter().enumerate() {
        let (_, page) = read_page(path)?;
        let mut keys: Vec<EdgeKey> = page.elements.iter().filter_map(|e| edge_key(e, &page)).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            *counts.entry(key).or_default() += 1;
        }
        headings.extend(page.elements.iter().filter_map(|e| Some((heading_of(e)?, edge_key(e, &page)))));
        if let Some(json) = json.as_deref_mut() {
            json.write_all(json_page(&page, at == 0).as_bytes())?;
        }
    }
    let running = RunningLines::new(&counts, pages.len());
    let kept: Vec<Heading> = headings
        .into_iter()
        .filter(|(_, key)| key.is_none_or(|key| !running.holds(key)))
        .map(|(h, _)| h)
        .collect();
    Ok(Survey { running, levels: levels(&kept) })
}

fn json_head(info: &DocumentInfo, header: &PageHeader) -> String {
    let mut out = String::from("{\n");
    head(&mut out, DOCUMENT_SCHEMA, header);
    let metadata: serde_json::Map<String, serde_json::Value> =
        info.metadata.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    out.push_str(&format!("  \"page_count\": {},\n", info.page_count));
    out.push_str(&format!("  \"metadata\": {},\n", compact(&metadata)));
    out.push_str(&format!("  \"bookmarks\": {},\n  \"pages\": [", compact(&info.bookmarks)));
    out
}

fn json_page(page: &Page, first: bool) -> String {
    let fields: Vec<String> =
        page_fields(page).iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    format!("{}\n    {{{}}}", if first { "" } else { "," }, fields.join(","))
}

/// The document's forms while they are written.
struct Sinks<'a> {
    markdown: Option<MarkdownWriter<&'a mut dyn Write>>,
    text: Option<TextWriter<&'a mut dyn Write>>,
    json: Option<&'a mut dyn Write>,
    page_markers: bool,
    elements: usize,
}

impl<'a> Sinks<'a> {
    fn new(outputs: DocumentOutputs<'a>, settings: &OutputSettings) -> Self {
        Sinks {
            markdown: outputs.markdown.map(|out| MarkdownWriter::new(out, settings.running_matter)),
            text: outputs.text.map(|out| TextWriter::new(out, settings.running_matter)),
            json: outputs.json,
            page_markers: settings.page_markers,
            elements: 0,
        }
    }

    fn item(&mut self, item: &Item) -> Result<(), DocumentError> {
        let element = match item {
            Item::Page(start) => {
                if let Some(markdown) = &mut self.markdown {
                    markdown.page(start, self.page_markers)?;
                }
                return Ok(());
            }
            Item::Element(element) => element,
        };
        if let Some(markdown) = &mut self.markdown {
            markdown.element(&element.element)?;
        }
        if let Some(text) = &mut self.text {
            text.element(&element.element)?;
        }
        if let Some(json) = &mut self.json {
            let before = if self.elements == 0 { "\n  ],\n  \"elements\": [" } else { "," };
            write!(json, "{before}\n    {}", compact(&**element))?;
        }
        self.elements += 1;
        Ok(())
    }

    fn finish(mut self) -> Result<(), DocumentError> {
        if let Some(markdown) = &mut self.markdown {
            markdown.finish()?;
        }
        if let Some(text) = &mut self.text {
            text.finish()?;
        }
        if let Some(json) = &mut self.json {
            let before = if self.elements == 0 { "\n  ],\n  \"elements\": [" } else { "" };
            write!(json, "{before}\n  ]\n}}\n")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
