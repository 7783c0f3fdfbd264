//! What became of the files of an output folder: its journals and the page files themselves, put together.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::Value;

use super::journal::journals;
use super::names;
use super::output::{OutputError, extension, page_name};
use super::pages::PageRanges;
use crate::document::{PageStatus, read_page};
use crate::settings::Format;

/// How far a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    Done,
    /// Done, but some of its pages came out only in part.
    Partial,
    /// It, or a page of it, failed.
    Failed,
    /// It was begun and not finished.
    Unfinished,
}

/// What is known of one file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileStatus {
    /// As the run named it.
    pub file: String,
    /// Its folder below the output folder; `None` for a file that could not be opened.
    pub output: Option<String>,
    pub state: FileState,
    /// Pages that were asked for; `None` for a file that could not be opened.
    pub pages: Option<usize>,
    /// Pages that came out whole.
    pub ok: usize,
    /// Page -> why it is partial or failed.
    pub partial: BTreeMap<u32, String>,
    pub failed: BTreeMap<u32, String>,
    /// Pages that were written and whose files are gone.
    pub missing: Vec<u32>,
    /// Why the whole file failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The last run of one journal.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunState {
    pub journal: String,
    /// Files that it was given, and files of these that it got to.
    pub files: usize,
    pub files_begun: usize,
    /// Pages that it read, and seconds on the clock that it took; up to now if no end is noted.
    pub pages_read: usize,
    pub seconds: f64,
    /// It noted its end: false while it runs, and after a kill.
    pub ended: bool,
    /// The signal that stopped it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i64>,
}

impl RunState {
    /// `None` before the first page.
    pub fn pages_per_second(&self) -> Option<f64> {
        (self.pages_read > 0 && self.seconds > 0.0).then(|| self.pages_read as f64 / self.seconds)
    }
}

/// What became of the files of an output folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// One for each journal: several where shards write to one folder.
    pub runs: Vec<RunState>,
    /// By name.
    pub files: Vec<FileStatus>,
}

impl Status {
    /// Reads the journals in `root`; `None` if there is none.
    pub fn read(root: &Path) -> Result<Option<Status>, OutputError> {
        let journals = journals(root).map_err(OutputError::at(root))?;
        if journals.is_empty() {
            return Ok(None);
        }
        let mut fold = Fold::default();
        for path in &journals {
            fold.journal(path).map_err(OutputError::at(path))?;
        }
        Ok(Some(fold.finish(root)))
    }

    /// Files that the last runs were given and did not get to.
    pub fn files_not_begun(&self) -> usize {
        self.runs.iter().map(|run| run.files.saturating_sub(run.files_begun)).sum()
    }

    pub fn count(&self, state: FileState) -> usize {
        self.files.iter().filter(|file| file.state == state).count()
    }
}

impl FileStatus {
    /// Pages that were asked for and that no run has finished.
    pub fn pages_left(&self) -> usize {
        let seen = self.ok + self.partial.len() + self.failed.len();
        self.pages.unwrap_or(0).saturating_sub(seen) + self.missing.len()
    }
}

/// A file while journals are read.
#[derive(Default)]
struct Known {
    file: String,
    pages: usize,
    statuses: BTreeMap<u32, (PageStatus, String)>,
    finished: bool,
}

#[derive(Default)]
struct Fold {
    runs: Vec<RunState>,
    /// By output folder.
    known: BTreeMap<String, Known>,
    /// By name.
    failed: BTreeMap<String, String>,
}

impl Fold {
    /// Lines that cannot be read are passed over.
    fn journal(&mut self, path: &Path) -> io::Result<()> {
        let file = File::open(path)?;
        let written = file.metadata()?.modified().unwrap_or_else(|_| SystemTime::now());
        let journal = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut run = RunState { journal, ..RunState::default() };
        let mut started = None;
        let mut begun: HashSet<String> = HashSet::new();
        for line in io::BufReader::new(file).split(b'\n') {
            let Ok(value) = serde_json::from_slice::<Value>(&line?) else { continue };
            let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
            match value["event"].as_str() {
                Some("run_started") => {
                    run = RunState {
                        journal: run.journal,
                        files: count(&value["files"]),
                        ..RunState::default()
                    };
                    started = value["unix_seconds"].as_f64();
                    begun.clear();
                }
                Some("file_opened") => {
                    begun.insert(text("file"));
                    self.opened(
                        &text("file"),
                        &text("output"),
                        count(&value["pages"]),
                        count(&value["kept"]),
                    );
                }
                Some("page") => {
                    run.pages_read += 1;
                    self.page(&value);
                }
                Some("file") => self.finished(&value),
                Some("file_failed") => {
                    begun.insert(text("file"));
                    self.failed.insert(text("file"), text("reason"));
                }
                Some("run_finished") => {
                    run.ended = true;
                    run.seconds = value["seconds"].as_f64().unwrap_or(0.0);
                    run.signal = value["signal"].as_i64();
                }
                _ => {}
            }
        }
        run.files_begun = begun.len();
        if let (false, Some(started)) = (run.ended, started) {
            let last = written.duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
            run.seconds = (last - started).max(0.0);
        }
        self.runs.push(run);
        Ok(())
    }

