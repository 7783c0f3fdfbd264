//! Which streams run in the next call. Every running stream advances once a step; the rows of a step, sorted by length, are
//! cut into calls where that costs least: padding against the fixed cost of a call. Calls of several pages are joined by the same
//! measure.

/// Most tokens of a call, padding included: bounds its activations (nano, 4 heads over 2,300 visual tokens: 40 MB a score
/// tensor; 4,096 took the process to 2.3 GB).
const MAX_CALL_TOKENS: usize = 1024;

/// What a call costs beside its tokens, in tokens: reading the weights and the prefix. On one CPU thread a step of 1 row took
/// 7.4 ms and one of 16 rows 17.1 (native-stack.md 2.5), so about 10; a device with more lanes waits longer for each call.
const CALL_COST: usize = 32;

/// What a call of so many tokens costs; a lone one gets a filler.
fn call_cost(tokens: usize) -> usize {
    tokens.max(2) + CALL_COST
}

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
        let cost = |rows: usize| call_cost(rows * longest) + costs[start + rows].0;
        costs[start] = (1..=most).map(|rows| (cost(rows), rows)).min().unwrap_or_default();
    }
    costs[0].1
}

/// A call that a page wants made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallShape {
    pub(super) rows: usize,
    pub(super) tokens_per_row: usize,
    /// It reads the whole prefix and asks for nothing but tokens.
    pub(super) may_share: bool,
}

/// Most tokens a row of a call that pages share: longer ones fill a call by themselves.
const MAX_SHARED_TOKENS: usize = 8;

/// Which pages' `calls` become one: the smaller ones, as long as it costs less than a call for each. All pages take part in its shape,
/// those that run alone with fillers. Empty where nothing is gained.
pub(super) fn shared_call(calls: &[CallShape]) -> Vec<usize> {
    let size = |place: &usize| calls[*place].rows * calls[*place].tokens_per_row;
    let mut members: Vec<usize> = (0..calls.len())
        .filter(|&place| calls[place].may_share && calls[place].tokens_per_row <= MAX_SHARED_TOKENS)
        .collect();
    while members.len() > 1 {
        let most =
            |of: fn(&CallShape) -> usize| members.iter().map(|&place| of(&calls[place])).max().unwrap_or(0);
        let together = call_cost(calls.len() * most(|call| call.rows) * most(|call| call.tokens_per_row));
        let apart: usize = members.iter().map(|place| call_cost(size(place))).sum();
        if together <= apart.min(MAX_CALL_TOKENS + CALL_COST) {
            return members;
        }
        let largest = members.iter().max_by_key(|place| size(place)).copied();
        members.retain(|&place| Some(place) != largest);
    }
    Vec::new()
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

    fn shapes(calls: &[(usize, usize)]) -> Vec<CallShape> {
        calls
            .iter()
            .map(|&(rows, tokens_per_row)| CallShape { rows, tokens_per_row, may_share: true })
            .collect()
    }

    #[test]
    fn small_calls_of_several_pages_are_one() {
        assert_eq!(shared_call(&shapes(&[(1, 1), (1, 1), (1, 1)])), [0, 1, 2]);
        assert_eq!(
            shared_call(&shapes(&[(16, 1), (1, 1), (2, 4), (1, 1)])),
            [1, 2, 3],
            "16 rows of 4 for each would cost more"
        );
        assert_eq!(shared_call(&shapes(&[(1, 1)])), [0usize; 0]);
    }

    #[test]
    fn long_calls_and_those_that_look_around_are_a_pages_own() {
        assert_eq!(shared_call(&shapes(&[(1, 1), (1, 300), (1, 1)])), [0, 2]);
        assert_eq!(shared_call(&shapes(&[(1, 300), (1, 300)])), [0usize; 0]);
        let mut calls = shapes(&[(1, 1), (1, 1), (1, 1)]);
        calls[1].may_share = false;
        assert_eq!(shared_call(&calls), [0, 2]);
    }

    #[test]
    fn children_come_before_the_trunk() {
        assert!(Owner::Content(7) < Owner::Trunk);
    }
}
