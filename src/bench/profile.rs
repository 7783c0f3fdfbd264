//! Where a step's time goes, by ONNX Runtime's own profile of the decode graph: attention, feed-forward, projections, output.
//!
//! Nodes are told apart by the exporter's names, the first part of which is the module: `gate`, `up`, `down`, `feed_norm` (and the
//! fused activation) are feed-forward; `query`, `key`, `value`, `output` and their norms are projections; `head`, `norm` and
//! embeddings are output; everything that the step does outside of a module is attention, rotation included. Profiling slows a
//! step, and neighbours on the machine interrupt it: a node counts with its median, and only shares are reported.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::BenchError;
use super::figures::median;
use super::steps::{GridSettings, Method, measure};
use crate::graphs::Prefix;
use crate::graphs::onnx::OnnxDecodeGraph;
use crate::graphs::pack::Pack;
use crate::graphs::runtime::Profiling;
use crate::reader::ReaderError;

/// Shares of a step's time in the graph, by live rows.
pub(super) type Profiles = BTreeMap<usize, BTreeMap<&'static str, f64>>;

const ROWS: [usize; 2] = [1, 16];

/// Profiles plain steps over `prefix`.
pub(super) fn of_pack(pack: &Pack, prefix: &Prefix, settings: &GridSettings) -> Result<Profiles, BenchError> {
    let mut profiles = Profiles::new();
    for rows in ROWS {
        let folder = tempfile::tempdir().map_err(|error| BenchError::Profile(error.to_string()))?;
        let profiling = Profiling { file: &folder.path().join("decode"), optimised: true };
        let mut graph = pack.profiled_decode_graph(profiling, settings.threads).map_err(ReaderError::Pack)?;
        let settings = GridSettings {
            rows: vec![rows],
            methods: vec![Method::Plain],
            steps: 12,
            repetitions: 1,
            ..settings.clone()
        };
        measure(&mut graph, prefix, &settings, &mut |_| ())?;
        profiles.insert(rows, shares(&mut graph)?);
    }
    Ok(profiles)
}

fn shares(graph: &mut OnnxDecodeGraph) -> Result<BTreeMap<&'static str, f64>, BenchError> {
    let events = node_events(graph)?;
    let mut nodes: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (node, event) in &events {
        nodes.entry(node).or_default().push(event["dur"].as_f64().unwrap_or(0.0));
    }
    let mut sums: BTreeMap<&'static str, f64> = BTreeMap::new();
    for (node, durations) in nodes {
        *sums.entry(class(node)).or_default() += median(&durations);
    }
    let total: f64 = sums.values().sum();
    Ok(sums.into_iter().map(|(class, sum)| (class, sum / total.max(1.0))).collect())
}

/// Ends the profile of `graph`: what every node did, by its name, in the order in which they ran.
pub(super) fn node_events(graph: &mut OnnxDecodeGraph) -> Result<Vec<(String, Value)>, BenchError> {
    let path = graph.end_profiling()?;
    let bytes = std::fs::read(&path).map_err(|error| BenchError::Profile(error.to_string()))?;
    let events: Vec<Value> =
        serde_json::from_slice(&bytes).map_err(|error| BenchError::Profile(error.to_string()))?;
    let node = |event: Value| {
        let name = event["name"].as_str()?.strip_suffix("_kernel_time")?.to_owned();
        Some((name, event))
    };
    Ok(events.into_iter().filter(|event| event["cat"] == json!("Node")).filter_map(node).collect())
}

/// What a node of the exported step is part of.
fn class(node: &str) -> &'static str {
    let module = node.split('/').find(|part| !part.is_empty()).unwrap_or_default();
    // The exporter numbers modules of one name: `gate`, `gate_1`, ...
    match module.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_') {
        "gate" | "up" | "down" | "feed_norm" => "feed_forward",
        _ if node.contains("Gelu") => "feed_forward",
        "query" | "key" | "value" | "output" | "query_norm" | "key_norm" | "attention_norm" => "projections",
        "head" | "norm" | "embedding" | "text_place" => "output",
        _ => "attention",
    }
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn nodes_are_told_apart_by_their_modules() {
        assert_eq!(class("/gate_3/MatMul"), "feed_forward");
        assert_eq!(class("/Mul_93/QuickGeluFusion/"), "feed_forward");
        assert_eq!(class("/query_norm/Mul"), "projections");
        assert_eq!(class("/norm/Mul_1"), "output");
        assert_eq!(class("/Softmax_2"), "attention");
        assert_eq!(class("/MatMul_9/MatmulTransposeFusion/"), "attention");
    }
}
