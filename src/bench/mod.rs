//! Decoding measured in its modes: the same pages, the same weights, one run in which the modes take turns.
//!
//! Pages are drafted once by the reader's own parts. Nothing is settled by a draft's own confidence here: every stream runs.
//! The plain modes are teacher-forced with the drafted text ([`script`]), so that all modes write the same tokens even where the
//! model reads badly. Seconds are CPU seconds of one thread, so that neighbours on the machine disturb little.

pub mod figures;
pub mod modes;
mod pages;
mod report;
pub mod script;

use std::path::PathBuf;

use crate::batch::engine::NativeEngine;
use crate::decode::{AcceptanceRule, PageDrafts};
use crate::graphs::Prefix;
use crate::reader::{Reader, ReaderError};

pub use report::BenchReport;

use modes::{Mode, ModeContext, Sample, run_mode};
use script::Script;

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchSettings {
    pub repetitions: usize,
    /// First pages of each document.
    pub pages: usize,
    /// Streams are cut to this many tokens of content. `None`: whole.
    pub max_tokens: Option<usize>,
    /// Share of drafted text tokens that are made wrong in [`Mode::DraftsLossless`].
    pub draft_error: f32,
    pub modes: Vec<Mode>,
}

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error(transparent)]
    Reader(#[from] ReaderError),
    #[error("measuring needs a model")]
    NoModel,
    #[error("no page of the documents could be drafted")]
    NoPages,
    #[error("page {page} of `{file}`: {message}")]
    Page { file: String, page: u32, message: String },
}

/// A drafted page, ready to be decoded.
#[derive(Clone, Debug)]
pub struct BenchPage {
    pub file: String,
    pub number: u32,
    /// Its words come from a text layer alone.
    pub born_digital: bool,
    pub prefix: Prefix,
    pub drafts: PageDrafts,
    pub script: Script,
}

/// Samples of one mode: by repetition, then by page.
#[derive(Clone, Debug)]
pub struct ModeSamples {
    pub mode: Mode,
    pub repetitions: Vec<Vec<Sample>>,
}

/// Drafts the pages of `files` and decodes them in all modes, by turns. `progress` gets a line now and then.
pub fn run(
    files: &[PathBuf],
    engine: &NativeEngine,
    settings: &BenchSettings,
    progress: &mut dyn FnMut(&str),
) -> Result<BenchReport, BenchError> {
    let mut reader = Reader::new(&engine.reader, 0)?;
    let identity = reader.model_id().ok_or(BenchError::NoModel)?;
    let pages = pages::drafted(files, &engine.open, &mut reader, settings, progress);
    if pages.is_empty() {
        return Err(BenchError::NoPages);
    }
    let model = reader.model_mut().ok_or(BenchError::NoModel)?;
    let threads = engine.reader.threads;
    let samples = {
        let pack = model.pack().clone();
        let loop_settings = model.loop_settings().clone();
        let context = ModeContext {
            protocol: &*pack.grammar,
            trust: AcceptanceRule::Trust(pack.manifest.acceptance.thresholds()),
            settings: &loop_settings,
            draft_error: settings.draft_error,
            threads,
        };
        let mut samples: Vec<ModeSamples> =
            settings.modes.iter().map(|&mode| ModeSamples { mode, repetitions: Vec::new() }).collect();
        for repetition in 0..settings.repetitions {
            for entry in &mut samples {
                entry.repetitions.push(Vec::with_capacity(pages.len()));
            }
            for page in &pages {
                for entry in &mut samples {
                    let sample = run_mode(entry.mode, page, model.decoder(), &context).map_err(|error| {
                        BenchError::Page {
                            file: page.file.clone(),
                            page: page.number,
                            message: error.to_string(),
                        }
                    })?;
                    entry.repetitions.last_mut().expect("it was just pushed").push(sample);
                }
            }
            progress(&format!("repetition {} of {}", repetition + 1, settings.repetitions));
        }
        samples
    };
    Ok(BenchReport::new(identity, &pages, samples, settings, threads))
}
