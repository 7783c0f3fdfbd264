//! The one integration-test binary: each further one would link the native runtimes again.

mod archive;
mod batch;
mod breakout;
mod cli;
mod convert;
mod documents;
mod equivalence;
mod golden;
mod long;
mod memory;
mod pdf;
mod program;
mod schema;
