//! The real decoder of the nano pack: forked, batched and drafted decoding write what plain decoding writes.
//!
//! Calls of different shapes take different paths through the matrix products, so two tokens whose log-probabilities differ by
//! less than [`NEAR_TIE`] may change places; those places are counted and printed (`--nocapture`).

use std::ffi::OsStr;

use docparse::decode::protocol::{DraftToken, KeptToken, Protocol};
use docparse::decode::{LoopSettings, PageDecoding, PageDrafts, decode_page};
use docparse::drafts::content_draft::content_draft;
use docparse::drafts::nets::{BoundNets, Nets};
use docparse::drafts::structure::draft_regions;
use docparse::drafts::trunk_draft::trunk_draft;
use docparse::drafts::words::page_words;
use docparse::graphs::manifest::Preprocessing;
use docparse::graphs::onnx::OnnxDecodeGraph;
use docparse::graphs::pack::Pack;
use docparse::graphs::{DecodeGraph, Prefix, StepInput, StepOutput, TokenId};
use docparse::page::Source;
use docparse::pdf::{Document, OpenOptions};
use docparse::settings::{Drafters, Limits, RasterSettings};
use docparse::tokens::Grammar;
use docparse::vision::{VisionInput, fixed_grid};

use crate::program::{convert, fixture, repository};

/// Log-probabilities closer than this are a tie.
const NEAR_TIE: f32 = 1e-4;

/// A page of a real document, ready to be decoded by the real pack.
struct Bench {
    pack: Pack,
    graph: OnnxDecodeGraph,
    input: VisionInput,
    prefix: Prefix,
    /// What the drafters say of it.
    drafts: PageDrafts,
}

impl Bench {
    fn new() -> Bench {
        docparse::graphs::runtime::environment().expect("`scripts/setup` was run");
        let pack = Pack::load(&repository("models/nano")).expect("the pack is whole");
        let Preprocessing::FixedGrid(grid) = &pack.manifest.preprocessing else { panic!("a fixed grid") };
        let options = OpenOptions {
            raster: RasterSettings { dpi: grid.default_dpi, ..RasterSettings::default() },
            password: None,
            limits: Limits::default(),
            program: env!("CARGO_BIN_EXE_docparse").into(),
        };
        let evidence =
            Document::open(&fixture("report.pdf"), &options).expect("a document").page(3).expect("a page");
        let dpi = evidence.scale * 72.0;
        let mut nets = Nets::new(&repository("models/third-party"), &Drafters::ALL, 1);
        let words = page_words(evidence, &mut nets, &Drafters::ALL);
        let regions = draft_regions(&words, &mut BoundNets::new(&mut nets, &words.raster, &words.words));
        let input = fixed_grid(&words.raster, &words.words, dpi, grid);
        let trunk =
            trunk_draft(&regions, &pack.grammar, &input.mapping).expect("regions that can be drafted");
        let content = trunk.regions.iter().filter_map(|drafted| {
            let draft = content_draft(&regions[drafted.region], &pack.grammar, &input.mapping)?;
            Some((drafted.fork?, draft.tokens))
        });
        let drafts = PageDrafts { content: content.collect(), trunk: trunk.tokens, ..PageDrafts::default() };
        let prefix = prefill(&pack, &input);
        let graph = pack.decode_graph(1).expect("a graph");
        Bench { graph, prefix, drafts, input, pack }
    }

    /// A few short branches: nano reads weakly and repeats itself.
    fn settings() -> LoopSettings {
        LoopSettings { max_tokens: 48, max_trunk_tokens: 72, max_branches: 6, ..LoopSettings::default() }
    }

    fn decode(&mut self, drafts: &PageDrafts, settings: &LoopSettings) -> PageDecoding {
        let prefix = self.prefix.clone();
        let decoded = decode_page(&mut self.graph, &*self.pack.grammar, prefix, drafts.clone(), settings);
        let decoding = decoded.expect("the graph runs");
        assert!(decoding.branches.iter().filter(|b| b.tokens.len() > 4).count() >= 3, "{decoding:?}");
        decoding
    }
}

/// Vision and prefill from new sessions.
fn prefill(pack: &Pack, input: &VisionInput) -> Prefix {
    let vision = pack.vision_graph(1).expect("a graph").run(input).expect("features");
    let mut prefill = pack.prefill_graph(1).expect("a graph");
    let tokens = prefill.tokens(&vision, input).expect("visual tokens");
    prefill.run(&vision, &tokens, &|_, _| None).expect("a prefix")
}

fn ids(tokens: &[KeptToken]) -> Vec<TokenId> {
    tokens.iter().map(|token| token.id).collect()
}

