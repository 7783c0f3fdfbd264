//! Pages that share the calls of real graphs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ort::memory::AllocationDevice;

use super::super::{DecodeGraph, OnnxDecodeGraph};
use crate::bench::steps::random_prefix;
use crate::decode::{LoopSettings, PageDecoding, PageDrafts, PageJob, Pages, decode_page};
use crate::graphs::Prefix;
use crate::graphs::pack::Pack;
use crate::tokens::Grammar;

/// Three pages of two lengths, decoded together on `graph`: each as it was decoded.
fn together(
    graph: &mut OnnxDecodeGraph,
    grammar: &Grammar,
    prefixes: [&Prefix; 3],
    settings: &LoopSettings,
) -> Vec<PageDecoding> {
    assert!(graph.joins_pages());
    let mut pages = Pages::new(graph, grammar, prefixes.len(), 1 << 32);
    let (mut waiting, mut decoded) = (prefixes.iter().enumerate(), BTreeMap::new());
    while decoded.len() < prefixes.len() {
        if pages.has_room()
            && let Some((page, &prefix)) = waiting.next()
        {
            let (prefix, drafts) = (prefix.clone(), PageDrafts::default());
            pages.admit(page, PageJob { prefix, drafts, settings: settings.clone() });
        }
        decoded.extend(pages.step(graph));
    }
    decoded.into_values().map(Result::unwrap).collect()
}

fn writes_the_same_in_company(name: &str) {
    let pack = Pack::load(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap();
    let dims = pack.decode_graph(1).unwrap().dims();
    let (long, short) = (random_prefix(dims, 90), random_prefix(dims, 40));
    let settings = LoopSettings { max_trunk_tokens: 24, max_tokens: 12, ..LoopSettings::default() };
    let trunk = |page: &PageDecoding| page.trunk.iter().map(|t| t.id).collect::<Vec<_>>();
    let alone = [&long, &short, &long].map(|prefix| {
        let mut graph = pack.decode_graph(1).unwrap();
        decode_page(&mut graph, &*pack.grammar, prefix.clone(), PageDrafts::default(), &settings).unwrap()
    });
    for place in [None, Some((AllocationDevice::CPU, 0))] {
        let mut graph = pack.decode_graph(1).unwrap();
        graph.place = place;
        let joined = together(&mut graph, &pack.grammar, [&long, &short, &long], &settings);
        for (joined, alone) in joined.iter().zip(&alone) {
            assert_eq!(trunk(joined), trunk(alone), "{name}");
            for (token, other) in joined.trunk.iter().zip(&alone.trunk) {
                assert!((token.probability - other.probability).abs() <= 1e-4, "{name}");
            }
            assert_eq!(joined.stats.calls, alone.stats.calls, "{name}");
            assert!(joined.stats.shared_calls * 2 > joined.stats.calls, "{name}: {:?}", joined.stats);
        }
    }
}

#[test]
fn pages_that_share_calls_write_what_they_write_alone() {
    for name in
        ["fixtures/packs/hpd", "fixtures/packs/olmocr", "fixtures/packs/doctags", "fixtures/packs/padoc"]
    {
        writes_the_same_in_company(name);
    }
    writes_the_same_in_company("models/nano");
}
