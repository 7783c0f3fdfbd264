//! Regions -> the draft of a page's trunk.

use crate::decode::protocol::DraftToken;
use crate::graphs::TokenId;
use crate::page::{Region, Source};
use crate::tokens::Grammar;
use crate::tokens::blocks::BlockForm;
use crate::tokens::trunk::{DraftedRegion, TrunkDraft, TrunkOrigin};
use crate::vision::PixelMapping;

/// Drafts the trunk: for every region, in their order, its kind, [x0] [y0] [x1] [y1], and a fork if its content is to be read;
/// then the end. Regions whose kind the model has no token for are left out. `None` for models that write the page as one text.
pub fn trunk_draft(regions: &[Region], grammar: &Grammar, mapping: &PixelMapping) -> Option<TrunkDraft> {
    if let Some(blocks) = grammar.blocks() {
        return Some(block_draft(regions, grammar, blocks, mapping));
    }
    let tokens = grammar.grounded()?;
    let mut draft = TrunkDraft::default();
    for (index, region) in regions.iter().enumerate() {
        let (Some(kind), Ok(number)) = (grammar.kind_token(region.kind), u32::try_from(index)) else {
            continue;
        };
        let bbox = mapping.to_model(region.bbox);
        let sides = [
            tokens.x.token(bbox.x0),
            tokens.y.token(bbox.y0),
            tokens.x.token(bbox.x1),
            tokens.y.token(bbox.y1),
        ];
        push(&mut draft, kind, region.score, TrunkOrigin::Kind { region: number });
        for (side, id) in (0u8..).zip(sides) {
            push(&mut draft, id, region.score, TrunkOrigin::Side { region: number, side });
        }
        let fork = grammar.kind_forks(region.kind).then(|| {
            push(&mut draft, grammar.fork_token(), region.score, TrunkOrigin::Fork { region: number });
            draft.tokens.len() - 1
        });
        draft.regions.push(DraftedRegion { region: index, fork });
    }
    push_end(&mut draft, grammar);
    Some(draft)
}

/// The same where kind and box are written as text.
fn block_draft(
    regions: &[Region],
    grammar: &Grammar,
    blocks: &BlockForm,
    mapping: &PixelMapping,
) -> TrunkDraft {
    let mut draft = TrunkDraft::default();
    for (index, region) in regions.iter().enumerate() {
        let Some(text) = blocks.write(region.kind, mapping.to_model(region.bbox)) else { continue };
        let (Ok(tokens), Ok(number)) = (grammar.vocabulary.encode(&text), u32::try_from(index)) else {
            continue;
        };
        push(&mut draft, blocks.marker(), region.score, TrunkOrigin::Kind { region: number });
        for id in tokens {
            push(&mut draft, id, region.score, TrunkOrigin::Written { region: number });
        }
        let fork = blocks.forks(region.kind).then(|| {
            push(&mut draft, grammar.fork_token(), region.score, TrunkOrigin::Fork { region: number });
            draft.tokens.len() - 1
        });
        draft.regions.push(DraftedRegion { region: index, fork });
    }
    push_end(&mut draft, grammar);
    draft
}

fn push_end(draft: &mut TrunkDraft, grammar: &Grammar) {
    if let Some(end) = grammar.trunk_end_token() {
        // The layout is as sure of the end as of its least sure region.
        let least = draft.tokens.iter().map(|t| t.confidence).fold(1.0, f32::min);
        push(draft, end, least, TrunkOrigin::End);
    }
}

fn push(draft: &mut TrunkDraft, id: TokenId, confidence: f32, origin: TrunkOrigin) {
    let index = u32::try_from(draft.tokens.len()).expect("a page has far fewer regions than u32 holds");
    draft.tokens.push(DraftToken { id, confidence, source: Source::Layout, origin: index });
    draft.origins.push(origin);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::protocol::KeptToken;
    use crate::geometry::Rect;
    use crate::page::Kind;
    use crate::tokens::grammar::tests::tiny;
    use crate::tokens::trunk::read_head;

    fn region(kind: Kind, x0: f32, y0: f32, x1: f32, y1: f32) -> Region {
        let bbox = Rect::new(x0, y0, x1, y1);
        Region { kind, score: 0.8, bbox, words: Vec::new(), cells: None, markup: None, stop: None }
    }

    fn kept(tokens: &[DraftToken]) -> Vec<KeptToken> {
        let keep = |t: &DraftToken| KeptToken {
            id: t.id,
            probability: 0.9,
            source: t.source,
            origin: Some(t.origin),
        };
        tokens.iter().map(keep).collect()
    }

    #[test]
    fn regions_become_kind_box_and_fork() {
        let grammar = tiny();
        let regions = [
            region(Kind::Reference, 120.0, 240.0, 601.0, 361.0),
            region(Kind::Figure, 10.0, 20.0, 30.0, 40.0),
        ];
        let draft = trunk_draft(&regions, &grammar, &PixelMapping::uniform(0.5)).unwrap();
        let ids: Vec<TokenId> = draft.tokens.iter().map(|t| t.id).collect();
        let expected = [110, 140, 470, 180, 480, 104, 116, 131, 452, 132, 453, 102];
        assert_eq!(ids, expected);
        let [first, second] = draft.regions[..] else { panic!("two regions") };
        assert_eq!((first.region, first.fork, second.region, second.fork), (0, Some(5), 1, None));
    }

    #[test]
    fn kept_drafts_keep_the_exact_box_and_kind() {
        let grammar = tiny();
        let mapping = PixelMapping::uniform(0.7);
        let regions = [region(Kind::Reference, 120.4, 240.3, 601.2, 361.9)];
        let draft = trunk_draft(&regions, &grammar, &mapping).unwrap();
        let head = read_head(&kept(&draft.tokens), &draft, &regions, &grammar, &mapping).unwrap();
        assert_eq!((head.kind, head.bbox, head.region), (Kind::Reference, regions[0].bbox, Some(0)));
    }

    #[test]
    fn a_side_that_the_model_wrote_moves_alone() {
        let grammar = tiny();
        let mapping = PixelMapping::uniform(0.5);
        let regions = [region(Kind::Text, 121.0, 241.0, 601.0, 361.0)];
        let draft = trunk_draft(&regions, &grammar, &mapping).unwrap();
        let mut tokens = kept(&draft.tokens);
        tokens[3] = KeptToken { id: 130 + 60, probability: 0.9, source: Source::Model, origin: None };
        let head = read_head(&tokens, &draft, &regions, &grammar, &mapping).unwrap();
        assert_eq!(head.bbox, Rect::new(121.0, 241.0, 720.0, 361.0));
        assert_eq!(head.region, Some(0));
        let torn = read_head(&tokens[..3], &draft, &regions, &grammar, &mapping);
        assert_eq!(torn, None);
    }
}
