//! Notices a stream that repeats itself.

use crate::graphs::TokenId;

/// Longest repeated run of tokens that is looked for: a table row or a line of text.
const MAX_PERIOD: usize = 32;

/// A stream loops when this many tokens at its end repeat: a leader line of dots or a rule of underscores is shorter.
const LOOP_LEN: usize = 128;

/// Counts, per period, how many tokens at the end of a stream equal the one a period before.
#[derive(Clone, Debug)]
pub(super) struct LoopGuard {
    runs: [usize; MAX_PERIOD],
    /// The last tokens, and whether each may repeat freely; index modulo `MAX_PERIOD`.
    last: [(TokenId, bool); MAX_PERIOD],
    len: usize,
}

impl LoopGuard {
    pub(super) fn new() -> LoopGuard {
        LoopGuard { runs: [0; MAX_PERIOD], last: [(0, false); MAX_PERIOD], len: 0 }
    }

    /// Takes the stream's next token; the number of tokens at its end that only repeat what stands before them, if it loops.
    /// Runs made only of tokens that may repeat (cells of an empty table) are no loop.
    pub(super) fn push(&mut self, token: TokenId, may_repeat: bool) -> Option<usize> {
        for period in 1..=MAX_PERIOD.min(self.len) {
            let same = self.last[(self.len - period) % MAX_PERIOD].0 == token;
            self.runs[period - 1] = if same { self.runs[period - 1] + 1 } else { 0 };
        }
        self.last[self.len % MAX_PERIOD] = (token, may_repeat);
        self.len += 1;
        (1..=MAX_PERIOD).find(|&period| self.loops(period)).map(|period| self.runs[period - 1])
    }

    fn loops(&self, period: usize) -> bool {
        let repeated = self.runs[period - 1];
        repeated > 0
            && repeated + period >= LOOP_LEN
            && (1..=period).any(|back| !self.last[(self.len - back) % MAX_PERIOD].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_loop(tokens: impl Iterator<Item = (TokenId, bool)>) -> Option<(usize, usize)> {
        let mut guard = LoopGuard::new();
        tokens
            .enumerate()
            .find_map(|(i, (token, free))| guard.push(token, free).map(|repeated| (i + 1, repeated)))
    }

    #[test]
    fn a_phrase_repeated_over_the_limit_is_a_loop() {
        let tokens = [1, 2, 3].into_iter().chain((0..400).map(|i| 10 + i % 5)).map(|t| (t, false));
        let (len, repeated) = first_loop(tokens).unwrap();
        assert_eq!((len, repeated), (3 + LOOP_LEN, LOOP_LEN - 5));
    }

    #[test]
    fn a_short_repetition_is_no_loop() {
        assert_eq!(first_loop((0..LOOP_LEN as i64 - 1).map(|_| (7, false))), None);
        assert_eq!(first_loop((0..4000).map(|i| (i % 40, false))), None, "longer than any period looked for");
    }

    #[test]
    fn tokens_that_may_repeat_are_no_loop_alone_but_do_not_excuse_others() {
        assert_eq!(first_loop((0..1000).map(|i| (i % 2, true))), None);
        assert!(first_loop((0..1000).map(|i| (i % 2, i % 2 == 0))).is_some());
    }
}
