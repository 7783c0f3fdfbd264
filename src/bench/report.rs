//! Samples -> the report: figures by mode, as JSON, as a table and as plots.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::figures::{Figure, median, quantile};
use super::modes::{Mode, Sample};
use super::plots::{Plot, Series};
use super::profile::Profiles;
use super::steps::Grid;
use super::{BenchPage, BenchSettings, ModeSamples, PrefillSeconds};

/// What was measured with.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// Name and sha256.
    pub(super) model: (String, String),
    pub(super) threads: usize,
    /// Drafts of the multi-token head.
    pub(super) drafts: usize,
    pub(super) peak_rss_bytes: Option<u64>,
}

/// What was measured.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) samples: Vec<ModeSamples>,
    pub(super) prefill: PrefillSeconds,
    pub(super) grid: Grid,
    pub(super) profiles: Profiles,
}

/// The whole of a run.
#[derive(Debug)]
pub struct BenchReport {
    pub(super) facts: Facts,
    pages: Vec<Value>,
    pub(super) born_digital: Vec<bool>,
    pub(super) measured: Measured,
    settings: BenchSettings,
    /// What another runtime took on the same pages and weights, as it was given.
    peer: Option<Value>,
}

impl BenchReport {
    pub(super) fn new(
        facts: Facts,
        pages: &[BenchPage],
        measured: Measured,
        settings: &BenchSettings,
    ) -> BenchReport {
        let described = pages.iter().map(|page| {
            json!({
                "file": page.file,
                "page": page.number,
                "born_digital": page.born_digital,
                "visual_tokens": page.prefix.len,
                "trunk_tokens": page.script.trunk().len(),
                "content_tokens": page.script.content_tokens(),
                "branches": page.script.branches().map(|(visible, tokens)| {
                    json!({ "visible": visible, "tokens": tokens })
                }).collect::<Vec<Value>>(),
            })
        });
        BenchReport {
            facts,
            pages: described.collect(),
            born_digital: pages.iter().map(|page| page.born_digital).collect(),
            measured,
            settings: settings.clone(),
            peer: None,
        }
    }

    /// A ratio against the peer, if there is one.
    pub(super) fn peer_pages_per_s(&self) -> Option<f64> {
        self.peer.as_ref()?["pages_per_s"].as_f64()
    }

    /// Puts what `scripts/bench_peer.py` wrote beside the modes.
    pub fn join_peer(&mut self, peer: Value) {
        self.peer = Some(peer);
    }

    /// The whole report.
    pub fn json(&self) -> Value {
        let modes: Map<String, Value> =
            self.measured.samples.iter().map(|entry| (entry.mode.name(), self.mode(entry))).collect();
        json!({
            "docparse": env!("CARGO_PKG_VERSION"),
            "optimised_build": !cfg!(debug_assertions),
            "model": { "name": self.facts.model.0, "sha256": self.facts.model.1 },
            "threads": self.facts.threads,
            "seconds": if self.facts.threads == 1 { "cpu" } else { "wall" },
            "repetitions": self.settings.repetitions,
            "max_tokens": self.settings.max_tokens,
            "draft_error": self.settings.draft_error,
            "peak_rss_bytes": self.facts.peak_rss_bytes,
            "pages": self.pages,
            "modes": modes,
            "prefill": self.prefill(),
            "steps": self.measured.grid.json(),
            "step_shares": self.measured.profiles,
            "peer": self.peer,
            "ratios": self.ratios(),
        })
    }

    /// Seconds of a page's prefill by percent of propagation.
    fn prefill(&self) -> Value {
        let figure = |repetitions: &Vec<Vec<f64>>| {
            let middle: Vec<f64> = repetitions.iter().map(|pages| median(pages)).collect();
            json!(Figure::of(&middle))
        };
        let rates = self.measured.prefill.iter();
        Value::Object(rates.map(|(rate, repetitions)| (rate.to_string(), figure(repetitions))).collect())
    }

