//! Everything that is printed: errors, warnings, progress, the summary and logs on stderr; what `models` and `doctor` say on
//! stdout. No other file prints. Names and text from files are escaped before they reach a terminal.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use serde_json::json;

use super::args::{LogFormat, MessageArguments};
use super::exit::Outcome;
use super::log;
use crate::batch::journal::{PageRecord, Record, Summary};
use crate::characters::{acts_on_terminals, escaped_json};
use crate::document::PageStatus;

/// What stderr is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Text { color: bool },
    Json,
}

/// Stderr, shared with the log: a line that is printed does not disturb the progress bar.
#[derive(Clone, Debug)]
pub(super) struct Terminal {
    style: Style,
    bar: Arc<Mutex<Option<ProgressBar>>>,
}

impl Terminal {
    pub(super) fn is_json(&self) -> bool {
        self.style == Style::Json
    }

    /// Prints a line of text that has been escaped where it had to be.
    pub(super) fn line(&self, line: &str) {
        // A closed stderr is no reason to stop converting.
        let print = || {
            let _ = writeln!(io::stderr().lock(), "{line}");
        };
        match self.bar.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    pub(super) fn object(&self, value: &impl serde::Serialize) {
        let line = serde_json::to_string(value).expect("records are plain data");
        self.line(&escaped_json(line));
    }

    pub(super) fn labelled(&self, label: Label, message: &str) {
        let (name, code) = match label {
            Label::Error => ("error", "1;31"),
            Label::Warning => ("warning", "1;33"),
            Label::Hint => ("hint", "1;36"),
        };
        match self.style {
            Style::Text { color: true } => {
                self.line(&format!("\x1b[{code}m{name}:\x1b[0m {}", escaped(message)));
            }
            _ => self.line(&format!("{name}: {}", escaped(message))),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Label {
    Error,
    Warning,
    Hint,
}

/// Messages of one run of the program.
#[derive(Debug)]
pub(super) struct Report {
    terminal: Terminal,
    quiet: bool,
    verbose: bool,
    progress: Option<ProgressDrawTarget>,
}

impl Report {
    /// Decides what is printed, and starts the log.
    pub(super) fn new(arguments: &MessageArguments) -> Report {
        let on_terminal = io::stderr().is_terminal();
        let plain = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let style = match arguments.log_format {
            LogFormat::Json => Style::Json,
            LogFormat::Text => {
                let automatic = on_terminal
                    && !plain("NO_COLOR")
                    && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
                Style::Text { color: arguments.color.resolve(automatic) }
            }
        };
        let automatic =
            on_terminal && !arguments.quiet && arguments.verbose == 0 && matches!(style, Style::Text { .. });
        let target = || match on_terminal {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::term_like_with_hz(Box::new(PlainStderr), 1),
        };
        let progress = arguments.progress.resolve(automatic).then(target);
        let terminal = Terminal { style, bar: Arc::default() };
        log::start(terminal.clone(), arguments);
        Report { terminal, quiet: arguments.quiet, verbose: arguments.verbose > 0, progress }
    }

    /// An error that ends the program, with what can be done about it.
    pub(super) fn error(&self, message: &str, hints: &[String]) {
        if self.terminal.is_json() {
            return self.terminal.object(&json!({ "event": "error", "message": message, "hints": hints }));
        }
        self.terminal.labelled(Label::Error, message);
        if !hints.is_empty() {
            self.terminal.line("");
        }
        for hint in hints {
            self.terminal.labelled(Label::Hint, hint);
        }
    }

    pub(super) fn warning(&self, message: &str) {
        self.record(&Record::Warning { file: None, page: None, message: message.to_owned() });
    }

    /// A line that a command was asked for beside its data.
    pub(super) fn note(&self, message: &str) {
        match self.terminal.is_json() {
            true => self.terminal.object(&json!({ "event": "note", "message": message })),
            false => self.terminal.line(&escaped(message)),
        }
    }

    /// Starts the progress bar if there is to be one.
    pub(super) fn start_progress(&mut self) {
        let Some(target) = self.progress.take() else { return };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} pages  {rate}  {eta} left")
            .expect("the template is well-formed")
            .with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
                let _ = write!(out, "{:.1} pages/s", state.per_sec());
            });
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(500));
        *self.bar() = Some(bar);
    }

