mod joined;
mod nano;
mod published;

use std::path::PathBuf;

use serde::Deserialize;

use super::*;
use crate::decode::retention::propagated;
use crate::graphs::Prefix;
use crate::graphs::manifest::Preprocessing;
use crate::graphs::pack::Pack;
use crate::raster::Raster;
use crate::vision::{CellIndex, VisionInput, fixed_grid};

/// `expected.json` of `scripts/reference/tiny_pack.py`: two branches over a page, computed without any cache.
#[derive(Deserialize)]
struct Expected {
    width: usize,
    height: usize,
    ink_boxes: Vec<[usize; 4]>,
    cells: Vec<[usize; 2]>,
    trunk: Vec<TokenId>,
    trunk_positions: Vec<f32>,
    branches: Vec<ExpectedBranch>,
    tsp: ExpectedSelection,
}

/// Token-selective propagation at `rate`, and the upper layers' keys after it.
#[derive(Deserialize)]
struct ExpectedSelection {
    rate: f32,
    saliency: Vec<f32>,
    kept: Vec<u32>,
    keys: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct ExpectedBranch {
    visible: i64,
    tokens: Vec<TokenId>,
    positions: Vec<f32>,
    next_id: Vec<TokenId>,
    next_logprob: Vec<f32>,
    draft_logprob: Vec<f32>,
    /// By layer, `[heads, cells]`, of the last token.
    saliency: Vec<Vec<f32>>,
    /// What the multi-token head drafts after the last token's choice.
    mtp: Vec<TokenId>,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/packs/tiny")
}

fn expected() -> Expected {
    serde_json::from_slice(&std::fs::read(folder().join("expected.json")).unwrap()).unwrap()
}

fn vision_input(pack: &Pack, page: &Expected) -> VisionInput {
    let mut raster = Raster::filled(page.width, page.height, [255; 3]);
    for &[x0, y0, x1, y1] in &page.ink_boxes {
        for y in y0..y1 {
            raster.rgb[(y * page.width + x0) * 3..(y * page.width + x1) * 3].fill(0);
        }
    }
    let Preprocessing::FixedGrid(grid) = &pack.manifest.preprocessing else { panic!("a fixed grid") };
    fixed_grid(&raster, &[], grid.default_dpi, grid)
}

/// Keys and values that rows of one call share or own, as a step reads them.
#[derive(Default)]
struct Segment {
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
    len: usize,
}

impl Segment {
    fn empty(layers: usize) -> Self {
        Segment { keys: vec![Vec::new(); layers], values: vec![Vec::new(); layers], len: 0 }
    }

    fn keys(&self) -> Vec<&[f32]> {
        self.keys.iter().map(Vec::as_slice).collect()
    }

    fn values(&self) -> Vec<&[f32]> {
        self.values.iter().map(Vec::as_slice).collect()
    }

