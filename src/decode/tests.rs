//! Equivalence on a graph whose next token depends on the exact attended history, against decoding each stream alone with its
//! whole history; and the edits of drafts, limits and guards on scripted pages.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::protocol::*;
use super::*;
use crate::geometry::Rect;
use crate::graphs::TokenId;
use crate::graphs::fake::{DIMS, FakeGraph, Next, Seen, prefix};
use crate::page::Source;

const PROMPT: TokenId = 1;
const END: TokenId = 2;
const FORK: TokenId = 4;
const CHILD: TokenId = 5;
/// Kinds are 6, 7 and, without content, 8.
const KIND: TokenId = 6;
const FIGURE: TokenId = 8;
/// Coordinates are 10..40: a region's left edge and top edge; it is 8 wide and high.
const COORDINATE: TokenId = 10;
/// Text is 40..60.
const TEXT: TokenId = 40;
/// May repeat.
const CELL: TokenId = 60;

struct TestProtocol {
    fork_visible: bool,
}

impl Protocol for TestProtocol {
    fn trunk_prompt(&self) -> Vec<TokenId> {
        vec![PROMPT, PROMPT + 100]
    }
    fn is_trunk_end(&self, token: TokenId) -> bool {
        token == END
    }
    fn is_branch_end(&self, token: TokenId) -> bool {
        token == END
    }
    fn is_fork(&self, token: TokenId) -> bool {
        token == FORK
    }
    fn child_token(&self) -> TokenId {
        CHILD
    }
    fn fork_visible(&self) -> bool {
        self.fork_visible
    }
    fn trunk_start(&self) -> PositionState {
        PositionState { order: 1.0, ..PositionState::default() }
    }
    fn branch_start(&self, trunk: &[TokenId], fork_index: usize) -> PositionState {
        assert_eq!(trunk.len(), fork_index + 1);
        let order = (fork_index + 1 + usize::from(self.fork_visible)) as f32;
        PositionState { order, y: trunk[fork_index - 1] as f32, ..PositionState::default() }
    }
    fn feed(&self, state: PositionState, token: TokenId) -> (Position, PositionState) {
        let x = if self.class(token) == TokenClass::Coordinate { token as f32 } else { state.x + 1.0 };
        ([state.order, state.y, x], PositionState { order: state.order + 1.0, x, ..state })
    }
    fn class(&self, token: TokenId) -> TokenClass {
        match token {
            6..10 => TokenClass::Kind,
            10..40 => TokenClass::Coordinate,
            40..60 => TokenClass::Text,
            _ => TokenClass::Structure,
        }
    }
    fn coordinate_distance(&self, a: TokenId, b: TokenId) -> Option<u32> {
        let both = self.class(a) == TokenClass::Coordinate && self.class(b) == TokenClass::Coordinate;
        both.then(|| a.abs_diff(b) as u32)
    }
    fn may_repeat(&self, token: TokenId) -> bool {
        token == CELL
    }
    fn region_box(&self, tokens: &[TokenId]) -> Option<Rect> {
        let mut edges =
            tokens.iter().filter(|&&t| self.class(t) == TokenClass::Coordinate).map(|&t| t as f32);
        let (x, y) = (edges.next()?, edges.next()?);
        Some(Rect::new(x, y, x + 8.0, y + 8.0))
    }
}

fn hash(seen: &[Seen]) -> u64 {
    let numbers = seen.iter().flat_map(|s| [s.token as f32, s.position[0], s.position[1], s.position[2]]);
    numbers.fold(0xcbf2_9ce4_8422_2325, |hash: u64, number| {
        let mixed = (hash ^ u64::from(number.to_bits())).wrapping_mul(0x0100_0000_01b3);
        mixed ^ (mixed >> 29)
    })
}

/// A page reader with the grammar of [`TestProtocol`] that otherwise writes at random.
fn random_page(seen: &[Seen]) -> Next {
    let hash = hash(seen);
    let pick = |n: u64| (hash >> 8) % n;
    let own: Vec<TokenId> = seen.iter().map(|s| s.token).filter(|&t| t < 1000).collect();
    let last = own.last().copied().unwrap_or_default();
    let coordinate = |t: TokenId| (10..40).contains(&t);
    let id = if own.contains(&CHILD) {
        match pick(16) {
            0 => END,
            1 => COORDINATE + (hash >> 16) as i64 % 30,
            _ => TEXT + (hash >> 16) as i64 % 20,
        }
    } else {
        let back = |n: usize| own.len().checked_sub(n).map_or(0, |i| own[i]);
        let regions = own.iter().filter(|&&t| (6..9).contains(&t)).count() as u64;
        let next_region = if pick(8) < regions.min(7) { END } else { KIND + (hash >> 16) as i64 % 3 };
        match last {
            6..9 => COORDINATE + pick(30) as i64,
            t if coordinate(t) && !coordinate(back(2)) => COORDINATE + pick(30) as i64,
            t if coordinate(t) && back(3) != FIGURE => FORK,
            _ => next_region,
        }
    };
    let probability = 0.3 + 0.6 * ((hash >> 40) % 1000) as f32 / 1000.0;
    Next { id, probability, other: (1.0 - probability) / 2.0 }
}

/// What each stream writes alone, with its whole history, a token at a time.
#[derive(Clone, Debug, PartialEq)]
struct Alone {
    trunk: Vec<TokenId>,
    branches: Vec<(usize, Vec<TokenId>)>,
}

