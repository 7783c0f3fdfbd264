//! Samples -> the report: figures by mode, and the ratios between modes.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::figures::{Better, Figure, Ratio, quantile};
use super::modes::{Mode, Sample};
use super::{BenchPage, BenchSettings, ModeSamples};
use crate::page::Source;

/// What a run measured.
#[derive(Debug)]
pub struct BenchReport {
    model: (String, String),
    pages: Vec<Value>,
    born_digital: Vec<bool>,
    samples: Vec<ModeSamples>,
    settings: BenchSettings,
    threads: usize,
}

impl BenchReport {
    pub(super) fn new(
        model: (String, String),
        pages: &[BenchPage],
        samples: Vec<ModeSamples>,
        settings: &BenchSettings,
        threads: usize,
    ) -> BenchReport {
        let described = pages.iter().map(|page| {
            json!({
                "file": page.file,
                "page": page.number,
                "born_digital": page.born_digital,
                "visual_tokens": page.prefix.len,
                "trunk_tokens": page.script.trunk().len(),
                "content_tokens": page.script.content_tokens(),
            })
        });
        BenchReport {
            model,
            pages: described.collect(),
            born_digital: pages.iter().map(|page| page.born_digital).collect(),
            samples,
            settings: settings.clone(),
            threads,
        }
    }

    /// The whole report.
    pub fn json(&self) -> Value {
        let modes: Map<String, Value> =
            self.samples.iter().map(|entry| (entry.mode.name().to_owned(), self.mode(entry))).collect();
        json!({
            "docparse": env!("CARGO_PKG_VERSION"),
            "optimised_build": !cfg!(debug_assertions),
            "model": { "name": self.model.0, "sha256": self.model.1 },
            "threads": self.threads,
            "seconds": if self.threads == 1 { "cpu" } else { "wall" },
            "repetitions": self.settings.repetitions,
            "max_tokens": self.settings.max_tokens,
            "draft_error": self.settings.draft_error,
            "pages": self.pages,
            "modes": modes,
            "ratios": self.ratios(),
        })
    }

