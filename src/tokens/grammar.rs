//! The token protocol of a pack, with every name resolved: what each token means, and where it stands.

use crate::decode::protocol::{Position, PositionState, Protocol, TokenClass};
use crate::geometry::Rect;
use crate::graphs::TokenId;
use crate::graphs::manifest::{
    ContentFormat, CoordinateRange, Manifest, PositionRule, RegionForm, TokenName,
};
use crate::page::Kind;

use super::blocks::{BlockForm, BlockHead};
use super::positions::{Axis, StepTokens, moved, next_center};
use super::vocabulary::Vocabulary;

/// Tokens of the box of a region in the trunk: [x0] [y0] [x1] [y1].
pub(super) const BOX_TOKENS: usize = 4;

/// A token's kind of region.
#[derive(Clone, Debug)]
struct KindToken {
    id: TokenId,
    kind: Kind,
    also: Vec<Kind>,
    forks: bool,
}

/// Tokens and ranges of content that is written as words with places.
#[derive(Clone, Copy, Debug)]
pub struct GroundedTokens {
    pub unknown: TokenId,
    pub space: TokenId,
    pub end: TokenId,
    pub cell: TokenId,
    pub row: TokenId,
    pub x: CoordinateRange,
    pub y: CoordinateRange,
    pub pitch: CoordinateRange,
    /// Lines and words are placed by steps.
    pub steps: Option<StepTokens>,
}

/// A pack's token protocol.
#[derive(Debug)]
pub struct Grammar {
    pub vocabulary: Vocabulary,
    rule: PositionRule,
    grounded: Option<GroundedTokens>,
    /// Relative widths of characters, by token.
    advance: Vec<f32>,
    child: TokenId,
    fork: TokenId,
    fork_visible: bool,
    form: RegionForm,
    /// Largest coordinate that is written as text.
    grid: u32,
    blocks: Option<BlockForm>,
    /// Tokens of table markup, sorted: empty cells repeat.
    table_tokens: Vec<TokenId>,
    trunk_prompt: Vec<TokenId>,
    trunk_end: Vec<TokenId>,
    branch_end: Vec<TokenId>,
    kinds: Vec<KindToken>,
    /// Content format of each kind that the manifest names or that has a token.
    formats: Vec<(Kind, ContentFormat)>,
    no_content: Vec<String>,
}

/// Field of the manifest and what is wrong with it.
type Fault = (String, String);

impl Grammar {
    /// Resolves a manifest's names with the pack's tokenizer.
    pub fn new(manifest: &Manifest, vocabulary: Vocabulary) -> Result<Grammar, Fault> {
        let protocol = &manifest.protocol;
        let names = Names { manifest, vocabulary: &vocabulary };
        let grounded = match protocol.position_rule {
            PositionRule::GroundedWords | PositionRule::GroundedSteps => Some(names.grounded()?),
            PositionRule::Sequential | PositionRule::Mrope => None,
        };
        let mut kinds = Vec::new();
        for (index, entry) in protocol.kinds.iter().enumerate() {
            let id = names.resolve(&format!("protocol.kinds[{index}].id"), &entry.id)?;
            kinds.push(KindToken { id, kind: entry.kind, also: entry.also.clone(), forks: entry.forks });
        }
        let every = kinds.iter().flat_map(|k| std::iter::once(k.kind).chain(k.also.iter().copied()));
        let labelled = protocol.labels.iter().map(|entry| entry.kind);
        let formats = every.chain(labelled).map(|kind| (kind, manifest.content_format(kind))).collect();
        let forks = protocol.region.forks();
        let marker = |name| if forks { names.named(name) } else { Ok(NO_TOKEN) };
        Ok(Grammar {
            rule: protocol.position_rule,
            form: protocol.region,
            grid: protocol.grid,
            blocks: names.blocks()?,
            table_tokens: if grounded.is_none() { table_tokens(&vocabulary) } else { Vec::new() },
            grounded,
            advance: protocol.advance.clone(),
            child: marker("child")?,
            fork: marker("fork")?,
            fork_visible: protocol.fork_visible,
            trunk_prompt: names.list("trunk_prompt", &protocol.trunk_prompt)?,
            trunk_end: names.list("trunk_end", &protocol.trunk_end)?,
            branch_end: names.list("branch_end", &protocol.branch_end)?,
            kinds,
            formats,
            no_content: protocol.no_content.clone(),
            vocabulary,
        })
    }

