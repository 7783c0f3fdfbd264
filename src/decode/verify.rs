//! Drafts and a call's outputs -> the tokens that are kept. Pure.

use crate::graphs::TokenId;

use super::protocol::{DraftToken, KeptToken, Protocol, TrustThresholds};

/// Which drafted tokens stand.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// The first `strict` tokens must be what the model would have written, whatever the rule.
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
        let rule = if index < proposal.strict { &AcceptanceRule::Lossless } else { rule };
        if !stands(draft, &choice, rule, protocol) {
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

fn stands(draft: &DraftToken, choice: &Choice, rule: &AcceptanceRule, protocol: &dyn Protocol) -> bool {
    if draft.id == choice.id {
        return true;
    }
    let AcceptanceRule::Trust(thresholds) = rule else { return false };
    let threshold = thresholds.of(protocol.class(draft.id));
    let near =
        || protocol.coordinate_distance(draft.id, choice.id).is_some_and(|d| d <= threshold.coordinate_bins);
    draft.confidence >= threshold.own_confidence
        || choice.draft_probability >= threshold.model_probability
        // The model's own token is the likeliest of the others.
        || choice.probability < threshold.override_probability
        || near()
}
