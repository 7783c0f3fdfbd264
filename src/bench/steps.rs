//! One decode step, by live rows and by what of the prefix it reads: what the graph takes, what choosing and gathering take,
//! and whether the model still says the same.
//!
//! The loop itself reads everything where the rows' union is large (`max_share` of the settings of fixation and retention); here
//! the union is always gathered, so that the grid shows where that stops paying.
//!
//! Rows are branches of one page with a suffix of their own, fed the same tokens in every cell. The prefix's part of a step is
//! what the step takes beyond one without a prefix.

mod report;

use std::collections::BTreeMap;

use crate::clock::Clock;
use crate::decode::fixation::{governing, select};
use crate::decode::retention::retained;
use crate::graphs::{DecodeGraph, Dims, GraphError, Prefix, StepOutput, TokenId};
use crate::kv::{Branch, Fed, KvCache, KvLimits, Member, NewRows, PagePool, Reading, Retention, RowSource};

/// What of the prefix a step reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// All of it.
    Plain,
    /// The share that each row looked at in the step before, in the layers that do not choose.
    Fixation(f32),
    /// The share that each row chose once.
    Retention(f32),
    /// All of it, and so many pages share each step.
    Together(usize),
    /// There is none.
    NoPrefix,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct GridSettings {
    pub rows: Vec<usize>,
    pub methods: Vec<Method>,
    /// Steps of a measurement, after a first one that attends to everything.
    pub steps: usize,
    /// Tokens of each row's suffix before the first step.
    pub suffix: usize,
    pub repetitions: usize,
    pub vocabulary: usize,
    pub threads: usize,
}

impl GridSettings {
    pub fn new(vocabulary: usize, repetitions: usize, threads: usize) -> GridSettings {
        let fixation = [0.5, 0.2, 0.1, 0.05, 0.02].map(Method::Fixation);
        let retention = [0.5, 0.2, 0.1].map(Method::Retention);
        let methods = [Method::Plain].into_iter().chain(fixation).chain(retention).chain([Method::NoPrefix]);
        GridSettings {
            rows: vec![1, 2, 4, 8, 16],
            methods: methods.collect(),
            steps: 24,
            suffix: 64,
            repetitions,
            vocabulary,
            threads,
        }
    }
}

/// One measurement, per step; where pages share steps, of one of them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Run {
    graph_ms: f64,
    host_ms: f64,
    /// Share of the prefix that a layer read, mean over layers and steps.
    read: f64,
    /// Choices of the model, `[steps, rows]`.
    choices: Vec<TokenId>,
    /// Most bytes of keys and values at once.
    kv_bytes: usize,
}

impl Run {
    /// Adds a step's seconds, in the graph and in all, as one of `steps`.
    fn add(&mut self, graph: f64, whole: f64, steps: usize) {
        let ms = 1e3 / steps as f64;
        self.graph_ms += graph * ms;
        self.host_ms += (whole - graph) * ms;
    }
}

/// The measured grid.
#[derive(Clone, Debug)]
pub struct Grid {
    prefix_len: usize,
    /// By rows and place in the list of methods.
    runs: BTreeMap<(usize, usize), Vec<Run>>,
    settings: GridSettings,
}

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Between -1 and 1.
    fn part(&mut self) -> f32 {
        self.next() as f32 / (1u64 << 30) as f32 - 1.0
    }

    fn parts(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.part()).collect()
    }
}

/// A prefix of random numbers, for graphs with random weights.
pub fn random_prefix(dims: Dims, len: usize) -> Prefix {
    let mut numbers = Numbers(3);
    let size = dims.kv_heads * len * dims.head_dim;
    let mut layers = || (0..dims.layers).map(|_| numbers.parts(size)).collect();
    Prefix { len, keys: layers(), values: layers(), ..Prefix::default() }
}

