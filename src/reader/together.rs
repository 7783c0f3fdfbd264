//! Pages that are read one after another and decoded together: each is drafted, its streams run in the calls that it shares with the
//! others, and it is written as soon as they have ended.

use std::sync::Arc;

use crate::clock::{Clock, TimeLimit};
use crate::decode::{PageDecoding, PageJob, Pages};
use crate::drafts::PageWords;
use crate::drafts::nets::BoundNets;
use crate::drafts::words::page_words;
use crate::model::{Begun, DraftedPage, ModelError, OpenPage};
use crate::page::{Link, PageEvidence, Region};
use crate::tokens::Grammar;

use super::{PageOutput, PageStats, Reader, Reading, draft};

/// A page that a reader is to read.
#[derive(Debug)]
pub struct TakenPage {
    /// Names it to the caller.
    pub ticket: usize,
    pub evidence: PageEvidence,
    /// What log lines about it are said within.
    pub span: tracing::Span,
}

/// A drafted page.
struct Drafted {
    ticket: usize,
    span: tracing::Span,
    number: u32,
    scale: f32,
    links: Vec<Link>,
    words: PageWords,
    regions: Vec<Region>,
    limit: TimeLimit,
    stats: PageStats,
}

/// A page whose streams are to run.
struct Held {
    page: Drafted,
    open: OpenPage,
    /// What the meter showed when it came in.
    meter: f64,
}

enum Opened {
    Done(usize, Box<PageOutput>),
    Held(Box<Held>, Box<PageJob>),
}

impl Reader {
    /// Reads the pages that `next` gives until there is none, and hands each to `done` under its ticket. `next` is asked to wait (`true`)
    /// where nothing else is to be done. Never fails: what goes wrong is in a page's status and reason.
    pub fn read_pages(
        &mut self,
        next: &mut dyn FnMut(bool) -> Option<TakenPage>,
        done: &mut dyn FnMut(usize, PageOutput),
    ) {
        let grammar = self.model.as_ref().map(|model| Arc::clone(&model.pack().grammar));
        let mut pages: Option<Pages<'_, Box<Held>>> = None;
        // Seconds of the decoding, each divided by the pages that it was for.
        let mut meter = 0.0;
        loop {
            let under_way = pages.as_ref().map_or(0, Pages::len);
            if pages.as_ref().is_none_or(Pages::has_room)
                && let Some(page) = next(under_way == 0)
            {
                match self.open(page, meter) {
                    Opened::Done(ticket, output) => done(ticket, *output),
                    Opened::Held(held, job) => match self.room(&mut pages, grammar.as_deref()) {
                        Ok(pages) => pages.admit(held, *job),
                        Err(error) => done(held.page.ticket, self.close(*held, Err(error), meter)),
                    },
                }
                continue;
            }
            let (Some(pages), Some(model)) = (&mut pages, &mut self.model) else { return };
            if under_way == 0 {
                return;
            }
            let clock = Clock::start(self.settings.threads);
            let finished = model.step(pages);
            meter += clock.seconds() / under_way as f64;
            for (held, decoded) in finished {
                done(held.page.ticket, self.close(*held, decoded.map_err(ModelError::from), meter));
            }
        }
    }

    /// Room for pages under way; made for the first one.
    fn room<'r, 'p>(
        &mut self,
        pages: &'r mut Option<Pages<'p, Box<Held>>>,
        grammar: Option<&'p Grammar>,
    ) -> Result<&'r mut Pages<'p, Box<Held>>, ModelError> {
        if let (None, Some(model), Some(grammar)) = (&pages, &mut self.model, grammar) {
            *pages = Some(model.pages(grammar, self.pages_per_call)?);
        }
        Ok(pages.as_mut().expect("a page is held only for a model"))
    }

