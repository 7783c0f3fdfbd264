//! One page in one mode.

use std::collections::BTreeMap;

use super::BenchPage;
use super::script::{Choices, MeasuredGraph};
use crate::clock::Clock;
use crate::decode::fixation::FixationSettings;
use crate::decode::protocol::{DraftToken, Protocol, TokenClass};
use crate::decode::retention::RetentionSettings;
use crate::decode::{
    AcceptanceRule, DecodeError, GuessCount, GuessSettings, Guesser, LoopSettings, PageDecoding, PageDrafts,
    decode_page,
};
use crate::graphs::{DecodeGraph, TokenId};
use crate::page::Source;

/// How a page is decoded. Shares are percent of the visual tokens; 100 is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mode {
    /// One stream at a time, not trunk and branches in one batch.
    pub sequential: bool,
    pub drafting: Drafting,
    pub fixation: u8,
    pub tsp: u8,
    pub retention: u8,
}

/// Who drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drafting {
    /// Nobody: one token a row and call; teacher-forced.
    Nobody,
    /// The model's multi-token head; teacher-forced.
    Head,
    /// The model's multi-token head, and look-up of what a stream repeats; teacher-forced.
    Guesses,
    /// The page's drafts with a share of wrong tokens, accepted where the (teacher-forced) model agrees; guesses where there are
    /// none.
    Lossless,
    /// The page's own drafts under the pack's trust thresholds; the model's own choices, nothing is forced.
    Trust,
}

impl Mode {
    pub const SEQUENTIAL: Mode =
        Mode { sequential: true, drafting: Drafting::Nobody, fixation: 100, tsp: 100, retention: 100 };
    pub const FORKED: Mode = Mode { sequential: false, ..Mode::SEQUENTIAL };
    pub const SEQUENTIAL_HEAD: Mode = Mode { drafting: Drafting::Head, ..Mode::SEQUENTIAL };
    pub const FORKED_HEAD: Mode = Mode { drafting: Drafting::Head, ..Mode::FORKED };
    pub const FORKED_GUESSES: Mode = Mode { drafting: Drafting::Guesses, ..Mode::FORKED };
    pub const LOSSLESS: Mode = Mode { drafting: Drafting::Lossless, ..Mode::FORKED };
    pub const TRUST: Mode = Mode { drafting: Drafting::Trust, ..Mode::FORKED };

    /// Those without fixation, propagation and retention.
    pub const WHOLE: [Mode; 7] = [
        Mode::SEQUENTIAL,
        Mode::FORKED,
        Mode::SEQUENTIAL_HEAD,
        Mode::FORKED_HEAD,
        Mode::FORKED_GUESSES,
        Mode::LOSSLESS,
        Mode::TRUST,
    ];

    pub fn name(self) -> String {
        let mut name = String::from(match self.drafting {
            Drafting::Lossless => "drafts_lossless",
            Drafting::Trust => "drafts_trust",
            _ if self.sequential => "sequential",
            _ => "forked",
        });
        name += match self.drafting {
            Drafting::Head => "_mtp",
            Drafting::Guesses => "_mtp_ngram",
            _ => "",
        };
        for (label, percent) in [("tau", self.fixation), ("tsp", self.tsp), ("retention", self.retention)] {
            if percent < 100 {
                name += &format!("_{label}{percent:02}");
            }
        }
        name
    }

    /// Does the model read less than everything?
    pub(super) fn is_narrowed(self) -> bool {
        self.fixation < 100 || self.tsp < 100 || self.retention < 100
    }

    /// The same mode reading everything.
    pub(super) fn whole(self) -> Mode {
        Mode { fixation: 100, tsp: 100, retention: 100, ..self }
    }

    fn guesses(self) -> GuessSettings {
        let head = self.drafting != Drafting::Nobody;
        GuessSettings { head, ngram: head && self.drafting != Drafting::Head }
    }
}

/// What a page took in a mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// CPU seconds of the decoding, and of its calls of the graph; wall-clock seconds where sessions have several threads.
    pub seconds: f64,
    pub graph_seconds: f64,
    pub calls: usize,
    pub steps: usize,
    pub row_steps: usize,
    pub tokens_fed: usize,
    pub written: usize,
    /// Drafted tokens that stood, and rows that proposed some, by drafter.
    pub accepted: BTreeMap<Source, usize>,
    pub draft_rows: BTreeMap<Source, usize>,
    /// What became of the model's own guesses, and seconds of the multi-token head.
    pub guesses: BTreeMap<Guesser, GuessCount>,
    pub head_seconds: f64,
    pub kv_peak_bytes: usize,
    /// Of the content to the script's, 0..1.
    pub similarity: f64,
    /// Prefix positions that a layer read in a call, mean over layers and calls.
    pub prefix_read: f64,
    /// What the model itself would have written after each token of the script; empty where nothing was forced.
    pub choices: Choices,
}

