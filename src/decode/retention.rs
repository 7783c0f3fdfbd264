//! What prefill carries on, and what a branch keeps of the page: selection by saliency. Pure.
//!
//! After FastKV (arXiv 2502.01068; its code, `baselines/fastkv`): attention of the last 8 queries to every position, summed over
//! them, max-pooled over 7 neighbours for each query head, summed over the query heads of a kv head. *Token-selective
//! propagation* sums over all heads and lets the top share of the tokens through to the layers above; *retention* keeps the top
//! share of each layer and kv head. Text is always kept, positions stay what they are.
//!
//! The paper gives the saliency of the prompt's end to every later token, and drops the rest for good. A page cannot bear that: each
//! branch reads another part of it. So a branch chooses by its own first queries, never without what lies in its box, and the
//! trunk's prefix stays whole. Where there is no text in the prefix, propagation counts the attention of all its positions.

use crate::geometry::Rect;
use crate::graphs::{Dims, Prefix};
use crate::kv::Retention;

/// How branches retain.
#[derive(Clone, Debug, PartialEq)]
pub struct RetentionSettings {
    /// Share of the visual tokens that a branch keeps beside those of its box, 0..1; 1 is off.
    pub rate: f32,
    /// Queries that choose: a branch's first steps of one token.
    pub window: usize,
    /// Rows of a call read the union of what they keep; if that is more than this share of the prefix, they read all of it.
    pub max_share: f32,
    /// Last positions of the prefix that are text.
    pub text_tail: usize,
}

/// Neighbours that share their largest score (the paper's kernel).
pub const POOL: usize = 7;

impl RetentionSettings {
    pub fn new(rate: f32) -> RetentionSettings {
        // A set is gathered once for many steps, not in every step as for fixation, so it pays as long as it is smaller at all.
        RetentionSettings { rate, window: 8, max_share: 0.75, text_tail: 0 }
    }
}

/// The largest of `POOL` neighbours, at each place of each row of `len` scores.
pub fn pooled(scores: &[f32], len: usize) -> Vec<f32> {
    let reach = POOL / 2;
    let of_row = |row: &[f32]| -> Vec<f32> {
        let largest = |at: usize| {
            let near = &row[at.saturating_sub(reach)..(at + reach + 1).min(row.len())];
            near.iter().copied().fold(f32::NEG_INFINITY, f32::max)
        };
        (0..row.len()).map(largest).collect()
    };
    scores.chunks_exact(len.max(1)).flat_map(of_row).collect()
}

/// The sum of rows of `len` numbers.
fn summed(rows: &[f32], len: usize) -> Vec<f32> {
    let mut sum = vec![0.0; len];
    for row in rows.chunks_exact(len.max(1)) {
        sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    sum
}

/// The `count` places with the highest scores, ascending; of equal scores the first.
fn top(scores: &[f32], count: usize, mut order: Vec<u32>) -> Vec<u32> {
    let by_score =
        |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then_with(|| a.cmp(b));
    if count < order.len() {
        order.select_nth_unstable_by(count, by_score);
        order.truncate(count);
    }
    order.sort_unstable();
    order
}

/// How many of `visual` tokens the share `rate` is; one at least.
fn count_of(rate: f32, visual: usize) -> usize {
    ((rate * visual as f32).ceil() as usize).clamp(visual.min(1), visual)
}

/// Positions that go on past the layer whose saliency is `[heads, len]`: the share `rate` of the visual ones, and the text.
/// Ascending; `None` if all do.
pub fn propagated(saliency: &[f32], len: usize, rate: f32, text_tail: usize) -> Option<Vec<u32>> {
    let visual = len.saturating_sub(text_tail);
    let count = count_of(rate, visual);
    if count == visual || saliency.len() < len {
        return None;
    }
    let scores = summed(&pooled(saliency, len), len);
    let mut kept = top(&scores, count, (0..visual as u32).collect());
    kept.extend(visual as u32..len as u32);
    Some(kept)
}

/// Rows of one layer that a branch keeps, by kv head: those in `own`, the `count` best of the others, and the last `text_tail`.
/// `saliency`: `[KVH, G, len]`. Ascending.
pub fn retained(
    saliency: &[f32],
    len: usize,
    kv_heads: usize,
    count: usize,
    own: &[u32],
    text_tail: usize,
) -> Vec<Vec<u32>> {
    let visual = len.saturating_sub(text_tail);
    let others: Vec<u32> = (0..visual as u32).filter(|row| own.binary_search(row).is_err()).collect();
    let of_head = |saliency: &[f32]| {
        let scores = summed(&pooled(saliency, len), len);
        let mut kept = top(&scores, count, others.clone());
        kept.extend(own.iter().filter(|&&row| (row as usize) < visual));
        kept.extend(visual as u32..len as u32);
        kept.sort_unstable();
        kept
    };
    saliency.chunks_exact((saliency.len() / kv_heads.max(1)).max(1)).map(of_head).collect()
}

/// Visual tokens whose centre lies in `bbox`, ascending.
pub fn inside(prefix: &Prefix, bbox: Option<Rect>) -> Vec<u32> {
    let Some(b) = bbox else { return Vec::new() };
    let within = |&(x, y): &(f32, f32)| x >= b.x0 && x <= b.x1 && y >= b.y0 && y <= b.y1;
    (0u32..).zip(&prefix.centres).filter(|(_, centre)| within(centre)).map(|(at, _)| at).collect()
}

/// A branch that is watched until it knows what it keeps.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// By layer, `[KVH, G, len]`, over the steps watched.
    saliency: Vec<Vec<f32>>,
    steps: usize,
}