struct Page<'a> {
    rule: &'a dyn Fn(&[Seen]) -> Next,
    protocol: TestProtocol,
    visual: Vec<TokenId>,
    settings: LoopSettings,
}

impl Page<'_> {
    fn grow(
        &self,
        history: &mut Vec<Seen>,
        prompt: &[TokenId],
        start: PositionState,
        most: usize,
    ) -> Vec<TokenId> {
        let mut state = start;
        let mut feed = |history: &mut Vec<Seen>, token| {
            let (position, next) = self.protocol.feed(state, token);
            history.push(Seen { token, position });
            state = next;
        };
        prompt.iter().for_each(|&token| feed(history, token));
        let mut written = Vec::new();
        while written.len() < most && written.last() != Some(&END) {
            let id = (self.rule)(history).id;
            written.push(id);
            feed(history, id);
        }
        written
    }

    fn alone(&self) -> Alone {
        let (_, seen) = prefix(&self.visual);
        let mut history = seen.clone();
        let prompt = self.protocol.trunk_prompt();
        let most = self.settings.max_trunk_tokens;
        let mut trunk = prompt.clone();
        trunk.extend(self.grow(&mut history, &prompt, self.protocol.trunk_start(), most));
        let forks = (0..trunk.len()).filter(|&i| trunk[i] == FORK).take(self.settings.max_branches);
        let branches = forks.map(|fork| {
            let visible = seen.len() + fork + usize::from(self.protocol.fork_visible);
            let start = self.protocol.branch_start(&trunk[..=fork], fork);
            (fork, self.grow(&mut history[..visible].to_vec(), &[CHILD], start, self.settings.max_tokens))
        });
        Alone { branches: branches.collect(), trunk }
    }

    fn decode(&self, drafts: PageDrafts) -> PageDecoding {
        let mut graph = FakeGraph::new(self.rule);
        self.decode_on(&mut graph, drafts)
    }

    fn decode_on(&self, graph: &mut FakeGraph<'_>, drafts: PageDrafts) -> PageDecoding {
        let (prefix, _) = prefix(&self.visual);
        let page = decode_page(graph, &self.protocol, prefix, drafts, &self.settings).unwrap();
        assert_eq!(page.stats.calls, graph.calls.len());
        page
    }

    /// The smallest budget that admits the page.
    fn tightest_budget(&self) -> usize {
        let longest = self.settings.max_tokens + 1 + self.settings.max_trunk_tokens + 2;
        (self.visual.len() + longest) * DIMS.bytes_per_position()
    }
}

fn ids(tokens: &[KeptToken]) -> Vec<TokenId> {
    tokens.iter().map(|t| t.id).collect()
}

fn written(page: &PageDecoding) -> Alone {
    let branches = page.branches.iter().map(|b| (b.fork_index, ids(&b.tokens))).collect();
    Alone { trunk: ids(&page.trunk), branches }
}

fn draft(tokens: &[TokenId]) -> Vec<DraftToken> {
    let token = |(i, &id): (usize, &TokenId)| DraftToken {
        id,
        confidence: 0.5,
        source: Source::Ocr,
        origin: i as u32,
    };
    tokens.iter().enumerate().map(token).collect()
}

/// Drafts that say what `alone` holds, edited by `edit`.
fn drafts_of(alone: &Alone, mut edit: impl FnMut(&[TokenId]) -> Vec<TokenId>) -> PageDrafts {
    let trunk = edit(&alone.trunk[2..]);
    let forks: Vec<usize> = (0..trunk.len()).filter(|&i| trunk[i] == FORK).collect();
    let content: BTreeMap<usize, Vec<DraftToken>> =
        forks.iter().zip(&alone.branches).map(|(&fork, (_, tokens))| (fork, draft(&edit(tokens)))).collect();
    PageDrafts { trunk: draft(&trunk), content, ..PageDrafts::default() }
}

fn settings() -> LoopSettings {
    LoopSettings { max_tokens: 60, max_trunk_tokens: 50, first_capacity: 4, ..LoopSettings::default() }
}

/// How a draft differs from what the model writes.
#[derive(Clone, Copy, Debug)]
enum Quality {
    Right,
    Wrong,
    /// One token in so many is replaced, left out, or followed by another.
    Partly(u64),
    Random,
    None,
}

fn edited(tokens: &[TokenId], quality: Quality, seed: &mut u64) -> Vec<TokenId> {
    let mut random = |n: u64| {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % n
    };
    match quality {
        Quality::Right => tokens.to_vec(),
        Quality::None => Vec::new(),
        Quality::Wrong => tokens.iter().map(|&t| if t == FORK { FORK } else { t ^ 1 }).collect(),
        Quality::Random => (0..random(40)).map(|_| 2 + random(60) as TokenId).collect(),
        Quality::Partly(one_in) => {
            let mut edited = Vec::new();
            for &token in tokens {
                match random(one_in * 3) {
                    0 => edited.push(2 + random(60) as TokenId),
                    1 => {}
                    2 => edited.extend([token, 2 + random(60) as TokenId]),
                    _ => edited.push(token),
                }
            }
            edited
        }
    }
}

fn quality() -> impl Strategy<Value = Quality> {
    prop_oneof![
        Just(Quality::Right),
        Just(Quality::Wrong),
        (2u64..30).prop_map(Quality::Partly),
        Just(Quality::Random),
        Just(Quality::None),
    ]
}

