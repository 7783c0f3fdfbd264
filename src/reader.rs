//! One page from evidence to elements: its words are settled, drafted into regions, verified by the model if there is one, and
//! assembled.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::document::assemble::{PageContext, assemble, printed_area};
use crate::document::{Element, Page, PageStatus};
use crate::drafts::clock::Clock;
use crate::drafts::nets::{BoundNets, Nets};
use crate::drafts::structure::draft_regions;
use crate::drafts::words::page_words;
use crate::drafts::{PageWords, TextLayer};
use crate::page::{PageEvidence, Region, StopReason};
use crate::raster::Raster;
use crate::settings::{DecodeSettings, Device, ModelChoice};

/// What a reader needs to know; the same for all workers of a run.
#[derive(Clone, Debug)]
pub struct ReaderSettings {
    pub model: ModelChoice,
    pub device: Device,
    pub decode: DecodeSettings,
    /// Folder of the small third-party models.
    pub third_party: PathBuf,
    /// Intra-op threads per session.
    pub threads: usize,
    /// Save figures?
    pub figures: bool,
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
    pub stats: PageStats,
}

/// Why a reader cannot start: exit code 3.
#[derive(Debug, thiserror::Error)]
pub enum ReaderError {
    #[error(transparent)]
    Runtime(#[from] crate::graphs::runtime::RuntimeError),
    #[error("{0}")]
    Model(String),
}

/// Reads pages one at a time; owns its sessions. One per worker.
#[derive(Debug)]
pub struct Reader {
    nets: Nets,
    settings: ReaderSettings,
}

impl Reader {
    pub fn new(settings: &ReaderSettings) -> Result<Reader, ReaderError> {
        crate::graphs::runtime::environment()?;
        let nets = Nets::new(&settings.third_party, &settings.decode.drafters, settings.threads);
        Ok(Reader { nets, settings: settings.clone() })
    }

    /// Identity of the model for page files: pack name and sha256 of its manifest and graphs; `None` with `--model none`.
    pub fn model_id(&self) -> Option<(String, String)> {
        None
    }

    /// Reads one page. Never fails: what goes wrong is in the page's status and reason.
    pub fn read(&mut self, evidence: PageEvidence) -> PageOutput {
        let mut stats = PageStats::default();
        let (number, scale, links) = (evidence.number, evidence.scale, evidence.links.clone());
        let clock = self.clock();
        let words = page_words(evidence, &mut self.nets, &self.settings.decode.drafters);
        self.take_net_stats(&mut stats, "words", &clock);
        let clock = self.clock();
        let mut bound = BoundNets::new(&mut self.nets, &words.raster, &words.words);
        let regions = draft_regions(&words, &mut bound);
        self.take_net_stats(&mut stats, "structure", &clock);

        let clock = self.clock();
        let context = PageContext {
            scale,
            printed: printed_area(&regions),
            from_layer: words.from_layer,
            links: &links,
            figures: self.settings.figures,
        };
        let elements = assemble(number, &regions, &context);
        let figures =
            if self.settings.figures { cut_figures(&elements, &words.raster, scale) } else { Vec::new() };
        stats.seconds.insert("assemble", clock.seconds());
        let (status, reason) = page_status(&regions);
        let page = Page {
            number,
            width: words.raster.width as f32 / scale,
            height: words.raster.height as f32 / scale,
            turn: u16::from(words.turn) * 90,
            skew_deg: words.skew_deg,
            status,
            reason,
            text_layer: text_layer_name(&words).into(),
            verification: "unverified".into(),
            elements,
        };
        PageOutput { page, figures, stats }
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
        ];
        let mut in_networks = 0.0;
        for (name, network) in stages {
            *stats.seconds.entry(name).or_default() += network.seconds;
            *stats.counts.entry(name).or_default() += network.calls;
            in_networks += network.seconds;
        }
        *stats.seconds.entry(stage).or_default() += (total - in_networks).max(0.0);
        stats.warnings.extend(self.nets.take_warnings());
    }
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
fn page_status(regions: &[Region]) -> (PageStatus, Option<String>) {
    let cut = |reason| regions.iter().filter(|r| r.stop == Some(reason)).count();
    match (cut(StopReason::Loop), cut(StopReason::Budget)) {
        (0, 0) => (PageStatus::Ok, None),
        (loops, budgets) => {
            let reason = format!("{loops} regions looped, {budgets} ran out of their token budget");
            (PageStatus::Partial, Some(reason))
        }
    }
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
