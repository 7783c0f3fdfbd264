//! The two graphs that run once a page: vision (ink -> features and glyph readings) and prefill (those at the visual tokens -> prefix).

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use ort::session::Session;
use ort::value::DynValue;

use super::contract::{Expected, F32, I64, expected, failed, graph_name, open, view};
use super::prefix::{PrefixGraphs, Propagation, positions};
use crate::graphs::manifest::{CharacterTokens, PackError};
use crate::graphs::runtime::SessionOptions;
use crate::graphs::{Dims, GraphError, Prefix};
use crate::vision::visual_tokens::VisualTokens;
use crate::vision::{CellIndex, VisionInput};

/// The vision graph of a `fixed-grid` pack.
pub struct VisionGraph {
    session: Session,
    name: String,
}

/// What the vision graph says of a page. Stays in the runtime's memory; prefill reads it from there.
pub struct VisionOutput {
    features: DynValue,
    glyphs: DynValue,
}

/// Probabilities of characters on a dense grid of slots.
#[derive(Clone, Copy, Debug)]
pub struct GlyphMap<'a> {
    /// Class 0 is "none", class `c` the token `c - 1`.
    pub classes: usize,
    /// Slots of 8 px.
    pub rows: usize,
    /// Slots of 4 px.
    pub columns: usize,
    /// `[classes, rows, columns]`
    pub probabilities: &'a [f32],
}

/// The prefill graph of a `fixed-grid` pack, whole or in two parts.
pub struct PrefillGraph {
    session: Session,
    name: String,
    graphs: PrefixGraphs,
    /// `None`: the visual tokens are the cells with ink.
    characters: Option<CharacterTokens>,
}

impl std::fmt::Debug for VisionGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VisionGraph({})", self.name)
    }
}

impl std::fmt::Debug for VisionOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VisionOutput")
    }
}

impl std::fmt::Debug for PrefillGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PrefillGraph({}, {:?})", self.name, self.graphs.dims)
    }
}

/// `features [1, C, h, w]` and `glyphs [1, G, H/8, W/4]`: outputs of the one graph, inputs of the other.
fn map_tensors() -> [Expected; 2] {
    [
        expected("features", F32, &[Some(1), None, None, None]),
        expected("glyphs", F32, &[Some(1), None, None, None]),
    ]
}

impl VisionGraph {
    /// Loads the graph at `path` as `options` say.
    pub fn load(path: &Path, options: impl Into<SessionOptions>) -> Result<Self, PackError> {
        let inputs = [expected("ink", F32, &[Some(1), Some(1), None, None])];
        Ok(VisionGraph {
            session: open(path, options.into(), &inputs, &map_tensors())?,
            name: graph_name(path),
        })
    }

    pub fn run(&mut self, input: &VisionInput) -> Result<VisionOutput, GraphError> {
        let fail = |message: String| failed(&self.name, message);
        let ink = view("ink", &input.ink, vec![1, 1, input.height, input.width]).map_err(fail)?;
        let mut outputs = self.session.run(vec![ink]).map_err(|e| failed(&self.name, e))?;
        let mut take = |key: &str| outputs.remove(key).ok_or_else(|| fail(format!("no output `{key}`")));
        Ok(VisionOutput { features: take("features")?, glyphs: take("glyphs")? })
    }
}

impl VisionOutput {
    /// The dense character readings; `None` if the graph gave something else than four axes.
    pub fn glyphs(&self) -> Option<GlyphMap<'_>> {
        let (shape, probabilities) = self.glyphs.try_extract_tensor::<f32>().ok()?;
        match **shape {
            [_, classes, rows, columns] => Some(GlyphMap {
                classes: usize::try_from(classes).ok()?,
                rows: usize::try_from(rows).ok()?,
                columns: usize::try_from(columns).ok()?,
                probabilities,
            }),
            _ => None,
        }
    }
}

impl PrefillGraph {
    /// Loads the graph at `path` as `options` say and checks it against `dims`; `upper`: the part of the layers above it, and the
    /// first of them. `characters`: whether those are the visual tokens, or else the cells with ink.
    pub fn load(
        path: &Path,
        upper: Option<(PathBuf, usize)>,
        dims: Dims,
        characters: Option<CharacterTokens>,
        options: impl Into<SessionOptions>,
    ) -> Result<Self, PackError> {
        let options = options.into();
        let graphs = PrefixGraphs::load(upper, dims, options)?;
        let [features, glyphs] = map_tensors();
        let mut inputs = vec![features, expected("cells", I64, &[None, Some(2)]), positions(dims)];
        match characters {
            Some(_) => inputs.extend([
                expected("classes", I64, &[None, Some(3)]),
                expected("facts", F32, &[None, Some(3)]),
            ]),
            None => inputs.push(glyphs),
        }
        let session = open(path, options, &inputs, &graphs.outputs())?;
        Ok(PrefillGraph { session, name: graph_name(path), graphs, characters })
    }

    /// The page's visual tokens, by what the vision graph says of it.
    pub fn tokens(&self, vision: &VisionOutput, input: &VisionInput) -> Result<VisualTokens, GraphError> {
        let Some(options) = self.characters else { return Ok(VisualTokens::of_cells(input)) };
        let map = vision.glyphs().ok_or_else(|| failed(&self.name, "`glyphs` has not four axes"))?;
        Ok(VisualTokens::of_characters(&map, input, options))
    }

    /// Keys and values of the page's visual tokens. A page without ink has an empty prefix; the graph is not called.
    pub fn run(
        &mut self,
        vision: &VisionOutput,
        tokens: &VisualTokens,
        propagation: Propagation<'_>,
    ) -> Result<Prefix, GraphError> {
        let (len, dims) = (tokens.cells.len(), self.graphs.dims);
        if len == 0 {
            let none = vec![Vec::new(); dims.layers];
            return Ok(Prefix { keys: none.clone(), values: none, ..Prefix::default() });
        }
        let index = |&CellIndex { row, column }: &CellIndex| [row as i64, column as i64];
        let cells: Vec<i64> = tokens.cells.iter().flat_map(index).collect();
        let positions = tokens.positions(dims.position_parts);
        let fail = |message: String| failed(&self.name, message);
        let mut feed = vec![
            (Cow::Borrowed("features"), (&vision.features).into()),
            view("cells", &cells, vec![len, 2]).map_err(fail)?,
            view("positions", &positions, vec![1, len, dims.position_parts]).map_err(fail)?,
        ];
        if self.characters.is_some() {
            feed.push(view("classes", &tokens.classes, vec![len, 3]).map_err(fail)?);
            feed.push(view("facts", &tokens.facts, vec![len, 3]).map_err(fail)?);
        } else {
            feed.push((Cow::Borrowed("glyphs"), (&vision.glyphs).into()));
        }
        let outputs = self.session.run(feed).map_err(|e| failed(&self.name, e))?;
        let prefix = self.graphs.prefix(&self.name, &outputs, (len, &positions), propagation)?;
        Ok(Prefix { centres: tokens.centres.clone(), ..prefix })
    }
}