/// Failing cases are kept beside this file.
fn config() -> ProptestConfig {
    let seeds = FileFailurePersistence::WithSource("seeds");
    ProptestConfig { cases: 400, failure_persistence: Some(Box::new(seeds)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// Forked, batched, drafted and preempted decoding writes what each stream writes alone.
    #[test]
    fn lossless_decoding_writes_what_each_stream_writes_alone(
        visual in prop::collection::vec(1000i64..2000, 1..6),
        fork_visible: bool,
        quality in quality(),
        seed: u64,
        max_rows in prop::sample::select(vec![1usize, 2, 64]),
        spare_positions in prop::option::of(0usize..160),
        never_trust: bool,
    ) {
        let mut page = Page { rule: &random_page, protocol: TestProtocol { fork_visible }, visual, settings: settings() };
        page.settings.max_rows = max_rows;
        if let Some(spare) = spare_positions {
            page.settings.kv_budget_bytes = page.tightest_budget() + spare * DIMS.bytes_per_position();
        }
        if never_trust {
            page.settings.acceptance = AcceptanceRule::Trust(same_thresholds(NEVER));
        }
        let alone = page.alone();
        let mut seed = seed;
        let drafts = drafts_of(&alone, |tokens| edited(tokens, quality, &mut seed));
        let decoded = page.decode(drafts);
        prop_assert_eq!(written(&decoded), alone);
        prop_assert!(decoded.stats.kv_peak_bytes > 0);
    }

    /// Pages that share calls write what each stream of each of them writes alone.
    #[test]
    fn pages_that_share_calls_write_what_each_writes_alone(
        visuals in prop::collection::vec(prop::collection::vec(1000i64..2000, 1..6), 1..6),
        fork_visible: bool,
        quality in quality(),
        seed: u64,
        max_rows in prop::sample::select(vec![1usize, 3, 64]),
        max_pages in 1usize..5,
        spare_positions in prop::option::of(0usize..400),
        ngram: bool,
        fail_at in prop::option::of(0usize..60),
    ) {
        let mut settings = LoopSettings { max_rows, ..settings() };
        settings.guesses = GuessSettings { head: false, ngram };
        let page = |visual: &Vec<TokenId>| {
            let (visual, settings) = (visual.clone(), settings.clone());
            Page { rule: &random_page, protocol: TestProtocol { fork_visible }, visual, settings }
        };
        let pages: Vec<Page<'_>> = visuals.iter().map(page).collect();
        let alone: Vec<Alone> = pages.iter().map(Page::alone).collect();
        let mut seed = seed;
        let mut graph = FakeGraph::new(&random_page);
        graph.joins_pages = true;
        // A call that pages share may fail: they go on alone. A call alone that fails ends its page.
        graph.fail_at = fail_at;
        // Whatever the others hold, a page alone always has room, its copy in the pool included.
        let longest = pages.iter().map(|p| p.tightest_budget() + p.visual.len() * DIMS.bytes_per_position());
        let budget = spare_positions.map_or(1 << 30, |spare| {
            longest.max().unwrap() + spare * DIMS.bytes_per_position()
        });
        let mut together = Pages::new(&graph, &pages[0].protocol, max_pages, budget);
        let mut queue = (0..pages.len()).rev().collect::<Vec<_>>();
        let mut decoded = BTreeMap::new();
        while !(queue.is_empty() && together.is_empty()) {
            while together.has_room() && let Some(n) = queue.pop() {
                let drafts = drafts_of(&alone[n], |tokens| edited(tokens, quality, &mut seed));
                let (prefix, _) = prefix(&pages[n].visual);
                together.admit(n, PageJob { prefix, drafts, settings: settings.clone() });
            }
            prop_assert!(together.len() <= max_pages);
            decoded.extend(together.step(&mut graph));
        }
        prop_assert_eq!(decoded.len(), pages.len());
        let mut failed = 0;
        for (n, result) in decoded {
            match result {
                Ok(page) => prop_assert_eq!(written(&page), alone[n].clone()),
                Err(DecodeError::Graph(_)) => failed += 1,
                Err(error) => prop_assert!(false, "page {n}: {error}"),
            }
        }
        prop_assert!(failed <= usize::from(fail_at.is_some()));
    }

    /// Guesses of a head that is wrong now and then, and look-ups, change nothing of what is written, under any rule.
    #[test]
    fn guesses_change_nothing_that_is_written(
        visual in prop::collection::vec(1000i64..2000, 1..6),
        fork_visible: bool,
        quality in quality(),
        seed: u64,
        head_drafts in 0usize..5,
        wrong_draft in 1usize..20,
        ngram: bool,
        spare_positions in prop::option::of(0usize..160),
        never_trust: bool,
    ) {
        let mut page = Page { rule: &random_page, protocol: TestProtocol { fork_visible }, visual, settings: settings() };
        page.settings.guesses = GuessSettings { head: true, ngram };
        if let Some(spare) = spare_positions {
            page.settings.kv_budget_bytes = page.tightest_budget() + spare * DIMS.bytes_per_position();
        }
        if never_trust {
            page.settings.acceptance = AcceptanceRule::Trust(same_thresholds(NEVER));
        }
        let alone = page.alone();
        let mut seed = seed;
        let drafts = drafts_of(&alone, |tokens| edited(tokens, quality, &mut seed));
        let mut graph = FakeGraph::new(&random_page);
        graph.head_drafts = head_drafts;
        graph.wrong_draft = wrong_draft;
        let decoded = page.decode_on(&mut graph, drafts);
        prop_assert_eq!(written(&decoded), alone);
        for count in decoded.stats.guesses.values() {
            prop_assert!(count.accepted <= count.proposed && count.rows > 0);
        }
    }

    /// Whatever stands in the drafts, trusted decoding ends and keeps its accounts.
    #[test]
    fn trusted_decoding_always_ends(
        visual in prop::collection::vec(1000i64..2000, 1..4),
        quality in quality(),
        seed: u64,
        override_probability in 0.0f32..1.0,
    ) {
        let mut page =
            Page { rule: &random_page, protocol: TestProtocol { fork_visible: false }, visual, settings: settings() };
        page.settings.acceptance = AcceptanceRule::Trust(same_thresholds(TrustThreshold { override_probability, ..NEVER }));
        let alone = page.alone();
        let mut seed = seed;
        let decoded = page.decode(drafts_of(&alone, |tokens| edited(tokens, quality, &mut seed)));
        let forks = decoded.trunk.iter().filter(|t| t.id == FORK).count();
        prop_assert_eq!(decoded.branches.len(), forks);
        prop_assert!(decoded.regions.windows(2).all(|pair| pair[0].tokens.end <= pair[1].tokens.start));
    }
}

/// Nothing but the model's own token stands.
const NEVER: TrustThreshold = TrustThreshold {
    own_confidence: 2.0,
    model_probability: 2.0,
    override_probability: 0.0,
    coordinate_bins: 0,
};

/// Everything stands.
const ALWAYS: TrustThreshold = TrustThreshold { own_confidence: 0.0, ..NEVER };

fn same_thresholds(threshold: TrustThreshold) -> TrustThresholds {
    TrustThresholds::new(|_, _| threshold)
}

fn random_reader(visual: &[TokenId]) -> Page<'static> {
    Page {
        rule: &random_page,
        protocol: TestProtocol { fork_visible: false },
        visual: visual.to_vec(),
        settings: settings(),
    }
}

/// A page whose visual tokens make it have several regions with content.
fn long_page() -> Page<'static> {
    let pages = (1000..2000).map(|v| random_reader(&[v]));
    let long =
        |page: &Page<'_>| page.alone().branches.iter().filter(|(_, tokens)| tokens.len() > 9).count() >= 5;
    pages.into_iter().find(long).expect("one page in a thousand has five long regions")
}

