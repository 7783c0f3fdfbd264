//! The ratios between modes that a run is judged by; only those that were measured.

use std::collections::BTreeMap;

use super::figures::{Better, Ratio, median};
use super::modes::{Drafting, Mode, Sample};
use super::report::{BenchReport, pages_per_s, per_page};
use crate::decode::Guesser;
use crate::page::Source;

type Ratios = BTreeMap<String, Ratio>;

fn add(ratios: &mut Ratios, name: impl Into<String>, ratio: Option<Ratio>) {
    ratios.extend(ratio.map(|ratio| (name.into(), ratio)));
}

impl BenchReport {
    /// By name.
    pub fn ratios(&self) -> Ratios {
        let mut ratios = self.measured.grid.ratios();
        self.branches(&mut ratios);
        self.drafts(&mut ratios);
        self.narrowed(&mut ratios);
        self.propagation(&mut ratios);
        if let Some(peer) = self.peer_pages_per_s() {
            for (mode, name) in
                [(Mode::SEQUENTIAL, "sequential"), (Mode::FORKED, "forked"), (Mode::TRUST, "all")]
            {
                let own: Vec<f64> = self.of(mode, None).iter().map(|pages| pages_per_s(pages)).collect();
                let what = (mode.name(), "PyTorch, branch by branch");
                let ratio = Ratio::of(&own, &vec![peer; own.len()], (&what.0, what.1), Better::Higher);
                add(&mut ratios, format!("pages_per_s_{name}_vs_pytorch"), ratio);
            }
        }
        ratios
    }

    fn branches(&self, ratios: &mut Ratios) {
        let steps = |pages: &[Sample]| per_page(pages, |s| s.steps as f64, 0.5);
        let p95 = |pages: &[Sample]| per_page(pages, |s| s.seconds, 0.95);
        let plain = (Mode::FORKED, Mode::SEQUENTIAL);
        add(ratios, "steps_forked_vs_sequential", self.ratio(plain, None, &steps, Better::Lower));
        add(
            ratios,
            "pages_per_s_forked_vs_sequential",
            self.ratio(plain, None, &pages_per_s, Better::Higher),
        );
        add(ratios, "p95_forked_vs_sequential", self.ratio(plain, None, &p95, Better::Lower));
        let all = (Mode::TRUST, Mode::SEQUENTIAL);
        add(ratios, "all_vs_plain_born_digital", self.ratio(all, Some(true), &pages_per_s, Better::Higher));
        add(ratios, "all_vs_plain_scan", self.ratio(all, Some(false), &pages_per_s, Better::Higher));
        let lossless = (Mode::LOSSLESS, Mode::SEQUENTIAL);
        add(ratios, "lossless_drafts_vs_plain", self.ratio(lossless, None, &pages_per_s, Better::Higher));
        let head = (Mode::FORKED_HEAD, Mode::FORKED);
        add(ratios, "pages_per_s_mtp_vs_forked", self.ratio(head, None, &pages_per_s, Better::Higher));
        let head = (Mode::SEQUENTIAL_HEAD, Mode::SEQUENTIAL);
        add(ratios, "pages_per_s_mtp_vs_sequential", self.ratio(head, None, &pages_per_s, Better::Higher));
    }

    fn drafts(&self, ratios: &mut Ratios) {
        for (mode, suffix) in [(Mode::TRUST, ""), (Mode::LOSSLESS, "_lossless")] {
            let calls: Vec<f64> = self
                .of(mode, Some(true))
                .iter()
                .map(|pages| per_page(pages, |s| s.calls as f64, 0.5))
                .collect();
            let what = ("decode calls, median born-digital page", "page");
            let ratio = Ratio::of(&calls, &vec![1.0; calls.len()], what, Better::Lower);
            add(ratios, format!("calls_per_page_born_digital{suffix}"), ratio);
            let sources =
                [(Source::TextLayer, "text_layer"), (Source::Ocr, "ocr"), (Source::Layout, "layout")];
            for (source, name) in sources {
                let of = |counts: &BTreeMap<Source, usize>| counts.get(&source).copied().unwrap_or(0) as f64;
                let accepted = self.sums(mode, &|s| of(&s.accepted));
                let rows = self.sums(mode, &|s| of(&s.draft_rows));
                let what = ("drafted tokens that stood", "rows that proposed some");
                let ratio = Ratio::of(&accepted, &rows, what, Better::Higher);
                add(ratios, format!("accepted_per_step_{name}{suffix}"), ratio);
            }
        }
        let count = |s: &Sample, guesser| s.guesses.get(&guesser).copied().unwrap_or_default();
        let guessers =
            [(Guesser::Head, "mtp", Mode::SEQUENTIAL_HEAD), (Guesser::Ngram, "ngram", Mode::FORKED_GUESSES)];
        for (guesser, name, mode) in guessers {
            let rows = self.sums(mode, &|s| count(s, guesser).rows as f64);
            // The step's own token counts, too, as in the papers.
            let kept = self.sums(mode, &|s| (count(s, guesser).accepted + count(s, guesser).rows) as f64);
            let what = ("tokens that steps with a guess brought", "such steps of a row");
            let ratio = Ratio::of(&kept, &rows, what, Better::Higher);
            let k = (guesser == Guesser::Head).then_some(self.facts.drafts);
            add(ratios, format!("accepted_per_step_{name}"), ratio.map(|ratio| Ratio { k, ..ratio }));
        }
    }

