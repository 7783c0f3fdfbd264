//! The two graphs that run once a page in packs that read a picture and a prompt.

use std::path::{Path, PathBuf};

use ort::session::Session;

use super::contract::{Expected, F32, I64, Inputs, expected, failed, graph_name, open, values, view};
use super::prefix::{PrefixGraphs, Propagation, positions};
use crate::graphs::manifest::{PackError, Preprocessing};
use crate::graphs::runtime::SessionOptions;
use crate::graphs::{Dims, GraphError, Prefix};
use crate::vision::native::Patches;
use crate::vision::picture::{Picture, Planes, Tiles};
use crate::vision::prompt::PromptTokens;

/// The vision graph: tiles or patches -> features.
pub struct PictureGraph {
    session: Session,
    name: String,
    hidden: usize,
}

/// Visual features of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Features {
    /// The features that stand in the prompt, then those that prefill adds after its first layers.
    pub groups: usize,
    pub count: usize,
    /// `[groups, count, hidden]`
    pub values: Vec<f32>,
}

/// The prefill graph, whole or in two parts: prompt and features -> prefix.
pub struct PromptGraph {
    session: Session,
    name: String,
    graphs: PrefixGraphs,
}

impl std::fmt::Debug for PictureGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PictureGraph({})", self.name)
    }
}

impl std::fmt::Debug for PromptGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PromptGraph({}, {:?})", self.name, self.graphs.dims)
    }
}

fn features(hidden: usize) -> Expected {
    expected("features", F32, &[None, None, Some(hidden)])
}

/// What the vision graph of such a pack reads.
fn inputs(preprocessing: &Preprocessing) -> Vec<Expected> {
    let tiles = |side: usize| vec![expected("pixels", F32, &[None, Some(3), Some(side), Some(side)])];
    match preprocessing {
        Preprocessing::FixedGrid(_) => Vec::new(),
        Preprocessing::AspectTiles(rule) => tiles(rule.tile),
        Preprocessing::CappedTiles(rule) => tiles(rule.tile),
        Preprocessing::NativeGrid(rule) => {
            let mut list = vec![
                expected("patches", F32, &[None, Some(3), Some(rule.patch), Some(rule.patch)]),
                expected("places", I64, &[None, Some(2)]),
            ];
            if rule.window > 0 {
                list.push(expected("windows", I64, &[None, Some(rule.window * rule.window)]));
                list.push(expected("windows_back", I64, &[None]));
            }
            if rule.place_side > 0 {
                list.push(expected("learnt_places", I64, &[None, Some(4)]));
                list.push(expected("learnt_weights", F32, &[None, Some(4)]));
            }
            list
        }
    }
}

impl PictureGraph {
    /// Loads the graph at `path`; `hidden` is the decoder's width.
    pub fn load(
        path: &Path,
        preprocessing: &Preprocessing,
        hidden: usize,
        options: impl Into<SessionOptions>,
    ) -> Result<Self, PackError> {
        let session = open(path, options.into(), &inputs(preprocessing), &[features(hidden)])?;
        Ok(PictureGraph { session, name: graph_name(path), hidden })
    }

    /// Features of a page. Tiles run a few at a time.
    pub fn run(&mut self, picture: &Picture) -> Result<Features, GraphError> {
        match &picture.planes {
            Planes::Tiles(tiles) => self.tiles(tiles),
            Planes::Patches(patches) => {
                let feed = patch_inputs(patches).map_err(|e| failed(&self.name, e))?;
                self.call(feed)
            }
        }
    }

    fn tiles(&mut self, tiles: &Tiles) -> Result<Features, GraphError> {
        let size = 3 * tiles.side * tiles.side;
        let mut all = Features { groups: 1, count: 0, values: Vec::new() };
        for part in tiles.values.chunks(size * tiles.per_call.max(1)) {
            let shape = vec![part.len() / size, 3, tiles.side, tiles.side];
            let pixels = view("pixels", part, shape).map_err(|e| failed(&self.name, e))?;
            let features = self.call(vec![pixels])?;
            if features.groups != 1 {
                return Err(failed(&self.name, "tiles have one group of features"));
            }
            all.count += features.count;
            all.values.extend(features.values);
        }
        Ok(all)
    }