/// Region tokens: kind, left edge, top edge, fork.
fn region(x: TokenId) -> Vec<TokenId> {
    vec![KIND, x, 20, FORK]
}

fn trunk_of(xs: &[TokenId]) -> Vec<TokenId> {
    xs.iter().flat_map(|&x| region(x)).chain([END]).collect()
}

/// A reader that writes the trunk `trunk`, and in each region the text of its left edge.
fn scripted(trunk: &[TokenId]) -> impl Fn(&[Seen]) -> Next + use<> {
    scripted_with(trunk, content)
}

/// A reader that writes the trunk `trunk`, and in each region what `content` says of its left edge.
fn scripted_with(
    trunk: &[TokenId],
    content: fn(TokenId) -> Vec<TokenId>,
) -> impl Fn(&[Seen]) -> Next + use<> {
    let trunk = trunk.to_vec();
    move |seen| {
        let own: Vec<TokenId> = seen.iter().map(|s| s.token).filter(|&t| t < 1000).collect();
        let id = match own.iter().position(|&t| t == CHILD) {
            None => trunk.get(own.len().saturating_sub(2)).copied().unwrap_or(END),
            Some(child) => {
                let x = own.get(child.saturating_sub(2)).copied().unwrap_or_default();
                content(x).get(own.len() - child - 1).copied().unwrap_or(END)
            }
        };
        Next { id, probability: 0.9, other: 0.01 }
    }
}

fn content(x: TokenId) -> Vec<TokenId> {
    (0..30).map(|i| TEXT + (i * x + i * i) % 20).chain([END]).collect()
}

fn scripted_drafts(xs: &[TokenId]) -> PageDrafts {
    let content = xs.iter().enumerate().map(|(i, &x)| (i * 4 + 3, draft(&content(x)))).collect();
    PageDrafts { trunk: draft(&trunk_of(xs)), content, ..PageDrafts::default() }
}

fn scripted_page(rule: &dyn Fn(&[Seen]) -> Next) -> Page<'_> {
    Page { rule, protocol: TestProtocol { fork_visible: false }, visual: vec![1000], settings: settings() }
}

fn claims(page: &PageDecoding) -> Vec<Option<usize>> {
    page.branches.iter().map(|b| b.draft_index).collect()
}

#[test]
fn right_drafts_take_one_call_for_the_trunk_and_one_for_all_branches() {
    let rule = scripted(&trunk_of(&[10, 20, 30]));
    let page = scripted_page(&rule).decode(scripted_drafts(&[10, 20, 30]));
    assert_eq!(page.stats.calls, 2);
    assert_eq!(page.stats.written, 0, "all tokens were drafted");
    assert_eq!(page.stats.accepted, page.stats.drafted);
    assert_eq!(claims(&page), [Some(0), Some(1), Some(2)]);
    assert_eq!(page.branches[1].tokens[3].origin, Some(3));
    assert!(page.unclaimed.is_empty());
}

