//! Memory of the calls that several pages share: prefixes and trunks side by side, a place each.
//!
//! A page keeps its own cache. What a shared call needs in one piece is copied here: the prefix once, when its page comes; of the
//! trunk what is new since the last call; the suffixes for each call, as for rows of one page that do not lie side by side.

use crate::graphs::{Dims, Prefix};

use super::cache::{KvCache, RowSource};
use super::storage::{Moved, Storage};
use super::view::KvView;

/// See the module.
#[derive(Debug)]
pub struct PagePool {
    dims: Dims,
    /// Capacities grow by this many positions.
    step: usize,
    prefixes: Vec<LayerPrefixes>,
    trunks: Storage,
    suffixes: Storage,
    /// How many places there are.
    places: usize,
}

/// One layer's prefixes: keys `[places, KVH, capacity, D]`, values `[places, KVH, D, capacity]`.
#[derive(Clone, Debug, Default)]
struct LayerPrefixes {
    capacity: usize,
    keys: Vec<f32>,
    values: Vec<f32>,
    /// Valid positions by place.
    lens: Vec<usize>,
}

/// A page in a shared call: its cache and the streams that run. Its place is its index in the call.
pub type Member<'a, 'b> = (&'a mut KvCache, Vec<RowSource<'b>>);

impl PagePool {
    /// `step`: capacities are multiples of so many positions.
    pub fn new(dims: Dims, step: usize) -> PagePool {
        PagePool {
            dims,
            step: step.max(1),
            prefixes: vec![LayerPrefixes::default(); dims.layers],
            trunks: Storage::empty(dims),
            suffixes: Storage::empty(dims),
            places: 0,
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let prefixes: usize = self.prefixes.iter().map(|layer| layer.keys.len() + layer.values.len()).sum();
        prefixes * size_of::<f32>() + self.trunks.bytes() + self.suffixes.bytes()
    }

    /// The page of `kv` takes `place`: an old one, whose page has left it, or the next new one.
    pub fn enter(&mut self, place: usize, kv: &mut KvCache) {
        assert!(place <= self.places, "place {place} of {}", self.places);
        self.places = self.places.max(place + 1);
        let (heads, width) = (self.dims.kv_heads, self.dims.head_dim);
        for (layer, prefixes) in self.prefixes.iter_mut().enumerate() {
            prefixes.put(place, kv.prefix(), (layer, heads, width), self.step);
        }
        // Whatever is in this place of the trunks is another page's.
        kv.trunk_same_to = 0;
    }

    /// The last place is given up.
    pub fn leave_last(&mut self) {
        self.places -= 1;
        if self.places == 0 {
            *self = PagePool::new(self.dims, self.step);
        }
    }

    /// What the rows of `members` read, a member for each place. Pages with fewer rows than others get fillers.
    pub fn view(&mut self, members: &mut [Member<'_, '_>]) -> KvView<'_> {
        assert_eq!(members.len(), self.places, "a member for each place");
        let rows = members.iter().map(|(_, rows)| rows.len()).max().unwrap_or(0);
        let mut trunk_visible = Vec::with_capacity(self.places * rows);
        let mut suffix_len = Vec::with_capacity(self.places * rows);
        self.take_trunks(members);
        let mut sources: Vec<Option<(&Storage, Moved)>> = Vec::with_capacity(self.places * rows);
        for (kv, streams) in members.iter() {
            let reads = streams.iter().copied().chain(std::iter::repeat(RowSource::Filler));
            for read in reads.take(rows).map(|row| kv.reads(&row)) {
                trunk_visible.push(read.trunk as i64);
                suffix_len.push(read.suffix.map_or(0, |moved| moved.len as i64));
                sources.push(read.suffix.map(|moved| (&kv.suffixes, moved)));
            }
        }
        let longest = sources.iter().flatten().map(|(_, moved)| moved.len).max().unwrap_or(0);
        self.suffixes.gather(longest.next_multiple_of(self.step), &sources);
        let (suffix_keys, suffix_values) = self.suffixes.slices(0, sources.len());
        let (trunk_keys, trunk_values) = self.trunks.slices(0, self.places);
        let layers = || self.prefixes.iter();
        KvView {
            pages: self.places,
            prefix_len: layers().flat_map(|layer| &layer.lens[..self.places]).copied().collect(),
            prefix_capacity: layers().map(|layer| layer.capacity).collect(),
            prefix_keys: layers().map(|layer| layer.places(&layer.keys, self.places)).collect(),
            prefix_values: layers().map(|layer| layer.places(&layer.values, self.places)).collect(),
            trunk_keys,
            trunk_values,
            trunk_capacity: self.trunks.capacity(),
            trunk_visible,
            suffix_keys,
            suffix_values,
            suffix_capacity: self.suffixes.capacity(),
            suffix_len,
        }
    }

