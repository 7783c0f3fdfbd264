//! A document as one page to look at: `document.html` holds everything that it shows, so that it can be mailed and opened from
//! disk. Left the page's picture with the elements' boxes, right their text; colour and underline say where each run came from.
//!
//! Nothing that a document says can act: text and attributes are escaped, tables are rebuilt from their cells, and the content
//! policy names the sums of the one script and the one style sheet, so that no other would run even if it got in.

mod encoding;
mod runs;

use std::io::{self, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::document::{DocumentError, Element, ElementKind, Page, PageHeader, read_page};
use crate::page::{DocumentInfo, Source};
use encoding::{Base64Writer, escaped};
use runs::{marked_table, marked_text};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Writes a document from its page files and the pictures beside them (`page-0001.jpg`), which stand in page order. One page
/// is held at a time; a page without a picture is shown without.
pub fn write_html(
    pages: &[impl AsRef<Path>],
    info: &DocumentInfo,
    header: &PageHeader,
    out: &mut dyn Write,
) -> Result<(), DocumentError> {
    head(info, header, pages.len(), out)?;
    for path in pages {
        let path = path.as_ref();
        let (_, page) = read_page(path)?;
        let picture_path = path.with_extension("jpg");
        let picture = match std::fs::read(&picture_path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(DocumentError::Read { path: picture_path, source }),
        };
        write_page(&page, picture.as_deref(), out)?;
    }
    out.write_all(format!("</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n").as_bytes())?;
    Ok(())
}

fn head(info: &DocumentInfo, header: &PageHeader, pages: usize, out: &mut dyn Write) -> io::Result<()> {
    let title = info.metadata.iter().find(|(key, _)| key == "title").map(|(_, title)| title.as_str());
    let name = escaped(&header.input);
    let shown =
        title.map_or_else(String::new, |title| format!(" <span class=title>{}</span>", escaped(title)));
    let read_by = match &header.model {
        Some(model) => format!("read by {}", escaped(&model.name)),
        None => "drafts, not checked by a model".to_owned(),
    };
    let policy = format!(
        "default-src 'none'; img-src data:; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        policy_sum(STYLE),
        policy_sum(SCRIPT)
    );
    write!(
        out,
        "<!doctype html>\n<html>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"{policy}\">\n\
         <meta name=viewport content=\"width=device-width\">\n<meta name=generator content=\"docparse {}\">\n\
         <title>{name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{name}{shown}</h1>\n<p class=by>{read_by}</p>\n\
         <nav><button id=previous title=\"previous page: left arrow\">\u{25c0}</button> <span id=place>{pages} pages</span> \
         <button id=next title=\"next page: right arrow\">\u{25b6}</button> \
         <span class=keys>keys: \u{2190} \u{2192} pages, Home End, \u{2191} \u{2193} elements</span></nav>\n{}</header>\n<main>\n",
        escaped(&header.docparse),
        legend(),
    )
}

/// What `Content-Security-Policy` calls a text by.
fn policy_sum(text: &str) -> String {
    let mut sum = Vec::new();
    let mut writer = Base64Writer::new(&mut sum);
    writer
        .write_all(&Sha256::digest(text.as_bytes()))
        .and_then(|()| writer.finish())
        .expect("a vector takes all");
    format!("sha256-{}", String::from_utf8_lossy(&sum))
}

fn legend() -> String {
    let mut out = String::from("<p class=legend>");
    for source in Source::ALL {
        out += &format!("<span class=\"{}\">{}</span> ", runs::class(source), runs::name(source));
    }
    out + "<span class=unsure>less sure (below 0.9)</span> <span class=doubtful>doubtful (below 0.7)</span></p>\n"
}

fn write_page(page: &Page, picture: Option<&[u8]>, out: &mut dyn Write) -> io::Result<()> {
    let number = page.number;
    write!(out, "<section id=page-{number} data-page={number}>\n<h2>page {number}</h2>\n")?;
    if let Some(reason) = &page.reason {
        let status = escaped(&format!("{:?}", page.status).to_lowercase());
        writeln!(out, "<p class=reason>{status}: {}</p>", escaped(reason))?;
    }
    out.write_all(b"<div class=sides>\n<div class=picture>")?;
    if page.width > 0.0 && page.height > 0.0 {
        write_picture(page, picture, out)?;
    }
    out.write_all(b"</div>\n<div class=text>\n")?;
    for (at, element) in page.elements.iter().enumerate() {
        write_element(at + 1, element, out)?;
    }
    out.write_all(b"</div>\n</div>\n</section>\n")
}

/// The picture, and over it a box with number and type for each element, in points.
fn write_picture(page: &Page, picture: Option<&[u8]>, out: &mut dyn Write) -> io::Result<()> {
    let (width, height, number) = (page.width, page.height, page.number);
    write!(
        out,
        "<svg viewBox=\"0 0 {width} {height}\" role=img aria-label=\"page {number} with its elements\">\
         <rect class=paper width={width} height={height} />"
    )?;
    if let Some(picture) = picture {
        write!(out, "<image width={width} height={height} href=\"data:image/jpeg;base64,")?;
        let mut base64 = Base64Writer::new(&mut *out);
        base64.write_all(picture)?;
        base64.finish()?;
        out.write_all(b"\" />")?;
    }
    for (at, element) in page.elements.iter().enumerate() {
        let b = element.bbox;
        let (id, kind) = (escaped(&element.id), kind_name(element.kind));
        // A label as high as the smallest print, inside the page where the box touches its top.
        let size = (height / 100.0).max(4.0);
        let above = if b.y0 < size * 1.3 { b.y0 + size } else { b.y0 - size * 0.25 };
        writeln!(
            out,
            "<g class=\"box {kind}\" data-element=\"{id}\"><title>{order} {kind}</title>\
             <rect x={} y={} width={} height={} /><text x={} y={above} font-size={size}>{order} {kind}</text></g>",
            b.x0,
            b.y0,
            b.width().max(0.0),
            b.height().max(0.0),
            b.x0,
            order = at + 1,
        )?;
    }
    out.write_all(b"</svg>")
}

fn write_element(order: usize, element: &Element, out: &mut dyn Write) -> io::Result<()> {
    let (id, kind) = (escaped(&element.id), kind_name(element.kind));
    write!(
        out,
        "<article class={kind} data-element=\"{id}\" tabindex=0 dir=auto><span class=label dir=ltr>{order} {kind}</span>"
    )?;
    let body = match (&element.html, element.kind) {
        (Some(html), ElementKind::Table) => marked_table(html, element),
        (_, ElementKind::Code) => format!("<pre>{}</pre>", marked_text(element)),
        _ if element.text.is_empty() => element
            .latex
            .as_ref()
            .map_or_else(String::new, |latex| format!("<code>{}</code>", escaped(latex))),
        _ => match element.level {
            Some(level) if kind == "heading" => {
                format!("<p class=\"h h{level}\">{}</p>", marked_text(element))
            }
            _ => format!("<p>{}</p>", marked_text(element)),
        },
    };
    out.write_all(body.as_bytes())?;
    out.write_all(b"</article>\n")
}

/// The name that the JSON gives the kind.
fn kind_name(kind: ElementKind) -> &'static str {
    match kind {
        ElementKind::Title => "title",
        ElementKind::Heading => "heading",
        ElementKind::Paragraph => "paragraph",
        ElementKind::ListItem => "list_item",
        ElementKind::Table => "table",
        ElementKind::Formula => "formula",
        ElementKind::Figure => "figure",
        ElementKind::Chart => "chart",
        ElementKind::Caption => "caption",
        ElementKind::Code => "code",
        ElementKind::Footnote => "footnote",
        ElementKind::Reference => "reference",
        ElementKind::Header => "header",
        ElementKind::Footer => "footer",
        ElementKind::PageNumber => "page_number",
        ElementKind::Other => "other",
    }
}

#[cfg(test)]
mod tests;
