//! One call of the decode graph: rows of one page, or of several, padded to one shape; one page's keys and values are viewed in place.

use std::rc::Rc;

use crate::graphs::{DecodeGraph, Dims, GraphError, StepOutput, TokenId};
use crate::kv::{Fed, KvCache, Member, NewRows, PagePool, RowSource};

use super::looking::Focus;
use super::stream::Feed;
use super::verify::Scores;

/// What a call returned for the rows of one page.
#[derive(Debug)]
pub(super) struct CallOutput {
    output: Rc<StepOutput>,
    /// The page's first row among all rows of the call.
    first_row: usize,
    rows: usize,
    tokens_per_row: usize,
    hidden: usize,
    /// Prefix positions that a layer read, mean over the layers.
    pub(super) prefix_read: f64,
}

impl CallOutput {
    /// Outputs of `row` from its last known token on.
    pub(super) fn scores(&self, row: usize, feed: &Feed) -> Scores<'_> {
        let start = (self.first_row + row) * self.tokens_per_row;
        let range = start + feed.known - 1..start + feed.tokens.len();
        Scores {
            next_id: &self.output.next_id[range.clone()],
            next_logprob: &self.output.next_logprob[range.clone()],
            draft_logprob: &self.output.draft_logprob[range],
        }
    }

    /// Where the last token of each row looked, by focal layer `[rows, prefix]`, and how much, `[L, rows]`; empty if not asked
    /// for. Rows with fewer tokens than the longest have nothing there. Never asked for in a call that pages share.
    pub(super) fn focal(&self) -> (&[Vec<f32>], &[f32]) {
        (&self.output.focal_scores, &self.output.image_attention)
    }

    /// Where the watched rows looked, see [`StepOutput::saliency`].
    pub(super) fn saliency(&self) -> &[Vec<f32>] {
        &self.output.saliency
    }

    /// The last hidden state at token `index` of `row`; `None` from a graph that does not return it.
    pub(super) fn hidden(&self, row: usize, index: usize) -> Option<&[f32]> {
        let start = ((self.first_row + row) * self.tokens_per_row + index) * self.hidden;
        self.output.hidden.get(start..start + self.hidden).filter(|hidden| !hidden.is_empty())
    }

    /// Rows of the page in the call, fillers included.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The first `count` new keys and values of `row`.
    pub(super) fn new_rows(&self, row: usize, count: usize) -> NewRows<'_> {
        NewRows {
            keys: &self.output.new_keys,
            values: &self.output.new_values,
            row: self.first_row + row,
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
        self.clear();
        self.fill(feeds.iter().map(|(_, feed)| *feed), rows, tokens_per_row, parts);
        let view = kv.view_for(&sources, focus.reading);
        let prefix_read = view.prefix_read(0);
        let input = view.input(Fed {
            tokens: &self.tokens,
            positions: &self.positions,
            tokens_per_row,
            wants_focal: focus.scores,
            watched: &focus.watched,
        });
        let output = graph.step(&input)?;
        check_shapes(&output, dims, rows * tokens_per_row)?;
        let output = Rc::new(output);
        Ok(CallOutput { output, first_row: 0, rows, tokens_per_row, hidden: dims.hidden, prefix_read })
    }

    /// Runs the `feeds` of several pages, a list for each place of the `pool`; pages without a feed only keep their place. An output
    /// for each place.
    pub(super) fn run_shared(
        &mut self,
        graph: &mut dyn DecodeGraph,
        pool: &mut PagePool,
        members: &mut [Member<'_, '_>],
        feeds: &[&[Feed]],
    ) -> Result<Vec<CallOutput>, GraphError> {
        let dims = graph.dims();
        let rows = feeds.iter().map(|feeds| feeds.len()).max().unwrap_or(0);
        let tokens_per_row = feeds.iter().copied().flatten().map(|feed| feed.tokens.len()).max().unwrap_or(1);
        self.clear();
        for feeds in feeds {
            self.fill(feeds.iter(), rows, tokens_per_row, dims.position_parts);
        }
        let view = pool.view(members);
        let input = view.input(Fed {
            tokens: &self.tokens,
            positions: &self.positions,
            tokens_per_row,
            wants_focal: false,
            watched: &[],
        });
        let output = graph.step(&input)?;
        check_shapes(&output, dims, view.pages * rows * tokens_per_row)?;
        let output = Rc::new(output);
        let of_page = |place: usize| CallOutput {
            output: Rc::clone(&output),
            first_row: place * rows,
            rows,
            tokens_per_row,
            hidden: dims.hidden,
            prefix_read: view.prefix_read(place),
        };
        Ok((0..view.pages).map(of_page).collect())
    }

    fn clear(&mut self) {
        self.tokens.clear();
        self.positions.clear();
    }

    /// Adds a page: its feeds padded to `tokens_per_row`, and fillers up to `rows`.
    fn fill<'f>(
        &mut self,
        feeds: impl Iterator<Item = &'f Feed>,
        rows: usize,
        tokens_per_row: usize,
        parts: usize,
    ) {
        let end = self.tokens.len() + rows * tokens_per_row;
        for feed in feeds {
            let end = self.tokens.len() + tokens_per_row;
            self.tokens.extend_from_slice(&feed.tokens);
            self.tokens.resize(end, 0);
            self.positions.extend_from_slice(&feed.positions);
            self.positions.resize(end * parts, 0.0);
        }
        self.tokens.resize(end, 0);
        self.positions.resize(end * parts, 0.0);
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
