//! Pages from evidence to elements: a page's words are settled, drafted into regions, verified by the model if there is one, and
//! assembled.

mod together;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::clock::{Clock, StageStats};
use crate::document::assemble::{PageContext, assemble, printed_area};
use crate::document::{Element, Page, PageStatus};
use crate::drafts::glyphs::GlyphReader;
use crate::drafts::nets::{BoundNets, Nets};
use crate::drafts::structure::{draft_regions, unread_regions};
use crate::drafts::words::page_words;
use crate::drafts::{PageWords, TextLayer};
use crate::graphs::manifest::PackError;
use crate::graphs::pack::Pack;
use crate::graphs::runtime::{self, Provider, SessionOptions};
use crate::model::{DraftedPage, Model, ModelError, ModelPage, PreparedPage};
use crate::page::{Link, PageEvidence, Region, StopReason};
use crate::raster::Raster;
use crate::settings::{DecodeSettings, Device, MemorySettings, ModelChoice};

pub use together::TakenPage;

/// What a reader needs to know; the same for all workers of a run.
#[derive(Clone, Debug)]
pub struct ReaderSettings {
    pub model: ModelChoice,
    pub device: Device,
    pub decode: DecodeSettings,
    pub memory: MemorySettings,
    /// A page that takes longer is given up.
    pub page_time: Duration,
    /// Folder of the small third-party models.
    pub third_party: PathBuf,
    /// Most pages that are decoded together; `None`: what suits the device.
    pub pages_per_call: Option<usize>,
    /// Intra-op threads per session.
    pub threads: usize,
    /// Save figures?
    pub figures: bool,
    /// Give a small picture of every page?
    pub page_pictures: bool,
}

/// Counters and seconds of one page; never part of page files.
#[derive(Clone, Debug, Default)]
pub struct PageStats {
    /// CPU seconds by stage (`layout`, `ocr`, `vision`, ...).
    pub seconds: BTreeMap<&'static str, f64>,
    /// Counters by name (`decode_calls`, `tokens_drafted`, `tokens_accepted`, `kv_peak_bytes`, ...).
    pub counts: BTreeMap<&'static str, u64>,
    /// Warnings about this page, for the log.
    pub warnings: Vec<String>,
}

/// A page that was read.
#[derive(Debug)]
pub struct PageOutput {
    pub page: Page,
    /// File name (`page-0001-figure-1.png`) and pixels of each figure to save.
    pub figures: Vec<(String, Raster)>,
    /// The page as its boxes see it, made smaller, if it is asked for.
    pub picture: Option<Raster>,
    pub stats: PageStats,
}

impl PageOutput {
    /// A page that could not be read. Its size is not known.
    pub fn failed(number: u32, reason: String) -> PageOutput {
        let page = Page {
            number,
            width: 0.0,
            height: 0.0,
            turn: 0,
            skew_deg: 0.0,
            status: PageStatus::Failed,
            reason: Some(reason),
            text_layer: "none".into(),
            verification: "unverified".into(),
            elements: Vec::new(),
        };
        PageOutput { page, figures: Vec::new(), picture: None, stats: PageStats::default() }
    }
}

