//! `docparse.json`: what a model pack says about itself. The program knows a model only through this contract.
//!
//! A manifest that loads has been checked: every number is in range, every token name resolves within the vocabulary, every
//! file it needs is listed. Errors name the file and the field.

mod acceptance;
mod checks;
mod preprocessing;
mod protocol;

pub use acceptance::AcceptanceTable;
pub use preprocessing::{
    AspectTiles, CappedTiles, CharacterTokens, FixedGrid, NativeGrid, PixelRule, Preprocessing, PromptText,
    ResizeFilter,
};
pub use protocol::{
    ContentFormat, Dropped, KindEntry, LabelEntry, PositionRule, PrefillAttention, ProtocolTable, RegionForm,
};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::graphs::{Dims, TokenId};
use crate::page::Kind;

/// The schema this program reads.
pub const SCHEMA: &str = "docparse.pack/1";

/// Name of the manifest in a pack's folder.
pub const MANIFEST_FILE: &str = "docparse.json";

/// Why a pack cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("`{}`: {message}", path.display())]
    File { path: PathBuf, message: String },
    #[error("`{}`: {field}: {message}", path.display())]
    Field { path: PathBuf, field: String, message: String },
    #[error(transparent)]
    Runtime(#[from] super::runtime::RuntimeError),
}

/// The whole manifest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub schema: String,
    pub name: String,
    pub licence: String,
    /// Where the weights came from: a revision, a script.
    pub source: String,
    /// Free notes: training data, scores.
    #[serde(default)]
    pub about: serde_json::Value,
    /// Sha256 (lower-case hex) of every other file of the pack.
    pub files: BTreeMap<String, String>,
    pub graphs: GraphFiles,
    pub tokenizer: String,
    pub dims: ModelDims,
    pub preprocessing: Preprocessing,
    /// What is said around the picture, for models that are asked in words.
    #[serde(default)]
    pub prompt: Option<PromptText>,
    /// Token ids by name, and the ranges of coordinate tokens (`x`, `y`, `pitch`, `gap`, `down`).
    #[serde(default)]
    pub tokens: BTreeMap<String, TokenEntry>,
    pub protocol: ProtocolTable,
    pub decode: DecodeTable,
    pub acceptance: AcceptanceTable,
    #[serde(default)]
    pub extras: Extras,
}

/// What a pack's graphs can do beyond the contract's least.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extras {
    /// Layers whose scores the decode graph returns, ascending; none: it has no `focal_scores`.
    #[serde(default)]
    pub focal_layers: Vec<usize>,
    /// Last positions of the prefix that are text, not picture.
    #[serde(default)]
    pub prefix_text: usize,
    /// The last layer of the lower prefill graph, which says what goes on.
    #[serde(default)]
    pub tsp_layer: Option<usize>,
    /// The decode graph says where single rows look, in every layer.
    #[serde(default)]
    pub saliency: bool,
    /// When lines that the vision graph reads by itself may stand; without it there is no `glyph` drafter.
    #[serde(default)]
    pub glyph_lines: Option<GlyphLines>,
}

/// What makes a line sure that the vision graph alone read.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GlyphLines {
    /// All but a tenth of its characters have at least this mass, 0..1.
    pub least_mass: f32,
    /// The most mass that any place of the line still holds once the characters' is taken off.
    pub most_left_over: f32,
    /// Shorter lines are never sure.
    pub least_characters: usize,
}

/// Files of the graphs, relative to the pack's folder. A graph that is missing switches its feature off.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphFiles {
    pub vision: String,
    /// All layers, or the lower ones.
    pub prefill: String,
    /// The layers above `extras.tsp_layer`.
    #[serde(default)]
    pub prefill_upper: Option<String>,
    pub decode: String,
    /// Multi-token head.
    #[serde(default)]
    pub mtp: Option<String>,
}

/// Shape of the decoder as the manifest states it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelDims {
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub hidden: usize,
    /// Number of token ids.
    pub vocabulary: usize,
    /// Components of a position: 1 or 3.
    pub position_parts: usize,
}

