//! Formulas of a text layer -> LaTeX, from the places, sizes and fonts of their glyphs.
//!
//! ```text
//! formula regions ------------------ display --.
//!                                               expression (bars, scripts: glyphs -> tree) -> latex (tree -> LaTeX)
//! running text -- evidence, extent -- inline ---'
//! ```
//!
//! Only what the glyphs show is written: a formula of pictures, or of fonts whose glyphs have no characters, is left as it is.

mod bars;
mod display;
mod evidence;
mod expression;
mod extent;
mod faces;
mod inline;
mod latex;
mod scripts;
mod symbols;

pub(super) use display::write_display;
pub(super) use inline::write_inline;

#[cfg(test)]
mod tests;
