//! A decode graph whose next token is a function of exactly what a row attends to. Its key and value rows carry the token and
//! the position that they were made from, so it reads from a call's views what each row sees: a wrong position, a row too many
//! or too few, or a stale one changes the output. Records every call.

use super::{DecodeGraph, Dims, GraphError, Prefix, StepInput, StepOutput, TokenId};

/// One attended position: its token and the position it was fed at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) token: TokenId,
    pub(crate) position: [f32; 3],
}

/// What follows an attended history.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Next {
    pub(crate) id: TokenId,
    pub(crate) probability: f32,
    /// Probability of every other token that is asked about.
    pub(crate) other: f32,
}

/// The small inputs of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recorded {
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) positions: Vec<f32>,
    pub(crate) rows: usize,
    pub(crate) tokens_per_row: usize,
    pub(crate) trunk_visible: Vec<i64>,
    pub(crate) suffix_len: Vec<i64>,
    pub(crate) suffix_capacity: usize,
    /// Tokens of the prefix that the first layer read.
    pub(crate) prefix_read: Vec<TokenId>,
}

pub(crate) const DIMS: Dims = Dims { layers: 2, kv_heads: 2, head_dim: 5, position_parts: 3, hidden: 0 };

/// See the module.
pub(crate) struct FakeGraph<'a> {
    rule: &'a dyn Fn(&[Seen]) -> Next,
    pub(crate) calls: Vec<Recorded>,
    /// The call with this index fails.
    pub(crate) fail_at: Option<usize>,
    /// Layers that return scores: [`focal_score`].
    pub(crate) focal_layers: Vec<usize>,
}

/// How much a row whose last token is `token` looks at prefix position `position`.
pub(crate) fn focal_score(token: TokenId, position: usize) -> f32 {
    ((token as usize * 31 + position * 17) % 97) as f32
}

/// Numbers that say where a row belongs and what it was made from.
fn row(seen: &Seen, layer: usize, head: usize, values: bool) -> [f32; 5] {
    let tag = 1.0 + (layer * 4 + head * 2 + usize::from(values)) as f32;
    [seen.token as f32, seen.position[0], seen.position[1], seen.position[2], tag]
}

/// The prefix of visual tokens `tokens`, all at order 0, in a line.
pub(crate) fn prefix(tokens: &[TokenId]) -> (Prefix, Vec<Seen>) {
    let seen: Vec<Seen> =
        tokens.iter().enumerate().map(|(i, &token)| Seen { token, position: [0.0, 0.0, i as f32] }).collect();
    let width = DIMS.head_dim;
    let mut prefix = Prefix { len: seen.len(), keys: Vec::new(), values: Vec::new(), next_order: 0.0 };
    for layer in 0..DIMS.layers {
        let mut keys = Vec::new();
        let mut values = Vec::new();
        for head in 0..DIMS.kv_heads {
            keys.extend(seen.iter().flat_map(|s| row(s, layer, head, false)));
            values.extend((0..width).flat_map(|d| seen.iter().map(move |s| row(s, layer, head, true)[d])));
        }
        prefix.keys.push(keys);
        prefix.values.push(values);
    }
    (prefix, seen)
}

/// A run of positions of one head: `[positions, D]`, or `[D, positions]`.
struct Run<'a> {
    data: &'a [f32],
    capacity: usize,
    transposed: bool,
}

impl Run<'_> {
    fn at(&self, position: usize) -> [f32; 5] {
        let width = DIMS.head_dim;
        std::array::from_fn(|d| {
            self.data[if self.transposed { d * self.capacity + position } else { position * width + d }]
        })
    }
}

/// Reads `len` positions of a segment and checks that all `layers` and heads, keys and values, agree. `block`: which block of
/// `[KVH, capacity, D]` of each buffer.
fn read(
    layers: std::ops::Range<usize>,
    keys: &[&[f32]],
    values: &[&[f32]],
    len: usize,
    capacity: usize,
    block: usize,
    values_transposed: bool,
) -> Vec<Seen> {
    let size = capacity * DIMS.head_dim;
    let mut found: Vec<Vec<Seen>> = Vec::new();
    for layer in layers {
        for head in 0..DIMS.kv_heads {
            let start = (block * DIMS.kv_heads + head) * size;
            for (buffer, is_values) in [(keys[layer], false), (values[layer], true)] {
                let data = &buffer[start..start + size];
                assert!(data.iter().all(|v| v.is_finite()), "a masked row is not finite");
                let run = Run { data, capacity, transposed: is_values && values_transposed };
                let seen = (0..len).map(|position| {
                    let numbers = run.at(position);
                    let seen =
                        Seen { token: numbers[0] as TokenId, position: [numbers[1], numbers[2], numbers[3]] };
                    assert_eq!(numbers, row(&seen, layer, head, is_values), "a row of another layer or head");
                    seen
                });
                found.push(seen.collect());
            }
        }
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "layers or heads disagree");
    found.swap_remove(0)
}

