//! The draft of a page's trunk, region by region: what is proposed next, which drafted region a kept one is.
//!
//! While the trunk follows the draft, each region is the drafted one. Where it disagrees, the rest of that region must be the
//! model's own; when it ends, the drafted region whose box overlaps it by half is taken to be the same, and the draft goes on
//! after that one. So regions that the trunk adds, leaves out or moves cost only themselves.

use std::ops::Range;

use crate::geometry::Rect;
use crate::graphs::TokenId;

use super::TrunkRegion;
use super::protocol::{DraftToken, Protocol};
use super::stream::Proposed;
use super::verify::AcceptanceRule;

/// Overlap (intersection over union) from which a kept and a drafted region are the same.
const SAME_REGION: f32 = 0.5;

/// A drafted region, or the drafted end of the trunk.
#[derive(Debug)]
struct DraftRegion {
    tokens: Range<usize>,
    bbox: Option<Rect>,
    is_end: bool,
    claimed: bool,
}

/// The region that the trunk is writing.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Index of its first token in the trunk.
    start: usize,
    /// The drafted region that was expected here.
    expected: Option<usize>,
    /// All its tokens are the drafted ones.
    intact: bool,
}

/// Progress of the trunk along its draft.
#[derive(Debug)]
pub(super) struct LayoutDraft {
    tokens: Vec<DraftToken>,
    regions: Vec<DraftRegion>,
    /// Index of the drafted token that is proposed next.
    cursor: usize,
    open: Option<Open>,
    kept: Vec<TrunkRegion>,
}

/// Where a kept trunk token comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Origin {
    /// The drafted token with this index stood.
    Draft(usize),
    /// The model's, in place of the drafted token with this index.
    Instead(usize),
    /// The model's, where nothing was drafted.
    Model,
}

impl LayoutDraft {
    pub(super) fn new(tokens: Vec<DraftToken>, protocol: &dyn Protocol) -> LayoutDraft {
        let ids: Vec<TokenId> = tokens.iter().map(|t| t.id).collect();
        let is_end = |id: TokenId| protocol.is_trunk_end(id);
        let starts: Vec<usize> =
            (0..ids.len()).filter(|&i| protocol.starts_region(ids[i]) || is_end(ids[i])).collect();
        let ends = starts.iter().skip(1).copied().chain([ids.len()]);
        let regions = starts.iter().zip(ends).map(|(&start, end)| DraftRegion {
            tokens: start..end,
            bbox: protocol.region_box(&ids[start..end]),
            is_end: is_end(ids[start]),
            claimed: false,
        });
        let regions = regions.collect();
        LayoutDraft { tokens, regions, cursor: 0, open: None, kept: Vec::new() }
    }

