//! The command line as it is typed. The only place where a flag is described.

use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, PossibleValue};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use crate::batch::pages::PageRanges;
use crate::batch::shard::Shard;
use crate::settings::{Acceptance, Device, Drafters, Format};

const EXIT_CODES: &str = "\
Exit codes:
    0  every requested page came out
    1  finished, but a page or a file failed
    2  the command line is wrong
    3  a model or a native library is missing or does not match
    4  output cannot be written, or exists already
    5  nothing failed, but some pages came out only in part
  130  stopped by Ctrl-C (143: by SIGTERM); finished pages are kept, `--resume` goes on";

const EXAMPLES: &str = "\
Examples:
  docparse convert report.pdf -o out/            one file to out/report/
  docparse convert scans/ more.tif -o out/       a directory tree and a picture
  docparse convert report.pdf --pages 2-4 -o -   three pages as Markdown to stdout
  find . -name '*.pdf' -print0 | docparse convert --files-from - -0 -o out/ --resume";

/// Converts PDFs and page pictures to Markdown and JSON.
#[derive(Debug, Parser)]
#[command(name = "docparse", version, after_help = EXIT_CODES, max_term_width = 100, propagate_version = true,
          arg_required_else_help = true, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    /// Print the man page or completions: man, complete-bash, complete-zsh, complete-fish.
    #[arg(long, value_name = "WHAT", hide_possible_values = true)]
    pub(crate) generate: Option<Generated>,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What is made from the descriptions in this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Generated {
    Man,
    CompleteBash,
    CompleteZsh,
    CompleteFish,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Convert(Box<ConvertArguments>),
    Status(StatusArguments),
    Diff(DiffArguments),
    Models(ModelsArguments),
    Doctor(DoctorArguments),
    Bench(Box<BenchArguments>),
}

/// Convert PDFs, PNG, JPEG and TIFF pictures, and directories of them.
///
/// Every page becomes `page-0001.md` and `page-0001.json` in a folder named after its file; once all pages of a file are
/// done, `document.md` and `document.json` stand beside them. A page or file that fails is reported and the rest converted.
#[derive(Args, Debug)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct ConvertArguments {
    /// Files, directories (searched for PDFs and pictures), or `-` for stdin.
    #[arg(value_name = "INPUT", required_unless_present = "files_from")]
    pub(crate) inputs: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) input: InputArguments,

    #[command(flatten)]
    pub(crate) output: OutputArguments,

    #[command(flatten)]
    pub(crate) run: RunArguments,

    #[command(flatten)]
    pub(crate) limits: LimitArguments,

    #[command(flatten)]
    pub(crate) decode: DecodeArguments,

    #[command(flatten)]
    pub(crate) messages: MessageArguments,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArguments {
    /// Read further inputs from FILE, one a line (`-` = stdin).
    #[arg(long, value_name = "FILE")]
    pub(crate) files_from: Option<PathBuf>,

    /// Names in the `--files-from` list end in NUL, as `find -print0` writes them.
    #[arg(short = '0', long = "null", requires = "files_from")]
    pub(crate) nul: bool,

    /// Pages to convert: `1-3,7`, `5-`, `-3`; they count from 1.
    #[arg(long, value_name = "RANGES", allow_hyphen_values = true)]
    pub(crate) pages: Option<PageRanges>,

    /// Languages of pages without a text layer: `ara`, `hin,eng` [default: what the page shows].
    ///
    /// Named as tesseract does. Latin, Chinese and Japanese script is read by the program itself. For other scripts it asks `tesseract`, if that is
    /// installed with the language's data; naming one that is not installed is an error.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) lang: Vec<String>,

    /// Password of encrypted PDFs (env `DOCPARSE_PASSWORD`).
    ///
    /// Other users of the machine can see it in the list of processes; `--password-file` and the variable are not shown there.
    #[arg(long, value_name = "PASSWORD", conflicts_with = "password_file")]
    pub(crate) password: Option<String>,

    /// Read the password from the first line of FILE.
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArguments {
    /// Folder to write to, or `-` to write one input to stdout.
    ///
    /// To stdout, pages come in page order as they are done: as Markdown, as text, or as one line of JSON each.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// What to write: md, json, text, html (comma-separated or repeated) [default: md,json; to stdout: md].
    ///
    /// html is one page per document to look at, `document.html`: the pages' pictures with the elements' boxes and, beside them,
    /// their text, coloured by where it came from. It holds all it shows and is kept with `page-0001.jpg`, a picture a page.
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true)]
    pub(crate) format: Vec<FormatArgument>,

    /// Keep pages that an earlier run finished with the same input, settings and model.
    #[arg(long, conflicts_with = "overwrite")]
    pub(crate) resume: bool,

    /// With `--resume`: only the files that failed, or a page of which did, in the run before.
    ///
    /// `--resume` alone does them again too, but has a look at every other file as well.
    #[arg(long, requires = "resume")]
    pub(crate) retry_failed: bool,

    /// Print what would be done with each file, and do nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Replace the output of an earlier run.
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Save figures as PNG files and link them (the default, except to stdout).
    #[arg(long, overrides_with = "no_figures")]
    pub(crate) figures: bool,

    /// Save no figures.
    #[arg(long)]
    pub(crate) no_figures: bool,

    /// Keep headers, footers and page numbers in the Markdown.
    #[arg(long)]
    pub(crate) running_matter: bool,

    /// Leave the `<!-- page 3 -->` comments out of `document.md`.
    #[arg(long)]
    pub(crate) no_page_markers: bool,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunArguments {
    /// Pages that are read at the same time (0 = one per core).
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub(crate) jobs: usize,

    /// Where the model runs: auto, cpu, cuda, cuda:0, cuda:0,1.
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = device)]
    pub(crate) device: Device,

    /// GiB of a CUDA device's memory that one worker's session may take [default: all of it].
    #[arg(long, value_name = "GIB", value_parser = gigabytes)]
    pub(crate) device_memory: Option<f32>,

    /// Pages that a worker decodes together, short calls of the model shared [default: 1, on CUDA 4].
    ///
    /// A shared call reads the model's weights once for all its pages. Packs whose decode graph is for one page go on one by one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) pages_per_call: Option<u32>,

    /// GiB for the keys and values of the pages that a worker decodes [default: 4].
    ///
    /// A page that could need more is not begun: prompt, layout and one region at their longest must fit.
    #[arg(long, value_name = "GIB", value_parser = gigabytes)]
    pub(crate) kv_memory: Option<f32>,

    /// Model pack: a folder, a name, or `none` [default: nano].
    ///
    /// A name is looked up in `models/` beside the program and in the folders above it. `none` writes the drafts (text layer,
    /// OCR, layout, tables) unverified: the fast way to clean text.
    #[arg(long, value_name = "DIR|NAME|none", env = "DOCPARSE_MODEL", hide_env_values = true,
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,

    /// Resolution at which PDF pages are rendered [default: 200, or more if the model wants it].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(36..=1200))]
    pub(crate) dpi: Option<u16>,

    /// Convert only part I of N of the files: `2/8`.
    ///
    /// Give every machine the same inputs and a number of its own. A hash of a file's place in the output folder says whose it
    /// is: the parts are about equal in files, whatever their pages. All may write to one folder; each has its own journal.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,

    /// Stop at the first page or file that fails.
    #[arg(long)]
    pub(crate) fail_fast: bool,
}

