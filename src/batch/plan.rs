//! Which folder each input is written to, settled before any work: no two inputs share one.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::inputs::InputFile;
use super::journal::is_journal;

/// An input with its output folder, relative to the output root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    pub input: InputFile,
    pub folder: PathBuf,
}

/// Two inputs would be written to one folder.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` and `{}` would both be written to `{}`", first.display(), second.display(), folder.display())]
pub struct Collision {
    pub first: PathBuf,
    pub second: PathBuf,
    pub folder: PathBuf,
}

/// Gives each file its folder: its relative path without the extension, with it where files would share a folder.
/// A file that is named twice and would be written to the same place is converted once.
pub fn plan(files: Vec<InputFile>) -> Result<Vec<PlannedFile>, Collision> {
    let files = without_repeats(files);
    let mut shared: HashMap<PathBuf, usize> = HashMap::new();
    for file in &files {
        *shared.entry(without_extension(&file.relative)).or_default() += 1;
    }
    let mut taken: HashMap<PathBuf, PathBuf> = HashMap::new();
    let mut planned = Vec::with_capacity(files.len());
    for input in files {
        let short = without_extension(&input.relative);
        let reserved = short.to_str().is_some_and(is_journal);
        let folder = if shared[&short] > 1 || reserved { input.relative.clone() } else { short };
        if let Some(first) = taken.insert(folder.clone(), input.name.clone()) {
            return Err(Collision { first, second: input.name, folder });
        }
        planned.push(PlannedFile { input, folder });
    }
    Ok(planned)
}

fn without_repeats(files: Vec<InputFile>) -> Vec<InputFile> {
    let mut seen = HashSet::new();
    files
        .into_iter()
        .filter(|file| {
            let real = file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
            seen.insert((real, file.relative.clone()))
        })
        .collect()
}

/// `a/b.tar.pdf` -> `a/b.tar`. A name that is nothing but an extension keeps it, and so does one that would lead elsewhere:
/// what is left of `...pdf` is the folder above.
fn without_extension(path: &Path) -> PathBuf {
    match path.file_stem() {
        None => path.with_file_name("input"),
        Some(stem) if stem == "." || stem == ".." => path.to_path_buf(),
        Some(stem) => path.with_file_name(stem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, relative: &str) -> InputFile {
        InputFile { path: name.into(), name: name.into(), relative: relative.into() }
    }

    fn folders(files: Vec<InputFile>) -> Vec<String> {
        plan(files).unwrap().iter().map(|p| p.folder.display().to_string()).collect()
    }

    #[test]
    fn a_tree_is_kept_without_extensions() {
        let files =
            vec![file("in/a.pdf", "a.pdf"), file("in/b/a.pdf", "b/a.pdf"), file("x.tar.pdf", "x.tar.pdf")];
        assert_eq!(folders(files), ["a", "b/a", "x.tar"]);
    }

    #[test]
    fn inputs_that_would_share_a_folder_keep_their_extensions() {
        let files = vec![file("a.pdf", "a.pdf"), file("a.png", "a.png"), file("c.pdf", "c.pdf")];
        assert_eq!(folders(files), ["a.pdf", "a.png", "c"]);
    }

    #[test]
    fn what_still_collides_is_refused_and_names_both() {
        let error = plan(vec![file("x/a.pdf", "a.pdf"), file("y/a.pdf", "a.pdf")]).unwrap_err();
        assert_eq!(error.to_string(), "`x/a.pdf` and `y/a.pdf` would both be written to `a.pdf`");
        // A kept extension can be another input's name.
        let error =
            plan(vec![file("a.pdf", "a.pdf"), file("a.png", "a.png"), file("a.pdf.tif", "a.pdf.tif")]);
        assert_eq!(error.unwrap_err().folder, Path::new("a.pdf"));
    }

    #[test]
    fn a_file_named_twice_is_converted_once() {
        assert_eq!(folders(vec![file("a.pdf", "a.pdf"), file("a.pdf", "a.pdf")]), ["a"]);
    }

    #[test]
    fn no_folder_is_or_lies_outside_the_output_folder() {
        for name in [".pdf", "..pdf", "...pdf", "....pdf", "a/...pdf", "a/..pdf"] {
            let planned = plan(vec![file(name, name)]).unwrap();
            let mut parts = planned[0].folder.components();
            assert!(parts.all(|part| matches!(part, std::path::Component::Normal(_))), "{name}: {planned:?}");
            assert_eq!(planned[0].folder.components().count(), Path::new(name).components().count());
        }
    }

    #[test]
    fn no_folder_takes_the_name_of_the_journal() {
        for name in ["run.jsonl.pdf", "run-1-of-20.jsonl.pdf"] {
            assert_eq!(folders(vec![file(name, name)]), [name]);
        }
        assert_eq!(folders(vec![file("run-1-of-.jsonl.pdf", "run-1-of-.jsonl.pdf")]), ["run-1-of-.jsonl"]);
    }
}