#[test]
fn undrafted_streams_of_a_page_share_their_calls() {
    let page = long_page();
    let alone = page.alone();
    let decoded = page.decode(PageDrafts::default());
    assert_eq!(written(&decoded), alone);
    let longest = alone.branches.iter().map(|(fork, tokens)| fork + tokens.len()).max().unwrap();
    assert!(decoded.stats.calls <= longest.max(alone.trunk.len()) + 3, "{} calls", decoded.stats.calls);
}

#[test]
fn a_lone_token_is_joined_by_a_filler() {
    let rule = scripted(&[KIND, END]);
    let mut graph = FakeGraph::new(&rule);
    scripted_page(&rule).decode_on(&mut graph, PageDrafts::default());
    assert_eq!((&graph.calls[0].tokens, graph.calls[0].rows), (&vec![PROMPT, PROMPT + 100], 1));
    assert_eq!((&graph.calls[1].tokens, graph.calls[1].rows), (&vec![KIND, 0], 2));
    assert_eq!(graph.calls[1].trunk_visible, [2, 0], "the filler sees the prefix only");
}

#[test]
fn branches_without_a_suffix_read_none() {
    let rule = scripted(&trunk_of(&[10, 20]));
    let mut graph = FakeGraph::new(&rule);
    scripted_page(&rule).decode_on(&mut graph, scripted_drafts(&[10, 20]));
    assert_eq!(graph.calls[1].suffix_capacity, 0);
    assert_eq!(graph.calls[1].trunk_visible, [5, 9], "the trunk up to, not with, the fork");
}

#[test]
fn a_region_that_the_trunk_adds_costs_only_itself() {
    let rule = scripted(&trunk_of(&[10, 39, 20, 30]));
    let page = scripted_page(&rule).decode(scripted_drafts(&[10, 20, 30]));
    assert_eq!(written(&page), scripted_page(&rule).alone());
    assert_eq!(claims(&page), [Some(0), None, Some(1), Some(2)]);
    assert!(page.unclaimed.is_empty());
    let accepted: usize = page.stats.accepted.values().sum();
    assert!(accepted >= 3 * 31 + 3 * 3, "the drafts of the other regions were used: {accepted}");
}

#[test]
fn a_region_that_the_trunk_leaves_out_is_unclaimed() {
    let rule = scripted(&trunk_of(&[10, 30]));
    let page = scripted_page(&rule).decode(scripted_drafts(&[10, 20, 30]));
    assert_eq!(written(&page), scripted_page(&rule).alone());
    assert_eq!(claims(&page), [Some(0), Some(2)]);
    assert_eq!(page.unclaimed, [1]);
    assert_eq!(page.branches[1].tokens[0].source, Source::Ocr, "the third region's draft was used");
}

#[test]
fn regions_that_the_trunk_moves_keep_their_drafts() {
    let rule = scripted(&trunk_of(&[30, 10, 20]));
    let page = scripted_page(&rule).decode(scripted_drafts(&[10, 20, 30]));
    assert_eq!(written(&page), scripted_page(&rule).alone());
    assert_eq!(claims(&page), [Some(2), Some(0), Some(1)]);
    assert!(page.unclaimed.is_empty());
}

#[test]
fn a_region_with_a_slightly_other_box_keeps_its_draft() {
    let rule = scripted(&trunk_of(&[10, 21, 30]));
    let mut drafts = scripted_drafts(&[10, 20, 30]);
    drafts.content.insert(7, draft(&content(21)));
    for acceptance in [AcceptanceRule::Lossless, AcceptanceRule::Trust(same_thresholds(NEVER))] {
        let mut page = scripted_page(&rule);
        page.settings.acceptance = acceptance;
        let decoded = page.decode(drafts.clone());
        assert_eq!(written(&decoded), page.alone());
        assert_eq!(claims(&decoded), [Some(0), Some(1), Some(2)]);
        assert!(decoded.stats.steps <= 4, "{} steps", decoded.stats.steps);
    }
}

#[test]
fn under_trust_an_override_costs_only_its_region() {
    let rule = scripted(&trunk_of(&[10, 35, 20]));
    let mut page = scripted_page(&rule);
    let sure = TrustThreshold { override_probability: 0.5, ..NEVER };
    page.settings.acceptance = AcceptanceRule::Trust(same_thresholds(sure));
    let decoded = page.decode(scripted_drafts(&[10, 20]));
    assert_eq!(written(&decoded), page.alone());
    assert_eq!(claims(&decoded), [Some(0), None, Some(1)]);
}

#[test]
fn a_draft_that_always_stands_is_what_is_written() {
    let rule = scripted(&trunk_of(&[10, 20]));
    let mut page = scripted_page(&rule);
    page.settings.max_tokens = 3000;
    page.settings.acceptance = AcceptanceRule::Trust(same_thresholds(ALWAYS));
    let long: Vec<TokenId> = (0..1500).map(|i| TEXT + (i * i * i + i * i / 7) % 19).chain([END]).collect();
    let mut drafts = scripted_drafts(&[33, 12]);
    drafts.content.insert(3, draft(&long));
    let decoded = page.decode(drafts);
    assert_eq!(ids(&decoded.trunk)[2..], trunk_of(&[33, 12]));
    assert_eq!(ids(&decoded.branches[0].tokens), long);
    assert_eq!(ids(&decoded.branches[1].tokens), content(12));
    assert!(decoded.branches.iter().all(|b| b.stop == StopReason::End));
    assert_eq!(decoded.stats.written, 0);
}

