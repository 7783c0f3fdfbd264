//! Decoding measured in its modes: the same pages, the same weights, one run in which the modes take turns.
//!
//! Pages are drafted once by the reader's own parts. Nothing is settled by a draft's own confidence here: every stream runs.
//! The plain modes are teacher-forced with the drafted text ([`script`]), so that all modes write the same tokens even where the
//! model reads badly. Seconds are CPU seconds of one thread, so that neighbours on the machine disturb little.
//!
//! What the figures leave out: the sequential mode shares the page's prefix between its streams, where a runtime without
//! branches would copy it or compute it again, and feeds a second, empty row beside its one; the lossless drafts are as good
//! as `draft_error` says, not as good as a drafter is. What runs outside of the graph is only meant in an optimised build
//! (`optimised_build` in the report).

pub mod figures;
pub mod modes;
mod pages;
mod plots;
mod profile;
mod ratios;
mod report;
pub mod script;
pub mod steps;
pub mod writes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::batch::engine::NativeEngine;
use crate::batch::stats::peak_rss_bytes;
use crate::decode::{AcceptanceRule, PageDrafts};
use crate::graphs::manifest::MANIFEST_FILE;
use crate::graphs::onnx::{OnnxDecodeGraph, StepExtras};
use crate::graphs::pack::Pack;
use crate::graphs::runtime::Profiling;
use crate::graphs::{DecodeGraph, Dims, GraphError, Prefix};
use crate::model::PageInput;
use crate::model::{Model, ModelError};
use crate::reader::{Reader, ReaderError};

pub use report::BenchReport;

use modes::{Mode, ModeContext, Sample, run_mode};
use report::{Facts, Measured};
use script::Script;
use steps::{Grid, GridSettings, measure, random_prefix};
use writes::{StepWrites, step_writes};

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
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error("the runtime's profile: {0}")]
    Profile(String),
    #[error("`{}`: {message}", path.display())]
    Shape { path: PathBuf, message: String },
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
    /// The same after token-selective propagation, by percent.
    pub prefixes: BTreeMap<u8, Prefix>,
    /// What the prefix is made from.
    pub input: Option<PageInput>,
    pub drafts: PageDrafts,
    pub script: Script,
}

/// Seconds of prefill by percent of propagation (100: everything goes on): by repetition, then by page.
pub type PrefillSeconds = BTreeMap<u8, Vec<Vec<f64>>>;

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
    let mut pages = pages::drafted(files, &engine.open, &mut reader, settings, progress);
    if pages.is_empty() {
        return Err(BenchError::NoPages);
    }
    let model = reader.model_mut().ok_or(BenchError::NoModel)?;
    let threads = engine.reader.threads;
    let prefill = measure_prefill(model, &mut pages, settings)?;
    progress("prefill measured");
    let samples = measure_modes(model, &pages, settings, threads, progress)?;
    let pack = model.pack().clone();
    let grid_settings = GridSettings::new(pack.manifest.dims.vocabulary, settings.repetitions, threads);
    // The page with the most visual tokens.
    let largest = pages.iter().max_by_key(|page| page.prefix.len).ok_or(BenchError::NoPages)?;
    let graph = model.decoder().map_err(ReaderError::Pack)?;
    let drafts = graph.head_drafts();
    let grid = measure(graph, &largest.prefix, &grid_settings, progress)?;
    let profiles = profile::of_pack(&pack, &largest.prefix, &grid_settings)?;
    let facts = Facts { model: identity, threads, drafts, peak_rss_bytes: peak_rss_bytes() };
    Ok(BenchReport::new(facts, &pages, Measured { samples, prefill, grid, profiles }, settings))
}

/// Prefill of every page at every rate, by turns; the pages get their prefixes.
fn measure_prefill(
    model: &mut Model,
    pages: &mut [BenchPage],
    settings: &BenchSettings,
) -> Result<PrefillSeconds, BenchError> {
    let mut rates: Vec<u8> = settings.modes.iter().map(|mode| mode.tsp).chain([100]).collect();
    rates.sort_unstable();
    rates.dedup();
    let mut seconds = PrefillSeconds::new();
    for repetition in 0..settings.repetitions {
        for page in &mut *pages {
            let Some(input) = &page.input else { continue };
            let shares: Vec<f32> = rates.iter().map(|&rate| f32::from(rate) / 100.0).collect();
            for (&rate, (prefix, spent)) in rates.iter().zip(model.prefills(input, &shares)?) {
                let repetitions = seconds.entry(rate).or_default();
                repetitions.resize_with(repetition + 1, Vec::new);
                repetitions[repetition].push(spent);
                page.prefixes.insert(rate, prefix);
            }
        }
    }
    Ok(seconds)
}

