//! The memory itself: keys and values of `slots` runs of positions, per layer. Knows nothing of branches.

use std::ops::Range;

use crate::graphs::Dims;

/// Where new rows come from: one row of a call's `new_k` and `new_v`, its first `count` positions.
#[derive(Clone, Copy, Debug)]
pub struct NewRows<'a> {
    /// Per layer, `[rows, KVH, tokens_per_row, D]`.
    pub keys: &'a [Vec<f32>],
    pub values: &'a [Vec<f32>],
    pub row: usize,
    pub tokens_per_row: usize,
    pub count: usize,
}

/// Per layer keys and values, `[slots, KVH, capacity, D]` each. Every value was written or is zero.
#[derive(Debug)]
pub(super) struct Storage {
    dims: Dims,
    slots: usize,
    capacity: usize,
    keys: Vec<Vec<f32>>,
    values: Vec<Vec<f32>>,
}

/// One slot's place in the new shape: which old slot it was and how many of its positions are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub(super) from: usize,
    pub(super) len: usize,
}

impl Storage {
    pub(super) fn empty(dims: Dims) -> Storage {
        let none = vec![Vec::new(); dims.layers];
        Storage { dims, slots: 0, capacity: 0, keys: none.clone(), values: none }
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots * self.capacity * self.dims.bytes_per_position()
    }

    /// Values of one slot of one layer.
    fn slot_size(&self) -> usize {
        self.dims.kv_heads * self.capacity * self.dims.head_dim
    }

    pub(super) fn clear(&mut self) {
        *self = Storage::empty(self.dims);
    }

    /// Gives the memory a new shape; slot `i` of it holds what `moved[i]` says, the rest is zero. Layer by layer, so that old
    /// and new exist side by side for one layer only.
    pub(super) fn reshape(&mut self, slots: usize, capacity: usize, moved: &[Moved]) {
        let (heads, width) = (self.dims.kv_heads, self.dims.head_dim);
        for buffer in self.keys.iter_mut().chain(&mut self.values) {
            let mut new = vec![0.0; slots * heads * capacity * width];
            for (to, old) in moved.iter().enumerate() {
                for head in 0..heads {
                    let source = (old.from * heads + head) * self.capacity * width;
                    let target = (to * heads + head) * capacity * width;
                    let size = old.len * width;
                    new[target..target + size].copy_from_slice(&buffer[source..source + size]);
                }
            }
            *buffer = new;
        }
        self.slots = slots;
        self.capacity = capacity;
    }

    /// Writes `rows` into `slot` from position `at` on.
    pub(super) fn write(&mut self, slot: usize, at: usize, rows: &NewRows<'_>) {
        let end = at + rows.count;
        assert!(
            slot < self.slots && end <= self.capacity,
            "rows {at}..{end} of slot {slot} lie outside the memory"
        );
        let (heads, width, capacity) = (self.dims.kv_heads, self.dims.head_dim, self.capacity);
        let buffers = self.keys.iter_mut().zip(rows.keys).chain(self.values.iter_mut().zip(rows.values));
        for (buffer, new) in buffers {
            for head in 0..heads {
                let source = (rows.row * heads + head) * rows.tokens_per_row * width;
                let target = ((slot * heads + head) * capacity + at) * width;
                let size = rows.count * width;
                buffer[target..target + size].copy_from_slice(&new[source..source + size]);
            }
        }
    }

    /// Keys and values of the slots `first..first + rows`, per layer, in place.
    pub(super) fn slices(&self, first: usize, rows: usize) -> (Vec<&[f32]>, Vec<&[f32]>) {
        let range = first * self.slot_size()..(first + rows) * self.slot_size();
        let keys = self.keys.iter().map(|buffer| &buffer[range.clone()]).collect();
        let values = self.values.iter().map(|buffer| &buffer[range.clone()]).collect();
        (keys, values)
    }

    /// Makes this `[sources.len(), KVH, capacity, D]` and copies the first `len` positions of each row's source slot into it; a
    /// row without a source keeps whatever is there, which is finite. Memory is reused.
    pub(super) fn gather(&mut self, capacity: usize, sources: &[Option<(&Storage, Moved)>]) {
        let (heads, width) = (self.dims.kv_heads, self.dims.head_dim);
        for buffer in self.keys.iter_mut().chain(&mut self.values) {
            buffer.resize(sources.len() * heads * capacity * width, 0.0);
        }
        self.slots = sources.len();
        self.capacity = capacity;
        for (row, source) in sources.iter().enumerate() {
            let Some((from, Moved { from: slot, len })) = *source else { continue };
            self.copy_rows(row, from, slot, 0..len);
        }
    }

    /// Copies `positions` of slot 0 of `from` to the same positions of `slot`.
    pub(super) fn copy(&mut self, slot: usize, from: &Storage, positions: Range<usize>) {
        if !positions.is_empty() {
            self.copy_rows(slot, from, 0, positions);
        }
    }

    fn copy_rows(&mut self, slot: usize, from: &Storage, from_slot: usize, positions: Range<usize>) {
        let (heads, width) = (self.dims.kv_heads, self.dims.head_dim);
        assert!(
            slot < self.slots && positions.end <= self.capacity.min(from.capacity),
            "{positions:?} lie outside the memory"
        );
        let pairs = self.keys.iter_mut().zip(&from.keys).chain(self.values.iter_mut().zip(&from.values));
        for (target, source) in pairs {
            for head in 0..heads {
                let start = ((from_slot * heads + head) * from.capacity + positions.start) * width;
                let to = ((slot * heads + head) * self.capacity + positions.start) * width;
                let size = positions.len() * width;
                target[to..to + size].copy_from_slice(&source[start..start + size]);
            }
        }
    }
}
