//! Opens files one after another, settles which of their pages are to be read, and feeds those to the workers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use super::engine::{Engine, PageSource};
use super::identity::file_sha256;
use super::names;
use super::output::{Clear, OutputError, clear};
use super::plan::PlannedFile;
use super::resume::{Kept, kept_pages};
use super::runner::{FileContext, Job, Message, Outbox, Shared};
use super::worker::deliver;
use crate::document::PageHeader;
use crate::reader::PageOutput;
use crate::settings::{Destination, Existing};

/// Takes files until none is left or the run stops.
pub(super) fn open_files<E: Engine>(shared: &Shared<'_, E>, jobs: &SyncSender<Job>, outbox: &Outbox) {
    while !shared.is_stopping() {
        let Some((index, file)) = shared.next_file() else { return };
        open_file(shared, jobs, outbox, index, file);
    }
}

fn open_file<E: Engine>(
    shared: &Shared<'_, E>,
    jobs: &SyncSender<Job>,
    outbox: &Outbox,
    index: usize,
    file: &PlannedFile,
) {
    let name = names::text(&file.input.name);
    let begun = Instant::now();
    let opened = file_sha256(&file.input.path)
        .map_err(|error| error.to_string())
        .and_then(|sum| Ok((sum, shared.engine.open(&file.input.path).map_err(|error| error.to_string())?)));
    let (input_sha256, mut source) = match opened {
        Ok(opened) => opened,
        // A file whose reading a signal broke off has not failed.
        Err(_) if shared.is_stopping() => return,
        Err(reason) => return outbox.send(Message::FileFailed { name, reason }),
    };
    let page_count = source.info().page_count;
    let selected = shared.settings.pages.select(page_count);
    let most = shared.settings.max_pages;
    if selected.len() > most as usize {
        let reason = format!("{} pages, more than {most} (`--max-pages`)", selected.len());
        return outbox.send(Message::FileFailed { name, reason });
    }
    if selected.is_empty() {
        let reason =
            format!("none of the pages asked for (`--pages {}`); it has {page_count}", shared.settings.pages);
        return outbox.send(Message::FileFailed { name, reason });
    }
    if let (Some(page), 1) = (shared.settings.pages.first_beyond(page_count), shared.files.len()) {
        let message = format!("page {page} is asked for, the document has {page_count}");
        outbox.send(Message::Warning { file: name.clone(), page: None, message });
    }
    let input_name = file.input.name.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let context = FileContext {
        index,
        name,
        output: names::text(&file.folder),
        folder: shared.folder_of(file),
        header: PageHeader {
            docparse: env!("CARGO_PKG_VERSION").to_owned(),
            model: shared.model_id().cloned(),
            settings_sha256: shared.settings.settings_sha256.clone(),
            input_sha256,
            input: input_name,
        },
    };
    let kept = match prepare_folder(shared, &context, &selected) {
        Ok(kept) => kept,
        Err(error) => return outbox.send(Message::Output(error)),
    };
    let wanted: Vec<u32> = selected.iter().copied().filter(|page| !kept.pages.contains_key(page)).collect();
    let context = Arc::new(context);
    outbox.send(Message::FileOpened {
        file: Arc::clone(&context),
        info: source.info().clone(),
        selected,
        kept,
        wanted: wanted.len(),
    });
    let mut feed = Feed { shared, jobs, outbox, file: &context, begun };
    feed.pages(&mut source, &wanted);
}

/// A file whose pages are sent to the workers.
struct Feed<'a, 'b, E> {
    shared: &'a Shared<'b, E>,
    jobs: &'a SyncSender<Job>,
    outbox: &'a Outbox,
    file: &'a Arc<FileContext>,
    begun: Instant,
}

impl<E: Engine> Feed<'_, '_, E> {
    fn pages(&mut self, source: &mut E::Source, wanted: &[u32]) {
        for &number in wanted {
            if self.shared.is_stopping() {
                return;
            }
            if let Some(limit) = self.shared.settings.file_timeout
                && self.begun.elapsed() >= limit
            {
                self.fail(
                    number,
                    format!("not begun within the file's {} s (`--file-timeout`)", limit.as_secs()),
                );
                continue;
            }
            let start = Instant::now();
            match source.page(number) {
                Ok(evidence) => {
                    let seconds = start.elapsed().as_secs_f64();
                    if self.jobs.send(Job { file: Arc::clone(self.file), evidence, seconds }).is_err() {
                        return;
                    }
                }
                // The renderer's process may have got the signal too.
                Err(_) if self.shared.is_stopping() => return,
                Err(error) => self.fail(number, error.to_string()),
            }
        }
    }

    fn fail(&self, number: u32, reason: String) {
        deliver(self.shared, self.outbox, self.file, PageOutput::failed(number, reason));
    }
}

/// Makes the folder, removes what will be written anew, and says which pages of an earlier run stand.
fn prepare_folder<E: Engine>(
    shared: &Shared<'_, E>,
    file: &FileContext,
    selected: &[u32],
) -> Result<Kept, OutputError> {
    let Some(folder) = &file.folder else { return Ok(Kept::default()) };
    std::fs::create_dir_all(folder).map_err(OutputError::at(folder))?;
    match shared.settings.existing {
        Existing::Refuse => clear(folder, Clear::Parts).map(|()| Kept::default()),
        Existing::Overwrite => clear(folder, Clear::Everything).map(|()| Kept::default()),
        Existing::Resume => {
            let formats = &shared.settings.output.formats;
            let finished = shared.finished.get(&file.output);
            let kept = kept_pages(folder, selected, &file.header, formats, finished);
            let anew: Vec<u32> =
                selected.iter().copied().filter(|page| !kept.pages.contains_key(page)).collect();
            clear(folder, if anew.is_empty() { Clear::Parts } else { Clear::Pages(&anew) })?;
            Ok(kept)
        }
    }
}

impl<E: Engine> Shared<'_, E> {
    fn folder_of(&self, file: &PlannedFile) -> Option<PathBuf> {
        match &self.settings.destination {
            Destination::Folder(root) => Some(root.join(&file.folder)),
            Destination::Stdout => None,
        }
    }
}