    /// A line for each mode and each ratio.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<30}{:>9}{:>9}{:>9}{:>8}{:>8}{:>10}{:>8}{:>8}{:>11}\n",
            "mode", "pages/s", "p50 s", "p95 s", "calls", "steps", "rows/call", "read", "kv MB", "similarity"
        );
        for entry in &self.measured.samples {
            let mode = self.mode(entry);
            let figure = |name: &str| mode[name]["median"].as_f64().unwrap_or(0.0);
            let _ = writeln!(
                text,
                "{:<30}{:>9.3}{:>9.3}{:>9.3}{:>8.0}{:>8.0}{:>10.1}{:>8.0}{:>8.1}{:>11.4}",
                entry.mode.name(),
                figure("pages_per_s"),
                figure("p50_s"),
                figure("p95_s"),
                figure("calls_per_page"),
                figure("steps_per_page"),
                figure("rows_per_call"),
                figure("prefix_read"),
                figure("kv_peak_bytes") / 1e6,
                mode["agreement"].as_f64().unwrap_or(figure("similarity")),
            );
        }
        if let Some(peer) = &self.peer {
            let figure = |name: &str| peer[name].as_f64().unwrap_or(0.0);
            let (speed, p50, p95) = (figure("pages_per_s"), figure("p50_s"), figure("p95_s"));
            let calls = figure("steps_per_page");
            let _ = writeln!(
                text,
                "{:<30}{speed:>9.3}{p50:>9.3}{p95:>9.3}{calls:>8.0}",
                "PyTorch, branch by branch"
            );
        }
        text.push('\n');
        for (rows, shares) in &self.measured.profiles {
            let shares: Vec<String> =
                shares.iter().map(|(name, share)| format!("{name} {:.0} %", share * 100.0)).collect();
            let _ = writeln!(text, "time in the graph, {rows} rows: {}", shares.join(", "));
        }
        text.push('\n');
        text += &self.measured.grid.table();
        text.push('\n');
        for (name, ratio) in self.ratios() {
            let [least, most] = ratio.spread;
            let _ = writeln!(text, "{name:<40}{:>10.3}   {least:.3} .. {most:.3}", ratio.value);
        }
        text
    }

    fn mode(&self, entry: &ModeSamples) -> Value {
        let figure = |of: &dyn Fn(&[Sample]) -> f64| {
            let values: Vec<f64> = entry.repetitions.iter().map(|pages| of(pages)).collect();
            json!(Figure::of(&values))
        };
        let middle = |of: fn(&Sample) -> f64| figure(&move |pages| per_page(pages, of, 0.5));
        let total = |of: fn(&Sample) -> f64| move |pages: &[Sample]| pages.iter().map(of).sum::<f64>();
        let per_call = |of: fn(&Sample) -> f64| {
            figure(&move |pages| 1e3 * total(of)(pages) / total(|s| s.calls as f64)(pages))
        };
        json!({
            "pages_per_s": figure(&pages_per_s),
            "p50_s": middle(|s| s.seconds),
            "p95_s": figure(&|pages| per_page(pages, |s| s.seconds, 0.95)),
            "graph_s": middle(|s| s.graph_seconds),
            "host_s": middle(|s| s.seconds - s.graph_seconds),
            "graph_ms_per_call": per_call(|s| s.graph_seconds),
            "host_ms_per_call": per_call(|s| s.seconds - s.graph_seconds),
            "calls_per_page": middle(|s| s.calls as f64),
            "steps_per_page": middle(|s| s.steps as f64),
            "row_steps_per_page": middle(|s| s.row_steps as f64),
            "tokens_fed_per_page": middle(|s| s.tokens_fed as f64),
            "tokens_written_per_page": middle(|s| s.written as f64),
            "rows_per_call": figure(&|pages| total(|s| s.row_steps as f64)(pages) / total(|s| s.calls as f64)(pages)),
            "tokens_per_row": figure(&|pages| total(|s| s.kept() as f64)(pages) / total(|s| s.row_steps as f64)(pages)),
            "accepted_per_row": accepted_per_row(entry),
            "kv_peak_bytes": figure(&|pages| per_page(pages, |s| s.kv_peak_bytes as f64, 1.0)),
            "similarity": figure(&|pages| total(|s| s.similarity)(pages) / pages.len().max(1) as f64),
            "prefix_read": middle(|s| s.prefix_read),
            "agreement": self.agreement(entry.mode),
        })
    }

    /// Share of the model's own choices that are those of reading everything, over all pages; the same in every repetition.
    pub(super) fn agreement(&self, mode: Mode) -> Option<f64> {
        if !mode.is_narrowed() {
            return None;
        }
        let first = |mode| self.of(mode, None).into_iter().next();
        let (plain, own) = (first(mode.whole())?, first(mode)?);
        let (mut same, mut all) = (0usize, 0usize);
        for (plain, own) in plain.iter().zip(&own) {
            all += plain.choices.len();
            same += plain.choices.iter().filter(|(place, id)| own.choices.get(place) == Some(id)).count();
        }
        (all > 0).then(|| same as f64 / all as f64)
    }

    /// Samples of a mode on the born-digital pages, the others, or all of them.
    pub(super) fn of(&self, mode: Mode, born_digital: Option<bool>) -> Vec<Vec<Sample>> {
        let Some(entry) = self.measured.samples.iter().find(|entry| entry.mode == mode) else {
            return Vec::new();
        };
        let wanted = |index: &usize| born_digital.is_none_or(|b| self.born_digital[*index] == b);
        let kept = |pages: &Vec<Sample>| -> Vec<Sample> {
            (0..pages.len()).filter(wanted).map(|index| pages[index].clone()).collect()
        };
        entry.repetitions.iter().map(kept).filter(|pages| !pages.is_empty()).collect()
    }

    /// File names and pictures.
    pub fn plots(&self) -> Vec<(String, String)> {
        let speed = |mode: Mode| {
            let values: Vec<f64> = self.of(mode, None).iter().map(|pages| pages_per_s(pages)).collect();
            median(&values)
        };
        let narrowed = |label: &str, of: fn(Mode) -> u8| {
            let sequential =
                self.measured.samples.iter().map(|e| e.mode).filter(|m| m.sequential && of(*m) < 100);
            let points = |y: &dyn Fn(Mode) -> f64| {
                let mut points: Vec<(f64, f64)> =
                    sequential.clone().map(|mode| (f64::from(of(mode)) / 100.0, y(mode))).collect();
                points.push((1.0, 1.0));
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                points
            };
            [
                Series {
                    name: format!("{label}: speed"),
                    points: points(&|mode| speed(mode) / speed(mode.whole())),
                },
                Series {
                    name: format!("{label}: agreement"),
                    points: points(&|mode| self.agreement(mode).unwrap_or(1.0)),
                },
            ]
        };
        let shares = narrowed("fixation", |m| m.fixation)
            .into_iter()
            .chain(narrowed("retention", |m| m.retention))
            .chain(narrowed("tsp", |m| m.tsp));
        let plots = [
            Plot {
                name: "crossover",
                title: "A step that reads everything / the same step, narrowed".into(),
                x: "live rows",
                y: "times faster",
                series: self.measured.grid.crossover(),
                level: Some(1.0),
            },
            Plot {
                name: "shares",
                title: "One stream at a time: speed and agreement with plain decoding".into(),
                x: "share of the visual tokens",
                y: "against plain decoding",
                series: shares.collect(),
                level: Some(1.0),
            },
        ];
        plots.iter().map(|plot| (format!("{}.svg", plot.name), plot.svg())).collect()
    }
}