    /// Tokens of grounded content; `None` for models that write plain text.
    pub fn grounded(&self) -> Option<&GroundedTokens> {
        self.grounded.as_ref()
    }

    /// The token by which `kind` is drafted: its own, or that of the kind that stands in for it.
    pub fn kind_token(&self, kind: Kind) -> Option<TokenId> {
        let own = self.kinds.iter().find(|k| k.kind == kind);
        own.or_else(|| self.kinds.iter().find(|k| k.also.contains(&kind))).map(|k| k.id)
    }

    /// What the trunk writes.
    pub fn form(&self) -> RegionForm {
        self.form
    }

    /// Largest coordinate that is written as text.
    pub fn grid(&self) -> u32 {
        self.grid
    }

    /// The form of regions that are written as text.
    pub fn blocks(&self) -> Option<&BlockForm> {
        self.blocks.as_ref()
    }

    /// The label and the box among some tokens of the trunk, if regions are written as text.
    pub fn block_head(&self, tokens: &[TokenId]) -> Option<BlockHead> {
        let blocks = self.blocks.as_ref()?;
        let start = tokens.iter().position(|&t| t == blocks.marker)? + 1;
        let rest = &tokens[start..];
        let end = rest.iter().position(|&t| t == self.fork || t == self.child || self.is_trunk_end(t));
        blocks.read(&self.vocabulary.decode(&rest[..end.unwrap_or(rest.len())]).ok()?)
    }

    /// Does the token end a stream or belong to the trunk? None of them is content.
    pub(super) fn is_marker(&self, token: TokenId) -> bool {
        let is_block = self.blocks.as_ref().is_some_and(|blocks| blocks.marker == token);
        let is_fork = token == self.fork || token == self.child;
        is_block || is_fork || self.is_trunk_end(token) || self.is_branch_end(token)
    }

    /// The kind that a token names.
    pub fn token_kind(&self, token: TokenId) -> Option<Kind> {
        self.kinds.iter().find(|k| k.id == token).map(|k| k.kind)
    }

    /// Is the content of such a region read by a branch?
    pub fn kind_forks(&self, kind: Kind) -> bool {
        if let Some(blocks) = &self.blocks {
            return blocks.forks(kind);
        }
        self.kinds.iter().find(|k| k.kind == kind || k.also.contains(&kind)).is_some_and(|k| k.forks)
    }

    /// What a branch of this kind writes.
    pub fn content_format(&self, kind: Kind) -> ContentFormat {
        let named = self.formats.iter().find(|(k, _)| *k == kind).map(|(_, format)| *format);
        named.unwrap_or(match self.rule {
            PositionRule::GroundedWords => ContentFormat::GroundedWords,
            PositionRule::GroundedSteps => ContentFormat::GroundedSteps,
            PositionRule::Sequential | PositionRule::Mrope => ContentFormat::Text,
        })
    }

    /// Tokens of this kind's content if it is written as words with places.
    pub fn grounded_content(&self, kind: Kind) -> Option<&GroundedTokens> {
        self.grounded().filter(|_| self.content_format(kind).position_rule().is_some())
    }

    /// Texts that mean that a region holds nothing to read.
    pub fn no_content(&self) -> &[String] {
        &self.no_content
    }

    pub fn fork_token(&self) -> TokenId {
        self.fork
    }

    /// The token that ends a trunk, and a branch, in drafts.
    pub fn trunk_end_token(&self) -> Option<TokenId> {
        self.trunk_end.first().copied()
    }

    pub fn branch_end_token(&self) -> Option<TokenId> {
        self.branch_end.first().copied()
    }

