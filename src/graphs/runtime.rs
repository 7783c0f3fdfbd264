//! The ONNX Runtime library: where it is found, one environment per process, sessions of one thread.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ort::environment::Environment;
use ort::session::Session;

/// Why a native library or a graph could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("`{name}` not found; looked in: {}", looked.iter().map(|p| format!("`{}`", p.display())).collect::<Vec<_>>().join(", "))]
    Missing { name: String, looked: Vec<PathBuf> },
    #[error("`{}`: {message}", path.display())]
    Load { path: PathBuf, message: String },
}

/// Folders in which native libraries are looked for, in order: `DOCPARSE_NATIVE_DIR`, next to the executable, and `native/`
/// in a folder above the executable (a checkout's git-ignored folder).
pub fn native_dirs() -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    if let Some(dir) = std::env::var_os("DOCPARSE_NATIVE_DIR") {
        dirs.push(PathBuf::from(dir));
    }
    if let Ok(exe) = std::env::current_exe().and_then(|p| p.canonicalize()) {
        for (depth, dir) in exe.ancestors().skip(1).take(5).enumerate() {
            dirs.push(dir.join("native"));
            if depth == 0 {
                dirs.push(dir.to_path_buf());
            }
        }
        if let Some(dir) = exe.parent().and_then(Path::parent) {
            dirs.push(dir.join("lib").join("docparse"));
        }
    }
    dirs
}

/// The file in [`native_dirs`] whose name starts with `stem` (libraries carry a version suffix).
pub fn find_native(stem: &str) -> Result<PathBuf, RuntimeError> {
    let looked = native_dirs();
    for dir in &looked {
        let Ok(entries) = std::fs::read_dir(dir) else { continue };
        let mut names: Vec<PathBuf> = entries
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(stem)))
            .collect();
        names.sort();
        if let Some(found) = names.pop() {
            return Ok(found.canonicalize().unwrap_or(found));
        }
    }
    Err(RuntimeError::Missing { name: format!("{stem}*"), looked })
}

/// The process's one environment; the first call loads the library.
pub fn environment() -> Result<&'static Environment, RuntimeError> {
    static ENVIRONMENT: OnceLock<Result<Environment, (PathBuf, String)>> = OnceLock::new();
    let path = find_native("libonnxruntime.so")?;
    let built = ENVIRONMENT.get_or_init(|| {
        let builder = ort::init_from(&path).map_err(|e| (path.clone(), e.to_string()))?;
        builder.with_telemetry(false).build().map_err(|e| (path, e.to_string()))
    });
    built
        .as_ref()
        .map_err(|(path, message)| RuntimeError::Load { path: path.clone(), message: message.clone() })
}

/// A CPU session over the graph at `path` with `threads` intra-op threads that do not spin.
pub fn cpu_session(path: &Path, threads: usize) -> Result<Session, RuntimeError> {
    let environment = environment()?;
    let build = || -> ort::Result<Session> {
        let builder = Session::builder(environment)?
            .with_intra_threads(threads)?
            .with_inter_threads(1)?
            .with_intra_op_spinning(false)?;
        let mut builder = builder;
        builder.commit_from_file(path)
    };
    if !path.is_file() {
        return Err(RuntimeError::Missing {
            name: file_name(path),
            looked: path.parent().map(Path::to_path_buf).into_iter().collect(),
        });
    }
    build().map_err(|e| RuntimeError::Load { path: path.to_path_buf(), message: e.to_string() })
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}
