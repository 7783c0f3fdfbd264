//! From a page's raster to its prefix: what is made of the pixels, and the graphs that run before decoding, in the two forms
//! that packs have.

use std::collections::BTreeMap;

use super::{DraftedPage, ModelError};
use crate::drafts::clock::Clock;
use crate::graphs::manifest::{FixedGrid, MANIFEST_FILE, PackError, Preprocessing};
use crate::graphs::onnx::{PictureGraph, PrefillGraph, PromptGraph, Propagation, VisionGraph};
use crate::graphs::pack::Pack;
use crate::graphs::runtime::SessionOptions;
use crate::graphs::{GraphError, Prefix};
use crate::vision::picture::{Picture, picture};
use crate::vision::prompt::{PromptTokens, Prompter};
use crate::vision::{PixelMapping, VisionInput, first_mapping, fixed_grid};

/// How a page becomes the graphs' input.
#[derive(Debug)]
pub(super) enum Preparation {
    /// Gray cells with ink.
    Cells(FixedGrid),
    /// A coloured picture within a prompt.
    Picture(Box<Prompter>),
}

/// Sessions of the vision and prefill graphs.
#[derive(Debug)]
pub(super) enum Sight {
    Cells { vision: VisionGraph, prefill: PrefillGraph },
    Picture { vision: PictureGraph, prefill: PromptGraph },
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
    pub(super) fn mapping(&self) -> PixelMapping {
        match self {
            PageInput::Cells(input) => input.mapping,
            PageInput::Picture(input) => input.mapping,
        }
    }

    pub(super) fn visual_tokens(&self) -> usize {
        match self {
            PageInput::Cells(input) => input.cells.len(),
            PageInput::Picture(input) => input.prompt.features,
        }
    }
}

impl Preparation {
    /// As the manifest of `pack` says.
    pub(super) fn new(pack: &Pack) -> Result<Preparation, PackError> {
        let manifest = &pack.manifest;
        if let Preprocessing::FixedGrid(grid) = &manifest.preprocessing {
            return Ok(Preparation::Cells(*grid));
        }
        let fault =
            |(field, message)| PackError::Field { path: pack.dir.join(MANIFEST_FILE), field, message };
        let text = manifest.prompt.as_ref();
        let text = text.ok_or_else(|| fault(("prompt".into(), "is missing".into())))?;
        let trunk_prompt = crate::decode::protocol::Protocol::trunk_prompt(&*pack.grammar);
        let (rule, parts) = (manifest.protocol.position_rule, manifest.dims.position_parts);
        let prompter =
            Prompter::new(text, &pack.grammar.vocabulary, &trunk_prompt, rule, parts).map_err(fault)?;
        Ok(Preparation::Picture(Box::new(prompter)))
    }

    /// The mapping that the page's input will most likely have, without a look at its pixels. Whether a draft stands does not
    /// depend on the scale.
    pub(super) fn first_mapping(&self, page: &DraftedPage<'_>, pack: &Pack) -> PixelMapping {
        match self {
            Preparation::Cells(grid) => first_mapping(page.raster, page.words, page.dpi, grid),
            Preparation::Picture(_) => {
                let scale = |side: usize| pack.grammar.grid() as f32 / side.max(1) as f32;
                PixelMapping { scale_x: scale(page.raster.width), scale_y: scale(page.raster.height) }
            }
        }
    }

    /// The page as the graphs read it; `None` for a page without anything to see.
    pub(super) fn input(&self, page: &DraftedPage<'_>, pack: &Pack) -> Result<Option<PageInput>, ModelError> {
        match self {
            Preparation::Cells(grid) => {
                let input = fixed_grid(page.raster, page.words, page.dpi, grid);
                Ok((!input.cells.is_empty()).then_some(PageInput::Cells(input)))
            }
            Preparation::Picture(prompter) => {
                let Some(picture) = picture(page.raster, &pack.manifest.preprocessing) else {
                    return Ok(None);
                };
                let prompt = prompter
                    .prompt(picture.layout, &pack.grammar.vocabulary)
                    .map_err(|message| GraphError { graph: "tokenizer".into(), message })?;
                let mapping = self.first_mapping(page, pack);
                Ok(Some(PageInput::Picture(Box::new(PictureInput { picture, prompt, mapping }))))
            }
        }
    }
}

/// What the vision graph made of a page.
pub(super) enum Seen {
    Cells(crate::graphs::onnx::VisionOutput),
    Picture(crate::graphs::onnx::Features),
}

impl Sight {
    /// Loads the sessions of `pack`.
    pub(super) fn load(pack: &Pack, options: SessionOptions) -> Result<Sight, PackError> {
        Ok(match &pack.manifest.preprocessing {
            Preprocessing::FixedGrid(_) => {
                Sight::Cells { vision: pack.vision_graph(options)?, prefill: pack.prefill_graph(options)? }
            }
            _ => {
                Sight::Picture { vision: pack.picture_graph(options)?, prefill: pack.prompt_graph(options)? }
            }
        })
    }

    /// Runs the vision graph.
    pub(super) fn look(&mut self, input: &PageInput) -> Result<Seen, ModelError> {
        match (self, input) {
            (Sight::Cells { vision, .. }, PageInput::Cells(input)) => Ok(Seen::Cells(vision.run(input)?)),
            (Sight::Picture { vision, .. }, PageInput::Picture(input)) => {
                Ok(Seen::Picture(vision.run(&input.picture)?))
            }
            _ => Err(other_pack()),
        }
    }

    /// Runs the prefill graph. `propagation` chooses what reaches its upper layers, where the pack has it in two parts.
    pub(super) fn prefill(
        &mut self,
        input: &PageInput,
        seen: &Seen,
        propagation: Propagation<'_>,
    ) -> Result<Prefix, ModelError> {
        match (self, input, seen) {
            (Sight::Cells { prefill, .. }, PageInput::Cells(input), Seen::Cells(seen)) => {
                Ok(prefill.run(seen, input, propagation)?)
            }
            (Sight::Picture { prefill, .. }, PageInput::Picture(input), Seen::Picture(seen)) => {
                Ok(prefill.run(&input.prompt, seen)?)
            }
            _ => Err(other_pack()),
        }
    }

    /// Keys and values of the page; `seconds` gets those of the stages.
    pub(super) fn prefix(
        &mut self,
        input: &PageInput,
        propagation: Propagation<'_>,
        threads: usize,
        seconds: &mut BTreeMap<&'static str, f64>,
    ) -> Result<Prefix, ModelError> {
        let clock = Clock::start(threads);
        let seen = self.look(input)?;
        seconds.insert("vision", clock.seconds());
        let clock = Clock::start(threads);
        let prefix = self.prefill(input, &seen, propagation)?;
        seconds.insert("prefill", clock.seconds());
        Ok(prefix)
    }
}

fn other_pack() -> ModelError {
    GraphError { graph: "vision".into(), message: "the page was made for another pack".into() }.into()
}
