//! The run: its settings, its threads, and how they start and end.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Scope;
use std::time::Duration;

use super::coordinator::Coordinator;
use super::engine::Engine;
use super::journal::{FileRecord, Journal, PageRecord, Record, Summary};
use super::opener::open_files;
use super::output::OutputError;
use super::pages::PageRanges;
use super::plan::PlannedFile;
use super::resume::Kept;
use super::stats::RunStats;
use super::worker::read_pages;
use crate::document::PageHeader;
use crate::document::json::ModelId;
use crate::page::{DocumentInfo, PageEvidence};
use crate::reader::ReaderError;
use crate::settings::{Destination, Existing, OutputSettings};

/// How a run goes about its files.
#[derive(Clone, Debug)]
pub struct BatchSettings {
    /// Workers, at least 1.
    pub jobs: usize,
    pub pages: PageRanges,
    /// To stdout: exactly one format.
    pub output: OutputSettings,
    pub destination: Destination,
    pub existing: Existing,
    /// Stop at the first page or file that fails.
    pub fail_fast: bool,
    /// A file of which more pages are asked for fails.
    pub max_pages: u32,
    /// Pages of a file that are not begun when this long has passed since it was opened fail.
    pub file_timeout: Option<Duration>,
    /// See [`super::identity::PageSettings`].
    pub settings_sha256: String,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    #[error(transparent)]
    Reader(#[from] ReaderError),
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Nobody reads stdout any more.
    #[error("stdout was closed")]
    BrokenPipe,
}

/// What a run works on.
#[derive(Debug)]
pub struct Run<'a, E> {
    pub engine: &'a E,
    pub files: &'a [PlannedFile],
    /// Inputs that cannot be looked into: they count as failed files. See [`super::inputs::Inputs`].
    pub unreadable: &'a [(PathBuf, io::Error)],
    pub settings: &'a BatchSettings,
    /// Number of the signal that asks the run to stop; 0 = none.
    pub signal: &'a AtomicUsize,
    /// The open journal, and what it says of earlier runs; `None` to stdout.
    pub journal: Option<Journal>,
    pub finished: HashMap<String, FileRecord>,
}

/// How a run went.
#[derive(Debug, Default)]
pub struct Report {
    pub summary: Summary,
    pub stats: RunStats,
    pub error: Option<BatchError>,
}

/// A page on its way to a worker.
pub(super) struct Job {
    pub(super) file: Arc<FileContext>,
    pub(super) evidence: PageEvidence,
    /// What it took to render.
    pub(super) seconds: f64,
}

/// What all threads know of an open file.
#[derive(Debug)]
pub(super) struct FileContext {
    pub(super) index: usize,
    pub(super) name: String,
    /// Relative to the output root.
    pub(super) output: String,
    /// `None` to stdout.
    pub(super) folder: Option<PathBuf>,
    pub(super) header: PageHeader,
}

/// What threads tell the coordinator. Never holds pixels.
pub(super) enum Message {
    Ready(Option<ModelId>),
    ReaderFailed(ReaderError),
    Warning { file: String, page: Option<u32>, message: String },
    FileOpened { file: Arc<FileContext>, info: DocumentInfo, selected: Vec<u32>, kept: Kept, wanted: usize },
    FileFailed { name: String, reason: String },
    PageDone { index: usize, record: PageRecord, bytes: Option<Vec<u8>> },
    Output(OutputError),
    OpenerGone,
    WorkerGone,
}

/// The sending half of the coordinator's queue.
#[derive(Clone)]
pub(super) struct Outbox(Sender<Message>);

impl Outbox {
    pub(super) fn send(&self, message: Message) {
        // The coordinator outlives every thread; a panic on its side ends the program.
        let _ = self.0.send(message);
    }
}

/// What the threads share.
pub(super) struct Shared<'a, E> {
    pub(super) engine: &'a E,
    pub(super) files: &'a [PlannedFile],
    pub(super) settings: &'a BatchSettings,
    pub(super) finished: HashMap<String, FileRecord>,
    pub(super) signal: &'a AtomicUsize,
    pub(super) halt: AtomicBool,
    next_file: AtomicUsize,
    model: OnceLock<Option<ModelId>>,
}

impl<E> Shared<'_, E> {
    /// Nothing new is to be begun.
    pub(super) fn is_stopping(&self) -> bool {
        self.halt.load(Ordering::SeqCst) || self.signal.load(Ordering::SeqCst) != 0
    }

    pub(super) fn next_file(&self) -> Option<(usize, &PlannedFile)> {
        let index = self.next_file.fetch_add(1, Ordering::SeqCst);
        self.files.get(index).map(|file| (index, file))
    }

    /// Known before the first file is opened.
    pub(super) fn model_id(&self) -> Option<&ModelId> {
        self.model.get().and_then(Option::as_ref)
    }
}

