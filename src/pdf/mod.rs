//! PDF files and pictures -> page evidence. (being built)

pub mod child;

use std::path::Path;
use std::time::Duration;

use crate::page::{DocumentInfo, PageEvidence};
use crate::settings::RasterSettings;

/// How files are opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    pub raster: RasterSettings,
    pub password: Option<String>,
    /// A page that takes longer to render is given up.
    pub page_timeout: Duration,
    /// The docparse executable whose hidden subcommand rasterises (`std::env::current_exe()` outside tests).
    pub program: std::path::PathBuf,
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
    #[error("rendering took longer than {0:?}")]
    Timeout(Duration),
}

/// An open file. Dropping it ends its child process.
#[derive(Debug)]
pub struct Document {
    info: DocumentInfo,
}

impl Document {
    /// Opens a PDF or a picture (PNG, JPEG, multi-page TIFF), told apart by content.
    pub fn open(_path: &Path, _options: &OpenOptions) -> Result<Document, OpenError> {
        Err(OpenError::Format("being built".into()))
    }

    pub fn info(&self) -> &DocumentInfo {
        &self.info
    }

    /// Evidence of the page `number` (1-based, at most `info().page_count`).
    pub fn page(&mut self, _number: u32) -> Result<PageEvidence, PageError> {
        Err(PageError::Render("being built".into()))
    }
}