    /// Takes the single row of an output; `[heads, len, dim]` grows by `tokens` positions.
    fn append(&mut self, output: &StepOutput, tokens: usize, heads: usize) {
        let grown = |old: &[f32], new: &[f32]| -> Vec<f32> {
            let (old_size, new_size) = (old.len() / heads, new.len() / heads);
            let head = |h: usize| {
                [&old[h * old_size..(h + 1) * old_size], &new[h * new_size..(h + 1) * new_size]].concat()
            };
            (0..heads).flat_map(head).collect()
        };
        for layer in 0..self.keys.len() {
            self.keys[layer] = grown(&self.keys[layer], &output.new_keys[layer]);
            self.values[layer] = grown(&self.values[layer], &output.new_values[layer]);
        }
        self.len += tokens;
    }
}

/// Rows of equal length: tokens, positions, visible trunk.
struct Rows {
    tokens: Vec<TokenId>,
    positions: Vec<f32>,
    visible: Vec<i64>,
    suffix_len: Vec<i64>,
    watched: Vec<i64>,
}

impl Rows {
    /// Rows of which none is watched.
    fn new(tokens: Vec<TokenId>, positions: Vec<f32>, visible: &[i64], suffix_len: &[i64]) -> Rows {
        let (visible, suffix_len) = (visible.to_vec(), suffix_len.to_vec());
        Rows { tokens, positions, visible, suffix_len, watched: Vec::new() }
    }
}

fn step(
    graph: &mut OnnxDecodeGraph,
    prefix: &Prefix,
    trunk: &Segment,
    suffix: &Segment,
    rows: &Rows,
) -> Result<StepOutput, GraphError> {
    let layers = graph.dims().layers;
    let prefix_len: Vec<usize> = (0..layers).map(|layer| prefix.layer_len(layer)).collect();
    let input = StepInput {
        pages: 1,
        tokens: &rows.tokens,
        positions: &rows.positions,
        rows: rows.visible.len(),
        tokens_per_row: rows.tokens.len() / rows.visible.len(),
        trunk_visible: &rows.visible,
        suffix_len: &rows.suffix_len,
        prefix_keys: prefix.keys.iter().map(Vec::as_slice).collect(),
        prefix_values: prefix.values.iter().map(Vec::as_slice).collect(),
        prefix_capacity: prefix_len.clone(),
        prefix_len,
        trunk_keys: trunk.keys(),
        trunk_values: trunk.values(),
        trunk_capacity: trunk.len,
        suffix_keys: suffix.keys(),
        suffix_values: suffix.values(),
        suffix_capacity: suffix.len,
        wants_focal: false,
        watched: &rows.watched,
    };
    graph.step(&input)
}

/// Keys and values of all visual tokens.
fn prefix(pack: &Pack, vision: &VisionOutput, input: &VisionInput) -> Prefix {
    let mut prefill = pack.prefill_graph(1).unwrap();
    let tokens = prefill.tokens(vision, input).unwrap();
    prefill.run(vision, &tokens, &|_, _| None).unwrap()
}

/// The pack's decode graph with the page's prefix and its trunk fed in one call.
fn prepared(page: &Expected) -> (OnnxDecodeGraph, Prefix, Segment) {
    let pack = Pack::load(&folder()).unwrap();
    let input = vision_input(&pack, page);
    let cells: Vec<CellIndex> = page.cells.iter().map(|&[row, column]| CellIndex { row, column }).collect();
    assert_eq!(input.cells, cells);
    let vision = pack.vision_graph(1).unwrap().run(&input).unwrap();
    let glyphs = vision.glyphs().unwrap();
    assert_eq!((glyphs.classes, glyphs.rows, glyphs.columns), (3, page.height / 8, page.width / 4));
    let prefix = prefix(&pack, &vision, &input);
    assert_eq!(prefix.len, page.cells.len());
    let mut graph = pack.decode_graph(1).unwrap();
    let none = Segment::empty(graph.dims().layers);
    let rows = Rows::new(page.trunk.clone(), page.trunk_positions.clone(), &[0], &[0]);
    let output = step(&mut graph, &prefix, &none, &none, &rows).unwrap();
    let mut trunk = Segment::empty(graph.dims().layers);
    trunk.append(&output, page.trunk.len(), 1);
    (graph, prefix, trunk)
}

fn assert_near(got: &[f32], want: &[f32], tolerance: f32) {
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= tolerance, "{got} is not {want}");
    }
}

#[test]
fn branches_in_one_call_are_those_of_a_decoder_without_a_cache() {
    let page = expected();
    let (mut graph, prefix, trunk) = prepared(&page);
    let none = Segment::empty(graph.dims().layers);
    let visible: Vec<i64> = page.branches.iter().map(|b| b.visible).collect();
    let rows = Rows::new(
        page.branches.iter().flat_map(|b| b.tokens.clone()).collect(),
        page.branches.iter().flat_map(|b| b.positions.clone()).collect(),
        &visible,
        &vec![0; visible.len()],
    );
    let output = step(&mut graph, &prefix, &trunk, &none, &rows).unwrap();
    let want =
        |of: fn(&ExpectedBranch) -> &Vec<f32>| page.branches.iter().flat_map(of).copied().collect::<Vec<_>>();
    let ids: Vec<TokenId> = page.branches.iter().flat_map(|b| b.next_id.clone()).collect();
    assert_eq!(output.next_id, ids);
    assert_near(&output.next_logprob, &want(|b| &b.next_logprob), 1e-4);
    assert_near(&output.draft_logprob, &want(|b| &b.draft_logprob), 1e-4);
    assert_eq!(output.hidden.len(), ids.len() * graph.dims().hidden);
}

