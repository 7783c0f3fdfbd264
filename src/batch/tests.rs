//! The runner on fakes: files are small texts that say how many pages they have and which of them go wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::engine::{Engine, PageReader, PageSource};
use super::inputs::{InputArgument, expand};
use super::journal::{Journal, Record, finished_files};
use super::pages::PageRanges;
use super::plan::{PlannedFile, plan};
use super::runner::{BatchError, BatchSettings, Report, Run, run};
use crate::document::json::ModelId;
use crate::document::{Element, ElementKind, Page, PageStatus};
use crate::geometry::Rect;
use crate::graphs::runtime::RuntimeError;
use crate::page::{DocumentInfo, PageEvidence, Rules};
use crate::pdf::{OpenError, PageError};
use crate::raster::Raster;
use crate::reader::{PageOutput, PageStats, ReaderError, TakenPage};
use crate::settings::{Destination, Existing, Format, OutputSettings};

/// `pages 5 broken 2 partial 3 panic 4 slow 1`: words in pairs. `locked` cannot be opened.
#[derive(Clone, Debug, Default)]
struct Script(Vec<(String, u32)>);

impl Script {
    fn of(text: &str) -> Script {
        let words: Vec<&str> = text.split_whitespace().collect();
        Script(words.chunks_exact(2).map(|pair| (pair[0].into(), pair[1].parse().unwrap())).collect())
    }

    fn says(&self, what: &str, page: u32) -> bool {
        self.0.iter().any(|(word, number)| word == what && *number == page)
    }
}

#[derive(Default)]
struct FakeEngine {
    /// Pages rendered and not yet read: now, and at most.
    in_flight: Arc<AtomicUsize>,
    most_in_flight: Arc<AtomicUsize>,
    read: Arc<Mutex<Vec<u32>>>,
    readers: AtomicUsize,
    model: Option<ModelId>,
    /// Pages that a reader holds before it reads them.
    held: usize,
    no_reader: bool,
    /// Raises this signal once so many pages are read.
    signal_after: Option<usize>,
    signal: Arc<AtomicUsize>,
}

struct FakeSource {
    script: Script,
    info: DocumentInfo,
    in_flight: Arc<AtomicUsize>,
    most_in_flight: Arc<AtomicUsize>,
}

struct FakeReader {
    in_flight: Arc<AtomicUsize>,
    read: Arc<Mutex<Vec<u32>>>,
    model: Option<ModelId>,
    held: usize,
    signal_after: Option<usize>,
    signal: Arc<AtomicUsize>,
}

impl Engine for FakeEngine {
    type Source = FakeSource;
    type Reader = FakeReader;

    fn open(&self, path: &Path) -> Result<FakeSource, OpenError> {
        let text = fs::read_to_string(path)?;
        if text.starts_with("locked") {
            return Err(OpenError::PasswordNeeded);
        }
        let script = Script::of(&text);
        let page_count = script.0[0].1;
        Ok(FakeSource {
            script,
            info: DocumentInfo { page_count, ..DocumentInfo::default() },
            in_flight: Arc::clone(&self.in_flight),
            most_in_flight: Arc::clone(&self.most_in_flight),
        })
    }

    fn reader(&self) -> Result<FakeReader, ReaderError> {
        if self.no_reader {
            return Err(ReaderError::Runtime(RuntimeError::Missing {
                name: "no such graph".into(),
                looked: Vec::new(),
            }));
        }
        self.readers.fetch_add(1, Ordering::SeqCst);
        Ok(FakeReader {
            in_flight: Arc::clone(&self.in_flight),
            read: Arc::clone(&self.read),
            model: self.model.clone(),
            held: self.held,
            signal_after: self.signal_after,
            signal: Arc::clone(&self.signal),
        })
    }
}

impl PageSource for FakeSource {
    fn info(&self) -> &DocumentInfo {
        &self.info
    }

