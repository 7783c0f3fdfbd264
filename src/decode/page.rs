//! One page while it is decoded: its trunk, its content branches, its cache; what a call's outputs do to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::graphs::{DecodeGraph, TokenId};
use crate::kv::{Branch, KvCache, RowSource};
use crate::page::StopReason;

use super::call::{CallBuffers, CallOutput, Focus};
use super::content::{ContentDraft, Own};
use super::fixation::PageFixation;
use super::layout::{LayoutDraft, Origin};
use super::protocol::{DraftToken, Protocol};
use super::scheduler::{Owner, Ready};
use super::stats::DecodeStats;
use super::stream::{Feed, Stream};
use super::verify::{Accepted, verify};
use super::{BranchDecoding, DecodeError, LoopSettings, PageDecoding, PageDrafts};

/// The stream that writes the layout.
#[derive(Debug)]
struct Trunk {
    stream: Stream,
    draft: LayoutDraft,
    round: usize,
}

/// A stream that writes one region's content.
#[derive(Debug)]
struct Content {
    fork_index: usize,
    draft_index: Option<usize>,
    stream: Stream,
    draft: ContentDraft,
    /// `None` once it has stopped.
    branch: Option<Branch>,
    /// Its suffix was given up for an older branch; it runs again when there is room.
    preempted: bool,
    /// Steps in which it has run.
    round: usize,
}

/// A page being decoded.
pub(super) struct PageState<'p> {
    protocol: &'p dyn Protocol,
    settings: &'p LoopSettings,
    kv: KvCache,
    /// Order of the first token after the prefix.
    next_order: f32,
    trunk: Trunk,
    contents: Vec<Content>,
    content_drafts: BTreeMap<usize, Vec<DraftToken>>,
    /// Drafted forks without a branch.
    settled: BTreeSet<usize>,
    /// Fork tokens of the trunk whose branch has not started.
    forks: VecDeque<usize>,
    round: usize,
    buffers: CallBuffers,
    fixation: Option<PageFixation>,
    stats: DecodeStats,
}