    fn opened(&mut self, file: &str, output: &str, pages: usize, kept: usize) {
        self.failed.remove(file);
        let known = self.known.entry(output.to_owned()).or_default();
        file.clone_into(&mut known.file);
        (known.pages, known.finished) = (pages, false);
        if kept == 0 {
            known.statuses.clear();
        }
    }

    fn page(&mut self, value: &Value) {
        let Some(known) = value["output"].as_str().and_then(|output| self.known.get_mut(output)) else {
            return;
        };
        let (Some(page), Some(status)) = (page_number(&value["page"]), status(&value["status"])) else {
            return;
        };
        let reason = value["reason"].as_str().unwrap_or_default().to_owned();
        known.statuses.insert(page, (status, reason));
    }

    /// The line of a finished file settles its pages; only the reasons come from theirs.
    fn finished(&mut self, value: &Value) {
        let Some(known) = value["output"].as_str().and_then(|output| self.known.get_mut(output)) else {
            return;
        };
        let Some(Ok(pages)) = value["pages"].as_str().map(str::parse::<PageRanges>) else { return };
        let listed = |key: &str| -> HashSet<u32> {
            value[key].as_array().into_iter().flatten().filter_map(page_number).collect()
        };
        let (partial, failed) = (listed("partial"), listed("failed"));
        let before = std::mem::take(&mut known.statuses);
        for page in pages.select(pages.last().unwrap_or(0)) {
            let status = match page {
                page if failed.contains(&page) => PageStatus::Failed,
                page if partial.contains(&page) => PageStatus::Partial,
                _ => PageStatus::Ok,
            };
            let reason =
                before.get(&page).filter(|(was, _)| *was == status).map(|(_, reason)| reason.clone());
            known.statuses.insert(page, (status, reason.unwrap_or_default()));
        }
        known.finished = true;
    }

    fn finish(self, root: &Path) -> Status {
        let Fold { runs, known, failed } = self;
        let mut files: Vec<FileStatus> =
            known.into_iter().map(|(output, known)| settled(root, output, known)).collect();
        // A file that was converted once and cannot be opened any more has both.
        let by_name: HashMap<String, usize> =
            files.iter().enumerate().map(|(at, file)| (file.file.clone(), at)).collect();
        for (file, reason) in failed {
            match by_name.get(&file) {
                Some(&at) => (files[at].state, files[at].reason) = (FileState::Failed, Some(reason)),
                None => files.push(FileStatus {
                    file,
                    output: None,
                    state: FileState::Failed,
                    pages: None,
                    ok: 0,
                    partial: BTreeMap::new(),
                    failed: BTreeMap::new(),
                    missing: Vec::new(),
                    reason: Some(reason),
                }),
            }
        }
        files.sort_by(|a, b| a.file.cmp(&b.file));
        Status { runs, files }
    }
}

/// Holds what the journal says against the files that are there.
fn settled(root: &Path, output: String, mut known: Known) -> FileStatus {
    let folder = root.join(names::path(&output));
    if !known.finished {
        // Pages are written before their line is: a killed run may owe one a worker.
        for (page, path) in page_files(&folder) {
            if let (false, Ok((_, read))) = (known.statuses.contains_key(&page), read_page(&path)) {
                known.statuses.insert(page, (read.status, read.reason.unwrap_or_default()));
            }
        }
    }
    let names = names(&folder);
    let is_there = |page: u32| {
        [Format::Json, Format::Markdown, Format::Text, Format::Html]
            .iter()
            .any(|&format| names.contains(&page_name(page, format)))
    };
    let mut status = FileStatus {
        file: known.file,
        output: Some(output),
        state: FileState::Unfinished,
        pages: Some(known.pages),
        ok: 0,
        partial: BTreeMap::new(),
        failed: BTreeMap::new(),
        missing: Vec::new(),
        reason: None,
    };
    for (page, (state, reason)) in known.statuses {
        match state {
            PageStatus::Failed => drop(status.failed.insert(page, reason)),
            _ if !is_there(page) => status.missing.push(page),
            PageStatus::Partial => drop(status.partial.insert(page, reason)),
            PageStatus::Ok => status.ok += 1,
        }
    }
    status.state = match known.finished && status.missing.is_empty() {
        _ if !status.failed.is_empty() => FileState::Failed,
        false => FileState::Unfinished,
        true if !status.partial.is_empty() => FileState::Partial,
        true => FileState::Done,
    };
    status
}

