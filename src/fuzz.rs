//! Random and damaged input for everything that reads what others wrote: manifests, what models write, drafts, page ranges. A few
//! cases in an ordinary test run; `DOCPARSE_FUZZ_SECONDS=600 cargo test --lib fuzz` goes on for so many seconds a target.

use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use crate::batch::pages::PageRanges;
use crate::characters::acts_on_terminals;
use crate::decode::protocol::{DraftToken, KeptToken, TrustThreshold, TrustThresholds};
use crate::decode::{AcceptanceRule, Proposal, Scores, verify};
use crate::document::{PageContext, PageStatus, assemble, page_markdown, page_text, printed_area};
use crate::geometry::Rect;
use crate::graphs::manifest::{ContentFormat, Manifest, RegionForm, tests as manifest_tests};
use crate::page::{Kind, Markup, Region, Source, StopReason};
use crate::reader::PageOutput;
use crate::settings::OutputSettings;
use crate::tokens::content::read_region;
use crate::tokens::formats;
use crate::tokens::grammar::{Grammar, tests as grammar_tests};
use crate::tokens::pages::read_page;
use crate::tokens::trunk::{TrunkDraft, read_head};
use crate::tokens::vocabulary::tests as vocabulary_tests;
use crate::vision::PixelMapping;

/// Runs `test` on values of `strategy`, for as long as the environment says; panics with the smallest value that fails.
fn fuzz<S: Strategy>(strategy: S, test: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let seconds = std::env::var("DOCPARSE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    let mut cases = 0u64;
    loop {
        let config = Config { cases: 128, failure_persistence: None, ..Config::default() };
        cases += u64::from(config.cases);
        if let Err(failure) = TestRunner::new(config).run(&strategy, &test) {
            panic!("{failure}");
        }
        if Instant::now() >= end {
            break;
        }
    }
    if seconds.is_some() {
        tracing::info!(cases, "fuzzed");
    }
}

/// Damage to a text: at a place (a share of its length), so many bytes are replaced by others.
fn damage() -> impl Strategy<Value = Vec<(f64, usize, Vec<u8>)>> {
    let telling = prop_oneof![
        Just(b"-1".to_vec()),
        Just(b"1e999".to_vec()),
        Just(b"18446744073709551615".to_vec()),
        Just(b"null".to_vec()),
        Just(b"\"".to_vec()),
        Just(b"[[[[".to_vec()),
        Just(b"{".to_vec()),
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 1..4),
    ];
    prop::collection::vec((0.0..1.0, 0usize..12, telling), 0..4)
}

