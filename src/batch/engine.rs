//! What the runner asks of the rest of the program, as traits, so that it can be tested without PDFs and networks.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::document::json::ModelId;
use crate::page::{DocumentInfo, PageEvidence};
use crate::pdf::{Document, OpenError, OpenOptions, PageError};
use crate::reader::{PageOutput, Reader, ReaderError, ReaderSettings, TakenPage};

/// Opens files and makes readers. Shared by all threads of a run; what it makes stays on one thread.
pub trait Engine: Sync {
    type Source: PageSource;
    type Reader: PageReader;

    fn open(&self, path: &Path) -> Result<Self::Source, OpenError>;
    fn reader(&self) -> Result<Self::Reader, ReaderError>;
}

/// An open file.
pub trait PageSource {
    fn info(&self) -> &DocumentInfo;
    /// Evidence of page `number`, 1-based.
    fn page(&mut self, number: u32) -> Result<PageEvidence, PageError>;
}

/// Reads pages, one at a time or several together.
pub trait PageReader {
    fn model_id(&self) -> Option<ModelId>;
    /// See [`Reader::read_pages`].
    fn read_pages(
        &mut self,
        next: &mut dyn FnMut(bool) -> Option<TakenPage>,
        done: &mut dyn FnMut(usize, PageOutput),
    );
}

/// pdfium and the networks.
#[derive(Debug)]
pub struct NativeEngine {
    pub open: OpenOptions,
    pub reader: ReaderSettings,
    /// Readers made so far: the next one's number.
    pub readers: AtomicUsize,
}

impl Engine for NativeEngine {
    type Source = Document;
    type Reader = Reader;

    fn open(&self, path: &Path) -> Result<Document, OpenError> {
        Document::open(path, &self.open)
    }

    fn reader(&self) -> Result<Reader, ReaderError> {
        Reader::new(&self.reader, self.readers.fetch_add(1, Ordering::Relaxed))
    }
}

impl PageSource for Document {
    fn info(&self) -> &DocumentInfo {
        Document::info(self)
    }

    fn page(&mut self, number: u32) -> Result<PageEvidence, PageError> {
        Document::page(self, number)
    }
}

impl PageReader for Reader {
    fn model_id(&self) -> Option<ModelId> {
        Reader::model_id(self).map(|(name, sha256)| ModelId { name, sha256 })
    }

    fn read_pages(
        &mut self,
        next: &mut dyn FnMut(bool) -> Option<TakenPage>,
        done: &mut dyn FnMut(usize, PageOutput),
    ) {
        Reader::read_pages(self, next, done);
    }
}
