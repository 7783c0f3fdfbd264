//! The networks of one worker: each is loaded when first needed; one that cannot be had is off, and that is said once.

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::detect::Detector;
use super::glyphs::GlyphReader;
use super::layout::{LayoutMaps, LayoutNet, THRESHOLD, regions};
use super::recognise::{Reading, Recogniser};
use super::table_net::TableNet;
use super::tesseract::{self, TesseractPage};
use super::{PageNets, TableReading};
use crate::clock::{self, Clock, StageStats, TimeLimit};
use crate::geometry::Rect;
use crate::graphs::GraphError;
use crate::graphs::runtime::RuntimeError;
use crate::page::{Kind, Region, Rules, Word};
use crate::raster::Raster;
use crate::raster::quad::Quad;
use crate::settings::Drafters;
use crate::tables::picture_rules::picture_rules;

/// File names in the folder of third-party models.
pub const LAYOUT_FILE: &str = "layout_cdla.onnx";
pub const DETECTION_FILE: &str = "PP-OCRv6_det_small.onnx";
pub const RECOGNITION_FILE: &str = "PP-OCRv6_rec_small.onnx";
pub const TABLE_FILE: &str = "slanet-plus.onnx";

/// Pictures with a shorter side, px, show no letter: they are not looked at.
const LEAST_SIDE: usize = 6;

/// What the networks cost since the last [`Nets::take_stats`], loading included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NetStats {
    pub layout: StageStats,
    pub detection: StageStats,
    pub recognition: StageStats,
    pub table: StageStats,
    /// On the clock: the program runs in a process of its own.
    pub tesseract: StageStats,
    /// Calls are the lines that were kept.
    pub glyphs: StageStats,
}

/// A network that may not be there.
#[derive(Debug)]
enum Slot<T> {
    Untried,
    Off,
    Ready(T),
}

impl<T> Slot<T> {
    fn new(enabled: bool) -> Self {
        if enabled { Slot::Untried } else { Slot::Off }
    }

    /// The network, loaded now if it was not yet tried.
    fn get(
        &mut self,
        load: impl FnOnce() -> Result<T, RuntimeError>,
        warnings: &mut Vec<String>,
    ) -> Option<&mut T> {
        if matches!(self, Slot::Untried) {
            *self = match load() {
                Ok(network) => Slot::Ready(network),
                Err(error) => {
                    warnings.push(format!("drafter off: {error}"));
                    Slot::Off
                }
            };
        }
        match self {
            Slot::Ready(network) => Some(network),
            Slot::Untried | Slot::Off => None,
        }
    }
}

/// The networks of one worker.
#[derive(Debug)]
pub struct Nets {
    folder: PathBuf,
    threads: usize,
    layout: Slot<LayoutNet>,
    detector: Slot<Detector>,
    recogniser: Slot<Recogniser>,
    table: Slot<TableNet>,
    glyphs: Option<GlyphReader>,
    stats: NetStats,
    warnings: Vec<String>,
    limit: Option<TimeLimit>,
    /// Tesseract used up its time.
    is_late: bool,
    languages: Vec<String>,
    misses_tesseract: bool,
}

impl Nets {
    /// `folder` holds the third-party models; `threads` per session.
    pub fn new(folder: &Path, drafters: &Drafters, threads: usize) -> Self {
        Nets {
            folder: folder.to_path_buf(),
            threads,
            layout: Slot::new(drafters.layout),
            detector: Slot::new(drafters.ocr),
            recogniser: Slot::new(drafters.ocr),
            table: Slot::new(drafters.table),
            glyphs: None,
            stats: NetStats::default(),
            warnings: Vec::new(),
            limit: None,
            is_late: false,
            languages: Vec::new(),
            misses_tesseract: false,
        }
    }

    /// Once it is over the networks are as if they were not there, until another limit is set.
    pub fn set_limit(&mut self, limit: Option<TimeLimit>) {
        (self.limit, self.is_late) = (limit, false);
    }

    /// Languages that the user named; see [`tesseract::read_page`].
    pub fn with_languages(self, languages: &[String]) -> Self {
        Nets { languages: languages.to_vec(), ..self }
    }

    pub(crate) fn languages(&self) -> &[String] {
        &self.languages
    }

