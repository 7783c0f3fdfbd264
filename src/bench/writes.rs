//! What the nodes of a decode step write: whether any of them copies the prefix.
//!
//! ONNX Runtime's profile gives the size of every node's outputs, of views, too. A step is run over two lengths of the prefix. What
//! grows with it are the scores (`rows x heads` numbers a position, a few times over: they are masked, joined, summed) and what
//! is copied of the keys and values. With two rows, a row of scores is smaller than the keys of a single kv head as long as the
//! query heads are fewer than half a head's dimensions, which they are in all published models: so a node whose output
//! grows and is as large as those keys is counted as a copy.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::BenchError;
use super::profile::node_events;
use super::steps::{GridSettings, Method, measure, random_prefix};
use crate::graphs::onnx::OnnxDecodeGraph;
use crate::graphs::{DecodeGraph, Dims};

/// What one step over two lengths of the prefix wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct StepWrites {
    dims: Dims,
    /// Positions, the smaller first.
    prefix: [usize; 2],
    /// Bytes of all nodes' outputs.
    bytes: [u64; 2],
    /// Outputs that grow with the prefix, by node: bytes over the longer one.
    growing: BTreeMap<String, u64>,
}

/// Steps over `prefix` positions and half of them, on a profiled `graph`.
pub fn step_writes(
    graph: &mut OnnxDecodeGraph,
    prefix: usize,
    settings: &GridSettings,
) -> Result<StepWrites, BenchError> {
    let dims = graph.dims();
    let prefix = [prefix.div_ceil(2), prefix];
    let settings = GridSettings {
        // One live row and the empty one that is always beside it.
        rows: vec![1],
        methods: vec![Method::Plain],
        steps: 1,
        repetitions: 1,
        ..settings.clone()
    };
    for len in prefix {
        measure(graph, &random_prefix(dims, len), &settings, &mut |_| ())?;
    }
    let mut nodes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (node, event) in node_events(graph)? {
        // The runtime writes numbers as text.
        let bytes = event["args"]["output_size"].as_str().and_then(|size| size.parse().ok());
        nodes.entry(node).or_default().push(bytes.unwrap_or(0));
    }
    StepWrites::of(dims, prefix, &nodes).map_err(BenchError::Profile)
}

impl StepWrites {
    /// `nodes`: bytes of each node's outputs in four calls, two over each length. The second of two counts.
    fn of(dims: Dims, prefix: [usize; 2], nodes: &BTreeMap<String, Vec<u64>>) -> Result<Self, String> {
        let mut writes = StepWrites { dims, prefix, bytes: [0; 2], growing: BTreeMap::new() };
        for (node, bytes) in nodes {
            let &[_, short, _, long] = bytes.as_slice() else {
                return Err(format!("node `{node}` ran {} times in four steps", bytes.len()));
            };
            writes.bytes[0] += short;
            writes.bytes[1] += long;
            if long > short {
                writes.growing.insert(node.clone(), long);
            }
        }
        Ok(writes)
    }

    /// Bytes of the keys of one kv head of one layer.
    fn keys_of_a_head(&self) -> u64 {
        (self.prefix[1] * self.dims.head_dim * size_of::<f32>()) as u64
    }

    /// Nodes that write as much as they would if they copied a part of the prefix.
    pub fn copies(&self) -> Vec<&str> {
        let large = self.growing.iter().filter(|(_, bytes)| **bytes >= self.keys_of_a_head());
        large.map(|(node, _)| node.as_str()).collect()
    }

    /// Bytes that a step writes for each further position.
    pub fn bytes_a_position(&self) -> f64 {
        let more = self.bytes[1] as f64 - self.bytes[0] as f64;
        more / (self.prefix[1] - self.prefix[0]).max(1) as f64
    }

    fn largest(&self) -> (&str, u64) {
        let largest = self.growing.iter().max_by_key(|(_, bytes)| **bytes);
        largest.map_or(("", 0), |(node, bytes)| (node, *bytes))
    }

    pub fn json(&self) -> Value {
        let (node, bytes) = self.largest();
        json!({
            "prefix": self.prefix,
            "bytes_written": self.bytes,
            "bytes_written_a_position": self.bytes_a_position(),
            "keys_and_values_bytes_a_position": self.dims.bytes_per_position(),
            "largest_growing_output": { "node": node, "bytes": bytes },
            "keys_bytes_of_a_head": self.keys_of_a_head(),
            "copies": self.copies(),
        })
    }

    /// One line.
    pub fn table(&self) -> String {
        format!(
            "a step over {} positions writes {:.1} MB, {:.0} bytes for each further one (its keys and values have {}); the \
             largest output that grows has {:.2} MB (keys of one head of one layer: {:.2} MB); nodes that copy: {}",
            self.prefix[1],
            self.bytes[1] as f64 / 1e6,
            self.bytes_a_position(),
            self.dims.bytes_per_position(),
            self.largest().1 as f64 / 1e6,
            self.keys_of_a_head() as f64 / 1e6,
            self.copies().len(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::pack::Pack;
    use crate::graphs::runtime::Profiling;

    fn of_nano(optimised: bool) -> StepWrites {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let pack = Pack::load(&root.join("models/nano")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let profiling = Profiling { file: &folder.path().join("decode"), optimised };
        let mut graph = pack.profiled_decode_graph(profiling, 1).unwrap();
        let settings = GridSettings::new(pack.manifest.dims.vocabulary, 1, 1);
        step_writes(&mut graph, 600, &settings).unwrap()
    }

    #[test]
    fn no_node_of_a_step_copies_the_prefix() {
        let writes = of_nano(true);
        assert_eq!(writes.copies(), Vec::<&str>::new());
        assert!(!writes.growing.is_empty() && writes.bytes[1] > writes.bytes[0], "scores grow");
        let whole = writes.dims.bytes_per_position() as f64;
        assert!(writes.bytes_a_position() < 0.5 * whole, "{} of {whole}", writes.bytes_a_position());
        assert!(writes.table().ends_with("nodes that copy: 0"), "{}", writes.table());
    }

    #[test]
    fn the_same_graph_without_the_runtimes_fusions_copies_the_keys_of_every_layer_and_is_caught() {
        let writes = of_nano(false);
        let turned = writes.copies().iter().filter(|node| node.contains("Transpose")).count();
        assert!(turned >= writes.dims.layers, "{:?}", writes.copies());
        assert!(writes.json()["copies"].as_array().is_some_and(|copies| !copies.is_empty()));
    }

    #[test]
    fn a_node_that_does_not_run_once_a_step_is_an_error() {
        let dims = Dims { layers: 1, kv_heads: 1, head_dim: 4, position_parts: 1, hidden: 4 };
        let nodes = BTreeMap::from([("loop".to_owned(), vec![1, 2, 3])]);
        assert!(StepWrites::of(dims, [1, 2], &nodes).unwrap_err().contains("`loop` ran 3 times"));
    }
}
