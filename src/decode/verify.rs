//! Drafts and a call's outputs -> the tokens that are kept. Pure.

use crate::graphs::TokenId;

use super::protocol::{DraftToken, KeptToken, Protocol, TrustThresholds};

/// Which drafted tokens stand.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a run has one; boxing the table would cost `Copy`")]
pub enum AcceptanceRule {
    /// Those that the model itself would have written.
    Lossless,
    /// Those that the model is not sure to be something else.
    Trust(TrustThresholds),
}

/// Drafted tokens that a call scored.
#[derive(Clone, Copy, Debug)]
pub struct Proposal<'a> {
    pub drafts: &'a [DraftToken],
    /// The first `strict` tokens stand only by what the model says, not by the drafter's confidence: they may be out of step.
    pub strict: usize,
    /// The draft has more tokens than these: if all of them stand, no token of the model's own is taken, so that the next
    /// call scores the draft there.
    pub goes_on: bool,
    /// Length of the stream up to and with the token before the first draft.
    pub known_len: usize,
}

/// Outputs of the call from the token before the first draft on: `drafts.len() + 1` values each.
#[derive(Clone, Copy, Debug)]
pub struct Scores<'a> {
    pub next_id: &'a [TokenId],
    pub next_logprob: &'a [f32],
    pub draft_logprob: &'a [f32],
}

/// What a call brought a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// Drafted tokens that stand, then the model's own token.
    pub kept: Vec<KeptToken>,
    /// How many of `kept` were drafted.
    pub drafted: usize,
    /// Positions to keep in the cache: every token of the stream but the last.
    pub keep_len: usize,
    /// Index into the drafts of the one that did not stand.
    pub refused: Option<usize>,
}

/// Keeps drafts while they stand, then the model's own token.
pub fn verify(
    proposal: &Proposal<'_>,
    scores: &Scores<'_>,
    rule: &AcceptanceRule,
    protocol: &dyn Protocol,
) -> Accepted {
    let mut kept = Vec::with_capacity(proposal.drafts.len() + 1);
    for (index, draft) in proposal.drafts.iter().enumerate() {
        let choice = Choice {
            id: scores.next_id[index],
            probability: scores.next_logprob[index].exp(),
            draft_probability: scores.draft_logprob[index].exp(),
        };
        let stands = if index < proposal.strict {
            stands_seen(draft, &choice, rule, protocol)
        } else {
            stands_unseen(draft, rule, protocol) || stands_seen(draft, &choice, rule, protocol)
        };
        if !stands {
            break;
        }
        let same = draft.id == choice.id;
        let probability = if same { choice.probability } else { choice.draft_probability };
        kept.push(KeptToken { id: draft.id, probability, source: draft.source, origin: Some(draft.origin) });
    }
    let drafted = kept.len();
    let refused = (drafted < proposal.drafts.len()).then_some(drafted);
    if refused.is_some() || !proposal.goes_on {
        kept.push(KeptToken {
            id: scores.next_id[drafted],
            probability: scores.next_logprob[drafted].exp(),
            source: crate::page::Source::Model,
            origin: None,
        });
    }
    let keep_len = (proposal.known_len + kept.len()).saturating_sub(1);
    Accepted { kept, drafted, keep_len, refused }
}

/// What the model says at a drafted token's position.
struct Choice {
    /// Its own token.
    id: TokenId,
    probability: f32,
    draft_probability: f32,
}

/// Does a drafted token stand whatever the model says?
pub fn stands_unseen(draft: &DraftToken, rule: &AcceptanceRule, protocol: &dyn Protocol) -> bool {
    match rule {
        AcceptanceRule::Lossless => false,
        AcceptanceRule::Trust(thresholds) => {
            draft.confidence >= thresholds.of(protocol.class(draft.id), draft.source).own_confidence
        }
    }
}

/// Does a drafted token stand by what the model says, however sure the drafter is?
fn stands_seen(draft: &DraftToken, choice: &Choice, rule: &AcceptanceRule, protocol: &dyn Protocol) -> bool {
    if draft.id == choice.id {
        return true;
    }
    let AcceptanceRule::Trust(thresholds) = rule else { return false };
    let threshold = thresholds.of(protocol.class(draft.id), draft.source);
    let near =
        || protocol.coordinate_distance(draft.id, choice.id).is_some_and(|d| d <= threshold.coordinate_bins);
    choice.draft_probability >= threshold.model_probability
        // The model's own token is the likeliest of the others.
        || choice.probability < threshold.override_probability
        || near()
}

#[cfg(test)]
mod tests {
    use super::super::protocol::{Position, PositionState, TokenClass, TrustThreshold};
    use super::*;
    use crate::page::Source;

    /// Tokens from 100 on are coordinates.
    struct Classes;

    impl Protocol for Classes {
        fn trunk_prompt(&self) -> Vec<TokenId> {
            Vec::new()
        }
        fn is_trunk_end(&self, _: TokenId) -> bool {
            false
        }
        fn is_branch_end(&self, _: TokenId) -> bool {
            false
        }
        fn is_fork(&self, _: TokenId) -> bool {
            false
        }
        fn child_token(&self) -> TokenId {
            0
        }
        fn fork_visible(&self) -> bool {
            false
        }
        fn trunk_start(&self) -> PositionState {
            PositionState::default()
        }
        fn branch_start(&self, _: &[TokenId], _: usize) -> PositionState {
            PositionState::default()
        }
        fn feed(&self, state: PositionState, _: TokenId) -> (Position, PositionState) {
            ([0.0; 3], state)
        }
        fn class(&self, token: TokenId) -> TokenClass {
            if token >= 100 { TokenClass::Coordinate } else { TokenClass::Text }
        }
        fn coordinate_distance(&self, a: TokenId, b: TokenId) -> Option<u32> {
            (a.min(b) >= 100).then(|| a.abs_diff(b) as u32)
        }
        fn may_repeat(&self, _: TokenId) -> bool {
            false
        }
    }

