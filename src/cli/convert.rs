//! `docparse convert`: what was typed -> settings -> the batch.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use super::args::{ConvertArguments, DecodeArguments, InputArguments, LimitArguments, RunArguments};
use super::exit::Outcome;
use super::locate;
use super::report::{self, Report};
use super::selection;
use crate::batch::engine::NativeEngine;
use crate::batch::identity::PageSettings;
use crate::batch::inputs::{InputArgument, Inputs, expand, split_list};
use crate::batch::journal::{FileRecord, Journal, finished_files};
use crate::batch::output::{OutputError, has_output, write_atomic};
use crate::batch::pages::PageRanges;
use crate::batch::plan::{PlannedFile, plan};
use crate::batch::runner::{self, BatchError, BatchSettings, Run};
use crate::batch::shard::Shard;
use crate::drafts::tesseract::{installed_languages, needs_tesseract};
use crate::graphs::runtime::RuntimeError;
use crate::pdf::OpenOptions;
use crate::reader::{ReaderError, ReaderSettings};
use crate::settings::{
    DecodeSettings, Destination, Existing, Format, Limits, MemorySettings, ModelChoice, OutputSettings,
    RasterSettings,
};

/// Why nothing is converted at all.
#[derive(Debug)]
struct Refusal {
    outcome: Outcome,
    message: String,
    hints: Vec<String>,
}

impl Refusal {
    fn new(outcome: Outcome, message: impl Into<String>) -> Refusal {
        Refusal { outcome, message: message.into(), hints: Vec::new() }
    }

    fn arguments(message: impl Into<String>) -> Refusal {
        Refusal::new(Outcome::BadArguments, message)
    }

    fn hint(mut self, hint: impl Into<String>) -> Refusal {
        self.hints.push(hint.into());
        self
    }
}

impl From<OutputError> for Refusal {
    fn from(error: OutputError) -> Refusal {
        Refusal::new(Outcome::Output, error.to_string())
    }
}

/// Runs `convert`.
pub(super) fn convert(arguments: &ConvertArguments) -> Outcome {
    let mut report = Report::new(&arguments.messages);
    let result = named_files(arguments).and_then(|(inputs, files, output)| {
        if arguments.output.dry_run {
            let destination = destination(&arguments.output.output);
            check_existing(&destination, existing(arguments), &files)?;
            let text = selection::dry_run(&files, &destination, existing(arguments))?;
            return Ok(report::print(&text));
        }
        let prepared = prepare(arguments, inputs, files, output, &report)?;
        run(arguments, prepared, &mut report)
    });
    match result {
        Ok(outcome) => outcome,
        Err(Refusal { outcome, message, hints }) => {
            report.error(&message, &hints);
            outcome
        }
    }
}

/// Everything that is settled before models load.
struct Prepared {
    inputs: Inputs,
    files: Vec<PlannedFile>,
    settings: BatchSettings,
    engine: NativeEngine,
    journal: Option<Journal>,
    finished: HashMap<String, FileRecord>,
}

/// The files that this run takes, each with its place.
fn named_files(arguments: &ConvertArguments) -> Result<(Inputs, Vec<PlannedFile>, OutputSettings), Refusal> {
    let output = output_settings(arguments)?;
    let mut inputs = inputs(arguments)?;
    let mut files = plan(std::mem::take(&mut inputs.files)).map_err(|collision| {
        Refusal::arguments(collision.to_string())
            .hint("name a folder that holds both, so that their own folders are kept, or convert them to different folders")
    })?;
    let destination = destination(&arguments.output.output);
    if destination == Destination::Stdout && files.len() + inputs.unreadable.len() > 1 {
        return Err(
            Refusal::arguments("`--output -` takes one input").hint("write to a folder with `--output DIR`")
        );
    }

    if let Some(shard) = arguments.run.shard {
        selection::keep_shard(shard, &mut inputs, &mut files);
    }
    if let (true, Destination::Folder(root)) = (arguments.output.retry_failed, &destination) {
        selection::keep_failed(root, &mut files)?;
    }
    Ok((inputs, files, output))
}

