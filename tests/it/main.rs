//! The one integration-test binary: each further one would link the native runtimes again.

mod archive;
mod cli;
mod convert;
mod pdf;
