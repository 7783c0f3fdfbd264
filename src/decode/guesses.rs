//! Drafts of the model's own making, for streams for which no drafter has anything to say: what its multi-token head drafts
//! (P-MTP, HPD-Parsing), and what followed the last tokens when the stream wrote them before (prompt look-up). They stand only
//! where they are exactly what the model writes, whatever the acceptance rule.
//!
//! The policy is per page and learns from what is accepted: which of the two to ask, when to stop asking, and, per stream, how
//! long a draft pays.

use std::collections::BTreeMap;

use crate::graphs::TokenId;
use crate::page::Source;

use super::protocol::DraftToken;

/// Who makes a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Guesser {
    /// The multi-token head.
    Head,
    /// Look-up in the stream itself.
    Ngram,
}

impl Guesser {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Guesser::Head => "mtp",
            Guesser::Ngram => "ngram",
        }
    }
}

/// Who may guess.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuessSettings {
    pub head: bool,
    pub ngram: bool,
}

/// Tokens guessed for a stream's next feed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Guess {
    pub(super) by: Guesser,
    pub(super) tokens: Vec<DraftToken>,
}

/// What became of a guesser's drafts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GuessCount {
    /// Rows that held a guess.
    pub rows: usize,
    pub proposed: usize,
    pub accepted: usize,
}

/// Last tokens that must have stood together before for a look-up.
const NGRAM: usize = 3;

/// Most tokens that a look-up proposes.
const LONGEST_LOOK_UP: usize = 16;

/// The head's draft is cut where it is less likely than this to stand so far by its own word.
const LEAST_SURE: f32 = 0.2;

/// Accepted tokens of a guess below which a guesser is not asked any more, once it has had its chance: a fed token costs about a
/// thirtieth of a call of one row (see `scheduler`).
const LEAST_ACCEPTED: f32 = 0.1;

/// Guesses before that is decided.
const CHANCES: usize = 24;

/// How much a new guess counts in the running mean.
const LEARNING: f32 = 0.1;

/// Running means of accepted tokens a guess.
#[derive(Clone, Debug, Default)]
pub(super) struct GuessPolicy {
    settings: GuessSettings,
    known: BTreeMap<Guesser, (usize, f32)>,
}

impl GuessPolicy {
    pub(super) fn new(settings: GuessSettings) -> GuessPolicy {
        GuessPolicy { settings, known: BTreeMap::new() }
    }

    /// May this guesser be asked?
    fn asks(&self, guesser: Guesser) -> bool {
        let allowed = match guesser {
            Guesser::Head => self.settings.head,
            Guesser::Ngram => self.settings.ngram,
        };
        let (tried, mean) = self.known.get(&guesser).copied().unwrap_or((0, f32::MAX));
        allowed && (tried < CHANCES || mean >= LEAST_ACCEPTED)
    }

    fn value(&self, guesser: Guesser) -> f32 {
        // Before it has been tried, a look-up is the better bet: it rests on what the stream wrote.
        let before = if guesser == Guesser::Ngram { 2.0 } else { 1.0 };
        self.known.get(&guesser).map_or(before, |(_, mean)| *mean)
    }

    /// What the stream repeats, if that is the best that can be had for it.
    pub(super) fn look_up(&self, ids: &[TokenId], length: GuessLength) -> Option<Guess> {
        if !self.asks(Guesser::Ngram)
            || (self.asks(Guesser::Head) && self.value(Guesser::Head) > self.value(Guesser::Ngram))
        {
            return None;
        }
        let found = repeated(ids, length.0.min(LONGEST_LOOK_UP));
        (!found.is_empty())
            .then(|| Guess { by: Guesser::Ngram, tokens: found.iter().map(|&id| token(id, 1.0)).collect() })
    }

    /// Is the head to be asked?
    pub(super) fn asks_head(&self) -> bool {
        self.asks(Guesser::Head)
    }

    /// Takes what became of a guess.
    pub(super) fn learn(&mut self, guesser: Guesser, accepted: usize) {
        let accepted = accepted as f32;
        let (tried, mean) = self.known.entry(guesser).or_insert((0, accepted));
        *tried += 1;
        *mean += LEARNING * (accepted - *mean);
    }
}

