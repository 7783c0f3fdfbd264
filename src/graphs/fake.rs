//! A decode graph whose next token is a function of exactly what a row attends to. Its key and value rows carry the token and
//! the position that they were made from, so it reads from a call's views what each row sees: a wrong position, a row too many
//! or too few, or a stale one changes the output. Records every call.

use super::{DecodeGraph, Dims, GraphError, HeadDrafts, Prefix, StepInput, StepOutput, TokenId};

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
    pub(crate) pages: usize,
    pub(crate) tokens: Vec<TokenId>,
    pub(crate) positions: Vec<f32>,
    pub(crate) rows: usize,
    pub(crate) tokens_per_row: usize,
    pub(crate) trunk_visible: Vec<i64>,
    pub(crate) suffix_len: Vec<i64>,
    pub(crate) suffix_capacity: usize,
    /// Tokens of the prefix that the first head of the first layer read.
    pub(crate) prefix_read: Vec<TokenId>,
    pub(crate) watched: Vec<i64>,
}

pub(crate) const DIMS: Dims = Dims { layers: 2, kv_heads: 2, head_dim: 5, position_parts: 3, hidden: 0 };

/// See the module.
pub(crate) struct FakeGraph<'a> {
    rule: &'a dyn Fn(&[Seen]) -> Next,
    pub(crate) calls: Vec<Recorded>,
    /// The call with this index fails, once.
    pub(crate) fail_at: Option<usize>,
    /// Steps may be of several pages.
    pub(crate) joins_pages: bool,
    /// Layers that return scores: [`focal_score`].
    pub(crate) focal_layers: Vec<usize>,
    /// Watched rows look where [`focal_score`] says, with every head.
    pub(crate) saliency: bool,
    /// There is a multi-token head that drafts so many tokens, by the rule itself; every `wrong_draft`th is wrong.
    pub(crate) head_drafts: usize,
    pub(crate) wrong_draft: usize,
    /// What was attended to up to each position whose hidden state was returned; the state is the index.
    histories: Vec<Vec<Seen>>,
    drafted: usize,
    /// The whole prefix, as the first call read it.
    whole: Vec<Seen>,
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
    let mut prefix = Prefix { len: seen.len(), ..Prefix::default() };
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

/// The first `len` positions of a run, each checked to be a row of this layer and head.
fn seen_in(run: &Run<'_>, len: usize, (layer, head): (usize, usize), is_values: bool) -> Vec<Seen> {
    let seen = (0..len).map(|position| {
        let numbers = run.at(position);
        let seen = Seen { token: numbers[0] as TokenId, position: [numbers[1], numbers[2], numbers[3]] };
        assert_eq!(numbers, row(&seen, layer, head, is_values), "a row of another layer or head");
        seen
    });
    seen.collect()
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
) -> Vec<Seen> {
    let size = capacity * DIMS.head_dim;
    let mut found: Vec<Vec<Seen>> = Vec::new();
    for layer in layers {
        for head in 0..DIMS.kv_heads {
            let start = (block * DIMS.kv_heads + head) * size;
            for (buffer, is_values) in [(keys[layer], false), (values[layer], true)] {
                let data = &buffer[start..start + size];
                assert!(data.iter().all(|v| v.is_finite()), "a masked row is not finite");
                let run = Run { data, capacity, transposed: false };
                found.push(seen_in(&run, len, (layer, head), is_values));
            }
        }
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "layers or heads disagree");
    found.swap_remove(0)
}

/// A page's prefix as each layer and head reads it.
fn prefixes(input: &StepInput<'_>, page: usize) -> Vec<Vec<Vec<Seen>>> {
    let of_head = |layer: usize, head: usize| {
        let (len, capacity) = (input.prefix_len[layer * input.pages + page], input.prefix_capacity[layer]);
        let size = capacity * DIMS.head_dim;
        let read = |data: &[f32], is_values: bool| -> Vec<Seen> {
            let data = &data[(page * DIMS.kv_heads + head) * size..][..size];
            assert!(data.iter().all(|v| v.is_finite()), "a masked position is not finite");
            let run = Run { data, capacity, transposed: is_values };
            seen_in(&run, len, (layer, head), is_values)
        };
        let keys = read(input.prefix_keys[layer], false);
        assert_eq!(keys, read(input.prefix_values[layer], true), "keys and values disagree");
        keys
    };
    (0..DIMS.layers).map(|layer| (0..DIMS.kv_heads).map(|head| of_head(layer, head)).collect()).collect()
}