impl Sample {
    /// Tokens that the page's streams kept.
    pub(super) fn kept(&self) -> usize {
        self.written + self.accepted.values().sum::<usize>()
    }
}

/// What all pages of a run share.
pub(super) struct ModeContext<'a> {
    pub(super) protocol: &'a dyn Protocol,
    /// The pack's; budgets and acceptance are set by mode and page.
    pub(super) settings: &'a LoopSettings,
    /// The pack's thresholds.
    pub(super) trust: AcceptanceRule,
    /// Share of drafted tokens that are made wrong for [`Drafting::Lossless`].
    pub(super) draft_error: f32,
    pub(super) threads: usize,
}

/// Decodes `page` in `mode`.
pub(super) fn run_mode(
    mode: Mode,
    page: &BenchPage,
    graph: &mut dyn DecodeGraph,
    context: &ModeContext<'_>,
) -> Result<Sample, DecodeError> {
    let drafts = match mode.drafting {
        Drafting::Lossless => with_errors(&page.drafts, context.draft_error, context.protocol),
        Drafting::Trust => page.drafts.clone(),
        Drafting::Nobody | Drafting::Head | Drafting::Guesses => PageDrafts::default(),
    };
    let share = |percent: u8| (percent < 100).then(|| f32::from(percent) / 100.0);
    let longest = page.drafts.content.values().map(Vec::len).max().unwrap_or(0);
    let settings = LoopSettings {
        acceptance: if mode.drafting == Drafting::Trust { context.trust } else { AcceptanceRule::Lossless },
        // A draft may be refused and realigned; a model that runs freely is stopped soon after.
        max_tokens: longest + 8,
        max_trunk_tokens: page.drafts.trunk.len() + 8,
        max_rows: if mode.sequential { 1 } else { context.settings.max_rows },
        fixation: share(mode.fixation).map(FixationSettings::new),
        retention: share(mode.retention).map(RetentionSettings::new),
        guesses: mode.guesses(),
        ..context.settings.clone()
    };
    let prefix = page.prefixes.get(&mode.tsp).unwrap_or(&page.prefix).clone();
    let script = (mode.drafting != Drafting::Trust).then_some(&page.script);
    let mut measured = MeasuredGraph::new(graph, script, context.threads);
    let clock = Clock::start(context.threads);
    let decoding = decode_page(&mut measured, context.protocol, prefix, drafts, &settings)?;
    let seconds = clock.seconds();
    Ok(Sample { choices: measured.choices, ..sample(page, &decoding, seconds, measured.seconds) })
}

fn sample(page: &BenchPage, decoding: &PageDecoding, seconds: f64, graph_seconds: f64) -> Sample {
    let stats = &decoding.stats;
    let content: Vec<TokenId> =
        decoding.branches.iter().flat_map(|branch| branch.tokens.iter().map(|token| token.id)).collect();
    Sample {
        seconds,
        graph_seconds,
        calls: stats.calls,
        steps: stats.steps,
        row_steps: stats.row_steps,
        tokens_fed: stats.tokens_fed,
        written: stats.written,
        accepted: stats.accepted.clone(),
        draft_rows: stats.draft_rows.clone(),
        guesses: stats.guesses.clone(),
        head_seconds: stats.head_seconds,
        kv_peak_bytes: stats.kv_peak_bytes,
        similarity: similarity(&content, &page.script.content()),
        prefix_read: stats.prefix_read / stats.calls.max(1) as f64,
        choices: Choices::default(),
    }
}

/// 1 - edit distance / longer length.
pub(super) fn similarity(a: &[TokenId], b: &[TokenId]) -> f64 {
    if a.is_empty() && b.is_empty() {
        return 1.0;
    }
    rapidfuzz::distance::levenshtein::normalized_similarity(a.iter().copied(), b.iter().copied())
}

