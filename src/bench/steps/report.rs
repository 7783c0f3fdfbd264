//! The grid as JSON, as a table, and its ratios.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Grid, Method, Run};
use crate::bench::figures::{Better, Figure, Ratio, median};
use crate::bench::plots::Series;

impl Method {
    /// The method and its share, for the JSON and the plots.
    pub(in crate::bench) fn name(self) -> (&'static str, f32) {
        match self {
            Method::Plain => ("plain", 1.0),
            Method::Fixation(tau) => ("fixation", tau),
            Method::Retention(rate) => ("retention", rate),
            Method::Together(pages) => ("together", pages as f32),
            Method::NoPrefix => ("none", 0.0),
        }
    }
}

impl Grid {
    pub(super) fn of(&self, rows: usize, place: usize, of: impl Fn(&Run) -> f64) -> Vec<f64> {
        self.runs.get(&(rows, place)).map(|runs| runs.iter().map(of).collect()).unwrap_or_default()
    }

    fn place(&self, wanted: Method) -> Option<usize> {
        self.settings.methods.iter().position(|&method| method == wanted)
    }

    /// Milliseconds that the prefix adds to a step's graph time, by repetition.
    fn prefix_ms(&self, rows: usize, place: usize) -> Vec<f64> {
        let Some(none) = self.place(Method::NoPrefix) else { return Vec::new() };
        let floor = self.of(rows, none, |run| run.graph_ms);
        let with = self.of(rows, place, |run| run.graph_ms);
        with.iter().zip(floor).map(|(with, floor)| with - floor).collect()
    }

    /// Share of the steps in which the model chose what it chooses when it reads everything.
    pub(super) fn agreement(&self, rows: usize, place: usize) -> f64 {
        let choices =
            |place| self.runs.get(&(rows, place)).and_then(|runs| runs.first()).map(|run| &run.choices);
        let (Some(plain), Some(own)) = (choices(0), choices(place)) else { return 0.0 };
        plain.iter().zip(own).filter(|(a, b)| a == b).count() as f64 / plain.len().max(1) as f64
    }

    /// Rows and places that are reported: all but the floor.
    fn cells(&self) -> impl Iterator<Item = (usize, usize, Method)> + '_ {
        let methods = self.settings.methods.iter().enumerate().filter(|(_, m)| **m != Method::NoPrefix);
        let methods: Vec<(usize, Method)> = methods.map(|(place, method)| (place, *method)).collect();
        let of_rows =
            move |&rows: &usize| methods.clone().into_iter().map(move |(place, m)| (rows, place, m));
        self.settings.rows.iter().flat_map(of_rows)
    }

    pub fn json(&self) -> Value {
        let cells = self.cells().map(|(rows, place, method)| {
            let (name, share) = method.name();
            json!({
                "rows": rows,
                "method": name,
                "share": share,
                "graph_ms": Figure::of(&self.of(rows, place, |run| run.graph_ms)),
                "host_ms": Figure::of(&self.of(rows, place, |run| run.host_ms)),
                "prefix_ms": Figure::of(&self.prefix_ms(rows, place)),
                "prefix_read": median(&self.of(rows, place, |run| run.read)),
                "agreement": self.agreement(rows, place),
                "kv_peak_bytes": median(&self.of(rows, place, |run| run.kv_bytes as f64)),
            })
        });
        let cells: Vec<Value> = cells.collect();
        json!({
            "prefix_tokens": self.prefix_len,
            "steps": self.settings.steps,
            "suffix": self.settings.suffix,
            "repetitions": self.settings.repetitions,
            "cells": cells,
        })
    }

    pub fn table(&self) -> String {
        let mut text = format!(
            "prefix of {} tokens, ms a step of a page\nrows  method     share    graph   prefix     host   read   same choice\n",
            self.prefix_len
        );
        for (rows, place, method) in self.cells() {
            let (name, share) = method.name();
            let middle = |of: fn(&Run) -> f64| median(&self.of(rows, place, of));
            text += &format!(
                "{rows:>4}  {name:<9} {share:>6} {:>8.2} {:>8.2} {:>8.2} {:>6.2} {:>8.3}\n",
                middle(|run| run.graph_ms),
                median(&self.prefix_ms(rows, place)),
                middle(|run| run.host_ms),
                middle(|run| run.read),
                self.agreement(rows, place),
            );
        }
        text
    }

    /// Whole step, by repetition: graph and what runs around it.
    fn step_ms(&self, rows: usize, place: usize) -> Vec<f64> {
        self.of(rows, place, |run| run.graph_ms + run.host_ms)
    }

    /// At 5 % fixation and 20 % retention, and for each number of pages that share steps.
    pub fn ratios(&self) -> BTreeMap<String, Ratio> {
        let mut ratios = BTreeMap::new();
        let mut add = |name: String, ratio: Option<Ratio>| ratios.extend(ratio.map(|ratio| (name, ratio)));
        for (place, &method) in self.settings.methods.iter().enumerate() {
            let (Method::Together(pages), Some(plain)) = (method, self.place(Method::Plain)) else {
                continue;
            };
            for &rows in &self.settings.rows {
                let suffix = if rows == 1 { String::new() } else { format!("_rows{rows}") };
                let what = ("a step of a page alone", "its part of a step that pages share");
                let (alone, shared) = (self.step_ms(rows, plain), self.step_ms(rows, place));
                add(
                    format!("step_time_together{pages}{suffix}"),
                    Ratio::of(&alone, &shared, what, Better::Higher),
                );
            }
        }
        for (method, label) in [(Method::Fixation(0.05), "tau05"), (Method::Retention(0.2), "retention20")] {
            let (Some(place), Some(plain)) = (self.place(method), self.place(Method::Plain)) else {
                continue;
            };
            for &rows in &self.settings.rows {
                let suffix = if rows == 1 { String::new() } else { format!("_rows{rows}") };
                let what = ("prefix attention of a step, everything read", "the same, narrowed");
                let (all, some) = (self.prefix_ms(rows, plain), self.prefix_ms(rows, place));
                // Less than nothing: the machine was too busy to tell a step with a prefix from one without.
                let (all, some) =
                    if some.iter().all(|ms| *ms > 0.0) { (all, some) } else { Default::default() };
                add(format!("attention_time_{label}{suffix}"), Ratio::of(&all, &some, what, Better::Higher));
                let what = ("a step, everything read", "the same, narrowed, choosing and gathering included");
                let (all, some) = (self.step_ms(rows, plain), self.step_ms(rows, place));
                add(format!("step_time_{label}{suffix}"), Ratio::of(&all, &some, what, Better::Higher));
            }
        }
        ratios
    }

    /// For each method how many times faster a step is than one that reads everything, by rows.
    pub(in crate::bench) fn crossover(&self) -> Vec<Series> {
        let Some(plain) = self.place(Method::Plain) else { return Vec::new() };
        let methods = self.settings.methods.iter().enumerate();
        let narrowed =
            methods.filter(|(_, m)| !matches!(m, Method::Plain | Method::Together(_) | Method::NoPrefix));
        let line = |(place, method): (usize, &Method)| {
            let (name, share) = method.name();
            let ratio = |&rows: &usize| {
                (rows as f64, median(&self.step_ms(rows, plain)) / median(&self.step_ms(rows, place)))
            };
            Series { name: format!("{name} {share}"), points: self.settings.rows.iter().map(ratio).collect() }
        };
        narrowed.map(line).collect()
    }
}