    /// Copies what is new in the pages' trunks.
    fn take_trunks(&mut self, members: &mut [Member<'_, '_>]) {
        let longest = members.iter().map(|(kv, _)| kv.trunk_len()).max().unwrap_or(0);
        if longest > self.trunks.capacity() || self.places > self.trunks.slots() {
            let capacity =
                self.trunks.capacity().max(longest.next_power_of_two().next_multiple_of(self.step));
            let kept = self.trunks.slots().min(self.places);
            let moved: Vec<Moved> =
                (0..kept).map(|from| Moved { from, len: members[from].0.trunk_same_to }).collect();
            self.trunks.reshape(self.places, capacity, &moved);
        }
        for (place, (kv, _)) in members.iter_mut().enumerate() {
            self.trunks.copy(place, &kv.trunk, kv.trunk_same_to..kv.trunk_len);
            kv.trunk_same_to = kv.trunk_len;
        }
    }
}

impl LayerPrefixes {
    /// Makes the prefix of `place` a page's.
    fn put(
        &mut self,
        place: usize,
        prefix: &Prefix,
        (layer, heads, width): (usize, usize, usize),
        step: usize,
    ) {
        let len = prefix.layer_len(layer);
        let places = self.lens.len().max(place + 1);
        if len > self.capacity || places > self.lens.len() {
            self.grow(places, self.capacity.max(len.next_multiple_of(step)), heads, width);
        }
        self.lens[place] = len;
        for head in (0..heads).filter(|_| len > 0) {
            let (from, to) = (head * len * width, (place * heads + head) * self.capacity * width);
            self.keys[to..to + len * width].copy_from_slice(&prefix.keys[layer][from..from + len * width]);
            let columns = self.values[to..].chunks_exact_mut(self.capacity);
            for (column, own) in columns.zip(prefix.values[layer][from..from + len * width].chunks_exact(len))
            {
                column[..len].copy_from_slice(own);
            }
        }
    }

    /// More places, or longer ones; what is there stays.
    fn grow(&mut self, places: usize, capacity: usize, heads: usize, width: usize) {
        let old = std::mem::take(self);
        let size = places * heads * capacity * width;
        *self = LayerPrefixes { capacity, keys: vec![0.0; size], values: vec![0.0; size], lens: old.lens };
        if old.capacity > 0 {
            let (runs, columns) =
                (old.keys.chunks_exact(old.capacity * width), old.values.chunks_exact(old.capacity));
            for (new, old) in self.keys.chunks_exact_mut(capacity * width).zip(runs) {
                new[..old.len()].copy_from_slice(old);
            }
            for (new, old) in self.values.chunks_exact_mut(capacity).zip(columns) {
                new[..old.len()].copy_from_slice(old);
            }
        }
        self.lens.resize(places, 0);
    }

    /// The part of `data` that belongs to the first `places`.
    fn places<'a>(&self, data: &'a [f32], places: usize) -> &'a [f32] {
        &data[..data.len() / self.lens.len().max(1) * places]
    }
}
