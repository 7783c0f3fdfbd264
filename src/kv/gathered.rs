//! Parts of the prefix, gathered: a layer that reads a few positions reads only those. The prefix itself never changes.

use crate::graphs::{Dims, Prefix};

/// What a stream looks at: for each focal layer, positions of the page, ascending.
pub type Fixation = Vec<Vec<u32>>;

/// What a branch keeps of the prefix as its own: for each layer and kv head, rows of that layer, ascending. As many for each
/// head of a layer.
pub type Retention = Vec<Vec<Vec<u32>>>;

/// A page's prefix, and what was gathered of it last.
#[derive(Debug)]
pub(super) struct PagePrefix {
    pub(super) prefix: Prefix,
    dims: Dims,
    /// By layer, the focal layer that it follows; empty: all layers read everything.
    governing: Vec<Option<usize>>,
    by_position: ValuesByPosition,
    gathered: Vec<Gathered>,
    /// The layers that now show what was gathered.
    shows: Vec<bool>,
}

/// The rows of one layer's prefix that are read.
#[derive(Debug, Default)]
struct Gathered {
    /// By kv head, ascending; a single list holds for all of them.
    rows: Vec<Vec<u32>>,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Gathered {
    fn len(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }
}

impl PagePrefix {
    pub(super) fn new(prefix: Prefix, dims: Dims) -> PagePrefix {
        let mut gathered = Vec::new();
        gathered.resize_with(dims.layers, Gathered::default);
        PagePrefix {
            prefix,
            dims,
            governing: Vec::new(),
            by_position: ValuesByPosition::default(),
            gathered,
            shows: vec![false; dims.layers],
        }
    }

    /// Bytes beside the prefix.
    pub(super) fn extra_bytes(&self) -> usize {
        let gathered: usize = self.gathered.iter().map(|g| g.keys.len() + g.values.len()).sum();
        gathered * size_of::<f32>() + self.by_position.bytes()
    }

    /// Bytes of the values that are kept a second time.
    pub(super) fn copy_bytes(&self) -> usize {
        self.by_position.bytes()
    }

    pub(super) fn set_governing(&mut self, governing: Vec<Option<usize>>) {
        assert_eq!(governing.len(), self.dims.layers, "a rule for each layer");
        self.by_position = ValuesByPosition::new(&self.prefix, self.dims, |layer| governing[layer].is_some());
        self.governing = governing;
    }

    pub(super) fn show_everything(&mut self) {
        self.shows.fill(false);
    }

    /// Shows each layer the union of what `sets` look at. `false` and everything where that is no gain: a union is empty, or more
    /// than `max_share` of the page.
    pub(super) fn show_fixations(&mut self, sets: &[&Fixation], max_share: f32) -> bool {
        self.show_everything();
        let focal = self.governing.iter().flatten().max().map_or(0, |most| most + 1);
        let of = |focal: usize| sets.iter().map(move |sets| sets.get(focal).map_or(&[][..], Vec::as_slice));
        let unions: Vec<Vec<u32>> = (0..focal).map(|focal| union(of(focal), self.prefix.len)).collect();
        let most = max_share * self.prefix.len as f32;
        if sets.is_empty() || focal == 0 || unions.iter().any(|u| u.is_empty() || u.len() as f32 > most) {
            return false;
        }
        let rows: Vec<Option<Vec<u32>>> = (0..self.dims.layers)
            .map(|layer| Some(self.prefix.rows_of(layer, &unions[self.governing[layer]?])))
            .collect();
        if rows.iter().flatten().any(Vec::is_empty) {
            return false;
        }
        for (layer, rows) in rows.into_iter().enumerate() {
            self.shows[layer] = rows.is_some();
            if let Some(rows) = rows {
                self.gather(layer, vec![rows]);
            }
        }
        true
    }

    /// Shows each layer and kv head the union of what `sets` keep. `false` and everything where that is no gain: without sets, or
    /// if the union is more than `max_share` of the prefix.
    pub(super) fn show_retained(&mut self, sets: &[&Retention], max_share: f32) -> bool {
        self.show_everything();
        let layers: Vec<Vec<Vec<u32>>> =
            (0..self.dims.layers).map(|layer| self.union_of(layer, sets)).collect();
        let read: usize = layers.iter().map(|heads| heads.first().map_or(0, Vec::len)).sum();
        let whole: usize = (0..self.dims.layers).map(|layer| self.prefix.layer_len(layer)).sum();
        if read == 0 || read as f32 > max_share * whole as f32 {
            return false;
        }
        for (layer, heads) in layers.into_iter().enumerate() {
            self.gather(layer, heads);
        }
        self.shows.fill(true);
        true
    }