/// One call over `prefix` with nothing cached: the trunk up to the fork, the child token and the branch, as one row.
fn alone(
    graph: &mut OnnxDecodeGraph,
    grammar: &Grammar,
    prefix: &Prefix,
    trunk: &[TokenId],
    branch: &[TokenId],
) -> StepOutput {
    let fork = trunk.len() - 1;
    let visible = fork + usize::from(grammar.fork_visible());
    let mut tokens = trunk[..visible].to_vec();
    let mut state = grammar.trunk_start();
    let mut positions = Vec::new();
    let parts = graph.dims().position_parts;
    for &token in &tokens {
        let (position, next) = grammar.feed(state, token);
        positions.extend_from_slice(&position[..parts]);
        state = next;
    }
    state = grammar.branch_start(trunk, fork);
    for &token in [grammar.child_token()].iter().chain(branch) {
        let (position, next) = grammar.feed(state, token);
        positions.extend_from_slice(&position[..parts]);
        tokens.push(token);
        state = next;
    }
    let dims = graph.dims();
    let nothing = vec![0.0; dims.kv_heads * dims.head_dim];
    let each = |of: &'_ [Vec<f32>]| -> Vec<Vec<f32>> { of.to_vec() };
    let (keys, values) = (each(&prefix.keys), each(&prefix.values));
    let empty = || vec![nothing.as_slice(); dims.layers];
    let input = StepInput {
        wants_focal: false,
        watched: &[],
        tokens: &tokens,
        positions: &positions,
        pages: 1,
        rows: 1,
        tokens_per_row: tokens.len(),
        trunk_visible: &[0],
        suffix_len: &[0],
        prefix_keys: keys.iter().map(Vec::as_slice).collect(),
        prefix_values: values.iter().map(Vec::as_slice).collect(),
        prefix_len: vec![prefix.len; dims.layers],
        prefix_capacity: vec![prefix.len; dims.layers],
        trunk_keys: empty(),
        trunk_values: empty(),
        trunk_capacity: 1,
        suffix_keys: empty(),
        suffix_values: empty(),
        suffix_capacity: 1,
    };
    graph.step(&input).expect("the graph runs")
}

#[test]
fn a_forked_branch_writes_what_it_would_write_alone() {
    let mut bench = Bench::new();
    let decoding = bench.decode(&PageDrafts::default(), &Bench::settings());
    let trunk = ids(&decoding.trunk);
    let (mut compared, mut ties, mut widest) = (0, 0, 0f32);
    for branch in &decoding.branches {
        let prefix = prefill(&bench.pack, &bench.input);
        let tokens = ids(&branch.tokens);
        let to_fork = &trunk[..=branch.fork_index];
        let output = alone(&mut bench.graph, &bench.pack.grammar, &prefix, to_fork, &tokens);
        // The output at the child token chooses the branch's first token.
        let child = output.next_id.len() - tokens.len() - 1;
        for (at, (&token, kept)) in (child..).zip(tokens.iter().zip(&branch.tokens)) {
            compared += 1;
            widest = widest.max((output.draft_logprob[at].exp() - kept.probability).abs());
            if output.next_id[at] != token {
                let gap = output.next_logprob[at] - output.draft_logprob[at];
                assert!(gap < NEAR_TIE, "token {} of the branch at {}: {gap}", at - child, branch.fork_index);
                ties += 1;
            }
        }
    }
    println!(
        "forked and alone: {compared} tokens of {} branches, {ties} near ties, probabilities within {widest:.1e}",
        decoding.branches.len()
    );
    assert!(compared > 50 && widest < 1e-3, "{compared} tokens, {widest}");
}

/// Compares up to the first near tie: tokens compared, and ties met.
fn compare(name: &str, left: &[KeptToken], right: &[KeptToken]) -> (usize, usize) {
    let Some(at) = left.iter().zip(right).position(|(a, b)| a.id != b.id) else {
        assert_eq!(left.len(), right.len(), "{name}: one goes on");
        return (left.len(), 0);
    };
    let gap = (left[at].probability.ln() - right[at].probability.ln()).abs();
    assert!(gap < NEAR_TIE, "{name}: token {at}: {:?} and {:?}", left[at], right[at]);
    (at, 1)
}

/// Both decodings wrote the same trunk and the same branches.
#[expect(clippy::print_stdout, reason = "near ties are to be seen")]
fn assert_same_decodings(what: &str, left: &PageDecoding, right: &PageDecoding) {
    let (common, mut ties) = compare("trunk", &left.trunk, &right.trunk);
    let mut tokens = common;
    for branch in left.branches.iter().filter(|b| b.fork_index < common) {
        let other = right.branches.iter().find(|b| b.fork_index == branch.fork_index);
        let other = other.unwrap_or_else(|| panic!("no branch at {}", branch.fork_index));
        let name = format!("branch at {}", branch.fork_index);
        let (compared, tied) = compare(&name, &branch.tokens, &other.tokens);
        assert!(tied > 0 || branch.stop == other.stop, "{name}: {:?}, {:?}", branch.stop, other.stop);
        tokens += compared;
        ties += tied;
    }
    println!("{what}: {tokens} tokens compared, {ties} near ties");
    assert!(tokens > 50, "{what}: only {tokens} tokens compared");
    assert!(ties > 0 || left.branches.len() == right.branches.len());
}