fn damaged(good: &[u8], damage: &[(f64, usize, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for (place, length, with) in damage {
        let at = (place * bytes.len() as f64) as usize;
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, with.iter().copied());
    }
    bytes
}

/// Replaces or removes the value that `path` leads to: at each level the share of the way through the children.
fn replaced(value: &mut serde_json::Value, path: &[f64], with: &Option<serde_json::Value>) {
    let Some((step, rest)) = path.split_first() else {
        *value = with.clone().unwrap_or_default();
        return;
    };
    let at = |count: usize| (step * count as f64) as usize;
    match value {
        serde_json::Value::Object(map) if !map.is_empty() => {
            let key = map.keys().nth(at(map.len())).cloned().expect("below the count");
            match (rest, with) {
                ([], None) => drop(map.remove(&key)),
                _ => replaced(&mut map[&key], rest, with),
            }
        }
        serde_json::Value::Array(items) if !items.is_empty() => {
            let at = at(items.len());
            match (rest, with) {
                ([], None) => drop(items.remove(at)),
                _ => replaced(&mut items[at], rest, with),
            }
        }
        _ => *value = with.clone().unwrap_or_default(),
    }
}

fn odd_value() -> impl Strategy<Value = Option<serde_json::Value>> {
    prop_oneof![
        Just(None),
        any::<i64>().prop_map(|n| Some(n.into())),
        any::<f64>().prop_map(|n| Some(n.into())),
        (0i64..2000).prop_map(|n| Some(n.into())),
        Just(Some(serde_json::json!(null))),
        Just(Some(serde_json::json!([]))),
        Just(Some(serde_json::json!({}))),
        Just(Some(serde_json::json!({ "first": u32::MAX, "count": u32::MAX, "bin": 1e-30 }))),
        "[a-z_/.]{0,8}".prop_map(|text| Some(text.into())),
    ]
}

#[test]
fn no_manifest_panics_and_one_that_is_taken_makes_a_grammar_or_an_error() {
    let changes = prop::collection::vec((prop::collection::vec(0.0..1.0, 1..5), odd_value()), 0..4);
    fuzz((changes, damage(), any::<bool>()), |(changes, damage, by_bytes)| {
        let mut value = manifest_tests::tiny();
        for (path, with) in &changes {
            replaced(&mut value, path, with);
        }
        let text = value.to_string();
        let bytes = if by_bytes { damaged(text.as_bytes(), &damage) } else { text.into_bytes() };
        match Manifest::parse(&bytes, Path::new("pack/docparse.json")) {
            Ok(manifest) => drop(Grammar::new(&manifest, vocabulary_tests::tiny())),
            Err(error) => prop_assert!(error.to_string().contains("docparse.json"), "{error}"),
        }
        Ok(())
    });
}

fn kept_tokens() -> impl Strategy<Value = Vec<KeptToken>> {
    let id = prop_oneof![0i64..140, 100i64..125, 130i64..900, any::<i64>()];
    let origin = prop_oneof![4 => Just(None), 1 => any::<u32>().prop_map(|n| Some(n % 40))];
    let token = (id, origin).prop_map(|(id, origin)| KeptToken {
        id,
        probability: 0.5,
        source: Source::Model,
        origin,
    });
    prop::collection::vec(token, 0..60)
}

fn region(kind: Kind, markup: Option<Markup>) -> Region {
    let bbox = Rect::new(20.0, 20.0, 900.0, 700.0);
    Region { kind, score: 0.9, bbox, words: Vec::new(), cells: None, markup, stop: Some(StopReason::End) }
}

/// All that is written of a page of these regions.
fn written(regions: &[Region]) -> (String, String) {
    let context = PageContext {
        scale: 2.0,
        printed: printed_area(regions),
        from_layer: false,
        links: &[],
        figures: false,
    };
    let mut page = PageOutput::failed(1, String::new()).page;
    page.status = PageStatus::Ok;
    page.elements = assemble(1, regions, &context);
    let settings = OutputSettings::default();
    (page_markdown(&page, &settings), page_text(&page, &settings))
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::Text,
        Kind::Title,
        Kind::List,
        Kind::Table,
        Kind::Formula,
        Kind::Code,
        Kind::Figure,
    ])
}

#[test]
fn whatever_tokens_a_model_writes_they_become_regions() {
    let grammars = [grammar_tests::tiny(), grammar_tests::stepping()];
    let mapping = PixelMapping::uniform(0.5);
    fuzz((kept_tokens(), kinds()), |(tokens, kind)| {
        for grammar in &grammars {
            let head = read_head(&tokens, &TrunkDraft::default(), &[], grammar, &mapping);
            if let Some(head) = head {
                prop_assert!(head.bbox.x0 <= head.bbox.x1 && head.bbox.y0 <= head.bbox.y1);
            }
            let read = read_region(&tokens, None, &region(kind, None), grammar, &mapping, None);
            written(&[read]);
            let ids: Vec<i64> = tokens.iter().map(|token| token.id).collect();
            for format in
                [ContentFormat::Text, ContentFormat::Markdown, ContentFormat::Html, ContentFormat::Latex]
            {
                written(&[region(kind, formats::read(&ids, format, grammar))]);
            }
        }
        Ok(())
    });
}