    /// Drafts a page and lets the model begin it.
    fn open(&mut self, page: TakenPage, meter: f64) -> Opened {
        let (ticket, span) = (page.ticket, page.span.clone());
        let _entered = span.enter();
        let number = page.evidence.number;
        let mut stats = PageStats::default();
        let Some(drafted) = self.draft(page, &mut stats) else {
            return Opened::Done(ticket, Box::new(PageOutput { stats, ..self.late(number) }));
        };
        let mut page = Drafted { stats, ..drafted };
        let Some(model) = &mut self.model else {
            let regions = std::mem::take(&mut page.regions);
            return Opened::Done(ticket, Box::new(self.written(page, Reading::unverified(regions, None))));
        };
        let drafted = DraftedPage {
            raster: &page.words.raster,
            words: &page.words.words,
            dpi: page.scale * 72.0,
            regions: &page.regions,
            limit: Some(page.limit),
        };
        let Some(begun) = page.limit.hold(|| model.begin(&drafted)) else {
            return Opened::Done(ticket, Box::new(PageOutput { stats: page.stats, ..self.late(number) }));
        };
        match begun {
            Ok(Begun::Open(open, job)) => Opened::Held(Box::new(Held { page, open: *open, meter }), job),
            Ok(Begun::Read(read)) => {
                let reading = Reading::of(*read, &mut page.stats);
                Opened::Done(ticket, Box::new(self.written(page, reading)))
            }
            Err(error) => {
                let regions = std::mem::take(&mut page.regions);
                Opened::Done(ticket, Box::new(self.written(page, Reading::unverified(regions, Some(&error)))))
            }
        }
    }

    /// The page's words and regions; `None` if its time was over first.
    fn draft(&mut self, page: TakenPage, stats: &mut PageStats) -> Option<Drafted> {
        let TakenPage { ticket, evidence, span } = page;
        let limit = TimeLimit::start(self.page_time(), self.settings.threads);
        self.nets.set_limit(Some(limit));
        let (number, scale, links) = (evidence.number, evidence.scale, evidence.links.clone());
        let clock = self.clock();
        let words = limit.hold(|| page_words(evidence, &mut self.nets, &self.settings.decode.drafters));
        self.take_net_stats(stats, "words", &clock);
        let words = words?;
        self.nets.in_time()?;
        let clock = self.clock();
        let mut bound = BoundNets::new(&mut self.nets, &words.raster, &words.words);
        let regions = limit.hold(|| draft(&words, &mut bound, &self.settings));
        self.take_net_stats(stats, "structure", &clock);
        let regions = regions?;
        self.nets.in_time()?;
        let stats = PageStats::default();
        Some(Drafted { ticket, span, number, scale, links, words, regions, limit, stats })
    }

    /// The page that was held, as its decoding left it. Where the model fails, the drafts stand as they are.
    fn close(&self, held: Held, decoded: Result<PageDecoding, ModelError>, meter: f64) -> PageOutput {
        let Held { mut page, open, meter: start } = held;
        let span = page.span.clone();
        let _entered = span.enter();
        let reading = match (decoded, &self.model) {
            (Ok(decoding), Some(model)) => {
                let source = (page.regions.as_slice(), &page.words.raster);
                Reading::of(model.end(open, source, decoding, meter - start), &mut page.stats)
            }
            (decoded, _) => Reading::unverified(std::mem::take(&mut page.regions), decoded.err().as_ref()),
        };
        self.written(page, reading)
    }

    /// The page's output, unless its time is over.
    fn written(&self, page: Drafted, reading: Reading) -> PageOutput {
        let Drafted { number, scale, links, words, limit, mut stats, .. } = page;
        if limit.is_over() {
            return PageOutput { stats, ..self.late(number) };
        }
        let clock = self.clock();
        let output = limit.hold(|| self.assembled(number, &words, scale, &links, reading));
        stats.seconds.insert("assemble", clock.seconds());
        PageOutput { stats, ..output.unwrap_or_else(|| self.late(number)) }
    }

    fn late(&self, number: u32) -> PageOutput {
        let limit = self.settings.page_time;
        PageOutput::failed(number, format!("reading took longer than {limit:?} (`--page-timeout`)"))
    }

    /// What a page may take: the time of the pages that it is decoded with counts as its own.
    fn page_time(&self) -> std::time::Duration {
        let together = if self.model.is_some() { self.pages_per_call } else { 1 };
        self.settings.page_time * u32::try_from(together).unwrap_or(u32::MAX)
    }
}
