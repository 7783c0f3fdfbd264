//! Kept tokens of the trunk -> kinds and boxes of regions.

use crate::decode::protocol::{DraftToken, KeptToken};
use crate::geometry::Rect;
use crate::graphs::TokenId;
use crate::graphs::manifest::Dropped;
use crate::page::{Kind, Region};
use crate::vision::PixelMapping;

use super::grammar::{BOX_TOKENS, Grammar};
use super::positions::Axis;

/// What a token of a drafted trunk stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrunkOrigin {
    /// The region's kind.
    Kind { region: u32 },
    /// A side of its box: 0..4 for x0, y0, x1, y1.
    Side { region: u32, side: u8 },
    /// A piece of its kind and box, where they are written as text.
    Written { region: u32 },
    /// Its fork.
    Fork { region: u32 },
    /// The end of the trunk.
    End,
}

impl TrunkOrigin {
    fn region(self) -> Option<usize> {
        match self {
            TrunkOrigin::Kind { region }
            | TrunkOrigin::Side { region, .. }
            | TrunkOrigin::Written { region }
            | TrunkOrigin::Fork { region } => Some(region as usize),
            TrunkOrigin::End => None,
        }
    }
}

/// The draft of a page's trunk, after the prompt. A token's `origin` is its own index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrunkDraft {
    /// With the end token.
    pub tokens: Vec<DraftToken>,
    /// One for each token.
    pub origins: Vec<TrunkOrigin>,
    /// The drafted regions in order: index of the region, and index of its fork token in `tokens` if its content is read.
    pub regions: Vec<DraftedRegion>,
}

/// A region of a drafted trunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftedRegion {
    /// Index into the regions that were drafted from.
    pub region: usize,
    /// Index of its fork token in the draft.
    pub fork: Option<usize>,
}

/// What the trunk says of one region.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionHead {
    pub kind: Kind,
    /// Pixels of the page raster.
    pub bbox: Rect,
    /// The drafted region whose kind and at least two sides stood.
    pub region: Option<usize>,
    /// What the model's label says is not to be kept.
    pub dropped: Dropped,
}

/// Index of the kept token's draft token.
fn origin_of(token: &KeptToken, draft: &TrunkDraft) -> Option<TrunkOrigin> {
    draft.origins.get(usize::try_from(token.origin?).ok()?).copied()
}

/// Reads the tokens of one region of the trunk (kind, box, perhaps a fork). What stood of the draft keeps the exact numbers of
/// its region. `None` where there is no kind followed by a box.
pub fn read_head(
    tokens: &[KeptToken],
    draft: &TrunkDraft,
    regions: &[Region],
    grammar: &Grammar,
    mapping: &PixelMapping,
) -> Option<RegionHead> {
    if grammar.blocks().is_some() {
        return read_block(tokens, draft, regions, grammar, mapping);
    }
    let start = tokens.iter().position(|t| grammar.token_kind(t.id).is_some())?;
    let sides = tokens.get(start + 1..start + 1 + BOX_TOKENS)?;
    let origin = origin_of(&tokens[start], draft);
    let source = origin.and_then(TrunkOrigin::region).filter(|&r| r < regions.len());
    let drafted_kind = source.filter(|_| matches!(origin, Some(TrunkOrigin::Kind { .. })));
    let kind = match drafted_kind {
        Some(region) => regions[region].kind,
        None => grammar.token_kind(tokens[start].id)?,
    };
    let mut numbers = [0.0; BOX_TOKENS];
    let mut stood = 0;
    for (side, token) in sides.iter().enumerate() {
        let (axis, value) = grammar.coordinate(token.id)?;
        let (wanted, scale) =
            if side % 2 == 0 { (Axis::X, mapping.scale_x) } else { (Axis::Y, mapping.scale_y) };
        if axis != wanted {
            return None;
        }
        numbers[side] = value / scale;
        if let Some(TrunkOrigin::Side { region, side: drafted }) = origin_of(token, draft)
            && usize::from(drafted) == side
            && let Some(region) = regions.get(region as usize)
        {
            numbers[side] = <[f32; 4]>::from(region.bbox)[side];
            stood += usize::from(source.is_some_and(|s| std::ptr::eq(&regions[s], region)));
        }
    }
    let [x0, y0, x1, y1] = numbers;
    let bbox = Rect::new(x0.min(x1), y0.min(y1), x0.max(x1), y0.max(y1));
    let region = drafted_kind.filter(|_| stood >= 2);
    Some(RegionHead { kind, bbox, region, dropped: Dropped::Nothing })
}

/// The same where kind and box are written as text. A region keeps its exact box if all of its tokens stood.
fn read_block(
    tokens: &[KeptToken],
    draft: &TrunkDraft,
    regions: &[Region],
    grammar: &Grammar,
    mapping: &PixelMapping,
) -> Option<RegionHead> {
    let ids: Vec<TokenId> = tokens.iter().map(|t| t.id).collect();
    let written = grammar.block_head(&ids)?;
    let (kind, dropped) = grammar.blocks()?.meaning(&written.label);
    let source = |token: &KeptToken| origin_of(token, draft).and_then(TrunkOrigin::region);
    let first = tokens.first().and_then(source).filter(|&region| region < regions.len());
    let head = |kind, bbox, region| RegionHead { kind, bbox, region, dropped };
    match first.filter(|_| tokens.iter().all(|token| source(token) == first)) {
        Some(region) => Some(head(regions[region].kind, regions[region].bbox, first)),
        None => Some(head(kind, mapping.to_page(written.bbox), None)),
    }
}