    /// Reads a page whose script the recogniser may lack; `None` where the recogniser's reading is to stand.
    pub(crate) fn tesseract(&mut self, raster: &Raster) -> Option<TesseractPage> {
        self.in_time()?;
        if tesseract::installed_languages().is_empty() {
            if !std::mem::replace(&mut self.misses_tesseract, true) {
                let what =
                    "lines can hardly be read; `tesseract`, which knows more scripts, is not installed";
                self.warnings.push(what.into());
            }
            return None;
        }
        let begun = Instant::now();
        let deadline = self.limit.map(|limit| limit.anew());
        let page = tesseract::read_page(raster, &self.languages, deadline);
        self.is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.stats.tesseract.seconds += begun.elapsed().as_secs_f64();
        self.stats.tesseract.calls += 1;
        page
    }

    /// `None` once the limit is over.
    pub(crate) fn in_time(&self) -> Option<()> {
        (!self.is_late && !self.limit.is_some_and(|limit| limit.is_over())).then_some(())
    }

    /// Lines are to be read by `glyphs` first; without one, that is said.
    pub fn with_glyphs(mut self, glyphs: Option<GlyphReader>) -> Self {
        if glyphs.is_none() {
            self.warnings
                .push("drafter off: glyph: no model, or one that does not offer to read lines".into());
        }
        self.glyphs = glyphs;
        self
    }

    /// What the layout network sees; `None` without it.
    pub fn layout_maps(&mut self, raster: &Raster, words: &[Word]) -> Option<LayoutMaps> {
        shows_letters(raster).then(|| self.in_time())??;
        let clock = Clock::start(self.threads);
        let (path, threads) = (self.folder.join(LAYOUT_FILE), self.threads);
        let net = self.layout.get(|| LayoutNet::open(&path, threads), &mut self.warnings)?;
        let result = net.candidates(raster, words);
        count(&mut self.stats.layout, &clock, 1);
        self.checked(result)
    }

    /// Text lines of a picture; `None` without the network.
    pub fn detect(&mut self, raster: &Raster) -> Option<Vec<Quad>> {
        shows_letters(raster).then(|| self.in_time())??;
        let clock = Clock::start(self.threads);
        let (path, threads) = (self.folder.join(DETECTION_FILE), self.threads);
        let net = self.detector.get(|| Detector::open(&path, threads), &mut self.warnings)?;
        let result = net.detect(raster);
        count(&mut self.stats.detection, &clock, 1);
        self.checked(result)
    }

    /// Readings of crops of single lines; `None` without the network.
    pub fn read(&mut self, crops: &[Raster]) -> Option<Vec<Reading>> {
        self.in_time()?;
        let clock = Clock::start(self.threads);
        let result = self.recogniser()?.read(crops);
        count(&mut self.stats.recognition, &clock, crops.len() as u64);
        self.checked(result)
    }

    /// Readings of crops of upright lines: by the glyph reader where it is sure, else as [`Nets::read`].
    pub fn read_lines(&mut self, crops: Vec<Raster>) -> Option<Vec<Reading>> {
        self.in_time()?;
        let Some(glyphs) = &mut self.glyphs else { return self.read(&crops) };
        let clock = Clock::start(self.threads);
        let result = glyphs.read(&crops);
        let mut readings = self.checked(result).unwrap_or_else(|| vec![None; crops.len()]);
        let sure = readings.iter().filter(|r| r.is_some()).count();
        count(&mut self.stats.glyphs, &clock, sure as u64);
        let unsure: Vec<Raster> =
            crops.into_iter().zip(&readings).filter(|(_, r)| r.is_none()).map(|(crop, _)| crop).collect();
        let mut others = self.read(&unsure)?.into_iter();
        readings.iter_mut().filter(|r| r.is_none()).for_each(|r| *r = others.next());
        Some(readings.into_iter().flatten().collect())
    }

    /// The recognition network, for its alphabet; `None` if it is off.
    pub(crate) fn recogniser(&mut self) -> Option<&mut Recogniser> {
        let (path, threads) = (self.folder.join(RECOGNITION_FILE), self.threads);
        self.recogniser.get(|| Recogniser::open(&path, threads), &mut self.warnings)
    }

