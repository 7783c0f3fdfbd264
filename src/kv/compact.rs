//! Parts of the prefix, gathered: the layers that look at a few positions read only those.

use crate::graphs::{Dims, Prefix};

/// What a stream looks at: for each focal layer, positions of the prefix, ascending.
pub type Fixation = Vec<Vec<u32>>;

/// The prefix positions that some layers read, gathered for each of them.
#[derive(Debug, Default)]
pub(super) struct Compact {
    /// Ascending.
    positions: Vec<u32>,
    /// By layer; empty where another set is read.
    pub(super) keys: Vec<Vec<f32>>,
    pub(super) values: Vec<Vec<f32>>,
}

impl Compact {
    pub(super) fn len(&self) -> usize {
        self.positions.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.keys.iter().chain(&self.values).map(Vec::len).sum::<usize>() * size_of::<f32>()
    }

    /// Makes this the prefix at `positions`, for the layers for which `reads` says so. Nothing is copied if it is so already.
    pub(super) fn gather(
        &mut self,
        prefix: &Prefix,
        by_position: &ValuesByPosition,
        dims: Dims,
        positions: Vec<u32>,
        reads: impl Fn(usize) -> bool,
    ) {
        if self.positions == positions && self.keys.len() == dims.layers {
            return;
        }
        self.positions = positions;
        self.keys.resize_with(dims.layers, Vec::new);
        self.values.resize_with(dims.layers, Vec::new);
        let width = dims.head_dim;
        for layer in (0..dims.layers).filter(|&layer| reads(layer)) {
            let (keys, values) = (&mut self.keys[layer], &mut self.values[layer]);
            keys.clear();
            for head in prefix.keys[layer].chunks_exact((prefix.len * width).max(1)) {
                for &position in &self.positions {
                    let start = position as usize * width;
                    keys.extend_from_slice(&head[start..start + width]);
                }
            }
            let count = self.positions.len();
            values.resize(dims.kv_heads * width * count, 0.0);
            let heads = by_position.0[layer].chunks_exact((prefix.len * width).max(1));
            for (head, out) in heads.zip(values.chunks_exact_mut((width * count).max(1))) {
                for (at, &position) in self.positions.iter().enumerate() {
                    let row = &head[position as usize * width..][..width];
                    for (out, &value) in out[at..].iter_mut().step_by(count).zip(row) {
                        *out = value;
                    }
                }
            }
        }
    }
}

/// The prefix's values a position after the other, `[KVH, Lv, D]` by layer, for the layers that read parts of it. From the
/// graph's `[KVH, D, Lv]` a gather would fetch nearly every cache line, that is take as long as reading everything.
#[derive(Debug, Default)]
pub(super) struct ValuesByPosition(Vec<Vec<f32>>);

impl ValuesByPosition {
    pub(super) fn new(prefix: &Prefix, dims: Dims, reads: impl Fn(usize) -> bool) -> ValuesByPosition {
        let width = dims.head_dim;
        let of = |layer: usize| {
            let mut out = vec![0.0; if reads(layer) { prefix.values[layer].len() } else { 0 }];
            let heads = prefix.values[layer].chunks_exact((prefix.len * width).max(1));
            for (head, out) in heads.zip(out.chunks_exact_mut((prefix.len * width).max(1))) {
                for (part, row) in head.chunks_exact(prefix.len.max(1)).enumerate() {
                    for (out, &value) in out[part..].iter_mut().step_by(width).zip(row) {
                        *out = value;
                    }
                }
            }
            out
        };
        ValuesByPosition((0..dims.layers).map(of).collect())
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(Vec::len).sum::<usize>() * size_of::<f32>()
    }
}

/// All positions that one of `sets` has, ascending.
pub(super) fn union<'a>(sets: impl Iterator<Item = &'a [u32]>, prefix_len: usize) -> Vec<u32> {
    let mut marked = vec![false; prefix_len];
    for &position in sets.flatten() {
        if let Some(mark) = marked.get_mut(position as usize) {
            *mark = true;
        }
    }
    (0u32..).zip(marked).filter(|(_, mark)| *mark).map(|(position, _)| position).collect()
}
