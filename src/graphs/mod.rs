//! ONNX graphs behind traits, so that the decoding loop runs on scripted graphs in tests.
//!
//! The decode graph's contract (names, shapes; `P` pages, `R` rows, `M` tokens a row, `L` layers):
//!
//! ```text
//! in   tokens         [P, R, M]              int64
//!      positions      [P, R, M, A]           f32    A = 1, or 3 for (order, y, x) and mrope
//!      prefix_len     [L, P]                 int64  valid positions of each layer's prefix
//!      trunk_visible  [P, R]                 int64  trunk positions that the row may see
//!      suffix_len     [P, R]                 int64  valid positions of the row's own suffix
//!      prefix_k.{l}   [P, KVH, Lv_l, D]      f32    prefix_v.{l}  [P, KVH, D, Lv_l]
//!      trunk_k.{l}    [P, KVH, Lt, D]        f32    trunk_v.{l}   [P, KVH, Lt, D]
//!      suffix_k.{l}   [P, R, KVH, Ls, D]     f32    suffix_v.{l}  [P, R, KVH, Ls, D]
//! out  next_id        [P, R, M]              int64  argmax
//!      next_logprob   [P, R, M]              f32    its log-probability
//!      draft_logprob  [P, R, M]              f32    log-probability of tokens[m + 1] at position m; 0 at the last
//!      hidden         [P, R, M, H]           f32    last hidden state, for the mtp graph
//!      new_k.{l}      [P, R, KVH, M, D]      f32    new_v.{l}     [P, R, KVH, M, D]
//!      focal_scores   [F, P, R, Lv]          f32    optional: attention of the last token of each row to the prefix, mean over
//!                                                   heads, of the F layers that the manifest's `extras.focal_layers` lists
//!      image_attention [L, P, R]             f32    with it: the share of the attention that falls on the prefix
//! ```
//!
//! One softmax runs over prefix, visible trunk, suffix and the call's own tokens (causal within the row). Masked rows of the
//! inputs must be finite (zero), or the row becomes NaN. A row shorter than `M` is padded at its end with token 0: nothing
//! before the padding sees it, and its outputs are ignored.

#[cfg(test)]
pub(crate) mod fake;
pub mod manifest;
pub mod onnx;
pub mod pack;
pub mod runtime;

/// A token of the model's vocabulary.
pub type TokenId = i64;

/// Shape of the decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dims {
    pub layers: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    /// Components of a position, `A`: 1 or 3.
    pub position_parts: usize,
    pub hidden: usize,
}

impl Dims {
    /// Bytes of keys and values of one position in all layers, f32.
    pub fn bytes_per_position(&self) -> usize {
        self.layers * self.kv_heads * self.head_dim * 2 * size_of::<f32>()
    }
}

/// A page's prefix as the prefill graph returns it: per layer keys `[KVH, Lv, D]` and values `[KVH, D, Lv]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefix {
    pub len: usize,
    pub keys: Vec<Vec<f32>>,
    pub values: Vec<Vec<f32>>,
    /// What is added to the orders of all tokens after it: the place after a prompt's last token; 0 where the prefix has no
    /// order.
    pub next_order: f32,
}

/// What one decode call reads. Slices are views of the KV manager's memory, nothing is copied on the way to the graph.
#[derive(Debug)]
pub struct StepInput<'a> {
    /// `[rows, tokens_per_row]`, padded with 0.
    pub tokens: &'a [TokenId],
    /// `[rows, tokens_per_row, position_parts]`
    pub positions: &'a [f32],
    pub rows: usize,
    pub tokens_per_row: usize,
    /// `[rows]`
    pub trunk_visible: &'a [i64],
    /// `[rows]`
    pub suffix_len: &'a [i64],
    /// Per layer, `[KVH, prefix_len[l], D]`.
    pub prefix_keys: Vec<&'a [f32]>,
    /// Per layer, `[KVH, D, prefix_len[l]]`.
    pub prefix_values: Vec<&'a [f32]>,
    /// Per layer.
    pub prefix_len: Vec<usize>,
    /// Per layer, `[KVH, trunk_capacity, D]`.
    pub trunk_keys: Vec<&'a [f32]>,
    pub trunk_values: Vec<&'a [f32]>,
    pub trunk_capacity: usize,
    /// Per layer, `[rows, KVH, suffix_capacity, D]`.
    pub suffix_keys: Vec<&'a [f32]>,
    pub suffix_values: Vec<&'a [f32]>,
    pub suffix_capacity: usize,
    /// Return the focal layers' scores; their prefixes are then whole.
    pub wants_focal: bool,
}

/// What one decode call returns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutput {
    /// `[rows, tokens_per_row]` each.
    pub next_id: Vec<TokenId>,
    pub next_logprob: Vec<f32>,
    pub draft_logprob: Vec<f32>,
    /// `[rows, tokens_per_row, hidden]`; empty if the graph does not return it.
    pub hidden: Vec<f32>,
    /// Per layer, `[rows, KVH, tokens_per_row, D]`.
    pub new_keys: Vec<Vec<f32>>,
    pub new_values: Vec<Vec<f32>>,
    /// `[F, rows, prefix]`; empty if not wanted.
    pub focal_scores: Vec<f32>,
    /// `[L, rows]`; empty if not wanted.
    pub image_attention: Vec<f32>,
}

/// A graph call failed; the page it was for fails, the run goes on.
#[derive(Debug, thiserror::Error)]
#[error("{graph}: {message}")]
pub struct GraphError {
    pub graph: String,
    pub message: String,
}

/// One decoder step for rows of one page.
pub trait DecodeGraph {
    fn dims(&self) -> Dims;
    /// Layers whose scores a step can return, in their order there.
    fn focal_layers(&self) -> &[usize] {
        &[]
    }
    fn step(&mut self, input: &StepInput<'_>) -> Result<StepOutput, GraphError>;
}
