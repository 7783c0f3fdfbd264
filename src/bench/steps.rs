//! One decode step under fixation, by live rows and share: what the graph takes, what choosing and gathering take, and
//! whether the model still says the same.
//!
//! The loop itself reads everything where the rows' union is large ([`crate::decode::fixation::FixationSettings::max_share`]);
//! here the union is always gathered, so that the grid shows where that stops paying.
//!
//! Rows are branches of one page with a suffix of their own, fed the same tokens in every cell. The prefix's part of a step is
//! what the step takes beyond one without a prefix.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::figures::{Better, Figure, Ratio, median};
use crate::decode::fixation::{governing, select};
use crate::drafts::clock::Clock;
use crate::graphs::{DecodeGraph, Dims, GraphError, Prefix, StepInput, StepOutput, TokenId};
use crate::kv::{Branch, KvCache, KvLimits, NewRows, RowSource};

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct GridSettings {
    pub rows: Vec<usize>,
    /// Shares of the prefix; 1 is plain decoding.
    pub taus: Vec<f32>,
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
        GridSettings {
            rows: vec![1, 4, 16],
            taus: vec![1.0, 0.5, 0.2, 0.1, 0.05],
            steps: 24,
            suffix: 64,
            repetitions,
            vocabulary,
            threads,
        }
    }
}

/// One measurement, per step.
#[derive(Clone, Debug, Default, PartialEq)]
struct Run {
    graph_ms: f64,
    host_ms: f64,
    /// Share of the prefix that a layer read, mean over layers and steps.
    read: f64,
    /// Choices of the model, `[steps, rows]`.
    choices: Vec<TokenId>,
}

/// The measured grid.
#[derive(Clone, Debug)]
pub struct Grid {
    prefix_len: usize,
    /// By rows and place in the list of shares; the last place is a step without a prefix.
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
    Prefix { len, keys: layers(), values: layers(), next_order: 0.0 }
}

/// Measures every cell, by turns. `None` for a graph that does not say where it looks.
pub fn measure(
    graph: &mut dyn DecodeGraph,
    prefix: &Prefix,
    settings: &GridSettings,
) -> Result<Option<Grid>, GraphError> {
    if graph.focal_layers().is_empty() || prefix.len == 0 {
        return Ok(None);
    }
    let mut runs: BTreeMap<(usize, usize), Vec<Run>> = BTreeMap::new();
    let none = random_prefix(graph.dims(), 0);
    for _ in 0..settings.repetitions {
        for &rows in &settings.rows {
            for (place, &tau) in settings.taus.iter().enumerate() {
                let run = run(graph, prefix, rows, tau, settings)?;
                runs.entry((rows, place)).or_default().push(run);
            }
            let floor = run(graph, &none, rows, 1.0, settings)?;
            runs.entry((rows, settings.taus.len())).or_default().push(floor);
        }
    }
    Ok(Some(Grid { prefix_len: prefix.len, runs, settings: settings.clone() }))
}

fn run(
    graph: &mut dyn DecodeGraph,
    prefix: &Prefix,
    rows: usize,
    tau: f32,
    settings: &GridSettings,
) -> Result<Run, GraphError> {
    let (dims, focal) = (graph.dims(), graph.focal_layers().to_vec());
    let mut numbers = Numbers(17);
    let limits = KvLimits {
        budget_bytes: usize::MAX / 2,
        max_trunk: 8,
        max_suffix: settings.suffix + settings.steps + 2,
        first_capacity: 64,
    };
    let mut kv = KvCache::new(dims, prefix.clone(), limits).expect("the budget is not limited");
    kv.set_governing(governing(dims.layers, &focal));
    let branches: Vec<Branch> = (0..rows).map(|_| kv.fork(0)).collect();
    for branch in &branches {
        append_random(&mut kv, branch, dims, settings.suffix, &mut numbers);
    }
    let mut sources: Vec<RowSource<'_>> = branches.iter().map(RowSource::Branch).collect();
    if rows == 1 {
        sources.push(RowSource::Filler);
    }
    let mut run = Run::default();
    let mut seconds = (0.0, 0.0);
    for step in 0..=settings.steps {
        let fed = Fed::random(sources.len(), dims, settings, step, &mut numbers);
        let clock = Clock::start(settings.threads);
        let focused = tau < 1.0 && prefix.len > 0;
        let (output, graph_seconds, read) =
            call(graph, &mut kv, &sources, &fed, focused.then_some(1.0), settings.threads)?;
        for (row, branch) in branches.iter().enumerate() {
            let new = NewRows {
                keys: &output.new_keys,
                values: &output.new_values,
                row,
                tokens_per_row: 1,
                count: 1,
            };
            kv.append(branch, &new).expect("the budget is not limited");
            if focused {
                let set = |index: usize| {
                    let start = (index * sources.len() + row) * prefix.len;
                    select(&output.focal_scores[start..start + prefix.len], tau, 0)
                };
                kv.fixate(&RowSource::Branch(branch), Some((0..focal.len()).map(set).collect()));
            }
        }
        if step > 0 {
            seconds.0 += graph_seconds;
            seconds.1 += clock.seconds() - graph_seconds;
            run.read += read / settings.steps as f64;
            run.choices.extend_from_slice(&output.next_id[..rows]);
        }
    }
    let per_step = 1e3 / settings.steps as f64;
    (run.graph_ms, run.host_ms) = (seconds.0 * per_step, seconds.1 * per_step);
    Ok(run)
}

