//! What is named on the command line -> the files to convert: directories are searched, stdin is kept in a temporary file.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// One thing that is named as input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputArgument {
    Path(PathBuf),
    Stdin,
}

/// One file to convert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Where its bytes are.
    pub path: PathBuf,
    /// How messages, the journal and the report name it: as the user named it.
    pub name: PathBuf,
    /// Its place below the output folder, extension included: relative to the directory argument, or its own name.
    pub relative: PathBuf,
}

/// The files that the arguments name, and what could not be looked into.
#[derive(Debug, Default)]
pub struct Inputs {
    pub files: Vec<InputFile>,
    /// Arguments and directories that cannot be read.
    pub unreadable: Vec<(PathBuf, io::Error)>,
    /// Directory arguments in which nothing to convert was found.
    pub empty: Vec<PathBuf>,
    /// Holds the bytes of stdin until the run is over.
    pub stdin: Option<tempfile::NamedTempFile>,
}

/// Extensions that are looked for in directories. A file that is named itself is opened whatever its extension.
const EXTENSIONS: [&str; 6] = ["pdf", "png", "jpg", "jpeg", "tif", "tiff"];

/// Finds the files that `arguments` name, in the order of the arguments, each directory sorted by path. `stdin` is read only
/// if an argument says so.
pub fn expand(arguments: &[InputArgument], stdin: &mut dyn Read) -> io::Result<Inputs> {
    let mut inputs = Inputs::default();
    for argument in arguments {
        match argument {
            InputArgument::Stdin => inputs.add_stdin(stdin)?,
            InputArgument::Path(path) => inputs.add_path(path),
        }
    }
    Ok(inputs)
}

impl Inputs {
    fn add_stdin(&mut self, stdin: &mut dyn Read) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix("docparse-stdin-").tempfile()?;
        io::copy(stdin, &mut file)?;
        file.flush()?;
        self.files.push(InputFile {
            path: file.path().to_path_buf(),
            name: PathBuf::from("stdin"),
            relative: PathBuf::from("stdin"),
        });
        self.stdin = Some(file);
        Ok(())
    }

    fn add_path(&mut self, path: &Path) {
        match std::fs::metadata(path) {
            Err(error) => self.unreadable.push((path.to_path_buf(), error)),
            Ok(metadata) if metadata.is_dir() => {
                let before = (self.files.len(), self.unreadable.len());
                let mut visited = HashSet::new();
                self.search(path, Path::new(""), &mut visited);
                if (self.files.len(), self.unreadable.len()) == before {
                    self.empty.push(path.to_path_buf());
                }
            }
            // A pipe or a device may have no end, and could not be opened a second time.
            Ok(metadata) if !metadata.is_file() => {
                let error = io::Error::other("not a file or a directory (`-` reads stdin)");
                self.unreadable.push((path.to_path_buf(), error));
            }
            Ok(_) => {
                let relative = path.file_name().map_or_else(|| PathBuf::from("input"), PathBuf::from);
                self.files.push(InputFile { path: path.to_path_buf(), name: path.to_path_buf(), relative });
            }
        }
    }

    /// Adds the convertible files below `directory`. Symbolic links are followed, each real directory is entered once.
    fn search(&mut self, directory: &Path, below: &Path, visited: &mut HashSet<PathBuf>) {
        let entries = directory
            .canonicalize()
            .and_then(|real| if visited.insert(real) { sorted_entries(directory) } else { Ok(Vec::new()) });
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => {
                self.unreadable.push((directory.to_path_buf(), error));
                return;
            }
        };
        for name in entries {
            let (path, relative) = (directory.join(&name), below.join(&name));
            match std::fs::metadata(&path) {
                Ok(metadata) if metadata.is_dir() => self.search(&path, &relative, visited),
                Ok(metadata) if metadata.is_file() && is_convertible(&path) => {
                    self.files.push(InputFile { name: path.clone(), path, relative });
                }
                // A link that leads nowhere, or a file that went away.
                Err(error) if is_convertible(&path) => self.unreadable.push((path, error)),
                _ => {}
            }
        }
    }
}