    fn bar(&self) -> std::sync::MutexGuard<'_, Option<ProgressBar>> {
        self.terminal.bar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stop_progress(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    /// Something that happened in the run.
    pub(super) fn record(&self, record: &Record) {
        match record {
            Record::FileOpened { pages, kept, .. } => {
                if let Some(bar) = self.bar().as_ref() {
                    bar.inc_length(pages.saturating_sub(*kept) as u64);
                }
            }
            Record::Page(_) => {
                if let Some(bar) = self.bar().as_ref() {
                    bar.inc(1);
                }
            }
            Record::RunFinished(_) => self.stop_progress(),
            _ => {}
        }
        let is_failure = match record {
            Record::FileFailed { .. } => true,
            Record::Page(page) => page.status == PageStatus::Failed,
            _ => false,
        };
        if self.quiet && !is_failure {
            return;
        }
        match self.terminal.is_json() {
            true => self.terminal.object(record),
            false => self.text(record),
        }
    }

    fn text(&self, record: &Record) {
        match record {
            Record::Page(page) if page.status == PageStatus::Failed || self.verbose => {
                self.terminal.line(&escaped(&page_line(page)));
            }
            Record::Page(page) if page.status == PageStatus::Partial => {
                self.terminal.labelled(Label::Warning, &page_line(page));
            }
            Record::FileFailed { file, reason } => self.terminal.line(&escaped(&format!("{file}: {reason}"))),
            Record::Warning { file, page, message } => {
                let mut line = String::new();
                if let Some(file) = file {
                    let _ = write!(line, "{file}: ");
                }
                if let Some(page) = page {
                    let _ = write!(line, "page {page}: ");
                }
                self.terminal.labelled(Label::Warning, &(line + message));
            }
            Record::FileOpened { file, pages, kept, .. } if self.verbose => {
                let kept = if *kept > 0 { format!(", {kept} kept") } else { String::new() };
                self.terminal.line(&escaped(&format!("{file}: {}{kept}", counted(*pages, "page"))));
            }
            Record::RunFinished(summary) => self.terminal.line(&summary_line(summary)),
            _ => {}
        }
    }
}

/// What clap has to say: help and version on stdout, usage errors on stderr.
pub(super) fn usage(error: &clap::Error) -> Outcome {
    // Help into a closed pipe is no failure.
    let _ = error.print();
    if error.use_stderr() { Outcome::BadArguments } else { Outcome::Done }
}

/// Prints what a command was asked for on stdout. A reader that has left is no failure.
pub(super) fn print(text: &str) -> Outcome {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Outcome::Output,
        _ => Outcome::Done,
    }
}

fn page_line(page: &PageRecord) -> String {
    let PageRecord { file, page: number, status, reason, seconds, .. } = page;
    let reason = reason.as_deref();
    match status {
        PageStatus::Failed => format!("{file}: page {number}: {}", reason.unwrap_or("failed")),
        PageStatus::Partial => format!("{file}: page {number}: partial: {}", reason.unwrap_or("incomplete")),
        PageStatus::Ok => format!("{file}: page {number}: ok ({:.2} s)", seconds.values().sum::<f64>()),
    }
}

/// `12 files, 340 pages, 2 failed, 41.2 s`
fn summary_line(summary: &Summary) -> String {
    let mut line = format!("{}, {}", counted(summary.files, "file"), counted(summary.pages, "page"));
    for (count, what) in [(summary.kept, "kept"), (summary.partial, "partial"), (summary.failed, "failed")] {
        if count > 0 {
            let _ = write!(line, ", {count} {what}");
        }
    }
    if summary.files_failed > 0 {
        let _ = write!(line, ", {} failed", counted(summary.files_failed, "file"));
    }
    if summary.signal.is_some() {
        line.push_str(", stopped");
    }
    let _ = write!(line, ", {:.1} s", summary.seconds);
    line
}

pub(super) fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// `text` on one line, with what acts on a terminal written out: `\n`, `\u{1b}`.
pub(super) fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if acts_on_terminals(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
        out
    })
}

/// Stderr that is no terminal, for `--progress always`: a line for each state of the bar.
#[derive(Debug)]
struct PlainStderr;

impl indicatif::TermLike for PlainStderr {
    fn width(&self) -> u16 {
        80
    }
    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
    fn write_line(&self, line: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{}", line.trim_end())
    }
    fn write_str(&self, text: &str) -> io::Result<()> {
        match text.trim_end() {
            "" => Ok(()),
            text => writeln!(io::stderr(), "{text}"),
        }
    }
    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }
    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_written_out() {
        assert_eq!(escaped("a\x1b[31m\nb\u{9b}\u{202e}é"), "a\\u{1b}[31m\\nb\\u{9b}\\u{202e}é");
    }

    #[test]
    fn the_summary_says_what_there_is_to_say() {
        let mut summary = Summary { files: 12, pages: 340, failed: 2, seconds: 41.21, ..Summary::default() };
        assert_eq!(summary_line(&summary), "12 files, 340 pages, 2 failed, 41.2 s");
        summary =
            Summary { files: 1, pages: 1, kept: 1, files_failed: 1, signal: Some(2), ..Summary::default() };
        assert_eq!(summary_line(&summary), "1 file, 1 page, 1 kept, 1 file failed, stopped, 0.0 s");
    }
}
