//! One page while it is decoded: its trunk, its content branches, its cache, and the calls that they run in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::geometry::Rect;
use crate::graphs::{DecodeGraph, TokenId};
use crate::kv::{Branch, KvCache, Member, RowSource};
use crate::page::StopReason;

use super::call::{CallBuffers, CallOutput};
use super::content::ContentDraft;
use super::guesses::{Guess, GuessLength, GuessPolicy, head_guess};
use super::layout::LayoutDraft;
use super::looking::{Focus, Looking};
use super::protocol::{DraftToken, Protocol};
use super::retention::Watch;
use super::scheduler::{CallShape, Owner, Ready};
use super::stats::DecodeStats;
use super::stream::{Feed, Proposed, Stream};
use super::{BranchDecoding, DecodeError, GuessSettings, LoopSettings, PageDecoding, PageDrafts};

/// The stream that writes the layout.
#[derive(Debug)]
pub(super) struct Trunk {
    pub(super) stream: Stream,
    pub(super) draft: LayoutDraft,
    pub(super) guess: Option<Guess>,
    pub(super) guess_length: GuessLength,
    pub(super) round: usize,
}

/// A stream that writes one region's content.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) fork_index: usize,
    pub(super) draft_index: Option<usize>,
    pub(super) stream: Stream,
    pub(super) draft: ContentDraft,
    pub(super) guess: Option<Guess>,
    pub(super) guess_length: GuessLength,
    /// `None` once it has stopped.
    pub(super) branch: Option<Branch>,
    /// Its region's box, in px of the model's raster.
    pub(super) bbox: Option<Rect>,
    /// Until it knows what it keeps of the prefix.
    pub(super) watch: Option<Watch>,
    /// Its suffix was given up for an older branch; it runs again when there is room.
    pub(super) preempted: bool,
    /// Steps in which it has run.
    pub(super) round: usize,
}

impl Content {
    pub(super) fn proposal(&self) -> Proposed<'_> {
        self.draft.proposal().or_guess(self.guess.as_ref())
    }
}

/// A page being decoded.
pub(super) struct PageState<'p> {
    pub(super) protocol: &'p dyn Protocol,
    pub(super) settings: LoopSettings,
    pub(super) kv: KvCache,
    /// Order of the first token after the prefix.
    pub(super) next_order: f32,
    pub(super) trunk: Trunk,
    pub(super) contents: Vec<Content>,
    pub(super) content_drafts: BTreeMap<usize, Vec<DraftToken>>,
    /// Drafted forks without a branch.
    pub(super) settled: BTreeSet<usize>,
    /// Fork tokens of the trunk whose branch has not started.
    pub(super) forks: VecDeque<usize>,
    pub(super) round: usize,
    pub(super) looking: Looking,
    pub(super) guesses: GuessPolicy,
    /// Hidden states of streams that may be guessed for, by owner: after which token.
    pub(super) asked: Vec<Asked>,
    pub(super) stats: DecodeStats,
}

/// A stream for which the multi-token head is to draft.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) owner: Owner,
    pub(super) hidden: Vec<f32>,
    pub(super) token: TokenId,
}

/// A call that a page wants made.
#[derive(Debug, Default)]
pub(super) struct PageCall {
    owners: Vec<Owner>,
    pub(super) feeds: Vec<Feed>,
    focus: Focus,
}

impl PageCall {
    pub(super) fn shape(&self) -> CallShape {
        let tokens_per_row = self.feeds.iter().map(|feed| feed.tokens.len()).max().unwrap_or(1);
        // What single rows look at is asked and narrowed page by page.
        CallShape { rows: self.feeds.len(), tokens_per_row, may_share: self.focus.is_plain() }
    }
}

