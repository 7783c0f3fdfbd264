//! `docparse doctor`: what is installed, what is missing, and how to get it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::args::MessageArguments;
use super::exit::Outcome;
use super::locate;
use super::report::{Report, escaped, print};
use crate::drafts::tesseract::installed_languages;
use crate::graphs::runtime::{self, RuntimeError};

const SETUP_HINT: &str = "`scripts/setup` fetches the native libraries and the small models";

/// The small third-party models and what goes without each.
const THIRD_PARTY: [(&str, &str); 4] = [
    ("layout_cdla.onnx", "layout drafts"),
    ("PP-OCRv6_det_small.onnx", "OCR"),
    ("PP-OCRv6_rec_small.onnx", "OCR"),
    ("slanet-plus.onnx", "table drafts"),
];

/// Runs `doctor`.
pub(super) fn doctor() -> Outcome {
    let report = Report::new(&MessageArguments::default());
    let mut text = format!("docparse\t{}\n", env!("CARGO_PKG_VERSION"));
    let mut line = |what: &str, state: &str| {
        let _ = writeln!(text, "{what}\t{}", escaped(state));
    };
    let libraries = [
        ("onnxruntime", "libonnxruntime.so", onnx_runtime()),
        ("pdfium", "libpdfium.so", runtime::find_native("libpdfium.so")),
    ];
    let mut can_convert = true;
    for (what, name, library) in libraries {
        match library {
            Ok(path) => line(what, &path.display().to_string()),
            Err(error) => {
                can_convert = false;
                line(what, &missing(name, &error));
            }
        }
    }
    line("cpu", &format!("{} cores", std::thread::available_parallelism().map_or(1, usize::from)));
    line("cuda", &cuda());
    let folder = locate::third_party();
    for (name, purpose) in THIRD_PARTY {
        let path = folder.join(name);
        let state = match path.is_file() {
            true => path.display().to_string(),
            false => format!("missing: no {purpose}; looked for {}", path.display()),
        };
        line(name, &state);
    }
    match installed_languages() {
        [] => line(
            "tesseract",
            "not found with its `osd` data: scripts that the OCR lacks are read from text layers only",
        ),
        languages => line("tesseract", &languages.join(" ")),
    }
    let packs = locate::packs();
    for (name, folder) in &packs {
        line("pack", &format!("{name}: {}", folder.display()));
    }
    if packs.is_empty() {
        line("pack", "none found: text and layout are written unverified");
    }
    let printed = print(&text);
    let all_small_models = THIRD_PARTY.iter().all(|(name, _)| folder.join(name).is_file());
    if !can_convert {
        report.error("nothing can be converted: a native library is missing", &[SETUP_HINT.into()]);
        return Outcome::Missing;
    }
    if !all_small_models {
        report.warning(&format!("some small models are missing; {SETUP_HINT}"));
    }
    printed
}

/// The library's file, once it has been loaded.
fn onnx_runtime() -> Result<PathBuf, RuntimeError> {
    let path = runtime::find_native("libonnxruntime.so")?;
    runtime::environment().map(|_| path)
}

fn missing(name: &str, error: &RuntimeError) -> String {
    match error {
        RuntimeError::Missing { looked, .. } => {
            let looked: Vec<String> = looked.iter().map(|folder| folder.display().to_string()).collect();
            format!("missing: `{name}` in none of {}", looked.join(", "))
        }
        other => other.to_string(),
    }
}

/// CUDA needs a driver and an ONNX Runtime that was built with it.
fn cuda() -> String {
    let provider = runtime::find_native("libonnxruntime_providers_cuda.so");
    let driver = Path::new("/proc/driver/nvidia/version").exists();
    match (provider, driver) {
        (Ok(path), true) => path.display().to_string(),
        (Ok(_), false) => "no NVIDIA driver".into(),
        (Err(_), true) => "not in this ONNX Runtime; the wheel `onnxruntime-gpu` has it".into(),
        (Err(_), false) => "no NVIDIA driver, and not in this ONNX Runtime".into(),
    }
}
