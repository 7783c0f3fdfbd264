//! Hands the arguments to [`docparse::cli::run`] and returns its exit code.

fn main() -> std::process::ExitCode {
    docparse::cli::run()
}