/// How long a stream's next guess may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GuessLength(usize);

impl GuessLength {
    pub(super) const START: GuessLength = GuessLength(4);

    /// Longer after a guess that stood as a whole, else about as long as what stood of it.
    pub(super) fn after(self, proposed: usize, accepted: usize) -> GuessLength {
        if accepted == proposed {
            GuessLength((self.0 * 2).min(LONGEST_LOOK_UP))
        } else {
            GuessLength(accepted + 1)
        }
    }
}

/// The head's draft for one stream, cut to what is likely to stand.
pub(super) fn head_guess(ids: &[TokenId], probabilities: &[f32], length: GuessLength) -> Option<Guess> {
    let mut sure = 1.0;
    let likely = ids.iter().zip(probabilities).take(length.0).take_while(|(_, probability)| {
        sure *= **probability;
        sure >= LEAST_SURE
    });
    let tokens: Vec<DraftToken> = likely.map(|(&id, &probability)| token(id, probability)).collect();
    (!tokens.is_empty()).then_some(Guess { by: Guesser::Head, tokens })
}

fn token(id: TokenId, confidence: f32) -> DraftToken {
    DraftToken { id, confidence, source: Source::Model, origin: 0 }
}

/// What followed the last tokens of `ids` when they were written last, at most `most` tokens.
fn repeated(ids: &[TokenId], most: usize) -> &[TokenId] {
    let Some(last) = ids.len().checked_sub(NGRAM).map(|start| &ids[start..]) else { return &[] };
    let before = ids[..ids.len() - 1].windows(NGRAM).rposition(|window| window == last);
    before.map_or(&[], |at| &ids[at + NGRAM..(at + NGRAM + most).min(ids.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: GuessSettings = GuessSettings { head: true, ngram: true };

    #[test]
    fn what_followed_last_time_is_looked_up() {
        assert_eq!(repeated(&[1, 2, 3, 4, 5, 1, 2, 3], 2), [4, 5]);
        assert_eq!(repeated(&[1, 2, 3, 9, 1, 2, 3, 4, 1, 2, 3], 1), [4], "the last time counts");
        assert_eq!(repeated(&[7, 7, 7, 7], 5), [7], "a run goes on");
        assert!(repeated(&[1, 2, 3, 4], 5).is_empty() && repeated(&[1, 2], 5).is_empty());
    }

    #[test]
    fn a_draft_is_cut_where_it_is_not_likely_to_stand() {
        let guess = head_guess(&[5, 6, 7, 8], &[0.9, 0.5, 0.4, 1.0], GuessLength::START).unwrap();
        assert_eq!(guess.tokens.iter().map(|t| t.id).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(head_guess(&[5], &[0.1], GuessLength::START), None);
        assert_eq!(head_guess(&[5, 6], &[1.0, 1.0], GuessLength(1)).unwrap().tokens.len(), 1);
    }

    #[test]
    fn a_guess_grows_while_it_stands_and_shrinks_to_what_stood() {
        assert_eq!(GuessLength(4).after(4, 4), GuessLength(8));
        assert_eq!(GuessLength(8).after(6, 2), GuessLength(3));
        assert_eq!(GuessLength(3).after(3, 0), GuessLength(1));
        assert_eq!(GuessLength(16).after(9, 9), GuessLength(16));
    }

    #[test]
    fn the_policy_asks_who_is_being_accepted() {
        let stream = [1, 2, 3, 4, 1, 2, 3];
        let mut policy = GuessPolicy::new(BOTH);
        assert!(policy.look_up(&stream, GuessLength::START).is_some(), "a look-up has the first word");
        for _ in 0..30 {
            policy.learn(Guesser::Ngram, 0);
            policy.learn(Guesser::Head, 3);
        }
        assert_eq!(policy.look_up(&stream, GuessLength::START), None);
        assert!(policy.asks_head());
        for _ in 0..60 {
            policy.learn(Guesser::Head, 0);
        }
        assert!(!policy.asks_head(), "nobody is asked for nothing");
        let off = GuessPolicy::new(GuessSettings::default());
        assert!(!off.asks_head() && off.look_up(&stream, GuessLength::START).is_none());
    }
}