fn names(folder: &Path) -> HashSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn page_files(folder: &Path) -> Vec<(u32, PathBuf)> {
    let json = format!(".{}", extension(Format::Json));
    let number = |name: &str| name.strip_prefix("page-")?.strip_suffix(&json)?.parse().ok();
    names(folder).into_iter().filter_map(|name| Some((number(&name)?, folder.join(name)))).collect()
}

fn count(value: &Value) -> usize {
    value.as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

fn page_number(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok()
}

fn status(value: &Value) -> Option<PageStatus> {
    serde_json::from_value(value.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::journal::JOURNAL_NAME;

    fn of(lines: &[&str], there: &[&str]) -> Status {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(JOURNAL_NAME), lines.join("\n")).unwrap();
        for name in there {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        Status::read(dir.path()).unwrap().unwrap()
    }

    const STARTED: &str = r#"{"event":"run_started","files":3,"unix_seconds":1}"#;
    const OPENED: &str = r#"{"event":"file_opened","file":"a.pdf","output":"a","pages":3,"kept":0}"#;

    #[test]
    fn a_folder_without_a_journal_has_no_status() {
        assert_eq!(Status::read(tempfile::tempdir().unwrap().path()).unwrap(), None);
    }

    #[test]
    fn a_killed_run_leaves_files_to_do() {
        let page = r#"{"event":"page","output":"a","page":1,"status":"partial","reason":"looped"}"#;
        let status = of(&[STARTED, OPENED, page, "{\"event\":\"pa"], &["a/page-0001.md"]);
        let (run, file) = (&status.runs[0], &status.files[0]);
        assert_eq!((run.files, run.files_begun, run.pages_read, run.ended), (3, 1, 1, false));
        assert!(run.pages_per_second().is_some());
        assert_eq!(status.files_not_begun(), 2);
        assert_eq!((file.state, file.pages_left()), (FileState::Unfinished, 2));
        assert_eq!(file.partial[&1], "looped");
    }

    #[test]
    fn the_line_of_a_file_settles_its_pages() {
        let pages = [1, 2, 3].map(|page| {
            let status = if page == 2 { "failed" } else { "ok" };
            format!(r#"{{"event":"page","output":"a","page":{page},"status":"{status}","reason":"r"}}"#)
        });
        let file = r#"{"event":"file","file":"a.pdf","output":"a","pages":"1-3","partial":[],"failed":[2]}"#;
        let failed = r#"{"event":"file_failed","file":"b.pdf","reason":"encrypted"}"#;
        let finished = r#"{"event":"run_finished","seconds":2.0}"#;
        let lines = [STARTED, OPENED, &pages[0], &pages[1], &pages[2], file, failed, finished];
        let status = of(&lines, &["a/page-0001.json", "a/page-0003.json"]);
        let [a, b] = &status.files[..] else { panic!("{status:?}") };
        assert_eq!((a.state, a.ok, &a.failed[&2]), (FileState::Failed, 2, &"r".to_owned()));
        assert_eq!((b.state, b.reason.as_deref()), (FileState::Failed, Some("encrypted")));
        assert_eq!(status.runs[0].pages_per_second(), Some(1.5));
    }

    #[test]
    fn what_a_later_run_mends_has_not_failed() {
        let failed = r#"{"event":"file_failed","file":"a.pdf","reason":"no such file"}"#;
        let file = r#"{"event":"file","file":"a.pdf","output":"a","pages":"1-3","partial":[],"failed":[]}"#;
        let pages = ["a/page-0001.md", "a/page-0002.md", "a/page-0003.md"];
        let status = of(&[STARTED, failed, STARTED, OPENED, file], &pages);
        assert_eq!((status.files.len(), status.files[0].state), (1, FileState::Done));
        // A page that somebody removed is to be done again.
        let status = of(&[STARTED, OPENED, file], &pages[1..]);
        assert_eq!((status.files[0].state, &status.files[0].missing), (FileState::Unfinished, &vec![1]));
    }
}