    /// What any of `sets` keeps of a layer, by kv head. A tensor has as many rows for each head: heads that want fewer than others
    /// also read what the others want, then the first rows that are left.
    fn union_of(&self, layer: usize, sets: &[&Retention]) -> Vec<Vec<u32>> {
        let len = self.prefix.layer_len(layer);
        let heads: Vec<Vec<u32>> = (0..self.dims.kv_heads)
            .map(|head| {
                let of = |set: &&'_ Retention| set.get(layer).and_then(|heads| heads.get(head)).cloned();
                let lists: Vec<Vec<u32>> = sets.iter().filter_map(of).collect();
                union(lists.iter().map(Vec::as_slice), len)
            })
            .collect();
        let most = heads.iter().map(Vec::len).max().unwrap_or(0);
        if heads.iter().all(|rows| rows.len() == most) {
            return heads;
        }
        let all = union(heads.iter().map(Vec::as_slice), len);
        let filled = heads.iter().map(|rows| {
            let others = all.iter().copied().chain(0..len as u32);
            let mut rows = rows.clone();
            for row in others {
                if rows.len() == most {
                    break;
                }
                if let Err(at) = rows.binary_search(&row) {
                    rows.insert(at, row);
                }
            }
            rows
        });
        filled.collect()
    }

    /// Makes a layer's gathered part the prefix at `rows`. Nothing is copied if it is so already.
    fn gather(&mut self, layer: usize, rows: Vec<Vec<u32>>) {
        let gathered = &mut self.gathered[layer];
        if gathered.rows == rows {
            return;
        }
        gathered.rows = rows;
        let (width, len, count) = (self.dims.head_dim, self.prefix.layer_len(layer), gathered.len());
        let size = (len * width).max(1);
        gathered.keys.clear();
        gathered.values.resize(self.dims.kv_heads * width * count, 0.0);
        let by_position = self.by_position.0.get(layer).filter(|values| !values.is_empty());
        let out_of_head = gathered.values.chunks_exact_mut((width * count).max(1));
        for (head, out) in out_of_head.enumerate() {
            let rows = gathered.rows.get(head).or(gathered.rows.first()).map_or(&[][..], Vec::as_slice);
            for &row in rows {
                let start = head * size + row as usize * width;
                gathered.keys.extend_from_slice(&self.prefix.keys[layer][start..start + width]);
            }
            match by_position {
                Some(values) => transpose_rows(&values[head * size..], rows, width, out),
                None => pick_columns(&self.prefix.values[layer][head * size..], len, rows, out),
            }
        }
    }

    pub(super) fn len(&self, layer: usize) -> usize {
        if self.shows[layer] { self.gathered[layer].len() } else { self.prefix.layer_len(layer) }
    }

    pub(super) fn keys(&self, layer: usize) -> &[f32] {
        if self.shows[layer] { &self.gathered[layer].keys } else { &self.prefix.keys[layer] }
    }

    pub(super) fn values(&self, layer: usize) -> &[f32] {
        if self.shows[layer] { &self.gathered[layer].values } else { &self.prefix.values[layer] }
    }
}

/// `rows` of `values [n, width]` as the columns of `out [width, rows]`.
fn transpose_rows(values: &[f32], rows: &[u32], width: usize, out: &mut [f32]) {
    for (at, &row) in rows.iter().enumerate() {
        let row = &values[row as usize * width..][..width];
        for (out, &value) in out[at..].iter_mut().step_by(rows.len()).zip(row) {
            *out = value;
        }
    }
}

/// The columns `columns` of `values [width, len]`.
fn pick_columns(values: &[f32], len: usize, columns: &[u32], out: &mut [f32]) {
    for (row, out) in values.chunks_exact(len.max(1)).zip(out.chunks_exact_mut(columns.len().max(1))) {
        for (out, &column) in out.iter_mut().zip(columns) {
            *out = row[column as usize];
        }
    }
}

/// The prefix's values a position after the other, `[KVH, n, D]` by layer, for the layers that read other parts of it in every
/// step. From the graph's `[KVH, D, n]` a gather would fetch nearly every cache line, that is take as long as reading everything.
#[derive(Debug, Default)]
struct ValuesByPosition(Vec<Vec<f32>>);

impl ValuesByPosition {
    fn new(prefix: &Prefix, dims: Dims, reads: impl Fn(usize) -> bool) -> ValuesByPosition {
        let width = dims.head_dim;
        let of = |layer: usize| {
            let len = prefix.layer_len(layer);
            let size = (len * width).max(1);
            let mut out = vec![0.0; if reads(layer) { prefix.values[layer].len() } else { 0 }];
            for (head, out) in prefix.values[layer].chunks_exact(size).zip(out.chunks_exact_mut(size)) {
                for (part, row) in head.chunks_exact(len.max(1)).enumerate() {
                    for (out, &value) in out[part..].iter_mut().step_by(width).zip(row) {
                        *out = value;
                    }
                }
            }
            out
        };
        ValuesByPosition((0..dims.layers).map(of).collect())
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(Vec::len).sum::<usize>() * size_of::<f32>()
    }
}

/// All positions that one of `sets` has, ascending.
fn union<'a>(sets: impl Iterator<Item = &'a [u32]>, len: usize) -> Vec<u32> {
    let mut marked = vec![false; len];
    for &position in sets.flatten() {
        if let Some(mark) = marked.get_mut(position as usize) {
            *mark = true;
        }
    }
    (0u32..).zip(marked).filter(|(_, mark)| *mark).map(|(position, _)| position).collect()
}