#[test]
fn a_content_draft_goes_on_after_an_edit() {
    let rule = scripted(&trunk_of(&[17]));
    let right = content(17);
    let edits: [fn(&mut Vec<TokenId>); 3] = [
        |tokens| tokens[10] = TEXT + (tokens[10] - TEXT + 1) % 20,
        |tokens| tokens.insert(10, CELL),
        |tokens| {
            tokens.remove(10);
        },
    ];
    for (name, edit) in ["replaced", "added", "left out"].iter().zip(edits) {
        let mut tokens = right.clone();
        edit(&mut tokens);
        let mut drafts = scripted_drafts(&[17]);
        drafts.content.insert(3, draft(&tokens));
        let page = scripted_page(&rule).decode(drafts);
        assert_eq!(ids(&page.branches[0].tokens), right, "{name}");
        assert!(page.stats.calls <= 8, "{name}: {} calls", page.stats.calls);
    }
}

#[test]
fn a_full_pool_preempts_without_loss() {
    let mut page = long_page();
    page.settings.kv_budget_bytes = page.tightest_budget();
    let decoded = page.decode(PageDrafts::default());
    assert!(decoded.stats.preempted > 0);
    assert_eq!(written(&decoded), page.alone());
}

#[test]
fn a_branch_preempted_within_a_call_appends_nothing_of_it() {
    // The first branch outgrows the slots (of 4) when it takes its fifth row: the third has to make room. The second ends in
    // the same call, so there is room again when it is the third's turn.
    let words = |x: TokenId| (0..if x == 20 { 4 } else { 7 }).map(|i| TEXT + i).chain([END]).collect();
    let trunk = trunk_of(&[10, 20, 30]);
    let rule = scripted_with(&trunk, words);
    let mut page = scripted_page(&rule);
    page.settings.max_tokens = 15;
    page.settings.kv_budget_bytes = page.tightest_budget();
    let decoded = page.decode(PageDrafts { trunk: draft(&trunk), ..PageDrafts::default() });
    assert_eq!(decoded.stats.preempted, 1);
    assert_eq!(written(&decoded), page.alone());
}

#[test]
fn a_page_that_could_not_finish_is_not_admitted() {
    let page = long_page();
    let settings = LoopSettings { kv_budget_bytes: page.tightest_budget() - 1, ..settings() };
    let mut graph = FakeGraph::new(page.rule);
    let result =
        decode_page(&mut graph, &page.protocol, prefix(&page.visual).0, PageDrafts::default(), &settings);
    assert!(matches!(result, Err(DecodeError::NoRoom { .. })));
    assert!(graph.calls.is_empty());
}

/// Three pages without drafts, decoded `max_pages` at once: the graph's calls and what each page counted.
fn three_pages(max_pages: usize, fail_at: Option<usize>) -> (Vec<usize>, Vec<DecodeStats>) {
    let page = long_page();
    let mut graph = FakeGraph::new(page.rule);
    (graph.joins_pages, graph.fail_at) = (true, fail_at);
    let mut pages = Pages::new(&graph, &page.protocol, max_pages, 1 << 30);
    let (mut left, mut stats) = (3, Vec::new());
    while left > 0 || !pages.is_empty() {
        while pages.has_room() && left > 0 {
            left -= 1;
            let (prefix, drafts) = (prefix(&page.visual).0, PageDrafts::default());
            pages.admit(left, PageJob { prefix, drafts, settings: page.settings.clone() });
        }
        for (_, decoded) in pages.step(&mut graph) {
            let decoded = decoded.unwrap();
            assert_eq!(written(&decoded), page.alone());
            stats.push(decoded.stats);
        }
    }
    (graph.calls.iter().map(|call| call.pages).collect(), stats)
}

#[test]
fn three_equal_pages_take_the_calls_of_one() {
    let (calls, stats) = three_pages(4, None);
    assert_eq!(calls.iter().max(), Some(&3));
    let (apart, alone) = three_pages(1, None);
    assert_eq!(apart.iter().max(), Some(&1));
    // The pages come in one after another, a step apart.
    assert!(calls.len() <= apart.len() / 3 + 4, "{} and {}", calls.len(), apart.len());
    for (shared, alone) in stats.iter().zip(&alone) {
        assert_eq!((shared.calls, shared.steps), (alone.calls, alone.steps));
        assert!(shared.shared_calls > alone.calls / 2 && alone.shared_calls == 0);
        assert!(shared.pool_bytes > 0 && alone.pool_bytes == 0);
    }
}

#[test]
fn pages_whose_shared_call_fails_go_on_alone() {
    let (calls, _) = three_pages(4, None);
    let shared = calls.iter().position(|&pages| pages > 1);
    assert!(shared.is_some());
    let (after, stats) = three_pages(4, shared);
    assert_eq!(stats.len(), 3, "no page is lost");
    assert!(after.len() > calls.len(), "a call for each page in the place of one");
}

#[test]
fn a_failed_call_is_the_pages_error() {
    let page = long_page();
    let mut graph = FakeGraph::new(page.rule);
    graph.fail_at = Some(3);
    let result = decode_page(
        &mut graph,
        &page.protocol,
        prefix(&page.visual).0,
        PageDrafts::default(),
        &page.settings,
    );
    assert!(matches!(result, Err(DecodeError::Graph(_))));
}

