//! Branches and segments put together: fork, append, truncate, release, and the views that a call reads.

use crate::graphs::{Dims, Prefix};

use super::KvLimits;
use super::compact::{Compact, Fixation, ValuesByPosition, union};
pub use super::storage::NewRows;
use super::storage::{Moved, Storage};

/// Names a branch in logs and tables; never used again after its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BranchId(u32);

/// A stream's place in the cache. Not `Clone`; given back by value.
#[derive(Debug)]
pub struct Branch {
    id: BranchId,
}

impl Branch {
    pub fn id(&self) -> BranchId {
        self.id
    }
}

/// Bookkeeping of one live branch.
#[derive(Debug)]
struct Entry {
    id: BranchId,
    visible_trunk: usize,
    slot: Option<usize>,
    /// Positions of the suffix; 0 without a slot.
    len: usize,
    /// What it looks at next.
    fixation: Option<Fixation>,
}

/// Whose keys and values a call's row reads.
#[derive(Clone, Copy, Debug)]
pub enum RowSource<'a> {
    /// Prefix and all of the trunk.
    Trunk,
    /// Prefix, visible trunk and suffix of a branch.
    Branch(&'a Branch),
    /// The prefix only: a row that is there to keep another company.
    Filler,
}

/// What a call's rows read, in the shapes of [`crate::graphs::StepInput`].
#[derive(Debug)]
pub struct KvView<'a> {
    pub prefix_len: Vec<usize>,
    pub prefix_keys: Vec<&'a [f32]>,
    pub prefix_values: Vec<&'a [f32]>,
    pub trunk_keys: Vec<&'a [f32]>,
    pub trunk_values: Vec<&'a [f32]>,
    pub trunk_capacity: usize,
    pub trunk_visible: Vec<i64>,
    pub suffix_keys: Vec<&'a [f32]>,
    pub suffix_values: Vec<&'a [f32]>,
    pub suffix_capacity: usize,
    pub suffix_len: Vec<i64>,
}

/// Keys and values of one page. Owned by the decoding loop.
#[derive(Debug)]
pub struct KvCache {
    dims: Dims,
    limits: KvLimits,
    prefix: Prefix,
    pub(super) trunk: Storage,
    trunk_len: usize,
    pub(super) suffixes: Storage,
    /// Suffixes of a call whose rows do not lie side by side, copied together.
    staging: Storage,
    entries: Vec<Entry>,
    next_id: u32,
    trunk_fixation: Option<Fixation>,
    /// By layer, the focal layer that it follows; empty: all layers read everything.
    governing: Vec<Option<usize>>,
    /// By focal layer, the part of the prefix that the last focused view showed.
    compact: Vec<Compact>,
    by_position: ValuesByPosition,
    peak_bytes: usize,
}

impl KvCache {
    /// `None` if the page could not finish within the budget: its prefix, its largest trunk and one full suffix do not fit.
    pub fn new(dims: Dims, prefix: Prefix, limits: KvLimits) -> Option<KvCache> {
        let cache = KvCache {
            dims,
            limits,
            prefix,
            trunk: Storage::empty(dims),
            trunk_len: 0,
            suffixes: Storage::empty(dims),
            staging: Storage::empty(dims),
            entries: Vec::new(),
            next_id: 0,
            trunk_fixation: None,
            governing: Vec::new(),
            compact: Vec::new(),
            by_position: ValuesByPosition::default(),
            peak_bytes: 0,
        };
        (limits.worst_case_bytes(dims, cache.prefix.len) <= limits.budget_bytes).then_some(cache)
    }

    /// Prefix and largest trunk.
    fn fixed_bytes(&self) -> usize {
        (self.prefix.len + self.limits.max_trunk) * self.dims.bytes_per_position()
    }

    /// Bytes held now.
    pub fn bytes(&self) -> usize {
        let prefix = self.prefix.len * self.dims.bytes_per_position();
        let compact: usize = self.compact.iter().map(Compact::bytes).sum();
        prefix
            + self.trunk.bytes()
            + self.suffixes.bytes()
            + self.staging.bytes()
            + compact
            + self.by_position.bytes()
    }

    /// Bytes of what is kept of the prefix a second time, so that parts of it can be gathered.
    pub fn prefix_copy_bytes(&self) -> usize {
        self.by_position.bytes()
    }

    /// Most bytes that were held at once.
    pub fn peak_bytes(&self) -> usize {
        self.peak_bytes.max(self.bytes())
    }

    pub fn trunk_len(&self) -> usize {
        self.trunk_len
    }

