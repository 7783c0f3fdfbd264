//! The program under test: its runs, the trees that it writes, and one conversion that several tests look at.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use assert_cmd::Command;

/// Inputs of the shared conversion, under `fixtures/pdf`.
pub(crate) const CONVERTED: [&str; 8] = [
    "paper.pdf",
    "report.pdf",
    "scan.pdf",
    "scan-garbage-layer.pdf",
    "rotate-90-sideways.pdf",
    "form.pdf",
    "hebrew.pdf",
    "two-pages.tiff",
];

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A file under `fixtures/pdf`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    repository("fixtures/pdf").join(name)
}

/// The program in `folder`, away from the variables that it reads.
pub(crate) fn docparse(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_docparse"));
    command.current_dir(folder).timeout(Duration::from_secs(600));
    for variable in ["DOCPARSE_MODEL", "DOCPARSE_PASSWORD", "NO_COLOR"] {
        command.env_remove(variable);
    }
    command
}

/// Runs `docparse convert` to its end, on the CPU: there the same input gives the same bytes.
pub(crate) fn convert<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Ran {
    let output = docparse(&repository("")).args(["convert", "--device", "cpu"]).args(arguments).output();
    let output = output.expect("docparse starts and ends in time");
    let stderr = String::from_utf8(output.stderr).expect("messages are UTF-8");
    Ran { code: output.status.code(), stdout: output.stdout, stderr }
}

/// Converts `inputs` to `folder` and expects that every page comes out.
pub(crate) fn convert_to(folder: &Path, inputs: &[PathBuf], options: &[&str]) {
    let mut arguments: Vec<&OsStr> = inputs.iter().map(|input| input.as_os_str()).collect();
    arguments.extend([OsStr::new("-o"), folder.as_os_str()]);
    arguments.extend(options.iter().map(OsStr::new));
    let ran = convert(arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

/// All files below `folder` by their relative names, without the journals, which hold times.
pub(crate) fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder").map(|entry| entry.expect("an entry").path())
        {
            let name = entry.strip_prefix(folder).expect("below the folder").display().to_string();
            if entry.is_dir() {
                folders.push(entry);
            } else if !(name.starts_with("run") && name.ends_with(".jsonl")) {
                files.insert(name, std::fs::read(&entry).expect("a readable file"));
            }
        }
    }
    files
}

/// Fails with the names that differ rather than with their bytes.
pub(crate) fn assert_same_trees(left: &BTreeMap<String, Vec<u8>>, right: &BTreeMap<String, Vec<u8>>) {
    let names = |a: &BTreeMap<String, Vec<u8>>, b: &BTreeMap<String, Vec<u8>>| -> Vec<String> {
        a.iter().filter(|(name, bytes)| b.get(*name) != Some(bytes)).map(|(name, _)| name.clone()).collect()
    };
    assert_eq!((names(left, right), names(right, left)), (Vec::new(), Vec::new()), "these files differ");
}

/// [`CONVERTED`] with the default settings and two jobs: made once per test run.
pub(crate) fn converted() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("converted");
        let inputs: Vec<PathBuf> = CONVERTED.map(fixture).into();
        convert_to(&folder, &inputs, &["--overwrite", "--jobs", "2"]);
        folder
    });
    &FOLDER
}