    /// Index of the drafted token that is proposed next.
    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// What is proposed next.
    pub(super) fn proposal(&self, rule: &AcceptanceRule, protocol: &dyn Protocol) -> Proposed<'_> {
        let of = |tokens, strict, goes_on| Proposed { tokens, strict, goes_on, guesser: None };
        let claimed = self.regions.iter().find(|r| r.claimed && r.tokens.start >= self.cursor);
        let limit = claimed.map_or(self.tokens.len(), |r| r.tokens.start);
        let rest = |end: usize| &self.tokens[self.cursor.min(end)..end];
        let Some(open) = self.open.filter(|o| !o.intact) else { return of(rest(limit), 0, false) };
        let Some(region) =
            open.expected.map(|e| &self.regions[e].tokens).filter(|r| r.contains(&self.cursor))
        else {
            return Proposed::default();
        };
        let strict = region.end - self.cursor;
        if *rule == AcceptanceRule::Lossless {
            return of(rest(limit.max(region.end)), strict, false);
        }
        // Under trust the later regions' drafts would stand without a look at whether this region is the drafted one.
        let closes = self.tokens[region.clone()].last().is_some_and(|t| protocol.is_fork(t.id));
        of(rest(region.end), strict, closes && region.end < self.tokens.len())
    }

    /// Takes the trunk's next token, the last of `trunk`.
    pub(super) fn push(&mut self, trunk: &[TokenId], origin: Origin, protocol: &dyn Protocol) {
        let Some((&token, before)) = trunk.split_last() else { return };
        if let (Origin::Instead(refused), Some(open)) = (origin, &mut self.open) {
            open.intact &= !open.expected.is_some_and(|e| self.regions[e].tokens.contains(&refused));
        }
        let starts = protocol.starts_region(token);
        if starts || protocol.is_trunk_end(token) {
            self.close(trunk, before.len(), protocol);
        }
        if let Origin::Draft(index) = origin {
            self.cursor = index + 1;
        }
        if starts {
            self.open_region(token, before.len(), origin);
        } else {
            self.continue_region(origin);
        }
        if protocol.is_fork(token) {
            self.close(trunk, trunk.len(), protocol);
        }
    }

    fn open_region(&mut self, token: TokenId, start: usize, origin: Origin) {
        let at = if let Origin::Draft(index) = origin { index } else { self.cursor };
        let expected = self.region_at(at);
        let intact = expected.is_some_and(|e| !self.regions[e].is_end && self.regions[e].tokens.start == at)
            && self.tokens[at].id == token;
        if let Some(expected) = expected.filter(|_| !matches!(origin, Origin::Draft(_))) {
            // The model's own start stands in for the drafted one.
            self.cursor = (at + 1).min(self.regions[expected].tokens.end);
        }
        self.open = Some(Open { start, expected, intact });
    }

    fn continue_region(&mut self, origin: Origin) {
        match origin {
            Origin::Draft(_) => return,
            Origin::Instead(refused) => {
                if let Some(region) = self.region_at(refused) {
                    self.cursor = (refused + 1).min(self.regions[region].tokens.end);
                }
            }
            Origin::Model => {}
        }
        if let Some(open) = &mut self.open {
            open.intact = false;
        }
    }

    fn region_at(&self, index: usize) -> Option<usize> {
        self.regions.iter().position(|r| r.tokens.contains(&index))
    }

    /// Ends the open region before the trunk index `end`; the draft goes on after the drafted region that it is.
    fn close(&mut self, trunk: &[TokenId], end: usize, protocol: &dyn Protocol) {
        let Some(open) = self.open.take() else { return };
        let draft_index = if open.intact {
            open.expected
        } else {
            protocol.region_box(&trunk[open.start..end]).and_then(|bbox| self.best_match(&bbox))
        };
        if let Some(index) = draft_index {
            self.regions[index].claimed = true;
        }
        let from = draft_index.or(open.expected).unwrap_or(self.regions.len());
        let next = self.regions.iter().skip(from).find(|r| !r.claimed);
        self.cursor = next.map_or(self.tokens.len(), |r| r.tokens.start);
        self.kept.push(TrunkRegion { tokens: open.start..end, draft_index });
    }

    /// The unclaimed drafted region that overlaps `bbox` most, if by half at least.
    fn best_match(&self, bbox: &Rect) -> Option<usize> {
        let overlaps = self.regions.iter().enumerate().filter(|(_, r)| !r.claimed && !r.is_end);
        overlaps
            .filter_map(|(index, r)| Some((index, r.bbox?.iou(bbox))))
            .filter(|(_, iou)| *iou >= SAME_REGION)
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(index, _)| index)
    }

    /// The region that ended with the trunk token `fork`, if one did.
    pub(super) fn region_ending_at(&self, fork: usize) -> Option<&TrunkRegion> {
        self.kept.iter().rev().find(|region| region.tokens.end == fork + 1)
    }

    /// Index of the drafted fork token of a drafted region.
    pub(super) fn drafted_fork(&self, region: usize, protocol: &dyn Protocol) -> Option<usize> {
        let mut tokens = self.regions.get(region)?.tokens.clone();
        tokens.find(|&i| protocol.is_fork(self.tokens[i].id))
    }

    /// Regions of a finished trunk of `trunk`'s tokens, and the drafted regions that none of them is.
    pub(super) fn finish(
        mut self,
        trunk: &[TokenId],
        protocol: &dyn Protocol,
    ) -> (Vec<TrunkRegion>, Vec<usize>) {
        if self.open.is_some_and(|open| open.start < trunk.len()) {
            self.close(trunk, trunk.len(), protocol);
        }
        self.kept.retain(|region| region.tokens.end <= trunk.len());
        let drafted = self.regions.iter().enumerate().filter(|(_, r)| !r.is_end);
        let claimed = |index: usize| self.kept.iter().any(|k| k.draft_index == Some(index));
        let unclaimed = drafted.map(|(index, _)| index).filter(|&index| !claimed(index)).collect();
        (self.kept, unclaimed)
    }
}