/// What Markdown, HTML or a terminal would act on.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        "<(table|tr|td|th|/td|/tr|/table|thead|script|img|b|!--)",
        "( rowspan=| colspan=\"| onerror=| href=\")[0-9]{0,20}",
        "[>\"'&;#|`$\\\\*_~\\[\\]()!-]{1,4}",
        "(\n\n|\n|```|\\$\\$|\\|---\\||-->|javascript:|&#x3c;|&lt;|&#27;|&#x202e;|\u{1b}\\[|\u{9b}|\u{202e})",
        "\\PC{0,6}",
        "[a-z ]{1,8}",
    ]
}

/// Nothing in what is written of a page can act.
fn check_harmless((markdown, text): &(String, String)) -> Result<(), TestCaseError> {
    let acting = |c: char| acts_on_terminals(c) && !matches!(c, '\n' | '\t');
    prop_assert!(!markdown.contains(acting) && !text.contains(acting), "{:?}", markdown);
    let (outside, closed) = outside_of_code(markdown);
    prop_assert!(closed, "{}", markdown);
    let outside = outside.to_lowercase();
    for acting in ["<script", "<img", "<a ", "<!--"] {
        prop_assert!(!outside.contains(acting), "{}", markdown);
    }
    // As mere text an attribute does nothing.
    for (at, _) in outside.match_indices("onerror=\">") {
        let tag = outside[..at].rfind(['<', '>']).map(|from| &outside[from..at]);
        prop_assert!(!tag.is_some_and(|tag| tag.starts_with('<')), "{}", markdown);
    }
    for line in outside.lines() {
        let before = line.find("](javascript:").map_or("", |at| &line[..at]);
        prop_assert!(!before.contains('[') || before.ends_with('\\'), "{}", markdown);
    }
    Ok(())
}

#[test]
fn no_markup_of_a_model_panics_or_brings_its_own_html() {
    let text =
        prop::collection::vec(hostile(), 0..40).prop_map(|pieces| formats::printable(&pieces.concat()));
    fuzz((text, kinds(), 0usize..4), |(text, kind, form)| {
        let markup = [Markup::Text, Markup::Markdown, Markup::Html, Markup::Latex][form](text);
        check_harmless(&written(&[region(kind, Some(markup))]))
    });
}

#[test]
fn no_page_that_a_model_writes_panics_or_brings_its_own_html() {
    let tag = prop_oneof![
        "</?(doctag|text|title|section_header_level_[0-9]{1,2}|page_header|page_footer|picture|chart|smiles|form)>",
        "</?(list_item|ordered_list|unordered_list|caption|footnote|formula|code|reference|checkbox_selected)>",
        "</?(otsl|table|document_index|fcel|ecel|lcel|ucel|xcel|ched|rhed|srow|nl)>",
        "<(fcel|lcel|ucel|xcel|nl)>",
        "<loc_(-?[0-9]{1,4}|9{30}|nan|inf|1e9)>",
        "<_[A-Za-z+#]{1,6}_>",
        "(---\n|is_rotation_valid: False\n|rotation_correction: 90\n|# |- |1. )",
    ];
    let piece = prop_oneof![2 => tag, 1 => hostile()];
    let text = prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat());
    let forms = prop::sample::select(vec![
        RegionForm::Doctags,
        RegionForm::Doctags,
        RegionForm::Markdown,
        RegionForm::FrontMatterMarkdown,
    ]);
    let sizes = (0f32..5000.0, 0f32..5000.0);
    fuzz((text, forms, sizes, 0u32..1200), |(text, form, size, grid)| {
        let page = read_page(&text, form, size, grid, StopReason::End);
        let written_length =
            page.regions.iter().map(|region| format!("{:?}", region.markup).len()).sum::<usize>();
        prop_assert!(written_length <= 40 * (text.len() + 40), "{} of {}", written_length, text);
        for region in &page.regions {
            let b = region.bbox;
            prop_assert!(
                b.x0 <= b.x1 && b.y0 <= b.y1 && b.x1 <= size.0 + 0.01 && b.y1 <= size.1 + 0.01,
                "{:?}",
                b
            );
        }
        check_harmless(&written(&page.regions))
    });
}

