//! Pages that decode together. Each has its own streams, drafts and cache; short calls of several pages are one call of the graph,
//! which reads the weights once for all of them.

use std::collections::BTreeMap;

use crate::graphs::{DecodeGraph, Dims, Prefix};
use crate::kv::{KvCache, KvLimits, PagePool};

use super::call::{CallBuffers, CallOutput};
use super::page::{PageCall, PageState};
use super::protocol::Protocol;
use super::scheduler::{CallShape, next_call, shared_call};
use super::{DecodeError, LoopSettings, PageDecoding, PageDrafts};

/// A page to decode after its prefix.
#[derive(Debug)]
pub struct PageJob {
    pub prefix: Prefix,
    pub drafts: PageDrafts,
    pub settings: LoopSettings,
}

/// Capacities of the shared memory grow by so many positions.
const POOL_STEP: usize = 64;

/// Pages under way; `T` names a page to the caller.
pub struct Pages<'p, T> {
    protocol: &'p dyn Protocol,
    max_pages: usize,
    /// Bytes of keys and values that all pages together may hold.
    budget_bytes: usize,
    /// A page's place in the pool is its index.
    running: Vec<Running<'p, T>>,
    waiting: Option<(T, PageJob)>,
    pool: PagePool,
    buffers: CallBuffers,
}

struct Running<'p, T> {
    ticket: T,
    page: PageState<'p>,
    budget_bytes: usize,
}

/// A page that is done, or could not be decoded.
pub type Done<T> = (T, Result<PageDecoding, DecodeError>);