/// What hostile or damaged input may cost.
#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArguments {
    /// Give up on a page that takes longer than this to render, or to read.
    ///
    /// Rendering is timed on the clock, reading in CPU time (with several cores for a job: on the clock). Reading is looked at
    /// between its stages and between batches of lines; a page that was given up failed.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) page_timeout: u32,

    /// Give up on the pages of a file that are not begun this long after it was opened.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) file_timeout: Option<u32>,

    /// Refuse files of more pages, counted among those that `--pages` asks for.
    ///
    /// A file of a kilobyte can claim a million pages.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_pages: u32,

    /// Refuse pictures of more than this many million pixels. A2 at 600 dpi has 139.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=4000))]
    pub(crate) max_pixels: u32,

    /// Memory that a process which renders PDF pages may take, MiB of address space.
    ///
    /// There is one such process for four jobs. A page that needs more fails.
    #[arg(long, value_name = "MIB", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(256..))]
    pub(crate) raster_memory: u32,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Decoding (advanced, may change)")]
pub(crate) struct DecodeArguments {
    /// What may draft: auto, none, or a list of layout, text-layer, ocr, table, glyph, mtp, ngram.
    ///
    /// The first four say what stands on the page. `glyph` is not in `auto`: with a pack that offers it, lines that its vision graph
    /// reads for sure are not read by the OCR again; it needs `ocr`. `mtp` (the model's multi-token head, if it has one) and `ngram`
    /// (what a region repeats of itself) are the model's own guesses, where nothing else drafts. With `none` the model reads the page
    /// alone, one token at a time.
    #[arg(long, value_name = "LIST", default_value = "auto", value_parser = drafters)]
    pub(crate) drafts: Drafters,

    /// When a proposal stands: lossless or trust [default: what the model's manifest says].
    ///
    /// lossless: only what the model itself would have written. trust: unless the model is sure of something else.
    #[arg(long, value_name = "MODE", hide_possible_values = true)]
    pub(crate) accept: Option<AcceptArgument>,

    /// Most tokens that one region may take [default: what the model's manifest says].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: Option<u32>,

