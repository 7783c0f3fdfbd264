//! `grounded-steps` against the training code's numbers: `fixtures/reference/steps.json`, written by
//! `python -m scripts.reference.positions`.

use serde::Deserialize;

use crate::decode::protocol::{PositionState, Protocol, TokenClass};
use crate::drafts::content_draft::content_draft;
use crate::geometry::Rect;
use crate::graphs::TokenId;
use crate::lines::tests::word;
use crate::page::{Kind, Region};
use crate::tokens::Grammar;
use crate::tokens::grammar::tests::stepping;
use crate::vision::PixelMapping;

#[derive(Deserialize)]
struct Fixture {
    #[serde(rename = "box")]
    bbox: [f32; 4],
    words: Vec<(String, f32, f32, f32, f32)>,
    trunk: Vec<TokenId>,
    trunk_positions: Vec<[f32; 3]>,
    fork: usize,
    branches: Vec<Branch>,
}

#[derive(Deserialize)]
struct Branch {
    tokens: Vec<TokenId>,
    positions: Vec<[f32; 3]>,
}

fn fixture() -> (Fixture, Grammar) {
    (serde_json::from_value(crate::tokens::grammar::tests::steps_fixture()).unwrap(), stepping())
}

fn assert_positions(grammar: &Grammar, mut state: PositionState, tokens: &[TokenId], expected: &[[f32; 3]]) {
    assert_eq!(tokens.len(), expected.len());
    for (index, (&token, expected)) in tokens.iter().zip(expected).enumerate() {
        let (position, next) = grammar.feed(state, token);
        let near = position.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-3);
        assert!(near, "token {index}: {position:?} is not {expected:?}");
        state = next;
    }
}

#[test]
fn positions_are_those_of_the_training_code() {
    let (fixture, grammar) = fixture();
    assert_positions(&grammar, grammar.trunk_start(), &fixture.trunk, &fixture.trunk_positions);
    let start = grammar.branch_start(&fixture.trunk, fixture.fork);
    for branch in &fixture.branches {
        assert_positions(&grammar, start, &branch.tokens, &branch.positions);
    }
    let [x0, y0, x1, y1] = fixture.bbox;
    let from_box = grammar.content_start(Rect::new(x0, y0, x1, y1));
    assert_eq!(PositionState { order: start.order, ..from_box }, start);
}

#[test]
fn drafts_are_what_the_training_code_writes() {
    let (fixture, grammar) = fixture();
    let [x0, y0, x1, y1] = fixture.bbox;
    let words = fixture.words.iter().map(|(text, x0, y0, x1, y1)| word(text, *x0, *y0, *x1, *y1)).collect();
    let bbox = Rect::new(x0, y0, x1, y1);
    let region = Region { kind: Kind::Text, score: 0.9, bbox, words, cells: None, markup: None, stop: None };
    let draft = content_draft(&region, &grammar, &PixelMapping::uniform(1.0)).unwrap();
    let ids: Vec<TokenId> = draft.tokens.iter().map(|t| t.id).collect();
    assert_eq!(ids, fixture.branches[0].tokens[1..]);
}

#[test]
fn steps_are_coordinates_of_their_own_axis() {
    let (_, grammar) = fixture();
    let steps = grammar.grounded().unwrap().steps.unwrap();
    let (gap, down) = (steps.gap.token(4.0), steps.down.token(4.0));
    assert_eq!([gap, down].map(|t| grammar.class(t)), [TokenClass::Coordinate; 2]);
    assert_eq!(grammar.coordinate_distance(gap, steps.gap.token(10.0)), Some(3));
    assert_eq!(grammar.coordinate_distance(gap, down), None);
}

#[test]
fn a_numeral_in_the_trunk_moves_nothing_but_its_own_side() {
    let (_, grammar) = fixture();
    let tokens = *grammar.grounded().unwrap();
    let steps = tokens.steps.unwrap();
    let mut state = grammar.trunk_start();
    for token in
        [tokens.x.token(60.0), tokens.pitch.token(5.0), tokens.y.token(90.0), steps.gap.token(8.0), 0, 1]
    {
        state = grammar.feed(state, token).1;
    }
    assert_eq!((state.x, state.y, state.pitch, state.n), (60.0, 90.0, 0.0, 0.0));
}