    /// The coordinate range that `token` belongs to.
    fn axis(&self, token: TokenId) -> Option<(Axis, CoordinateRange)> {
        let tokens = self.grounded.as_ref()?;
        let ranges = [(Axis::X, tokens.x), (Axis::Y, tokens.y), (Axis::Pitch, tokens.pitch)];
        let steps = tokens.steps.map(|steps| [(Axis::Gap, steps.gap), (Axis::Down, steps.down)]);
        ranges.into_iter().chain(steps.into_iter().flatten()).find(|(_, range)| range.contains(token))
    }

    /// Width of a character relative to the mean one.
    pub fn advance(&self, token: TokenId) -> f32 {
        usize::try_from(token).ok().and_then(|t| self.advance.get(t)).copied().unwrap_or(1.0)
    }

    /// Where the content of a region with this box (pixels of the model's raster) starts: the top left corner as the trunk's
    /// tokens have it. The order is 0.
    pub fn content_start(&self, bbox: Rect) -> PositionState {
        let Some(tokens) = &self.grounded else { return PositionState::default() };
        let rounded = |range: CoordinateRange, side: f32| range.value(range.token(side)).unwrap_or(0.0);
        self.branch_at(rounded(tokens.x, bbox.x0), rounded(tokens.y, bbox.y0), 0.0)
    }

    fn branch_at(&self, x: f32, y: f32, order: f32) -> PositionState {
        let line_x = (self.rule == PositionRule::GroundedSteps).then_some(x);
        PositionState { order, y, x, line_x, ..PositionState::default() }
    }

    /// Number that `token` stands for, px of the model's raster.
    pub(super) fn coordinate(&self, token: TokenId) -> Option<(Axis, f32)> {
        let (axis, range) = self.axis(token)?;
        Some((axis, range.value(token)?))
    }
}

/// No token of any vocabulary.
const NO_TOKEN: TokenId = -1;

/// Tokens of empty tables as models write them.
fn table_tokens(vocabulary: &Vocabulary) -> Vec<TokenId> {
    let empty = [
        "<table><tr><td></td><td></td></tr><tr><td></td></tr></table>",
        "<table>\n<tr>\n<td></td>\n<td> </td>\n</tr>\n<tr>\n<th></th><th></th></tr></table>",
        "|   |  | |\n| --- | --- |\n|---|---|\n||\n",
        "<ecel><ecel><nl><fcel><lcel><ucel><xcel>",
    ];
    let mut tokens: Vec<TokenId> = empty.iter().flat_map(|text| vocabulary.encode(text)).flatten().collect();
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

/// Looks names of the manifest up.
struct Names<'a> {
    manifest: &'a Manifest,
    vocabulary: &'a Vocabulary,
}

impl Names<'_> {
    fn resolve(&self, field: &str, name: &TokenName) -> Result<TokenId, Fault> {
        self.vocabulary.resolve(name).map_err(|message| (field.to_owned(), message))
    }

    /// A name of the manifest's token table.
    fn named(&self, name: &str) -> Result<TokenId, Fault> {
        let field = format!("tokens.{name}");
        let token = self.manifest.token(name).ok_or_else(|| (field.clone(), "is missing".to_owned()))?;
        self.resolve(&field, token)
    }

    /// A list whose entries are ids, names of the token table, or tokens of the tokenizer.
    fn list(&self, field: &str, names: &[TokenName]) -> Result<Vec<TokenId>, Fault> {
        let one = |name: &TokenName| {
            let known = match name {
                TokenName::Text(text) => self.manifest.token(text).unwrap_or(name),
                TokenName::Id(_) => name,
            };
            self.resolve(&format!("protocol.{field}"), known)
        };
        names.iter().map(one).collect()
    }

    fn blocks(&self) -> Result<Option<BlockForm>, Fault> {
        let protocol = &self.manifest.protocol;
        let Some(marker) = protocol.block.as_ref().filter(|_| protocol.region == RegionForm::BlockLabelBox)
        else {
            return Ok(None);
        };
        let marker = self.resolve("protocol.block", marker)?;
        Ok(Some(BlockForm { marker, labels: protocol.labels.clone(), grid: protocol.grid }))
    }

    fn grounded(&self) -> Result<GroundedTokens, Fault> {
        let range = |name: &str| {
            self.manifest.range(name).ok_or_else(|| (format!("tokens.{name}"), "is missing".to_owned()))
        };
        let steps = match self.manifest.protocol.position_rule {
            PositionRule::GroundedSteps => Some(StepTokens { gap: range("gap")?, down: range("down")? }),
            PositionRule::GroundedWords | PositionRule::Sequential | PositionRule::Mrope => None,
        };
        Ok(GroundedTokens {
            unknown: self.named("unknown")?,
            space: self.named("space")?,
            end: self.named("end")?,
            cell: self.named("cell")?,
            row: self.named("row")?,
            x: range("x")?,
            y: range("y")?,
            pitch: range("pitch")?,
            steps,
        })
    }
}