/// Lines that stand in no fenced block, and whether all blocks are closed.
fn outside_of_code(markdown: &str) -> (String, bool) {
    let mut fence: Option<(char, usize)> = None;
    let mut out = String::new();
    for line in markdown.lines() {
        let line = line.trim_start();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~')).unwrap_or('`');
        let length = line.chars().take_while(|c| *c == mark).count();
        match fence {
            Some(open) if mark == open.0 && length >= open.1 && line.trim_end().len() == length => {
                fence = None;
            }
            Some(_) => {}
            None if length >= 3 && (mark == '~' || !line[length..].contains('`')) => {
                fence = Some((mark, length));
            }
            None => out.extend([line, "\n"]),
        }
    }
    (out, fence.is_none())
}

#[test]
fn verification_keeps_a_prefix_of_the_draft_and_one_token_of_the_model() {
    let score = prop_oneof![-30.0f32..0.0, Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY)];
    let id = prop_oneof![3 => 0i64..4, 1 => any::<i64>()];
    let position = (id.clone(), id, score.clone(), score, -1.0f32..2.0);
    let thresholds = (0.0f32..2.0, 0.0f32..2.0, 0.0f32..2.0, 0u32..9);
    let input = (
        prop::collection::vec(position, 1..20),
        thresholds,
        0usize..25,
        any::<bool>(),
        any::<bool>(),
        0usize..9,
    );
    let grammar = grammar_tests::tiny();
    fuzz(input, |(positions, thresholds, strict, goes_on, lossless, known_len)| {
        let drafts: Vec<DraftToken> = positions[1..]
            .iter()
            .zip(0..)
            .map(|(p, origin)| DraftToken { id: p.0, confidence: p.4, source: Source::Ocr, origin })
            .collect();
        let next_id: Vec<i64> = positions.iter().map(|p| p.1).collect();
        let next_logprob: Vec<f32> = positions.iter().map(|p| p.2).collect();
        let draft_logprob: Vec<f32> = positions.iter().map(|p| p.3).collect();
        let rule = match lossless {
            true => AcceptanceRule::Lossless,
            false => AcceptanceRule::Trust(TrustThresholds::new(|_, _| TrustThreshold {
                own_confidence: thresholds.0,
                model_probability: thresholds.1,
                override_probability: thresholds.2,
                coordinate_bins: thresholds.3,
            })),
        };
        let proposal = Proposal { drafts: &drafts, strict, goes_on, known_len };
        let scores = Scores { next_id: &next_id, next_logprob: &next_logprob, draft_logprob: &draft_logprob };
        let accepted = verify(&proposal, &scores, &rule, &grammar);
        let ids: Vec<i64> = accepted.kept.iter().map(|token| token.id).collect();
        let own = usize::from(accepted.refused.is_some() || !goes_on);
        prop_assert_eq!(ids.len(), accepted.drafted + own);
        prop_assert!(ids.iter().zip(&drafts).take(accepted.drafted).all(|(id, draft)| *id == draft.id));
        prop_assert_eq!(accepted.keep_len, (known_len + ids.len()).saturating_sub(1));
        if lossless {
            prop_assert_eq!(&ids[..], &next_id[..ids.len()]);
        }
        Ok(())
    });
}

#[test]
fn no_page_range_panics_and_what_is_selected_is_there() {
    let text = prop_oneof!["[-,0-9 ]{0,24}", "(([0-9]{1,10})?-?([0-9]{1,11})?,?){0,6}", "\\PC{0,12}"];
    fuzz((text, 0u32..3000), |(text, count)| {
        let Ok(ranges) = text.parse::<PageRanges>() else { return Ok(()) };
        let pages = ranges.select(count);
        prop_assert!(pages.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(pages.iter().all(|&page| (1..=count).contains(&page)));
        prop_assert_eq!(ranges.to_string().parse::<PageRanges>(), Ok(ranges));
        Ok(())
    });
}