    fn page(&mut self, number: u32) -> Result<PageEvidence, PageError> {
        if self.script.says("broken", number) {
            return Err(PageError::Died("signal 6".into()));
        }
        let now = self.in_flight.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_in_flight.fetch_max(now, Ordering::SeqCst);
        let flags =
            ["partial", "panic", "slow", "figure"].map(|what| u8::from(self.script.says(what, number)));
        let mut raster = Raster::filled(4, 4, [0; 3]);
        raster.rgb[..4].copy_from_slice(&flags);
        Ok(PageEvidence {
            number,
            raster,
            scale: 1.0,
            turn: 0,
            words: Vec::new(),
            glyphs: Vec::new(),
            rules: Rules::default(),
            links: Vec::new(),
            picture_share: 0.0,
            hidden_share: 0.0,
            is_picture: false,
        })
    }
}

impl PageReader for FakeReader {
    fn model_id(&self) -> Option<ModelId> {
        self.model.clone()
    }

    fn read_pages(
        &mut self,
        next: &mut dyn FnMut(bool) -> Option<TakenPage>,
        done: &mut dyn FnMut(usize, PageOutput),
    ) {
        while let Some(first) = next(true) {
            let mut pages = vec![first];
            while pages.len() < self.held
                && let Some(page) = next(false)
            {
                pages.push(page);
            }
            for TakenPage { ticket, evidence, .. } in pages {
                done(ticket, self.read(&evidence));
            }
        }
    }
}

impl FakeReader {
    fn read(&self, evidence: &PageEvidence) -> PageOutput {
        let flags = &evidence.raster.rgb;
        // Later pages of a slow one overtake it.
        std::thread::sleep(Duration::from_millis(if flags[2] == 1 { 40 } else { 1 }));
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        assert!(flags[1] == 0, "page {} is too much", evidence.number);
        let mut read = self.read.lock().unwrap();
        read.push(evidence.number);
        if self.signal_after.is_some_and(|pages| read.len() >= pages) {
            self.signal.store(2, Ordering::SeqCst);
        }
        page_output(evidence.number, flags[0] == 1, flags[3] == 1)
    }
}

fn page_output(number: u32, partial: bool, figure: bool) -> PageOutput {
    let image = figure.then(|| format!("page-{number:04}-figure-1.png"));
    let element = |kind, text: String| Element {
        id: format!("p{number}e1"),
        kind,
        level: None,
        bbox: Rect { x0: 0.0, y0: 0.1, x1: 3.3, y1: 4.0 },
        markdown: format!("**{text}**"),
        text,
        html: None,
        latex: None,
        lines: Vec::new(),
        stop: None,
        runs: Vec::new(),
        style: None,
        image: image.clone(),
    };
    let page = Page {
        number,
        width: 4.0,
        height: 4.0,
        turn: 0,
        skew_deg: 0.0,
        status: if partial { PageStatus::Partial } else { PageStatus::Ok },
        reason: partial.then(|| "a region ran over its budget".into()),
        text_layer: "none".into(),
        verification: "unverified".into(),
        elements: vec![
            element(ElementKind::Header, "running".into()),
            element(ElementKind::Paragraph, format!("text of page {number}")),
        ],
    };
    let figures = image.into_iter().map(|name| (name, Raster::filled(2, 2, [9; 3]))).collect();
    let seconds = BTreeMap::from([("ocr", 0.25)]);
    PageOutput { page, figures, picture: None, stats: PageStats { seconds, ..PageStats::default() } }
}

/// A folder of inputs, an output folder, and the settings of a run.
struct Bench {
    dir: tempfile::TempDir,
    settings: BatchSettings,
    engine: FakeEngine,
}

struct Outcome {
    report: Report,
    records: Vec<Record>,
    stdout: String,
}

impl Bench {
    fn new(files: &[(&str, &str)]) -> Bench {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join("in").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let settings = BatchSettings {
            max_pages: 1000,
            jobs: 2,
            pages: PageRanges::all(),
            output: OutputSettings::default(),
            destination: Destination::Folder(dir.path().join("out")),
            existing: Existing::Refuse,
            fail_fast: false,
            file_timeout: None,
            settings_sha256: "settings".into(),
        };
        Bench { dir, settings, engine: FakeEngine::default() }
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("out")
    }

    fn planned(&self) -> Vec<PlannedFile> {
        let inputs =
            expand(&[InputArgument::Path(self.dir.path().join("in"))], &mut std::io::empty()).unwrap();
        plan(inputs.files).unwrap()
    }