/// Why a reader cannot start: exit code 3.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    #[error(transparent)]
    Runtime(#[from] runtime::RuntimeError),
    #[error(transparent)]
    Pack(#[from] PackError),
}

/// Reads pages; owns its sessions. One per worker.
#[derive(Debug)]
pub struct Reader {
    nets: Nets,
    model: Option<Model>,
    /// Most pages that are decoded together.
    pages_per_call: usize,
    settings: ReaderSettings,
}

/// Pages that are decoded together on a CUDA device: one page's calls leave most of it idle. Not measured.
const PAGES_PER_CUDA_CALL: usize = 4;

/// Regions of a page as they are written, and what is to be said of them.
struct Reading {
    regions: Vec<Region>,
    verification: &'static str,
    /// Why the page is partial.
    partial: Option<String>,
}

impl Reading {
    /// Drafts that no model looked at, or that it failed on.
    fn unverified(regions: Vec<Region>, error: Option<&ModelError>) -> Reading {
        let partial = error.map(|error| format!("the model failed: {error}"));
        Reading { regions: marked(regions), verification: "unverified", partial }
    }

    /// What the model made of a page; its figures go to `stats`.
    fn of(read: ModelPage, stats: &mut PageStats) -> Reading {
        for (stage, seconds) in &read.seconds {
            *stats.seconds.entry(stage).or_default() += seconds;
        }
        count_decoding(&read, stats);
        stats.warnings.extend(read.notes.iter().cloned());
        let partial = read.trunk_cut.map(|stop| match stop {
            StopReason::Loop => "the layout stream looped".into(),
            _ => "the layout stream ran out of its token budget".into(),
        });
        let verification = match read.settled {
            0 => "verified",
            n if n < read.regions.len() => "partly",
            _ => "settled",
        };
        Reading { regions: read.regions, verification, partial }
    }
}

impl Reader {
    /// A reader for the run's `worker` (0, 1, ...), which chooses among several devices.
    pub fn new(settings: &ReaderSettings, worker: usize) -> Result<Reader, ReaderError> {
        runtime::environment()?;
        if let (ModelChoice::None, Device::Cuda(_)) = (&settings.model, &settings.device) {
            runtime::provider(&settings.device, worker)?;
        }
        let mut nets = Nets::new(&settings.third_party, &settings.decode.drafters, settings.threads)
            .with_languages(&settings.decode.languages);
        let (mut glyphs, mut pages_per_call) = (None, 1);
        let model = match &settings.model {
            ModelChoice::None => None,
            ModelChoice::Pack(folder) => {
                let pack = Pack::load(folder)?;
                let (provider, note) = runtime::provider(&settings.device, worker)?;
                if let Some(note) = note.filter(|_| worker == 0) {
                    tracing::info!("running on the CPU: {note}");
                }
                if let Provider::Cuda(_) = provider {
                    pages_per_call = PAGES_PER_CUDA_CALL;
                }
                let device_memory = settings.memory.device;
                let options = SessionOptions { threads: settings.threads, provider, device_memory };
                if settings.decode.drafters.glyph {
                    glyphs = GlyphReader::open(&pack, options)?;
                }
                Some(Model::load(pack, &settings.decode, settings.memory.keys_and_values, options)?)
            }
        };
        if settings.decode.drafters.glyph {
            nets = nets.with_glyphs(glyphs);
        }
        let pages_per_call = settings.pages_per_call.unwrap_or(pages_per_call).max(1);
        Ok(Reader { nets, model, pages_per_call, settings: settings.clone() })
    }

    /// Identity of the model for page files: pack name and sha256 of its manifest and graphs; `None` with `--model none`.
    pub fn model_id(&self) -> Option<(String, String)> {
        let pack = self.model.as_ref()?.pack();
        Some((pack.manifest.name.clone(), pack.sha256.clone()))
    }

    pub fn model_mut(&mut self) -> Option<&mut Model> {
        self.model.as_mut()
    }

    /// Drafts one page up to its decoding, for measurements. `None` without a model and for a page without ink.
    pub fn prepare(
        &mut self,
        evidence: PageEvidence,
    ) -> Result<Option<(PreparedPage, TextLayer)>, ModelError> {
        self.nets.set_limit(None);
        let scale = evidence.scale;
        let words = page_words(evidence, &mut self.nets, &self.settings.decode.drafters);
        let mut bound = BoundNets::new(&mut self.nets, &words.raster, &words.words);
        let regions = draft(&words, &mut bound, &self.settings);
        let Some(model) = &mut self.model else { return Ok(None) };
        let page = DraftedPage {
            raster: &words.raster,
            words: &words.words,
            dpi: scale * 72.0,
            regions: &regions,
            limit: None,
        };
        Ok(model.prepare(&page)?.map(|prepared| (prepared, words.text_layer)))
    }

    fn assembled(
        &self,
        number: u32,
        words: &PageWords,
        scale: f32,
        links: &[Link],
        reading: Reading,
    ) -> PageOutput {
        let Reading { regions, verification, partial } = reading;
        let context = PageContext {
            scale,
            printed: printed_area(&regions),
            from_layer: words.from_layer,
            links,
            figures: self.settings.figures,
        };
        let elements = assemble(number, &regions, &context);
        let figures =
            if self.settings.figures { cut_figures(&elements, &words.raster, scale) } else { Vec::new() };
        let reason = partial.or_else(|| streams_cut_short(&regions));
        let status = if reason.is_some() { PageStatus::Partial } else { PageStatus::Ok };
        let page = Page {
            number,
            width: words.raster.width as f32 / scale,
            height: words.raster.height as f32 / scale,
            turn: u16::from(words.turn) * 90,
            skew_deg: words.skew_deg,
            status,
            reason,
            text_layer: text_layer_name(words).into(),
            verification: verification.into(),
            elements,
        };
        let picture = self.settings.page_pictures.then(|| small_picture(&words.raster));
        PageOutput { page, figures, picture, stats: PageStats::default() }
    }

    fn clock(&self) -> Clock {
        Clock::start(self.settings.threads)
    }

    /// Books what the networks cost since the last call, and the rest of `clock` under `stage`.
    fn take_net_stats(&mut self, stats: &mut PageStats, stage: &'static str, clock: &Clock) {
        let total = clock.seconds();
        let nets = self.nets.take_stats();
        let stages = [
            ("layout", nets.layout),
            ("detection", nets.detection),
            ("recognition", nets.recognition),
            ("table", nets.table),
            ("tesseract", nets.tesseract),
            ("glyphs", nets.glyphs),
        ];
        let mut in_networks = 0.0;
        let used = |stage: &(&str, StageStats)| stage.0 != "glyphs" || stage.1 != StageStats::default();
        for (name, network) in stages.into_iter().filter(used) {
            *stats.seconds.entry(name).or_default() += network.seconds;
            *stats.counts.entry(name).or_default() += network.calls;
            in_networks += network.seconds;
        }
        *stats.seconds.entry(stage).or_default() += (total - in_networks).max(0.0);
        stats.warnings.extend(self.nets.take_warnings());
    }
}

/// A page's regions by the drafters. Where none of them reads words, a model reads the layout's regions.
fn draft(words: &PageWords, nets: &mut BoundNets<'_>, settings: &ReaderSettings) -> Vec<Region> {
    let model_reads = settings.model != ModelChoice::None && !settings.decode.drafters.read_words();
    if model_reads { unread_regions(words, nets) } else { draft_regions(words, nets) }
}

/// Drafts that no model looked at.
fn marked(mut regions: Vec<Region>) -> Vec<Region> {
    for region in &mut regions {
        region.stop = Some(StopReason::Unverified);
    }
    regions
}

fn count_decoding(read: &ModelPage, stats: &mut PageStats) {
    let decoding = &read.stats;
    let counts = [
        ("regions_settled", read.settled),
        ("visual_tokens", read.visual_tokens),
        ("decode_calls", decoding.calls),
        ("decode_calls_shared", decoding.shared_calls),
        ("decode_steps", decoding.steps),
        ("row_steps", decoding.row_steps),
        ("tokens_fed", decoding.tokens_fed),
        ("tokens_drafted", decoding.drafted.values().sum()),
        ("tokens_accepted", decoding.accepted.values().sum()),
        ("tokens_written", decoding.written),
        ("kv_peak_bytes", decoding.kv_peak_bytes),
        ("kv_pool_bytes", decoding.pool_bytes),
    ];
    stats.counts.extend(counts.map(|(name, count)| (name, count as u64)));
}

fn text_layer_name(words: &PageWords) -> &'static str {
    match words.text_layer {
        TextLayer::None => "none",
        TextLayer::Used => "used",
        TextLayer::Garbage => "garbage",
        TextLayer::Incomplete => "incomplete",
    }
}

