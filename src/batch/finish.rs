//! The files of the whole document, built once its last page is done by streaming the page files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::output::{AtomicFile, OutputError, document_name, page_name};
use crate::document::{DocumentError, DocumentOutputs, PageHeader, write_document, write_html};
use crate::page::DocumentInfo;
use crate::settings::{Format, OutputSettings};

/// A document whose pages are all written.
#[derive(Debug)]
pub struct FinishedPages<'a> {
    pub folder: &'a Path,
    /// Ascending.
    pub pages: &'a [u32],
    pub info: &'a DocumentInfo,
    pub header: &'a PageHeader,
    /// Every page came out `ok` or `partial`.
    pub complete: bool,
}

/// Writes `document.*` in the formats asked for. If JSON is not one of them and no page failed, the page JSON has served its
/// purpose and is removed, unless an earlier run was asked for it.
pub fn finish_document(finished: &FinishedPages<'_>, output: &OutputSettings) -> Result<(), OutputError> {
    let page_files: Vec<PathBuf> =
        finished.pages.iter().map(|&page| finished.folder.join(page_name(page, Format::Json))).collect();
    let start = |format: Format| -> Result<Option<AtomicFile>, OutputError> {
        let path = finished.folder.join(document_name(format));
        output.formats.contains(&format).then(|| AtomicFile::create(&path)).transpose()
    };
    let (mut markdown, mut json, mut text) =
        (start(Format::Markdown)?, start(Format::Json)?, start(Format::Text)?);
    let outputs = DocumentOutputs {
        markdown: markdown.as_mut().map(|file| file as &mut dyn Write),
        json: json.as_mut().map(|file| file as &mut dyn Write),
        text: text.as_mut().map(|file| file as &mut dyn Write),
    };
    write_document(&page_files, finished.info, finished.header, output, outputs)
        .map_err(|error| output_error(finished.folder, error))?;
    let mut html = start(Format::Html)?;
    if let Some(html) = &mut html {
        write_html(&page_files, finished.info, finished.header, html)
            .map_err(|error| output_error(finished.folder, error))?;
    }
    for file in [markdown, json, text, html].into_iter().flatten() {
        file.commit()?;
    }
    let json_is_wanted =
        output.formats.contains(&Format::Json) || finished.folder.join(document_name(Format::Json)).exists();
    if finished.complete && !json_is_wanted {
        for path in page_files {
            std::fs::remove_file(&path).map_err(OutputError::at(&path))?;
        }
    }
    Ok(())
}

/// Page files are this run's own: one that cannot be read back is as bad as one that cannot be written.
fn output_error(folder: &Path, error: DocumentError) -> OutputError {
    match error {
        DocumentError::Read { path, source } => OutputError { path, source },
        DocumentError::Write(source) => OutputError { path: folder.to_path_buf(), source },
        other => OutputError { path: folder.to_path_buf(), source: io::Error::other(other) },
    }
}
