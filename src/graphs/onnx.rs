//! The pack's graphs as ONNX Runtime sessions. Inputs are views of the caller's memory: nothing is copied on the way in.
//!
//! At load every input and output is checked against the contract (names, element types, ranks, fixed sizes), so that a graph
//! that does not fit is an error before the first page.

mod contract;
mod head;
mod page;
mod picture;
mod prefix;
mod resident;

pub use head::MultiTokenHead;
pub use page::{GlyphMap, PrefillGraph, VisionGraph, VisionOutput};
pub use picture::{Features, PictureGraph, PromptGraph};
pub use prefix::Propagation;

use std::path::{Path, PathBuf};

use ort::session::{Session, SessionOutputs};

use self::contract::{
    Expected, F32, I64, Inputs, checked, expected, failed, first_axis_is_free, graph_name, layer_names,
    values, view,
};
use self::resident::{Place, Resident, place_of};
use super::manifest::PackError;
use super::runtime::{self, Profiling, SessionOptions};
use super::{DecodeGraph, Dims, GraphError, HeadDrafts, StepInput, StepOutput, TokenId};

/// The decode graph of a pack on the CPU, and its multi-token head if it has one.
pub struct OnnxDecodeGraph {
    session: Session,
    tensors: StepTensors,
    head: Option<MultiTokenHead>,
    /// Where its session keeps tensors, if that is not the caller's memory.
    place: Option<Place>,
    /// The prefix of the page there.
    resident: Option<Resident>,
}

/// What a decode graph returns beyond the contract's least.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepExtras {
    /// Layers whose scores it returns.
    pub focal_layers: Vec<usize>,
    /// It says where watched rows look.
    pub saliency: bool,
}

impl std::fmt::Debug for OnnxDecodeGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OnnxDecodeGraph({}, {:?})", self.tensors.graph, self.tensors.dims)
    }
}

impl OnnxDecodeGraph {
    /// Loads the graph at `path` as `options` say and checks it against `dims` and `extras`.
    pub fn load(
        path: &Path,
        dims: Dims,
        extras: &StepExtras,
        options: impl Into<SessionOptions>,
    ) -> Result<Self, PackError> {
        OnnxDecodeGraph::load_profiled(path, dims, extras, options.into(), None)
    }

    /// The same; with `profiling` its nodes are noted until [`Self::end_profiling`].
    pub fn load_profiled(
        path: &Path,
        dims: Dims,
        extras: &StepExtras,
        options: SessionOptions,
        profiling: Option<Profiling<'_>>,
    ) -> Result<Self, PackError> {
        let session = runtime::profiled_session(path, options, profiling)?;
        let (inputs, outputs) = (StepTensors::inputs(dims, extras), StepTensors::outputs(dims, extras));
        let session = checked(session, path, &inputs, &outputs)?;
        let returns_hidden = session.outputs().iter().any(|o| o.name() == "hidden");
        let joins_pages = first_axis_is_free(session.inputs(), "tokens");
        let tensors = StepTensors {
            joins_pages,
            ..StepTensors::new(graph_name(path), dims, returns_hidden, extras.clone())
        };
        Ok(OnnxDecodeGraph {
            tensors,
            session,
            head: None,
            place: place_of(options.provider),
            resident: None,
        })
    }

    /// Path of the profile.
    pub fn end_profiling(&mut self) -> Result<PathBuf, GraphError> {
        let ended = self.session.end_profiling().map_err(|e| failed(&self.tensors.graph, e))?;
        Ok(PathBuf::from(ended))
    }

    /// The same with the multi-token head `head`.
    pub fn with_head(self, head: Option<MultiTokenHead>) -> Self {
        OnnxDecodeGraph { head, ..self }
    }
}

impl DecodeGraph for OnnxDecodeGraph {
    fn dims(&self) -> Dims {
        self.tensors.dims
    }

    fn joins_pages(&self) -> bool {
        self.tensors.joins_pages
    }

    fn focal_layers(&self) -> &[usize] {
        &self.tensors.extras.focal_layers
    }

    fn has_saliency(&self) -> bool {
        self.tensors.extras.saliency
    }

    fn head_drafts(&self) -> usize {
        if self.tensors.returns_hidden { self.head.as_ref().map_or(0, MultiTokenHead::drafts) } else { 0 }
    }

    fn draft(&mut self, hidden: &[f32], tokens: &[TokenId]) -> Result<HeadDrafts, GraphError> {
        self.head.as_mut().map_or(Ok(HeadDrafts::default()), |head| head.run(hidden, tokens))
    }

    fn begin_page(&mut self) {
        self.resident = None;
    }