/// What the rows of a call are fed.
struct Fed {
    tokens: Vec<TokenId>,
    positions: Vec<f32>,
}

impl Fed {
    fn random(rows: usize, dims: Dims, settings: &GridSettings, step: usize, numbers: &mut Numbers) -> Fed {
        let tokens = (0..rows).map(|_| (numbers.next() % settings.vocabulary.max(1) as u64) as TokenId);
        let tokens = tokens.collect();
        let order = (settings.suffix + step + 1) as f32;
        let positions = (0..rows).flat_map(|row| {
            // Rows read different places of the page.
            [order, 40.0 + 60.0 * row as f32, 60.0 + 8.0 * step as f32].into_iter().take(dims.position_parts)
        });
        Fed { tokens, positions: positions.collect() }
    }
}

fn append_random(kv: &mut KvCache, branch: &Branch, dims: Dims, count: usize, numbers: &mut Numbers) {
    let size = dims.kv_heads * count * dims.head_dim;
    let mut layers = || (0..dims.layers).map(|_| numbers.parts(size)).collect::<Vec<Vec<f32>>>();
    let (keys, values) = (layers(), layers());
    let new = NewRows { keys: &keys, values: &values, row: 0, tokens_per_row: count, count };
    kv.append(branch, &new).expect("the budget is not limited");
}

