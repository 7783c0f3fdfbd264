//! What becomes of what the threads report: the journal, stdout in page order, the files of whole documents, the figures of the
//! run.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::engine::Engine;
use super::finish::{FinishedPages, finish_document};
use super::journal::{FileRecord, Journal, PageRecord, Record};
use super::names;
use super::output::OutputError;
use super::pages::PageRanges;
use super::resume::Kept;
use super::runner::{BatchError, FileContext, Message, Report, Shared};
use crate::document::PageStatus;
use crate::page::DocumentInfo;
use crate::settings::Format;

/// Runs on the caller's thread.
pub(super) struct Coordinator<'a, E> {
    pub(super) shared: &'a Shared<'a, E>,
    observe: &'a mut dyn FnMut(&Record),
    stdout: &'a mut dyn Write,
    journal: Option<Journal>,
    open: HashMap<usize, OpenFile>,
    /// Pages that are to be read in the files opened so far.
    pub(super) wanted: usize,
    begun: Instant,
    report: Report,
}

/// A file some of whose pages are still being read.
struct OpenFile {
    file: Arc<FileContext>,
    info: DocumentInfo,
    selected: Vec<u32>,
    statuses: BTreeMap<u32, PageStatus>,
    document_stands: bool,
    /// To stdout: pages that wait for an earlier one, and how many are written.
    waiting: BTreeMap<u32, Vec<u8>>,
    written: usize,
    /// Something stands on stdout.
    begun: bool,
}

impl<'a, E: Engine> Coordinator<'a, E> {
    pub(super) fn new(
        shared: &'a Shared<'a, E>,
        journal: Option<Journal>,
        stdout: &'a mut dyn Write,
        observe: &'a mut dyn FnMut(&Record),
    ) -> Self {
        Coordinator {
            shared,
            observe,
            stdout,
            journal,
            open: HashMap::new(),
            wanted: 0,
            begun: Instant::now(),
            report: Report::default(),
        }
    }

    pub(super) fn begin(&mut self, unreadable: &[(PathBuf, io::Error)]) {
        let settings = self.shared.settings;
        let files = self.shared.files.len() + unreadable.len();
        self.report.summary.files = files;
        self.tell(&Record::RunStarted {
            docparse: env!("CARGO_PKG_VERSION").to_owned(),
            settings_sha256: settings.settings_sha256.clone(),
            jobs: settings.jobs,
            files,
            unix_seconds: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
        });
        for (path, error) in unreadable {
            self.file_failed(names::text(path), error.to_string());
        }
    }

    pub(super) fn end(mut self) -> Report {
        let signal = self.shared.signal.load(Ordering::SeqCst);
        let summary = &mut self.report.summary;
        summary.signal = (signal != 0).then_some(signal as i32);
        summary.seconds = (self.begun.elapsed().as_secs_f64() * 1e3).round() / 1e3;
        let finished = Record::RunFinished(summary.clone());
        // Who left the pipe does not want to hear of it.
        if !matches!(self.report.error, Some(BatchError::BrokenPipe)) {
            self.tell(&finished);
        }
        self.report
    }

    pub(super) fn take_in(&mut self, message: Message) {
        match message {
            Message::Ready(_) | Message::OpenerGone | Message::WorkerGone => {}
            Message::ReaderFailed(error) => self.fail(error.into()),
            Message::Output(error) => self.fail(error.into()),
            Message::Warning { file, page, message } => {
                self.tell(&Record::Warning { file: Some(file), page, message });
            }
            Message::FileFailed { name, reason } => self.file_failed(name, reason),
            Message::FileOpened { file, info, selected, kept, wanted } => {
                self.file_opened(file, info, selected, kept, wanted);
            }
            Message::PageDone { index, record, bytes } => self.page_done(index, record, bytes),
        }
    }

    fn file_failed(&mut self, file: String, reason: String) {
        self.report.summary.files_failed += 1;
        self.tell(&Record::FileFailed { file, reason });
        self.stop_if_fail_fast();
    }

