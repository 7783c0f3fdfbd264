//! A model over one page: drafted regions go in, the regions that the model verified (or wrote) come out.

mod drafts;
mod sight;

use std::collections::BTreeMap;

use crate::clock::TimeLimit;
use crate::decode::fixation::FixationSettings;
use crate::decode::protocol::Protocol;
use crate::decode::retention::RetentionSettings;
use crate::decode::{
    AcceptanceRule, DecodeError, DecodeStats, Done, GuessSettings, LoopSettings, PageDecoding, PageDrafts,
    PageJob, Pages,
};
use crate::graphs::manifest::{MANIFEST_FILE, PackError};
use crate::graphs::onnx::OnnxDecodeGraph;
use crate::graphs::pack::Pack;
use crate::graphs::runtime::SessionOptions;
use crate::graphs::{GraphError, Prefix, TokenId};
use crate::page::{Region, StopReason, Word};
use crate::raster::Raster;
use crate::settings::{Acceptance, DecodeSettings};
use crate::tokens::Grammar;
use crate::tokens::pages::{PageText, read_page};
use crate::vision::PixelMapping;

use drafts::{Drafts, unverified};
use sight::{Propagation, Sight, SightGraphs};

pub use sight::{PageInput, PictureInput};

/// A pack's sessions, one set per worker.
#[derive(Debug)]
pub struct Model {
    pack: Pack,
    sight: Sight,
    /// Loaded for the first page that needs them: most pages of drafts that stand need none.
    sessions: Option<Sessions>,
    options: SessionOptions,
    settings: LoopSettings,
    /// Share of the visual tokens that goes on to the upper layers.
    tsp: f32,
    /// The token budget was given on the command line: drafts are cut by it too.
    budget_is_users: bool,
    /// Streams without a draft are run.
    reads_undrafted: bool,
}

/// A pack's graphs, ready to run.
#[derive(Debug)]
struct Sessions {
    sight: SightGraphs,
    decode: OnnxDecodeGraph,
}

/// What the model made of a page.
#[derive(Debug)]
pub struct ModelPage {
    /// In reading order; drafted regions that the trunk did not claim come last.
    pub regions: Vec<Region>,
    /// Why the trunk stopped, if not at its end.
    pub trunk_cut: Option<StopReason>,
    pub stats: DecodeStats,
    /// CPU seconds of `vision`, `prefill` and `decode`.
    pub seconds: BTreeMap<&'static str, f64>,
    /// Visual tokens of the page; 0 where no graph had to run.
    pub visual_tokens: usize,
    /// Regions whose draft stands whatever the model says; it was not asked.
    pub settled: usize,
    /// What the model says about the page itself.
    pub notes: Vec<String>,
}

/// Why the model could not read a page.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Pack(#[from] PackError),
}

/// A page and what was drafted for it.
#[derive(Clone, Copy, Debug)]
pub struct DraftedPage<'a> {
    pub raster: &'a Raster,
    /// For the scale of the model's raster.
    pub words: &'a [Word],
    /// Pixels per inch of `raster`.
    pub dpi: f32,
    /// In reading order.
    pub regions: &'a [Region],
    /// When it is over the page is given up.
    pub limit: Option<TimeLimit>,
}

/// A page that a model has looked at.
pub enum Begun {
    /// No graph has to run.
    Read(Box<ModelPage>),
    /// It is to be decoded.
    Open(Box<OpenPage>, Box<PageJob>),
}

/// A page while it is decoded: what leads back from its decoding to its regions.
pub struct OpenPage {
    drafts: Drafts,
    seconds: BTreeMap<&'static str, f64>,
    visual_tokens: usize,
}

/// A page up to its decoding: what its decoding starts from.
#[derive(Clone, Debug)]
pub struct PreparedPage {
    pub prefix: Prefix,
    /// Nothing is settled: every stream runs.
    pub drafts: PageDrafts,
    /// What the prefix was made from.
    pub input: PageInput,
}

impl ModelPage {
    /// A page for which no graph ran.
    fn unread(regions: &[Region]) -> ModelPage {
        ModelPage {
            regions: regions.iter().map(unverified).collect(),
            trunk_cut: None,
            stats: DecodeStats::default(),
            seconds: BTreeMap::new(),
            visual_tokens: 0,
            settled: regions.len(),
            notes: Vec::new(),
        }
    }
}

