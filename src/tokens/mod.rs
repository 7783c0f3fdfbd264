//! Token ids by name, the layout-token grammar, words <-> tokens.
//!
//! [`grammar::Grammar`] is the manifest's token protocol with every name resolved. Drafts are written with it (`drafts::trunk_draft`,
//! `drafts::content_draft`), kept tokens are read back with it ([`trunk`], [`content`]), coordinates in pixels of the model's raster.

pub mod blocks;
mod cells;
pub mod content;
mod doctags;
pub mod formats;
pub mod grammar;
mod otsl;
pub mod pages;
pub mod positions;
pub mod trunk;
pub mod vocabulary;
mod words;

pub use grammar::Grammar;
