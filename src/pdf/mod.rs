//! PDF files and pictures -> page evidence: raster, words, rules, links.
//!
//! pdfium can abort the process on a damaged file, and a small file can ask for all memory, so all that looks into files runs in
//! a child process (`child`, `pdfium`, `extract`, `picture`: the hidden subcommand `__raster`) within limits (`confine`) that
//! answers over pipes (`protocol`). The parent (`renderer`) keeps one child for a document, and a page on which it dies or hangs
//! costs only that page.
//!
//! ```text
//! parent   Document -> renderer -> [pipe] ----.                      text_layer (words) -> PageEvidence
//! child                            child -> extract -> pdfium | picture      |
//!                                             '---- [pipe] ------------------'
//! ```

/// The child process.
pub mod child;

/// What child processes may take.
pub(crate) mod confine;

mod accents;
mod dingbats;
mod extract;
mod fields;
mod pdfium;
mod picture;
mod protocol;
mod renderer;
mod resolution;
mod text_layer;
mod tiff_directory;

use std::path::Path;
use std::time::Duration;

use crate::page::{DocumentInfo, PageEvidence};
use crate::settings::{Limits, RasterSettings};
use renderer::Renderer;

/// How files are opened.
#[derive(Clone)]
pub struct OpenOptions {
    pub raster: RasterSettings,
    pub password: Option<String>,
    pub limits: Limits,
    /// The docparse executable whose hidden subcommand rasterises (`std::env::current_exe()` outside tests).
    pub program: std::path::PathBuf,
}

impl std::fmt::Debug for OpenOptions {
    /// Without the password, which must not get into logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenOptions")
            .field("raster", &self.raster)
            .field("password", &self.password.as_ref().map(|_| "..."))
            .field("limits", &self.limits)
            .field("program", &self.program)
            .finish()
    }
}

/// Why a file cannot be opened at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("encrypted: a password is needed (`--password`), or remove it with `qpdf --decrypt`")]
    PasswordNeeded,
    #[error("encrypted: wrong password")]
    PasswordWrong,
    #[error("not a readable PDF or picture: {0}")]
    Format(String),
    #[error("the document has no pages")]
    NoPages,
    #[error("pdfium: {0}")]
    Library(String),
}

/// Why one page could not be read; the document's other pages may be fine.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    #[error("{0}")]
    Render(String),
    #[error("the renderer died on this page ({0})")]
    Died(String),
    #[error("rendering took longer than {0:?} (`--page-timeout`)")]
    Timeout(Duration),
}

/// An open file. Dropping it ends its child process.
#[derive(Debug)]
pub struct Document {
    info: DocumentInfo,
    renderer: Renderer,
}

impl Document {
    /// Opens a PDF or a picture (PNG, JPEG, multi-page TIFF), told apart by content.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Document, OpenError> {
        let (renderer, info) = Renderer::open(path, options)?;
        if info.page_count == 0 {
            return Err(OpenError::NoPages);
        }
        Ok(Document { info, renderer })
    }

    pub fn info(&self) -> &DocumentInfo {
        &self.info
    }

    /// Evidence of the page `number` (1-based, at most `info().page_count`).
    pub fn page(&mut self, number: u32) -> Result<PageEvidence, PageError> {
        if !(1..=self.info.page_count).contains(&number) {
            return Err(PageError::Render(format!("there is no page {number}")));
        }
        self.renderer.page(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_never_show_the_password() {
        let options = OpenOptions {
            raster: RasterSettings::default(),
            password: Some("hunter2".into()),
            limits: Limits::default(),
            program: "docparse".into(),
        };
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
