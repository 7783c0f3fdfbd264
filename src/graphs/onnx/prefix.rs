//! A page's prefix from the outputs of one prefill graph, or of two with a choice of positions between them.

use std::path::PathBuf;

use ort::session::{Session, SessionOutputs};

use super::contract::{Expected, F32, expected, failed, graph_name, layer_names, open, values, view};
use crate::graphs::manifest::PackError;
use crate::graphs::runtime::SessionOptions;
use crate::graphs::{Dims, GraphError, Prefix, UpperLayers};

/// Which positions go on to the upper layers, given `saliency [heads, V]` and `V`: ascending; `None`: all.
pub type Propagation<'a> = &'a dyn Fn(&[f32], usize) -> Option<Vec<u32>>;

/// How the outputs of a pack's prefill graphs make a prefix.
///
/// The lower of two graphs also returns `hidden [V, H]` after its last layer, and `saliency [heads, V]`: what the prefix's last
/// queries (or all of them, where it ends with no text) pay each position there. The upper one reads `hidden [K, H]` and
/// `positions [1, K, A]` of the positions that go on.
pub(super) struct PrefixGraphs {
    pub(super) dims: Dims,
    keys: Vec<String>,
    values: Vec<String>,
    upper: Option<Upper>,
}

/// The layers above the one that chooses what goes on.
struct Upper {
    session: Session,
    name: String,
    first: usize,
}

/// `positions [1, V, A]`
pub(super) fn positions(dims: Dims) -> Expected {
    expected("positions", F32, &[Some(1), None, Some(dims.position_parts)])
}

fn hidden(dims: Dims) -> Expected {
    expected("hidden", F32, &[None, Some(dims.hidden)])
}

impl PrefixGraphs {
    /// `upper`: the graph of the upper layers and the first of them, loaded as `options` say.
    pub(super) fn load(
        upper: Option<(PathBuf, usize)>,
        dims: Dims,
        options: SessionOptions,
    ) -> Result<Self, PackError> {
        let (keys, values) = (layer_names("prefix_k", dims.layers), layer_names("prefix_v", dims.layers));
        let mut graphs = PrefixGraphs { dims, keys, values, upper: None };
        if let Some((path, first)) = upper {
            let inputs = [hidden(dims), positions(dims)];
            let session = open(&path, options, &inputs, &graphs.layers(first, dims.layers))?;
            graphs.upper = Some(Upper { session, name: graph_name(&path), first });
        }
        Ok(graphs)
    }

    /// What the first graph must return.
    pub(super) fn outputs(&self) -> Vec<Expected> {
        let mut outputs = self.layers(0, self.first_upper());
        if self.upper.is_some() {
            outputs.extend([hidden(self.dims), expected("saliency", F32, &[None, None])]);
        }
        outputs
    }

    fn first_upper(&self) -> usize {
        self.upper.as_ref().map_or(self.dims.layers, |upper| upper.first)
    }

    fn layers(&self, first: usize, end: usize) -> Vec<Expected> {
        let (heads, dim) = (Some(self.dims.kv_heads), Some(self.dims.head_dim));
        let keys = self.keys[first..end].iter().map(|name| expected(name, F32, &[Some(1), heads, None, dim]));
        let values =
            self.values[first..end].iter().map(|name| expected(name, F32, &[Some(1), heads, dim, None]));
        keys.chain(values).collect()
    }

    /// Keys and values of `len` positions at `positions [len, A]` from the outputs of `graph`, the first of the two.
    pub(super) fn prefix(
        &mut self,
        graph: &str,
        outputs: &SessionOutputs<'_>,
        (len, positions): (usize, &[f32]),
        propagation: Propagation<'_>,
    ) -> Result<Prefix, GraphError> {
        let fail = |message: String| failed(graph, message);
        let (lower, dims) = (self.first_upper(), self.dims);
        let layers = |names: &[String]| layers_of(outputs, &names[..lower], len, dims).map_err(fail);
        let (keys, values_t) = (layers(&self.keys)?, layers(&self.values)?);
        let mut prefix = Prefix { len, keys, values: values_t, ..Prefix::default() };
        if let Some(upper) = &mut self.upper {
            let saliency: Vec<f32> = values(outputs, "saliency").map_err(fail)?;
            let hidden: Vec<f32> = values(outputs, "hidden").map_err(fail)?;
            if hidden.len() != len * dims.hidden {
                return Err(fail(format!("output `hidden` has {} numbers", hidden.len())));
            }
            let kept = propagation(&saliency, len);
            let names = (&self.keys[lower..], &self.values[lower..]);
            upper.run(&mut prefix, names, &hidden, positions, dims, kept)?;
        }
        Ok(prefix)
    }
}

impl Upper {
    /// Adds its layers to `prefix`, for the positions `kept` of it.
    fn run(
        &mut self,
        prefix: &mut Prefix,
        (keys, values): (&[String], &[String]),
        hidden: &[f32],
        positions: &[f32],
        dims: Dims,
        kept: Option<Vec<u32>>,
    ) -> Result<(), GraphError> {
        let fail = |message: String| failed(&self.name, message);
        let picked = |data: &[f32], width: usize| -> Vec<f32> {
            let rows = kept.iter().flatten().map(|&row| &data[row as usize * width..][..width]);
            rows.flatten().copied().collect()
        };
        let parts = dims.position_parts;
        let chosen = kept.as_ref().map(|_| (picked(hidden, dims.hidden), picked(positions, parts)));
        let (hidden, positions) = chosen.as_ref().map_or((hidden, positions), |(h, p)| (h, p));
        let count = kept.as_ref().map_or(prefix.len, Vec::len);
        let feed = vec![
            view("hidden", hidden, vec![count, dims.hidden]).map_err(fail)?,
            view("positions", positions, vec![1, count, parts]).map_err(fail)?,
        ];
        let outputs = self.session.run(feed).map_err(|e| failed(&self.name, e))?;
        prefix.keys.extend(layers_of(&outputs, keys, count, dims).map_err(fail)?);
        prefix.values.extend(layers_of(&outputs, values, count, dims).map_err(fail)?);
        prefix.upper = kept.map(|kept| UpperLayers { first: self.first, kept });
        Ok(())
    }
}

/// One output a layer, each of `len` positions.
fn layers_of(
    outputs: &SessionOutputs<'_>,
    names: &[String],
    len: usize,
    dims: Dims,
) -> Result<Vec<Vec<f32>>, String> {
    let size = len * dims.kv_heads * dims.head_dim;
    let layer = |name: &String| {
        let data: Vec<f32> = values(outputs, name)?;
        if data.len() != size {
            return Err(format!("output `{name}` has {} numbers, expected {size}", data.len()));
        }
        Ok(data)
    };
    names.iter().map(layer).collect()
}
