//! Counters of one page's decoding.

use std::collections::{BTreeMap, BTreeSet};

use crate::page::Source;

use super::guesses::{GuessCount, Guesser};
use super::protocol::{DraftToken, KeptToken};

/// What decoding a page took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecodeStats {
    /// Calls of the decode graph; all of a page's calls follow one another.
    pub calls: usize,
    /// Those of them that other pages shared.
    pub shared_calls: usize,
    /// Steps: in each, every running stream advances once. A machine that runs all calls of a step at once would take this many.
    pub steps: usize,
    /// Rows over all calls, without fillers.
    pub row_steps: usize,
    /// Most rows of a call.
    pub max_rows: usize,
    /// Tokens fed, without padding.
    pub tokens_fed: usize,
    /// Drafted tokens that were scored, and those that stood, by drafter.
    pub drafted: BTreeMap<Source, usize>,
    pub accepted: BTreeMap<Source, usize>,
    /// Rows whose feed held drafted tokens of a drafter.
    pub draft_rows: BTreeMap<Source, usize>,
    /// What became of the drafts of the model's own making.
    pub guesses: BTreeMap<Guesser, GuessCount>,
    /// Tokens of the model's own, its accepted guesses included.
    pub written: usize,
    /// Suffixes that were given up for an older branch.
    pub preempted: usize,
    /// Most bytes of keys and values held at once, staging included.
    pub kv_peak_bytes: usize,
    /// Most bytes of the memory of shared calls, all pages together.
    pub pool_bytes: usize,
    /// Of calls that were shared, the page's part.
    pub graph_seconds: f64,
    /// Of the multi-token head.
    pub head_seconds: f64,
    /// Prefix positions that a layer read, mean over the layers, sum over the calls.
    pub prefix_read: f64,
}

impl DecodeStats {
    pub(super) fn note_call(&mut self, feed_lens: impl ExactSizeIterator<Item = usize>) {
        self.calls += 1;
        self.row_steps += feed_lens.len();
        self.max_rows = self.max_rows.max(feed_lens.len());
        self.tokens_fed += feed_lens.sum::<usize>();
    }

    pub(super) fn note_drafts(&mut self, drafts: &[DraftToken]) {
        for draft in drafts {
            *self.drafted.entry(draft.source).or_default() += 1;
        }
        let sources: BTreeSet<Source> = drafts.iter().map(|draft| draft.source).collect();
        for source in sources {
            *self.draft_rows.entry(source).or_default() += 1;
        }
    }

    pub(super) fn note_guess(&mut self, guesser: Guesser, proposed: usize, accepted: usize) {
        let count = self.guesses.entry(guesser).or_default();
        count.rows += 1;
        count.proposed += proposed;
        count.accepted += accepted;
    }

    /// Tokens that a stream kept.
    pub(super) fn note_kept(&mut self, tokens: &[KeptToken]) {
        for token in tokens {
            match token.origin {
                Some(_) => *self.accepted.entry(token.source).or_default() += 1,
                None => self.written += 1,
            }
        }
    }
}