    fn step(&mut self, input: &StepInput<'_>) -> Result<StepOutput, GraphError> {
        let OnnxDecodeGraph { session, tensors, place, resident, .. } = self;
        let fail = |message: String| failed(&tensors.graph, message);
        tensors.check_layers(input).map_err(fail)?;
        let prefix_len: Vec<i64> = input.prefix_len.iter().map(|&len| len as i64).collect();
        // The prefixes of pages that share a step change only when a page comes or goes.
        let is_there = resident.as_ref().is_some_and(|r| input.pages == 1 || r.holds(input));
        if let (Some(place), false) = (&place, is_there)
            && input.prefix_capacity.iter().all(|&len| len > 0)
        {
            *resident = Some(Resident::new(input, tensors.dims, place).map_err(fail)?);
        }
        let feed = tensors.feed(input, &prefix_len, resident.as_ref()).map_err(fail)?;
        let outputs = session.run(feed).map_err(|e| failed(&tensors.graph, e))?;
        // Without a prefix there is nothing to look at, and ONNX Runtime's sum over it has no values.
        let focal = input.wants_focal && input.prefix_capacity.iter().all(|&len| len > 0);
        let watched = tensors.extras.saliency && !input.watched.is_empty();
        tensors.collect(&outputs, focal, watched).map_err(fail)
    }
}

/// Names of a step's tensors, built once, and how a step's input and output map to them.
struct StepTensors {
    graph: String,
    dims: Dims,
    returns_hidden: bool,
    extras: StepExtras,
    /// The pages of a step may be any number.
    joins_pages: bool,
    focal_scores: Vec<String>,
    saliency: Vec<String>,
    prefix_keys: Vec<String>,
    prefix_values: Vec<String>,
    trunk_keys: Vec<String>,
    trunk_values: Vec<String>,
    suffix_keys: Vec<String>,
    suffix_values: Vec<String>,
    new_keys: Vec<String>,
    new_values: Vec<String>,
}

impl StepTensors {
    fn new(graph: String, dims: Dims, returns_hidden: bool, extras: StepExtras) -> Self {
        let names = |stem| layer_names(stem, dims.layers);
        StepTensors {
            graph,
            dims,
            returns_hidden,
            joins_pages: false,
            focal_scores: extras.focal_layers.iter().map(|layer| format!("focal_scores.{layer}")).collect(),
            saliency: names("saliency"),
            extras,
            prefix_keys: names("prefix_k"),
            prefix_values: names("prefix_v"),
            trunk_keys: names("trunk_k"),
            trunk_values: names("trunk_v"),
            suffix_keys: names("suffix_k"),
            suffix_values: names("suffix_v"),
            new_keys: names("new_k"),
            new_values: names("new_v"),
        }
    }

    fn inputs(dims: Dims, extras: &StepExtras) -> Vec<Expected> {
        let (heads, dim) = (Some(dims.kv_heads), Some(dims.head_dim));
        let mut list = vec![
            expected("tokens", I64, &[None, None, None]),
            expected("positions", F32, &[None, None, None, Some(dims.position_parts)]),
            expected("prefix_len", I64, &[Some(dims.layers), None]),
            expected("trunk_visible", I64, &[None, None]),
            expected("suffix_len", I64, &[None, None]),
        ];
        if extras.saliency {
            list.push(expected("watched", I64, &[None]));
        }
        for layer in 0..dims.layers {
            list.push(expected(format!("prefix_k.{layer}"), F32, &[None, heads, None, dim]));
            list.push(expected(format!("prefix_v.{layer}"), F32, &[None, heads, dim, None]));
            list.push(expected(format!("trunk_k.{layer}"), F32, &[None, heads, None, dim]));
            list.push(expected(format!("trunk_v.{layer}"), F32, &[None, heads, None, dim]));
            list.push(expected(format!("suffix_k.{layer}"), F32, &[None, None, heads, None, dim]));
            list.push(expected(format!("suffix_v.{layer}"), F32, &[None, None, heads, None, dim]));
        }
        list
    }

    fn outputs(dims: Dims, extras: &StepExtras) -> Vec<Expected> {
        let (heads, dim) = (Some(dims.kv_heads), Some(dims.head_dim));
        let mut list = vec![
            expected("next_id", I64, &[None, None, None]),
            expected("next_logprob", F32, &[None, None, None]),
            expected("draft_logprob", F32, &[None, None, None]),
        ];
        for layer in &extras.focal_layers {
            list.push(expected(format!("focal_scores.{layer}"), F32, &[None, None, None]));
        }
        if !extras.focal_layers.is_empty() {
            list.push(expected("image_attention", F32, &[Some(dims.layers), None, None]));
        }
        for layer in 0..if extras.saliency { dims.layers } else { 0 } {
            list.push(expected(format!("saliency.{layer}"), F32, &[heads, None, None, None]));
        }
        for layer in 0..dims.layers {
            list.push(expected(format!("new_k.{layer}"), F32, &[None, None, heads, None, dim]));
            list.push(expected(format!("new_v.{layer}"), F32, &[None, None, heads, None, dim]));
        }
        list
    }