    /// Share of the page that most of the model's layers look at when it writes alone; 1 = all of it.
    #[arg(long, value_name = "TAU", default_value = "1", value_parser = share)]
    pub(crate) fixation: f32,

    /// Layers that choose where to look, comma-separated [default: found on each page].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) focal_layers: Vec<usize>,

    /// Share of the page that prefill carries past the layer that chooses it; 1 = all of it.
    #[arg(long, value_name = "RATE", default_value = "1", value_parser = share)]
    pub(crate) tsp: f32,

    /// Share of the page that a region keeps beside its own box once its first tokens are written; 1 = all.
    #[arg(long, value_name = "RATE", default_value = "1", value_parser = share)]
    pub(crate) retention: f32,
}

#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Messages")]
pub(crate) struct MessageArguments {
    /// Print errors only.
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print what is being done; repeat for more.
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Messages as text, or as one JSON object a line: text, json.
    #[arg(long, value_name = "FORMAT", default_value = "text", hide_possible_values = true)]
    pub(crate) log_format: LogFormat,

    /// Progress bar: auto (on a terminal), always, never.
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub(crate) progress: When,

    /// Coloured messages: auto (on a terminal), always, never.
    #[arg(long, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub(crate) color: When,

    /// Write what the run cost to FILE as JSON: seconds by stage, counters, memory.
    #[arg(long, value_name = "FILE")]
    pub(crate) stats: Option<PathBuf>,
}

/// Say how far a run came: what is done, partial, failed and why, and what is left.
///
/// Reads the journals and the page files of an output folder, also while a run writes there. Exit code 0 if everything is done,
/// 5 if pages are partial, 1 if something failed or is left.
#[derive(Args, Debug)]
pub(crate) struct StatusArguments {
    /// The output folder of a run.
    #[arg(value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Say what changed between two runs: pages and elements that came, went or read otherwise.
///
/// Compares the page JSON of two output folders by name. Exit code 0 if all pages are the same, 1 if not. Which version, model
/// and settings made a page does not count.
#[derive(Args, Debug)]
pub(crate) struct DiffArguments {
    /// The output folder before.
    #[arg(value_name = "DIR1")]
    pub(crate) first: PathBuf,

    /// The output folder after.
    #[arg(value_name = "DIR2")]
    pub(crate) second: PathBuf,

    /// Print one JSON object a line for each page that is not the same, and one with the counts.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List, inspect and verify model packs.
#[derive(Args, Debug)]
pub(crate) struct ModelsArguments {
    #[command(subcommand)]
    pub(crate) command: ModelsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// List the packs and small models that are found.
    List,
    /// Print what a pack's manifest says.
    Inspect {
        /// A pack's folder or name.
        #[arg(value_name = "DIR|NAME")]
        pack: String,
    },
    /// Check a pack's files against the sha256 sums in its manifest.
    Verify {
        /// A pack's folder or name.
        #[arg(value_name = "DIR|NAME")]
        pack: String,
    },
}

/// Say what is installed, what is missing, and how to get it.
///
/// Exit code 3 if nothing can be converted.
#[derive(Args, Debug)]
pub(crate) struct DoctorArguments {}

/// Measure decoding on the given documents: all modes by turns, with the same weights.
///
/// A table goes to stderr, the whole report to the JSON file. Nothing is converted.
#[derive(Args, Debug)]
pub(crate) struct BenchArguments {
    /// Files and directories.
    #[arg(value_name = "DOCUMENT", required_unless_present = "decoder")]
    pub(crate) documents: Vec<PathBuf>,

    /// Measure single steps of the decode graph in DIR (written by `scripts/export`) instead.
    #[arg(long, value_name = "DIR", conflicts_with = "documents")]
    pub(crate) decoder: Option<PathBuf>,

    /// Say what the nodes of a step of `--decoder` write; fail if one copies the prefix.
    #[arg(long, requires = "decoder")]
    pub(crate) profile: bool,

    /// Visual tokens of the page for `--decoder`.
    #[arg(long, value_name = "N", default_value_t = 2200)]
    pub(crate) prefix: usize,

    /// Live rows for `--decoder`.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,4,8,16",
          value_parser = clap::value_parser!(u8).range(1..=128))]
    pub(crate) rows: Vec<u8>,