/// Measures every cell that the graph can run, by turns.
pub fn measure(
    graph: &mut dyn DecodeGraph,
    prefix: &Prefix,
    settings: &GridSettings,
    progress: &mut dyn FnMut(&str),
) -> Result<Grid, GraphError> {
    let mut settings = settings.clone();
    let (focal, saliency) = (!graph.focal_layers().is_empty(), graph.has_saliency());
    let joins = graph.joins_pages();
    settings.methods.retain(|method| match method {
        Method::Fixation(_) => focal,
        Method::Retention(_) => saliency,
        Method::Together(_) => joins,
        Method::Plain | Method::NoPrefix => true,
    });
    let mut runs: BTreeMap<(usize, usize), Vec<Run>> = BTreeMap::new();
    for repetition in 0..settings.repetitions {
        for &rows in &settings.rows {
            for (place, &method) in settings.methods.iter().enumerate() {
                let run = match method {
                    Method::Together(pages) => run_together(graph, prefix, (pages, rows), &settings)?,
                    _ => run(graph, prefix, rows, method, &settings)?,
                };
                runs.entry((rows, place)).or_default().push(run);
            }
            progress(&format!("steps of {rows} rows, repetition {}", repetition + 1));
        }
    }
    Ok(Grid { prefix_len: prefix.len, runs, settings })
}

/// The rows of a measurement: branches of a page.
struct Rows {
    kv: KvCache,
    branches: Vec<Branch>,
    numbers: Numbers,
}

impl Rows {
    fn new(prefix: Prefix, dims: Dims, rows: usize, settings: &GridSettings) -> Rows {
        let limits = KvLimits {
            budget_bytes: usize::MAX / 2,
            max_trunk: 8,
            max_suffix: settings.suffix + settings.steps + 2,
            first_capacity: 64,
        };
        let mut kv = KvCache::new(dims, prefix, limits).expect("the budget is not limited");
        let mut numbers = Numbers(17);
        let branches: Vec<Branch> = (0..rows).map(|_| kv.fork(0)).collect();
        for branch in &branches {
            append_random(&mut kv, branch, dims, settings.suffix, &mut numbers);
        }
        Rows { kv, branches, numbers }
    }

    /// Takes the new rows of a step in which the first one is number `first`.
    fn append(&mut self, output: &StepOutput, first: usize) {
        for (row, branch) in self.branches.iter().enumerate() {
            let new = NewRows {
                keys: &output.new_keys,
                values: &output.new_values,
                row: first + row,
                tokens_per_row: 1,
                count: 1,
            };
            self.kv.append(branch, &new).expect("the budget is not limited");
        }
    }

    /// Takes where the rows looked.
    fn choose(&mut self, output: &StepOutput, method: Method, rows: usize, dims: Dims) {
        for (row, branch) in self.branches.iter().enumerate() {
            match method {
                Method::Fixation(tau) => {
                    let set = |scores: &Vec<f32>| {
                        let len = scores.len() / rows;
                        select(&scores[row * len..(row + 1) * len], tau, 0)
                    };
                    let sets = output.focal_scores.iter().map(set).collect();
                    self.kv.fixate(&RowSource::Branch(branch), Some(sets));
                }
                Method::Retention(rate) if !output.saliency.is_empty() => {
                    let kept = retention(&output.saliency, row, self.branches.len(), rate, &self.kv, dims);
                    self.kv.retain(branch, Some(kept));
                }
                Method::Retention(_) | Method::Plain | Method::Together(_) | Method::NoPrefix => {}
            }
        }
    }
}

/// What a row keeps by the saliency of one query, `[KVH, watched, G, len]` by layer.
fn retention(
    saliency: &[Vec<f32>],
    row: usize,
    watched: usize,
    rate: f32,
    kv: &KvCache,
    dims: Dims,
) -> Retention {
    let count = (rate * kv.prefix().len as f32).ceil() as usize;
    let of_layer = |(layer, saliency): (usize, &Vec<f32>)| {
        let size = saliency.len() / (dims.kv_heads * watched);
        let heads = (0..dims.kv_heads).flat_map(|head| &saliency[(head * watched + row) * size..][..size]);
        let own: Vec<f32> = heads.copied().collect();
        retained(&own, kv.prefix().layer_len(layer), dims.kv_heads, count, &[], 0)
    };
    saliency.iter().enumerate().map(of_layer).collect()
}

