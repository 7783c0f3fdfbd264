//! The two graphs that run once a page: vision (ink -> features and glyph readings) and prefill (those at the kept cells -> prefix).

use std::borrow::Cow;
use std::path::Path;

use ort::session::{Session, SessionOutputs};
use ort::value::DynValue;

use super::contract::{Expected, F32, I64, expected, failed, graph_name, layer_names, open, values, view};
use crate::graphs::manifest::PackError;
use crate::graphs::runtime::SessionOptions;
use crate::graphs::{Dims, GraphError, Prefix, UpperLayers};
use crate::vision::VisionInput;

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
///
/// The lower of two parts also returns `hidden [V, H]` after its last layer, and `saliency [heads, V]`: what the prefix's last
/// queries (or all of them, where it ends with no text) pay each position there. The upper part reads `hidden [K, H]` and
/// `positions [1, K, A]` of the positions that go on.
pub struct PrefillGraph {
    session: Session,
    name: String,
    dims: Dims,
    keys: Vec<String>,
    values: Vec<String>,
    upper: Option<UpperPrefill>,
}

/// The layers above the one that chooses what goes on.
struct UpperPrefill {
    session: Session,
    name: String,
    first: usize,
}

/// Which positions go on to the upper layers, given `saliency [heads, V]` and `V`: ascending; `None`: all.
pub type Propagation<'a> = &'a dyn Fn(&[f32], usize) -> Option<Vec<u32>>;

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
        write!(f, "PrefillGraph({}, {:?})", self.name, self.dims)
    }
}

/// `features [1, C, H/8, W/8]` and `glyphs [1, G, H/8, W/4]`: outputs of the one graph, inputs of the other.
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
    /// first of them.
    pub fn load(
        path: &Path,
        upper: Option<(&Path, usize)>,
        dims: Dims,
        options: impl Into<SessionOptions>,
    ) -> Result<Self, PackError> {
        let options = options.into();
        let [features, glyphs] = map_tensors();
        let cells = expected("cells", I64, &[None, Some(2)]);
        let positions = || expected("positions", F32, &[Some(1), None, Some(dims.position_parts)]);
        let first_upper = upper.map_or(dims.layers, |(_, first)| first);
        let (keys, values) = (layer_names("prefix_k", dims.layers), layer_names("prefix_v", dims.layers));
        let (heads, dim) = (Some(dims.kv_heads), Some(dims.head_dim));
        let part = |layers: std::ops::Range<usize>| -> Vec<Expected> {
            let keys =
                keys[layers.clone()].iter().map(|name| expected(name, F32, &[Some(1), heads, None, dim]));
            keys.chain(values[layers].iter().map(|name| expected(name, F32, &[Some(1), heads, dim, None])))
                .collect()
        };
        let hidden = || expected("hidden", F32, &[None, Some(dims.hidden)]);
        let mut outputs = part(0..first_upper);
        if upper.is_some() {
            outputs.extend([hidden(), expected("saliency", F32, &[None, None])]);
        }
        let session = open(path, options, &[features, glyphs, cells, positions()], &outputs)?;
        let upper = upper.map(|(path, first)| {
            let session = open(path, options, &[hidden(), positions()], &part(first..dims.layers))?;
            Ok::<_, PackError>(UpperPrefill { session, name: graph_name(path), first })
        });
        Ok(PrefillGraph { session, name: graph_name(path), dims, keys, values, upper: upper.transpose()? })
    }

    /// Keys and values of the page's visual tokens. A page without ink has an empty prefix; the graph is not called.
    pub fn run(
        &mut self,
        vision: &VisionOutput,
        input: &VisionInput,
        propagation: Propagation<'_>,
    ) -> Result<Prefix, GraphError> {
        let (len, dims) = (input.cells.len(), self.dims);
        if len == 0 {
            let none = vec![Vec::new(); dims.layers];
            return Ok(Prefix { keys: none.clone(), values: none, ..Prefix::default() });
        }
        let cells: Vec<i64> = input.cells.iter().flat_map(|c| [c.row as i64, c.column as i64]).collect();
        let positions = input.positions(dims.position_parts);
        let fail = |message: String| failed(&self.name, message);
        let feed = vec![
            (Cow::Borrowed("features"), (&vision.features).into()),
            (Cow::Borrowed("glyphs"), (&vision.glyphs).into()),
            view("cells", &cells, vec![len, 2]).map_err(fail)?,
            view("positions", &positions, vec![1, len, dims.position_parts]).map_err(fail)?,
        ];
        let outputs = self.session.run(feed).map_err(|e| failed(&self.name, e))?;
        let lower = self.upper.as_ref().map_or(dims.layers, |upper| upper.first);
        let size = len * dims.kv_heads * dims.head_dim;
        let layers = |names: &[String]| layers_of(&outputs, &names[..lower], size).map_err(fail);
        let mut prefix = Prefix {
            len,
            upper: None,
            keys: layers(&self.keys)?,
            values: layers(&self.values)?,
            centres: input.centres(),
            next_order: 0.0,
        };
        if let Some(upper) = &mut self.upper {
            let saliency: Vec<f32> = values(&outputs, "saliency").map_err(fail)?;
            let hidden: Vec<f32> = values(&outputs, "hidden").map_err(fail)?;
            if hidden.len() != len * dims.hidden {
                return Err(fail(format!("output `hidden` has {} numbers", hidden.len())));
            }
            let kept = propagation(&saliency, len);
            let names = (&self.keys[lower..], &self.values[lower..]);
            upper.run(&mut prefix, names, &hidden, &positions, dims, kept)?;
        }
        Ok(prefix)
    }
}

impl UpperPrefill {
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
        let size = count * dims.kv_heads * dims.head_dim;
        prefix.keys.extend(layers_of(&outputs, keys, size).map_err(fail)?);
        prefix.values.extend(layers_of(&outputs, values, size).map_err(fail)?);
        prefix.upper = kept.map(|kept| UpperLayers { first: self.first, kept });
        Ok(())
    }
}

/// One output a layer, each of `size` numbers.
pub(super) fn layers_of(
    outputs: &SessionOutputs<'_>,
    names: &[String],
    size: usize,
) -> Result<Vec<Vec<f32>>, String> {
    names
        .iter()
        .map(|name| {
            let data: Vec<f32> = values(outputs, name)?;
            if data.len() != size {
                return Err(format!("output `{name}` has {} numbers, expected {size}", data.len()));
            }
            Ok(data)
        })
        .collect()
}
