//! The token protocol's part of the manifest.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::TokenName;
use crate::page::Kind;

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
    /// Time, height and width, which differ within the picture only; text counts all three up.
    Mrope,
}

impl PositionRule {
    /// Are positions (order, y, x)?
    pub fn is_grounded(self) -> bool {
        matches!(self, PositionRule::GroundedWords | PositionRule::GroundedSteps)
    }
}

/// What prefill's positions may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrefillAttention {
    Causal,
    BidirectionalVisual,
}

/// What the trunk writes: regions, whose content follows in branches, or the whole page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RegionForm {
    /// Kind token, then [x0] [y0] [x1] [y1].
    #[serde(rename = "kind-x0-y0-x1-y1")]
    KindBox,
    /// Block marker, then as text a label and `[x0, y0, x1, y1]` on the grid.
    BlockLabelBox,
    /// The page as Markdown.
    Markdown,
    /// The same after lines of `name: value` between lines of `---`.
    FrontMatterMarkdown,
    /// The page as DocTags.
    Doctags,
}

impl RegionForm {
    /// Is content written by branches?
    pub fn forks(self) -> bool {
        matches!(self, RegionForm::KindBox | RegionForm::BlockLabelBox)
    }
}

/// What of a labelled region is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dropped {
    #[default]
    Nothing,
    /// What its branch writes.
    Content,
    /// All of it.
    Region,
}

/// A label that the trunk writes as text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelEntry {
    pub label: String,
    pub kind: Kind,
    #[serde(default)]
    pub drop: Dropped,
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

fn thousand() -> u32 {
    1000
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
    #[serde(default)]
    pub kinds: Vec<KindEntry>,
    /// With `block-label-box`: the token before a label.
    #[serde(default)]
    pub block: Option<TokenName>,
    /// With `block-label-box`: what the labels mean; the first one of a kind is drafted.
    #[serde(default)]
    pub labels: Vec<LabelEntry>,
    /// Largest coordinate of boxes that are written as text, or as numbered tokens.
    #[serde(default = "thousand")]
    pub grid: u32,
    /// Texts that mean that there is nothing to read.
    #[serde(default)]
    pub no_content: Vec<String>,
}