fn run(
    graph: &mut dyn DecodeGraph,
    prefix: &Prefix,
    rows: usize,
    method: Method,
    settings: &GridSettings,
) -> Result<Run, GraphError> {
    let (dims, focal) = (graph.dims(), graph.focal_layers().to_vec());
    let read = if method == Method::NoPrefix { random_prefix(dims, 0) } else { prefix.clone() };
    let mut page = Rows::new(read, dims, rows, settings);
    if let Method::Fixation(_) = method {
        page.kv.set_governing(governing(dims.layers, &focal));
    }
    let mut run = Run::default();
    for step in 0..=settings.steps {
        let fed_rows = rows.max(2);
        let mut fed = FedRows::default();
        fed.add(fed_rows, dims, settings, step, &mut page.numbers);
        let clock = Clock::start(settings.threads);
        let watched: Vec<i64> = (0..if step == 0 { rows as i64 } else { 0 }).collect();
        let (reading, watched) = match method {
            Method::Fixation(_) => (Reading::Fixation(1.0), &[][..]),
            Method::Retention(_) => (Reading::Retention(1.0), watched.as_slice()),
            Method::Plain | Method::Together(_) | Method::NoPrefix => (Reading::Everything, &[][..]),
        };
        let mut sources: Vec<RowSource<'_>> = page.branches.iter().map(RowSource::Branch).collect();
        sources.resize(fed_rows, RowSource::Filler);
        let view = page.kv.view_for(&sources, reading);
        let read = view.prefix_read(0);
        let input = view.input(Fed {
            tokens: &fed.tokens,
            positions: &fed.positions,
            tokens_per_row: 1,
            wants_focal: matches!(method, Method::Fixation(_)),
            watched,
        });
        let graph_clock = Clock::start(settings.threads);
        let output = graph.step(&input)?;
        let graph_seconds = graph_clock.seconds();
        drop(sources);
        page.append(&output, 0);
        page.choose(&output, method, fed_rows, dims);
        if step > 0 {
            run.add(graph_seconds, clock.seconds(), settings.steps);
            run.read += read / (settings.steps * prefix.len.max(1)) as f64;
            run.choices.extend_from_slice(&output.next_id[..rows]);
        }
    }
    run.kv_bytes = page.kv.peak_bytes();
    Ok(run)
}

/// Steps that `pages` pages of `rows` rows each share.
fn run_together(
    graph: &mut dyn DecodeGraph,
    prefix: &Prefix,
    (pages, rows): (usize, usize),
    settings: &GridSettings,
) -> Result<Run, GraphError> {
    let dims = graph.dims();
    let mut together: Vec<Rows> = Vec::with_capacity(pages);
    let mut pool = PagePool::new(dims, 64);
    for place in 0..pages {
        together.push(Rows::new(prefix.clone(), dims, rows, settings));
        pool.enter(place, &mut together[place].kv);
    }
    let mut run = Run { read: 1.0, ..Run::default() };
    for step in 0..=settings.steps {
        let mut fed = FedRows::default();
        for (place, page) in together.iter_mut().enumerate() {
            // As many as a page alone is fed: its filler, too.
            fed.add(rows.max(2), dims, settings, step, &mut page.numbers);
            fed.tokens.truncate((place + 1) * rows);
            fed.positions.truncate((place + 1) * rows * dims.position_parts);
        }
        let clock = Clock::start(settings.threads);
        let mut members: Vec<Member<'_, '_>> = Vec::with_capacity(pages);
        for Rows { kv, branches, .. } in &mut together {
            members.push((kv, branches.iter().map(RowSource::Branch).collect()));
        }
        let view = pool.view(&mut members);
        let input = view.input(Fed {
            tokens: &fed.tokens,
            positions: &fed.positions,
            tokens_per_row: 1,
            wants_focal: false,
            watched: &[],
        });
        let graph_clock = Clock::start(settings.threads);
        let output = graph.step(&input)?;
        let graph_seconds = graph_clock.seconds();
        drop(members);
        for (place, page) in together.iter_mut().enumerate() {
            page.append(&output, place * rows);
        }
        if step > 0 {
            run.add(graph_seconds, clock.seconds(), settings.steps * pages);
            run.choices.extend_from_slice(&output.next_id[..rows]);
        }
    }
    run.kv_bytes = together.iter().map(|page| page.kv.peak_bytes()).sum::<usize>() + pool.bytes();
    Ok(run)
}

/// What the rows of a call are fed.
#[derive(Default)]
struct FedRows {
    tokens: Vec<TokenId>,
    positions: Vec<f32>,
}

