//! What the decoding loop must know of a model's token protocol. Implemented by `tokens` from the manifest, and by small
//! scripted protocols in tests.

use crate::geometry::Rect;
use crate::graphs::TokenId;
use crate::page::Source;

/// Which threshold applies to a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TokenClass {
    /// A character or a piece of text.
    Text,
    /// A coordinate: [x], [y], [pitch], box numbers.
    Coordinate,
    /// A region's kind.
    Kind,
    /// Structure: fork, child, row, cell, markup tags, end.
    Structure,
}

impl TokenClass {
    /// All classes, each at its own index.
    pub const ALL: [TokenClass; 4] =
        [TokenClass::Text, TokenClass::Coordinate, TokenClass::Kind, TokenClass::Structure];
}

/// A token that a drafter proposes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DraftToken {
    pub id: TokenId,
    /// The drafter's own confidence, 0..1.
    pub confidence: f32,
    pub source: Source,
    /// The drafter's own reference (e.g. which character of which word), handed back with the accepted token.
    pub origin: u32,
}

/// A token that a stream kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeptToken {
    pub id: TokenId,
    /// Probability of the token under the model, 0..1 (1 for prompt tokens).
    pub probability: f32,
    /// Who wrote it: the drafter whose token stood, or the model.
    pub source: Source,
    /// The draft token's `origin` if the draft stood.
    pub origin: Option<u32>,
}

/// Position components that the graph's rotary embedding reads; only the first `Dims::position_parts` count.
pub type Position = [f32; 3];

/// The running state from which the next token's position follows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PositionState {
    /// Order of the next token to be fed.
    pub order: f32,
    pub y: f32,
    pub x: f32,
    pub pitch: f32,
    /// Characters since the last [x] or [pitch]; with relative widths the sum of theirs.
    pub n: f32,
    /// Left edge of a branch's region, where its lines start; `None` in a trunk and where lines do not start anew.
    pub line_x: Option<f32>,
}

impl PositionState {
    /// The same, with orders counted on from `order`.
    pub(super) fn after(self, order: f32) -> PositionState {
        PositionState { order: self.order + order, ..self }
    }
}

/// The token protocol of a model.
pub trait Protocol {
    /// Tokens fed to the trunk before anything is decoded (after the image prefix).
    fn trunk_prompt(&self) -> Vec<TokenId>;
    /// Ends the trunk.
    fn is_trunk_end(&self, token: TokenId) -> bool;
    /// Ends a content branch.
    fn is_branch_end(&self, token: TokenId) -> bool;
    /// A trunk token after which a content branch starts.
    fn is_fork(&self, token: TokenId) -> bool;
    /// First token fed to a branch.
    fn child_token(&self) -> TokenId;
    /// Does a branch see the fork token in its trunk? (PaDoc: yes, HPD and nano: no; the child then takes its position)
    fn fork_visible(&self) -> bool;
    /// State of an empty trunk.
    fn trunk_start(&self) -> PositionState;
    /// State of a branch forked at the trunk token with index `fork_index`; `trunk` holds all trunk tokens up to and with it.
    fn branch_start(&self, trunk: &[TokenId], fork_index: usize) -> PositionState;
    /// Position of `token` when it is fed, and the state after it.
    fn feed(&self, state: PositionState, token: TokenId) -> (Position, PositionState);
    fn class(&self, token: TokenId) -> TokenClass;
    /// Distance between two coordinate tokens of the same axis in bins; `None` for other pairs.
    fn coordinate_distance(&self, a: TokenId, b: TokenId) -> Option<u32>;
    /// May this token repeat without counting as a loop (table structure)?
    fn may_repeat(&self, token: TokenId) -> bool;
    /// Does a region of the trunk start with this token? It then ends with its fork token, or before the next region's start.
    fn starts_region(&self, token: TokenId) -> bool {
        self.class(token) == TokenClass::Kind
    }
    /// Box of a trunk region's tokens; only compared with one another. `None`: the region cannot be aligned with a draft.
    fn region_box(&self, _tokens: &[TokenId]) -> Option<Rect> {
        None
    }
}

/// When a draft stands in `trust` mode. From the manifest, per kind of token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrustThreshold {
    /// A drafted token with at least this confidence of its own stands.
    pub own_confidence: f32,
    /// A drafted token to which the model gives at least this probability stands.
    pub model_probability: f32,
    /// A drafted token stands while no other token has at least this probability.
    pub override_probability: f32,
    /// Coordinates stand within this many bins of the model's choice.
    pub coordinate_bins: u32,
}

/// Thresholds by class of token and drafter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrustThresholds([[TrustThreshold; Source::ALL.len()]; TokenClass::ALL.len()]);

impl TrustThresholds {
    /// The table that `threshold` spells out.
    pub fn new(threshold: impl Fn(TokenClass, Source) -> TrustThreshold) -> Self {
        TrustThresholds(TokenClass::ALL.map(|class| Source::ALL.map(|source| threshold(class, source))))
    }

    /// Threshold for tokens of `class` that `source` drafted.
    pub fn of(&self, class: TokenClass, source: Source) -> &TrustThreshold {
        &self.0[class as usize][source as usize]
    }
}