/// One call; its seconds in the graph, and the share of the prefix that a layer read.
fn call(
    graph: &mut dyn DecodeGraph,
    kv: &mut KvCache,
    sources: &[RowSource<'_>],
    fed: &Fed,
    max_share: Option<f32>,
    threads: usize,
) -> Result<(StepOutput, f64, f64), GraphError> {
    let view = match max_share {
        Some(max_share) => kv.focused_view(sources, max_share),
        None => kv.view(sources),
    };
    let whole = view.prefix_len.iter().max().copied().unwrap_or(0);
    let read = view.prefix_len.iter().sum::<usize>() as f64 / (whole * view.prefix_len.len()).max(1) as f64;
    let input = StepInput {
        tokens: &fed.tokens,
        positions: &fed.positions,
        rows: sources.len(),
        tokens_per_row: 1,
        trunk_visible: &view.trunk_visible,
        suffix_len: &view.suffix_len,
        prefix_keys: view.prefix_keys,
        prefix_values: view.prefix_values,
        prefix_len: view.prefix_len,
        trunk_keys: view.trunk_keys,
        trunk_values: view.trunk_values,
        trunk_capacity: view.trunk_capacity,
        suffix_keys: view.suffix_keys,
        suffix_values: view.suffix_values,
        suffix_capacity: view.suffix_capacity,
        wants_focal: max_share.is_some(),
    };
    let clock = Clock::start(threads);
    let output = graph.step(&input)?;
    Ok((output, clock.seconds(), read))
}

impl Grid {
    fn of(&self, rows: usize, place: usize, of: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.runs.get(&(rows, place)).map(|runs| runs.iter().map(of).collect()).unwrap_or_default()
    }

    /// Milliseconds that the prefix adds to a step's graph time, by repetition.
    fn prefix_ms(&self, rows: usize, place: usize) -> Vec<f64> {
        let floor = self.of(rows, self.settings.taus.len(), |run| run.graph_ms);
        let with = self.of(rows, place, |run| run.graph_ms);
        with.iter().zip(floor).map(|(with, floor)| with - floor).collect()
    }

    /// Share of the steps in which the model chose what it chooses when it reads everything.
    fn agreement(&self, rows: usize, place: usize) -> f64 {
        let choices =
            |place| self.runs.get(&(rows, place)).and_then(|runs| runs.first()).map(|run| &run.choices);
        let (Some(plain), Some(own)) = (choices(0), choices(place)) else { return 0.0 };
        plain.iter().zip(own).filter(|(a, b)| a == b).count() as f64 / plain.len().max(1) as f64
    }

    pub fn json(&self) -> Value {
        let cells = self.settings.rows.iter().flat_map(|&rows| {
            self.settings.taus.iter().enumerate().map(move |(place, tau)| {
                json!({
                    "rows": rows,
                    "tau": tau,
                    "graph_ms": Figure::of(&self.of(rows, place, |run| run.graph_ms)),
                    "host_ms": Figure::of(&self.of(rows, place, |run| run.host_ms)),
                    "prefix_ms": Figure::of(&self.prefix_ms(rows, place)),
                    "prefix_read": median(&self.of(rows, place, |run| run.read)),
                    "agreement": self.agreement(rows, place),
                })
            })
        });
        let cells: Vec<Value> = cells.collect();
        json!({ "prefix_tokens": self.prefix_len, "steps": self.settings.steps, "suffix": self.settings.suffix, "cells": cells })
    }

    pub fn table(&self) -> String {
        let mut text = format!(
            "prefix of {} tokens, ms a step\nrows  tau    graph   prefix     host   read   same choice\n",
            self.prefix_len
        );
        for &rows in &self.settings.rows {
            for (place, tau) in self.settings.taus.iter().enumerate() {
                let middle = |of: fn(&Run) -> f64| median(&self.of(rows, place, of));
                text += &format!(
                    "{rows:>4} {tau:>4} {:>8.2} {:>8.2} {:>8.2} {:>6.2} {:>8.3}\n",
                    middle(|run| run.graph_ms),
                    median(&self.prefix_ms(rows, place)),
                    middle(|run| run.host_ms),
                    middle(|run| run.read),
                    self.agreement(rows, place),
                );
            }
        }
        text
    }

    /// Ratios at the smallest share, named after it.
    pub fn ratios(&self) -> BTreeMap<String, Ratio> {
        let mut ratios = BTreeMap::new();
        let Some((place, tau)) = self.settings.taus.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1))
        else {
            return ratios;
        };
        let name = format!("tau{:02}", (tau * 100.0).round());
        for &rows in &self.settings.rows {
            let suffix = if rows == 1 { String::new() } else { format!("_rows{rows}") };
            let what = ("prefix attention of a step, everything read", "the same with fixation");
            let ratio =
                Ratio::of(&self.prefix_ms(rows, 0), &self.prefix_ms(rows, place), what, Better::Higher);
            ratios.extend(ratio.map(|ratio| (format!("attention_time_{name}{suffix}"), ratio)));
            let total = |place| self.of(rows, place, |run| run.graph_ms + run.host_ms);
            let what = ("a step, everything read", "the same with fixation, choosing and gathering included");
            let ratio = Ratio::of(&total(0), &total(place), what, Better::Higher);
            ratios.extend(ratio.map(|ratio| (format!("step_time_{name}{suffix}"), ratio)));
        }
        ratios
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::fake::{FakeGraph, Next, Seen, prefix};

    #[test]
    fn plain_steps_read_everything_and_fixation_reads_its_share() {
        let rule = |seen: &[Seen]| Next { id: seen.len() as TokenId, probability: 0.5, other: 0.1 };
        let mut graph = FakeGraph::new(&rule);
        let (prefix, _) = prefix(&(1000..1040).collect::<Vec<TokenId>>());
        let settings = GridSettings {
            rows: vec![1, 3],
            taus: vec![1.0, 0.1],
            steps: 4,
            suffix: 0,
            repetitions: 1,
            vocabulary: 30,
            threads: 2,
        };
        assert!(measure(&mut graph, &prefix, &settings).unwrap().is_none(), "no focal layers");
        graph.focal_layers = vec![1];
        let grid = measure(&mut graph, &prefix, &settings).unwrap().unwrap();
        let read = |rows, place| grid.of(rows, place, |run| run.read)[0];
        assert!((read(1, 0) - 1.0).abs() < 1e-9);
        // The focal one of two layers reads everything, the other 4 of 40.
        assert!((read(1, 1) - 0.55).abs() < 1e-9, "{}", read(1, 1));
        assert!(read(3, 1) > 0.55 && read(3, 1) < 1.0);
        assert_eq!(grid.agreement(3, 1), 1.0);
        assert_eq!(grid.json()["cells"].as_array().unwrap().len(), 4);
    }
}