    fn call(&mut self, feed: Inputs<'_>) -> Result<Features, GraphError> {
        let outputs = self.session.run(feed).map_err(|e| failed(&self.name, e))?;
        let shape =
            outputs.get("features").and_then(|value| value.dtype().tensor_shape().map(|s| s.to_vec()));
        let values: Vec<f32> = values(&outputs, "features").map_err(|e| failed(&self.name, e))?;
        match shape.as_deref() {
            Some(&[groups, count, hidden]) if hidden == self.hidden as i64 => {
                let size = |number: i64| usize::try_from(number).unwrap_or(0);
                Ok(Features { groups: size(groups), count: size(count), values })
            }
            other => Err(failed(&self.name, format!("features have the shape {other:?}"))),
        }
    }
}

fn patch_inputs(patches: &Patches) -> Result<Inputs<'_>, String> {
    let count = patches.count;
    let mut feed = vec![
        view("patches", &patches.values, vec![count, 3, patches.side, patches.side])?,
        view("places", &patches.places, vec![count, 2])?,
    ];
    if let Some(windows) = &patches.windows {
        let shape = vec![windows.patches.len() / windows.size.max(1), windows.size];
        feed.push(view("windows", &windows.patches, shape)?);
        feed.push(view("windows_back", &windows.back, vec![count])?);
    }
    if let Some(stretch) = &patches.stretch {
        feed.push(view("learnt_places", &stretch.places, vec![count, 4])?);
        feed.push(view("learnt_weights", &stretch.weights, vec![count, 4])?);
    }
    Ok(feed)
}

impl PromptGraph {
    /// Loads the graph at `path` as `options` say and checks it against `dims`; `upper`: the part of the layers above it, and the
    /// first of them.
    pub fn load(
        path: &Path,
        upper: Option<(PathBuf, usize)>,
        dims: Dims,
        options: impl Into<SessionOptions>,
    ) -> Result<Self, PackError> {
        let options = options.into();
        let graphs = PrefixGraphs::load(upper, dims, options)?;
        let inputs = [
            expected("tokens", I64, &[None]),
            expected("visual", I64, &[None]),
            features(dims.hidden),
            positions(dims),
        ];
        let session = open(path, options, &inputs, &graphs.outputs())?;
        Ok(PromptGraph { session, name: graph_name(path), graphs })
    }

    /// Keys and values of a prompt with its picture.
    pub fn run(
        &mut self,
        prompt: &PromptTokens,
        features: &Features,
        propagation: Propagation<'_>,
    ) -> Result<Prefix, GraphError> {
        if prompt.features != features.count {
            let message = format!(
                "the prompt has places for {} features, the vision graph gave {}",
                prompt.features, features.count
            );
            return Err(failed(&self.name, message));
        }
        let (len, dims) = (prompt.tokens.len(), self.graphs.dims);
        let fail = |message: String| failed(&self.name, message);
        let shape = vec![features.groups, features.count, dims.hidden];
        let feed = vec![
            view("tokens", &prompt.tokens, vec![len]).map_err(fail)?,
            view("visual", &prompt.visual, vec![len]).map_err(fail)?,
            view("features", &features.values, shape).map_err(fail)?,
            view("positions", &prompt.positions, vec![1, len, dims.position_parts]).map_err(fail)?,
        ];
        let outputs = self.session.run(feed).map_err(|e| failed(&self.name, e))?;
        let prefix = self.graphs.prefix(&self.name, &outputs, (len, &prompt.positions), propagation)?;
        Ok(Prefix { next_order: prompt.next_order, ..prefix })
    }
}