    const NEVER: TrustThreshold = TrustThreshold {
        own_confidence: 2.0,
        model_probability: 2.0,
        override_probability: 0.0,
        coordinate_bins: 0,
    };

    fn trust(text: TrustThreshold, coordinate: TrustThreshold) -> AcceptanceRule {
        AcceptanceRule::Trust(TrustThresholds::new(|class, _| match class {
            TokenClass::Text => text,
            TokenClass::Coordinate => coordinate,
            TokenClass::Kind | TokenClass::Structure => NEVER,
        }))
    }

    fn draft(id: TokenId) -> DraftToken {
        DraftToken { id, confidence: 0.6, source: Source::TextLayer, origin: 7 }
    }

    /// Verifies `drafts` against a model that would write `choices`, each with probability 0.7 and every draft at 0.2.
    fn run(drafts: &[TokenId], choices: &[TokenId], strict: usize, rule: &AcceptanceRule) -> Accepted {
        let drafts: Vec<DraftToken> = drafts.iter().map(|&id| draft(id)).collect();
        let proposal = Proposal { drafts: &drafts, strict, goes_on: false, known_len: 10 };
        let scores = Scores {
            next_id: choices,
            next_logprob: &vec![0.7f32.ln(); choices.len()],
            draft_logprob: &vec![0.2f32.ln(); choices.len()],
        };
        verify(&proposal, &scores, rule, &Classes)
    }

    fn ids(accepted: &Accepted) -> Vec<TokenId> {
        accepted.kept.iter().map(|t| t.id).collect()
    }

    #[test]
    fn all_drafts_accepted_keeps_them_and_the_models_next_token() {
        let accepted = run(&[1, 2], &[1, 2, 3], 0, &AcceptanceRule::Lossless);
        assert_eq!((ids(&accepted), accepted.drafted), (vec![1, 2, 3], 2));
        assert_eq!((accepted.keep_len, accepted.refused), (12, None));
        assert_eq!(accepted.kept[0].origin, Some(7));
        assert!((accepted.kept[0].probability - 0.7).abs() < 1e-6);
    }

    #[test]
    fn all_drafts_refused_keeps_one_token() {
        let accepted = run(&[9, 2], &[1, 2, 3], 0, &AcceptanceRule::Lossless);
        assert_eq!((ids(&accepted), accepted.keep_len, accepted.refused), (vec![1], 10, Some(0)));
        assert_eq!((accepted.kept[0].source, accepted.kept[0].origin), (Source::Model, None));
    }

    #[test]
    fn a_draft_that_goes_on_leaves_the_next_token_to_it() {
        let drafts = [draft(1), draft(2)];
        let proposal = Proposal { drafts: &drafts, strict: 0, goes_on: true, known_len: 10 };
        let scores = Scores { next_id: &[1, 2, 3], next_logprob: &[0.0; 3], draft_logprob: &[0.0; 3] };
        let accepted = verify(&proposal, &scores, &AcceptanceRule::Lossless, &Classes);
        assert_eq!((ids(&accepted), accepted.keep_len), (vec![1, 2], 11));
    }

    #[test]
    fn each_threshold_of_trust_makes_a_draft_stand() {
        let stands = |threshold| run(&[9], &[1, 2], 0, &trust(threshold, NEVER)).drafted == 1;
        assert!(!stands(NEVER));
        assert!(stands(TrustThreshold { own_confidence: 0.6, ..NEVER }));
        assert!(!stands(TrustThreshold { own_confidence: 0.61, ..NEVER }));
        assert!(stands(TrustThreshold { model_probability: 0.19, ..NEVER }));
        assert!(!stands(TrustThreshold { model_probability: 0.21, ..NEVER }));
        assert!(stands(TrustThreshold { override_probability: 0.71, ..NEVER }));
        assert!(!stands(TrustThreshold { override_probability: 0.69, ..NEVER }));
    }

    #[test]
    fn a_coordinate_stands_within_its_bins() {
        let bins = TrustThreshold { coordinate_bins: 2, ..NEVER };
        let rule = trust(bins, bins);
        assert_eq!(ids(&run(&[102], &[100, 5], 0, &rule)), [102, 5], "the drafted coordinate is kept");
        assert_eq!(ids(&run(&[103], &[100, 5], 0, &rule)), [100]);
        assert_eq!(ids(&run(&[9], &[8, 5], 0, &rule)), [8], "text has no bins");
    }

    #[test]
    fn strict_tokens_must_be_the_models_own() {
        let always = TrustThreshold { own_confidence: 0.0, ..NEVER };
        let rule = trust(always, always);
        assert_eq!(ids(&run(&[9, 9], &[1, 2, 3], 0, &rule)), [9, 9, 3]);
        assert_eq!(ids(&run(&[9, 9], &[1, 2, 3], 1, &rule)), [1]);
        assert_eq!(ids(&run(&[1, 9], &[1, 2, 3], 1, &rule)), [1, 9, 3]);
    }
}