impl Model {
    /// A model from `pack`, whose sessions will be as `options` say. `kv_bytes`: most bytes of a page's keys and values.
    pub fn load(
        pack: Pack,
        decode: &DecodeSettings,
        kv_bytes: Option<usize>,
        options: SessionOptions,
    ) -> Result<Model, PackError> {
        let table = &pack.manifest.acceptance;
        let acceptance = match decode.acceptance.unwrap_or_else(|| table.mode()) {
            Acceptance::Lossless => AcceptanceRule::Lossless,
            Acceptance::Trust => AcceptanceRule::Trust(table.thresholds()),
        };
        let settings = LoopSettings {
            acceptance,
            max_tokens: decode.max_tokens.unwrap_or(pack.manifest.decode.max_tokens),
            max_trunk_tokens: pack.manifest.decode.max_trunk_tokens,
            max_branches: decode.max_branches,
            fixation: fixation(&pack, decode)?,
            kv_budget_bytes: kv_bytes.unwrap_or(LoopSettings::default().kv_budget_bytes),
            retention: retention(&pack, decode)?,
            guesses: GuessSettings { head: decode.drafters.mtp, ngram: decode.drafters.ngram },
            max_feed: pack.manifest.decode.buckets.last().copied().unwrap_or(1),
            ..LoopSettings::default()
        };
        if decode.tsp < 1.0 && pack.manifest.extras.tsp_layer.is_none() {
            return Err(missing_extra(&pack, "tsp_layer", "--tsp needs a prefill graph in two parts"));
        }
        Ok(Model {
            sight: Sight::new(&pack)?,
            sessions: None,
            options,
            reads_undrafted: pack.manifest.decode.reads_undrafted || !decode.drafters.read_words(),
            pack,
            settings,
            tsp: decode.tsp,
            budget_is_users: decode.max_tokens.is_some(),
        })
    }

    fn sessions(&mut self) -> Result<&mut Sessions, PackError> {
        if self.sessions.is_none() {
            self.sessions = Some(Sessions {
                sight: SightGraphs::load(&self.pack, self.options)?,
                decode: self.pack.decode_graph(self.options)?,
            });
        }
        Ok(self.sessions.as_mut().expect("they were just loaded"))
    }

    pub fn pack(&self) -> &Pack {
        &self.pack
    }

    /// The decoder itself, for measurements.
    pub fn decoder(&mut self) -> Result<&mut OnnxDecodeGraph, PackError> {
        Ok(&mut self.sessions()?.decode)
    }

    pub fn loop_settings(&self) -> &LoopSettings {
        &self.settings
    }

    /// Everything before a page's decoding. `None` for a page without ink.
    pub fn prepare(&mut self, page: &DraftedPage<'_>) -> Result<Option<PreparedPage>, ModelError> {
        let Some(input) = self.sight.input(page, &self.pack)? else { return Ok(None) };
        let mut drafts = Drafts::new(page.regions, &self.pack, input.mapping(), &self.settings.acceptance);
        drafts.settled.clear();
        let prefix = self.prefix(&input, self.tsp, &mut BTreeMap::new())?;
        Ok(Some(PreparedPage { prefix, drafts: drafts.for_loop(), input }))
    }

    /// The prefix of a page with the share `tsp` of its visual tokens in the upper layers; `seconds` gets those of the stages.
    pub fn prefix(
        &mut self,
        input: &PageInput,
        tsp: f32,
        seconds: &mut BTreeMap<&'static str, f64>,
    ) -> Result<Prefix, ModelError> {
        let mut prefixes = self.prefixes(input, &[tsp], seconds)?;
        Ok(prefixes.pop().expect("a prefix for each rate").0)
    }

    /// The prefix of a page at each of `rates`, with the seconds of its prefill, for measurements.
    pub fn prefills(&mut self, input: &PageInput, rates: &[f32]) -> Result<Vec<(Prefix, f64)>, ModelError> {
        self.prefixes(input, rates, &mut BTreeMap::new())
    }

    fn prefixes(
        &mut self,
        input: &PageInput,
        rates: &[f32],
        seconds: &mut BTreeMap<&'static str, f64>,
    ) -> Result<Vec<(Prefix, f64)>, ModelError> {
        let (threads, text_tail) = (self.options.threads, self.pack.manifest.extras.prefix_text);
        let propagation = Propagation { rates, text_tail };
        self.sessions()?.sight.prefixes(input, &propagation, threads, seconds)
    }

    /// Begins a page. Streams whose whole draft stands by the drafters' own confidence are not run: the model could not change them. A
    /// page of such streams alone runs no graph at all, nor does a page without ink.
    pub fn begin(&mut self, page: &DraftedPage<'_>) -> Result<Begun, ModelError> {
        // Whether a draft stands does not depend on the scale, which the pixels alone can settle.
        let mapping = self.sight.first_mapping(page, &self.pack);
        let mut drafts = self.drafts(page, mapping);
        let unseen = page.regions.is_empty() && !self.reads_undrafted;
        if unseen || drafts.all_settled(&self.pack, &self.settings.acceptance) {
            return Ok(Begun::Read(Box::new(ModelPage::unread(page.regions))));
        }
        let Some(input) = self.sight.input(page, &self.pack)? else {
            return Ok(Begun::Read(Box::new(ModelPage::unread(page.regions))));
        };
        if input.mapping() != mapping {
            drafts = self.drafts(page, input.mapping());
        }
        let mut seconds = BTreeMap::new();
        let prefix = self.prefix(&input, self.tsp, &mut seconds)?;
        let settings = LoopSettings { limit: page.limit, ..self.settings_for(&drafts) };
        let visual_tokens = input.visual_tokens(&prefix);
        let job = PageJob { prefix, drafts: drafts.for_loop(), settings };
        let open = OpenPage { drafts, seconds, visual_tokens };
        Ok(Begun::Open(Box::new(open), Box::new(job)))
    }

