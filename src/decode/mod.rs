//! The decoding loop. (being built)

pub mod protocol;