/// Every page in every mode, by turns.
fn measure_modes(
    model: &mut Model,
    pages: &[BenchPage],
    settings: &BenchSettings,
    threads: usize,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<ModeSamples>, BenchError> {
    let pack = model.pack().clone();
    let loop_settings = model.loop_settings().clone();
    let context = ModeContext {
        protocol: &*pack.grammar,
        trust: AcceptanceRule::Trust(pack.manifest.acceptance.thresholds()),
        settings: &loop_settings,
        draft_error: settings.draft_error,
        threads,
    };
    let graph = model.decoder().map_err(ReaderError::Pack)?;
    let mut samples: Vec<ModeSamples> =
        settings.modes.iter().map(|&mode| ModeSamples { mode, repetitions: Vec::new() }).collect();
    for repetition in 0..settings.repetitions {
        for entry in &mut samples {
            entry.repetitions.push(Vec::with_capacity(pages.len()));
        }
        for page in pages {
            for entry in &mut samples {
                let sample =
                    run_mode(entry.mode, page, graph, &context).map_err(|error| BenchError::Page {
                        file: page.file.clone(),
                        page: page.number,
                        message: error.to_string(),
                    })?;
                entry.repetitions.last_mut().expect("it was just pushed").push(sample);
            }
            progress(&format!("{}, page {}, repetition {}", page.file, page.number, repetition + 1));
        }
    }
    Ok(samples)
}

/// `shape.json` beside a decode graph that is no pack's.
#[derive(Debug, Deserialize)]
struct Shape {
    layers: usize,
    kv_heads: usize,
    head_dim: usize,
    position_parts: usize,
    hidden: usize,
    vocabulary: usize,
    focal_layers: Vec<usize>,
    #[serde(default)]
    saliency: bool,
}

/// A decode graph to measure by itself.
struct LoneDecoder {
    path: PathBuf,
    dims: Dims,
    extras: StepExtras,
    vocabulary: usize,
}

impl LoneDecoder {
    /// The decode graph of the pack in `folder`, or the one that `shape.json` there describes.
    fn find(folder: &Path) -> Result<LoneDecoder, BenchError> {
        if folder.join(MANIFEST_FILE).is_file() {
            let pack = Pack::load(folder).map_err(ReaderError::Pack)?;
            return Ok(LoneDecoder {
                path: folder.join(&pack.manifest.graphs.decode),
                dims: pack.manifest.dims.into(),
                extras: pack.step_extras(),
                vocabulary: pack.manifest.dims.vocabulary,
            });
        }
        let path = folder.join("shape.json");
        let fail = |message: String| BenchError::Shape { path: path.clone(), message };
        let bytes = std::fs::read(&path).map_err(|error| fail(error.to_string()))?;
        let shape: Shape = serde_json::from_slice(&bytes).map_err(|error| fail(error.to_string()))?;
        let dims = Dims {
            layers: shape.layers,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            position_parts: shape.position_parts,
            hidden: shape.hidden,
        };
        let extras = StepExtras { focal_layers: shape.focal_layers, saliency: shape.saliency };
        Ok(LoneDecoder { path: folder.join("decode.onnx"), dims, extras, vocabulary: shape.vocabulary })
    }

    fn load(&self, threads: usize, profiling: Option<Profiling<'_>>) -> Result<OnnxDecodeGraph, BenchError> {
        let (dims, extras) = (self.dims, &self.extras);
        let graph = OnnxDecodeGraph::load_profiled(&self.path, dims, extras, threads.into(), profiling);
        Ok(graph.map_err(ReaderError::Pack)?)
    }
}

/// Steps of the decode graph in `folder`, a pack's or one with a `shape.json`, on a prefix of `prefix_len` random positions. The
/// vocabulary is the graph's.
pub fn run_decoder(
    folder: &Path,
    prefix_len: usize,
    settings: &GridSettings,
    progress: &mut dyn FnMut(&str),
) -> Result<Grid, BenchError> {
    let decoder = LoneDecoder::find(folder)?;
    let mut graph = decoder.load(settings.threads, None)?;
    let prefix = random_prefix(decoder.dims, prefix_len);
    let settings = GridSettings { vocabulary: decoder.vocabulary, ..settings.clone() };
    Ok(measure(&mut graph, &prefix, &settings, progress)?)
}

/// What the nodes of such a step write.
pub fn profile_decoder(
    folder: &Path,
    prefix_len: usize,
    settings: &GridSettings,
) -> Result<StepWrites, BenchError> {
    let decoder = LoneDecoder::find(folder)?;
    let notes = tempfile::tempdir().map_err(|error| BenchError::Profile(error.to_string()))?;
    let profiling = Profiling { file: &notes.path().join("decode"), optimised: true };
    let mut graph = decoder.load(settings.threads, Some(profiling))?;
    let settings = GridSettings { vocabulary: decoder.vocabulary, ..settings.clone() };
    step_writes(&mut graph, prefix_len, &settings)
}