#[test]
fn a_looping_branch_costs_only_its_region() {
    let normal = scripted(&trunk_of(&[10, 21]));
    let rule = move |seen: &[Seen]| {
        let has = |token: TokenId| seen.iter().any(|s| s.token == token);
        if has(CHILD) && !has(21) {
            Next { id: TEXT + seen.len() as i64 % 3, probability: 0.9, other: 0.0 }
        } else {
            normal(seen)
        }
    };
    let mut page = scripted_page(&rule);
    page.settings.max_tokens = 1000;
    let decoded = page.decode(PageDrafts::default());
    let stops: Vec<StopReason> = decoded.branches.iter().map(|b| b.stop).collect();
    assert_eq!(stops, [StopReason::Loop, StopReason::End]);
    assert_eq!(decoded.branches[0].tokens.len(), 3, "one of the repeated runs is left");
    assert_eq!(ids(&decoded.branches[1].tokens), content(21));
}

#[test]
fn a_looping_trunk_loses_the_branches_of_its_repetitions() {
    let trunk: Vec<TokenId> = (0..200).flat_map(|_| region(10)).collect();
    let rule = scripted(&trunk);
    let mut page = scripted_page(&rule);
    page.settings.max_trunk_tokens = 700;
    for drafts in [PageDrafts::default(), PageDrafts { trunk: draft(&trunk), ..PageDrafts::default() }] {
        let decoded = page.decode(drafts);
        assert_eq!(decoded.stop, StopReason::Loop);
        assert_eq!(ids(&decoded.trunk)[2..], region(10));
        assert_eq!(decoded.branches.len(), 1);
        assert_eq!(ids(&decoded.branches[0].tokens), content(10));
    }
}

#[test]
fn budgets_stop_streams() {
    let rule = scripted(&trunk_of(&[10, 20, 30]));
    let mut page = scripted_page(&rule);
    page.settings.max_tokens = 7;
    page.settings.max_branches = 2;
    for drafts in [PageDrafts::default(), scripted_drafts(&[10, 20, 30])] {
        let decoded = page.decode(drafts);
        let lens: Vec<usize> = decoded.branches.iter().map(|b| b.tokens.len()).collect();
        assert_eq!(lens, [7, 7, 0]);
        assert!(decoded.branches.iter().all(|b| b.stop == StopReason::Budget));
    }
    page.settings.max_trunk_tokens = 5;
    let decoded = page.decode(scripted_drafts(&[10, 20, 30]));
    assert_eq!((decoded.stop, decoded.trunk.len(), decoded.branches.len()), (StopReason::Budget, 7, 1));
}

/// Fixation with the second layer focal, on a graph that does not mind: what is read changes, not what is written.
fn fixating(tau: f32, max_share: f32) -> LoopSettings {
    let fixation = FixationSettings { warm_up: 3, max_share, ..FixationSettings::new(tau) };
    LoopSettings { fixation: Some(fixation), ..settings() }
}

fn visual() -> Vec<TokenId> {
    (1000..1020).collect()
}

/// Decodes a page of [`visual`] tokens with a focal layer and checks that it writes what its streams write alone.
fn looking(settings: LoopSettings) -> (FakeGraph<'static>, PageDecoding) {
    let page = Page { settings, ..random_reader(&visual()) };
    let mut graph = FakeGraph::new(&random_page);
    graph.focal_layers = vec![1];
    let decoded = page.decode_on(&mut graph, PageDrafts::default());
    assert_eq!(written(&decoded), page.alone());
    (graph, decoded)
}

#[test]
fn a_stream_reads_where_it_looked_in_the_step_before() {
    let settings = LoopSettings { max_rows: 1, ..fixating(0.25, 1.0) };
    let (graph, decoded) = looking(settings);
    let mut focused = 0;
    for (index, pair) in graph.calls.windows(2).enumerate() {
        let [before, call] = pair else { unreachable!() };
        let goes_on = call.tokens_per_row == 1
            && before.tokens_per_row == 1
            && call.suffix_len[0] == before.suffix_len[0] + 1;
        if index < 4 || !goes_on {
            continue;
        }
        let scores: Vec<f32> =
            (0..20).map(|p| crate::graphs::fake::focal_score(before.tokens[0], p)).collect();
        let expected: Vec<TokenId> =
            fixation::select(&scores, 0.25, 0).into_iter().map(|p| 1000 + TokenId::from(p)).collect();
        assert_eq!(call.prefix_read, expected, "call {index}");
        focused += 1;
    }
    assert!(focused > 20, "{focused}");
    assert!(decoded.stats.prefix_read < 20.0 * decoded.stats.calls as f64 * 0.9);
}

#[test]
fn rows_share_the_union_or_read_everything() {
    let read = |tau: f32, max_share: f32| {
        let (graph, _) = looking(fixating(tau, max_share));
        graph.calls.iter().map(|call| call.prefix_read.len()).collect::<Vec<usize>>()
    };
    assert!(read(1.0, 1.0).iter().all(|&len| len == 20), "1 is off");
    assert!(read(0.2, 0.1).iter().all(|&len| len == 20), "a union above the largest share");
    let shared = read(0.2, 1.0);
    assert!(shared[..3].iter().all(|&len| len == 20), "warm-up: {shared:?}");
    assert!(shared.contains(&4) && shared.iter().any(|&len| len > 4 && len < 20), "{shared:?}");
}

