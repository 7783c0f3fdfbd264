//! From a page's raster to its prefix: the graphs that run before decoding, in the two forms that packs have.

use std::collections::BTreeMap;

use super::{DraftedPage, ModelError};
use crate::drafts::clock::Clock;
use crate::graphs::manifest::{FixedGrid, MANIFEST_FILE, PackError, Preprocessing};
use crate::graphs::onnx::{PictureGraph, PrefillGraph, PromptGraph, VisionGraph};
use crate::graphs::pack::Pack;
use crate::graphs::runtime::SessionOptions;
use crate::graphs::{GraphError, Prefix};
use crate::vision::picture::{Picture, picture};
use crate::vision::prompt::{PromptTokens, Prompter};
use crate::vision::{PixelMapping, VisionInput, fixed_grid};

/// Sessions of the vision and prefill graphs.
#[derive(Debug)]
pub(super) enum Sight {
    /// Gray cells with ink.
    Cells { grid: FixedGrid, vision: VisionGraph, prefill: PrefillGraph },
    /// A coloured picture within a prompt.
    Picture { vision: PictureGraph, prefill: PromptGraph, prompter: Prompter },
}

/// A page as the graphs read it.
#[derive(Debug)]
pub(super) enum PageInput {
    Cells(VisionInput),
    Picture(Box<PictureInput>),
}

/// A page within its prompt.
#[derive(Debug)]
pub(super) struct PictureInput {
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

impl Sight {
    /// Loads the sessions of `pack`.
    pub(super) fn load(pack: &Pack, options: SessionOptions) -> Result<Sight, PackError> {
        let manifest = &pack.manifest;
        if let Preprocessing::FixedGrid(grid) = &manifest.preprocessing {
            let (vision, prefill) = (pack.vision_graph(options)?, pack.prefill_graph(options)?);
            return Ok(Sight::Cells { grid: *grid, vision, prefill });
        }
        let fault =
            |(field, message)| PackError::Field { path: pack.dir.join(MANIFEST_FILE), field, message };
        let text = manifest.prompt.as_ref();
        let text = text.ok_or_else(|| fault(("prompt".into(), "is missing".into())))?;
        let trunk_prompt = crate::decode::protocol::Protocol::trunk_prompt(&*pack.grammar);
        let (rule, parts) = (manifest.protocol.position_rule, manifest.dims.position_parts);
        let prompter =
            Prompter::new(text, &pack.grammar.vocabulary, &trunk_prompt, rule, parts).map_err(fault)?;
        Ok(Sight::Picture {
            vision: pack.picture_graph(options)?,
            prefill: pack.prompt_graph(options)?,
            prompter,
        })
    }

    /// The page as the graphs read it; `None` for a page without anything to see.
    pub(super) fn input(&self, page: &DraftedPage<'_>, pack: &Pack) -> Result<Option<PageInput>, ModelError> {
        match self {
            Sight::Cells { grid, .. } => {
                let input = fixed_grid(page.raster, page.words, page.dpi, grid);
                Ok((!input.cells.is_empty()).then_some(PageInput::Cells(input)))
            }
            Sight::Picture { prompter, .. } => {
                let Some(picture) = picture(page.raster, &pack.manifest.preprocessing) else {
                    return Ok(None);
                };
                let prompt = prompter
                    .prompt(picture.layout, &pack.grammar.vocabulary)
                    .map_err(|message| GraphError { graph: "tokenizer".into(), message })?;
                let grid = pack.grammar.grid() as f32;
                let scale = |side: usize| grid / side.max(1) as f32;
                let mapping =
                    PixelMapping { scale_x: scale(page.raster.width), scale_y: scale(page.raster.height) };
                Ok(Some(PageInput::Picture(Box::new(PictureInput { picture, prompt, mapping }))))
            }
        }
    }

    /// Keys and values of the page. Books the seconds since `clock` started and those of prefill.
    pub(super) fn prefix(
        &mut self,
        input: &PageInput,
        clock: &Clock,
        threads: usize,
        seconds: &mut BTreeMap<&'static str, f64>,
    ) -> Result<Prefix, ModelError> {
        let mut seen = |clock: &Clock, stage| seconds.insert(stage, clock.seconds());
        let prefix = match (self, input) {
            (Sight::Cells { vision, prefill, .. }, PageInput::Cells(input)) => {
                let features = vision.run(input)?;
                seen(clock, "vision");
                let clock = Clock::start(threads);
                let prefix = prefill.run(&features, input)?;
                seen(&clock, "prefill");
                prefix
            }
            (Sight::Picture { vision, prefill, .. }, PageInput::Picture(input)) => {
                let features = vision.run(&input.picture)?;
                seen(clock, "vision");
                let clock = Clock::start(threads);
                let prefix = prefill.run(&input.prompt, &features)?;
                seen(&clock, "prefill");
                prefix
            }
            _ => {
                let message = "the page was made for another pack".into();
                return Err(GraphError { graph: "vision".into(), message }.into());
            }
        };
        Ok(prefix)
    }
}
