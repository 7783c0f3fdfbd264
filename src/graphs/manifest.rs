//! `docparse.json`: what a model pack says about itself. The program knows a model only through this contract.
//!
//! A manifest that loads has been checked: every number is in range, every token name resolves within the vocabulary, every
//! file it needs is listed. Errors name the file and the field.

mod acceptance;
mod checks;

pub use acceptance::AcceptanceTable;

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
    /// Token ids by name, and the ranges of coordinate tokens (`x`, `y`, `pitch`, `gap`, `down`).
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
    /// Mass that no character accounts for, or that characters lack, per character.
    pub most_left_over: f32,
    /// Shorter lines are never sure.
    pub least_characters: usize,
}

/// Files of the graphs, relative to the pack's folder. A graph that is missing switches its feature off.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphFiles {
    pub vision: String,
    pub prefill: String,
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

/// How a page's raster becomes the vision graph's input.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub enum Preprocessing {
    FixedGrid(FixedGrid),
}

impl TryFrom<serde_json::Value> for Preprocessing {
    type Error = String;

    fn try_from(mut value: serde_json::Value) -> Result<Self, String> {
        let family = value.as_object_mut().and_then(|map| map.remove("family"));
        match family.as_ref().and_then(serde_json::Value::as_str) {
            Some("fixed-grid") => serde_json::from_value(value)
                .map(Preprocessing::FixedGrid)
                .map_err(|e| format!("preprocessing: {e}")),
            Some(other) => Err(format!(
                "preprocessing.family: `{other}` is not supported by this version; supported: fixed-grid"
            )),
            None => Err("preprocessing.family: missing; supported: fixed-grid".into()),
        }
    }
}

/// One gray picture, scaled so that lower-case letters have a known height, cut into cells; cells without ink are left out.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedGrid {
    /// Size of a cell, px of the model's raster.
    pub cell_width: usize,
    pub cell_height: usize,
    /// A cell is kept if its darkest pixel has more ink than this, 0..1.
    pub ink_threshold: f32,
    /// Wanted median height of lower-case letters, px of the model's raster.
    pub x_height: f32,
    /// Height of lower-case letters as a share of the font height (ascent to descent).
    pub x_height_share: f32,
    /// Resolution of the model's raster where no words tell the type size.
    pub default_dpi: f32,
    /// Longest side of the model's raster, px.
    pub max_side: usize,
    /// Most visual tokens of a page; the raster is made smaller until they fit.
    pub max_cells: usize,
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

/// How a text token's position follows from the tokens before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PositionRule {
    /// One component, counting up.
    Sequential,
    /// Order, y and x as the coordinate tokens before the token imply.
    GroundedWords,
    /// The same, but lines and words are placed relative to what is before them.
    GroundedSteps,
}

impl PositionRule {
    /// Are positions (order, y, x)?
    pub fn is_grounded(self) -> bool {
        self != PositionRule::Sequential
    }
}

/// What prefill's positions may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrefillAttention {
    Causal,
    BidirectionalVisual,
}

/// What stands in the trunk before a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum RegionForm {
    /// Kind token, then [x0] [y0] [x1] [y1].
    #[serde(rename = "kind-x0-y0-x1-y1")]
    KindBox,
}

/// What a content branch writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContentFormat {
    /// Lines of [y][pitch], words of [x] and characters; table rows and cells as tokens.
    GroundedWords,
    /// Lines of [down][pitch], words of [gap] and characters; table rows and cells as tokens.
    GroundedSteps,
    Text,
    Markdown,
    Html,
    Latex,
}

impl ContentFormat {
    /// The position rule without which a branch of this format has no places.
    pub fn position_rule(self) -> Option<PositionRule> {
        match self {
            ContentFormat::GroundedWords => Some(PositionRule::GroundedWords),
            ContentFormat::GroundedSteps => Some(PositionRule::GroundedSteps),
            ContentFormat::Text | ContentFormat::Markdown | ContentFormat::Html | ContentFormat::Latex => {
                None
            }
        }
    }
}

/// The trunk's token for a kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KindEntry {
    pub id: TokenName,
    pub kind: Kind,
    /// Kinds without a token of their own that are drafted as this one.
    #[serde(default)]
    pub also: Vec<Kind>,
    /// Is its content read by a branch?
    #[serde(default = "yes")]
    pub forks: bool,
}

fn yes() -> bool {
    true
}

/// The token protocol.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtocolTable {
    pub position_rule: PositionRule,
    /// Widths of characters by token id, relative to the mean character; tokens beyond the list have 1.
    #[serde(default)]
    pub advance: Vec<f32>,
    pub prefill_attention: PrefillAttention,
    pub trunk_prompt: Vec<TokenName>,
    pub trunk_end: Vec<TokenName>,
    pub branch_end: Vec<TokenName>,
    /// Does a branch see its fork token?
    pub fork_visible: bool,
    pub region: RegionForm,
    /// Content format by kind; `default` for the others.
    pub content: BTreeMap<String, ContentFormat>,
    pub kinds: Vec<KindEntry>,
    /// Texts that mean that there is nothing to read.
    #[serde(default)]
    pub no_content: Vec<String>,
}

/// Sizes of the decoding loop.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecodeTable {
    /// Tokens a row of one call, ascending; a call pads to the next.
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