    /// Steps of each measurement for `--decoder`.
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) steps: usize,

    /// Pages that share a step of `--decoder`.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "2,4",
          value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) pages_per_call: Vec<u8>,

    /// Shares of the visual tokens, in percent, at which decoding with fixation is measured.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "5,20",
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) fixation: Vec<u8>,

    /// Shares that prefill carries on, in percent.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "50",
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) tsp: Vec<u8>,

    /// Shares that a region keeps, in percent.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "20",
          value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) retention: Vec<u8>,

    /// Write the curves to DIR as SVG.
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,

    /// Put another runtime's figures (written by `scripts/bench_peer.py`) beside them.
    #[arg(long, value_name = "FILE")]
    pub(crate) peer: Option<PathBuf>,

    /// Where the report is written.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: PathBuf,

    /// How often everything is measured.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) repetitions: usize,

    /// First pages of each document that are used.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) pages: usize,

    /// Cut the content of a region to this many tokens.
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<usize>,

    /// Share of drafted text tokens that are made wrong where drafts must be lossless.
    #[arg(long, value_name = "SHARE", default_value_t = 0.02)]
    pub(crate) draft_error: f32,

    /// Model pack: a folder or a name [default: nano].
    #[arg(long, value_name = "DIR|NAME", env = "DOCPARSE_MODEL", hide_env_values = true,
          value_parser = NonEmptyStringValueParser::new())]
    pub(crate) model: Option<String>,

    /// Threads of a session; with 1, seconds are CPU seconds.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormatArgument(pub(crate) Format);

impl ValueEnum for FormatArgument {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            FormatArgument(Format::Markdown),
            FormatArgument(Format::Json),
            FormatArgument(Format::Text),
            FormatArgument(Format::Html),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self.0 {
            Format::Markdown => "md",
            Format::Json => "json",
            Format::Text => "text",
            Format::Html => "html",
        }))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AcceptArgument(pub(crate) Acceptance);

impl ValueEnum for AcceptArgument {
    fn value_variants<'a>() -> &'a [Self] {
        &[AcceptArgument(Acceptance::Lossless), AcceptArgument(Acceptance::Trust)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self.0 {
            Acceptance::Lossless => "lossless",
            Acceptance::Trust => "trust",
        }))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    #[default]
    Auto,
    Always,
    Never,
}

impl When {
    pub(crate) fn resolve(self, automatic: bool) -> bool {
        match self {
            When::Auto => automatic,
            When::Always => true,
            When::Never => false,
        }
    }
}

fn share(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(share) if share > 0.0 && share <= 1.0 => Ok(share),
        _ => Err("expected a number above 0, at most 1".into()),
    }
}

fn gigabytes(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(size) if (0.1..=65536.0).contains(&size) => Ok(size),
        _ => Err("expected GiB from 0.1 to 65536".into()),
    }
}

fn device(text: &str) -> Result<Device, String> {
    match text {
        "auto" => return Ok(Device::Auto),
        "cpu" => return Ok(Device::Cpu),
        "cuda" => return Ok(Device::Cuda(vec![0])),
        _ => {}
    }
    let numbers = text.strip_prefix("cuda:").map(|list| list.split(',').map(str::parse).collect());
    match numbers {
        Some(Ok(numbers)) => Ok(Device::Cuda(numbers)),
        _ => Err("expected auto, cpu, cuda, or cuda:0,1".into()),
    }
}

fn drafters(text: &str) -> Result<Drafters, String> {
    match text {
        "auto" => return Ok(Drafters::ALL),
        "none" => return Ok(Drafters::NONE),
        _ => {}
    }
    let mut drafters = Drafters::NONE;
    for name in text.split(',') {
        match name.trim() {
            "layout" => drafters.layout = true,
            "text-layer" => drafters.text_layer = true,
            "ocr" => drafters.ocr = true,
            "table" => drafters.table = true,
            "glyph" => drafters.glyph = true,
            "mtp" => drafters.mtp = true,
            "ngram" => drafters.ngram = true,
            other => {
                return Err(format!(
                    "`{other}` is not one of auto, none, layout, text-layer, ocr, table, glyph, mtp, ngram"
                ));
            }
        }
    }
    if drafters.glyph && !drafters.ocr {
        return Err("glyph needs ocr: lines are found, and unsure ones read, by its networks".into());
    }
    Ok(drafters)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed_and_short_help_fits() {
        Arguments::command().debug_assert();
        fn check(command: &clap::Command) {
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.chars().count() <= 100, "{}: {help}", argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Arguments::command());
    }

    #[test]
    fn devices_and_drafters_are_read() {
        assert_eq!(device("cuda:1,3"), Ok(Device::Cuda(vec![1, 3])));
        assert_eq!(device("cuda"), Ok(Device::Cuda(vec![0])));
        assert!(device("cuda:").is_err() && device("gpu").is_err());
        let some = Drafters { ocr: true, table: true, ..Drafters::NONE };
        assert_eq!(drafters("ocr, table"), Ok(some));
        assert_eq!(drafters("ocr,table,glyph"), Ok(Drafters { glyph: true, ..some }));
        assert!(drafters("").is_err() && drafters("glyph").is_err() && drafters("tesseract").is_err());
    }
}
