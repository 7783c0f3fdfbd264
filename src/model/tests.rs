//! Token streams as published models write them -> regions.

use std::path::PathBuf;

use super::*;
use crate::decode::protocol::{DraftToken, KeptToken};
use crate::decode::{BranchDecoding, TrunkRegion};
use crate::page::{Kind, Markup, Source};
use crate::tokens::trunk::read_head;

fn pack(name: &str) -> Pack {
    Pack::load(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/packs").join(name)).unwrap()
}

fn kept(pack: &Pack, text: &str) -> Vec<KeptToken> {
    let ids = pack.grammar.vocabulary.encode(text).unwrap();
    ids.into_iter()
        .map(|id| KeptToken { id, probability: 0.9, source: Source::Model, origin: None })
        .collect()
}

/// What a page of 2000 x 1000 px is read as. `regions`: what the trunk writes, with what a branch writes after it.
fn read(pack: &Pack, regions: &[(&str, Option<&str>)]) -> Vec<(Kind, [f32; 4], Option<Markup>)> {
    let mut decoding = PageDecoding {
        trunk: kept(pack, "\n"),
        stop: StopReason::End,
        regions: Vec::new(),
        branches: Vec::new(),
        unclaimed: Vec::new(),
        stats: DecodeStats::default(),
    };
    for (head, content) in regions {
        let start = decoding.trunk.len();
        decoding.trunk.extend(kept(pack, head));
        decoding.regions.push(TrunkRegion { tokens: start..decoding.trunk.len(), draft_index: None });
        if let Some(content) = content {
            decoding.branches.push(BranchDecoding {
                fork_index: decoding.trunk.len() - 1,
                tokens: kept(pack, content),
                stop: StopReason::End,
                draft_index: None,
            });
        }
    }
    let mapping = PixelMapping { scale_x: 0.5, scale_y: 1.0 };
    let drafts = Drafts::new(&[], pack, mapping, &AcceptanceRule::Lossless);
    let regions = drafts.regions(&[], &decoding, pack);
    regions.into_iter().map(|r| (r.kind, <[f32; 4]>::from(r.bbox), r.markup)).collect()
}

#[test]
fn blocks_and_their_branches_become_regions() {
    let pack = pack("hpd");
    let page = [
        ("<BLOCK>doc_title [100, 20, 900, 60]<FORK>", Some("Tides: \\(a_1\\) & more<|im_end|>")),
        (
            "<BLOCK>table [100 100 900 400]<FORK>",
            Some("<table><tr><td colspan=2>a</td></tr></table><|im_end|>"),
        ),
        ("<BLOCK>equation [10,410,20,420]<FORK>", Some("\\[ x \\quad \\quad \\quad \\quad \\]<|im_end|>")),
        ("<BLOCK>image [0, 500, 1000, 700]", None),
        ("<BLOCK>marginalia [0, 710, 9, 720]<FORK>", Some("by hand<FORK>leak")),
    ];
    let expected = [
        (Kind::Title, [200.0, 20.0, 1800.0, 60.0], Some(Markup::Markdown("Tides: \\(a_1\\) & more".into()))),
        (
            Kind::Table,
            [200.0, 100.0, 1800.0, 400.0],
            Some(Markup::Html("<table><tr><td colspan=2>a</td></tr></table>".into())),
        ),
        (Kind::Formula, [20.0, 410.0, 40.0, 420.0], Some(Markup::Latex("\\[ x\\]".into()))),
        (Kind::Figure, [0.0, 500.0, 2000.0, 700.0], None),
        (Kind::Text, [0.0, 710.0, 18.0, 720.0], Some(Markup::Markdown("by hand".into()))),
    ];
    assert_eq!(read(&pack, &page), expected);
}

#[test]
fn regions_and_content_that_are_not_to_be_kept_go() {
    let pack = pack("hpd");
    let page = [
        ("<BLOCK>abandon [1, 2, 3, 4]<FORK>", Some("noise<|im_end|>")),
        ("<BLOCK>seal [1, 2, 3, 4]<FORK>", Some("stamp<|im_end|>")),
        ("<BLOCK>text [1, 2, 3, 4]<FORK>", Some("[Non-Text]<|im_end|>")),
        (
            "<BLOCK>text [1, 2, 3, 4]<FORK>",
            Some("The image contains no text or characters, it is blank.<|im_end|>"),
        ),
        ("<BLOCK>text [1, 2]<FORK>", Some("no box<|im_end|>")),
    ];
    let said: Vec<(Kind, Option<Markup>)> = read(&pack, &page).into_iter().map(|(k, _, m)| (k, m)).collect();
    assert_eq!(said, [(Kind::Figure, None), (Kind::Text, None), (Kind::Text, None)]);
}

/// A drafted trunk that the model agrees with keeps the drafts' exact boxes.
#[test]
fn a_drafted_trunk_is_written_as_the_model_writes_it() {
    let pack = pack("hpd");
    let mapping = PixelMapping { scale_x: 0.5, scale_y: 1.0 };
    let bbox = crate::geometry::Rect::new(201.3, 20.2, 1800.0, 60.0);
    let table = Region {
        kind: Kind::Table,
        score: 0.9,
        bbox,
        words: Vec::new(),
        cells: None,
        markup: None,
        stop: None,
    };
    let figure = Region { kind: Kind::Figure, ..table.clone() };
    let drafts = Drafts::new(&[table, figure], &pack, mapping, &AcceptanceRule::Lossless);
    let ids: Vec<TokenId> = drafts.trunk.tokens.iter().map(|t| t.id).collect();
    let text = "<BLOCK>table [101, 20, 900, 60]<FORK><BLOCK>image [101, 20, 900, 60]<|im_end|>";
    assert_eq!(pack.grammar.vocabulary.decode(&ids).unwrap(), text);
    let stood =
        |t: &DraftToken| KeptToken { id: t.id, probability: 0.9, source: t.source, origin: Some(t.origin) };
    let trunk: Vec<KeptToken> = drafts.trunk.tokens.iter().map(stood).collect();
    let end = drafts.trunk.regions[0].fork.unwrap() + 1;
    let regions = &[Region { kind: Kind::Table, bbox, ..unverified(&region_of(bbox)) }];
    let head = read_head(&trunk[..end], &drafts.trunk, regions, &pack.grammar, &mapping).unwrap();
    assert_eq!((head.kind, head.bbox, head.region), (Kind::Table, bbox, Some(0)));
}

fn region_of(bbox: crate::geometry::Rect) -> Region {
    Region { kind: Kind::Text, score: 0.0, bbox, words: Vec::new(), cells: None, markup: None, stop: None }
}