/// A page is partial if a stream of it looped or ran out of its budget.
fn streams_cut_short(regions: &[Region]) -> Option<String> {
    let cut = |reason| regions.iter().filter(|r| r.stop == Some(reason)).count();
    match (cut(StopReason::Loop), cut(StopReason::Budget)) {
        (0, 0) => None,
        (loops, budgets) => Some(format!("{loops} regions looped, {budgets} ran out of their token budget")),
    }
}

/// Longest side of a page's small picture, px: small print can be read, and a page takes some 200 kB as JPEG.
const PICTURE_SIDE: usize = 1400;

fn small_picture(raster: &Raster) -> Raster {
    let side = raster.width.max(raster.height);
    if side <= PICTURE_SIDE {
        return raster.clone();
    }
    let small = |length: usize| (length * PICTURE_SIDE / side).max(1);
    raster.resized_area(small(raster.width), small(raster.height))
}

/// The pixels of every element that names a picture file. Boxes in points, `scale` pixels per point.
fn cut_figures(elements: &[Element], raster: &Raster, scale: f32) -> Vec<(String, Raster)> {
    let cut = |element: &Element| {
        let b = element.bbox.scaled(scale);
        let (x0, y0, x1, y1) =
            (b.x0.floor() as i64, b.y0.floor() as i64, b.x1.ceil() as i64, b.y1.ceil() as i64);
        Some((element.image.clone()?, raster.cropped(x0, y0, x1, y1)?))
    };
    elements.iter().filter_map(cut).collect()
}