/// `drafts` with a share of their text tokens made wrong, spread evenly; the same ones every time.
fn with_errors(drafts: &PageDrafts, share: f32, protocol: &dyn Protocol) -> PageDrafts {
    let mut wrong = drafts.clone();
    let mut owed = 0.0;
    for content in wrong.content.values_mut() {
        let ids: Vec<TokenId> = content.iter().map(|token| token.id).collect();
        for (index, token) in content.iter_mut().enumerate() {
            if protocol.class(token.id) != TokenClass::Text {
                continue;
            }
            owed += share;
            // Another letter of the same stream.
            let other = ids.iter().find(|&&id| id != ids[index] && protocol.class(id) == TokenClass::Text);
            if let (true, Some(&id)) = (owed >= 1.0, other) {
                owed -= 1.0;
                *token = DraftToken { id, ..*token };
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::script::Script;
    use super::*;
    use crate::decode::protocol::TrustThresholds;
    use crate::graphs::fake::{FakeGraph, Next, Seen, prefix};
    use crate::tokens::grammar::tests::tiny;

    fn draft(ids: &[TokenId], source: Source) -> Vec<DraftToken> {
        ids.iter().map(|&id| DraftToken { id, confidence: 0.4, source, origin: 0 }).collect()
    }

    /// Two regions of text and a figure, on a grammar in which 102 ends, 104 forks, and 33 is `A`.
    fn page(protocol: &dyn Protocol) -> BenchPage {
        let trunk =
            [110, 130, 170, 140, 180, 104, 116, 125, 165, 126, 166, 110, 130, 190, 140, 199, 104, 102];
        let mut drafts = PageDrafts { trunk: draft(&trunk, Source::Layout), ..PageDrafts::default() };
        let text = |first: TokenId| {
            let mut ids: Vec<TokenId> = vec![175, 210];
            ids.extend((0..20).map(|i| first + i));
            ids.push(102);
            draft(&ids, Source::TextLayer)
        };
        drafts.content.insert(5, text(1));
        drafts.content.insert(16, text(40));
        let (prefix, _) = prefix(&[1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007]);
        BenchPage {
            file: "page".into(),
            number: 1,
            born_digital: true,
            prefix,
            prefixes: BTreeMap::new(),
            input: None,
            script: Script::of(&drafts, protocol, 102),
            drafts,
        }
    }

    #[test]
    fn every_forced_mode_writes_the_script_and_faster_modes_need_fewer_calls() {
        let grammar = tiny();
        let page = page(&grammar);
        assert_eq!(page.script.content_tokens(), 46);
        // A model that would write something else everywhere.
        let rule = |_: &[Seen]| Next { id: 94, probability: 0.9, other: 0.01 };
        let settings = LoopSettings::default();
        let never = TrustThresholds::new(|_, _| crate::decode::protocol::TrustThreshold {
            own_confidence: 2.0,
            model_probability: 0.0,
            override_probability: 2.0,
            coordinate_bins: 0,
        });
        let context = ModeContext {
            protocol: &grammar,
            settings: &settings,
            trust: AcceptanceRule::Trust(never),
            draft_error: 0.1,
            threads: 2,
        };
        let run = |mode| run_mode(mode, &page, &mut FakeGraph::new(&rule), &context).unwrap();
        let [plain, forked, _, _, guesses, lossless, trust] = Mode::WHOLE.map(run);
        for sample in [&plain, &forked, &guesses, &lossless, &trust] {
            assert!((sample.similarity - 1.0).abs() < 1e-9, "{sample:?}");
        }
        assert_eq!((plain.calls, plain.row_steps), (18 + 46, 18 + 46), "one token a call");
        assert!(forked.row_steps == plain.row_steps && forked.calls < 45, "{}", forked.calls);
        assert!(lossless.calls < forked.calls / 2 && lossless.accepted[&Source::TextLayer] > 30);
        assert_eq!(trust.calls, 2, "a call for the trunk, a call for its branches");

        let mut graph = FakeGraph::new(&rule);
        graph.focal_layers = vec![1];
        let fixation = Mode { fixation: 10, ..Mode::SEQUENTIAL };
        assert_eq!((fixation.name().as_str(), fixation.whole()), ("sequential_tau10", Mode::SEQUENTIAL));
        let fixated = run_mode(fixation, &page, &mut graph, &context).unwrap();
        assert_eq!((plain.prefix_read, fixated.calls), (8.0, plain.calls));
        assert!(fixated.prefix_read < 6.0, "{}", fixated.prefix_read);
        assert_eq!(fixated.choices, plain.choices);

        graph.saliency = true;
        let retention = Mode { retention: 10, ..Mode::SEQUENTIAL };
        let retained = run_mode(retention, &page, &mut graph, &context).unwrap();
        assert!(retained.prefix_read < 7.0 && retained.calls == plain.calls, "{}", retained.prefix_read);
        graph.head_drafts = 4;
        let headed = run_mode(Mode::SEQUENTIAL_HEAD, &page, &mut graph, &context).unwrap();
        assert!(headed.guesses[&Guesser::Head].rows > 0 && (headed.similarity - 1.0).abs() < 1e-9);
    }

    #[test]
    fn errors_are_spread_over_text_and_leave_the_rest() {
        let grammar = tiny();
        let page = page(&grammar);
        let wrong = with_errors(&page.drafts, 0.1, &grammar);
        let changed: BTreeSet<usize> = [5, 16]
            .into_iter()
            .flat_map(|fork| {
                let (a, b) = (&page.drafts.content[&fork], &wrong.content[&fork]);
                (0..a.len()).filter(|&i| a[i].id != b[i].id).map(|i| fork * 100 + i).collect::<Vec<_>>()
            })
            .collect();
        assert!((3..=4).contains(&changed.len()), "{changed:?}");
        assert_eq!(wrong.trunk, page.drafts.trunk);
        assert_eq!(with_errors(&page.drafts, 0.0, &grammar), page.drafts);
    }
}
