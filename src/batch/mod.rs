//! Files x pages -> written pages. A failed page or file costs only itself; memory does not grow with the page count.
//!
//! ```text
//! openers (one file each) --pages, bounded--> workers (a reader each) --files written, records--> coordinator
//!   sha256, resume, rendering                  reading, page files                               journal, document files, events
//! ```
//!
//! Nothing in here prints: what happens goes to the caller as [`journal::Record`]s, on the calling thread.

/// What is named on the command line -> files.
pub mod inputs;

/// Page ranges.
pub mod pages;

/// Names as text that leads back to the files.
pub mod names;

/// Files -> output folders.
pub mod plan;

/// What a page was made from.
pub mod identity;

/// A page -> the bytes of its files.
pub mod render;

/// The output tree and its atomic writes.
pub mod output;

/// `run.jsonl`.
pub mod journal;

/// What became of the files of an output folder.
pub mod status;

/// What changed between two output folders.
pub mod compare;

/// Which part of the files one of several machines takes.
pub mod shard;

/// Which pages of an earlier run stand.
pub mod resume;

/// Files of the whole document.
pub mod finish;

/// What a run cost.
pub mod stats;

/// Opening files and reading pages behind traits.
pub mod engine;

/// The thread that opens files and renders their pages.
mod opener;

/// The thread that reads pages and writes them.
mod worker;

/// What becomes of what the threads report.
mod coordinator;

/// The run itself.
pub mod runner;

#[cfg(test)]
mod tests;