impl Protocol for Grammar {
    fn trunk_prompt(&self) -> Vec<TokenId> {
        self.trunk_prompt.clone()
    }

    fn is_trunk_end(&self, token: TokenId) -> bool {
        self.trunk_end.contains(&token)
    }

    fn is_branch_end(&self, token: TokenId) -> bool {
        self.branch_end.contains(&token)
    }

    fn is_fork(&self, token: TokenId) -> bool {
        token == self.fork
    }

    fn child_token(&self) -> TokenId {
        self.child
    }

    fn fork_visible(&self) -> bool {
        self.fork_visible
    }

    /// Order 0 is the visual tokens' with the grounded rules, so that the trunk starts at 1. With `sequential` orders count
    /// from 0 after the prefill's own positions.
    fn trunk_start(&self) -> PositionState {
        let order = match self.rule {
            PositionRule::GroundedWords | PositionRule::GroundedSteps => 1.0,
            PositionRule::Sequential | PositionRule::Mrope => 0.0,
        };
        PositionState { order, ..PositionState::default() }
    }

    /// A child takes the order of its fork (the next one where it sees the fork) and starts at its region's top left corner.
    fn branch_start(&self, trunk: &[TokenId], fork_index: usize) -> PositionState {
        let start = self.trunk_start();
        let order = start.order + fork_index as f32 + if self.fork_visible { 1.0 } else { 0.0 };
        let corner = |back: usize, wanted: Axis| {
            let token = fork_index.checked_sub(back).and_then(|i| trunk.get(i));
            match token.and_then(|&t| self.coordinate(t)) {
                Some((axis, value)) if axis == wanted => value,
                _ => 0.0,
            }
        };
        let (x, y) = (corner(BOX_TOKENS, Axis::X), corner(BOX_TOKENS - 1, Axis::Y));
        self.branch_at(x, y, order)
    }

    fn feed(&self, state: PositionState, token: TokenId) -> (Position, PositionState) {
        let next = moved(state, self.rule, self.coordinate(token), self.advance(token));
        let after = PositionState { order: state.order + 1.0, ..next };
        if !self.rule.is_grounded() {
            return ([state.order; 3], after);
        }
        ([state.order, next.y, next_center(&next)], after)
    }

    fn class(&self, token: TokenId) -> TokenClass {
        if self.axis(token).is_some() {
            return TokenClass::Coordinate;
        }
        let is_block = self.blocks.as_ref().is_some_and(|blocks| blocks.marker == token);
        if is_block || self.token_kind(token).is_some() {
            return TokenClass::Kind;
        }
        let structure = self.grounded.as_ref().is_some_and(|g| token == g.cell || token == g.row);
        let marker = token == self.fork || token == self.child;
        if structure || marker || self.is_trunk_end(token) || self.is_branch_end(token) {
            return TokenClass::Structure;
        }
        TokenClass::Text
    }

    fn coordinate_distance(&self, a: TokenId, b: TokenId) -> Option<u32> {
        let ((axis_a, _), (axis_b, _)) = (self.axis(a)?, self.axis(b)?);
        if axis_a != axis_b {
            return None;
        }
        u32::try_from(a.abs_diff(b)).ok()
    }

    /// Empty rows and cells of tables repeat.
    fn may_repeat(&self, token: TokenId) -> bool {
        let structure = self.grounded.as_ref().is_some_and(|g| token == g.cell || token == g.row);
        structure || self.table_tokens.binary_search(&token).is_ok()
    }