fn prepare(
    arguments: &ConvertArguments,
    inputs: Inputs,
    files: Vec<PlannedFile>,
    output: OutputSettings,
    report: &Report,
) -> Result<Prepared, Refusal> {
    let destination = destination(&arguments.output.output);
    let password = password(&arguments.input)?;
    check_stats_place(arguments.messages.stats.as_deref())?;
    let model = model(arguments, report)?;
    let raster = raster_settings(arguments, &model);
    let languages = languages(&arguments.input.lang)?;
    let decode = DecodeSettings { languages, ..decode_settings(&arguments.decode) };
    let limits = limits(&arguments.limits);
    let third_party = locate::third_party();
    let page_settings = PageSettings {
        raster: &raster,
        decode: &decode,
        output: &output,
        third_party: &installed(&third_party, decode.drafters.ocr),
    };
    let jobs = jobs(arguments.run.jobs);
    let settings = BatchSettings {
        jobs,
        pages: arguments.input.pages.clone().unwrap_or_else(PageRanges::all),
        settings_sha256: page_settings.sha256(),
        existing: existing(arguments),
        fail_fast: arguments.run.fail_fast,
        max_pages: arguments.limits.max_pages,
        file_timeout: arguments.limits.file_timeout.map(|seconds| Duration::from_secs(seconds.into())),
        destination,
        output,
    };
    let (journal, finished) = open_destination(&settings, &files, arguments.run.shard)?;
    let program = std::env::current_exe().map_err(|error| {
        Refusal::new(Outcome::Missing, format!("the program's own file is not known: {error}"))
    })?;
    let engine = NativeEngine {
        readers: AtomicUsize::new(0),
        open: OpenOptions { raster, password, limits, program },
        reader: ReaderSettings {
            model,
            device: arguments.run.device.clone(),
            decode,
            page_time: limits.page_time,
            memory: memory_settings(&arguments.run),
            third_party,
            pages_per_call: arguments.run.pages_per_call.map(|pages| pages as usize),
            threads: (cores() / jobs).max(1),
            figures: settings.output.figures,
            page_pictures: settings.output.formats.contains(&Format::Html),
        },
    };
    Ok(Prepared { inputs, files, settings, engine, journal, finished })
}

fn run(arguments: &ConvertArguments, prepared: Prepared, report: &mut Report) -> Result<Outcome, Refusal> {
    let Prepared { inputs, files, settings, engine, journal, finished } = prepared;
    for path in &inputs.empty {
        report.warning(&format!("no PDF or picture in `{}`", path.display()));
    }
    let signal = watch_signals()
        .map_err(|error| Refusal::new(Outcome::Failed, format!("signals cannot be watched: {error}")))?;
    if !files.is_empty() {
        report.start_progress();
    }
    let batch = Run {
        engine: &engine,
        files: &files,
        unreadable: &inputs.unreadable,
        settings: &settings,
        signal: &signal,
        journal,
        finished,
    };
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let done = runner::run(batch, &mut stdout, &mut |record| report.record(record));
    report.stop_progress();
    if let Some(error) = &done.error
        && !matches!(error, BatchError::BrokenPipe)
    {
        report.error(&error.to_string(), &hints(error));
    }
    if let Some(path) = &arguments.messages.stats {
        let mut text = done.stats.report(&done.summary).to_string();
        text.push('\n');
        write_atomic(path, text.as_bytes())?;
    }
    // What could not be written because nobody reads it any more is no failure.
    let _ = stdout.flush();
    Ok(Outcome::of(&done))
}

fn hints(error: &BatchError) -> Vec<String> {
    match error {
        BatchError::Reader(ReaderError::Runtime(RuntimeError::Missing { .. })) => vec![
            "`scripts/setup` fetches the native libraries and the small models".into(),
            "`docparse doctor` says what is found and what is missing".into(),
        ],
        BatchError::Reader(_) => vec!["`docparse doctor` says what is found and what is missing".into()],
        _ => Vec::new(),
    }
}

fn output_settings(arguments: &ConvertArguments) -> Result<OutputSettings, Refusal> {
    let typed = &arguments.output;
    let to_stdout = destination(&typed.output) == Destination::Stdout;
    let mut formats: Vec<Format> = typed.format.iter().map(|format| format.0).collect();
    formats.sort_unstable();
    formats.dedup();
    if to_stdout && formats.len() > 1 {
        return Err(Refusal::arguments("`--output -` takes one format").hint("name it with `--format`"));
    }
    if to_stdout && (typed.resume || typed.overwrite) {
        return Err(Refusal::arguments("`--resume` and `--overwrite` need a folder to write to"));
    }
    if to_stdout && typed.figures {
        return Err(Refusal::arguments("`--figures` needs a folder to write to"));
    }
    if to_stdout && formats.contains(&Format::Html) {
        return Err(Refusal::arguments("HTML is made of whole documents: it needs a folder to write to"));
    }
    if formats.is_empty() {
        formats = if to_stdout { vec![Format::Markdown] } else { OutputSettings::default().formats };
    }
    Ok(OutputSettings {
        formats,
        figures: !typed.no_figures && !to_stdout,
        running_matter: typed.running_matter,
        page_markers: !typed.no_page_markers,
    })
}

