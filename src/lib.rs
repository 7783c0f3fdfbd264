//! docparse converts PDF pages and page pictures to Markdown and JSON.
//!
//! The map, in the order in which a page flows through it:
//!
//! ```text
//! pdf / picture -> raster --> vision graph -> prefill --> scheduler --> decode graph -> tokens -> elements -> md / json
//!      pdf          raster     vision         graphs      | trunk (layout) --fork--> content branches    document
//!       '-- text layer, layout, ocr, tables -> drafts --> verify         decode, kv
//! ```

/// Arguments, everything printed on stderr, exit codes; the only room that prints.
pub mod cli;

/// What a run does, as plain values; no argument parsing.
pub mod settings;

/// Files x pages -> jobs -> ordered results: inputs, resume, atomic writes, the run journal.
pub mod batch;

/// Seconds of a stage, and what a page may take.
pub mod clock;

/// Rectangles, in pixels of an upright raster or in points of an upright page.
pub mod geometry;

/// A page's pixels and the few picture operations that the networks need.
pub mod raster;

/// What is known of one page: words, drawn lines, regions, cells.
pub mod page;

/// PDF files and pictures -> page evidence: raster, characters, rules, links. Runs in a child process that may die.
pub mod pdf;

/// Everything that proposes what stands on a page; nothing in here decides what the model accepts.
pub mod drafts;

/// Characters that act on terminals and on the direction of text.
pub mod characters;

/// Words -> text lines -> chunks.
pub mod lines;

/// Grids of cells from drawn lines, white columns or a network, and words put into them.
pub mod tables;

/// What captions, list marks, page numbers, rows of dots and typewriter fonts look like.
pub mod patterns;

/// ONNX graphs: the model pack's contract, its ONNX Runtime form, a scripted form for tests.
pub mod graphs;

/// Raster -> visual tokens for the prefill graph.
pub mod vision;

/// Token ids by name, layout-token grammar, words <-> tokens.
pub mod tokens;

/// Key/value memory: prefix, trunk and suffix segments, branches that share them.
pub mod kv;

/// The decoding loop: which streams run, verification of drafts, forks, budgets.
pub mod decode;

/// The model over one page: drafted regions in, verified regions out.
pub mod model;

/// One page from evidence to elements: drafts, decoding, assembly.
pub mod reader;

/// Measures decoding in its modes, side by side on the same weights.
pub mod bench;

/// Elements, pages and documents, and their Markdown and JSON forms.
pub mod document;

#[cfg(test)]
mod fuzz;