    /// Slots that hold a suffix.
    pub fn held_slots(&self) -> usize {
        self.entries.iter().filter(|e| e.slot.is_some()).count()
    }

    /// A new branch that sees the first `visible_trunk` positions of the trunk.
    pub fn fork(&mut self, visible_trunk: usize) -> Branch {
        assert!(visible_trunk <= self.trunk_len, "fork at {visible_trunk} of {} trunk rows", self.trunk_len);
        let id = BranchId(self.next_id);
        self.next_id += 1;
        self.entries.push(Entry { id, visible_trunk, slot: None, len: 0, fixation: None });
        Branch { id }
    }

    pub fn suffix_len(&self, branch: &Branch) -> usize {
        self.entry(branch).len
    }

    /// Where the suffix lies; rows in this order can be read in place.
    pub fn slot(&self, branch: &Branch) -> Option<usize> {
        self.entry(branch).slot
    }

    fn index(&self, branch: &Branch) -> usize {
        // Ids only grow, and entries stay in their order.
        self.entries
            .binary_search_by_key(&branch.id, |e| e.id)
            .expect("a branch is in the table until its release")
    }

    fn entry(&self, branch: &Branch) -> &Entry {
        &self.entries[self.index(branch)]
    }

    /// Adds rows at the end of the trunk.
    pub fn append_trunk(&mut self, rows: &NewRows<'_>) {
        let len = self.trunk_len + rows.count;
        assert!(len <= self.limits.max_trunk, "trunk of {len} rows, at most {}", self.limits.max_trunk);
        if rows.count == 0 {
            return;
        }
        if len > self.trunk.capacity() {
            let capacity = self.limits.capacity_for(len, self.limits.max_trunk);
            let moved = [Moved { from: 0, len: self.trunk_len }];
            let kept = if self.trunk_len == 0 { &moved[..0] } else { &moved[..] };
            self.trunk.reshape(1, capacity, kept);
        }
        self.trunk.write(0, self.trunk_len, rows);
        self.trunk_len = len;
        self.note_peak();
    }

    /// Shortens the trunk to `keep_len` rows; never below what a live branch sees.
    pub fn truncate_trunk(&mut self, keep_len: usize) {
        let seen = self.entries.iter().map(|e| e.visible_trunk).max().unwrap_or(0);
        assert!(
            seen <= keep_len && keep_len <= self.trunk_len,
            "trunk of {} rows, {seen} seen, keep {keep_len}",
            self.trunk_len
        );
        self.trunk_len = keep_len;
    }

    /// Adds rows to the end of a branch's suffix. `None` if the pool is full; then nothing has changed.
    #[must_use]
    pub fn append(&mut self, branch: &Branch, rows: &NewRows<'_>) -> Option<()> {
        let index = self.index(branch);
        let at = self.entries[index].len;
        let len = at + rows.count;
        assert!(len <= self.limits.max_suffix, "suffix of {len} rows, at most {}", self.limits.max_suffix);
        if rows.count == 0 {
            return Some(());
        }
        let slot = self.slot_for(index, len)?;
        self.suffixes.write(slot, at, rows);
        self.entries[index].slot = Some(slot);
        self.entries[index].len = len;
        self.note_peak();
        Some(())
    }

    /// Would a suffix of `len` positions find room in a slot of its own, beside those that are held?
    pub fn has_room(&self, len: usize) -> bool {
        let capacity = self.limits.capacity_for(len, self.limits.max_suffix).max(self.longest_capacity());
        self.suffix_bytes(self.held_slots() + 1, capacity) <= self.suffix_budget()
    }

    fn suffix_bytes(&self, slots: usize, capacity: usize) -> usize {
        slots * capacity * self.dims.bytes_per_position()
    }

    fn suffix_budget(&self) -> usize {
        self.limits.budget_bytes.saturating_sub(self.fixed_bytes())
    }

    /// Capacity that the held suffixes need.
    fn longest_capacity(&self) -> usize {
        let longest = self.entries.iter().map(|e| e.len).max().unwrap_or(0);
        if longest == 0 { 0 } else { self.limits.capacity_for(longest, self.limits.max_suffix) }
    }