fn destination(output: &Path) -> Destination {
    if output == Path::new("-") { Destination::Stdout } else { Destination::Folder(output.to_path_buf()) }
}

fn existing(arguments: &ConvertArguments) -> Existing {
    match (arguments.output.resume, arguments.output.overwrite) {
        (true, _) => Existing::Resume,
        (_, true) => Existing::Overwrite,
        _ => Existing::Refuse,
    }
}

fn inputs(arguments: &ConvertArguments) -> Result<Inputs, Refusal> {
    let is_stdin = |path: &PathBuf| path == Path::new("-");
    let list_on_stdin = arguments.input.files_from.as_ref().is_some_and(is_stdin);
    let documents_on_stdin = arguments.inputs.iter().filter(|path| is_stdin(path)).count();
    if documents_on_stdin + usize::from(list_on_stdin) > 1 {
        return Err(Refusal::arguments("stdin can be read once: `-` is named more than once"));
    }
    let mut named: Vec<InputArgument> = arguments
        .inputs
        .iter()
        .map(|path| if is_stdin(path) { InputArgument::Stdin } else { InputArgument::Path(path.clone()) })
        .collect();
    if let Some(list) = &arguments.input.files_from {
        let bytes = if list_on_stdin {
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut io::stdin().lock(), &mut bytes).map(|_| bytes)
        } else {
            std::fs::read(list)
        };
        let bytes = bytes
            .map_err(|error| Refusal::arguments(format!("`--files-from`: {}: {error}", list.display())))?;
        named.extend(split_list(&bytes, arguments.input.nul).into_iter().map(InputArgument::Path));
    }
    expand(&named, &mut io::stdin().lock())
        .map_err(|error| Refusal::new(Outcome::Failed, format!("stdin: {error}")))
}

fn password(arguments: &InputArguments) -> Result<Option<String>, Refusal> {
    if let Some(path) = &arguments.password_file {
        let mut line = String::new();
        std::fs::File::open(path)
            .and_then(|file| io::BufReader::new(file).read_line(&mut line))
            .map_err(|error| Refusal::arguments(format!("`--password-file`: {}: {error}", path.display())))?;
        return Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()));
    }
    Ok(arguments.password.clone().or_else(|| std::env::var("DOCPARSE_PASSWORD").ok()))
}

fn model(arguments: &ConvertArguments, report: &Report) -> Result<ModelChoice, Refusal> {
    let found = locate::model(arguments.run.model.as_deref()).map_err(|missing| {
        Refusal::new(Outcome::Missing, missing.to_string())
            .hint("`docparse models list` says which models are found; `--model none` does without")
    })?;
    Ok(found.unwrap_or_else(|| {
        report.warning(&format!(
            "model `{}` not found: text and layout are written unverified, as with `--model none`",
            locate::DEFAULT_PACK
        ));
        ModelChoice::None
    }))
}

fn raster_settings(arguments: &ConvertArguments, model: &ModelChoice) -> RasterSettings {
    let mut raster = RasterSettings::default();
    let of_pack = match model {
        ModelChoice::Pack(folder) => locate::default_dpi(folder),
        ModelChoice::None => None,
    };
    // The OCR and the layout network want the usual resolution whatever the model's is; a raster is easily made smaller.
    let automatic = of_pack.map_or(raster.dpi, |dpi| dpi.max(raster.dpi));
    raster.dpi = arguments.run.dpi.map_or(automatic, f32::from);
    raster
}

fn decode_settings(arguments: &DecodeArguments) -> DecodeSettings {
    DecodeSettings {
        drafters: arguments.drafts,
        acceptance: arguments.accept.map(|accept| accept.0),
        max_tokens: arguments.max_tokens.map(|tokens| tokens as usize),
        fixation: arguments.fixation,
        focal_layers: (!arguments.focal_layers.is_empty()).then(|| arguments.focal_layers.clone()),
        tsp: arguments.tsp,
        retention: arguments.retention,
        ..DecodeSettings::default()
    }
}