    fn region_box(&self, tokens: &[TokenId]) -> Option<Rect> {
        if self.blocks.is_some() {
            return self.block_head(tokens).map(|head| head.bbox);
        }
        let start = tokens.iter().position(|&t| self.token_kind(t).is_some())?;
        let sides = tokens.get(start + 1..start + 1 + BOX_TOKENS)?;
        let mut numbers = [0.0; BOX_TOKENS];
        for (side, &token) in sides.iter().enumerate() {
            let (axis, value) = self.coordinate(token)?;
            if axis != [Axis::X, Axis::Y][side % 2] {
                return None;
            }
            numbers[side] = value;
        }
        let [x0, y0, x1, y1] = numbers;
        Some(Rect::new(x0.min(x1), y0.min(y1), x0.max(x1), y0.max(y1)))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::graphs::manifest::tests as manifest_tests;
    use crate::tokens::vocabulary::tests as vocabulary_tests;

    pub(crate) fn tiny() -> Grammar {
        let manifest = manifest_tests::parse(&manifest_tests::tiny()).unwrap();
        Grammar::new(&manifest, vocabulary_tests::tiny()).unwrap()
    }

    pub(crate) fn steps_fixture() -> serde_json::Value {
        serde_json::from_str(include_str!("../../fixtures/reference/steps.json")).unwrap()
    }

    /// The tiny grammar with the rule `grounded-steps` and the tokens of its fixture.
    pub(crate) fn stepping() -> Grammar {
        let (mut value, fixture) = (manifest_tests::tiny(), steps_fixture());
        value["dims"]["vocabulary"] = fixture["vocabulary"].clone();
        value["tokens"] = fixture["tokens"].clone();
        for entry in value["protocol"]["kinds"].as_array_mut().unwrap() {
            entry["id"] = fixture["kinds"][entry["kind"].as_str().unwrap()].clone();
        }
        value["protocol"]["position_rule"] = "grounded-steps".into();
        value["protocol"]["content"]["default"] = "grounded-steps".into();
        value["protocol"]["advance"] = fixture["advance"].clone();
        Grammar::new(&manifest_tests::parse(&value).unwrap(), vocabulary_tests::tiny()).unwrap()
    }

    fn ids(grammar: &Grammar, text: &str) -> Vec<TokenId> {
        text.chars().map(|c| grammar.vocabulary.char_token(c).unwrap()).collect()
    }

    #[test]
    fn tokens_have_their_meaning() {
        let g = tiny();
        assert_eq!(g.trunk_prompt(), [105]);
        assert!(g.is_trunk_end(102) && g.is_branch_end(102) && g.is_fork(104) && !g.is_fork(103));
        assert_eq!(g.child_token(), 103);
        assert!(!g.fork_visible());
        let classes = [130, 450, 770, 110, 104, 106, 102, 0].map(|t| g.class(t));
        use TokenClass::{Coordinate, Kind as KindClass, Structure, Text};
        assert_eq!(
            classes,
            [Coordinate, Coordinate, Coordinate, KindClass, Structure, Structure, Structure, Text]
        );
        assert_eq!(g.coordinate_distance(131, 140), Some(9));
        assert_eq!(g.coordinate_distance(131, 451), None);
        assert!(g.may_repeat(106) && !g.may_repeat(0));
        assert_eq!(g.kind_token(Kind::Reference), Some(110));
        assert_eq!(g.token_kind(110), Some(Kind::Text));
        assert!(g.kind_forks(Kind::Other) && !g.kind_forks(Kind::Chart));
    }

    #[test]
    fn trunk_positions_follow_the_last_coordinates_seen() {
        let g = tiny();
        // BOS, text, x0 = 60, y0 = 120, x1 = 300, y1 = 180, FORK, END; by hand from lab/nano/data.py.
        let trunk = [105, 110, 130 + 10, 450 + 20, 130 + 50, 450 + 30, 104, 102];
        let mut state = g.trunk_start();
        let mut positions = Vec::new();
        for token in trunk {
            let (position, next) = g.feed(state, token);
            positions.push(position);
            state = next;
        }
        let expected = [
            [1.0, 0.0, 0.0],
            [2.0, 0.0, 0.0],
            [3.0, 0.0, 60.0],
            [4.0, 120.0, 60.0],
            [5.0, 120.0, 300.0],
            [6.0, 180.0, 300.0],
            [7.0, 180.0, 300.0],
            [8.0, 180.0, 300.0],
        ];
        assert_eq!(positions, expected);
    }

    #[test]
    fn branch_positions_follow_line_word_and_pitch() {
        let g = tiny();
        let trunk = [105, 110, 130 + 10, 450 + 20, 130 + 50, 450 + 30, 104];
        let mut state = g.branch_start(&trunk, 6);
        assert_eq!((state.order, state.y, state.x), (7.0, 120.0, 60.0));
        // CHILD [y 126] [pitch 5] [x 66] a b [x 90] c [y 138] [pitch 0] d; by hand from lab/nano/data.py.
        let mut branch = vec![103, 450 + 21, 770 + 20, 130 + 11];
        branch.extend(ids(&g, "ab"));
        branch.push(130 + 15);
        branch.extend(ids(&g, "c"));
        branch.extend([450 + 23, 770]);
        branch.extend(ids(&g, "d"));
        let mut positions = Vec::new();
        for token in branch {
            let (position, next) = g.feed(state, token);
            positions.push(position);
            state = next;
        }
        let expected = [
            [7.0, 120.0, 60.0],
            [8.0, 126.0, 60.0],
            [9.0, 126.0, 60.0 + 0.5 * 5.0],
            [10.0, 126.0, 66.0 + 0.5 * 5.0],
            [11.0, 126.0, 66.0 + 1.5 * 5.0],
            [12.0, 126.0, 66.0 + 2.5 * 5.0],
            [13.0, 126.0, 90.0 + 0.5 * 5.0],
            [14.0, 126.0, 90.0 + 1.5 * 5.0],
            [15.0, 138.0, 90.0],
            [16.0, 138.0, 90.0],
            [17.0, 138.0, 90.0],
        ];
        assert_eq!(positions, expected);
    }

    #[test]
    fn a_fork_without_a_box_starts_at_the_page_corner() {
        let g = tiny();
        let state = g.branch_start(&[105, 104], 1);
        assert_eq!((state.order, state.y, state.x), (2.0, 0.0, 0.0));
        // y where x should stand is not taken for x
        let state = g.branch_start(&[105, 110, 450, 450 + 20, 130, 450, 104], 6);
        assert_eq!((state.y, state.x), (120.0, 0.0));
    }

    #[test]
    fn sequential_positions_count_and_a_visible_fork_takes_a_place() {
        let mut value = manifest_tests::tiny();
        value["protocol"]["position_rule"] = "sequential".into();
        value["protocol"]["content"]["default"] = "markdown".into();
        value["protocol"]["content"]["table"] = "html".into();
        value["protocol"]["fork_visible"] = true.into();
        value["tokens"]["fork"] = "<fork>".into();
        let g = Grammar::new(&manifest_tests::parse(&value).unwrap(), vocabulary_tests::tiny()).unwrap();
        assert!(g.is_fork(104));
        let state = g.branch_start(&[105, 0, 104], 2);
        let (position, next) = g.feed(state, 103);
        assert_eq!((position[0], next.order), (3.0, 4.0));
        assert_eq!(g.content_format(Kind::Table), ContentFormat::Html);
        assert_eq!(g.content_format(Kind::Reference), ContentFormat::Markdown);
    }

    #[test]
    fn a_name_that_the_tokenizer_lacks_is_an_error_with_its_field() {
        let mut value = manifest_tests::tiny();
        value["tokens"]["row"] = "<row>".into();
        let manifest = manifest_tests::parse(&value).unwrap();
        let (field, message) = Grammar::new(&manifest, vocabulary_tests::tiny()).unwrap_err();
        assert_eq!(field, "tokens.row");
        assert!(message.contains("`<row>`"), "{message}");
    }
}
