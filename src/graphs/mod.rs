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
//!      focal_scores.{l} [P, R, Lv_l]         f32    optional: attention of the last token of each row to the prefix, mean over
//!                                                   heads, of the layers that the manifest's `extras.focal_layers` lists
//!      image_attention [L, P, R]             f32    with them: the share of the attention that falls on the prefix
//!      saliency.{l}   [KVH, W, G, Lv_l]      f32    optional: attention of the last token of the W rows that the input `watched`
//!                                                   lists to the prefix, by query head (G to a kv head)
//!
//! with saliency in  watched [W]              int64  rows; mostly none, and then the output costs nothing
//! ```
//!
//! One softmax runs over prefix, visible trunk, suffix and the call's own tokens (causal within the row). Masked rows of the
//! inputs must be finite (zero), or the row becomes NaN. A row shorter than `M` is padded at its end with token 0: nothing
//! before the padding sees it, and its outputs are ignored. Layers may hold different positions of the page: after token-selective
//! propagation the upper ones hold fewer.

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

/// A page's prefix as the prefill graphs return it: per layer keys `[KVH, n, D]` and values `[KVH, D, n]`, where `n` is
/// [`Prefix::layer_len`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prefix {
    /// Positions of the page: visual tokens, then text.
    pub len: usize,
    /// The layers that hold only some of them; `None`: all layers hold all.
    pub upper: Option<UpperLayers>,
    pub keys: Vec<Vec<f32>>,
    pub values: Vec<Vec<f32>>,
    /// Centres of the visual tokens, (x, y) in px of the model's raster; empty where they are not known.
    pub centres: Vec<(f32, f32)>,
    /// What is added to the orders of all tokens after it: the place after a prompt's last token; 0 where the prefix has no
    /// order.
    pub next_order: f32,
}

/// What token-selective propagation left to the upper layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpperLayers {
    /// The first of them.
    pub first: usize,
    /// Positions of the page that they hold, ascending.
    pub kept: Vec<u32>,
}

impl Prefix {
    /// Positions of the page that `layer` holds, if not all of them.
    pub fn kept(&self, layer: usize) -> Option<&[u32]> {
        self.upper.as_ref().filter(|upper| layer >= upper.first).map(|upper| upper.kept.as_slice())
    }

    /// Positions that `layer` holds.
    pub fn layer_len(&self, layer: usize) -> usize {
        self.kept(layer).map_or(self.len, <[u32]>::len)
    }

    /// Rows of `layer` that hold the page's `positions`; both ascending.
    pub fn rows_of(&self, layer: usize, positions: &[u32]) -> Vec<u32> {
        let Some(kept) = self.kept(layer) else { return positions.to_vec() };
        positions.iter().filter_map(|p| kept.binary_search(p).ok()).map(|row| row as u32).collect()
    }

    /// Numbers of keys and values of all layers, for `heads` kv heads of `width`.
    pub fn bytes(&self, dims: Dims) -> usize {
        let positions: usize = (0..dims.layers).map(|layer| self.layer_len(layer)).sum();
        positions * dims.kv_heads * dims.head_dim * 2 * size_of::<f32>()
    }
}

/// What one decode call reads. Slices are views of the KV manager's memory, nothing is copied on the way to the graph.
#[derive(Debug)]
pub struct StepInput<'a> {
    pub pages: usize,
    /// Of each page.
    pub rows: usize,
    pub tokens_per_row: usize,
    /// `[pages, rows, tokens_per_row]`, padded with 0.
    pub tokens: &'a [TokenId],
    /// `[pages, rows, tokens_per_row, position_parts]`
    pub positions: &'a [f32],
    /// `[pages, rows]`
    pub trunk_visible: &'a [i64],
    /// `[pages, rows]`
    pub suffix_len: &'a [i64],
    /// Valid positions, `[layers, pages]`.
    pub prefix_len: Vec<usize>,
    /// Per layer.
    pub prefix_capacity: Vec<usize>,
    /// Per layer, `[pages, KVH, prefix_capacity[l], D]`.
    pub prefix_keys: Vec<&'a [f32]>,
    /// Per layer, `[pages, KVH, D, prefix_capacity[l]]`.
    pub prefix_values: Vec<&'a [f32]>,
    /// Per layer, `[pages, KVH, trunk_capacity, D]`.
    pub trunk_keys: Vec<&'a [f32]>,
    pub trunk_values: Vec<&'a [f32]>,
    pub trunk_capacity: usize,
    /// Per layer, `[pages, rows, KVH, suffix_capacity, D]`.
    pub suffix_keys: Vec<&'a [f32]>,
    pub suffix_values: Vec<&'a [f32]>,
    pub suffix_capacity: usize,
    /// Return the focal layers' scores; their prefixes are then whole.
    pub wants_focal: bool,
    /// Rows of the first page whose saliency is returned; its prefix is then whole.
    pub watched: &'a [i64],
}

/// What one decode call returns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutput {
    /// `[pages, rows, tokens_per_row]` each.
    pub next_id: Vec<TokenId>,
    pub next_logprob: Vec<f32>,
    pub draft_logprob: Vec<f32>,
    /// `[pages, rows, tokens_per_row, hidden]`; empty if the graph does not return it.
    pub hidden: Vec<f32>,
    /// Per layer, `[pages, rows, KVH, tokens_per_row, D]`.
    pub new_keys: Vec<Vec<f32>>,
    pub new_values: Vec<Vec<f32>>,
    /// By focal layer, `[pages, rows, prefix of the layer]`; empty if not wanted.
    pub focal_scores: Vec<Vec<f32>>,
    /// `[L, pages, rows]`; empty if not wanted.
    pub image_attention: Vec<f32>,
    /// By layer, `[KVH, watched rows, G, prefix of the layer]`; empty if none is watched.
    pub saliency: Vec<Vec<f32>>,
}

/// What a multi-token head drafts for some rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeadDrafts {
    /// Drafts a row.
    pub count: usize,
    /// `[rows, count]`: the tokens after the one that was given.
    pub ids: Vec<TokenId>,
    /// `[rows, count]`: the head's own probability of each.
    pub probabilities: Vec<f32>,
}

/// A graph call failed; the page it was for fails, the run goes on.
#[derive(Debug, thiserror::Error)]
#[error("{graph}: {message}")]
pub struct GraphError {
    pub graph: String,
    pub message: String,
}

/// One decoder step for rows of one page, or of several.
pub trait DecodeGraph {
    fn dims(&self) -> Dims;
    /// Can rows of several pages share a step?
    fn joins_pages(&self) -> bool {
        false
    }
    /// Layers whose scores a step can return, in their order there.
    fn focal_layers(&self) -> &[usize] {
        &[]
    }
    /// Can a step say where single rows look, in every layer?
    fn has_saliency(&self) -> bool {
        false
    }
    /// Most tokens that the multi-token head drafts; 0: there is none.
    fn head_drafts(&self) -> usize {
        0
    }
    /// What the multi-token head drafts after `tokens [rows]`, each of which follows a hidden state of `hidden [rows, H]`.
    fn draft(&mut self, _hidden: &[f32], _tokens: &[TokenId]) -> Result<HeadDrafts, GraphError> {
        Ok(HeadDrafts::default())
    }
    /// The next steps are of another page, or of pages in other places: what is known of the last ones' prefixes is forgotten. The first step of a page
    /// reads its prefix whole.
    fn begin_page(&mut self) {}
    fn step(&mut self, input: &StepInput<'_>) -> Result<StepOutput, GraphError>;
}
