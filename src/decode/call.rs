//! One call of the decode graph: rows of one page padded to one shape, their keys and values viewed in place.

use crate::graphs::{DecodeGraph, Dims, GraphError, StepOutput, TokenId};
use crate::kv::{Fed, KvCache, NewRows, RowSource};

use super::looking::Focus;
use super::stream::Feed;
use super::verify::Scores;

/// What a call returned, for the rows that went in.
#[derive(Debug)]
pub(super) struct CallOutput {
    output: StepOutput,
    rows: usize,
    tokens_per_row: usize,
    hidden: usize,
    /// Prefix positions that a layer read, mean over the layers.
    pub(super) prefix_read: f64,
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

    /// Where the last token of each row looked, by focal layer `[rows, prefix]`, and how much, `[L, rows]`; empty if not asked
    /// for. Rows with fewer tokens than the longest have nothing there.
    pub(super) fn focal(&self) -> (&[Vec<f32>], &[f32]) {
        (&self.output.focal_scores, &self.output.image_attention)
    }

    /// Where the watched rows looked, see [`StepOutput::saliency`].
    pub(super) fn saliency(&self) -> &[Vec<f32>] {
        &self.output.saliency
    }

    /// The last hidden state at token `index` of `row`; `None` from a graph that does not return it.
    pub(super) fn hidden(&self, row: usize, index: usize) -> Option<&[f32]> {
        let start = (row * self.tokens_per_row + index) * self.hidden;
        self.output.hidden.get(start..start + self.hidden).filter(|hidden| !hidden.is_empty())
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
        focus: &Focus,
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
        let view = kv.view_for(&sources, focus.reading);
        let prefix_read = view.prefix_read();
        let input = view.input(Fed {
            tokens: &self.tokens,
            positions: &self.positions,
            tokens_per_row,
            wants_focal: focus.scores,
            watched: &focus.watched,
        });
        let output = graph.step(&input)?;
        check_shapes(&output, dims, rows * tokens_per_row)?;
        Ok(CallOutput { output, rows, tokens_per_row, hidden: dims.hidden, prefix_read })
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
