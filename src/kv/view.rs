//! What the rows of a call read.

use crate::graphs::{StepInput, TokenId};

use super::cache::{KvCache, RowSource, entry_in};
use super::gathered::{Fixation, Retention};
use super::storage::{Moved, Storage};

/// What a call's rows read, in the shapes of [`crate::graphs::StepInput`].
#[derive(Debug)]
pub struct KvView<'a> {
    pub pages: usize,
    pub prefix_len: Vec<usize>,
    pub prefix_capacity: Vec<usize>,
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

/// What a call feeds and asks for, beside keys and values.
#[derive(Clone, Copy, Debug)]
pub struct Fed<'a> {
    /// `[rows, tokens_per_row]`
    pub tokens: &'a [TokenId],
    /// `[rows, tokens_per_row, position_parts]`
    pub positions: &'a [f32],
    pub tokens_per_row: usize,
    pub wants_focal: bool,
    /// Rows whose saliency is wanted.
    pub watched: &'a [i64],
}

impl<'a> KvView<'a> {
    /// The call's input.
    pub fn input(&'a self, fed: Fed<'a>) -> StepInput<'a> {
        StepInput {
            tokens: fed.tokens,
            positions: fed.positions,
            pages: self.pages,
            rows: self.trunk_visible.len() / self.pages.max(1),
            tokens_per_row: fed.tokens_per_row,
            trunk_visible: &self.trunk_visible,
            suffix_len: &self.suffix_len,
            prefix_keys: self.prefix_keys.clone(),
            prefix_values: self.prefix_values.clone(),
            prefix_len: self.prefix_len.clone(),
            prefix_capacity: self.prefix_capacity.clone(),
            trunk_keys: self.trunk_keys.clone(),
            trunk_values: self.trunk_values.clone(),
            trunk_capacity: self.trunk_capacity,
            suffix_keys: self.suffix_keys.clone(),
            suffix_values: self.suffix_values.clone(),
            suffix_capacity: self.suffix_capacity,
            wants_focal: fed.wants_focal,
            watched: fed.watched,
        }
    }

    /// Prefix positions of the page at `place` that a layer reads, mean over the layers.
    pub fn prefix_read(&self, place: usize) -> f64 {
        let lens = self.prefix_len.iter().skip(place).step_by(self.pages.max(1));
        lens.sum::<usize>() as f64 / self.prefix_capacity.len().max(1) as f64
    }
}

/// What a row reads beside the prefix: so much of the trunk, and a suffix.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowReads {
    pub(super) trunk: usize,
    pub(super) suffix: Option<Moved>,
}

/// Which part of the prefix a call may leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Reading {
    #[default]
    Everything,
    /// Layers read what the rows look at, see [`KvCache::set_governing`], if that is at most this share of the page.
    Fixation(f32),
    /// Layers read what the rows keep, see [`KvCache::retain`], if that is at most this share of the prefix.
    Retention(f32),
}

impl KvCache {
    /// What `rows` read, everything.
    pub fn view(&mut self, rows: &[RowSource<'_>]) -> KvView<'_> {
        self.view_for(rows, Reading::Everything)
    }

    /// What `rows` read; everything where a row has chosen nothing. Rows of a call read one set, the union of theirs.
    pub fn view_for(&mut self, rows: &[RowSource<'_>], reading: Reading) -> KvView<'_> {
        let streams = rows.iter().filter(|row| !matches!(row, RowSource::Filler));
        let entry = |row: &RowSource<'_>| match row {
            RowSource::Branch(branch) => Some(entry_in(&self.entries, branch)),
            RowSource::Trunk | RowSource::Filler => None,
        };
        match reading {
            Reading::Everything => self.prefix.show_everything(),
            Reading::Fixation(max_share) => {
                let trunk = self.trunk_fixation.as_ref();
                let of = |row| entry(row).map_or(trunk, |entry| entry.fixation.as_ref());
                let sets: Option<Vec<&Fixation>> = streams.map(of).collect();
                self.prefix.show_fixations(&sets.unwrap_or_default(), max_share);
            }
            Reading::Retention(max_share) => {
                let sets: Option<Vec<&Retention>> =
                    streams.map(|row| entry(row).and_then(|entry| entry.retention.as_ref())).collect();
                self.prefix.show_retained(&sets.unwrap_or_default(), max_share);
            }
        }
        self.note_peak();
        self.view_of(rows)
    }

    /// What `rows` read. In place wherever the rows' slots lie side by side in the order of the rows; rows without a suffix fit
    /// anywhere, since theirs is masked. Otherwise the suffixes are copied into a staging buffer: 220 positions take 12 us per
    /// layer for keys or values (native-stack.md 2.7), less than a call loses by reading suffixes it does not need.
    fn view_of(&mut self, rows: &[RowSource<'_>]) -> KvView<'_> {
        let reads: Vec<RowReads> = rows.iter().map(|row| self.reads(row)).collect();
        let trunk_visible = reads.iter().map(|read| read.trunk as i64).collect();
        let sources: Vec<Option<Moved>> = reads.iter().map(|read| read.suffix).collect();
        let suffix_len = sources.iter().map(|source| source.map_or(0, |moved| moved.len as i64)).collect();
        let longest = sources.iter().flatten().map(|s| s.len).max().unwrap_or(0);
        let in_place = self.first_slot_in_place(&sources, longest);
        let (suffix_keys, suffix_values, suffix_capacity) = if longest == 0 {
            (vec![&[][..]; self.dims.layers], vec![&[][..]; self.dims.layers], 0)
        } else if let Some(first) = in_place {
            let (keys, values) = self.suffixes.slices(first, rows.len());
            (keys, values, self.suffixes.capacity())
        } else {
            let step = self.limits.first_capacity.max(1);
            let from: Vec<Option<(&Storage, Moved)>> =
                sources.iter().map(|source| source.map(|moved| (&self.suffixes, moved))).collect();
            self.staging.gather(longest.next_multiple_of(step), &from);
            self.note_peak();
            let (keys, values) = self.staging.slices(0, rows.len());
            (keys, values, self.staging.capacity())
        };
        let (trunk_keys, trunk_values) = self.trunk.slices(0, self.trunk.slots());
        let layers = 0..self.dims.layers;
        let prefix_len: Vec<usize> = layers.clone().map(|l| self.prefix.len(l)).collect();
        KvView {
            pages: 1,
            prefix_capacity: prefix_len.clone(),
            prefix_len,
            prefix_keys: layers.clone().map(|l| self.prefix.keys(l)).collect(),
            prefix_values: layers.map(|l| self.prefix.values(l)).collect(),
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

    /// What a row reads beside the prefix.
    pub(super) fn reads(&self, row: &RowSource<'_>) -> RowReads {
        match row {
            RowSource::Trunk => RowReads { trunk: self.trunk_len, suffix: None },
            RowSource::Filler => RowReads { trunk: 0, suffix: None },
            RowSource::Branch(branch) => {
                let entry = self.entry(branch);
                let suffix = entry.slot.map(|from| Moved { from, len: entry.len });
                RowReads { trunk: entry.visible_trunk, suffix }
            }
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
