//! Reads pages and writes their files.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::engine::{Engine, PageReader};
use super::journal::PageRecord;
use super::output::write_page;
use super::render::stdout_bytes;
use super::runner::{FileContext, Job, Message, Outbox, Shared};
use crate::reader::PageOutput;

/// Takes pages until the openers are done or the run stops.
pub(super) fn read_pages<E: Engine>(shared: &Shared<'_, E>, jobs: &Mutex<Receiver<Job>>, outbox: &Outbox) {
    let Some(mut reader) = started(shared, outbox) else { return };
    outbox.send(Message::Ready(reader.model_id()));
    while !shared.is_stopping() {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { file, evidence, seconds }) = job else { return };
        if shared.is_stopping() {
            return;
        }
        let number = evidence.number;
        let span = tracing::info_span!("page", file = %file.name, page = number);
        let read = span.in_scope(|| catch_unwind(AssertUnwindSafe(|| reader.read(evidence))));
        let mut output = match read {
            Ok(output) => output,
            Err(panic) => {
                // Its state cannot be trusted any more.
                let Some(fresh) = started(shared, outbox) else { return };
                reader = fresh;
                PageOutput::failed(number, format!("internal error: {}", panic_message(panic.as_ref())))
            }
        };
        *output.stats.seconds.entry("raster").or_default() += seconds;
        deliver(shared, outbox, &file, output);
    }
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
    file: &std::sync::Arc<FileContext>,
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
