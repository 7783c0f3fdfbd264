//! One call of the decode graph: rows of one page padded to one shape, their keys and values viewed in place.

use crate::graphs::{DecodeGraph, Dims, GraphError, StepInput, StepOutput, TokenId};
use crate::kv::{KvCache, NewRows, RowSource};

use super::stream::Feed;
use super::verify::Scores;

/// What a call returned, for the rows that went in.
#[derive(Debug)]
pub(super) struct CallOutput {
    output: StepOutput,
    rows: usize,
    tokens_per_row: usize,
    /// Prefix positions that a layer read, mean over the layers.
    pub(super) prefix_read: f64,
}

/// What a call is to do beside its tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Focus {
    /// Layers read only what the rows look at, if that is at most this share of the prefix.
    pub(super) max_share: Option<f32>,
    /// Ask for the focal layers' scores.
    pub(super) scores: bool,
}

impl CallOutput {
    /// Outputs of `row` from its last known token on.
    pub(super) fn scores(&self, row: usize, feed: &Feed) -> Scores<'_> {
        let start = row * self.tokens_per_row;
        let range = start + feed.known - 1..start + feed.tokens.len();
        Scores {
            next_id: &self.output.next_id[range.clone()],
            next_logprob: &self.output.next_logprob[range.clone()],
            draft_logprob: &self.output.draft_logprob[range],
        }
    }

    /// Where the last token of each row looked, `[F, rows, prefix]`, and how much, `[L, rows]`; empty if not asked for. Rows
    /// with fewer tokens than the longest have nothing there.
    pub(super) fn focal(&self) -> (&[f32], &[f32]) {
        (&self.output.focal_scores, &self.output.image_attention)
    }

    /// Rows of the call, a filler included.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The first `count` new keys and values of `row`.
    pub(super) fn new_rows(&self, row: usize, count: usize) -> NewRows<'_> {
        NewRows {
            keys: &self.output.new_keys,
            values: &self.output.new_values,
            row,
            tokens_per_row: self.tokens_per_row,
            count,
        }
    }
}

/// Buffers of a call's small inputs, kept between calls.
#[derive(Debug, Default)]
pub(super) struct CallBuffers {
    tokens: Vec<TokenId>,
    positions: Vec<f32>,
}

impl CallBuffers {
    /// Runs `feeds`, one row each, and a filler where there is a single token: it would take another path through the matrix
    /// products than the same token in company, and its logits would differ by up to 7e-6 (native-stack.md 2.5, numerics).
    pub(super) fn run(
        &mut self,
        graph: &mut dyn DecodeGraph,
        kv: &mut KvCache,
        feeds: &[(RowSource<'_>, &Feed)],
        focus: Focus,
    ) -> Result<CallOutput, GraphError> {
        let dims = graph.dims();
        let parts = dims.position_parts;
        let tokens_per_row = feeds.iter().map(|(_, feed)| feed.tokens.len()).max().unwrap_or(1);
        let mut sources: Vec<RowSource<'_>> = feeds.iter().map(|(source, _)| *source).collect();
        if sources.len() * tokens_per_row == 1 {
            sources.push(RowSource::Filler);
        }
        let rows = sources.len();
        self.tokens.clear();
        self.positions.clear();
        for (row, (_, feed)) in feeds.iter().enumerate() {
            self.tokens.extend_from_slice(&feed.tokens);
            self.tokens.resize((row + 1) * tokens_per_row, 0);
            self.positions.extend_from_slice(&feed.positions);
            self.positions.resize((row + 1) * tokens_per_row * parts, 0.0);
        }
        self.tokens.resize(rows * tokens_per_row, 0);
        self.positions.resize(rows * tokens_per_row * parts, 0.0);
        let view = match focus.max_share {
            Some(max_share) => kv.focused_view(&sources, max_share),
            None => kv.view(&sources),
        };
        let prefix_read = view.prefix_len.iter().sum::<usize>() as f64 / dims.layers.max(1) as f64;
        let input = StepInput {
            tokens: &self.tokens,
            positions: &self.positions,
            rows,
            tokens_per_row,
            trunk_visible: &view.trunk_visible,
            suffix_len: &view.suffix_len,
            prefix_keys: view.prefix_keys,
            prefix_values: view.prefix_values,
            prefix_len: view.prefix_len,
            trunk_keys: view.trunk_keys,
            trunk_values: view.trunk_values,
            trunk_capacity: view.trunk_capacity,
            suffix_keys: view.suffix_keys,
            suffix_values: view.suffix_values,
            suffix_capacity: view.suffix_capacity,
            wants_focal: focus.scores,
        };
        let output = graph.step(&input)?;
        check_shapes(&output, dims, rows * tokens_per_row)?;
        Ok(CallOutput { output, rows, tokens_per_row, prefix_read })
    }
}

/// A graph that returns too little must cost its page only.
fn check_shapes(output: &StepOutput, dims: Dims, tokens: usize) -> Result<(), GraphError> {
    let each = [output.next_id.len(), output.next_logprob.len(), output.draft_logprob.len()];
    let new = output.new_keys.iter().chain(&output.new_values);
    let whole = each == [tokens; 3]
        && output.new_keys.len() == dims.layers
        && output.new_values.len() == dims.layers
        && new.map(Vec::len).all(|len| len == tokens * dims.kv_heads * dims.head_dim);
    if whole {
        return Ok(());
    }
    Err(GraphError { graph: "decode".into(), message: format!("outputs do not match {tokens} tokens") })
}