    fn run(&self) -> Outcome {
        self.run_into(Vec::new()).0
    }

    fn run_into<W: std::io::Write>(&self, mut stdout: W) -> (Outcome, W) {
        let files = self.planned();
        let (journal, finished) = match &self.settings.destination {
            Destination::Stdout => (None, Default::default()),
            Destination::Folder(root) => {
                fs::create_dir_all(root).unwrap();
                (Some(Journal::open(root, None).unwrap()), finished_files(root))
            }
        };
        let mut records = Vec::new();
        let run_of = Run {
            engine: &self.engine,
            files: &files,
            unreadable: &[],
            settings: &self.settings,
            signal: &self.engine.signal,
            journal,
            finished,
        };
        let report = run(run_of, &mut stdout, &mut |record| records.push(record.clone()));
        (Outcome { report, records, stdout: String::new() }, stdout)
    }

    fn run_to_stdout(&self) -> Outcome {
        let (mut outcome, bytes) = self.run_into(Vec::new());
        outcome.stdout = String::from_utf8(bytes).unwrap();
        outcome
    }

    fn read_pages(&self) -> Vec<u32> {
        let mut pages = std::mem::take(&mut *self.engine.read.lock().unwrap());
        pages.sort_unstable();
        pages
    }

    /// Every output file but the journal, by its path below the output folder.
    fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        fn walk(root: &Path, folder: &Path, tree: &mut BTreeMap<String, Vec<u8>>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(root, &path, tree);
                } else if path.file_name().unwrap() != "run.jsonl" {
                    let name = path.strip_prefix(root).unwrap().display().to_string();
                    tree.insert(name, fs::read(&path).unwrap());
                }
            }
        }
        let mut tree = BTreeMap::new();
        walk(&self.out(), &self.out(), &mut tree);
        tree
    }
}

#[test]
fn every_file_gets_its_pages_and_its_document_in_page_order() {
    let bench = Bench::new(&[("a.pdf", "pages 3 slow 1 figure 2"), ("sub/b.pdf", "pages 1")]);
    let outcome = bench.run();
    assert!(outcome.report.error.is_none());
    assert_eq!((outcome.report.summary.files, outcome.report.summary.ok), (2, 4));
    let tree = bench.tree();
    let names: Vec<&str> = tree.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "a/document.json",
            "a/document.md",
            "a/page-0001.json",
            "a/page-0001.md",
            "a/page-0002-figure-1.png",
            "a/page-0002.json",
            "a/page-0002.md",
            "a/page-0003.json",
            "a/page-0003.md",
            "sub/b/document.json",
            "sub/b/document.md",
            "sub/b/page-0001.json",
            "sub/b/page-0001.md",
        ]
    );
    let document = String::from_utf8(tree["a/document.md"].clone()).unwrap();
    let order: Vec<usize> = (1..=3).map(|n| document.find(&format!("text of page {n}")).unwrap()).collect();
    assert!(order.is_sorted(), "{document}");
    let journal = fs::read_to_string(bench.out().join("run.jsonl")).unwrap();
    let events: Vec<serde_json::Value> = journal.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(journal.lines().all(|line| line.starts_with("{\"event\":")));
    assert_eq!(events.iter().filter(|e| e["event"] == "page").count(), 4);
    assert_eq!(events.last().unwrap()["event"], "run_finished");
    assert_eq!(events.iter().find(|e| e["event"] == "page").unwrap()["seconds"]["ocr"], 0.25);
}

#[test]
fn one_job_and_many_write_the_same_bytes() {
    let files = [("a.pdf", "pages 9 slow 2 broken 4 partial 5 panic 6 figure 7"), ("b.pdf", "pages 4")];
    let mut bench = Bench::new(&files);
    bench.settings.jobs = 1;
    bench.run();
    let alone = bench.tree();
    assert_eq!(alone.len(), 2 * 2 + 13 * 2 + 1);
    let mut many = Bench::new(&files);
    many.settings.jobs = 8;
    many.run();
    assert_eq!(many.tree(), alone);
}