impl FedRows {
    /// Adds random ones.
    fn add(&mut self, rows: usize, dims: Dims, settings: &GridSettings, step: usize, numbers: &mut Numbers) {
        let tokens = (0..rows).map(|_| (numbers.next() % settings.vocabulary.max(1) as u64) as TokenId);
        self.tokens.extend(tokens);
        let order = (settings.suffix + step + 1) as f32;
        let positions = (0..rows).flat_map(|row| {
            // Rows read different places of the page.
            [order, 40.0 + 60.0 * row as f32, 60.0 + 8.0 * step as f32].into_iter().take(dims.position_parts)
        });
        self.positions.extend(positions);
    }
}

fn append_random(kv: &mut KvCache, branch: &Branch, dims: Dims, count: usize, numbers: &mut Numbers) {
    let size = dims.kv_heads * count * dims.head_dim;
    let mut layers = || (0..dims.layers).map(|_| numbers.parts(size)).collect::<Vec<Vec<f32>>>();
    let (keys, values) = (layers(), layers());
    let new = NewRows { keys: &keys, values: &values, row: 0, tokens_per_row: count, count };
    kv.append(branch, &new).expect("the budget is not limited");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::fake::{FakeGraph, Next, Seen, prefix};

    /// Four steps of small suffixless rows.
    fn few_steps(rows: &[usize], methods: &[Method]) -> GridSettings {
        GridSettings {
            rows: rows.to_vec(),
            methods: methods.to_vec(),
            steps: 4,
            suffix: 0,
            repetitions: 1,
            vocabulary: 30,
            threads: 2,
        }
    }

    #[test]
    fn plain_steps_read_everything_and_the_methods_their_share() {
        let rule = |seen: &[Seen]| Next { id: seen.len() as TokenId, probability: 0.5, other: 0.1 };
        let mut graph = FakeGraph::new(&rule);
        let (prefix, _) = prefix(&(1000..1040).collect::<Vec<TokenId>>());
        let settings = few_steps(
            &[1, 3],
            &[Method::Plain, Method::Fixation(0.1), Method::Retention(0.2), Method::NoPrefix],
        );
        let plain = measure(&mut graph, &prefix, &settings, &mut |_| ()).unwrap();
        assert_eq!(plain.settings.methods, [Method::Plain, Method::NoPrefix], "the graph says nothing");
        graph.focal_layers = vec![1];
        graph.saliency = true;
        let grid = measure(&mut graph, &prefix, &settings, &mut |_| ()).unwrap();
        let read = |rows, place| grid.of(rows, place, |run| run.read)[0];
        assert!((read(1, 0) - 1.0).abs() < 1e-9);
        // The focal one of two layers reads everything, the other 4 of 40.
        assert!((read(1, 1) - 0.55).abs() < 1e-9, "{}", read(1, 1));
        assert!(read(3, 1) > 0.55 && read(3, 1) < 1.0);
        assert!((read(1, 2) - 0.2).abs() < 1e-9, "{}", read(1, 2));
        assert_eq!(read(3, 3), 0.0);
        assert_eq!(grid.json()["cells"].as_array().unwrap().len(), 6);
    }

    #[test]
    fn pages_that_share_steps_choose_what_one_alone_chooses() {
        let last = |seen: &[Seen]| seen.last().map_or(0, |seen| seen.token);
        let rule = |seen: &[Seen]| Next { id: last(seen), probability: 0.5, other: 0.1 };
        let mut graph = FakeGraph::new(&rule);
        let (prefix, _) = prefix(&(1000..1010).collect::<Vec<TokenId>>());
        let settings = few_steps(&[1, 2], &[Method::Plain, Method::Together(3), Method::NoPrefix]);
        let alone = measure(&mut graph, &prefix, &settings, &mut |_| ()).unwrap();
        assert_eq!(alone.settings.methods, [Method::Plain, Method::NoPrefix], "the graph is for one page");
        graph.joins_pages = true;
        let grid = measure(&mut graph, &prefix, &settings, &mut |_| ()).unwrap();
        assert!((grid.agreement(2, 1) - 1.0).abs() < 1e-9 && (grid.agreement(1, 1) - 1.0).abs() < 1e-9);
        assert_eq!(graph.calls.iter().map(|call| call.pages).max(), Some(3));
        assert!(grid.ratios().contains_key("step_time_together3_rows2"));
    }
}
