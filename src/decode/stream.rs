//! A running generation: its tokens, how many of them the cache holds, its budget, and what it feeds next.

use crate::graphs::TokenId;
use crate::page::{Source, StopReason};

use super::guard::LoopGuard;
use super::guesses::{Guess, Guesser};
use super::protocol::{DraftToken, KeptToken, PositionState, Protocol};
use super::verify::Proposal;

/// Tokens of a stream. Between calls the cache holds all of them but the last, or fewer if its rows were given up.
#[derive(Debug)]
pub(super) struct Stream {
    ids: Vec<TokenId>,
    tokens: Vec<KeptToken>,
    prompt_len: usize,
    /// Most tokens, prompt included.
    max_len: usize,
    /// Most tokens that it feeds in one call, 2 at least: one that is known, one that is drafted.
    max_feed: usize,
    cached: usize,
    start: PositionState,
    /// State after the cached tokens.
    state: PositionState,
    guard: LoopGuard,
    stop: Option<StopReason>,
}

/// What one stream feeds in one call.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Feed {
    /// Kept tokens that the cache does not hold yet, then drafts.
    pub(super) tokens: Vec<TokenId>,
    /// `[tokens, parts]`
    pub(super) positions: Vec<f32>,
    /// How many of the tokens are kept ones.
    pub(super) known: usize,
    /// `None` if kept tokens remain for another call.
    pub(super) drafted: Option<Drafted>,
}

/// The drafted part of a [`Feed`].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Drafted {
    pub(super) tokens: Vec<DraftToken>,
    pub(super) strict: usize,
    pub(super) goes_on: bool,
    /// Who guessed them; `None`: they are a drafter's.
    pub(super) guesser: Option<Guesser>,
}

/// What is proposed for a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Proposed<'a> {
    pub(super) tokens: &'a [DraftToken],
    /// How many of them must be the model's own.
    pub(super) strict: usize,
    /// The draft goes on after them.
    pub(super) goes_on: bool,
    pub(super) guesser: Option<Guesser>,
}

impl<'a> Proposed<'a> {
    /// `drafted` if there is any of it, else a guess.
    pub(super) fn or_guess(self, guess: Option<&'a Guess>) -> Proposed<'a> {
        match guess {
            Some(guess) if self.tokens.is_empty() => Proposed {
                tokens: &guess.tokens,
                strict: guess.tokens.len(),
                goes_on: false,
                guesser: Some(guess.by),
            },
            _ => self,
        }
    }
}

impl Stream {
    /// A stream that is given `prompt` and may write `max_tokens`.
    pub(super) fn new(
        prompt: &[TokenId],
        start: PositionState,
        max_tokens: usize,
        max_feed: usize,
    ) -> Stream {
        let given = |&id: &TokenId| KeptToken { id, probability: 1.0, source: Source::Model, origin: None };
        Stream {
            ids: prompt.to_vec(),
            tokens: prompt.iter().map(given).collect(),
            prompt_len: prompt.len(),
            max_len: prompt.len() + max_tokens,
            max_feed: max_feed.max(2),
            cached: 0,
            start,
            state: start,
            guard: LoopGuard::new(),
            stop: (max_tokens == 0).then_some(StopReason::Budget),
        }
    }

    pub(super) fn ids(&self) -> &[TokenId] {
        &self.ids
    }

    /// Tokens from `index` on; none if a loop took them back.
    pub(super) fn tokens_from(&self, index: usize) -> &[KeptToken] {
        self.tokens.get(index..).unwrap_or_default()
    }

    pub(super) fn cached(&self) -> usize {
        self.cached
    }

    pub(super) fn stop(&self) -> Option<StopReason> {
        self.stop
    }

    /// All tokens with the prompt.
    pub(super) fn into_tokens(self) -> Vec<KeptToken> {
        self.tokens
    }

    /// Tokens written, without the prompt.
    pub(super) fn into_written(mut self) -> Vec<KeptToken> {
        self.tokens.split_off(self.prompt_len)
    }

    /// Length of the next feed with a draft of `drafts` tokens.
    pub(super) fn feed_len(&self, drafts: usize) -> usize {
        let (known, drafted) = self.feed_parts(drafts);
        known + drafted.unwrap_or(0)
    }

    /// Kept and drafted tokens of the next feed. A feed that reaches the end of the kept tokens has room for a draft, so that
    /// no token of the model's own is taken where a draft waits.
    fn feed_parts(&self, drafts: usize) -> (usize, Option<usize>) {
        let uncached = self.tokens.len() - self.cached;
        let known = uncached.min(self.max_feed - 1);
        let drafted = drafts.min(self.max_feed - known).min(self.max_len - self.tokens.len());
        (known, (known == uncached).then_some(drafted))
    }

    /// The next feed, with positions of `parts` components.
    pub(super) fn feed(&self, proposed: Proposed<'_>, parts: usize, protocol: &dyn Protocol) -> Feed {
        let Proposed { tokens: drafts, strict, goes_on, guesser } = proposed;
        let (known, drafted) = self.feed_parts(drafts.len());
        let drafted = drafted.map(|count| Drafted {
            tokens: drafts[..count].to_vec(),
            strict,
            // A guess that had to be cut has said all it can.
            goes_on: guesser.is_none() && (count < drafts.len() || (goes_on && count > 0)),
            guesser,
        });
        let mut tokens = self.ids[self.cached..self.cached + known].to_vec();
        tokens.extend(drafted.iter().flat_map(|d| &d.tokens).map(|t| t.id));
        let mut positions = Vec::with_capacity(tokens.len() * parts);
        let mut state = self.state;
        for &token in &tokens {
            let (position, next) = protocol.feed(state, token);
            positions.extend_from_slice(&position[..parts]);
            state = next;
        }
        Feed { tokens, positions, known, drafted }
    }

    /// What the feed's drafts are verified as.
    pub(super) fn proposal<'a>(&self, drafted: &'a Drafted) -> Proposal<'a> {
        Proposal {
            drafts: &drafted.tokens,
            strict: drafted.strict,
            goes_on: drafted.goes_on,
            known_len: self.tokens.len(),
        }
    }

    /// Adds a token; `is_end` says that it ends the stream. Does nothing once the stream has stopped.
    pub(super) fn push(&mut self, token: KeptToken, is_end: bool, protocol: &dyn Protocol) {
        if self.stop.is_some() {
            return;
        }
        self.tokens.push(token);
        self.ids.push(token.id);
        let repeated = self.guard.push(token.id, protocol.may_repeat(token.id));
        if is_end {
            self.stop = Some(StopReason::End);
        } else if let Some(repeated) = repeated {
            self.tokens.truncate(self.tokens.len() - repeated);
            self.ids.truncate(self.tokens.len());
            self.stop = Some(StopReason::Loop);
        } else if self.tokens.len() >= self.max_len {
            self.stop = Some(StopReason::Budget);
        }
    }

    /// Positions that the cache should hold once `feed` has run and its tokens were pushed: those fed, but never the last token.
    pub(super) fn cacheable(&self, feed: &Feed) -> usize {
        (self.cached + feed.tokens.len()).min(self.tokens.len().saturating_sub(1))
    }

    /// The cache now holds the first `len` tokens.
    pub(super) fn set_cached(&mut self, len: usize, protocol: &dyn Protocol) {
        if len < self.cached {
            self.state = self.start;
            self.cached = 0;
        }
        for &token in &self.ids[self.cached..len] {
            self.state = protocol.feed(self.state, token).1;
        }
        self.cached = len;
    }
}