#[test]
fn a_reader_that_dies_with_pages_in_hand_costs_only_those() {
    let mut bench = Bench::new(&[("a.pdf", "pages 30 slow 1 panic 9"), ("b.pdf", "pages 3")]);
    bench.settings.jobs = 1;
    bench.engine.held = 4;
    let outcome = bench.run();
    let summary = &outcome.report.summary;
    assert_eq!(summary.ok + summary.failed, 33, "every page is accounted for");
    assert!((1..=4).contains(&summary.failed), "{}", summary.failed);
    let page: serde_json::Value = serde_json::from_slice(&bench.tree()["a/page-0009.json"]).unwrap();
    assert_eq!(page["page"]["reason"], "internal error: page 9 is too much");
    assert_eq!(bench.read_pages().len(), summary.ok);
}

#[test]
fn failed_pages_and_files_cost_only_themselves() {
    let bench = Bench::new(&[
        ("a.pdf", "pages 5 broken 2 panic 3 partial 4"),
        ("b.pdf", "locked"),
        ("c.pdf", "pages 1"),
    ]);
    let outcome = bench.run();
    let summary = &outcome.report.summary;
    assert_eq!((summary.ok, summary.partial, summary.failed, summary.files_failed), (3, 1, 2, 1));
    assert_eq!(bench.read_pages(), [1, 1, 4, 5]);
    let json = |page: &str| -> serde_json::Value { serde_json::from_slice(&bench.tree()[page]).unwrap() };
    assert_eq!(json("a/page-0002.json")["page"]["status"], "failed");
    assert_eq!(json("a/page-0002.json")["page"]["reason"], "the renderer died on this page (signal 6)");
    assert_eq!(json("a/page-0003.json")["page"]["reason"], "internal error: page 3 is too much");
    assert_eq!(json("a/page-0004.json")["page"]["status"], "partial");
    let failed = outcome.records.iter().find_map(|record| match record {
        Record::FileFailed { file, reason } => Some((file.clone(), reason.clone())),
        _ => None,
    });
    let (file, reason) = failed.unwrap();
    assert!(file.ends_with("b.pdf") && reason.contains("qpdf --decrypt"), "{file}: {reason}");
    assert!(!bench.out().join("b").exists());
}

#[test]
fn rasters_in_flight_are_bounded_however_many_pages_there_are() {
    for jobs in [1, 3] {
        let mut bench = Bench::new(&[("a.pdf", "pages 200")]);
        bench.settings.jobs = jobs;
        let outcome = bench.run();
        assert_eq!(outcome.report.summary.ok, 200);
        let most = bench.engine.most_in_flight.load(Ordering::SeqCst);
        assert!(most <= jobs + 2, "{most} rasters with {jobs} jobs");
    }
}

#[test]
fn no_more_readers_start_than_there_are_pages() {
    let mut bench = Bench::new(&[("a.pdf", "pages 3")]);
    bench.settings.jobs = 16;
    bench.run();
    assert!(bench.engine.readers.load(Ordering::SeqCst) <= 3);
}

#[test]
fn a_page_range_gives_the_same_page_files_as_a_full_run() {
    let mut bench = Bench::new(&[("a.pdf", "pages 6 figure 5")]);
    bench.run();
    let full = bench.tree();
    fs::remove_dir_all(bench.out()).unwrap();
    bench.settings.pages = "2,5-".parse().unwrap();
    bench.run();
    let part = bench.tree();
    let pages: BTreeSet<&str> = part.keys().filter(|n| n.contains("page")).map(|n| &n[2..11]).collect();
    assert_eq!(pages.into_iter().collect::<Vec<_>>(), ["page-0002", "page-0005", "page-0006"]);
    assert!(part.iter().filter(|(name, _)| name.contains("page")).all(|(name, bytes)| full[name] == *bytes));
    bench.settings.pages = "7-".parse().unwrap();
    bench.settings.existing = Existing::Overwrite;
    assert_eq!(bench.run().report.summary.files_failed, 1);
}

