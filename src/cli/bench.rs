//! `docparse bench`: decoding modes side by side. The table goes to stderr, the report to the file.

use std::path::Path;
use std::sync::atomic::AtomicUsize;

use super::args::{BenchArguments, MessageArguments};
use super::exit::Outcome;
use super::locate;
use super::report::Report;
use crate::batch::engine::NativeEngine;
use crate::batch::inputs::{InputArgument, expand};
use crate::batch::output::write_atomic;
use crate::batch::stats::peak_rss_bytes;
use crate::bench::modes::Mode;
use crate::bench::steps::{GridSettings, Method};
use crate::bench::{BenchError, BenchSettings, profile_decoder, run, run_decoder};
use crate::pdf::OpenOptions;
use crate::reader::ReaderSettings;
use crate::settings::{DecodeSettings, Device, Limits, MemorySettings, ModelChoice, RasterSettings};

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
    if let Some(folder) = &arguments.decoder {
        let settings = grid_settings(arguments);
        if arguments.profile {
            return profile(arguments, folder, &settings, report);
        }
        let grid = run_decoder(folder, arguments.prefix.max(1), &settings, &mut |line| report.note(line))
            .map_err(failed)?;
        grid.table().lines().for_each(|line| report.note(line));
        return write(
            arguments,
            &serde_json::json!({
                "optimised_build": !cfg!(debug_assertions),
                "peak_rss_bytes": peak_rss_bytes(),
                "steps": grid.json(),
                "ratios": grid.ratios(),
            }),
        );
    }
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
        modes: modes(arguments),
    };
    let mut measured = run(&files, &engine, &settings, &mut |line| report.note(line)).map_err(failed)?;
    if let Some(path) = &arguments.peer {
        let read = std::fs::read(path).map_err(|error| error.to_string());
        let peer = read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
        measured.join_peer(
            peer.map_err(|error| (Outcome::BadArguments, format!("{}: {error}", path.display())))?,
        );
    }
    measured.table().lines().for_each(|line| report.note(line));
    if let Some(folder) = &arguments.plots {
        let fail =
            |error: &dyn std::fmt::Display| (Outcome::Output, format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(|error| fail(&error))?;
        for (name, svg) in measured.plots() {
            write_atomic(&folder.join(name), svg.as_bytes()).map_err(|error| fail(&error))?;
        }
    }
    write(arguments, &measured.json())
}

fn profile(
    arguments: &BenchArguments,
    folder: &Path,
    settings: &GridSettings,
    report: &Report,
) -> Result<(), (Outcome, String)> {
    let writes = profile_decoder(folder, arguments.prefix.max(2), settings).map_err(failed)?;
    report.note(&writes.table());
    write(
        arguments,
        &serde_json::json!({ "peak_rss_bytes": peak_rss_bytes(), "step_writes": writes.json() }),
    )?;
    match writes.copies().as_slice() {
        [] => Ok(()),
        copies => {
            Err((Outcome::Failed, format!("a step copies a part of the prefix: {}", copies.join(", "))))
        }
    }
}

fn write(arguments: &BenchArguments, report: &serde_json::Value) -> Result<(), (Outcome, String)> {
    let text = format!("{report:#}\n");
    write_atomic(&arguments.json, text.as_bytes()).map_err(|error| (Outcome::Output, error.to_string()))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to `map_err`")]
fn failed(error: BenchError) -> (Outcome, String) {
    let outcome = match &error {
        BenchError::Reader(_) | BenchError::NoModel | BenchError::Shape { .. } => Outcome::Missing,
        BenchError::NoPages
        | BenchError::Page { .. }
        | BenchError::Graph(_)
        | BenchError::Model(_)
        | BenchError::Profile(_) => Outcome::Failed,
    };
    (outcome, error.to_string())
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
            limits: Limits::default(),
            program,
        },
        reader: ReaderSettings {
            pages_per_call: None,
            page_time: Limits::default().page_time,
            model: model.unwrap_or(ModelChoice::None),
            device: Device::Cpu,
            decode: DecodeSettings::default(),
            memory: MemorySettings::default(),
            third_party: locate::third_party(),
            threads: arguments.threads.max(1),
            figures: false,
            page_pictures: false,
        },
    })
}

/// The steps of a graph that is no pack's: reading everything, each share, and without a prefix.
fn grid_settings(arguments: &BenchArguments) -> GridSettings {
    let share = |percent: &u8| f32::from(*percent) / 100.0;
    let fixation = arguments.fixation.iter().map(|percent| Method::Fixation(share(percent)));
    let retention = arguments.retention.iter().map(|percent| Method::Retention(share(percent)));
    let together = arguments
        .pages_per_call
        .iter()
        .filter(|&&pages| pages > 1)
        .map(|&pages| Method::Together(pages.into()));
    let methods = [Method::Plain]
        .into_iter()
        .chain(fixation)
        .chain(retention)
        .chain(together)
        .chain([Method::NoPrefix]);
    GridSettings {
        rows: arguments.rows.iter().map(|&rows| usize::from(rows)).collect(),
        methods: methods.collect(),
        steps: arguments.steps.max(1),
        ..GridSettings::new(0, arguments.repetitions.max(1), arguments.threads.max(1))
    }
}

/// All modes that read everything, then each share alone, one stream at a time and forked, then propagation and retention
/// together.
fn modes(arguments: &BenchArguments) -> Vec<Mode> {
    let mut modes = Mode::WHOLE.to_vec();
    let mut both = |of: &dyn Fn(Mode) -> Mode| modes.extend([Mode::SEQUENTIAL, Mode::FORKED].map(of));
    for &fixation in arguments.fixation.iter().filter(|&&percent| percent < 100) {
        both(&|mode| Mode { fixation, ..mode });
    }
    for &tsp in arguments.tsp.iter().filter(|&&percent| percent < 100) {
        both(&|mode| Mode { tsp, ..mode });
    }
    for &retention in arguments.retention.iter().filter(|&&percent| percent < 100) {
        both(&|mode| Mode { retention, ..mode });
    }
    if let (Some(&tsp), Some(&retention)) = (arguments.tsp.first(), arguments.retention.first()) {
        both(&|mode| Mode { tsp, retention, ..mode });
    }
    modes
}
