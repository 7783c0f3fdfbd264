//! `docparse status`: how far a run came, from its journals and page files.

use std::fmt::Write;

use serde_json::json;

use super::args::{MessageArguments, StatusArguments};
use super::exit::Outcome;
use super::report::{Report, counted, escaped, print};
use crate::batch::status::{FileState, FileStatus, RunState, Status};
use crate::characters::escaped_json;

/// Runs `status`.
pub(super) fn status(arguments: &StatusArguments) -> Outcome {
    let report = Report::new(&MessageArguments::default());
    let status = match Status::read(&arguments.output) {
        Ok(Some(status)) => status,
        Ok(None) => {
            let message =
                format!("`{}`: no `run.jsonl`: no run has written there", arguments.output.display());
            report.error(&message, &[]);
            return Outcome::BadArguments;
        }
        Err(error) => {
            report.error(&error.to_string(), &[]);
            return Outcome::Output;
        }
    };
    let text = if arguments.json { object(&status) } else { text(&status) };
    match print(&text) {
        Outcome::Done => outcome(&status),
        broken => broken,
    }
}

/// As the exit code of a run: what failed or is left counts before what is incomplete.
fn outcome(status: &Status) -> Outcome {
    let (failed, unfinished) = (status.count(FileState::Failed), status.count(FileState::Unfinished));
    if failed + unfinished + status.files_not_begun() > 0 {
        Outcome::Failed
    } else if status.count(FileState::Partial) > 0 {
        Outcome::Partial
    } else {
        Outcome::Done
    }
}

struct Pages {
    ok: usize,
    partial: usize,
    failed: usize,
    left: usize,
}

fn pages(status: &Status) -> Pages {
    let sum = |of: fn(&FileStatus) -> usize| status.files.iter().map(of).sum();
    Pages {
        ok: sum(|file| file.ok),
        partial: sum(|file| file.partial.len()),
        failed: sum(|file| file.failed.len()),
        left: sum(FileStatus::pages_left),
    }
}

fn object(status: &Status) -> String {
    let Pages { ok, partial, failed, left } = pages(status);
    let runs: Vec<_> = status
        .runs
        .iter()
        .map(|run| {
            let mut object = json!(run);
            object["pages_per_second"] =
                json!(run.pages_per_second().map(|rate| (rate * 100.0).round() / 100.0));
            object
        })
        .collect();
    let whole = json!({
        "runs": runs,
        "pages": { "ok": ok, "partial": partial, "failed": failed, "left": left },
        "counts": {
            "done": status.count(FileState::Done),
            "partial": status.count(FileState::Partial),
            "failed": status.count(FileState::Failed),
            "unfinished": status.count(FileState::Unfinished),
            "not_begun": status.files_not_begun(),
        },
        "files": status.files,
    });
    escaped_json(whole.to_string()) + "\n"
}

fn text(status: &Status) -> String {
    let Pages { ok, partial, failed, left } = pages(status);
    let mut out = String::new();
    for run in &status.runs {
        let _ = writeln!(out, "{}", run_line(run));
    }
    let files = status.files.len() + status.files_not_begun();
    let _ = write!(out, "{}: {} done", counted(files, "file"), status.count(FileState::Done));
    let states = [
        (status.count(FileState::Partial), "partial"),
        (status.count(FileState::Failed), "failed"),
        (status.count(FileState::Unfinished), "unfinished"),
        (status.files_not_begun(), "not begun"),
    ];
    push_counts(&mut out, &states);
    let _ = write!(out, "\n{}: {ok} done", counted(ok + partial + failed + left, "page"));
    push_counts(&mut out, &[(partial, "partial"), (failed, "failed"), (left, "to do")]);
    out.push('\n');
    for (state, title) in [
        (FileState::Failed, "failed"),
        (FileState::Unfinished, "unfinished"),
        (FileState::Partial, "partial"),
    ] {
        let mut files = status.files.iter().filter(|file| file.state == state).peekable();
        if files.peek().is_some() {
            let _ = writeln!(out, "\n{title}:");
        }
        files.for_each(|file| push_file(&mut out, file));
    }
    out
}

fn push_counts(out: &mut String, counts: &[(usize, &str)]) {
    for (count, what) in counts {
        if *count > 0 {
            let _ = write!(out, ", {count} {what}");
        }
    }
}

/// `run.jsonl: ended after 41.2 s, 340 pages read, 8.3 pages/s`
fn run_line(run: &RunState) -> String {
    let how = match (run.ended, run.signal) {
        (true, Some(signal)) => format!("stopped by signal {signal}"),
        (true, None) => "ended".to_owned(),
        (false, _) => "no end noted: running, or killed,".to_owned(),
    };
    let mut line = format!(
        "{}: {how} after {:.1} s, {} read",
        run.journal,
        run.seconds,
        counted(run.pages_read, "page")
    );
    if let Some(rate) = run.pages_per_second() {
        let _ = write!(line, ", {rate:.1} pages/s");
    }
    line
}

fn push_file(out: &mut String, file: &FileStatus) {
    let name = escaped(&file.file);
    if let Some(reason) = &file.reason {
        let _ = writeln!(out, "  {name}: {}", escaped(reason));
    }
    for (what, pages) in [("", &file.failed), ("partial: ", &file.partial)] {
        for (page, reason) in pages {
            let reason = if reason.is_empty() { "no reason noted" } else { reason };
            let _ = writeln!(out, "  {name}: page {page}: {what}{}", escaped(reason));
        }
    }
    if file.pages_left() > 0 {
        let _ = writeln!(out, "  {name}: {} to do", counted(file.pages_left(), "page"));
    }
}
