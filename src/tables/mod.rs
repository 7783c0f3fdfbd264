//! (being built)

/// Drawn lines found in the picture.
pub mod picture_rules;
