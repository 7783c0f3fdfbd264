//! The files of the whole document, built once its last page is done by streaming the page files.

use std::io::Write;
use std::path::Path;

use serde_json::json;

use super::identity::Provenance;
use super::output::{AtomicFile, OutputError, document_name, page_name};
use crate::page::DocumentInfo;
use crate::settings::{Format, OutputSettings};

/// Version of the document JSON's form.
pub const DOCUMENT_SCHEMA: &str = "docparse.document/1";

/// A document whose pages are all written.
#[derive(Debug)]
pub struct FinishedPages<'a> {
    pub folder: &'a Path,
    /// Ascending.
    pub pages: &'a [u32],
    pub info: &'a DocumentInfo,
    pub provenance: &'a Provenance,
    /// Every page came out `ok` or `partial`.
    pub complete: bool,
}

/// Writes `document.*` in the formats asked for. If JSON is not one of them and no page failed, the page JSON has served its
/// purpose and is removed, unless an earlier run was asked for it.
pub fn write_document(finished: &FinishedPages<'_>, output: &OutputSettings) -> Result<(), OutputError> {
    for &format in &output.formats {
        let path = finished.folder.join(document_name(format));
        let mut file = AtomicFile::create(&path)?;
        match format {
            Format::Json => write_json(finished, &mut file)?,
            Format::Markdown | Format::Text => write_text(finished, output, format, &mut file)?,
        }
        file.commit()?;
    }
    let json_is_wanted =
        output.formats.contains(&Format::Json) || finished.folder.join(document_name(Format::Json)).exists();
    if finished.complete && !json_is_wanted {
        for &page in finished.pages {
            let path = finished.folder.join(page_name(page, Format::Json));
            std::fs::remove_file(&path).map_err(OutputError::at(&path))?;
        }
    }
    Ok(())
}

fn write_text(
    finished: &FinishedPages<'_>,
    output: &OutputSettings,
    format: Format,
    file: &mut AtomicFile,
) -> Result<(), OutputError> {
    for (at, &page) in finished.pages.iter().enumerate() {
        let path = finished.folder.join(page_name(page, format));
        let bytes = std::fs::read(&path).map_err(OutputError::at(&path))?;
        page_block(file, page, &bytes, at == 0, format == Format::Markdown && output.page_markers)
            .map_err(OutputError::at(&path))?;
    }
    Ok(())
}

/// One page of a longer Markdown or text: an empty line before all but the first, the page marker if wanted.
pub(super) fn page_block(
    out: &mut dyn Write,
    page: u32,
    bytes: &[u8],
    first: bool,
    marker: bool,
) -> std::io::Result<()> {
    if !first && (marker || !bytes.is_empty()) {
        out.write_all(b"\n")?;
    }
    if marker {
        writeln!(out, "<!-- page {page} -->")?;
        if !bytes.is_empty() {
            out.write_all(b"\n")?;
        }
    }
    out.write_all(bytes)
}

fn write_json(finished: &FinishedPages<'_>, file: &mut AtomicFile) -> Result<(), OutputError> {
    let mut head = json!({ "schema": DOCUMENT_SCHEMA });
    for part in [json!(finished.provenance), json!(finished.info)] {
        if let (Some(head), serde_json::Value::Object(part)) = (head.as_object_mut(), part) {
            head.extend(part);
        }
    }
    let head = head.to_string();
    let at = finished.folder.join(document_name(Format::Json));
    let open = head.strip_suffix('}').expect("an object ends in a brace");
    write!(file, "{open},\"pages\":[").map_err(OutputError::at(&at))?;
    for (index, &page) in finished.pages.iter().enumerate() {
        let path = finished.folder.join(page_name(page, Format::Json));
        let bytes = std::fs::read(&path).map_err(OutputError::at(&path))?;
        let comma: &[u8] = if index > 0 { b",\n" } else { b"\n" };
        file.write_all(comma)
            .and_then(|()| file.write_all(bytes.trim_ascii()))
            .map_err(OutputError::at(&at))?;
    }
    file.write_all(b"\n]}\n").map_err(OutputError::at(&at))
}
