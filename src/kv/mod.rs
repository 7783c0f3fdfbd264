//! Key/value memory of one page: segments, and branches that share them; and that of the calls that pages share ([`PagePool`]).
//!
//! ```text
//!            prefix (image, prompt)    trunk (layout tokens)          suffixes (each branch's own tokens)
//!            +---------------------+---------------------------+
//!  trunk     | all of it           | all of it                 |
//!            +---------------------+---------------------------+
//!  branch 1  | all of it           | visible to here |           --> slot 0 [CHILD t t t .]
//!  branch 2  | all of it           | visible to here      |      --> slot 1 [CHILD t t . .]
//!  branch 3  | all of it           | visible to here        |    --> no slot: nothing appended yet
//! ```
//!
//! The prefix is fixed, the trunk grows at its end, a branch is {visible trunk length, suffix}. A fork copies nothing and takes
//! no memory: the suffix gets its slot with its first row, so a branch that ends within its first call never has one.
//!
//! Invariants:
//! 1. A view shows each row exactly what was appended for it: the prefix, its visible trunk, its own suffix.
//! 2. No live branch sees more of the trunk than there is; the trunk is never cut below a live branch's visible length.
//! 3. A slot belongs to at most one branch; live slots and free slots together are all slots.
//! 4. Only `append_trunk` writes the trunk, and `append` only its branch's suffix.
//! 5. A failed append changes nothing.
//! 6. With all branches released, no slot is held and the suffix memory is given back.
//! 7. Every value of a buffer that a view shows is one that was appended, or zero: masked rows are finite.
//! 8. Prefix, largest trunk and suffixes together never exceed the budget; one suffix of `max_suffix` positions always fits
//!    once the other suffixes are gone, so an admitted page can finish. (The staging buffer of a call whose rows do not lie side
//!    by side comes on top; it is counted in the peak.)
//! 9. A focused view shows focal layers the whole prefix, and every other layer the union of what the rows look at, for the
//!    focal layer that it follows; or all layers everything if a row has no fixation or the union is too large.
//! 10. A retained view shows every layer and kv head the union of what the rows' branches keep (filled up to the same number for
//!    each head of a layer), or everything if a row keeps everything or the union is too large.
//! 11. The prefix itself never changes. (What was gathered of it, and the copy of the values that fixation gathers from, are on
//!    top of the budget, too; they are counted in the peak.)
//! 12. A view of a pool shows each row of each page what a view of its page alone would.

mod cache;
mod gathered;
mod pool;
mod storage;
#[cfg(test)]
mod tests;
mod view;

use crate::graphs::Dims;

pub use cache::{Branch, BranchId, KvCache, NewRows, RowSource};
pub use gathered::{Fixation, Retention};
pub use pool::{Member, PagePool};
pub use view::{Fed, KvView, Reading};

/// How much a page may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLimits {
    /// Bytes of keys and values of the page: prefix, trunk and suffixes.
    pub budget_bytes: usize,
    /// Most positions of the trunk.
    pub max_trunk: usize,
    /// Most positions of one suffix.
    pub max_suffix: usize,
    /// Smallest capacity of a segment, in positions; capacities double from there.
    pub first_capacity: usize,
}

impl KvLimits {
    /// Bytes without which a page with a prefix of `prefix_len` positions cannot be admitted: prefix, largest trunk and one
    /// full suffix.
    pub fn worst_case_bytes(&self, dims: Dims, prefix_len: usize) -> usize {
        (prefix_len + self.max_trunk + self.max_suffix) * dims.bytes_per_position()
    }

    /// The capacity that holds `len` positions: `first_capacity` doubled as often as needed, at most `max`.
    fn capacity_for(&self, len: usize, max: usize) -> usize {
        let mut capacity = self.first_capacity.max(1);
        while capacity < len {
            capacity *= 2;
        }
        capacity.min(max.max(len))
    }
}
