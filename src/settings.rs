//! What a run does, as plain values. Built and validated once in `cli`, passed by reference.

use std::path::PathBuf;
use std::time::Duration;

/// How page pixels are made.
#[derive(Clone, Debug, PartialEq)]
pub struct RasterSettings {
    /// Rendering resolution of PDF pages. 200: letters of 8 pt text are about 11 px high, enough for detection and OCR.
    pub dpi: f32,
    /// Longest side of a raster, px; larger pages are rendered at a lower resolution (a 14,000 pt page would be 378 MB).
    pub max_side: u32,
}

impl Default for RasterSettings {
    fn default() -> Self {
        RasterSettings { dpi: 200.0, max_side: 3400 }
    }
}

/// What a file and a page may cost. What stays within does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time on the clock for rendering a page, and again for reading it.
    pub page_time: Duration,
    /// Address space of a process that renders, MiB: room for a scan of A0 at 600 dpi and its decoder.
    pub raster_memory: u32,
    /// Pixels of a picture file's page. A2 at 600 dpi has 139 million.
    pub picture_pixels: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { page_time: Duration::from_secs(120), raster_memory: 4096, picture_pixels: 200_000_000 }
    }
}

/// Whether a draft must be what the model itself would have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// Accept while the draft equals the model's own argmax.
    Lossless,
    /// Keep the draft unless the model is sure of something else; thresholds come from the manifest.
    Trust,
}

/// Which drafters may propose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drafters {
    pub layout: bool,
    pub text_layer: bool,
    pub ocr: bool,
    pub table: bool,
    /// Lines that the model's vision graph reads for sure need no recognition network.
    pub glyph: bool,
    /// The model's multi-token head, where nothing else drafts.
    pub mtp: bool,
    /// What a stream repeats of itself, where nothing else drafts.
    pub ngram: bool,
}

impl Drafters {
    /// All that pay: `glyph` must be asked for.
    pub const ALL: Drafters = Drafters {
        layout: true,
        text_layer: true,
        ocr: true,
        table: true,
        glyph: false,
        mtp: true,
        ngram: true,
    };
    pub const NONE: Drafters = Drafters {
        layout: false,
        text_layer: false,
        ocr: false,
        table: false,
        glyph: false,
        mtp: false,
        ngram: false,
    };

    /// May anything but the model itself say what is written?
    pub fn read_words(&self) -> bool {
        self.text_layer || self.ocr || self.glyph
    }
}

/// Where the model comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelChoice {
    /// A folder with `docparse.json`.
    Pack(PathBuf),
    /// No model: the drafts are written unverified, and the JSON says so.
    None,
}

/// Where graphs run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// CUDA if it can be had, else the CPU, said once.
    Auto,
    Cpu,
    /// The listed CUDA devices; an error if they cannot be had.
    Cuda(Vec<u32>),
}

/// Bounds on what a worker takes, bytes; none of them changes what comes out. `None`: what is written at each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemorySettings {
    /// Keys and values of a page; [`crate::decode::LoopSettings`]'s.
    pub keys_and_values: Option<usize>,
    /// A session's arena on a CUDA device; all that is free.
    pub device: Option<usize>,
}

/// How a page is decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeSettings {
    pub drafters: Drafters,
    /// Languages of the pages, as tesseract names them; none: what the pages show.
    pub languages: Vec<String>,
    /// `None`: what the manifest says.
    pub acceptance: Option<Acceptance>,
    /// Most tokens a content branch may write; it then stops with [`crate::page::StopReason::Budget`]. `None`: the manifest's.
    pub max_tokens: Option<usize>,
    /// Most content branches of a page (PaDoc: 255).
    pub max_branches: usize,
    /// Share of the visual tokens that most layers read (fixation), 0..1; 1 is off.
    pub fixation: f32,
    /// Layers that choose them; `None`: found on each page.
    pub focal_layers: Option<Vec<usize>>,
    /// Share of the visual tokens that prefill carries past its choosing layer (token-selective propagation), 0..1; 1 is off.
    pub tsp: f32,
    /// Share of the visual tokens that a branch keeps beside those of its box (retention), 0..1; 1 is off.
    pub retention: f32,
}

impl Default for DecodeSettings {
    fn default() -> Self {
        DecodeSettings {
            drafters: Drafters::ALL,
            languages: Vec::new(),
            acceptance: None,
            max_tokens: None,
            max_branches: 255,
            fixation: 1.0,
            focal_layers: None,
            tsp: 1.0,
            retention: 1.0,
        }
    }
}

/// One of the output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    Markdown,
    Json,
    Text,
    /// A page to look at, for whole documents only. What it needs of each page is a picture.
    Html,
}

/// What is written.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSettings {
    pub formats: Vec<Format>,
    /// Save figures as PNG files and link them.
    pub figures: bool,
    /// Keep headers, footers and page numbers in the Markdown.
    pub running_matter: bool,
    /// `<!-- page 3 -->` comments in `document.md`.
    pub page_markers: bool,
}

impl Default for OutputSettings {
    fn default() -> Self {
        OutputSettings {
            formats: vec![Format::Markdown, Format::Json],
            figures: true,
            running_matter: false,
            page_markers: true,
        }
    }
}

/// Where a run writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A folder for each input below this one.
    Folder(PathBuf),
    /// One input, one format, pages in order.
    Stdout,
}

/// What happens where output exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// The run is refused before any work.
    Refuse,
    /// An input's earlier output is removed when its turn comes.
    Overwrite,
    /// Pages that are there and were made from the same input by the same settings and model are kept.
    Resume,
}