    /// Structure of the table that a crop shows, in pixels of the crop; `None` without the network.
    pub fn table(&mut self, crop: &Raster) -> Option<TableReading> {
        self.in_time()?;
        let clock = Clock::start(self.threads);
        let (path, threads) = (self.folder.join(TABLE_FILE), self.threads);
        let net = self.table.get(|| TableNet::open(&path, threads), &mut self.warnings)?;
        let result = net.read(crop);
        count(&mut self.stats.table, &clock, 1);
        self.checked(result)
    }

    /// Can lines be found and read?
    pub fn has_ocr(&mut self) -> bool {
        let (path, threads) = (self.folder.join(DETECTION_FILE), self.threads);
        self.detector.get(|| Detector::open(&path, threads), &mut self.warnings).is_some()
            && self.recogniser().is_some()
    }

    /// Seconds and calls since the last time.
    pub fn take_stats(&mut self) -> NetStats {
        std::mem::take(&mut self.stats)
    }

    /// What went wrong since the last time: networks that are off, runs that failed.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    fn checked<T>(&mut self, result: Result<T, GraphError>) -> Option<T> {
        result.map_err(|error| self.warnings.push(error.to_string())).ok()
    }
}

fn shows_letters(raster: &Raster) -> bool {
    raster.width.min(raster.height) >= LEAST_SIDE
}

fn count(stage: &mut StageStats, clock: &Clock, calls: u64) {
    stage.seconds += clock.seconds();
    stage.calls += calls;
}

/// The networks, looking at one page.
#[derive(Debug)]
pub struct BoundNets<'a> {
    nets: &'a mut Nets,
    raster: &'a Raster,
    words: &'a [Word],
    /// The layout network's one run; the inner `None`: there is no such network.
    maps: Option<Option<LayoutMaps>>,
    gray: Option<Vec<u8>>,
}

impl<'a> BoundNets<'a> {
    pub fn new(nets: &'a mut Nets, raster: &'a Raster, words: &'a [Word]) -> Self {
        BoundNets { nets, raster, words, maps: None, gray: None }
    }
}

