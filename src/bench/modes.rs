//! One page in one mode.

use std::collections::BTreeMap;

use super::BenchPage;
use super::script::{Choices, MeasuredGraph};
use crate::decode::fixation::FixationSettings;
use crate::decode::protocol::{DraftToken, Protocol, TokenClass};
use crate::decode::{AcceptanceRule, DecodeError, LoopSettings, PageDecoding, PageDrafts, decode_page};
use crate::drafts::clock::Clock;
use crate::graphs::{DecodeGraph, TokenId};
use crate::page::Source;

/// How a page is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// One stream at a time, one token a call; teacher-forced.
    Sequential,
    /// Trunk and branches in one batch, one token a row and call; teacher-forced.
    Forked,
    /// Drafts in which a share of the tokens is wrong, accepted where the (teacher-forced) model agrees.
    DraftsLossless,
    /// The page's own drafts under the pack's trust thresholds; the model's own choices, nothing is forced.
    DraftsTrust,
    /// As [`Mode::Sequential`] and [`Mode::Forked`], with fixation to a share of the visual tokens, in percent.
    SequentialFixation(u8),
    ForkedFixation(u8),
}

impl Mode {
    /// All but fixation.
    pub const ALL: [Mode; 4] = [Mode::Sequential, Mode::Forked, Mode::DraftsLossless, Mode::DraftsTrust];

    pub fn name(self) -> String {
        match self {
            Mode::Sequential => "sequential".into(),
            Mode::Forked => "forked".into(),
            Mode::DraftsLossless => "drafts_lossless".into(),
            Mode::DraftsTrust => "drafts_trust".into(),
            Mode::SequentialFixation(percent) => format!("sequential_tau{percent:02}"),
            Mode::ForkedFixation(percent) => format!("forked_tau{percent:02}"),
        }
    }

    pub(super) fn percent(self) -> Option<u8> {
        match self {
            Mode::SequentialFixation(percent) | Mode::ForkedFixation(percent) => Some(percent),
            _ => None,
        }
    }

    fn is_sequential(self) -> bool {
        matches!(self, Mode::Sequential | Mode::SequentialFixation(_))
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
    pub kv_peak_bytes: usize,
    /// Of the content to the script's, 0..1.
    pub similarity: f64,
    /// Prefix positions that a layer read in a call, mean over layers and calls.
    pub prefix_read: f64,
    /// What the model itself would have written after each token of the script; empty where nothing was forced.
    pub choices: Choices,
}

/// What all pages of a run share.
pub(super) struct ModeContext<'a> {
    pub(super) protocol: &'a dyn Protocol,
    /// The pack's; budgets and acceptance are set by mode and page.
    pub(super) settings: &'a LoopSettings,
    /// The pack's thresholds.
    pub(super) trust: AcceptanceRule,
    /// Share of drafted tokens that are made wrong for [`Mode::DraftsLossless`].
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
    let drafts = match mode {
        Mode::DraftsLossless => with_errors(&page.drafts, context.draft_error, context.protocol),
        Mode::DraftsTrust => page.drafts.clone(),
        _ => PageDrafts::default(),
    };
    let longest = page.drafts.content.values().map(Vec::len).max().unwrap_or(0);
    let settings = LoopSettings {
        acceptance: if mode == Mode::DraftsTrust { context.trust } else { AcceptanceRule::Lossless },
        // A draft may be refused and realigned; a model that runs freely is stopped soon after.
        max_tokens: longest + 8,
        max_trunk_tokens: page.drafts.trunk.len() + 8,
        max_rows: if mode.is_sequential() { 1 } else { context.settings.max_rows },
        fixation: mode.percent().map(|percent| FixationSettings::new(f32::from(percent) / 100.0)),
        ..context.settings.clone()
    };
    let prefix = page.prefix.clone();
    let script = (mode != Mode::DraftsTrust).then_some(&page.script);
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
        let [plain, forked, lossless, trust] = Mode::ALL.map(run);
        for sample in [&plain, &forked, &lossless, &trust] {
            assert!((sample.similarity - 1.0).abs() < 1e-9, "{sample:?}");
        }
        assert_eq!((plain.calls, plain.row_steps), (18 + 46, 18 + 46), "one token a call");
        assert!(forked.row_steps == plain.row_steps && forked.calls < 45, "{}", forked.calls);
        assert!(lossless.calls < forked.calls / 2 && lossless.accepted[&Source::TextLayer] > 30);
        assert_eq!(trust.calls, 2, "a call for the trunk, a call for its branches");

        let mut graph = FakeGraph::new(&rule);
        graph.focal_layers = vec![1];
        let fixated = run_mode(Mode::SequentialFixation(10), &page, &mut graph, &context).unwrap();
        assert_eq!((plain.prefix_read, fixated.calls), (8.0, plain.calls));
        assert!(fixated.prefix_read < 6.0, "{}", fixated.prefix_read);
        assert_eq!(fixated.choices, plain.choices);
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
