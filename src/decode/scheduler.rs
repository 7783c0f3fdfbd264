//! Which streams run in the next call. Every running stream advances once a step; a step takes one call per bucket of row
//! lengths, or more where a call would grow too large.

/// Row lengths that share a call: a long draft must not pad the rows that feed one token.
const BUCKETS: [usize; 5] = [1, 8, 32, 128, 512];

/// Most tokens of a call, padding included: bounds its activations.
const MAX_CALL_TOKENS: usize = 4096;

/// A stream that has not yet run in this step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) owner: Owner,
    /// Tokens that it feeds next.
    pub(super) feed_len: usize,
}

/// Whose stream it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// The content branch at this index.
    Content(usize),
    Trunk,
}

fn bucket(feed_len: usize) -> usize {
    BUCKETS.iter().position(|&bucket| feed_len <= bucket).unwrap_or(BUCKETS.len())
}

/// Rows of the next call, longest first: of the bucket of the first ready stream, as many as the call holds.
pub(super) fn next_call(ready: &[Ready], max_rows: usize) -> Vec<Owner> {
    let Some(first) = ready.first() else { return Vec::new() };
    let mut rows: Vec<Ready> =
        ready.iter().copied().filter(|r| bucket(r.feed_len) == bucket(first.feed_len)).collect();
    rows.sort_by_key(|r| (std::cmp::Reverse(r.feed_len), r.owner));
    let longest = rows.first().map_or(1, |r| r.feed_len.max(1));
    rows.truncate(max_rows.min(MAX_CALL_TOKENS / longest).max(1));
    rows.into_iter().map(|r| r.owner).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(lens: &[usize]) -> Vec<Ready> {
        lens.iter().enumerate().map(|(i, &feed_len)| Ready { owner: Owner::Content(i), feed_len }).collect()
    }

    #[test]
    fn a_call_holds_rows_of_one_bucket() {
        let rows = next_call(&ready(&[5, 300, 8, 1, 2]), 64);
        assert_eq!(rows, [Owner::Content(2), Owner::Content(0), Owner::Content(4)]);
    }

    #[test]
    fn a_call_is_bounded_in_rows_and_in_padded_tokens() {
        assert_eq!(next_call(&ready(&[1; 100]), 64).len(), 64);
        assert_eq!(next_call(&ready(&[512; 100]), 64).len(), MAX_CALL_TOKENS / 512);
    }

    #[test]
    fn children_come_before_the_trunk() {
        assert!(Owner::Content(7) < Owner::Trunk);
    }
}
