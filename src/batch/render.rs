//! A page that was read -> the bytes of its files, or its part of stdout.

use crate::document::{Page, PageHeader, PageStatus, page_json, page_markdown, page_text};
use crate::settings::{Format, OutputSettings};

/// The bytes of a page's file in one format; `None` for HTML, which only whole documents have.
pub fn page_bytes(
    page: &Page,
    header: &PageHeader,
    format: Format,
    output: &OutputSettings,
) -> Option<Vec<u8>> {
    let text = match format {
        Format::Json => page_json(page, header),
        Format::Markdown => page_markdown(page, output),
        Format::Text => page_text(page, output),
        Format::Html => return None,
    };
    Some(text.into_bytes())
}

/// What a page gives to stdout: its JSON on one line; its Markdown after its marker; its text.
pub fn stdout_bytes(
    page: &Page,
    header: &PageHeader,
    format: Format,
    output: &OutputSettings,
) -> Option<Vec<u8>> {
    let text = match format {
        // Line ends stand only between the parts: strings have theirs escaped.
        Format::Json => page_json(page, header).lines().map(str::trim_start).collect::<String>() + "\n",
        Format::Markdown => marked(page, page_markdown(page, output), output.page_markers),
        Format::Text => page_text(page, output),
        Format::Html => return None,
    };
    Some(text.into_bytes())
}

/// A failed page says so itself.
fn marked(page: &Page, markdown: String, marker: bool) -> String {
    if !marker || page.status == PageStatus::Failed {
        return markdown;
    }
    let gap = if markdown.is_empty() { "" } else { "\n" };
    format!("<!-- page {} -->\n{gap}{markdown}", page.number)
}
