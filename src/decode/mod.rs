//! The decoding loop: which streams run, verification of drafts, forks, budgets.
//!
//! A page's trunk (its layout) and the content branches that fork from it decode together. Every call verifies what the
//! drafts propose; what stands is kept, then the model's own token. Under [`AcceptanceRule::Lossless`] the tokens are those of
//! decoding without drafts, whatever the drafts, the row limit or the memory.

mod advance;
mod call;
mod content;
pub mod fixation;
mod guard;
mod guesses;
mod layout;
mod looking;
mod page;
mod pages;
pub mod protocol;
pub mod retention;
mod scheduler;
mod stats;
mod stream;
#[cfg(test)]
mod tests;
mod verify;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::clock::TimeLimit;
use crate::graphs::{DecodeGraph, GraphError, Prefix};
use crate::page::StopReason;

use fixation::FixationSettings;
pub use guesses::{GuessCount, GuessSettings, Guesser};
use protocol::{DraftToken, KeptToken, Protocol};
use retention::RetentionSettings;

pub use pages::{Done, PageJob, Pages};
pub use stats::DecodeStats;
pub use verify::{AcceptanceRule, Accepted, Proposal, Scores, stands_unseen, verify};

/// How one page is decoded.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopSettings {
    pub acceptance: AcceptanceRule,
    /// Most tokens that a content branch writes.
    pub max_tokens: usize,
    /// Most tokens that the trunk writes.
    pub max_trunk_tokens: usize,
    /// Most content branches; further forks stop with [`StopReason::Budget`] and no tokens.
    pub max_branches: usize,
    /// Most streams that run at once.
    pub max_rows: usize,
    /// Bytes of keys and values that the pages under way may hold.
    pub kv_budget_bytes: usize,
    /// Smallest capacity of a trunk or suffix, in positions; capacities double from there. 64: where the attention's time per
    /// call starts to grow with the capacity (native-stack.md 2.5, suffix length).
    pub first_capacity: usize,
    /// Layers that do not choose read only where the stream looked last; `None`, and graphs without focal scores: everything.
    pub fixation: Option<FixationSettings>,
    /// When it is over the page is given up.
    pub limit: Option<TimeLimit>,
    /// Branches keep only a part of the prefix for themselves; `None`, and graphs without saliency: everything.
    pub retention: Option<RetentionSettings>,
    /// Drafts of the model's own making.
    pub guesses: GuessSettings,
    /// Most tokens that a stream feeds in one call.
    pub max_feed: usize,
}

impl Default for LoopSettings {
    fn default() -> Self {
        LoopSettings {
            acceptance: AcceptanceRule::Lossless,
            max_tokens: 4096,
            max_trunk_tokens: 4096,
            max_branches: 255,
            max_rows: 64,
            kv_budget_bytes: 4 << 30,
            first_capacity: 64,
            fixation: None,
            limit: None,
            retention: None,
            guesses: GuessSettings::default(),
            max_feed: 512,
        }
    }
}

/// Drafts of one page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageDrafts {
    /// What the trunk may write after its prompt, with its end token.
    pub trunk: Vec<DraftToken>,
    /// What the branch of a drafted fork may write after its child token, with its end token; by the index of the fork token
    /// in `trunk`.
    pub content: BTreeMap<usize, Vec<DraftToken>>,
    /// Drafted forks whose branch is not run: their content stands whatever the model says ([`stands_unseen`]). By the index of
    /// the fork token in `trunk`.
    pub settled: BTreeSet<usize>,
}

/// A region of the decoded trunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrunkRegion {
    /// Its tokens in the trunk, with its fork token.
    pub tokens: Range<usize>,
    /// The drafted region that it is: 0 for the draft's first region.
    pub draft_index: Option<usize>,
}

/// What a content branch wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchDecoding {
    /// Index of its fork token in the trunk.
    pub fork_index: usize,
    /// Its tokens without the child token; with its end token if it was ended.
    pub tokens: Vec<KeptToken>,
    pub stop: StopReason,
    /// The drafted region that its region is: 0 for the draft's first region.
    pub draft_index: Option<usize>,
}

/// A decoded page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageDecoding {
    /// Tokens of the trunk with its prompt; with its end token if it was ended.
    pub trunk: Vec<KeptToken>,
    /// Why the trunk stopped.
    pub stop: StopReason,
    pub regions: Vec<TrunkRegion>,
    /// In the order of their forks.
    pub branches: Vec<BranchDecoding>,
    /// Drafted regions (0 for the draft's first) that no region of the trunk is.
    pub unclaimed: Vec<usize>,
    pub stats: DecodeStats,
}

/// Why a page could not be decoded.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error(transparent)]
    Graph(#[from] GraphError),
    #[error(
        "keys and values need up to {needed} bytes, {budget} are allowed; give more with --kv-memory, or fewer --max-tokens"
    )]
    NoRoom { needed: usize, budget: usize },
    #[error("the model's protocol has no prompt for the trunk")]
    EmptyPrompt,
    #[error("no time was left to decode it")]
    Late,
}

/// Decodes one page after its prefix.
pub fn decode_page(
    graph: &mut dyn DecodeGraph,
    protocol: &dyn Protocol,
    prefix: Prefix,
    drafts: PageDrafts,
    settings: &LoopSettings,
) -> Result<PageDecoding, DecodeError> {
    let mut pages = Pages::new(graph, protocol, 1, settings.kv_budget_bytes);
    pages.admit((), PageJob { prefix, drafts, settings: settings.clone() });
    loop {
        if let Some(((), decoded)) = pages.step(graph).pop() {
            return decoded;
        }
    }
}