    /// A slot for the branch at `index` that holds `len` positions; the memory grows if it must and may.
    fn slot_for(&mut self, index: usize, len: usize) -> Option<usize> {
        let there = self.entries[index].slot.or_else(|| self.free_slot());
        if let Some(slot) = there.filter(|_| len <= self.suffixes.capacity()) {
            return Some(slot);
        }
        let held = self.held_slots() + usize::from(self.entries[index].slot.is_none());
        let capacity = self.limits.capacity_for(len, self.limits.max_suffix).max(self.longest_capacity());
        // Room for twice the branches, else for just these.
        let slots = [(held * 2).max(4), held]
            .into_iter()
            .find(|&slots| self.suffix_bytes(slots, capacity) <= self.suffix_budget())?;
        let mut moved = Vec::with_capacity(held);
        for entry in &mut self.entries {
            if let Some(from) = entry.slot {
                entry.slot = Some(moved.len());
                moved.push(Moved { from, len: entry.len });
            }
        }
        self.suffixes.reshape(slots, capacity, &moved);
        Some(self.entries[index].slot.unwrap_or(moved.len()))
    }

    /// The lowest slot that no branch holds.
    fn free_slot(&self) -> Option<usize> {
        (0..self.suffixes.slots()).find(|&slot| self.entries.iter().all(|e| e.slot != Some(slot)))
    }

    /// Shortens a suffix to `keep_len` positions; an empty suffix gives its slot back.
    pub fn truncate(&mut self, branch: &Branch, keep_len: usize) {
        let index = self.index(branch);
        let entry = &mut self.entries[index];
        assert!(keep_len <= entry.len, "suffix of {} rows, keep {keep_len}", entry.len);
        entry.len = keep_len;
        if keep_len == 0 {
            entry.slot = None;
            entry.fixation = None;
            self.give_back_memory();
        }
    }

    /// Ends a branch.
    #[expect(clippy::needless_pass_by_value, reason = "a released branch must not be usable")]
    pub fn release(&mut self, branch: Branch) {
        let index = self.index(&branch);
        self.entries.remove(index);
        self.give_back_memory();
    }

    fn give_back_memory(&mut self) {
        if self.held_slots() == 0 {
            self.suffixes.clear();
            self.staging.clear();
        }
    }

    fn note_peak(&mut self) {
        self.peak_bytes = self.peak_bytes();
    }

    /// From now on focused views show layer `l` what the focal layer `governing[l]` chose; focal layers themselves read everything.
    pub fn set_governing(&mut self, governing: Vec<Option<usize>>) {
        assert_eq!(governing.len(), self.dims.layers, "a rule for each layer");
        let focal = governing.iter().flatten().max().map_or(0, |most| most + 1);
        self.by_position = ValuesByPosition::new(&self.prefix, self.dims, |layer| governing[layer].is_some());
        self.governing = governing;
        self.compact.clear();
        self.compact.resize_with(focal, Compact::default);
    }

    /// What a stream looks at next; `None`: at everything.
    pub fn fixate(&mut self, row: &RowSource<'_>, fixation: Option<Fixation>) {
        match row {
            RowSource::Trunk => self.trunk_fixation = fixation,
            RowSource::Branch(branch) => {
                let index = self.index(branch);
                self.entries[index].fixation = fixation;
            }
            RowSource::Filler => {}
        }
    }