pub(super) fn pages_per_s(pages: &[Sample]) -> f64 {
    pages.len() as f64 / pages.iter().map(|sample| sample.seconds).sum::<f64>()
}

pub(super) fn per_page(pages: &[Sample], of: fn(&Sample) -> f64, share: f64) -> f64 {
    quantile(&pages.iter().map(of).collect::<Vec<f64>>(), share)
}

/// By drafter, over all pages of the last repetition: what is accepted does not change between repetitions.
fn accepted_per_row(entry: &ModeSamples) -> Value {
    let mut sums: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut add = |name: String, accepted: usize, rows: usize| {
        let sum = sums.entry(name).or_default();
        *sum = (sum.0 + accepted, sum.1 + rows);
    };
    for sample in entry.repetitions.last().into_iter().flatten() {
        for (source, &rows) in &sample.draft_rows {
            let name = serde_json::to_value(source).ok().and_then(|v| v.as_str().map(str::to_owned));
            add(name.unwrap_or_default(), sample.accepted.get(source).copied().unwrap_or(0), rows);
        }
        for (guesser, count) in &sample.guesses {
            add(guesser.name().into(), count.accepted, count.rows);
        }
    }
    let of = |(name, (accepted, rows)): (String, (usize, usize))| {
        (name, json!(accepted as f64 / rows.max(1) as f64))
    };
    Value::Object(sums.into_iter().map(of).collect())
}