impl Watch {
    /// Takes the saliency of a call, by layer `[KVH, watched, G, len]`; the branch is number `at` of the `watched` rows.
    pub(super) fn take(&mut self, saliency: &[Vec<f32>], at: usize, watched: usize, kv_heads: usize) {
        self.saliency.resize_with(saliency.len(), Vec::new);
        for (sums, of_layer) in self.saliency.iter_mut().zip(saliency) {
            let size = of_layer.len() / (kv_heads * watched).max(1);
            sums.resize(kv_heads * size, 0.0);
            for (head, sums) in sums.chunks_exact_mut(size.max(1)).enumerate() {
                let start = (head * watched + at) * size;
                sums.iter_mut().zip(&of_layer[start..start + size]).for_each(|(sum, value)| *sum += value);
            }
        }
        self.steps += 1;
    }

    /// What the branch keeps, once enough of its queries were seen.
    pub(super) fn decide(
        &self,
        settings: &RetentionSettings,
        prefix: &Prefix,
        bbox: Option<Rect>,
        dims: Dims,
    ) -> Option<Retention> {
        if self.steps < settings.window {
            return None;
        }
        let count = count_of(settings.rate, prefix.len.saturating_sub(settings.text_tail));
        let own = inside(prefix, bbox);
        let of_layer = |(layer, saliency): (usize, &Vec<f32>)| {
            let len = prefix.layer_len(layer);
            retained(saliency, len, dims.kv_heads, count, &prefix.rows_of(layer, &own), settings.text_tail)
        };
        Some(self.saliency.iter().enumerate().map(of_layer).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn neighbours_share_their_largest_score() {
        let scores = [0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 1.0];
        assert_eq!(pooled(&scores, 9), [0.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 1.0]);
        assert_eq!(pooled(&[1.0, 2.0, 4.0, 3.0], 2), [2.0, 2.0, 4.0, 4.0], "rows do not mix");
    }

    #[test]
    fn everything_goes_on_at_rate_1_and_text_always_does() {
        let saliency = [9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        assert_eq!(propagated(&saliency, 10, 1.0, 2), None);
        assert_eq!(propagated(&saliency, 10, 0.5, 2), Some(vec![0, 1, 2, 3, 8, 9]));
        assert_eq!(propagated(&[], 10, 0.5, 2), None, "a graph that does not say");
    }

    #[test]
    fn a_branch_never_loses_its_box() {
        let saliency = [9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0];
        assert_eq!(retained(&saliency, 8, 2, 2, &[5], 1), [[0, 1, 5, 7], [4, 5, 6, 7]]);
        let prefix = Prefix { centres: vec![(5.0, 5.0), (15.0, 5.0), (25.0, 5.0)], ..Prefix::default() };
        assert_eq!(inside(&prefix, Some(Rect::new(10.0, 0.0, 30.0, 9.0))), [1, 2]);
        assert!(inside(&prefix, None).is_empty());
    }

    #[test]
    fn a_watched_branch_sums_its_own_row_over_its_window() {
        let dims = Dims { layers: 1, kv_heads: 2, head_dim: 1, position_parts: 1, hidden: 0 };
        let settings = RetentionSettings { window: 2, ..RetentionSettings::new(0.1) };
        let prefix = Prefix { len: 20, ..Prefix::default() };
        let mut watch = Watch::default();
        // [KVH 2, watched 2, G 1, 20]: the second row looks at 3 with the first head, at 15 with the second.
        let mut saliency = vec![0.0; 80];
        saliency[23] = 1.0;
        saliency[75] = 1.0;
        watch.take(&[saliency.clone()], 1, 2, 2);
        assert_eq!(watch.decide(&settings, &prefix, None, dims), None);
        watch.take(&[saliency], 1, 2, 2);
        assert_eq!(watch.decide(&settings, &prefix, None, dims).unwrap(), [[[0, 1], [12, 13]]]);
    }

    #[derive(Deserialize)]
    struct Case {
        saliency: Vec<f32>,
        len: usize,
        kv_heads: usize,
        text_tail: usize,
        own: Vec<u32>,
        /// Rate and what is kept.
        propagated: Vec<(f32, Vec<u32>)>,
        /// Count and what each kv head keeps.
        retained: Vec<(usize, Vec<Vec<u32>>)>,
    }

    /// `scripts/reference/retention.py` states the rules in PyTorch, from the paper's formulas.
    #[test]
    fn the_pytorch_reference_selects_the_same() {
        let text = include_str!("../../fixtures/reference/retention.json");
        let cases: Vec<Case> = serde_json::from_str(text).unwrap();
        assert!(cases.len() > 10);
        for case in cases {
            for (rate, expected) in case.propagated {
                let kept = propagated(&case.saliency, case.len, rate, case.text_tail);
                assert_eq!(kept.unwrap_or_else(|| (0..case.len as u32).collect()), expected);
            }
            for (count, expected) in case.retained {
                let (saliency, len) = (&case.saliency, case.len);
                let kept = retained(saliency, len, case.kv_heads, count, &case.own, case.text_tail);
                assert_eq!(kept, expected);
            }
        }
    }
}