#[test]
fn a_killed_run_goes_on_where_it_stopped() {
    let files = [("a.pdf", "pages 8 figure 2 broken 7"), ("b.pdf", "pages 2")];
    let mut bench = Bench::new(&files);
    let whole = {
        let bench = Bench::new(&files);
        bench.run();
        bench.tree()
    };
    bench.engine.signal_after = Some(4);
    let stopped = bench.run();
    assert_eq!(stopped.report.summary.signal, Some(2));
    assert!(!bench.out().join("a/document.md").exists());
    let read_first = bench.read_pages().len();
    assert!((4..=6).contains(&read_first), "{read_first}");

    // What kill -9 leaves: a part file, a page without its JSON, a torn journal line; and a figure that somebody removed.
    let a = bench.out().join("a");
    fs::write(a.join(".docparse-x.part"), b"half").unwrap();
    fs::remove_file(a.join("page-0001.json")).unwrap();
    fs::remove_file(a.join("page-0002-figure-1.png")).unwrap();
    let journal = bench.out().join("run.jsonl");
    let torn = fs::read(&journal).unwrap();
    fs::write(&journal, &torn[..torn.len() - 5]).unwrap();

    bench.engine.signal_after = None;
    bench.engine.signal.store(0, Ordering::SeqCst);
    bench.settings.existing = Existing::Resume;
    let resumed = bench.run();
    assert_eq!(bench.tree(), whole);
    let summary = &resumed.report.summary;
    assert_eq!((summary.pages, summary.kept), (10, read_first - 2));
    assert_eq!(bench.read_pages().len(), 9 - (read_first - 2));
    // Once more: only the failed page is tried again.
    let again = bench.run();
    assert_eq!((again.report.summary.kept, again.report.summary.failed), (9, 1));
    assert_eq!(bench.read_pages(), [0u32; 0]);
    assert_eq!(bench.tree(), whole);
}

#[test]
fn other_settings_input_or_model_are_no_reason_to_keep_a_page() {
    let mut bench = Bench::new(&[("a.pdf", "pages 2")]);
    bench.run();
    bench.settings.existing = Existing::Resume;
    assert_eq!(bench.run().report.summary.kept, 2);
    bench.settings.settings_sha256 = "others".into();
    assert_eq!(bench.run().report.summary.kept, 0);
    bench.engine.model = Some(ModelId { name: "nano".into(), sha256: "00".into() });
    assert_eq!(bench.run().report.summary.kept, 0);
    fs::write(bench.dir.path().join("in/a.pdf"), "pages 2 slow 9").unwrap();
    assert_eq!(bench.run().report.summary.kept, 0);
    assert_eq!(bench.run().report.summary.kept, 2);
}

#[test]
fn without_json_the_page_json_goes_and_resuming_still_works() {
    let mut bench = Bench::new(&[("a.pdf", "pages 3 partial 2")]);
    bench.settings.output.formats = vec![Format::Markdown, Format::Text];
    bench.run();
    let tree = bench.tree();
    assert!(tree.contains_key("a/page-0001.txt") && tree.contains_key("a/document.txt"));
    assert!(tree.keys().all(|name| !name.ends_with(".json")), "{:?}", tree.keys());
    bench.settings.existing = Existing::Resume;
    let kept = bench.run().report.summary;
    assert_eq!((kept.kept, kept.partial, bench.tree() == tree), (3, 1, true));
    fs::remove_file(bench.out().join("a/page-0002.md")).unwrap();
    assert_eq!(bench.run().report.summary.kept, 0);
    assert_eq!(bench.tree(), tree);
}

#[test]
fn overwriting_leaves_nothing_of_the_earlier_run() {
    let mut bench = Bench::new(&[("a.pdf", "pages 3 figure 3")]);
    bench.run();
    fs::write(bench.out().join("a/notes.md"), b"mine").unwrap();
    fs::write(bench.dir.path().join("in/a.pdf"), "pages 1").unwrap();
    bench.settings.existing = Existing::Overwrite;
    bench.run();
    let names: Vec<String> = bench.tree().into_keys().collect();
    assert_eq!(
        names,
        ["a/document.json", "a/document.md", "a/notes.md", "a/page-0001.json", "a/page-0001.md"]
    );
}