impl<'p> PageState<'p> {
    pub(super) fn new(
        protocol: &'p dyn Protocol,
        settings: &'p LoopSettings,
        kv: KvCache,
        drafts: PageDrafts,
        (focal_layers, next_order): (&[usize], f32),
    ) -> Result<PageState<'p>, DecodeError> {
        let prompt = protocol.trunk_prompt();
        if prompt.is_empty() {
            return Err(DecodeError::EmptyPrompt);
        }
        let trunk = Trunk {
            stream: Stream::new(&prompt, protocol.trunk_start().after(next_order), settings.max_trunk_tokens),
            draft: LayoutDraft::new(drafts.trunk, protocol),
            round: 0,
        };
        Ok(PageState {
            protocol,
            settings,
            kv,
            next_order,
            trunk,
            contents: Vec::new(),
            content_drafts: drafts.content,
            settled: drafts.settled,
            forks: VecDeque::new(),
            round: 1,
            buffers: CallBuffers::default(),
            fixation: settings.fixation.as_ref().and_then(|f| PageFixation::new(f, focal_layers)),
            stats: DecodeStats::default(),
        })
    }

    /// Streams that have not run in this step, children before the trunk; starts a new step when all have. Empty: the page is done.
    pub(super) fn ready(&mut self) -> Vec<Ready> {
        let mut ready = self.ready_in_round();
        if ready.is_empty() {
            self.round += 1;
            self.stats.steps += 1;
            ready = self.ready_in_round();
        }
        ready
    }

    fn ready_in_round(&self) -> Vec<Ready> {
        let max_rows = self.settings.max_rows.max(1);
        let live = self.contents.iter().enumerate().filter(|(_, c)| c.branch.is_some());
        // The oldest branch always runs: it may take the room of all younger ones.
        let running: Vec<usize> = live
            .enumerate()
            .filter(|(age, (_, c))| *age == 0 || !c.preempted || self.kv.has_room(c.stream.ids().len()))
            .map(|(_, (index, _))| index)
            .take(max_rows)
            .collect();
        let contents = running.iter().filter(|&&i| self.contents[i].round < self.round).map(|&i| {
            let content = &self.contents[i];
            let feed_len = content.stream.feed_len(content.draft.proposal().0.len());
            Ready { owner: Owner::Content(i), feed_len }
        });
        let mut ready: Vec<Ready> = contents.collect();
        let trunk = &self.trunk;
        if running.len() < max_rows && trunk.stream.stop().is_none() && trunk.round < self.round {
            let drafts = trunk.draft.proposal(&self.settings.acceptance, self.protocol).0.len();
            ready.push(Ready { owner: Owner::Trunk, feed_len: trunk.stream.feed_len(drafts) });
        }
        ready
    }

    /// Runs one call for `owners` and takes its outputs.
    pub(super) fn run(
        &mut self,
        graph: &mut dyn DecodeGraph,
        mut owners: Vec<Owner>,
    ) -> Result<(), DecodeError> {
        // Rows in the order of their slots can be read in place; those without a suffix fit at the end.
        owners.sort_by_key(|&owner| (self.slot(owner).unwrap_or(usize::MAX), owner));
        let parts = graph.dims().position_parts;
        let feeds: Vec<Feed> = owners.iter().map(|&owner| self.feed(owner, parts)).collect();
        let rows: Vec<(RowSource<'_>, &Feed)> = owners
            .iter()
            .zip(&feeds)
            .map(|(&owner, feed)| (row_source(&self.contents, owner), feed))
            .collect();
        let focus = self.focus(&feeds);
        let started = std::time::Instant::now();
        let output = self.buffers.run(graph, &mut self.kv, &rows, focus)?;
        self.stats.graph_seconds += started.elapsed().as_secs_f64();
        self.stats.note_call(feeds.iter().map(|f| f.tokens.len()));
        self.stats.prefix_read += output.prefix_read;
        self.fixate(&owners, &feeds, &output, graph.dims().layers);
        // Oldest branches first: they may take the room of younger ones.
        let mut order: Vec<usize> = (0..owners.len()).collect();
        order.sort_by_key(|&row| owners[row]);
        for row in order {
            match owners[row] {
                Owner::Content(index) => self.advance_content(index, row, &feeds[row], &output),
                Owner::Trunk => self.advance_trunk(row, &feeds[row], &output),
            }
        }
        self.stats.kv_peak_bytes = self.kv.peak_bytes();
        Ok(())
    }

    /// Only calls of one token a row are focused: drafts look at many places.
    fn focus(&self, feeds: &[Feed]) -> Focus {
        let Some(fixation) = &self.fixation else { return Focus::default() };
        let single = feeds.iter().all(|feed| feed.tokens.len() == 1);
        let max_share = (single && fixation.is_known()).then(|| fixation.max_share());
        Focus { max_share, scores: single }
    }

    /// Takes where the rows of a call looked: they look there in their next step. A fixation lasts for one step.
    fn fixate(&mut self, owners: &[Owner], feeds: &[Feed], output: &CallOutput, layers: usize) {
        let Some(fixation) = &mut self.fixation else { return };
        let (scores, image_attention) = output.focal();
        let rows = output.rows();
        if feeds.iter().all(|feed| feed.tokens.len() == 1)
            && !image_attention.is_empty()
            && let Some(governing) = fixation.profile(image_attention, layers, rows, owners.len())
        {
            self.kv.set_governing(governing);
        }
        for (row, &owner) in owners.iter().enumerate() {
            let sets = if scores.is_empty() { None } else { fixation.sets(scores, row, rows) };
            self.kv.fixate(&row_source(&self.contents, owner), sets);
        }
    }

    fn slot(&self, owner: Owner) -> Option<usize> {
        match owner {
            Owner::Trunk => None,
            Owner::Content(index) => {
                self.contents[index].branch.as_ref().and_then(|branch| self.kv.slot(branch))
            }
        }
    }

    fn feed(&mut self, owner: Owner, parts: usize) -> Feed {
        match owner {
            Owner::Trunk => {
                self.trunk.round = self.round;
                let proposal = self.trunk.draft.proposal(&self.settings.acceptance, self.protocol);
                self.trunk.stream.feed(proposal, parts, self.protocol)
            }
            Owner::Content(index) => {
                let content = &mut self.contents[index];
                content.round = self.round;
                content.preempted = false;
                let (drafts, strict) = content.draft.proposal();
                content.stream.feed((drafts, strict, false), parts, self.protocol)
            }
        }
    }

    /// What the call brought the stream of `row`; `None` if its kept tokens were not all fed yet.
    fn accepted(&mut self, owner: Owner, row: usize, feed: &Feed, output: &CallOutput) -> Option<Accepted> {
        let drafted = feed.drafted.as_ref()?;
        let stream = match owner {
            Owner::Trunk => &self.trunk.stream,
            Owner::Content(index) => &self.contents[index].stream,
        };
        let scores = output.scores(row, feed);
        let accepted = verify(&stream.proposal(drafted), &scores, &self.settings.acceptance, self.protocol);
        self.stats.note_drafts(&drafted.tokens);
        Some(accepted)
    }

    fn advance_trunk(&mut self, row: usize, feed: &Feed, output: &CallOutput) {
        if let Some(accepted) = self.accepted(Owner::Trunk, row, feed, output) {
            let Trunk { stream, draft, .. } = &mut self.trunk;
            let first = draft.cursor();
            let before = stream.ids().len();
            for (index, token) in accepted.kept.iter().enumerate() {
                let origin = match accepted.refused {
                    _ if index < accepted.drafted => Origin::Draft(first + index),
                    Some(refused) => Origin::Instead(first + refused),
                    None => Origin::Model,
                };
                stream.push(*token, self.protocol.is_trunk_end(token.id), self.protocol);
                if stream.stop() == Some(StopReason::Loop) {
                    break;
                }
                draft.push(stream.ids(), origin, self.protocol);
                if self.protocol.is_fork(token.id) {
                    self.forks.push_back(stream.ids().len() - 1);
                }
                if stream.stop().is_some() {
                    break;
                }
            }
            self.stats.note_kept(stream.tokens_from(before));
        }
        let len = self.trunk.stream.ids().len();
        self.drop_forks_from(len);
        let (cached, keep) = (self.trunk.stream.cached(), self.trunk.stream.cacheable(feed));
        if keep < cached {
            self.kv.truncate_trunk(keep);
        } else {
            self.kv.append_trunk(&output.new_rows(row, keep - cached));
        }
        self.trunk.stream.set_cached(keep, self.protocol);
        self.start_branches();
    }

    /// Forgets forks and branches of trunk tokens from `len` on: a looping trunk lost them.
    fn drop_forks_from(&mut self, len: usize) {
        self.forks.retain(|&fork| fork < len);
        while let Some(content) = self.contents.pop_if(|c| c.fork_index >= len) {
            if let Some(branch) = content.branch {
                self.kv.release(branch);
            }
        }
    }

    /// Starts the branches whose visible trunk is in the cache.
    fn start_branches(&mut self) {
        let sees_fork = usize::from(self.protocol.fork_visible());
        while let Some(fork) = self.forks.pop_front_if(|fork| *fork + sees_fork <= self.kv.trunk_len()) {
            let trunk = &self.trunk.stream.ids()[..=fork];
            let draft_index = self.trunk.draft.region_ending_at(fork).and_then(|region| region.draft_index);
            let drafted_fork = draft_index.and_then(|r| self.trunk.draft.drafted_fork(r, self.protocol));
            if drafted_fork.is_some_and(|index| self.settled.contains(&index)) {
                continue;
            }
            let draft = drafted_fork.and_then(|index| self.content_drafts.remove(&index)).unwrap_or_default();
            let runs = self.contents.len() < self.settings.max_branches;
            let max_tokens = if runs { self.settings.max_tokens } else { 0 };
            let start = self.protocol.branch_start(trunk, fork).after(self.next_order);
            let stream = Stream::new(&[self.protocol.child_token()], start, max_tokens);
            let branch = stream.stop().is_none().then(|| self.kv.fork(fork + sees_fork));
            self.contents.push(Content {
                fork_index: fork,
                draft_index,
                stream,
                draft: ContentDraft::new(draft),
                branch,
                preempted: false,
                round: self.round,
            });
        }
    }

    fn advance_content(&mut self, index: usize, row: usize, feed: &Feed, output: &CallOutput) {
        // An older branch of this call may have taken the suffix: the outputs still count, the new rows have no place.
        let had_suffix = self.contents[index].stream.cached();
        let preempted = self.contents[index].preempted;
        if let Some(accepted) = self.accepted(Owner::Content(index), row, feed, output) {
            let Content { stream, draft, .. } = &mut self.contents[index];
            let before = stream.ids().len();
            for token in &accepted.kept {
                stream.push(*token, self.protocol.is_branch_end(token.id), self.protocol);
            }
            self.stats.note_kept(stream.tokens_from(before));
            let own = accepted.kept.get(accepted.drafted).map(|token| match accepted.refused {
                Some(_) => Own::Instead(token.id),
                None => Own::AtEnd,
            });
            draft.advance(accepted.drafted, own, stream.ids(), self.protocol);
        }
        if self.contents[index].stream.stop().is_some() {
            if let Some(branch) = self.contents[index].branch.take() {
                self.kv.release(branch);
            }
        } else if !preempted {
            let keep = self.contents[index].stream.cacheable(feed);
            self.append(index, &output.new_rows(row, keep - had_suffix), keep);
        }
    }

    /// Appends to a branch's suffix; younger branches make room where there is none, or else this one waits.
    fn append(&mut self, index: usize, rows: &crate::kv::NewRows<'_>, keep: usize) {
        loop {
            let content = &mut self.contents[index];
            let Some(branch) = &content.branch else { return };
            if self.kv.append(branch, rows).is_some() {
                content.stream.set_cached(keep, self.protocol);
                return;
            }
            let victim = (index + 1..self.contents.len()).rev().find(|&younger| {
                self.contents[younger].branch.as_ref().is_some_and(|branch| self.kv.slot(branch).is_some())
            });
            self.preempt(victim.unwrap_or(index));
            if victim.is_none() {
                return;
            }
        }
    }

    /// Takes a branch's suffix away; its kept tokens are fed again when there is room.
    fn preempt(&mut self, index: usize) {
        let content = &mut self.contents[index];
        let Some(branch) = &content.branch else { return };
        self.kv.truncate(branch, 0);
        content.stream.set_cached(0, self.protocol);
        content.preempted = true;
        self.stats.preempted += 1;
    }

    /// The finished page.
    pub(super) fn finish(mut self) -> PageDecoding {
        let budget = self.forks.iter().map(|&fork_index| BranchDecoding {
            fork_index,
            tokens: Vec::new(),
            stop: StopReason::Budget,
            draft_index: self.trunk.draft.region_ending_at(fork_index).and_then(|region| region.draft_index),
        });
        let never_started: Vec<BranchDecoding> = budget.collect();
        let branches = self.contents.into_iter().map(|content| BranchDecoding {
            fork_index: content.fork_index,
            draft_index: content.draft_index,
            stop: content.stream.stop().unwrap_or(StopReason::Budget),
            tokens: content.stream.into_written(),
        });
        let branches = branches.chain(never_started).collect();
        let ids: Vec<TokenId> = self.trunk.stream.ids().to_vec();
        let (regions, unclaimed) = self.trunk.draft.finish(&ids, self.protocol);
        self.stats.kv_peak_bytes = self.kv.peak_bytes();
        assert_eq!(self.kv.held_slots(), 0, "a finished page holds suffixes");
        PageDecoding {
            stop: self.trunk.stream.stop().unwrap_or(StopReason::Budget),
            trunk: self.trunk.stream.into_tokens(),
            regions,
            branches,
            unclaimed,
            stats: self.stats,
        }
    }
}

fn row_source(contents: &[Content], owner: Owner) -> RowSource<'_> {
    match owner {
        Owner::Trunk => RowSource::Trunk,
        Owner::Content(index) => contents[index].branch.as_ref().map_or(RowSource::Filler, RowSource::Branch),
    }
}
