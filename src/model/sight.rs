//! From a page's raster to its prefix: the graphs that run before decoding, in the two forms that packs have.

use std::collections::BTreeMap;

use super::{DraftedPage, ModelError};
use crate::clock::Clock;
use crate::decode::protocol::Protocol;
use crate::decode::retention::propagated;
use crate::graphs::manifest::{FixedGrid, MANIFEST_FILE, PackError, Preprocessing};
use crate::graphs::onnx::{PictureGraph, PrefillGraph, PromptGraph, VisionGraph};
use crate::graphs::pack::Pack;
use crate::graphs::runtime::SessionOptions;
use crate::graphs::{GraphError, Prefix};
use crate::raster::Raster;
use crate::vision::picture::{Picture, picture};
use crate::vision::prompt::{PromptTokens, Prompter};
use crate::vision::{PixelMapping, VisionInput, first_mapping, fixed_grid};

/// How a pack looks at pages.
#[derive(Debug)]
pub(super) enum Sight {
    /// At gray cells with ink.
    Cells(FixedGrid),
    /// At a coloured picture within a prompt.
    Picture(Box<Prompter>),
}

/// A page as the graphs read it.
#[derive(Clone, Debug)]
pub enum PageInput {
    Cells(VisionInput),
    Picture(Box<PictureInput>),
}

/// A page within its prompt.
#[derive(Clone, Debug)]
pub struct PictureInput {
    picture: Picture,
    prompt: PromptTokens,
    /// Page pixels <-> the grid of the model's coordinates.
    mapping: PixelMapping,
}

impl PageInput {
    /// Page pixels <-> what the model's coordinates are measured in.
    pub fn mapping(&self) -> PixelMapping {
        match self {
            PageInput::Cells(input) => input.mapping,
            PageInput::Picture(input) => input.mapping,
        }
    }

    /// How many positions of the page's `prefix` are visual tokens.
    pub fn visual_tokens(&self, prefix: &Prefix) -> usize {
        match self {
            PageInput::Cells(_) => prefix.len,
            PageInput::Picture(input) => input.prompt.features,
        }
    }
}

impl Sight {
    /// How `pack` looks at pages. Loads no graph.
    pub(super) fn new(pack: &Pack) -> Result<Sight, PackError> {
        let manifest = &pack.manifest;
        if let Preprocessing::FixedGrid(grid) = &manifest.preprocessing {
            return Ok(Sight::Cells(*grid));
        }
        let fault =
            |(field, message)| PackError::Field { path: pack.dir.join(MANIFEST_FILE), field, message };
        let text = manifest.prompt.as_ref();
        let text = text.ok_or_else(|| fault(("prompt".into(), "is missing".into())))?;
        let (rule, parts) = (manifest.protocol.position_rule, manifest.dims.position_parts);
        let trunk_prompt = pack.grammar.trunk_prompt();
        let prompter = Prompter::new(text, &pack.grammar.vocabulary, &trunk_prompt, rule, parts);
        Ok(Sight::Picture(Box::new(prompter.map_err(fault)?)))
    }

    /// Page pixels <-> what the model's coordinates are measured in, as far as it can be told without the pixels.
    pub(super) fn first_mapping(&self, page: &DraftedPage<'_>, pack: &Pack) -> PixelMapping {
        match self {
            Sight::Cells(grid) => first_mapping(page.raster, page.words, page.dpi, grid),
            Sight::Picture(_) => grid_mapping(page.raster, pack.grammar.grid()),
        }
    }

    /// The page as the graphs read it; `None` for a page without anything to see.
    pub(super) fn input(&self, page: &DraftedPage<'_>, pack: &Pack) -> Result<Option<PageInput>, ModelError> {
        match self {
            Sight::Cells(grid) => {
                let input = fixed_grid(page.raster, page.words, page.dpi, grid);
                Ok((!input.cells.is_empty()).then_some(PageInput::Cells(input)))
            }
            Sight::Picture(prompter) => {
                let Some(picture) = picture(page.raster, &pack.manifest.preprocessing) else {
                    return Ok(None);
                };
                let prompt = prompter
                    .prompt(picture.layout, &pack.grammar.vocabulary)
                    .map_err(|message| GraphError { graph: "tokenizer".into(), message })?;
                let mapping = grid_mapping(page.raster, pack.grammar.grid());
                Ok(Some(PageInput::Picture(Box::new(PictureInput { picture, prompt, mapping }))))
            }
        }
    }
}

fn grid_mapping(raster: &Raster, grid: u32) -> PixelMapping {
    let scale = |side: usize| grid as f32 / side.max(1) as f32;
    PixelMapping { scale_x: scale(raster.width), scale_y: scale(raster.height) }
}

/// What of the page prefill carries to the upper layers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Propagation<'a> {
    /// Shares of the visual tokens, one prefix each.
    pub(super) rates: &'a [f32],
    /// Last positions that are text.
    pub(super) text_tail: usize,
}

/// Sessions of the vision and prefill graphs.
#[derive(Debug)]
pub(super) enum SightGraphs {
    Cells { vision: VisionGraph, prefill: PrefillGraph },
    Picture { vision: PictureGraph, prefill: PromptGraph },
}

impl SightGraphs {
    pub(super) fn load(pack: &Pack, options: SessionOptions) -> Result<SightGraphs, PackError> {
        Ok(match &pack.manifest.preprocessing {
            Preprocessing::FixedGrid(_) => SightGraphs::Cells {
                vision: pack.vision_graph(options)?,
                prefill: pack.prefill_graph(options)?,
            },
            _ => SightGraphs::Picture {
                vision: pack.picture_graph(options)?,
                prefill: pack.prompt_graph(options)?,
            },
        })
    }

    /// Keys and values of the page at each rate, with the seconds of its prefill. Books the seconds of the vision graph and of
    /// the last prefill.
    pub(super) fn prefixes(
        &mut self,
        input: &PageInput,
        propagation: &Propagation<'_>,
        threads: usize,
        seconds: &mut BTreeMap<&'static str, f64>,
    ) -> Result<Vec<(Prefix, f64)>, ModelError> {
        let clock = Clock::start(threads);
        let text_tail = propagation.text_tail;
        let mut out = Vec::new();
        match (self, input) {
            (SightGraphs::Cells { vision, prefill }, PageInput::Cells(input)) => {
                let features = vision.run(input)?;
                let tokens = prefill.tokens(&features, input)?;
                seconds.insert("vision", clock.seconds());
                for &rate in propagation.rates {
                    let clock = Clock::start(threads);
                    let kept = |saliency: &[f32], len| propagated(saliency, len, rate, text_tail);
                    out.push((prefill.run(&features, &tokens, &kept)?, clock.seconds()));
                }
            }
            (SightGraphs::Picture { vision, prefill }, PageInput::Picture(input)) => {
                let features = vision.run(&input.picture)?;
                seconds.insert("vision", clock.seconds());
                for &rate in propagation.rates {
                    let clock = Clock::start(threads);
                    let kept = |saliency: &[f32], len| propagated(saliency, len, rate, text_tail);
                    out.push((prefill.run(&input.prompt, &features, &kept)?, clock.seconds()));
                }
            }
            _ => {
                let message = "the page was made for another pack".into();
                return Err(GraphError { graph: "vision".into(), message }.into());
            }
        }
        seconds.extend(out.last().map(|(_, prefill)| ("prefill", *prefill)));
        Ok(out)
    }
}
