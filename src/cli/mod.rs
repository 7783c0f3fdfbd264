//! The command line: arguments -> settings -> the batch -> messages and an exit code. Nothing here knows how pages are read.

mod args;
mod bench;
mod convert;
mod diff;
mod doctor;
mod exit;
mod generate;
mod locate;
mod log;
mod models;
mod report;
mod selection;
mod status;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Arguments, Command};

/// First argument of the child processes that rasterise; not for people.
const RASTER_COMMAND: &str = "__raster";

/// Runs the program.
pub fn run() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == RASTER_COMMAND) {
        return crate::pdf::child::child_main();
    }
    let outcome = match Arguments::try_parse() {
        Err(error) => report::usage(&error),
        Ok(Arguments { generate: Some(what), .. }) => generate::generate(what),
        Ok(Arguments { command: Some(command), .. }) => match command {
            Command::Convert(arguments) => convert::convert(&arguments),
            Command::Status(arguments) => status::status(&arguments),
            Command::Diff(arguments) => diff::diff(&arguments),
            Command::Models(arguments) => models::models(&arguments),
            Command::Doctor(_) => doctor::doctor(),
            Command::Bench(arguments) => bench::bench(&arguments),
        },
        Ok(Arguments { generate: None, command: None }) => {
            report::usage(&Arguments::command().error(ErrorKind::MissingSubcommand, "a command is needed"))
        }
    };
    outcome.into()
}