    /// Fixation and retention against reading everything.
    fn narrowed(&self, ratios: &mut Ratios) {
        for mode in self.modes().filter(|mode| mode.is_narrowed() && mode.drafting == Drafting::Nobody) {
            let speed = self.ratio((mode, mode.whole()), None, &pages_per_s, Better::Higher);
            let agreement = self.agreement(mode).and_then(|share| {
                let what = ("choices of the model as in plain decoding", "choices");
                Ratio::of(&[share], &[1.0], what, Better::Higher)
            });
            let streams = if mode.sequential { "" } else { "_forked" };
            let name = match (mode.fixation < 100, mode.tsp < 100, mode.retention < 100) {
                (true, false, false) => format!("tau{:02}", mode.fixation),
                (false, true, false) => format!("tsp{:02}", mode.tsp),
                (false, false, true) => format!("retention{:02}", mode.retention),
                (false, true, true) => format!("tsp{:02}_retention{:02}", mode.tsp, mode.retention),
                _ => format!("tau{:02}_tsp{:02}_retention{:02}", mode.fixation, mode.tsp, mode.retention),
            };
            add(ratios, format!("decode{streams}_{name}"), speed);
            add(ratios, format!("similarity{streams}_{name}"), agreement);
        }
        // The names by which a run is judged stand for the first setting of each kind that was measured.
        let first = |wanted: fn(&Mode) -> bool| {
            self.modes().find(|m| m.sequential && m.drafting == Drafting::Nobody && wanted(m))
        };
        let speed = |mode: Option<Mode>| {
            mode.and_then(|mode| self.ratio((mode, Mode::SEQUENTIAL), None, &pages_per_s, Better::Higher))
        };
        let narrow = |m: &Mode| m.fixation == 5 && m.tsp == 100 && m.retention == 100;
        add(ratios, "decode_fixation_b1", speed(first(narrow)));
        let narrow = |m: &Mode| m.retention < 100 && m.fixation == 100 && m.tsp == 100;
        add(ratios, "decode_retention", speed(first(narrow)));
        if let Some(mode) = first(|m| m.tsp < 100 && m.retention < 100 && m.fixation == 100) {
            let what = (mode.name(), "choices of the model as in plain decoding / all");
            let share = self.agreement(mode);
            let ratio = share.and_then(|s| Ratio::of(&[s], &[1.0], (&what.0, what.1), Better::Higher));
            add(ratios, "similarity_tsp_retention", ratio);
        }
    }

    /// Prefill with everything against prefill with the first share that was measured.
    fn propagation(&self, ratios: &mut Ratios) {
        let Some(whole) = self.measured.prefill.get(&100) else { return };
        let middle =
            |repetitions: &[Vec<f64>]| -> Vec<f64> { repetitions.iter().map(|p| median(p)).collect() };
        for (rate, repetitions) in self.measured.prefill.iter().filter(|(rate, _)| **rate < 100) {
            let what = (String::from("prefill of the median page"), format!("the same at {rate} %"));
            let ratio = Ratio::of(&middle(whole), &middle(repetitions), (&what.0, &what.1), Better::Higher);
            add(ratios, format!("prefill_tsp{rate:02}"), ratio.clone());
            if self.modes().find(|mode| mode.tsp < 100).is_some_and(|mode| mode.tsp == *rate) {
                add(ratios, "prefill_tsp", ratio);
            }
        }
    }

    fn modes(&self) -> impl Iterator<Item = Mode> + '_ {
        self.measured.samples.iter().map(|entry| entry.mode)
    }

    /// Sums over all pages, by repetition.
    fn sums(&self, mode: Mode, of: &dyn Fn(&Sample) -> f64) -> Vec<f64> {
        self.of(mode, None).iter().map(|pages| pages.iter().map(of).sum()).collect()
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
        Ratio::of(&values(numerator), &values(denominator), (&numerator.name(), &denominator.name()), better)
    }
}