impl From<ModelDims> for Dims {
    fn from(dims: ModelDims) -> Self {
        Dims {
            layers: dims.layers,
            kv_heads: dims.kv_heads,
            head_dim: dims.head_dim,
            position_parts: dims.position_parts,
            hidden: dims.hidden,
        }
    }
}

/// A token by id or by its text in the tokenizer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum TokenName {
    Id(TokenId),
    Text(String),
}

/// An entry of the token table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum TokenEntry {
    One(TokenName),
    Range(CoordinateRange),
}

/// Consecutive ids that stand for the numbers `offset, offset + bin, offset + 2 bin, ...`, px of the model's raster.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoordinateRange {
    pub first: TokenId,
    pub count: u32,
    pub bin: f32,
    #[serde(default)]
    pub offset: f32,
}

impl CoordinateRange {
    pub fn contains(&self, token: TokenId) -> bool {
        token >= self.first && token < self.first + TokenId::from(self.count)
    }

    /// The number that `token` stands for; `None` outside the range.
    pub fn value(&self, token: TokenId) -> Option<f32> {
        self.contains(token).then(|| (token - self.first) as f32 * self.bin + self.offset)
    }

    /// The token nearest to `value` (ties to even, as the training data was made), clamped to the range.
    pub fn token(&self, value: f32) -> TokenId {
        let last = self.count.saturating_sub(1) as f32;
        let index = self.index(value).clamp(0.0, last);
        // A NaN stays NaN through `clamp` and becomes 0 here.
        self.first + index as TokenId
    }

    /// Is there a token for `value`, without clamping?
    pub fn spans(&self, value: f32) -> bool {
        (0.0..self.count as f32).contains(&self.index(value))
    }

    fn index(&self, value: f32) -> f32 {
        ((value - self.offset) / self.bin).round_ties_even()
    }
}

/// Sizes of the decoding loop.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecodeTable {
    /// Tokens a row of one call, ascending; the largest is the most that a row feeds at once.
    pub buckets: Vec<usize>,
    /// Most tokens of a content branch.
    pub max_tokens: usize,
    pub max_trunk_tokens: usize,
    /// Does the model read what no drafter saw? `false` for a model that is too weak for it: where drafters look, it is asked only
    /// about what they propose. Without drafters it always reads.
    #[serde(default = "reads_undrafted")]
    pub reads_undrafted: bool,
}

fn reads_undrafted() -> bool {
    true
}

impl Manifest {
    /// Reads and checks `dir/docparse.json`. The bytes come back too: their hash names the pack.
    pub fn load(dir: &Path) -> Result<(Manifest, Vec<u8>), PackError> {
        let path = dir.join(MANIFEST_FILE);
        let bytes = std::fs::read(&path)
            .map_err(|e| PackError::File { path: path.clone(), message: e.to_string() })?;
        let manifest = Manifest::parse(&bytes, &path)?;
        Ok((manifest, bytes))
    }

    /// Reads and checks a manifest; `path` is for messages.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Manifest, PackError> {
        let manifest: Manifest = serde_json::from_slice(bytes)
            .map_err(|e| PackError::File { path: path.to_path_buf(), message: e.to_string() })?;
        checks::check(&manifest).map_err(|(field, message)| PackError::Field {
            path: path.to_path_buf(),
            field,
            message,
        })?;
        Ok(manifest)
    }

    /// The id or text of the token called `name`.
    pub fn token(&self, name: &str) -> Option<&TokenName> {
        match self.tokens.get(name)? {
            TokenEntry::One(token) => Some(token),
            TokenEntry::Range(_) => None,
        }
    }

    /// The coordinate range called `name`.
    pub fn range(&self, name: &str) -> Option<CoordinateRange> {
        match self.tokens.get(name)? {
            TokenEntry::One(_) => None,
            TokenEntry::Range(range) => Some(*range),
        }
    }

    /// What a branch of this kind writes.
    pub fn content_format(&self, kind: Kind) -> ContentFormat {
        let content = &self.protocol.content;
        let named = checks::kind_name(kind).and_then(|name| content.get(&name));
        named.or_else(|| content.get(checks::DEFAULT_CONTENT)).copied().unwrap_or(ContentFormat::Text)
    }
}

#[cfg(test)]
pub(crate) mod tests;