#[test]
fn forked_rows_are_single_rows() {
    let page = expected();
    let (mut graph, prefix, trunk) = prepared(&page);
    let none = Segment::empty(graph.dims().layers);
    let visible: Vec<i64> = page.branches.iter().map(|b| b.visible).collect();
    let rows = Rows::new(
        page.branches.iter().flat_map(|b| b.tokens.clone()).collect(),
        page.branches.iter().flat_map(|b| b.positions.clone()).collect(),
        &visible,
        &vec![0; visible.len()],
    );
    let together = step(&mut graph, &prefix, &trunk, &none, &rows).unwrap();
    for (index, branch) in page.branches.iter().enumerate() {
        let count = branch.tokens.len();
        let rows = Rows::new(branch.tokens.clone(), branch.positions.clone(), &[branch.visible], &[0]);
        let alone = step(&mut graph, &prefix, &trunk, &none, &rows).unwrap();
        let part = index * count..(index + 1) * count;
        assert_eq!(together.next_id[part.clone()], alone.next_id);
        assert_near(&together.next_logprob[part], &alone.next_logprob, 1e-5);
        for layer in 0..graph.dims().layers {
            let size = alone.new_keys[layer].len();
            assert_near(
                &together.new_keys[layer][index * size..(index + 1) * size],
                &alone.new_keys[layer],
                1e-5,
            );
        }
    }
}

#[test]
fn tokens_one_by_one_over_a_suffix_are_tokens_in_one_call() {
    let page = expected();
    let (mut graph, prefix, trunk) = prepared(&page);
    let branch = &page.branches[1];
    let mut suffix = Segment::empty(graph.dims().layers);
    for (index, &token) in branch.tokens.iter().enumerate() {
        let rows = Rows::new(
            vec![token],
            branch.positions[index * 3..index * 3 + 3].to_vec(),
            &[branch.visible],
            &[index as i64],
        );
        let output = step(&mut graph, &prefix, &trunk, &suffix, &rows).unwrap();
        assert_eq!(output.next_id, branch.next_id[index..=index]);
        assert_near(&output.next_logprob, &branch.next_logprob[index..=index], 1e-4);
        suffix.append(&output, 1, 1);
    }
}

#[test]
fn a_page_without_ink_has_an_empty_prefix_and_decodes() {
    let pack = Pack::load(&folder()).unwrap();
    let Preprocessing::FixedGrid(grid) = &pack.manifest.preprocessing else { panic!("a fixed grid") };
    let input = fixed_grid(&Raster::filled(64, 32, [255; 3]), &[], 136.0, grid);
    let vision = pack.vision_graph(1).unwrap().run(&input).unwrap();
    let prefix = prefix(&pack, &vision, &input);
    assert_eq!(prefix.len, 0);
    let mut graph = pack.decode_graph(1).unwrap();
    let none = Segment::empty(3);
    let rows = Rows::new(vec![105], vec![1.0, 0.0, 0.0], &[0], &[0]);
    let output = step(&mut graph, &prefix, &none, &none, &rows).unwrap();
    assert!(output.next_logprob[0].is_finite() && output.next_logprob[0] < 0.0);
}

#[test]
fn propagation_chooses_and_leaves_what_the_reference_does() {
    let page = expected();
    let pack = Pack::load(&folder()).unwrap();
    let input = vision_input(&pack, &page);
    let vision = pack.vision_graph(1).unwrap().run(&input).unwrap();
    let mut prefill = pack.prefill_graph(1).unwrap();
    let tokens = prefill.tokens(&vision, &input).unwrap();
    let whole = prefill.run(&vision, &tokens, &|_, _| None).unwrap();
    let all = prefill.run(&vision, &tokens, &|saliency, len| propagated(saliency, len, 1.0, 0)).unwrap();
    assert_eq!(all, whole, "rate 1 is off");
    let chosen = prefill.run(&vision, &tokens, &|saliency, len| {
        assert_near(saliency, &page.tsp.saliency, 1e-4);
        propagated(saliency, len, page.tsp.rate, 0)
    });
    let prefix = chosen.unwrap();
    assert_eq!((prefix.kept(0), prefix.kept(1)), (None, Some(page.tsp.kept.as_slice())));
    assert_eq!(prefix.keys[0], whole.keys[0], "the lower layers hold everything");
    assert_near(&prefix.keys[1], &page.tsp.keys[0], 1e-4);
    assert_near(&prefix.keys[2], &page.tsp.keys[1], 1e-4);
    assert!(prefix.keys[2].len() < whole.keys[2].len());
    assert_eq!(prefix.centres.len(), prefix.len);
}