/// Workers that one renderer keeps busy: a page takes it a small part of what reading the page takes.
const WORKERS_PER_OPENER: usize = 4;

/// Pages that wait for a worker. With one opener at most `jobs + 2` rasters exist: one a worker (more where a reader holds several pages),
/// one waiting, one being sent.
const WAITING_PAGES: usize = 1;

/// Converts the files. `observe` hears of everything that happens, on this thread; converted pages go to `stdout` if the
/// settings say so.
pub fn run<E: Engine>(run: Run<'_, E>, stdout: &mut dyn Write, observe: &mut dyn FnMut(&Record)) -> Report {
    let shared = Shared {
        engine: run.engine,
        files: run.files,
        settings: run.settings,
        finished: run.finished,
        signal: run.signal,
        halt: AtomicBool::new(false),
        next_file: AtomicUsize::new(0),
        model: OnceLock::new(),
    };
    let mut coordinator = Coordinator::new(&shared, run.journal, stdout, observe);
    coordinator.begin(run.unreadable);
    if !shared.files.is_empty() && !shared.is_stopping() {
        std::thread::scope(|scope| coordinator.collect(scope));
    }
    coordinator.end()
}

/// The threads of a run, as the coordinator sees them.
struct Crew {
    outbox: Outbox,
    /// Given up as soon as a worker leaves, so that an opener that waits for a free place notices.
    jobs: Option<Arc<Mutex<Receiver<Job>>>>,
    workers: usize,
    threads: usize,
}

impl<'a, E: Engine> Coordinator<'a, E> {
    /// Starts the first worker, the openers once it is ready (resuming needs the model's identity), the other workers once
    /// there are pages for them, and takes in messages until all threads are gone.
    fn collect<'scope, 'env>(&mut self, scope: &'scope Scope<'scope, 'env>)
    where
        'a: 'scope,
    {
        let (sender, messages) = channel();
        let (job_sender, job_receiver) = sync_channel(WAITING_PAGES);
        let mut job_sender = Some(job_sender);
        let mut crew = Crew {
            outbox: Outbox(sender),
            jobs: Some(Arc::new(Mutex::new(job_receiver))),
            workers: 0,
            threads: 0,
        };
        self.start_workers(scope, &mut crew, 1);
        while crew.threads > 0 {
            let Ok(message) = messages.recv() else { return };
            match message {
                Message::Ready(model) => {
                    if let Some(jobs) = job_sender.take() {
                        // The first to be ready settles it; all workers load the same pack.
                        let _ = self.shared.model.set(model);
                        self.start_openers(scope, &mut crew, &jobs);
                    }
                }
                Message::OpenerGone => crew.threads -= 1,
                Message::WorkerGone => {
                    crew.threads -= 1;
                    crew.jobs = None;
                }
                message => self.take_in(message),
            }
            let workers = self.wanted.min(self.shared.settings.jobs);
            self.start_workers(scope, &mut crew, workers);
        }
    }

    fn start_workers<'scope, 'env>(&self, scope: &'scope Scope<'scope, 'env>, crew: &mut Crew, workers: usize)
    where
        'a: 'scope,
    {
        let Some(jobs) = &crew.jobs else { return };
        while crew.workers < workers && !self.shared.is_stopping() {
            let (shared, jobs, outbox) = (self.shared, Arc::clone(jobs), crew.outbox.clone());
            scope.spawn(move || {
                read_pages(shared, &jobs, &outbox);
                drop(jobs);
                outbox.send(Message::WorkerGone);
            });
            crew.workers += 1;
            crew.threads += 1;
        }
    }

    fn start_openers<'scope, 'env>(
        &self,
        scope: &'scope Scope<'scope, 'env>,
        crew: &mut Crew,
        jobs: &SyncSender<Job>,
    ) where
        'a: 'scope,
    {
        let openers = (self.shared.settings.jobs / WORKERS_PER_OPENER).clamp(1, self.shared.files.len());
        for _ in 0..openers {
            let (shared, jobs, outbox) = (self.shared, jobs.clone(), crew.outbox.clone());
            scope.spawn(move || {
                open_files(shared, &jobs, &outbox);
                outbox.send(Message::OpenerGone);
            });
            crew.threads += 1;
        }
    }
}