#[test]
fn forks_and_ends_inside_a_guess_are_handled_in_order() {
    let rule = scripted(&trunk_of(&[10, 20, 30]));
    let mut page = scripted_page(&rule);
    let plain = page.decode(PageDrafts::default());
    page.settings.guesses = GuessSettings { head: true, ngram: false };
    let mut graph = FakeGraph::new(&rule);
    graph.head_drafts = 6;
    let decoded = page.decode_on(&mut graph, PageDrafts::default());
    assert_eq!(written(&decoded), page.alone());
    let count = decoded.stats.guesses[&Guesser::Head];
    assert_eq!(count.accepted, count.proposed, "the head is always right");
    assert!(decoded.stats.calls * 4 < plain.stats.calls, "{} of {}", decoded.stats.calls, plain.stats.calls);
    let tokens = decoded.branches.iter().flat_map(|b| &b.tokens).chain(&decoded.trunk);
    assert!(
        tokens.clone().all(|t| t.source == Source::Model && t.origin.is_none()),
        "all of it is the model's"
    );
}

#[test]
fn a_head_that_is_always_wrong_is_not_asked_for_long() {
    let rule = scripted(&trunk_of(&[10, 20, 30]));
    let mut page = scripted_page(&rule);
    page.settings.guesses = GuessSettings { head: true, ngram: false };
    let mut graph = FakeGraph::new(&rule);
    (graph.head_drafts, graph.wrong_draft) = (3, 1);
    let decoded = page.decode_on(&mut graph, PageDrafts::default());
    assert_eq!(written(&decoded), page.alone());
    let count = decoded.stats.guesses[&Guesser::Head];
    assert!(count.accepted == 0 && (24..40).contains(&count.rows), "{count:?}");
}

#[test]
fn what_a_stream_repeats_is_looked_up() {
    let rows =
        |x: TokenId| (0..40).map(|i| [CELL, TEXT + x % 7, TEXT + 9, CELL][i % 4]).chain([END]).collect();
    let rule = scripted_with(&trunk_of(&[10]), rows);
    let mut page = scripted_page(&rule);
    page.settings.guesses = GuessSettings { head: false, ngram: true };
    let decoded = page.decode(PageDrafts::default());
    assert_eq!(written(&decoded), page.alone());
    let count = decoded.stats.guesses[&Guesser::Ngram];
    assert!(count.accepted > 20 && decoded.stats.calls < 25, "{count:?}, {} calls", decoded.stats.calls);
}

#[test]
fn a_branch_keeps_what_its_first_queries_saw_and_the_trunk_keeps_everything() {
    let retention = RetentionSettings { window: 3, max_share: 1.0, ..RetentionSettings::new(0.2) };
    let settings = LoopSettings { retention: Some(retention), max_rows: 1, ..settings() };
    let rule = scripted(&trunk_of(&[10, 20]));
    let page =
        Page { rule: &rule, protocol: TestProtocol { fork_visible: false }, visual: visual(), settings };
    let mut graph = FakeGraph::new(&rule);
    graph.saliency = true;
    let decoded = page.decode_on(&mut graph, PageDrafts::default());
    assert_eq!(written(&decoded), page.alone());
    let of_branches =
        |len: i64| graph.calls.iter().filter(move |c| c.tokens[0] != FORK && c.suffix_len[0] == len);
    assert!(of_branches(2).all(|call| call.prefix_read.len() == 20 && call.tokens_per_row == 1));
    let narrowed: Vec<usize> =
        graph.calls.iter().filter(|c| c.suffix_len[0] >= 3).map(|c| c.prefix_read.len()).collect();
    assert!(narrowed.len() > 40 && narrowed.iter().all(|&len| len == 4), "a fifth of 20: {narrowed:?}");
    let watched = graph.calls.iter().filter(|call| !call.watched.is_empty()).count();
    assert_eq!(watched, 6, "three steps of each branch");
    let trunk = graph.calls.iter().filter(|call| call.tokens[0] != CHILD && call.suffix_len[0] == 0);
    assert!(trunk.clone().count() > 5 && trunk.map(|call| call.prefix_read.len()).all(|len| len == 20));
}

#[test]
fn rate_1_and_rows_that_keep_everything_read_everything() {
    let rule = scripted(&trunk_of(&[10, 20]));
    let read = |rate: f32, max_share: f32| {
        let retention = RetentionSettings { window: 2, max_share, ..RetentionSettings::new(rate) };
        let settings = LoopSettings { retention: Some(retention), ..settings() };
        let page =
            Page { rule: &rule, protocol: TestProtocol { fork_visible: false }, visual: visual(), settings };
        let mut graph = FakeGraph::new(&rule);
        graph.saliency = true;
        let decoded = page.decode_on(&mut graph, PageDrafts::default());
        assert_eq!(written(&decoded), page.alone());
        graph.calls.iter().map(|call| call.prefix_read.len()).collect::<Vec<usize>>()
    };
    assert!(read(1.0, 1.0).iter().all(|&len| len == 20), "1 is off");
    assert!(read(0.2, 0.1).iter().all(|&len| len == 20), "a union above the largest share");
    assert!(read(0.2, 1.0).iter().any(|&len| len < 20));
}
