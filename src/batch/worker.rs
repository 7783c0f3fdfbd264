//! Reads pages and writes their files.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::engine::{Engine, PageReader};
use super::journal::PageRecord;
use super::output::write_page;
use super::render::stdout_bytes;
use super::runner::{FileContext, Job, Message, Outbox, Shared};
use crate::reader::{PageOutput, TakenPage};

/// Takes pages until the openers are done or the run stops.
pub(super) fn read_pages<E: Engine>(shared: &Shared<'_, E>, jobs: &Mutex<Receiver<Job>>, outbox: &Outbox) {
    let Some(mut reader) = started(shared, outbox) else { return };
    outbox.send(Message::Ready(reader.model_id()));
    // Pages that were taken and are not done, by ticket.
    let taken: RefCell<BTreeMap<usize, Taken>> = RefCell::default();
    let mut tickets = 0;
    let mut next = |waits: bool| {
        let Job { file, evidence, seconds } = next_job(jobs, waits)?;
        if shared.is_stopping() {
            return None;
        }
        tickets += 1;
        let (ticket, number) = (tickets, evidence.number);
        let span = tracing::info_span!("page", file = %file.name, page = number);
        taken.borrow_mut().insert(ticket, Taken { file, number, seconds });
        Some(TakenPage { ticket, evidence, span })
    };
    let mut done = |ticket: usize, mut output: PageOutput| {
        let Some(Taken { file, seconds, .. }) = taken.borrow_mut().remove(&ticket) else { return };
        *output.stats.seconds.entry("raster").or_default() += seconds;
        deliver(shared, outbox, &file, output);
    };
    while !shared.is_stopping() {
        let read = catch_unwind(AssertUnwindSafe(|| reader.read_pages(&mut next, &mut done)));
        let Err(panic) = read else { return };
        let reason = format!("internal error: {}", panic_message(panic.as_ref()));
        let lost: Vec<(usize, u32)> =
            taken.borrow().iter().map(|(&ticket, page)| (ticket, page.number)).collect();
        for (ticket, number) in lost {
            done(ticket, PageOutput::failed(number, reason.clone()));
        }
        // Its state cannot be trusted any more.
        let Some(fresh) = started(shared, outbox) else { return };
        reader = fresh;
    }
}

/// A page that is being read.
struct Taken {
    file: Arc<FileContext>,
    number: u32,
    seconds: f64,
}

/// The next page. `None` if there is none left, or, where it must not wait, none yet.
fn next_job(jobs: &Mutex<Receiver<Job>>, waits: bool) -> Option<Job> {
    if waits {
        return jobs.lock().unwrap_or_else(PoisonError::into_inner).recv().ok();
    }
    // A worker that has nothing to do waits with the lock held: it shall have the page.
    jobs.try_lock().ok()?.try_recv().ok()
}

fn started<E: Engine>(shared: &Shared<'_, E>, outbox: &Outbox) -> Option<E::Reader> {
    match shared.engine.reader() {
        Ok(reader) => Some(reader),
        Err(error) => {
            outbox.send(Message::ReaderFailed(error));
            None
        }
    }
}

/// Writes the page's files, or makes the bytes for stdout, and reports the page as done.
pub(super) fn deliver<E: Engine>(
    shared: &Shared<'_, E>,
    outbox: &Outbox,
    file: &Arc<FileContext>,
    mut output: PageOutput,
) {
    let settings = &shared.settings.output;
    let start = Instant::now();
    let bytes = match &file.folder {
        Some(folder) => match write_page(folder, &output, &file.header, settings) {
            Ok(()) => None,
            Err(error) => return outbox.send(Message::Output(error)),
        },
        None => settings
            .formats
            .first()
            .and_then(|&format| stdout_bytes(&output.page, &file.header, format, settings)),
    };
    output.stats.seconds.insert("write", start.elapsed().as_secs_f64());
    for message in std::mem::take(&mut output.stats.warnings) {
        outbox.send(Message::Warning { file: file.name.clone(), page: Some(output.page.number), message });
    }
    let record = PageRecord {
        file: file.name.clone(),
        output: file.output.clone(),
        page: output.page.number,
        status: output.page.status,
        reason: output.page.reason,
        seconds: output.stats.seconds,
        counts: output.stats.counts,
        header: file.header.clone(),
    };
    outbox.send(Message::PageDone { index: file.index, record, bytes });
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic".to_owned())
}
