//! `docparse bench`: decoding modes side by side. The table goes to stderr, the report to the file.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use super::args::{BenchArguments, MessageArguments};
use super::exit::Outcome;
use super::locate;
use super::report::Report;
use crate::batch::engine::NativeEngine;
use crate::batch::inputs::{InputArgument, expand};
use crate::batch::output::write_atomic;
use crate::bench::modes::Mode;
use crate::bench::{BenchError, BenchSettings, run};
use crate::pdf::OpenOptions;
use crate::reader::ReaderSettings;
use crate::settings::{DecodeSettings, Device, ModelChoice, RasterSettings};

/// Runs `bench`.
pub(super) fn bench(arguments: &BenchArguments) -> Outcome {
    let report = Report::new(&MessageArguments::default());
    match measure(arguments, &report) {
        Ok(()) => Outcome::Done,
        Err((outcome, message)) => {
            report.error(&message, &[]);
            outcome
        }
    }
}

fn measure(arguments: &BenchArguments, report: &Report) -> Result<(), (Outcome, String)> {
    let named: Vec<InputArgument> = arguments.documents.iter().cloned().map(InputArgument::Path).collect();
    let inputs =
        expand(&named, &mut std::io::empty()).map_err(|error| (Outcome::Failed, error.to_string()))?;
    if let Some((path, error)) = inputs.unreadable.first() {
        return Err((Outcome::BadArguments, format!("{}: {error}", path.display())));
    }
    let files: Vec<_> = inputs.files.iter().map(|file| file.path.clone()).collect();
    let engine = engine(arguments)?;
    let settings = BenchSettings {
        repetitions: arguments.repetitions.max(1),
        pages: arguments.pages.max(1),
        max_tokens: arguments.max_tokens,
        draft_error: arguments.draft_error.clamp(0.0, 1.0),
        modes: Mode::ALL.to_vec(),
    };
    let measured = run(&files, &engine, &settings, &mut |line| report.note(line)).map_err(|error| {
        let outcome = match &error {
            BenchError::Reader(_) | BenchError::NoModel => Outcome::Missing,
            BenchError::NoPages | BenchError::Page { .. } => Outcome::Failed,
        };
        (outcome, error.to_string())
    })?;
    measured.table().lines().for_each(|line| report.note(line));
    let text = format!("{:#}\n", measured.json());
    write_atomic(&arguments.json, text.as_bytes()).map_err(|error| (Outcome::Output, error.to_string()))
}

fn engine(arguments: &BenchArguments) -> Result<NativeEngine, (Outcome, String)> {
    let missing = |message: String| (Outcome::Missing, message);
    let model = locate::model(arguments.model.as_deref()).map_err(|error| missing(error.to_string()))?;
    let program = std::env::current_exe().map_err(|error| missing(error.to_string()))?;
    Ok(NativeEngine {
        readers: AtomicUsize::new(0),
        open: OpenOptions {
            raster: RasterSettings::default(),
            password: None,
            page_timeout: Duration::from_secs(120),
            program,
        },
        reader: ReaderSettings {
            model: model.unwrap_or(ModelChoice::None),
            device: Device::Cpu,
            decode: DecodeSettings::default(),
            third_party: locate::third_party(),
            threads: arguments.threads.max(1),
            figures: false,
            page_pictures: false,
        },
    })
}
