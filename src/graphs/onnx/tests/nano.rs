//! The nano pack against its weights: `fixtures/reference/nano`, written by `python -m scripts.reference`.

use super::*;
use crate::decode::protocol::{PositionState, Protocol};
use crate::tokens::Grammar;

#[derive(Deserialize)]
struct Reference {
    classes: Vec<i64>,
    centres: Vec<[f32; 2]>,
    facts: Vec<f32>,
    trunk: Vec<TokenId>,
    trunk_logprobs: Vec<f32>,
    forks: Vec<usize>,
    free_trunk: Stream,
    branches: Vec<Stream>,
}

/// Greedy tokens: a trunk with its first token given, a branch with its child token.
#[derive(Deserialize)]
struct Stream {
    tokens: Vec<TokenId>,
    logprobs: Vec<f32>,
    /// Log-probability between the two best tokens.
    margins: Vec<f32>,
}

fn root(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Positions of `tokens` from `state` on, as the grammar says, and the state after them.
fn positions(grammar: &Grammar, mut state: PositionState, tokens: &[TokenId]) -> (Vec<f32>, PositionState) {
    let mut out = Vec::new();
    for &token in tokens {
        let (position, next) = grammar.feed(state, token);
        out.extend(position);
        state = next;
    }
    (out, state)
}

/// Decodes greedily after `first`, one token a call, and compares with the reference up to its first near tie.
fn compare_greedy(
    graph: &mut OnnxDecodeGraph,
    grammar: &Grammar,
    prefix: &Prefix,
    trunk: (&Segment, i64),
    first: (TokenId, PositionState),
    reference: &Stream,
) {
    let (mut token, mut state) = first;
    let mut suffix = Segment::empty(graph.dims().layers);
    let (trunk, visible) = trunk;
    let heads = graph.dims().kv_heads;
    for index in 0..reference.logprobs.len() {
        let (positions, next) = positions(grammar, state, &[token]);
        let rows = Rows::new(vec![token], positions, &[visible], &[suffix.len as i64]);
        let output = step(graph, prefix, trunk, &suffix, &rows).unwrap();
        suffix.append(&output, 1, heads);
        state = next;
        assert_near(&output.next_logprob, &reference.logprobs[index..=index], 1e-3);
        if reference.margins[index] < 1e-4 {
            return;
        }
        token = output.next_id[0];
        let wanted = reference.tokens[reference.tokens.len() - reference.logprobs.len() + index];
        assert_eq!(token, wanted, "token {index}");
    }
}

#[test]
fn the_nano_pack_says_what_its_weights_say() {
    let reference: Reference =
        serde_json::from_slice(&std::fs::read(root("fixtures/reference/nano/reference.json")).unwrap())
            .unwrap();
    let picture = image::open(root("fixtures/reference/nano/page.png")).unwrap().to_rgb8();
    let raster = Raster {
        width: picture.width() as usize,
        height: picture.height() as usize,
        rgb: picture.into_raw(),
    };
    let pack = Pack::load(&root("models/nano")).unwrap();
    let Preprocessing::FixedGrid(grid) = &pack.manifest.preprocessing else { panic!("a fixed grid") };
    let input = fixed_grid(&raster, &[], grid.default_dpi, grid);
    let vision = pack.vision_graph(1).unwrap().run(&input).unwrap();
    let mut prefill = pack.prefill_graph(1).unwrap();
    let read = prefill.tokens(&vision, &input).unwrap();
    assert_eq!(read.classes, reference.classes);
    let centres: Vec<f32> = read.centres.iter().flat_map(|&(x, y)| [x, y]).collect();
    assert_near(&centres, reference.centres.as_flattened(), 0.02);
    assert_near(&read.facts, &reference.facts, 0.02);
    let prefix = prefill.run(&vision, &read, &|_, _| None).unwrap();
    let mut graph = pack.decode_graph(1).unwrap();
    let grammar = &pack.grammar;
    let (layers, heads) = (graph.dims().layers, graph.dims().kv_heads);
    let none = Segment::empty(layers);

    let rows = Rows::new(
        reference.trunk.clone(),
        positions(grammar, grammar.trunk_start(), &reference.trunk).0,
        &[0],
        &[0],
    );
    let output = step(&mut graph, &prefix, &none, &none, &rows).unwrap();
    assert_near(&output.draft_logprob[..reference.trunk_logprobs.len()], &reference.trunk_logprobs, 1e-3);
    let mut trunk = Segment::empty(layers);
    trunk.append(&output, reference.trunk.len(), heads);

    let begin = (grammar.trunk_prompt()[0], grammar.trunk_start());
    compare_greedy(&mut graph, grammar, &prefix, (&none, 0), begin, &reference.free_trunk);
    for (&fork, branch) in reference.forks.iter().zip(&reference.branches) {
        let child = (grammar.child_token(), grammar.branch_start(&reference.trunk, fork));
        compare_greedy(&mut graph, grammar, &prefix, (&trunk, fork as i64), child, branch);
    }
}

#[test]
fn the_nano_pack_says_where_it_looks_and_reads_gathered_parts_alike() {
    use crate::kv::{Fed, KvCache, KvLimits, KvView, Reading, RowSource};
    let pack = Pack::load(&root("models/nano")).unwrap();
    let mut graph = pack.decode_graph(1).unwrap();
    let dims = graph.dims();
    assert_eq!(graph.focal_layers(), [2, 4]);
    let prefix = crate::bench::steps::random_prefix(dims, 30);
    let limits = KvLimits { budget_bytes: 1 << 30, max_trunk: 1, max_suffix: 1, first_capacity: 1 };
    let mut kv = KvCache::new(dims, prefix, limits).unwrap();
    kv.set_governing(crate::decode::fixation::governing(dims.layers, &[2, 4]));
    let mut run = |view: KvView<'_>| {
        let fed = Fed {
            tokens: &[195, 0],
            positions: &[1.0, 30.0, 40.0, 0.0, 0.0, 0.0],
            tokens_per_row: 1,
            wants_focal: true,
            watched: &[],
        };
        let input = view.input(fed);
        graph.step(&input).unwrap()
    };
    let sources = [RowSource::Trunk, RowSource::Filler];
    let plain = run(kv.view(&sources));
    for (layer, scores) in [2, 4].into_iter().zip(&plain.focal_scores) {
        let sums: Vec<f32> = scores.chunks_exact(30).map(|row| row.iter().sum()).collect();
        assert_near(&sums, &plain.image_attention[layer * 2..layer * 2 + 2], 1e-5);
    }
    let everything: Vec<u32> = (0..30).collect();
    kv.fixate(&RowSource::Trunk, Some(vec![everything; 2]));
    assert_eq!(run(kv.view_for(&sources, Reading::Fixation(1.0))), plain, "a gathered whole is the whole");
    let few = crate::decode::fixation::select(&plain.focal_scores[0][..30], 0.2, 0);
    kv.fixate(&RowSource::Trunk, Some(vec![few.clone(), few]));
    let view = kv.view_for(&sources, Reading::Fixation(1.0));
    assert_eq!(view.prefix_len, [6, 6, 30, 6, 30, 6]);
    let focused = run(view);
    // The first layer's keys and values do not depend on what is read; the next layer's do.
    assert_eq!(focused.new_keys[0], plain.new_keys[0]);
    assert_ne!(focused.new_keys[1], plain.new_keys[1]);
}