    /// Room for the pages that are decoded together.
    pub fn pages<'p, T>(&mut self, grammar: &'p Grammar, most: usize) -> Result<Pages<'p, T>, PackError> {
        let budget = self.settings.kv_budget_bytes;
        Ok(Pages::new(&self.sessions()?.decode, grammar, most, budget))
    }

    /// The next step of `pages`, which this model made.
    pub fn step<T>(&mut self, pages: &mut Pages<'_, T>) -> Vec<Done<T>> {
        pages.step(&mut self.sessions.as_mut().expect("pages need sessions to be made").decode)
    }

    /// What became of a page that was [begun](Self::begin) as `drafted` on `raster`: its regions as the model verified or wrote them.
    /// `seconds`: what its decoding took.
    pub fn end(
        &self,
        open: OpenPage,
        (drafted, raster): (&[Region], &Raster),
        decoding: PageDecoding,
        seconds: f64,
    ) -> ModelPage {
        let OpenPage { drafts, seconds: mut stages, visual_tokens } = open;
        let PageText { regions, notes } = if self.pack.grammar.form().forks() {
            PageText { regions: drafts.regions(drafted, &decoding, &self.pack), notes: Vec::new() }
        } else {
            written_page(&decoding, raster, &self.pack)
        };
        stages.insert("decode", seconds);
        let trunk_cut = (decoding.stop != StopReason::End).then_some(decoding.stop);
        ModelPage {
            regions,
            trunk_cut,
            stats: decoding.stats,
            seconds: stages,
            visual_tokens,
            settled: drafts.settled.len(),
            notes,
        }
    }

    /// The page's drafts at a scale, and which of them are settled.
    fn drafts(&self, page: &DraftedPage<'_>, mapping: PixelMapping) -> Drafts {
        let mut drafts = Drafts::new(page.regions, &self.pack, mapping, &self.settings.acceptance);
        if !self.reads_undrafted {
            drafts.settle_undrafted();
        }
        drafts
    }

    /// The manifest's budgets bound what the model writes, not what a drafter found on the page.
    fn settings_for(&self, drafts: &Drafts) -> LoopSettings {
        let longest = drafts.content.values().map(|draft| draft.tokens.len()).max().unwrap_or(0);
        let budget = if self.budget_is_users { 0 } else { longest + 1 };
        LoopSettings {
            max_tokens: self.settings.max_tokens.max(budget),
            max_trunk_tokens: self.settings.max_trunk_tokens.max(drafts.trunk.tokens.len() + 1),
            ..self.settings.clone()
        }
    }
}

/// The page of a model that writes it as one text.
fn written_page(decoding: &PageDecoding, raster: &Raster, pack: &Pack) -> PageText {
    let grammar = &pack.grammar;
    let prompt = grammar.trunk_prompt().len();
    let written = decoding.trunk.iter().skip(prompt).map(|token| token.id);
    let ids: Vec<TokenId> = written.take_while(|&id| !grammar.is_trunk_end(id)).collect();
    let text = grammar.vocabulary.decode(&ids).unwrap_or_default();
    let size = (raster.width as f32, raster.height as f32);
    read_page(&text, grammar.form(), size, grammar.grid(), decoding.stop)
}

/// `None` if it is off.
fn fixation(pack: &Pack, decode: &DecodeSettings) -> Result<Option<FixationSettings>, PackError> {
    if decode.fixation >= 1.0 {
        return Ok(None);
    }
    let extras = &pack.manifest.extras;
    let given = decode.focal_layers.as_deref().unwrap_or_default();
    let unknown = given.iter().any(|layer| !extras.focal_layers.contains(layer));
    if extras.focal_layers.is_empty() || unknown {
        let message = format!("fixation needs focal layers; the decode graph has {:?}", extras.focal_layers);
        return Err(missing_extra(pack, "focal_layers", &message));
    }
    Ok(Some(FixationSettings {
        focal_layers: decode.focal_layers.clone(),
        text_tail: extras.prefix_text,
        ..FixationSettings::new(decode.fixation)
    }))
}

/// `None` if it is off.
fn retention(pack: &Pack, decode: &DecodeSettings) -> Result<Option<RetentionSettings>, PackError> {
    if decode.retention >= 1.0 {
        return Ok(None);
    }
    if !pack.manifest.extras.saliency {
        return Err(missing_extra(
            pack,
            "saliency",
            "--retention needs a decode graph that returns saliency",
        ));
    }
    let text_tail = pack.manifest.extras.prefix_text;
    Ok(Some(RetentionSettings { text_tail, ..RetentionSettings::new(decode.retention) }))
}

/// The pack lacks what was asked for explicitly.
fn missing_extra(pack: &Pack, extra: &str, message: &str) -> PackError {
    let path = pack.dir.join(MANIFEST_FILE);
    PackError::Field { path, field: format!("extras.{extra}"), message: message.into() }
}

#[cfg(test)]
mod tests;
