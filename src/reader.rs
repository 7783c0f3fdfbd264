//! One page from evidence to elements: drafts, decoding, assembly. (being built)

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::document::Page;
use crate::page::PageEvidence;
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
pub struct Reader {}

impl Reader {
    pub fn new(_settings: &ReaderSettings) -> Result<Reader, ReaderError> {
        Ok(Reader {})
    }

    /// Identity of the model for page files: pack name and sha256 of its manifest and graphs; `None` with `--model none`.
    pub fn model_id(&self) -> Option<(String, String)> {
        None
    }

    /// Reads one page. Never fails: what goes wrong is in the page's status and reason.
    pub fn read(&mut self, evidence: PageEvidence) -> PageOutput {
        let page = Page {
            number: evidence.number,
            width: evidence.raster.width as f32 / evidence.scale,
            height: evidence.raster.height as f32 / evidence.scale,
            turn: 0,
            skew_deg: 0.0,
            status: crate::document::PageStatus::Ok,
            reason: None,
            text_layer: "none".into(),
            verification: "unverified".into(),
            elements: Vec::new(),
        };
        PageOutput { page, figures: Vec::new(), stats: PageStats::default() }
    }
}
