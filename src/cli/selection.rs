//! Which of the files that are named a run takes, and what it would do with each.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use super::report::{counted, escaped};
use crate::batch::inputs::Inputs;
use crate::batch::names;
use crate::batch::output::{OutputError, has_output};
use crate::batch::plan::PlannedFile;
use crate::batch::shard::Shard;
use crate::batch::status::{FileState, FileStatus, Status};
use crate::settings::{Destination, Existing};

/// Leaves this shard's files. What cannot be looked into is one shard's to report, too.
pub(super) fn keep_shard(shard: Shard, inputs: &mut Inputs, files: &mut Vec<PlannedFile>) {
    files.retain(|file| shard.holds(&file.folder));
    inputs.unreadable.retain(|(path, _)| shard.holds(path));
}

/// Leaves the files that failed, or a page of which did, as the journals in `root` have it.
pub(super) fn keep_failed(root: &Path, files: &mut Vec<PlannedFile>) -> Result<(), OutputError> {
    let status = Status::read(root)?.unwrap_or_default();
    let known = Known::new(&status);
    files.retain(|file| known.of(file).is_some_and(|status| status.state == FileState::Failed));
    Ok(())
}

/// The files of earlier runs, as this run's plan names them.
struct Known<'a> {
    by_output: HashMap<&'a str, &'a FileStatus>,
    /// Files that could not be opened have no output.
    by_name: HashMap<&'a str, &'a FileStatus>,
}

impl<'a> Known<'a> {
    fn new(status: &'a Status) -> Known<'a> {
        Known {
            by_output: status.files.iter().filter_map(|file| Some((file.output.as_deref()?, file))).collect(),
            by_name: status.files.iter().map(|file| (file.file.as_str(), file)).collect(),
        }
    }

    fn of(&self, file: &PlannedFile) -> Option<&'a FileStatus> {
        let output = self.by_output.get(&*names::text(&file.folder));
        output.or_else(|| self.by_name.get(&*names::text(&file.input.name))).copied()
    }
}

/// A line for each file: what would be done, from where to where. Files are not opened: whether finished pages stand for the
/// same input and settings is seen when they are.
pub(super) fn dry_run(
    files: &[PlannedFile],
    destination: &Destination,
    existing: Existing,
) -> Result<String, OutputError> {
    let mut text = String::new();
    let Destination::Folder(root) = destination else {
        for file in files {
            let _ = writeln!(text, "convert\t{}\t-", escaped(&names::text(&file.input.name)));
        }
        return Ok(text + &format!("{}\n", counted(files.len(), "file")));
    };
    let status = Status::read(root)?.unwrap_or_default();
    let known = Known::new(&status);
    for file in files {
        let folder = root.join(&file.folder);
        let what = match existing {
            Existing::Overwrite if has_output(&folder)? => "replace".to_owned(),
            Existing::Refuse | Existing::Overwrite => "convert".to_owned(),
            Existing::Resume => known.of(file).map_or_else(|| "convert".to_owned(), resumed),
        };
        let (name, folder) = (names::text(&file.input.name), names::text(&folder));
        let _ = writeln!(text, "{what}\t{}\t{}", escaped(&name), escaped(&folder));
    }
    Ok(text + &format!("{}\n", counted(files.len(), "file")))
}

fn resumed(file: &FileStatus) -> String {
    let again = file.failed.len() + file.pages_left();
    match file.state {
        FileState::Done | FileState::Partial => "keep".to_owned(),
        FileState::Failed if file.reason.is_some() => "try again".to_owned(),
        FileState::Failed | FileState::Unfinished => format!("go on: {}", counted(again, "page")),
    }
}