/// The languages named. Those that only tesseract reads must be installed.
fn languages(typed: &[String]) -> Result<Vec<String>, Refusal> {
    let has = |name: &String| installed_languages().contains(name);
    match typed.iter().find(|name| needs_tesseract(name) && !has(name)) {
        None => Ok(typed.to_vec()),
        Some(name) => {
            let message = format!("`--lang {name}`: tesseract is not installed with this language");
            let found = match installed_languages() {
                [] => "neither the program nor its `osd` data is found".to_owned(),
                languages => format!("it has {}", languages.join(", ")),
            };
            Err(Refusal::new(Outcome::Missing, message).hint(found))
        }
    }
}

/// What the drafts depend on besides the settings: the small models and, for the OCR, tesseract's languages.
fn installed(third_party: &Path, ocr: bool) -> Vec<(String, u64)> {
    let mut found = locate::third_party_files(third_party);
    let languages = if ocr { installed_languages() } else { &[] };
    found.extend(languages.iter().map(|name| (format!("tesseract {name}"), 0)));
    found
}

fn memory_settings(typed: &RunArguments) -> MemorySettings {
    let bytes = |gibibytes: f32| (f64::from(gibibytes) * f64::from(1 << 30)) as usize;
    MemorySettings { keys_and_values: typed.kv_memory.map(bytes), device: typed.device_memory.map(bytes) }
}

fn limits(typed: &LimitArguments) -> Limits {
    Limits {
        page_time: Duration::from_secs(typed.page_timeout.into()),
        raster_memory: typed.raster_memory,
        picture_pixels: u64::from(typed.max_pixels) * 1_000_000,
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn jobs(typed: usize) -> usize {
    if typed == 0 { cores() } else { typed }
}

/// Refuses output that exists if it is to be refused.
fn check_existing(
    destination: &Destination,
    existing: Existing,
    files: &[PlannedFile],
) -> Result<(), Refusal> {
    let Destination::Folder(root) = destination else { return Ok(()) };
    let mut there = Vec::new();
    for file in files {
        let folder = root.join(&file.folder);
        if has_output(&folder)? {
            there.push(folder);
        }
    }
    if let (Some(first), Existing::Refuse) = (there.first(), existing) {
        let others = match there.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let message = format!("`{}`{others}: output exists already", first.display());
        let hint = "`--resume` keeps finished pages, `--overwrite` replaces them";
        return Err(Refusal::new(Outcome::Output, message).hint(hint));
    }
    Ok(())
}

/// Refuses output that exists, makes the output folder and opens its journal.
fn open_destination(
    settings: &BatchSettings,
    files: &[PlannedFile],
    shard: Option<Shard>,
) -> Result<(Option<Journal>, HashMap<String, FileRecord>), Refusal> {
    check_existing(&settings.destination, settings.existing, files)?;
    let Destination::Folder(root) = &settings.destination else { return Ok((None, HashMap::new())) };
    std::fs::create_dir_all(root).map_err(OutputError::at(root))?;
    let finished = match settings.existing {
        Existing::Resume => finished_files(root),
        Existing::Refuse | Existing::Overwrite => HashMap::new(),
    };
    Ok((Some(Journal::open(root, shard)?), finished))
}

/// A report that cannot be written is better known before the run than after it.
fn check_stats_place(path: Option<&Path>) -> Result<(), Refusal> {
    let Some(path) = path else { return Ok(()) };
    if path.is_dir() {
        return Err(Refusal::new(Outcome::Output, format!("`--stats`: `{}` is a directory", path.display())));
    }
    crate::batch::output::AtomicFile::create(path)?;
    Ok(())
}

/// The number of the signal that came, 0 before. A second signal ends the program at once.
fn watch_signals() -> io::Result<Arc<AtomicUsize>> {
    let number = Arc::new(AtomicUsize::new(0));
    let again = Arc::new(AtomicBool::new(false));
    // Handled, so that a write past `ulimit -f` is an error that is reported.
    flag::register(SIGXFSZ, Arc::default())?;
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&again))?;
        flag::register(signal, Arc::clone(&again))?;
        flag::register_usize(signal, Arc::clone(&number), signal as usize)?;
    }
    Ok(number)
}