impl<'p> PageState<'p> {
    pub(super) fn new(
        protocol: &'p dyn Protocol,
        settings: LoopSettings,
        kv: KvCache,
        drafts: PageDrafts,
        (graph, next_order): (&dyn DecodeGraph, f32),
    ) -> Result<PageState<'p>, DecodeError> {
        let prompt = protocol.trunk_prompt();
        if prompt.is_empty() {
            return Err(DecodeError::EmptyPrompt);
        }
        let trunk = Trunk {
            stream: Stream::new(
                &prompt,
                protocol.trunk_start().after(next_order),
                settings.max_trunk_tokens,
                settings.max_feed,
            ),
            draft: LayoutDraft::new(drafts.trunk, protocol),
            guess: None,
            guess_length: GuessLength::START,
            round: 0,
        };
        Ok(PageState {
            protocol,
            kv,
            next_order,
            trunk,
            contents: Vec::new(),
            content_drafts: drafts.content,
            settled: drafts.settled,
            forks: VecDeque::new(),
            round: 1,
            looking: Looking::new(&settings, graph),
            guesses: GuessPolicy::new(GuessSettings {
                head: settings.guesses.head && graph.head_drafts() > 0,
                ..settings.guesses
            }),
            settings,
            asked: Vec::new(),
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
            let feed_len = content.stream.feed_len(content.proposal().tokens.len());
            Ready { owner: Owner::Content(i), feed_len }
        });
        let mut ready: Vec<Ready> = contents.collect();
        let trunk = &self.trunk;
        if running.len() < max_rows && trunk.stream.stop().is_none() && trunk.round < self.round {
            let drafts = self.trunk_proposal().tokens.len();
            ready.push(Ready { owner: Owner::Trunk, feed_len: trunk.stream.feed_len(drafts) });
        }
        ready
    }

    /// The call of `owners`: what its rows feed, and what it is to look at.
    pub(super) fn plan(&mut self, mut owners: Vec<Owner>, parts: usize) -> PageCall {
        // Rows in the order of their slots can be read in place; those without a suffix fit at the end.
        owners.sort_by_key(|&owner| (self.slot(owner).unwrap_or(usize::MAX), owner));
        let feeds: Vec<Feed> = owners.iter().map(|&owner| self.feed(owner, parts)).collect();
        let contents: Vec<Option<&Content>> = owners.iter().map(|&owner| self.content(owner)).collect();
        let focus = self.looking.plan(&feeds, &contents);
        PageCall { owners, feeds, focus }
    }

    /// Runs a call by itself and takes its outputs.
    pub(super) fn run(
        &mut self,
        graph: &mut dyn DecodeGraph,
        buffers: &mut CallBuffers,
        call: &PageCall,
    ) -> Result<(), DecodeError> {
        let sources = call.owners.iter().map(|&owner| row_source(&self.contents, owner));
        let rows: Vec<(RowSource<'_>, &Feed)> = sources.zip(&call.feeds).collect();
        let started = std::time::Instant::now();
        let output = buffers.run(graph, &mut self.kv, &rows, &call.focus)?;
        self.stats.graph_seconds += started.elapsed().as_secs_f64();
        self.take(graph, call, &output)
    }

    /// Cache and rows of the page in a call that pages share.
    pub(super) fn member(&mut self, call: &PageCall) -> Member<'_, '_> {
        let PageState { kv, contents, .. } = self;
        (kv, call.owners.iter().map(|&owner| row_source(contents, owner)).collect())
    }

    /// Takes the outputs of a call.
    pub(super) fn take(
        &mut self,
        graph: &mut dyn DecodeGraph,
        call: &PageCall,
        output: &CallOutput,
    ) -> Result<(), DecodeError> {
        let PageCall { owners, feeds, focus } = call;
        self.stats.note_call(feeds.iter().map(|f| f.tokens.len()));
        self.stats.prefix_read += output.prefix_read;
        let sources: Vec<RowSource<'_>> =
            owners.iter().map(|&owner| row_source(&self.contents, owner)).collect();
        self.looking.take(&mut self.kv, focus, &sources, output);
        for (at, &row) in focus.watched.iter().enumerate() {
            if let Owner::Content(index) = owners[row as usize] {
                let content = &mut self.contents[index];
                self.looking.take_saliency(&mut self.kv, content, output, (at, focus.watched.len()));
            }
        }
        // Oldest branches first: they may take the room of younger ones.
        let mut order: Vec<usize> = (0..owners.len()).collect();
        order.sort_by_key(|&row| owners[row]);
        for row in order {
            match owners[row] {
                Owner::Content(index) => self.advance_content(index, row, &feeds[row], output),
                Owner::Trunk => self.advance_trunk(row, &feeds[row], output),
            }
        }
        self.ask_head(graph)?;
        self.stats.kv_peak_bytes = self.kv.peak_bytes();
        Ok(())
    }

    /// Lets the multi-token head draft for the streams that have no other draft.
    fn ask_head(&mut self, graph: &mut dyn DecodeGraph) -> Result<(), DecodeError> {
        let asked = std::mem::take(&mut self.asked);
        if asked.is_empty() {
            return Ok(());
        }
        let hidden: Vec<f32> = asked.iter().flat_map(|asked| &asked.hidden).copied().collect();
        let tokens: Vec<TokenId> = asked.iter().map(|asked| asked.token).collect();
        let started = std::time::Instant::now();
        let drafts = graph.draft(&hidden, &tokens)?;
        self.stats.head_seconds += started.elapsed().as_secs_f64();
        let rows = drafts.ids.chunks_exact(drafts.count.max(1));
        for ((asked, ids), probabilities) in
            asked.iter().zip(rows).zip(drafts.probabilities.chunks_exact(drafts.count.max(1)))
        {
            match asked.owner {
                Owner::Trunk => {
                    self.trunk.guess = head_guess(ids, probabilities, self.trunk.guess_length);
                }
                Owner::Content(index) => {
                    // A looping trunk may have taken the region back.
                    if let Some(content) = self.contents.get_mut(index) {
                        content.guess = head_guess(ids, probabilities, content.guess_length);
                    }
                }
            }
        }
        Ok(())
    }

    fn content(&self, owner: Owner) -> Option<&Content> {
        match owner {
            Owner::Trunk => None,
            Owner::Content(index) => self.contents.get(index),
        }
    }

    pub(super) fn trunk_proposal(&self) -> Proposed<'_> {
        let drafted = self.trunk.draft.proposal(&self.settings.acceptance, self.protocol);
        drafted.or_guess(self.trunk.guess.as_ref())
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
                self.trunk.stream.feed(self.trunk_proposal(), parts, self.protocol)
            }
            Owner::Content(index) => {
                let content = &mut self.contents[index];
                content.round = self.round;
                content.preempted = false;
                content.stream.feed(content.proposal(), parts, self.protocol)
            }
        }
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
