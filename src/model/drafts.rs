//! What a page's decoding starts from and comes back to: drafted regions as tokens, and kept tokens as regions.

use std::collections::{BTreeMap, BTreeSet};

use crate::decode::protocol::{DraftToken, KeptToken};
use crate::decode::{AcceptanceRule, BranchDecoding, PageDecoding, PageDrafts, stands_unseen};
use crate::drafts::content_draft::content_draft;
use crate::drafts::trunk_draft::trunk_draft;
use crate::graphs::manifest::Dropped;
use crate::graphs::pack::Pack;
use crate::page::{Region, StopReason};
use crate::tokens::content::{ContentDraft, read_region};
use crate::tokens::trunk::{TrunkDraft, read_head};
use crate::vision::PixelMapping;

/// Drafts of one page and the way back from kept tokens to regions.
pub(super) struct Drafts {
    mapping: PixelMapping,
    pub(super) trunk: TrunkDraft,
    /// By drafted region (index into `trunk.regions`).
    pub(super) content: BTreeMap<usize, ContentDraft>,
    /// Drafted regions (as in `content`) whose branch need not run.
    pub(super) settled: BTreeSet<usize>,
}

impl Drafts {
    pub(super) fn new(
        regions: &[Region],
        pack: &Pack,
        mapping: PixelMapping,
        rule: &AcceptanceRule,
    ) -> Drafts {
        let trunk = if regions.is_empty() {
            TrunkDraft::default()
        } else {
            trunk_draft(regions, &pack.grammar, &mapping).unwrap_or_default()
        };
        let content: BTreeMap<usize, ContentDraft> = trunk
            .regions
            .iter()
            .enumerate()
            .filter(|(_, drafted)| drafted.fork.is_some())
            .filter_map(|(n, drafted)| {
                Some((n, content_draft(&regions[drafted.region], &pack.grammar, &mapping)?))
            })
            .collect();
        let settled = content
            .iter()
            .filter(|(_, draft)| all_stand(&draft.tokens, rule, pack))
            .map(|(&n, _)| n)
            .collect();
        Drafts { mapping, trunk, content, settled }
    }

    /// Regions whose content nobody drafted have none.
    pub(super) fn settle_undrafted(&mut self) {
        let forks = self.trunk.regions.iter().enumerate().filter(|(_, r)| r.fork.is_some());
        self.settled.extend(forks.map(|(n, _)| n).filter(|n| !self.content.contains_key(n)));
    }

    /// Does the whole drafted page stand whatever the model says?
    pub(super) fn all_settled(&self, pack: &Pack, rule: &AcceptanceRule) -> bool {
        let forks = self.trunk.regions.iter().enumerate().filter(|(_, r)| r.fork.is_some());
        !self.trunk.tokens.is_empty()
            && forks.map(|(n, _)| n).all(|n| self.settled.contains(&n))
            && all_stand(&self.trunk.tokens, rule, pack)
    }

    pub(super) fn for_loop(&self) -> PageDrafts {
        let fork = |n: usize| self.trunk.regions[n].fork;
        let open = self.content.iter().filter(|(n, _)| !self.settled.contains(n));
        PageDrafts {
            trunk: self.trunk.tokens.clone(),
            content: open.filter_map(|(&n, draft)| Some((fork(n)?, draft.tokens.clone()))).collect(),
            settled: self.settled.iter().filter_map(|&n| fork(n)).collect(),
        }
    }

    /// Regions of the decoded trunk with what their branches wrote; then what the trunk left unclaimed. A region that the model
    /// has no token for keeps its place after the region before it.
    pub(super) fn regions(&self, drafted: &[Region], decoding: &PageDecoding, pack: &Pack) -> Vec<Region> {
        let mut out = Vec::new();
        let mut left: Vec<bool> = vec![true; drafted.len()];
        for region in &self.trunk.regions {
            left[region.region] = false;
        }
        let mut undraftable = (0..drafted.len()).filter(|&i| left[i]).peekable();
        for part in &decoding.regions {
            let source = part.draft_index.and_then(|n| Some(self.trunk.regions.get(n)?.region));
            while source.is_some_and(|s| undraftable.peek().is_some_and(|&i| i < s)) {
                out.extend(undraftable.next().map(|i| unverified(&drafted[i])));
            }
            let tokens = &decoding.trunk[part.tokens.clone()];
            let branch = decoding.branches.iter().find(|b| part.tokens.contains(&b.fork_index));
            out.extend(self.region(drafted, tokens, part.draft_index, branch, pack));
        }
        out.extend(undraftable.map(|i| unverified(&drafted[i])));
        let unclaimed = decoding.unclaimed.iter().filter_map(|&n| self.trunk.regions.get(n));
        out.extend(
            unclaimed.map(|r| Region { stop: Some(StopReason::Unclaimed), ..drafted[r.region].clone() }),
        );
        out
    }

    fn region(
        &self,
        drafted: &[Region],
        tokens: &[KeptToken],
        draft_index: Option<usize>,
        branch: Option<&BranchDecoding>,
        pack: &Pack,
    ) -> Option<Region> {
        let source = draft_index.and_then(|n| Some(&drafted[self.trunk.regions.get(n)?.region]));
        let head = read_head(tokens, &self.trunk, drafted, &pack.grammar, &self.mapping);
        let original = match (head, source) {
            (Some(head), Some(source)) => Region { kind: head.kind, bbox: head.bbox, ..source.clone() },
            (Some(head), None) => Region {
                kind: head.kind,
                score: 0.0,
                bbox: head.bbox,
                words: Vec::new(),
                cells: None,
                markup: None,
                stop: None,
            },
            (None, Some(source)) => source.clone(),
            (None, None) => return None,
        };
        let branch = match head.map_or(Dropped::Nothing, |head| head.dropped) {
            Dropped::Nothing => branch,
            Dropped::Content => None,
            Dropped::Region => return None,
        };
        Some(match branch {
            Some(branch) => {
                let draft = draft_index.and_then(|n| self.content.get(&n));
                read_region(&branch.tokens, draft, &original, &pack.grammar, &self.mapping, Some(branch.stop))
            }
            None if draft_index.is_some_and(|n| self.settled.contains(&n)) => unverified(&original),
            None => original,
        })
    }
}

fn all_stand(tokens: &[DraftToken], rule: &AcceptanceRule, pack: &Pack) -> bool {
    tokens.iter().all(|token| stands_unseen(token, rule, &*pack.grammar))
}

pub(super) fn unverified(region: &Region) -> Region {
    Region { stop: Some(StopReason::Unverified), ..region.clone() }
}
