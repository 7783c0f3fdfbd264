//! Exit codes: a stable interface, also printed by `--help`.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | every requested page came out |
//! | 1 | finished, but a page or a file failed |
//! | 2 | the command line is wrong |
//! | 3 | a model or a native library is missing or does not match |
//! | 4 | output cannot be written, or exists already |
//! | 5 | nothing failed, but some pages came out only in part |
//! | 130, 143 | stopped by SIGINT, SIGTERM |
//!
//! 101 is a panic, that is a bug. Nobody reading stdout any more is no failure: 0.

use std::process::ExitCode;

use crate::batch::journal::Summary;
use crate::batch::runner::{BatchError, Report};

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
    BadArguments,
    Missing,
    Output,
    Partial,
    /// Number of the signal.
    Stopped(u8),
}

impl Outcome {
    pub(crate) fn code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Failed => 1,
            Outcome::BadArguments => 2,
            Outcome::Missing => 3,
            Outcome::Output => 4,
            Outcome::Partial => 5,
            // As shells report a process that a signal ended.
            Outcome::Stopped(signal) => 128u8.saturating_add(signal),
        }
    }

    /// What stopped the run counts first, then what failed, then what is incomplete.
    pub(crate) fn of(report: &Report) -> Outcome {
        match &report.error {
            Some(BatchError::Reader(_)) => return Outcome::Missing,
            Some(BatchError::Output(_)) => return Outcome::Output,
            Some(BatchError::BrokenPipe) => return Outcome::Done,
            None => {}
        }
        match report.summary {
            Summary { signal: Some(signal), .. } => Outcome::Stopped(u8::try_from(signal).unwrap_or(0)),
            Summary { failed, files_failed, .. } if failed + files_failed > 0 => Outcome::Failed,
            Summary { partial, .. } if partial > 0 => Outcome::Partial,
            _ => Outcome::Done,
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(outcome.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(summary: Summary, error: Option<BatchError>) -> u8 {
        Outcome::of(&Report { summary, error, ..Report::default() }).code()
    }

    #[test]
    fn what_stopped_the_run_comes_before_what_failed() {
        let bad = || Summary { pages: 3, partial: 1, failed: 1, signal: Some(2), ..Summary::default() };
        assert_eq!(code(bad(), Some(BatchError::BrokenPipe)), 0);
        assert_eq!(code(bad(), None), 130);
        assert_eq!(code(Summary { signal: Some(15), ..bad() }, None), 143);
        assert_eq!(code(Summary { signal: None, ..bad() }, None), 1);
        assert_eq!(code(Summary { partial: 1, ..Summary::default() }, None), 5);
        assert_eq!(code(Summary { files_failed: 1, ..Summary::default() }, None), 1);
        assert_eq!(code(Summary::default(), None), 0);
    }
}