impl PageNets for BoundNets<'_> {
    fn layout(&mut self, skip: &[Kind]) -> Vec<Region> {
        let (nets, raster, words) = (&mut *self.nets, self.raster, self.words);
        let maps = self.maps.get_or_insert_with(|| nets.layout_maps(raster, words));
        maps.as_ref().map(|m| regions(m, THRESHOLD, skip)).unwrap_or_default()
    }

    fn table(&mut self, bbox: Rect) -> Option<TableReading> {
        let (left, top) = (bbox.x0.max(0.0).floor(), bbox.y0.max(0.0).floor());
        let crop = self.raster.cropped(left as i64, top as i64, bbox.x1 as i64, bbox.y1 as i64)?;
        let mut reading = self.nets.table(&crop)?;
        for cell in &mut reading.cells {
            cell.bbox = cell.bbox.translated(left, top);
        }
        Some(reading)
    }

    fn picture_rules(&mut self, bbox: Rect) -> Rules {
        clock::look();
        let raster = self.raster;
        let gray = self.gray.get_or_insert_with(|| raster.gray());
        picture_rules(gray, raster.width, bbox)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drafts::drawn::{draw, models, page};
    use crate::geometry::hull;

    #[test]
    fn missing_models_are_said_once_and_their_drafters_are_off() {
        let empty = tempfile::tempdir().unwrap();
        let mut nets = Nets::new(empty.path(), &Drafters::ALL, 1);
        let page = Raster::filled(64, 64, [255; 3]);
        assert!(nets.layout_maps(&page, &[]).is_none() && nets.layout_maps(&page, &[]).is_none());
        assert!(!nets.has_ocr() && nets.read(&[]).is_none() && nets.table(&page).is_none());
        let warnings = nets.take_warnings();
        assert_eq!(warnings.len(), 4, "{warnings:?}");
        assert!(BoundNets::new(&mut nets, &page, &[]).layout(&[]).is_empty());
        assert!(nets.take_warnings().is_empty());
    }

    #[test]
    fn after_the_limit_no_network_runs() {
        let (raster, words) = page();
        let mut nets = Nets::new(&models(), &Drafters::ALL, 1);
        nets.set_limit(Some(TimeLimit::start(std::time::Duration::ZERO, 1)));
        assert!(nets.layout_maps(&raster, &words).is_none() && nets.detect(&raster).is_none());
        assert!(nets.read(std::slice::from_ref(&raster)).is_none() && nets.table(&raster).is_none());
        assert_eq!(nets.take_stats(), NetStats::default());
        assert!(nets.take_warnings().is_empty());
    }

    #[test]
    fn pictures_too_small_for_a_letter_cost_no_run() {
        let mut nets = Nets::new(&models(), &Drafters::ALL, 1);
        let raster =
            Raster { width: 300, height: 5, rgb: (0..300 * 5 * 3).map(|v| (v * 89) as u8).collect() };
        assert!(nets.layout_maps(&raster, &[]).is_none() && nets.detect(&raster).is_none());
        assert_eq!(nets.take_stats(), NetStats::default());
    }

    #[test]
    fn lines_are_given_up_between_two_runs_of_the_network() {
        let (raster, _) = page();
        let mut nets = Nets::new(&models(), &Drafters::ALL, 1);
        let late = TimeLimit::start(std::time::Duration::ZERO, 1);
        assert!(late.hold(|| nets.read(std::slice::from_ref(&raster))).is_none());
        assert!(nets.read(std::slice::from_ref(&raster)).is_some(), "the next page is read");
    }

    #[test]
    fn disabled_networks_are_not_looked_for() {
        let mut nets = Nets::new(Path::new("/nonexistent"), &Drafters::NONE, 1);
        assert!(nets.detect(&Raster::filled(64, 64, [255; 3])).is_none());
        assert!(nets.take_warnings().is_empty());
        assert_eq!(nets.take_stats(), NetStats::default());
    }

    #[test]
    fn one_run_of_the_layout_network_serves_every_look() {
        let (raster, words) = page();
        let mut nets = Nets::new(&models(), &Drafters::ALL, 1);
        let mut bound = BoundNets::new(&mut nets, &raster, &words);
        let text = hull(words.iter().map(|w| w.bbox)).unwrap();
        let seen = bound.layout(&[]);
        assert!(seen.iter().any(|r| r.bbox.overlap_of_smaller(&text) > 0.9), "{seen:?}");
        assert!(bound.layout(&[Kind::Text]).iter().all(|r| r.kind != Kind::Text));
        assert_eq!(nets.take_stats().layout.calls, 1);
    }

    #[test]
    fn a_drawn_grid_is_read_as_cells_of_the_page() {
        let mut raster = Raster::filled(900, 500, [255; 3]);
        let (left, top) = (100, 100);
        for row in 0..3 {
            for (column, text) in ["HEAD", "CELL", "LAST"].into_iter().enumerate() {
                draw(&mut raster, text, left + 40 + column * 200, top + 36 + row * 90);
            }
        }
        let mut fill = |x: std::ops::Range<usize>, y: std::ops::Range<usize>| {
            for y in y {
                raster.rgb[(y * 900 + x.start) * 3..(y * 900 + x.end) * 3].fill(0);
            }
        };
        for k in 0..4 {
            fill(left..left + 600, top + k * 90..top + k * 90 + 2);
            fill(left + k * 200..left + k * 200 + 2, top..top + 270);
        }
        let mut nets = Nets::new(&models(), &Drafters::ALL, 1);
        let mut bound = BoundNets::new(&mut nets, &raster, &[]);
        let area = Rect::new(90.0, 90.0, 710.0, 380.0);
        let rules = bound.picture_rules(area);
        let long = |rules: &[(f32, f32, f32)]| rules.iter().filter(|r| r.1 - r.0 > 200.0).count();
        assert_eq!((long(&rules.horizontal), long(&rules.vertical)), (4, 4));
        let reading = bound.table(area).unwrap();
        let places: Vec<_> = reading.cells.iter().map(|c| (c.row, c.col)).collect();
        assert_eq!(places, (0..9).map(|k| (k / 3, k % 3)).collect::<Vec<_>>());
        let middle = reading.cells[4].bbox;
        assert!(middle.iou(&Rect::new(300.0, 190.0, 500.0, 280.0)) > 0.3, "{middle:?}");
    }
}