    /// What `rows` read if each layer reads only what it must (see [`Self::set_governing`]); everything where a row has no
    /// fixation, or if a union is more than `max_share` of the prefix.
    pub fn focused_view(&mut self, rows: &[RowSource<'_>], max_share: f32) -> KvView<'_> {
        let focused = self.focus(rows, max_share);
        self.note_peak();
        self.view_of(rows, focused)
    }

    /// Gathers what `rows` look at. `false` if they are to read everything.
    fn focus(&mut self, rows: &[RowSource<'_>], max_share: f32) -> bool {
        let streams = rows.iter().filter(|row| !matches!(row, RowSource::Filler));
        let sets: Option<Vec<&Fixation>> = streams
            .map(|row| match row {
                RowSource::Trunk => self.trunk_fixation.as_ref(),
                RowSource::Branch(branch) => self.entry(branch).fixation.as_ref(),
                RowSource::Filler => None,
            })
            .collect();
        let Some(sets) = sets.filter(|sets| !sets.is_empty() && !self.compact.is_empty()) else {
            return false;
        };
        let of = |focal: usize| sets.iter().map(move |sets| sets.get(focal).map_or(&[][..], Vec::as_slice));
        let unions: Vec<Vec<u32>> =
            (0..self.compact.len()).map(|focal| union(of(focal), self.prefix.len)).collect();
        let most = max_share * self.prefix.len as f32;
        if unions.iter().any(|union| union.is_empty() || union.len() as f32 > most) {
            return false;
        }
        let governing = &self.governing;
        for (focal, (compact, positions)) in self.compact.iter_mut().zip(unions).enumerate() {
            let reads = |layer: usize| governing[layer] == Some(focal);
            compact.gather(&self.prefix, &self.by_position, self.dims, positions, reads);
        }
        true
    }

    /// The gathered part of the prefix that `layer` reads.
    fn compact_of(&self, layer: usize) -> Option<&Compact> {
        self.governing.get(layer).copied().flatten().and_then(|focal| self.compact.get(focal))
    }

    /// What `rows` read. In place wherever the rows' slots lie side by side in the order of the rows; rows without a suffix fit
    /// anywhere, since theirs is masked. Otherwise the suffixes are copied into a staging buffer: 220 positions take 12 us per
    /// layer for keys or values (native-stack.md 2.7), less than a call loses by reading suffixes it does not need.
    pub fn view(&mut self, rows: &[RowSource<'_>]) -> KvView<'_> {
        self.view_of(rows, false)
    }

    fn view_of(&mut self, rows: &[RowSource<'_>], focused: bool) -> KvView<'_> {
        let entries: Vec<Option<&Entry>> = rows.iter().map(|row| self.row_entry(row)).collect();
        let trunk_visible = rows.iter().zip(&entries).map(|(row, entry)| match (row, entry) {
            (RowSource::Trunk, _) => self.trunk_len as i64,
            (_, Some(entry)) => entry.visible_trunk as i64,
            (_, None) => 0,
        });
        let trunk_visible = trunk_visible.collect();
        let suffix_len: Vec<i64> = entries.iter().map(|e| e.map_or(0, |e| e.len as i64)).collect();
        let sources: Vec<Option<Moved>> = entries
            .iter()
            .map(|entry| entry.and_then(|e| e.slot.map(|from| Moved { from, len: e.len })))
            .collect();
        let longest = sources.iter().flatten().map(|s| s.len).max().unwrap_or(0);
        let in_place = self.first_slot_in_place(&sources, longest);
        let (suffix_keys, suffix_values, suffix_capacity) = if longest == 0 {
            (vec![&[][..]; self.dims.layers], vec![&[][..]; self.dims.layers], 0)
        } else if let Some(first) = in_place {
            let (keys, values) = self.suffixes.slices(first, rows.len());
            (keys, values, self.suffixes.capacity())
        } else {
            let step = self.limits.first_capacity.max(1);
            self.staging.gather(&self.suffixes, longest.next_multiple_of(step), &sources);
            self.note_peak();
            let (keys, values) = self.staging.slices(0, rows.len());
            (keys, values, self.staging.capacity())
        };
        let (trunk_keys, trunk_values) = self.trunk.slices(0, self.trunk.slots());
        let part = |layer: usize| self.compact_of(layer).filter(|_| focused);
        let layers = 0..self.dims.layers;
        KvView {
            prefix_len: layers.clone().map(|l| part(l).map_or(self.prefix.len, Compact::len)).collect(),
            prefix_keys: layers
                .clone()
                .map(|l| part(l).map_or(&self.prefix.keys[l], |c| &c.keys[l]).as_slice())
                .collect(),
            prefix_values: layers
                .map(|l| part(l).map_or(&self.prefix.values[l], |c| &c.values[l]).as_slice())
                .collect(),
            trunk_keys,
            trunk_values,
            trunk_capacity: self.trunk.capacity(),
            trunk_visible,
            suffix_keys,
            suffix_values,
            suffix_capacity,
            suffix_len,
        }
    }

    fn row_entry(&self, row: &RowSource<'_>) -> Option<&Entry> {
        match row {
            RowSource::Branch(branch) => Some(self.entry(branch)),
            RowSource::Trunk | RowSource::Filler => None,
        }
    }

    /// The slot of row 0 if all rows can be read in place. A memory more than twice as long as its rows is not: the call would
    /// read mostly masked positions.
    fn first_slot_in_place(&self, sources: &[Option<Moved>], longest: usize) -> Option<usize> {
        let (row, source) = sources.iter().enumerate().find_map(|(row, s)| s.map(|s| (row, s)))?;
        let first = source.from.checked_sub(row)?;
        let side_by_side = sources.iter().enumerate().all(|(row, s)| s.is_none_or(|s| s.from == first + row));
        let needed = self.limits.capacity_for(longest, self.limits.max_suffix);
        let fits = first + sources.len() <= self.suffixes.slots() && self.suffixes.capacity() <= needed * 2;
        (side_by_side && fits).then_some(first)
    }
}