/// The prefix as each layer reads it. Layers may leave positions out, never change them.
fn prefixes(input: &StepInput<'_>) -> Vec<Vec<Seen>> {
    let of = |layer: usize| {
        let len = input.prefix_len[layer];
        read(layer..layer + 1, &input.prefix_keys, &input.prefix_values, len, len, 0, true)
    };
    let prefixes: Vec<Vec<Seen>> = (0..DIMS.layers).map(of).collect();
    let whole = prefixes.iter().max_by_key(|prefix| prefix.len()).unwrap();
    for part in &prefixes {
        let mut rest = whole.iter();
        assert!(part.iter().all(|seen| rest.any(|other| other == seen)), "a part of another prefix");
    }
    prefixes
}

/// All segments that row `r` of a call attends to before its own tokens; of the prefix what the layer that reads most reads.
pub(crate) fn attended(input: &StepInput<'_>, r: usize) -> Vec<Seen> {
    let all = 0..DIMS.layers;
    let mut history = prefixes(input).into_iter().max_by_key(Vec::len).unwrap();
    let visible = input.trunk_visible[r] as usize;
    assert!(visible <= input.trunk_capacity);
    let capacity = input.trunk_capacity;
    history.extend(read(all.clone(), &input.trunk_keys, &input.trunk_values, visible, capacity, 0, false));
    let len = input.suffix_len[r] as usize;
    assert!(len <= input.suffix_capacity);
    history.extend(read(all, &input.suffix_keys, &input.suffix_values, len, input.suffix_capacity, r, false));
    history
}

impl<'a> FakeGraph<'a> {
    pub(crate) fn new(rule: &'a dyn Fn(&[Seen]) -> Next) -> FakeGraph<'a> {
        FakeGraph { rule, calls: Vec::new(), fail_at: None, focal_layers: Vec::new() }
    }
}

impl DecodeGraph for FakeGraph<'_> {
    fn dims(&self) -> Dims {
        DIMS
    }

    fn focal_layers(&self) -> &[usize] {
        &self.focal_layers
    }

    fn step(&mut self, input: &StepInput<'_>) -> Result<StepOutput, GraphError> {
        if self.fail_at == Some(self.calls.len()) {
            return Err(GraphError { graph: "fake".into(), message: "told to fail".into() });
        }
        let (rows, per_row) = (input.rows, input.tokens_per_row);
        assert_eq!(input.tokens.len(), rows * per_row);
        assert_eq!(input.positions.len(), rows * per_row * DIMS.position_parts);
        assert!(rows * per_row >= 2, "a lone token");
        let mut output = StepOutput::default();
        let mut fed: Vec<Seen> = Vec::new();
        for r in 0..rows {
            let mut history = attended(input, r);
            for m in 0..per_row {
                let at = r * per_row + m;
                let position: [f32; 3] = std::array::from_fn(|part| input.positions[at * 3 + part]);
                let seen = Seen { token: input.tokens[at], position };
                fed.push(seen);
                history.push(seen);
                let next = (self.rule)(&history);
                let draft = (m + 1 < per_row).then(|| input.tokens[at + 1]);
                let of = |id| if id == next.id { next.probability } else { next.other };
                output.next_id.push(next.id);
                output.next_logprob.push(next.probability.ln());
                output.draft_logprob.push(draft.map_or(0.0, |id| of(id).ln()));
            }
        }
        for values in [false, true] {
            for layer in 0..DIMS.layers {
                let mut new = Vec::new();
                for r in 0..rows {
                    for head in 0..DIMS.kv_heads {
                        let own = &fed[r * per_row..(r + 1) * per_row];
                        new.extend(own.iter().flat_map(|seen| row(seen, layer, head, values)));
                    }
                }
                if values { output.new_values.push(new) } else { output.new_keys.push(new) }
            }
        }
        if input.wants_focal && !self.focal_layers.is_empty() {
            for &layer in &self.focal_layers {
                let prefix = input.prefix_len[layer];
                assert_eq!(Some(&prefix), input.prefix_len.iter().max(), "focal layers read everything");
                for r in 0..rows {
                    let last = input.tokens[(r + 1) * per_row - 1];
                    output.focal_scores.extend((0..prefix).map(|position| focal_score(last, position)));
                }
            }
            output.image_attention = vec![0.5; DIMS.layers * rows];
        }
        self.calls.push(Recorded {
            tokens: input.tokens.to_vec(),
            positions: input.positions.to_vec(),
            rows,
            tokens_per_row: per_row,
            trunk_visible: input.trunk_visible.to_vec(),
            suffix_len: input.suffix_len.to_vec(),
            suffix_capacity: input.suffix_capacity,
            prefix_read: prefixes(input)[0].iter().map(|seen| seen.token).collect(),
        });
        Ok(output)
    }
}