impl<'p, T> Pages<'p, T> {
    /// At most `max_pages` at once (1 on a graph whose steps are of one page), and what they hold stays within `budget_bytes`.
    pub fn new(
        graph: &dyn DecodeGraph,
        protocol: &'p dyn Protocol,
        max_pages: usize,
        budget_bytes: usize,
    ) -> Pages<'p, T> {
        Pages {
            protocol,
            max_pages: if graph.joins_pages() { max_pages.max(1) } else { 1 },
            budget_bytes,
            running: Vec::new(),
            waiting: None,
            pool: PagePool::new(graph.dims(), POOL_STEP),
            buffers: CallBuffers::default(),
        }
    }

    /// Can another page be admitted?
    pub fn has_room(&self) -> bool {
        self.waiting.is_none() && self.running.len() < self.max_pages
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_none() && self.running.is_empty()
    }

    /// Pages under way.
    pub fn len(&self) -> usize {
        self.running.len() + usize::from(self.waiting.is_some())
    }

    /// Takes a page in; it starts as soon as its keys and values have room. Only while [`Self::has_room`].
    pub fn admit(&mut self, ticket: T, job: PageJob) {
        assert!(self.has_room(), "a page too many");
        self.waiting = Some((ticket, job));
    }

    /// The next step of every page, and the pages that are done with it.
    pub fn step(&mut self, graph: &mut dyn DecodeGraph) -> Vec<Done<T>> {
        let mut done = Vec::new();
        done.extend(self.start_waiting(graph));
        let mut calls = Vec::with_capacity(self.running.len());
        let mut place = 0;
        while place < self.running.len() {
            match self.plan(place, graph.dims()) {
                Ok(Some(call)) => {
                    calls.push(call);
                    place += 1;
                }
                ended => {
                    // The page that takes its place has not been planned.
                    let ended = ended.map(drop);
                    done.push(self.end(place, ended, graph));
                }
            }
        }
        let failed = self.run(graph, calls);
        for (place, error) in failed.into_iter().rev() {
            done.push(self.end(place, Err(error), graph));
        }
        done
    }

    /// Starts the page that waits, if what it may need fits beside what the others may.
    fn start_waiting(&mut self, graph: &mut dyn DecodeGraph) -> Option<Done<T>> {
        let (_, job) = self.waiting.as_ref()?;
        let dims = graph.dims();
        let limits = KvLimits {
            budget_bytes: 0,
            max_trunk: self.protocol.trunk_prompt().len() + job.settings.max_trunk_tokens,
            max_suffix: 1 + job.settings.max_tokens,
            first_capacity: job.settings.first_capacity,
        };
        let needed = limits.worst_case_bytes(dims, job.prefix.len);
        let pooled = if self.max_pages > 1 { job.prefix.bytes(dims) } else { 0 };
        let held: usize = self.running.iter().map(|running| running.budget_bytes).sum();
        let room = self.budget_bytes.saturating_sub(held + self.pool.bytes() + pooled);
        if needed > room && !self.running.is_empty() {
            return None;
        }
        let budget_bytes = (self.budget_bytes / self.max_pages).max(needed).min(room);
        let (ticket, job) = self.waiting.take()?;
        graph.begin_page();
        let next_order = job.prefix.next_order;
        let kv = KvCache::new(dims, job.prefix, KvLimits { budget_bytes, ..limits });
        let no_room = DecodeError::NoRoom { needed: needed + pooled, budget: self.budget_bytes };
        let page = kv.ok_or(no_room).and_then(|kv| {
            PageState::new(self.protocol, job.settings, kv, job.drafts, (&*graph, next_order))
        });
        match page {
            Ok(mut page) => {
                if self.max_pages > 1 {
                    self.pool.enter(self.running.len(), &mut page.kv);
                }
                self.running.push(Running { ticket, page, budget_bytes });
                None
            }
            Err(error) => Some((ticket, Err(error))),
        }
    }

    /// The next call of a page; `None`: it is done.
    fn plan(&mut self, place: usize, dims: Dims) -> Result<Option<PageCall>, DecodeError> {
        let page = &mut self.running[place].page;
        let owners = next_call(page.ready(), page.settings.max_rows);
        if owners.is_empty() {
            return Ok(None);
        }
        if page.settings.limit.is_some_and(|limit| limit.is_over()) {
            return Err(DecodeError::Late);
        }
        Ok(Some(page.plan(owners, dims.position_parts)))
    }

    /// Ends a page; the last one takes its place.
    fn end(&mut self, place: usize, ended: Result<(), DecodeError>, graph: &mut dyn DecodeGraph) -> Done<T> {
        let Running { ticket, page, .. } = self.running.swap_remove(place);
        if self.max_pages > 1 {
            if let Some(moved) = self.running.get_mut(place) {
                self.pool.enter(place, &mut moved.page.kv);
                graph.begin_page();
            }
            self.pool.leave_last();
        }
        (ticket, ended.map(|()| page.finish()))
    }

    /// Runs a call for each page, those that gain by it as one. Places that failed, ascending.
    fn run(&mut self, graph: &mut dyn DecodeGraph, calls: Vec<PageCall>) -> Vec<(usize, DecodeError)> {
        let shapes: Vec<CallShape> = calls.iter().map(PageCall::shape).collect();
        let shared = shared_call(&shapes);
        // If it fails, each page runs alone: then only the one whose fault it is fails.
        let mut outputs = self.run_shared(graph, &calls, &shared).unwrap_or_default();
        let mut failed = Vec::new();
        for (place, call) in calls.into_iter().enumerate() {
            let page = &mut self.running[place].page;
            let ran = match outputs.remove(&place) {
                Some(output) => page.take(graph, &call, &output),
                None => page.run(graph, &mut self.buffers, &call),
            };
            if let Err(error) = ran {
                failed.push((place, error));
            }
        }
        failed
    }

    /// Runs the calls of the places `shared` as one: their outputs.
    fn run_shared(
        &mut self,
        graph: &mut dyn DecodeGraph,
        calls: &[PageCall],
        shared: &[usize],
    ) -> Result<BTreeMap<usize, CallOutput>, DecodeError> {
        if shared.is_empty() {
            return Ok(BTreeMap::new());
        }
        let started = std::time::Instant::now();
        let none = PageCall::default();
        let in_call = |place: usize| if shared.contains(&place) { &calls[place] } else { &none };
        let mut members = Vec::with_capacity(self.running.len());
        for (place, running) in self.running.iter_mut().enumerate() {
            members.push(running.page.member(in_call(place)));
        }
        let feeds: Vec<_> = (0..members.len()).map(|place| in_call(place).feeds.as_slice()).collect();
        let outputs = self.buffers.run_shared(graph, &mut self.pool, &mut members, &feeds)?;
        drop(members);
        let seconds = started.elapsed().as_secs_f64() / shared.len() as f64;
        for &place in shared {
            let stats = &mut self.running[place].page.stats;
            stats.graph_seconds += seconds;
            stats.shared_calls += 1;
            stats.pool_bytes = stats.pool_bytes.max(self.pool.bytes());
        }
        Ok(outputs.into_iter().enumerate().filter(|(place, _)| shared.contains(place)).collect())
    }
}