impl FakeGraph<'_> {
    /// All segments that row `r` of a call (of all its pages' rows) attends to before its own tokens; of the prefix what the head that
    /// reads most reads.
    fn attended(&mut self, input: &StepInput<'_>, r: usize) -> Vec<Seen> {
        let page = r / input.rows;
        let prefixes: Vec<Vec<Seen>> = prefixes(input, page).into_iter().flatten().collect();
        let mut history = prefixes.iter().max_by_key(|prefix| prefix.len()).unwrap().clone();
        if self.calls.is_empty() {
            self.whole = history.clone();
        }
        for part in prefixes.iter().filter(|_| !self.joins_pages) {
            let mut rest = self.whole.iter();
            // Layers may leave positions out, never change them.
            assert!(part.iter().all(|seen| rest.any(|other| other == seen)), "a part of another prefix");
        }
        let all = 0..DIMS.layers;
        let visible = input.trunk_visible[r] as usize;
        assert!(visible <= input.trunk_capacity);
        let capacity = input.trunk_capacity;
        history.extend(read(all.clone(), &input.trunk_keys, &input.trunk_values, visible, capacity, page));
        let len = input.suffix_len[r] as usize;
        assert!(len <= input.suffix_capacity);
        history.extend(read(all, &input.suffix_keys, &input.suffix_values, len, input.suffix_capacity, r));
        history
    }

    /// Scores of the last token of each row for the prefix of a layer, `[rows, prefix]`.
    fn scores(input: &StepInput<'_>, layer: usize, rows: impl Iterator<Item = usize>) -> Vec<f32> {
        let prefix = input.prefix_len[layer];
        let last = |r: usize| input.tokens[(r + 1) * input.tokens_per_row - 1];
        rows.flat_map(|r| (0..prefix).map(move |position| focal_score(last(r), position))).collect()
    }
}

impl<'a> FakeGraph<'a> {
    pub(crate) fn new(rule: &'a dyn Fn(&[Seen]) -> Next) -> FakeGraph<'a> {
        FakeGraph {
            rule,
            calls: Vec::new(),
            fail_at: None,
            joins_pages: false,
            focal_layers: Vec::new(),
            saliency: false,
            head_drafts: 0,
            wrong_draft: usize::MAX,
            histories: Vec::new(),
            drafted: 0,
            whole: Vec::new(),
        }
    }
}

impl DecodeGraph for FakeGraph<'_> {
    fn dims(&self) -> Dims {
        Dims { hidden: usize::from(self.head_drafts > 0), ..DIMS }
    }

    fn joins_pages(&self) -> bool {
        self.joins_pages
    }

    fn has_saliency(&self) -> bool {
        self.saliency
    }

    fn head_drafts(&self) -> usize {
        self.head_drafts
    }

    fn draft(&mut self, hidden: &[f32], tokens: &[TokenId]) -> Result<HeadDrafts, GraphError> {
        let mut drafts = HeadDrafts { count: self.head_drafts, ..HeadDrafts::default() };
        for (&state, &token) in hidden.iter().zip(tokens) {
            let mut history = self.histories[state as usize].clone();
            let mut next = token;
            for _ in 0..self.head_drafts {
                let mut position = history.last().unwrap().position;
                position[0] += 1.0;
                history.push(Seen { token: next, position });
                next = (self.rule)(&history).id;
                self.drafted += 1;
                drafts.ids.push(if self.drafted.is_multiple_of(self.wrong_draft) { next ^ 1 } else { next });
                drafts.probabilities.push(0.9);
            }
        }
        Ok(drafts)
    }

    fn focal_layers(&self) -> &[usize] {
        &self.focal_layers
    }

    fn step(&mut self, input: &StepInput<'_>) -> Result<StepOutput, GraphError> {
        if self.fail_at == Some(self.calls.len()) {
            self.fail_at = None;
            return Err(GraphError { graph: "fake".into(), message: "told to fail".into() });
        }
        assert!(input.pages == 1 || self.joins_pages, "pages that may not be joined");
        let (rows, per_row) = (input.pages * input.rows, input.tokens_per_row);
        assert_eq!(input.tokens.len(), rows * per_row);
        assert_eq!(input.positions.len(), rows * per_row * DIMS.position_parts);
        assert!(rows * per_row >= 2, "a lone token");
        let mut output = StepOutput::default();
        let mut fed: Vec<Seen> = Vec::new();
        for r in 0..rows {
            let mut history = self.attended(input, r);
            for m in 0..per_row {
                let at = r * per_row + m;
                let position: [f32; 3] = std::array::from_fn(|part| input.positions[at * 3 + part]);
                let seen = Seen { token: input.tokens[at], position };
                fed.push(seen);
                history.push(seen);
                if self.head_drafts > 0 {
                    output.hidden.push(self.histories.len() as f32);
                    self.histories.push(history.clone());
                }
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
                output.focal_scores.push(FakeGraph::scores(input, layer, 0..rows));
            }
            output.image_attention = vec![0.5; DIMS.layers * rows];
        }
        if self.saliency && !input.watched.is_empty() {
            assert!(
                input.prefix_len.iter().all(|&len| len == self.whole.len()),
                "watched rows read everything"
            );
            let of_layer = |layer: usize| {
                let watched = input.watched.iter().map(|&row| row as usize);
                FakeGraph::scores(input, layer, watched).repeat(DIMS.kv_heads)
            };
            output.saliency = (0..DIMS.layers).map(of_layer).collect();
        }
        self.calls.push(Recorded {
            pages: input.pages,
            tokens: input.tokens.to_vec(),
            positions: input.positions.to_vec(),
            rows,
            tokens_per_row: per_row,
            trunk_visible: input.trunk_visible.to_vec(),
            suffix_len: input.suffix_len.to_vec(),
            suffix_capacity: input.suffix_capacity,
            prefix_read: prefixes(input, 0)[0][0].iter().map(|seen| seen.token).collect(),
            watched: input.watched.to_vec(),
        });
        Ok(output)
    }
}
