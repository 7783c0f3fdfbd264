//! What a call's outputs do to the streams of a page: tokens are kept, branches start, run out of room, and end.

use crate::kv::NewRows;
use crate::page::StopReason;

use super::call::CallOutput;
use super::content::{ContentDraft, Own};
use super::guesses::{GuessLength, Guesser};
use super::layout::Origin;
use super::page::{Asked, Content, PageState, Trunk};
use super::scheduler::Owner;
use super::stream::{Feed, Stream};
use super::verify::{Accepted, verify};

impl PageState<'_> {
    /// What the call brought the stream of `row`; `None` if its kept tokens were not all fed yet.
    fn accepted(&mut self, owner: Owner, row: usize, feed: &Feed, output: &CallOutput) -> Option<Accepted> {
        let drafted = feed.drafted.as_ref()?;
        let stream = match owner {
            Owner::Trunk => &self.trunk.stream,
            Owner::Content(index) => &self.contents[index].stream,
        };
        let scores = output.scores(row, feed);
        let mut accepted =
            verify(&stream.proposal(drafted), &scores, &self.settings.acceptance, self.protocol);
        match drafted.guesser {
            None => self.stats.note_drafts(&drafted.tokens),
            Some(guesser) => {
                // A guess that stood is what the model wrote.
                accepted.kept.iter_mut().for_each(|token| token.origin = None);
                self.learn(owner, guesser, drafted.tokens.len(), accepted.drafted);
            }
        }
        Some(accepted)
    }

    /// Takes what became of a guess.
    fn learn(&mut self, owner: Owner, guesser: Guesser, proposed: usize, accepted: usize) {
        if proposed == 0 {
            return;
        }
        self.stats.note_guess(guesser, proposed, accepted);
        self.guesses.learn(guesser, accepted);
        let length = match owner {
            Owner::Trunk => &mut self.trunk.guess_length,
            Owner::Content(index) => &mut self.contents[index].guess_length,
        };
        *length = length.after(proposed, accepted);
    }

    /// Guesses for a stream that has no other draft: by look-up at once, by the head after the call.
    fn guess(&mut self, owner: Owner, row: usize, feed: &Feed, accepted: usize, output: &CallOutput) {
        let (stream, drafted, length) = match owner {
            Owner::Trunk => {
                let drafted = self.trunk.draft.proposal(&self.settings.acceptance, self.protocol);
                (&self.trunk.stream, drafted, self.trunk.guess_length)
            }
            Owner::Content(index) => {
                let content = &self.contents[index];
                (&content.stream, content.draft.proposal(), content.guess_length)
            }
        };
        let wanted = stream.stop().is_none() && drafted.tokens.is_empty();
        let found = if wanted { self.guesses.look_up(stream.ids(), length) } else { None };
        if wanted
            && found.is_none()
            && self.guesses.asks_head()
            && let Some(&token) = stream.ids().last()
            && let Some(hidden) = output.hidden(row, feed.known - 1 + accepted)
        {
            self.asked.push(Asked { owner, hidden: hidden.to_vec(), token });
        }
        match owner {
            Owner::Trunk => self.trunk.guess = found,
            Owner::Content(index) => self.contents[index].guess = found,
        }
    }

    pub(super) fn advance_trunk(&mut self, row: usize, feed: &Feed, output: &CallOutput) {
        if let Some(accepted) = self.accepted(Owner::Trunk, row, feed, output) {
            let guessed = feed.drafted.as_ref().is_some_and(|drafted| drafted.guesser.is_some());
            let Trunk { stream, draft, .. } = &mut self.trunk;
            let first = draft.cursor();
            let before = stream.ids().len();
            for (index, token) in accepted.kept.iter().enumerate() {
                let origin = match accepted.refused {
                    _ if guessed => Origin::Model,
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
            self.guess(Owner::Trunk, row, feed, accepted.drafted, output);
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
            let region = self.trunk.draft.region_ending_at(fork);
            let draft_index = region.and_then(|region| region.draft_index);
            let bbox = region.and_then(|region| self.protocol.region_box(&trunk[region.tokens.clone()]));
            let drafted_fork = draft_index.and_then(|r| self.trunk.draft.drafted_fork(r, self.protocol));
            if drafted_fork.is_some_and(|index| self.settled.contains(&index)) {
                continue;
            }
            let draft = drafted_fork.and_then(|index| self.content_drafts.remove(&index)).unwrap_or_default();
            let runs = self.contents.len() < self.settings.max_branches;
            let max_tokens = if runs { self.settings.max_tokens } else { 0 };
            let start = self.protocol.branch_start(trunk, fork).after(self.next_order);
            let stream =
                Stream::new(&[self.protocol.child_token()], start, max_tokens, self.settings.max_feed);
            let branch = stream.stop().is_none().then(|| self.kv.fork(fork + sees_fork));
            self.contents.push(Content {
                fork_index: fork,
                draft_index,
                stream,
                draft: ContentDraft::new(draft),
                guess: None,
                guess_length: GuessLength::START,
                watch: branch.as_ref().and(self.looking.watch()),
                branch,
                bbox,
                preempted: false,
                round: self.round,
            });
        }
    }

    pub(super) fn advance_content(&mut self, index: usize, row: usize, feed: &Feed, output: &CallOutput) {
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
            if feed.drafted.as_ref().is_some_and(|drafted| drafted.guesser.is_some()) {
                // All of them are the model's, one after another.
                for kept in (0..accepted.kept.len()).rev() {
                    let so_far = stream.ids().len().saturating_sub(kept);
                    draft.advance(0, Some(Own::AtEnd), &stream.ids()[..so_far], self.protocol);
                }
            } else {
                let own = accepted.kept.get(accepted.drafted).map(|token| match accepted.refused {
                    Some(_) => Own::Instead(token.id),
                    None => Own::AtEnd,
                });
                draft.advance(accepted.drafted, own, stream.ids(), self.protocol);
            }
            self.guess(Owner::Content(index), row, feed, accepted.drafted, output);
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
    fn append(&mut self, index: usize, rows: &NewRows<'_>, keep: usize) {
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
}