#[test]
fn stdout_gets_pages_in_order_and_nothing_else() {
    let mut bench = Bench::new(&[("a.pdf", "pages 4 slow 1 broken 3")]);
    bench.settings.destination = Destination::Stdout;
    bench.settings.output = OutputSettings { formats: vec![Format::Markdown], ..OutputSettings::default() };
    let markdown = bench.run_to_stdout().stdout;
    assert_eq!(
        markdown,
        "<!-- page 1 -->\n\n**text of page 1**\n\n<!-- page 2 -->\n\n**text of page 2**\n\n\
         <!-- page 3 failed: the renderer died on this page (signal 6) -->\n\n<!-- page 4 -->\n\n**text of page 4**\n"
    );
    bench.settings.output.formats = vec![Format::Json];
    let lines = bench.run_to_stdout().stdout;
    let numbers: Vec<u64> = lines
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["page"]["number"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert!(!bench.out().exists());
}

#[derive(Debug)]
struct ClosedPipe;

impl std::io::Write for ClosedPipe {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_leaves_stdout_ends_the_run() {
    let mut bench = Bench::new(&[("a.pdf", "pages 300")]);
    bench.settings.destination = Destination::Stdout;
    let (outcome, _) = bench.run_into(ClosedPipe);
    assert!(matches!(outcome.report.error, Some(BatchError::BrokenPipe)));
    assert!(outcome.records.iter().all(|record| !matches!(record, Record::RunFinished(_))));
    assert!(bench.read_pages().len() < 300);
}

#[test]
fn fail_fast_stops_and_leaves_no_document() {
    let mut bench = Bench::new(&[("a.pdf", "pages 300 broken 2"), ("b.pdf", "pages 1")]);
    bench.settings.fail_fast = true;
    let outcome = bench.run();
    assert_eq!(outcome.report.summary.failed, 1);
    assert!(bench.read_pages().len() < 20);
    assert!(!bench.out().join("a/document.md").exists() && !bench.out().join("b").exists());
}

#[test]
fn a_reader_that_cannot_start_ends_the_run_before_any_file_is_opened() {
    let mut bench = Bench::new(&[("a.pdf", "pages 3")]);
    bench.engine.no_reader = true;
    let outcome = bench.run();
    assert!(matches!(outcome.report.error, Some(BatchError::Reader(_))));
    assert!(bench.tree().is_empty());
}

#[test]
fn output_that_cannot_be_written_stops_the_run() {
    let bench = Bench::new(&[("a.pdf", "pages 40")]);
    fs::create_dir_all(bench.out()).unwrap();
    fs::write(bench.out().join("a"), b"a file where the folder should be").unwrap();
    let outcome = bench.run();
    assert!(matches!(outcome.report.error, Some(BatchError::Output(_))));
    assert!(bench.read_pages().is_empty());
}

#[test]
fn a_file_of_too_many_pages_fails_unless_few_are_asked_for() {
    let mut bench = Bench::new(&[("long.pdf", "pages 30"), ("short.pdf", "pages 2")]);
    bench.settings.max_pages = 10;
    let outcome = bench.run();
    assert_eq!((outcome.report.summary.pages, outcome.report.summary.files_failed), (2, 1));
    let reasons: Vec<&str> = outcome
        .records
        .iter()
        .filter_map(|r| if let Record::FileFailed { reason, .. } = r { Some(reason.as_str()) } else { None })
        .collect();
    assert_eq!(reasons, ["30 pages, more than 10 (`--max-pages`)"]);
    bench.settings.pages = "21-30".parse().unwrap();
    bench.settings.existing = Existing::Overwrite;
    assert_eq!(bench.run().report.summary.pages, 10);
}

#[test]
fn pages_that_a_file_has_no_time_for_fail_and_the_next_file_has_its_own() {
    let mut bench = Bench::new(&[("a.pdf", "pages 40 slow 1 slow 2 slow 3 slow 4"), ("b.pdf", "pages 1")]);
    (bench.settings.jobs, bench.settings.file_timeout) = (1, Some(Duration::from_millis(60)));
    let outcome = bench.run();
    let summary = &outcome.report.summary;
    assert_eq!((summary.pages, summary.files_failed), (41, 0));
    assert!(summary.ok >= 2 && summary.failed >= 30, "{summary:?}");
    assert!(bench.tree().contains_key("b/page-0001.md"));
    let journal = fs::read_to_string(bench.out().join("run.jsonl")).unwrap();
    assert!(journal.contains("`--file-timeout`"));
}
