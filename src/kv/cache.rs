//! Branches and segments put together: fork, append, truncate, release.

use crate::graphs::{Dims, Prefix};

use super::KvLimits;
use super::gathered::{Fixation, PagePrefix, Retention};
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
pub(super) struct Entry {
    id: BranchId,
    pub(super) visible_trunk: usize,
    pub(super) slot: Option<usize>,
    /// Positions of the suffix; 0 without a slot.
    pub(super) len: usize,
    /// What it looks at next.
    pub(super) fixation: Option<Fixation>,
    /// What it keeps of the prefix.
    pub(super) retention: Option<Retention>,
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

/// Keys and values of one page. Owned by the decoding loop.
#[derive(Debug)]
pub struct KvCache {
    pub(super) dims: Dims,
    pub(super) limits: KvLimits,
    pub(super) prefix: PagePrefix,
    pub(super) trunk: Storage,
    pub(super) trunk_len: usize,
    /// So many of the trunk's rows are those that a pool copied last.
    pub(super) trunk_same_to: usize,
    pub(super) suffixes: Storage,
    /// Suffixes of a call whose rows do not lie side by side, copied together.
    pub(super) staging: Storage,
    pub(super) entries: Vec<Entry>,
    next_id: u32,
    pub(super) trunk_fixation: Option<Fixation>,
    peak_bytes: usize,
}

impl KvCache {
    /// `None` if the page could not finish within the budget: its prefix, its largest trunk and one full suffix do not fit.
    pub fn new(dims: Dims, prefix: Prefix, limits: KvLimits) -> Option<KvCache> {
        let prefix_len = prefix.len;
        let cache = KvCache {
            dims,
            limits,
            prefix: PagePrefix::new(prefix, dims),
            trunk: Storage::empty(dims),
            trunk_len: 0,
            trunk_same_to: 0,
            suffixes: Storage::empty(dims),
            staging: Storage::empty(dims),
            entries: Vec::new(),
            next_id: 0,
            trunk_fixation: None,
            peak_bytes: 0,
        };
        (limits.worst_case_bytes(dims, prefix_len) <= limits.budget_bytes).then_some(cache)
    }

    /// Prefix and largest trunk.
    fn fixed_bytes(&self) -> usize {
        self.prefix.prefix.bytes(self.dims) + self.limits.max_trunk * self.dims.bytes_per_position()
    }

    /// Bytes held now.
    pub fn bytes(&self) -> usize {
        self.prefix.prefix.bytes(self.dims)
            + self.prefix.extra_bytes()
            + self.trunk.bytes()
            + self.suffixes.bytes()
            + self.staging.bytes()
    }

    /// Bytes of what is kept of the prefix a second time, so that parts of it can be gathered.
    pub fn prefix_copy_bytes(&self) -> usize {
        self.prefix.copy_bytes()
    }

    /// The page's prefix, whole.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix.prefix
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
        self.entries.push(Entry { id, visible_trunk, slot: None, len: 0, fixation: None, retention: None });
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
        index_in(&self.entries, branch)
    }

    pub(super) fn entry(&self, branch: &Branch) -> &Entry {
        entry_in(&self.entries, branch)
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
        self.trunk_same_to = self.trunk_same_to.min(keep_len);
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

    pub(super) fn note_peak(&mut self) {
        self.peak_bytes = self.peak_bytes();
    }

    /// From now on focused views show layer `l` what the focal layer `governing[l]` chose; focal layers themselves read everything.
    pub fn set_governing(&mut self, governing: Vec<Option<usize>>) {
        self.prefix.set_governing(governing);
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

    /// From now on a branch keeps only this of the prefix as its own. The prefix itself stays whole, for the trunk and for every
    /// other branch. `None`: it keeps everything.
    pub fn retain(&mut self, branch: &Branch, retention: Option<Retention>) {
        let index = self.index(branch);
        self.entries[index].retention = retention;
    }
}

fn index_in(entries: &[Entry], branch: &Branch) -> usize {
    // Ids only grow, and entries stay in their order.
    entries.binary_search_by_key(&branch.id, |e| e.id).expect("a branch is in the table until its release")
}

/// The bookkeeping of `branch`.
pub(super) fn entry_in<'e>(entries: &'e [Entry], branch: &Branch) -> &'e Entry {
    &entries[index_in(entries, branch)]
}