    fn file_opened(
        &mut self,
        file: Arc<FileContext>,
        info: DocumentInfo,
        selected: Vec<u32>,
        kept: Kept,
        wanted: usize,
    ) {
        self.wanted += wanted;
        self.tell(&Record::FileOpened {
            file: file.name.clone(),
            output: file.output.clone(),
            pages: selected.len(),
            kept: kept.pages.len(),
        });
        let index = file.index;
        self.report.summary.kept += kept.pages.len();
        for &status in kept.pages.values() {
            self.count(status);
        }
        let open = OpenFile {
            file,
            info,
            selected,
            statuses: kept.pages,
            document_stands: kept.document,
            waiting: BTreeMap::new(),
            written: 0,
            begun: false,
        };
        self.open.insert(index, open);
        self.finish_if_done(index);
    }

    fn page_done(&mut self, index: usize, record: PageRecord, bytes: Option<Vec<u8>>) {
        let Some(open) = self.open.get_mut(&index) else { return };
        open.statuses.insert(record.page, record.status);
        if let Some(bytes) = bytes {
            open.waiting.insert(record.page, bytes);
        }
        self.count(record.status);
        self.report.stats.add(&record);
        let failed = record.status == PageStatus::Failed;
        self.tell(&Record::Page(record));
        if let Err(error) = self.write_waiting(index) {
            self.fail(error);
        }
        self.finish_if_done(index);
        if failed {
            self.stop_if_fail_fast();
        }
    }

    fn count(&mut self, status: PageStatus) {
        let summary = &mut self.report.summary;
        summary.pages += 1;
        match status {
            PageStatus::Ok => summary.ok += 1,
            PageStatus::Partial => summary.partial += 1,
            PageStatus::Failed => summary.failed += 1,
        }
    }

    /// Writes to stdout what is next in page order.
    fn write_waiting(&mut self, index: usize) -> Result<(), BatchError> {
        let Some(open) = self.open.get_mut(&index) else { return Ok(()) };
        let lines = self.shared.settings.output.formats.first() == Some(&Format::Json);
        let mut write = || -> io::Result<()> {
            while let Some(page) = open.selected.get(open.written)
                && let Some(bytes) = open.waiting.remove(page)
            {
                if open.begun && !lines && !bytes.is_empty() {
                    self.stdout.write_all(b"\n")?;
                }
                self.stdout.write_all(&bytes)?;
                open.begun |= !bytes.is_empty();
                open.written += 1;
            }
            self.stdout.flush()
        };
        write().map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => BatchError::BrokenPipe,
            _ => OutputError { path: PathBuf::from("stdout"), source: error }.into(),
        })
    }

    fn finish_if_done(&mut self, index: usize) {
        if self.open.get(&index).is_none_or(|open| open.statuses.len() < open.selected.len()) {
            return;
        }
        let Some(open) = self.open.remove(&index) else { return };
        let with = |wanted: PageStatus| -> Vec<u32> {
            open.statuses.iter().filter(|(_, status)| **status == wanted).map(|(page, _)| *page).collect()
        };
        let (partial, failed) = (with(PageStatus::Partial), with(PageStatus::Failed));
        if let (Some(folder), false) = (&open.file.folder, open.document_stands) {
            let finished = FinishedPages {
                folder,
                pages: &open.selected,
                info: &open.info,
                header: &open.file.header,
                complete: failed.is_empty(),
            };
            if let Err(error) = finish_document(&finished, &self.shared.settings.output) {
                return self.fail(error.into());
            }
        }
        self.tell(&Record::File(FileRecord {
            file: open.file.name.clone(),
            output: open.file.output.clone(),
            pages: PageRanges::of(&open.selected).to_string(),
            partial,
            failed,
            header: open.file.header.clone(),
        }));
    }

    fn stop_if_fail_fast(&mut self) {
        if self.shared.settings.fail_fast {
            self.shared.halt.store(true, Ordering::SeqCst);
        }
    }

    /// Stops the run; the first cause counts.
    fn fail(&mut self, error: BatchError) {
        self.shared.halt.store(true, Ordering::SeqCst);
        self.report.error.get_or_insert(error);
    }

    fn tell(&mut self, record: &Record) {
        (self.observe)(record);
        if let Some(Err(error)) = self.journal.as_mut().map(|journal| journal.append(record)) {
            self.journal = None;
            self.fail(error.into());
        }
    }
}