    /// Views of everything that a step reads. `prefix_len` is the input's list as int64.
    fn feed<'a>(
        &'a self,
        input: &'a StepInput<'_>,
        prefix_len: &'a [i64],
        resident: Option<&'a Resident>,
    ) -> Result<Inputs<'a>, String> {
        let (pages, rows, tokens) = (input.pages, input.rows, input.tokens_per_row);
        let Dims { layers, kv_heads: heads, head_dim: dim, position_parts: parts, .. } = self.dims;
        let mut list: Inputs<'a> = Vec::with_capacity(5 + 6 * layers);
        list.push(view("tokens", input.tokens, vec![pages, rows, tokens])?);
        list.push(view("positions", input.positions, vec![pages, rows, tokens, parts])?);
        list.push(view("prefix_len", prefix_len, vec![layers, pages])?);
        list.push(view("trunk_visible", input.trunk_visible, vec![pages, rows])?);
        list.push(view("suffix_len", input.suffix_len, vec![pages, rows])?);
        if self.extras.saliency {
            list.push(view("watched", input.watched, vec![input.watched.len()])?);
        }
        let trunk = || vec![pages, heads, input.trunk_capacity, dim];
        let suffix = || vec![pages, rows, heads, input.suffix_capacity, dim];
        for layer in 0..layers {
            let len = input.prefix_capacity[layer];
            let (keys, values) = (input.prefix_keys[layer], input.prefix_values[layer]);
            let (key, value) = (&self.prefix_keys[layer], &self.prefix_values[layer]);
            list.push(match resident.and_then(|r| r.keys(layer, key, keys)) {
                Some(there) => there,
                None => view(key, keys, vec![pages, heads, len, dim])?,
            });
            list.push(match resident.and_then(|r| r.values(layer, value, values)) {
                Some(there) => there,
                None => view(value, values, vec![pages, heads, dim, len])?,
            });
            list.push(view(&self.trunk_keys[layer], input.trunk_keys[layer], trunk())?);
            list.push(view(&self.trunk_values[layer], input.trunk_values[layer], trunk())?);
            list.push(view(&self.suffix_keys[layer], input.suffix_keys[layer], suffix())?);
            list.push(view(&self.suffix_values[layer], input.suffix_values[layer], suffix())?);
        }
        Ok(list)
    }

    /// Lists with one entry a layer must have that many entries.
    fn check_layers(&self, input: &StepInput<'_>) -> Result<(), String> {
        let counts = [
            ("prefix_len", input.prefix_len.len() / input.pages.max(1)),
            ("prefix_len", input.prefix_capacity.len()),
            ("prefix_k", input.prefix_keys.len()),
            ("prefix_v", input.prefix_values.len()),
            ("trunk_k", input.trunk_keys.len()),
            ("trunk_v", input.trunk_values.len()),
            ("suffix_k", input.suffix_keys.len()),
            ("suffix_v", input.suffix_values.len()),
        ];
        match counts.into_iter().find(|(_, count)| *count != self.dims.layers) {
            Some((name, count)) => {
                Err(format!("input {name} has {count} layers, expected {}", self.dims.layers))
            }
            None => Ok(()),
        }
    }

    fn collect(
        &self,
        outputs: &SessionOutputs<'_>,
        focal: bool,
        watched: bool,
    ) -> Result<StepOutput, String> {
        let layers =
            |names: &[String]| names.iter().map(|name| values(outputs, name)).collect::<Result<Vec<_>, _>>();
        let focal = focal && !self.focal_scores.is_empty();
        Ok(StepOutput {
            next_id: values::<TokenId>(outputs, "next_id")?,
            next_logprob: values(outputs, "next_logprob")?,
            draft_logprob: values(outputs, "draft_logprob")?,
            hidden: if self.returns_hidden { values(outputs, "hidden")? } else { Vec::new() },
            new_keys: layers(&self.new_keys)?,
            new_values: layers(&self.new_values)?,
            focal_scores: if focal { layers(&self.focal_scores)? } else { Vec::new() },
            image_attention: if focal { values(outputs, "image_attention")? } else { Vec::new() },
            saliency: if watched { layers(&self.saliency)? } else { Vec::new() },
        })
    }
}

#[cfg(test)]
mod tests;
