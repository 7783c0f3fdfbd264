//! `run.jsonl` in the output folder: what happened, one JSON object a line, appended as it happens. Shards of a run that write
//! to one folder have a journal each, `run-2-of-8.jsonl`: appending is not safe on every network file system.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, TryLockError};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::output::OutputError;
use super::shard::Shard;
use crate::document::{PageHeader, PageStatus};

/// Name of the journal in the output folder.
pub const JOURNAL_NAME: &str = "run.jsonl";

/// How long a journal that another process holds is waited for: children of a run that was just killed still hold it until they have
/// noticed, or have become the program that they start.
const LOCK_WAIT: Duration = Duration::from_millis(1500);

/// Is this the name of a journal?
pub fn is_journal(name: &str) -> bool {
    let Some(middle) = name.strip_prefix("run").and_then(|rest| rest.strip_suffix(".jsonl")) else {
        return false;
    };
    let numbers = middle.strip_prefix('-').and_then(|rest| rest.split_once("-of-"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    middle.is_empty() || numbers.is_some_and(|(index, count)| is_number(index) && is_number(count))
}

/// The journals in `folder`, the one last written to at the end; none if there is no such folder.
pub fn journals(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_journal) && entry.file_type()?.is_file() {
            found.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Something that happened in a run. The journal and the JSON log have the same form.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Record {
    RunStarted {
        docparse: String,
        settings_sha256: String,
        jobs: usize,
        files: usize,
        /// When, in seconds since 1970.
        unix_seconds: u64,
    },
    FileOpened {
        file: String,
        /// Folder of its output, relative to the journal's.
        output: String,
        /// Pages of the file that are asked for.
        pages: usize,
        /// Of these, pages that an earlier run had finished.
        kept: usize,
    },
    Page(PageRecord),
    File(FileRecord),
    FileFailed {
        file: String,
        reason: String,
    },
    Warning {
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        page: Option<u32>,
        message: String,
    },
    RunFinished(Summary),
}

/// One page that was read, or could not be.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PageRecord {
    pub file: String,
    pub output: String,
    pub page: u32,
    pub status: PageStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// CPU seconds by stage; of `raster` (in another process) and `write`, seconds on the clock.
    pub seconds: BTreeMap<&'static str, f64>,
    pub counts: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    pub header: PageHeader,
}

/// One file of which every page that was asked for is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileRecord {
    pub file: String,
    pub output: String,
    /// Page numbers, as `--pages` takes them.
    pub pages: String,
    pub partial: Vec<u32>,
    pub failed: Vec<u32>,
    #[serde(flatten)]
    pub header: PageHeader,
}

/// A run in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub files: usize,
    /// Pages that this run read; with `kept` and `failed` ones.
    pub pages: usize,
    pub ok: usize,
    pub partial: usize,
    pub failed: usize,
    /// Pages of an earlier run that were kept; they count in `ok` and `partial` too.
    pub kept: usize,
    pub files_failed: usize,
    pub seconds: f64,
    /// The signal that stopped the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// The open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

impl Journal {
    /// Opens the journal in `folder` for appending. A line that a killed run left unfinished is closed first. One that another
    /// run has open for longer than [`LOCK_WAIT`] is refused, since the two would remove each other's files; a file system without
    /// locks cannot tell.
    pub fn open(folder: &Path, shard: Option<Shard>) -> Result<Journal, OutputError> {
        let path = folder.join(shard.map_or_else(|| JOURNAL_NAME.to_owned(), Shard::journal_name));
        let open = || -> io::Result<File> {
            let mut file = File::options().create(true).append(true).read(true).open(&path)?;
            if !locked_within(&file, LOCK_WAIT) {
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, "another run is writing here"));
            }
            if file.seek(SeekFrom::End(0))? > 0 {
                file.seek(SeekFrom::End(-1))?;
                let mut last = [0];
                file.read_exact(&mut last)?;
                if last != *b"\n" {
                    file.write_all(b"\n")?;
                }
            }
            Ok(file)
        };
        let file = open().map_err(OutputError::at(&path))?;
        Ok(Journal { file, path })
    }

    /// Appends one line with one write.
    pub fn append(&mut self, record: &Record) -> Result<(), OutputError> {
        let mut line = serde_json::to_vec(record).expect("records are plain data");
        line.push(b'\n');
        self.file.write_all(&line).map_err(OutputError::at(&self.path))
    }
}

/// Takes the lock on `file`, trying for `wait`; `false` if another process held it all the while.
fn locked_within(file: &File, wait: Duration) -> bool {
    let start = Instant::now();
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        if start.elapsed() > wait {
            return false;
        }
        thread::sleep(LOCK_WAIT / 50);
    }
    true
}

/// The last record of each finished file in the journals in `folder`, by output folder. Lines that cannot be read are passed over.
pub fn finished_files(folder: &Path) -> HashMap<String, FileRecord> {
    #[derive(Deserialize)]
    struct Line {
        event: String,
        #[serde(flatten)]
        record: FileRecord,
    }
    journals(folder)
        .unwrap_or_default()
        .iter()
        .filter_map(|path| File::open(path).ok())
        .flat_map(|file| io::BufReader::new(file).split(b'\n').map_while(Result::ok))
        .filter_map(|line| serde_json::from_slice::<Line>(&line).ok())
        .filter(|line| line.event == "file")
        .map(|line| (line.record.output.clone(), line.record))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_record(pages: &str) -> FileRecord {
        FileRecord {
            file: "a.pdf".into(),
            output: "a".into(),
            pages: pages.into(),
            partial: vec![2],
            failed: Vec::new(),
            header: PageHeader::new(None, "s", "i", "a.pdf"),
        }
    }

    #[test]
    fn two_runs_do_not_write_to_one_folder_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = Journal::open(dir.path(), None).unwrap();
        let error = Journal::open(dir.path(), None).unwrap_err();
        assert!(error.to_string().contains("another run"), "{error}");
        Journal::open(dir.path(), Some("2/3".parse().unwrap())).unwrap();
        drop(first);
        Journal::open(dir.path(), None).unwrap();
    }

    #[test]
    fn a_journal_that_is_let_go_soon_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let first = Journal::open(dir.path(), None).unwrap();
        let holder = thread::spawn(move || {
            thread::sleep(LOCK_WAIT / 5);
            drop(first);
        });
        Journal::open(dir.path(), None).unwrap();
        holder.join().unwrap();
    }

    #[test]
    fn a_torn_line_is_closed_and_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        Journal::open(dir.path(), None).unwrap().append(&Record::File(file_record("1-3"))).unwrap();
        let path = dir.path().join(JOURNAL_NAME);
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_slice(b"{\"event\":\"fi");
        std::fs::write(&path, torn).unwrap();
        Journal::open(dir.path(), None).unwrap().append(&Record::File(file_record("1-4"))).unwrap();
        assert_eq!(finished_files(dir.path())["a"], file_record("1-4"));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
    }
}