fn sorted_entries(directory: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names =
        std::fs::read_dir(directory)?.map(|e| e.map(|e| e.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn is_convertible(path: &Path) -> bool {
    path.extension()
        .and_then(OsStr::to_str)
        .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

/// Splits a list of files as `--files-from` reads it: one name a line, or NUL-terminated. Empty names are left out.
pub fn split_list(bytes: &[u8], nul: bool) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let separator = if nul { 0 } else { b'\n' };
    bytes
        .split(|&b| b == separator)
        .map(|name| if nul { name } else { name.strip_suffix(b"\r").unwrap_or(name) })
        .filter(|name| !name.is_empty())
        .map(|name| PathBuf::from(OsStr::from_bytes(name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn found(root: &Path, inputs: &Inputs) -> Vec<String> {
        inputs
            .files
            .iter()
            .map(|f| f.path.strip_prefix(root).unwrap().display().to_string().replace('\u{fffd}', "?"))
            .collect()
    }

    #[test]
    fn directories_are_searched_sorted_and_links_in_a_ring_end() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("b/deep")).unwrap();
        for name in ["z.PDF", "a.png", "notes.txt", "b/deep/x.tiff", "b/y.jpeg", "b/noextension"] {
            fs::write(root.join(name), b"x").unwrap();
        }
        fs::write(root.join(OsStr::from_bytes(b"odd\xff.pdf")), b"x").unwrap();
        std::os::unix::fs::symlink(root, root.join("b/ring")).unwrap();
        std::os::unix::fs::symlink("nowhere.pdf", root.join("broken.pdf")).unwrap();
        let inputs = expand(&[InputArgument::Path(root.to_path_buf())], &mut io::empty()).unwrap();
        assert_eq!(found(root, &inputs), ["a.png", "b/deep/x.tiff", "b/y.jpeg", "odd?.pdf", "z.PDF"]);
        assert_eq!(inputs.files[1].relative, Path::new("b/deep/x.tiff"));
        let unreadable: Vec<&Path> = inputs.unreadable.iter().map(|(path, _)| path.as_path()).collect();
        assert_eq!(unreadable, [root.join("broken.pdf")]);
    }

    #[test]
    fn a_missing_argument_and_an_empty_directory_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("missing.pdf");
        let arguments = [InputArgument::Path(missing.clone()), InputArgument::Path(dir.path().to_path_buf())];
        let inputs = expand(&arguments, &mut io::empty()).unwrap();
        assert_eq!(inputs.unreadable[0].0, missing);
        assert_eq!(inputs.empty, [dir.path()]);
        assert!(inputs.files.is_empty());
    }

    #[test]
    fn devices_and_pipes_are_not_opened() {
        let inputs = expand(&[InputArgument::Path("/dev/zero".into())], &mut io::empty()).unwrap();
        assert!(inputs.files.is_empty());
        assert!(inputs.unreadable[0].1.to_string().contains("`-` reads stdin"));
    }

    #[test]
    fn stdin_becomes_a_file_named_stdin() {
        let inputs = expand(&[InputArgument::Stdin], &mut &b"%PDF-1.4"[..]).unwrap();
        assert_eq!(fs::read(&inputs.files[0].path).unwrap(), b"%PDF-1.4");
        assert_eq!(inputs.files[0].relative, Path::new("stdin"));
    }

    #[test]
    fn lists_keep_odd_bytes_and_drop_empty_names() {
        let lines = split_list(b"a.pdf\r\n\nb\xff c.pdf\n", false);
        assert_eq!(lines, [PathBuf::from("a.pdf"), PathBuf::from(OsStr::from_bytes(b"b\xff c.pdf"))]);
        assert_eq!(
            split_list(b"a\nb.pdf\0\0c.pdf", true),
            [PathBuf::from("a\nb.pdf"), PathBuf::from("c.pdf")]
        );
    }
}
