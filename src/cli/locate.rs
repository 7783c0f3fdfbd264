//! Where models lie: `models/` beside the program and in the folders above it (a checkout's, when run from `target/`).

use std::path::{Path, PathBuf};

use crate::settings::ModelChoice;

/// File that makes a folder a model pack.
pub(crate) const MANIFEST_NAME: &str = "docparse.json";

/// The pack that comes with the program.
pub(crate) const DEFAULT_PACK: &str = "nano";

/// Folders above the executable that are looked into, its own included.
const DEPTH: usize = 5;

/// The `models/` folders, nearest first; only those that exist.
pub(crate) fn model_folders() -> Vec<PathBuf> {
    candidate_folders().into_iter().filter(|folder| folder.is_dir()).collect()
}

fn candidate_folders() -> Vec<PathBuf> {
    let executable = std::env::current_exe().and_then(|path| path.canonicalize());
    let Ok(executable) = executable else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        executable.ancestors().skip(1).take(DEPTH).map(|folder| folder.join("models")).collect();
    if let Some(prefix) = executable.parent().and_then(Path::parent) {
        folders.push(prefix.join("lib").join("docparse").join("models"));
    }
    folders
}

/// Folder of the small third-party models: the first that exists, else where it is expected.
pub(crate) fn third_party() -> PathBuf {
    let candidates: Vec<PathBuf> =
        candidate_folders().into_iter().map(|folder| folder.join("third-party")).collect();
    let found = candidates.iter().find(|folder| folder.is_dir()).or(candidates.first());
    found.cloned().unwrap_or_else(|| PathBuf::from("models/third-party"))
}

/// Names and sizes of the small third-party models in `folder`, sorted.
pub(crate) fn third_party_files(folder: &Path) -> Vec<(String, u64)> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<(String, u64)> = entries
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "onnx"))
        .filter_map(|entry| {
            let size = std::fs::metadata(entry.path()).ok()?.len();
            Some((entry.file_name().to_string_lossy().into_owned(), size))
        })
        .collect();
    files.sort();
    files
}

/// All packs in the `models/` folders; a name that a nearer folder has hides the farther ones.
pub(crate) fn packs() -> Vec<(String, PathBuf)> {
    let mut packs: Vec<(String, PathBuf)> = Vec::new();
    for folder in model_folders() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let mut here: Vec<(String, PathBuf)> = entries
            .flatten()
            .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
            .filter(|(_, path)| path.join(MANIFEST_NAME).is_file())
            .collect();
        here.sort();
        here.retain(|(name, _)| packs.iter().all(|(known, _)| known != name));
        packs.append(&mut here);
    }
    packs
}

/// A pack that is named and cannot be found.
#[derive(Debug, thiserror::Error)]
#[error("model `{name}` not found; looked for {}", looked.iter().map(|p| format!("`{}`", p.display())).collect::<Vec<_>>().join(", "))]
pub(crate) struct PackMissing {
    pub(crate) name: String,
    pub(crate) looked: Vec<PathBuf>,
}

/// The folder that `name` means: a folder with a manifest, or a name in a `models/` folder.
pub(crate) fn pack(name: &str) -> Result<PathBuf, PackMissing> {
    let as_folder = Path::new(name);
    if as_folder.join(MANIFEST_NAME).is_file() {
        return Ok(as_folder.to_path_buf());
    }
    let mut looked = vec![as_folder.join(MANIFEST_NAME)];
    let is_bare_name = as_folder.components().count() == 1 && !name.starts_with('.');
    for folder in candidate_folders().into_iter().filter(|_| is_bare_name) {
        let pack = folder.join(name);
        if pack.join(MANIFEST_NAME).is_file() {
            return Ok(pack);
        }
        looked.push(pack.join(MANIFEST_NAME));
    }
    Err(PackMissing { name: name.to_owned(), looked })
}

/// What `--model` means. Without it: the pack that comes with the program, or `None` if it is not there.
pub(crate) fn model(argument: Option<&str>) -> Result<Option<ModelChoice>, PackMissing> {
    match argument {
        Some("none") => Ok(Some(ModelChoice::None)),
        Some(name) => pack(name).map(|folder| Some(ModelChoice::Pack(folder))),
        None => Ok(pack(DEFAULT_PACK).ok().map(ModelChoice::Pack)),
    }
}

/// The manifest of the pack in `folder` as it stands.
pub(crate) fn manifest(folder: &Path) -> Result<serde_json::Value, String> {
    let path = folder.join(MANIFEST_NAME);
    let bytes = std::fs::read(&path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("`{}`: {error}", path.display()))
}

/// The resolution of the rasters that the pack in `folder` reads.
pub(crate) fn default_dpi(folder: &Path) -> Option<f32> {
    let dpi = manifest(folder).ok()?.pointer("/preprocessing/default_dpi")?.as_f64()?;
    Some(dpi as f32)
}