#[test]
fn watched_rows_say_where_they_look_and_the_head_what_may_follow() {
    let page = expected();
    let (mut graph, prefix, trunk) = prepared(&page);
    let none = Segment::empty(graph.dims().layers);
    let visible: Vec<i64> = page.branches.iter().map(|b| b.visible).collect();
    let rows = Rows {
        watched: vec![1],
        ..Rows::new(
            page.branches.iter().flat_map(|b| b.tokens.clone()).collect(),
            page.branches.iter().flat_map(|b| b.positions.clone()).collect(),
            &visible,
            &vec![0; visible.len()],
        )
    };
    let output = step(&mut graph, &prefix, &trunk, &none, &rows).unwrap();
    for (layer, saliency) in output.saliency.iter().enumerate() {
        assert_near(saliency, &page.branches[1].saliency[layer], 1e-4);
    }
    let unwatched = step(&mut graph, &prefix, &trunk, &none, &Rows { watched: Vec::new(), ..rows }).unwrap();
    assert!(unwatched.saliency.is_empty());
    assert_eq!(unwatched.next_id, output.next_id);
    assert_eq!(graph.head_drafts(), 3);
    let (count, width) = (page.branches[0].tokens.len(), graph.dims().hidden);
    let last = |row: usize| (row + 1) * count - 1;
    let hidden: Vec<f32> =
        (0..2).flat_map(|row| output.hidden[last(row) * width..][..width].to_vec()).collect();
    let drafts = graph.draft(&hidden, &[output.next_id[last(0)], output.next_id[last(1)]]).unwrap();
    assert_eq!(drafts.ids, [page.branches[0].mtp.clone(), page.branches[1].mtp.clone()].concat());
    assert!(drafts.probabilities.iter().all(|p| (0.0..=1.0).contains(p)));
}

#[test]
fn graphs_and_steps_that_do_not_fit_are_named() {
    let page = expected();
    let (mut graph, prefix, trunk) = prepared(&page);
    let extras = StepExtras { focal_layers: vec![0, 2], saliency: true };
    let wrong = Dims { kv_heads: 2, ..graph.dims() };
    let message =
        OnnxDecodeGraph::load(&folder().join("decode.onnx"), wrong, &extras, 1).unwrap_err().to_string();
    assert!(
        message.contains("decode.onnx") && message.contains("prefix_k.0") && message.contains("axis 1"),
        "{message}"
    );
    let fewer = Dims { layers: 1, ..graph.dims() };
    let message =
        OnnxDecodeGraph::load(&folder().join("decode.onnx"), fewer, &extras, 1).unwrap_err().to_string();
    assert!(message.contains("prefix_len"), "{message}");
    let message = OnnxDecodeGraph::load(&folder().join("vision.onnx"), graph.dims(), &extras, 1)
        .unwrap_err()
        .to_string();
    assert!(message.contains("missing input `tokens`"), "{message}");
    let none = Segment::empty(3);
    let short = Rows::new(vec![105], vec![1.0], &[0], &[0]);
    let message = step(&mut graph, &prefix, &trunk, &none, &short).unwrap_err().to_string();
    assert!(message.starts_with("decode.onnx: input `positions`"), "{message}");
    let bare = Prefix { keys: Vec::new(), ..prefix };
    let rows = Rows::new(vec![105], vec![1.0, 0.0, 0.0], &[0], &[0]);
    let message = step(&mut graph, &bare, &trunk, &none, &rows).unwrap_err().to_string();
    assert!(message.contains("prefix_k has 0 layers"), "{message}");
}

#[test]
fn a_pack_with_a_changed_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    let pack = Pack::load(dir.path()).unwrap();
    assert_eq!((pack.sha256.len(), pack.manifest.name.as_str()), (64, "tiny"));
    pack.verify().unwrap();
    std::fs::write(dir.path().join("vision.onnx"), b"other").unwrap();
    let message = Pack::load(dir.path()).unwrap_err().to_string();
    assert!(message.contains("vision.onnx") && message.contains("sha256"), "{message}");
    std::fs::remove_file(dir.path().join("vision.onnx")).unwrap();
    assert!(Pack::load(dir.path()).unwrap_err().to_string().contains("vision.onnx"));
}
