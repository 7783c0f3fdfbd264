//! The hidden subcommand that rasterises. (being built)

use std::process::ExitCode;

/// Serves pages over stdin and stdout until stdin ends.
pub fn child_main() -> ExitCode {
    ExitCode::FAILURE
}