    /// A line for each mode and each ratio.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<16}{:>9}{:>10}{:>10}{:>9}{:>9}{:>10}{:>10}{:>11}\n",
            "mode", "pages/s", "p50 s", "p95 s", "calls", "steps", "rows/call", "kv MB", "similarity"
        );
        for entry in &self.samples {
            let figure = |name: &str| self.mode(entry)[name]["median"].as_f64().unwrap_or(0.0);
            let _ = writeln!(
                text,
                "{:<16}{:>9.3}{:>10.3}{:>10.3}{:>9.0}{:>9.0}{:>10.1}{:>10.1}{:>11.3}",
                entry.mode.name(),
                figure("pages_per_s"),
                figure("p50_s"),
                figure("p95_s"),
                figure("calls_per_page"),
                figure("steps_per_page"),
                figure("rows_per_call"),
                figure("kv_peak_bytes") / 1e6,
                figure("similarity"),
            );
        }
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
        json!({
            "pages_per_s": figure(&pages_per_s),
            "p50_s": middle(|s| s.seconds),
            "p95_s": figure(&|pages| per_page(pages, |s| s.seconds, 0.95)),
            "graph_s": middle(|s| s.graph_seconds),
            "host_s": middle(|s| s.seconds - s.graph_seconds),
            "calls_per_page": middle(|s| s.calls as f64),
            "steps_per_page": middle(|s| s.steps as f64),
            "row_steps_per_page": middle(|s| s.row_steps as f64),
            "tokens_fed_per_page": middle(|s| s.tokens_fed as f64),
            "tokens_written_per_page": middle(|s| s.written as f64),
            "rows_per_call": figure(&|pages| total(|s| s.row_steps as f64)(pages) / total(|s| s.calls as f64)(pages)),
            "accepted_per_row": accepted_per_row(entry),
            "kv_peak_bytes": figure(&|pages| per_page(pages, |s| s.kv_peak_bytes as f64, 1.0)),
            "similarity": figure(&|pages| total(|s| s.similarity)(pages) / pages.len().max(1) as f64),
        })
    }

    /// Only what was measured.
    fn ratios(&self) -> BTreeMap<String, Ratio> {
        let mut ratios = BTreeMap::new();
        let mut add = |name: &str, ratio: Option<Ratio>| {
            ratios.extend(ratio.map(|ratio| (name.to_owned(), ratio)));
        };
        let steps = |pages: &[Sample]| per_page(pages, |s| s.steps as f64, 0.5);
        let p95 = |pages: &[Sample]| per_page(pages, |s| s.seconds, 0.95);
        let plain = (Mode::Forked, Mode::Sequential);
        add("steps_forked_vs_sequential", self.ratio(plain, None, &steps, Better::Lower));
        add("pages_per_s_forked_vs_sequential", self.ratio(plain, None, &pages_per_s, Better::Higher));
        add("p95_forked_vs_sequential", self.ratio(plain, None, &p95, Better::Lower));
        let all = (Mode::DraftsTrust, Mode::Sequential);
        add("all_vs_plain_born_digital", self.ratio(all, Some(true), &pages_per_s, Better::Higher));
        add("all_vs_plain_scan", self.ratio(all, Some(false), &pages_per_s, Better::Higher));
        let lossless = (Mode::DraftsLossless, Mode::Sequential);
        add("lossless_drafts_vs_plain", self.ratio(lossless, None, &pages_per_s, Better::Higher));
        let trust = self.of(Mode::DraftsTrust, Some(true));
        let one = vec![1.0; trust.len()];
        let calls: Vec<f64> = trust.iter().map(|pages| per_page(pages, |s| s.calls as f64, 0.5)).collect();
        let what = ("decode calls, median born-digital page, drafts in trust", "page");
        add("calls_per_page_born_digital", Ratio::of(&calls, &one, what, Better::Lower));
        for (source, name) in
            [(Source::TextLayer, "text_layer"), (Source::Ocr, "ocr"), (Source::Layout, "layout")]
        {
            for (mode, suffix) in [(Mode::DraftsTrust, ""), (Mode::DraftsLossless, "_lossless")] {
                let pages = self.of(mode, None);
                let sum = |of: fn(&Sample) -> &BTreeMap<Source, usize>| -> Vec<f64> {
                    let page = |s: &&Sample| of(s).get(&source).copied().unwrap_or(0) as f64;
                    pages.iter().map(|pages| pages.iter().map(|s| page(&s)).sum()).collect()
                };
                let (accepted, rows) = (sum(|s| &s.accepted), sum(|s| &s.draft_rows));
                let what = ("drafted tokens that stood", "rows that proposed some");
                let ratio = Ratio::of(&accepted, &rows, what, Better::Higher);
                add(&format!("accepted_per_step_{name}{suffix}"), ratio);
            }
        }
        ratios
    }

    /// Samples of a mode on the born-digital pages, the others, or all of them.
    fn of(&self, mode: Mode, born_digital: Option<bool>) -> Vec<Vec<Sample>> {
        let Some(entry) = self.samples.iter().find(|entry| entry.mode == mode) else { return Vec::new() };
        let wanted = |index: &usize| born_digital.is_none_or(|b| self.born_digital[*index] == b);
        let kept = |pages: &Vec<Sample>| -> Vec<Sample> {
            (0..pages.len()).filter(wanted).map(|index| pages[index].clone()).collect()
        };
        entry.repetitions.iter().map(kept).filter(|pages| !pages.is_empty()).collect()
    }

    fn ratio(
        &self,
        (numerator, denominator): (Mode, Mode),
        born_digital: Option<bool>,
        of: &dyn Fn(&[Sample]) -> f64,
        better: Better,
    ) -> Option<Ratio> {
        let values =
            |mode| -> Vec<f64> { self.of(mode, born_digital).iter().map(|pages| of(pages)).collect() };
        Ratio::of(&values(numerator), &values(denominator), (numerator.name(), denominator.name()), better)
    }
}

fn pages_per_s(pages: &[Sample]) -> f64 {
    pages.len() as f64 / pages.iter().map(|sample| sample.seconds).sum::<f64>()
}

fn per_page(pages: &[Sample], of: fn(&Sample) -> f64, share: f64) -> f64 {
    quantile(&pages.iter().map(of).collect::<Vec<f64>>(), share)
}

/// By drafter, over all pages of the last repetition: what is accepted does not change between repetitions.
fn accepted_per_row(entry: &ModeSamples) -> Value {
    let mut sums: BTreeMap<Source, (usize, usize)> = BTreeMap::new();
    for sample in entry.repetitions.last().into_iter().flatten() {
        for (source, rows) in &sample.draft_rows {
            let sum = sums.entry(*source).or_default();
            sum.0 += sample.accepted.get(source).copied().unwrap_or(0);
            sum.1 += rows;
        }
    }
    let by_name = sums.iter().map(|(source, (accepted, rows))| {
        let name = serde_json::to_value(source).ok().and_then(|v| v.as_str().map(str::to_owned));
        (name.unwrap_or_default(), json!(*accepted as f64 / (*rows).max(1) as f64))
    });
    Value::Object(by_name.collect())
}