/// The decoding as a draft of itself in which every `n`th token is wrong.
fn drafts_of(decoding: &PageDecoding, prompt_len: usize, n: usize) -> PageDrafts {
    let draft = |tokens: &[KeptToken]| -> Vec<DraftToken> {
        let wrong = |at: usize, id: TokenId| if at % n == n - 1 { id ^ 1 } else { id };
        let tokens = tokens.iter().enumerate();
        tokens
            .map(|(at, token)| DraftToken {
                id: wrong(at, token.id),
                confidence: 1.0,
                source: Source::TextLayer,
                origin: at as u32,
            })
            .collect()
    };
    let content = decoding.branches.iter().map(|b| (b.fork_index - prompt_len, draft(&b.tokens)));
    PageDrafts {
        content: content.collect(),
        trunk: draft(&decoding.trunk[prompt_len..]),
        ..PageDrafts::default()
    }
}

#[test]
fn branches_together_write_what_they_write_one_by_one() {
    let mut bench = Bench::new();
    let together = bench.decode(&PageDrafts::default(), &Bench::settings());
    let one_row = LoopSettings { max_rows: 1, ..Bench::settings() };
    let one_by_one = bench.decode(&PageDrafts::default(), &one_row);
    assert!(together.stats.max_rows >= 4 && one_by_one.stats.max_rows == 1);
    assert!(together.stats.calls < one_by_one.stats.calls);
    assert_same_decodings("together and one by one", &together, &one_by_one);
}

#[test]
fn lossless_drafts_change_no_token() {
    let mut bench = Bench::new();
    let plain = bench.decode(&PageDrafts::default(), &Bench::settings());
    let of_drafters = bench.drafts.clone();
    let drafted = bench.decode(&of_drafters, &Bench::settings());
    assert!(drafted.stats.drafted.values().sum::<usize>() > 20);
    assert_same_decodings("no drafts and the drafters'", &plain, &drafted);

    let prompt_len = bench.pack.grammar.trunk_prompt().len();
    for n in [5, 1000] {
        let drafts = drafts_of(&plain, prompt_len, n);
        let drafted = bench.decode(&drafts, &Bench::settings());
        let accepted: usize = drafted.stats.accepted.values().sum();
        assert!(accepted > 20 && drafted.stats.calls < plain.stats.calls, "{:?}", drafted.stats);
        assert_same_decodings(&format!("no drafts and its own, one in {n} wrong"), &plain, &drafted);
    }
}

/// Pictures read without any draft, so many a call: the texts of their pages, and how many calls were shared.
fn read_undrafted(pages_per_call: &str) -> (Vec<String>, u64) {
    let dir = tempfile::tempdir().expect("a folder");
    let inputs: Vec<_> = ["a.png", "b.png", "c.png"].map(|name| dir.path().join(name)).into();
    for input in &inputs {
        std::fs::copy(repository("fixtures/reference/nano/page.png"), input).expect("a copy");
    }
    let stats = dir.path().join("stats.json");
    let stats_name = stats.display().to_string();
    let options =
        ["--drafts", "none", "--accept", "lossless", "--jobs", "1", "-f", "json", "--stats", &stats_name];
    let mut arguments: Vec<&OsStr> = inputs.iter().map(|input| input.as_os_str()).collect();
    let out = dir.path().join("out");
    arguments.extend([OsStr::new("-o"), out.as_os_str()]);
    arguments.extend([OsStr::new("--pages-per-call"), OsStr::new(pages_per_call)]);
    arguments.extend(options.map(OsStr::new));
    // A looping region makes the pages partial, which is not what this is about.
    let ran = convert(arguments);
    let text = |name: &str| {
        let page = std::fs::read(out.join(name).join("page-0001.json"));
        let page = page.unwrap_or_else(|_| panic!("{}", ran.stderr));
        let page: serde_json::Value = serde_json::from_slice(&page).expect("JSON");
        let elements = page["page"]["elements"].as_array().expect("elements").clone();
        elements
            .iter()
            .map(|e| e["text"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    };
    let stats: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&stats).expect("stats")).expect("JSON");
    let shared = stats["counts"]["decode_calls_shared"].as_u64().expect("a count");
    (["a", "b", "c"].map(text).into(), shared)
}

#[test]
fn pages_read_together_are_read_as_they_are_one_by_one() {
    let (together, shared) = read_undrafted("3");
    let (one_by_one, none) = read_undrafted("1");
    assert_eq!(together, one_by_one);
    assert!(together.iter().all(|text| text.len() > 40), "{together:?}");
    assert!(shared > 30 && none == 0, "{shared}, {none}");
}
