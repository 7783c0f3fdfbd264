//! Which streams run in the next call. Every running stream advances once a step; the rows of a step, sorted by length, are
//! cut into calls where that costs least: padding against the fixed cost of a call.

/// Most tokens of a call, padding included: bounds its activations (nano, 4 heads over 2,300 visual tokens: 40 MB a score
/// tensor; 4,096 took the process to 2.3 GB).
const MAX_CALL_TOKENS: usize = 1024;

/// What a call costs beside its tokens, in tokens: reading the weights and the prefix. On one CPU thread a step of 1 row took
/// 7.4 ms and one of 16 rows 17.1 (native-stack.md 2.5), so about 10; a device with more lanes waits longer for each call.
const CALL_COST: usize = 32;

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

/// Rows of the next call: the longest ones, as many as share a call at the least cost of all calls of `ready`.
pub(super) fn next_call(mut ready: Vec<Ready>, max_rows: usize) -> Vec<Owner> {
    ready.sort_by_key(|r| (std::cmp::Reverse(r.feed_len), r.owner));
    let lens: Vec<usize> = ready.iter().map(|r| r.feed_len.max(1)).collect();
    ready.truncate(first_cut(&lens, max_rows));
    ready.into_iter().map(|r| r.owner).collect()
}

/// Rows of the first call when rows of `lens`, longest first, are cut into calls at the least cost.
fn first_cut(lens: &[usize], max_rows: usize) -> usize {
    // Least cost of the rows from an index on, filled from the end; and how many of them share the first call.
    let mut costs = vec![(0, 0); lens.len() + 1];
    for (start, longest) in lens.iter().enumerate().rev() {
        let most = (MAX_CALL_TOKENS / longest).clamp(1, max_rows.max(1)).min(lens.len() - start);
        // A lone token gets a filler.
        let cost = |rows: usize| (rows * longest).max(2) + CALL_COST + costs[start + rows].0;
        costs[start] = (1..=most).map(|rows| (cost(rows), rows)).min().unwrap_or_default();
    }
    costs[0].1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths of each call's rows.
    fn calls(lens: &[usize], max_rows: usize) -> Vec<Vec<usize>> {
        let mut left: Vec<Ready> = lens
            .iter()
            .enumerate()
            .map(|(i, &feed_len)| Ready { owner: Owner::Content(i), feed_len })
            .collect();
        let mut calls = Vec::new();
        while !left.is_empty() {
            let call = next_call(left.clone(), max_rows);
            assert!(!call.is_empty());
            left.retain(|r| !call.contains(&r.owner));
            calls.push(call.iter().map(|o| if let Owner::Content(i) = o { lens[*i] } else { 0 }).collect());
        }
        calls
    }

    #[test]
    fn a_long_draft_does_not_pad_the_others() {
        assert_eq!(calls(&[1, 300, 1, 1], 64), [vec![300], vec![1, 1, 1]]);
    }

    #[test]
    fn rows_of_about_one_length_share_a_call() {
        assert_eq!(calls(&[8, 1, 9, 3], 64), [[9, 8, 3, 1]]);
        assert_eq!(calls(&[110, 90, 100, 1, 2], 64), [vec![110, 100, 90], vec![2, 1]]);
    }

    #[test]
    fn a_call_is_bounded_in_rows_and_in_padded_tokens() {
        assert_eq!(calls(&[1; 100], 64).iter().map(Vec::len).max(), Some(64));
        assert_eq!(calls(&[512; 20], 64).iter().map(Vec::len).max(), Some(MAX_CALL_TOKENS / 512));
        assert_eq!(calls(&[5000], 64), [[5000]]);
    }

    #[test]
    fn children_come_before_the_trunk() {
        assert!(Owner::Content(7) < Owner::Trunk);
    }
}
