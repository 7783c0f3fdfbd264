//! The published families' packs with random weights against `transformers` with the same checkpoint.
//! (`scripts/reference/published` makes both.)

use std::collections::BTreeMap;
use std::path::PathBuf;

use ort::memory::AllocationDevice;
use serde::Deserialize;

use super::super::DecodeGraph;
use crate::decode::fixation::FixationSettings;
use crate::decode::protocol::{DraftToken, KeptToken, Protocol, TrustThreshold, TrustThresholds};
use crate::decode::retention::{RetentionSettings, propagated};
use crate::decode::{
    AcceptanceRule, GuessSettings, Guesser, LoopSettings, PageDecoding, PageDrafts, decode_page,
};
use crate::graphs::manifest::{PixelRule, Preprocessing};
use crate::graphs::onnx::{MultiTokenHead, Propagation};
use crate::graphs::pack::Pack;
use crate::graphs::{Prefix, TokenId};
use crate::page::Source;
use crate::vision::picture::tests::{largest_difference, reference_page};
use crate::vision::picture::{Picture, Planes, picture};
use crate::vision::prompt::{PromptTokens, Prompter};

/// Logits nearer than this are a tie: either may win.
const TIE: f32 = 1e-4;

#[derive(Deserialize)]
struct Expected {
    width: usize,
    height: usize,
    prompt: Vec<TokenId>,
    features: Vec<f32>,
    /// Last hidden state of the prompt.
    hidden: Vec<f32>,
    greedy: Written,
    mtp: Option<HeadExpected>,
    branches: Option<Branches>,
}

/// What `generate` adds to a prompt, the gaps between its best two logits, its log-probabilities.
#[derive(Deserialize)]
struct Written {
    tokens: Vec<TokenId>,
    gaps: Vec<f32>,
    logprobs: Vec<f32>,
}

/// What the multi-token head drafts after the first written token.
#[derive(Deserialize)]
struct HeadExpected {
    token: TokenId,
    drafts: Vec<TokenId>,
    probabilities: Vec<f32>,
}

#[derive(Deserialize)]
struct Branches {
    trunk: Vec<TokenId>,
    written: Vec<Branch>,
}

#[derive(Deserialize)]
struct Branch {
    fork: usize,
    #[serde(flatten)]
    written: Written,
}

/// A pack, its reference, and the page as the pack reads it.
struct Family {
    pack: Pack,
    expected: Expected,
    picture: Picture,
    prompt: PromptTokens,
    pixels: Vec<u8>,
}

fn family(name: &str) -> Family {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/packs").join(name);
    let pack = Pack::load(&folder).unwrap();
    let expected: Expected =
        serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let raster = reference_page(expected.width, expected.height);
    let picture = picture(&raster, &pack.manifest.preprocessing).unwrap();
    let (grammar, manifest) = (&pack.grammar, &pack.manifest);
    let prompter = Prompter::new(
        manifest.prompt.as_ref().unwrap(),
        &grammar.vocabulary,
        &grammar.trunk_prompt(),
        manifest.protocol.position_rule,
        manifest.dims.position_parts,
    );
    let prompt = prompter.unwrap().prompt(picture.layout, &grammar.vocabulary).unwrap();
    Family { pack, expected, picture, prompt, pixels: std::fs::read(folder.join("pixels.bin")).unwrap() }
}

impl Family {
    fn rule(&self) -> &PixelRule {
        match &self.pack.manifest.preprocessing {
            Preprocessing::AspectTiles(rule) => &rule.pixels,
            Preprocessing::CappedTiles(rule) => &rule.pixels,
            Preprocessing::NativeGrid(rule) => &rule.pixels,
            Preprocessing::FixedGrid(_) => panic!("a picture"),
        }
    }

    /// The numbers that the vision graph reads, and how many belong to one channel of one tile or patch.
    fn planes(&self) -> (&[f32], usize) {
        match &self.picture.planes {
            Planes::Tiles(tiles) => (&tiles.values, tiles.side * tiles.side),
            Planes::Patches(patches) => (&patches.values, patches.side * patches.side),
        }
    }

    /// The picture is the reference processor's, the features and the prompt are the reference model's; the prefix then.
    fn prefix(&self) -> Prefix {
        self.prefix_after(&|_, _| None)
    }

    fn prefix_after(&self, propagation: Propagation<'_>) -> Prefix {
        let (planes, channel) = self.planes();
        let difference = largest_difference(planes, channel, self.rule(), &self.pixels);
        assert!(difference <= 1.01, "pixels differ by {difference} of 255");
        let trunk_prompt = self.pack.grammar.trunk_prompt();
        assert_eq!([self.prompt.tokens.as_slice(), &trunk_prompt].concat(), self.expected.prompt);
        let features = self.pack.picture_graph(1).unwrap().run(&self.reference_picture()).unwrap();
        assert_eq!(features.values.len(), self.expected.features.len());
        let far = features.values.iter().zip(&self.expected.features).map(|(a, b)| (a - b).abs());
        let far = far.fold(0.0, f32::max);
        assert!(far <= 1e-4, "features differ by {far}");
        self.pack.prompt_graph(1).unwrap().run(&self.prompt, &features, propagation).unwrap()
    }

    /// The page with the reference's own pixels: what follows is compared to 1e-4, a step of 1/255 is more than that.
    fn reference_picture(&self) -> Picture {
        let (rule, channel) = (self.rule(), self.planes().1);
        let number = |(at, &pixel): (usize, &u8)| {
            let c = at / channel % 3;
            (f32::from(pixel) / 255.0 - rule.mean[c]) / rule.std[c]
        };
        let values: Vec<f32> = self.pixels.iter().enumerate().map(number).collect();
        let mut picture = self.picture.clone();
        match &mut picture.planes {
            Planes::Tiles(tiles) => tiles.values = values,
            Planes::Patches(patches) => patches.values = values,
        }
        picture
    }

    /// The same on a graph that keeps a copy of the prefix, as on a device. The copy lies in the CPU's memory: that a device's is
    /// used alike was not tested.
    fn decode_with_copy(&self, prefix: Prefix, settings: &LoopSettings) -> PageDecoding {
        let mut graph = self.pack.decode_graph(1).unwrap();
        graph.place = Some((AllocationDevice::CPU, 0));
        let drafts = PageDrafts::default();
        let decoding = decode_page(&mut graph, &*self.pack.grammar, prefix, drafts, settings).unwrap();
        assert!(graph.resident.is_some());
        graph.begin_page();
        assert!(graph.resident.is_none());
        decoding
    }

    fn decode(&self, prefix: Prefix, drafts: PageDrafts, settings: &LoopSettings) -> PageDecoding {
        let mut graph = self.pack.decode_graph(1).unwrap();
        decode_page(&mut graph, &*self.pack.grammar, prefix, drafts, settings).unwrap()
    }
}

/// The tokens are the reference's, up to the first tie; their probabilities too. Tells how many were compared.
fn assert_written(kept: &[KeptToken], written: &Written, what: &str) -> usize {
    let ties = written.gaps.iter().position(|&gap| gap < TIE).unwrap_or(written.tokens.len());
    let ids: Vec<TokenId> = kept.iter().map(|t| t.id).take(ties).collect();
    assert_eq!(ids, written.tokens[..ties.min(written.tokens.len())], "{what}");
    for (token, logprob) in kept.iter().zip(&written.logprobs).take(ties) {
        let difference = (token.probability.ln() - logprob).abs();
        assert!(difference <= 2e-4, "{what}: log-probabilities differ by {difference}");
    }
    ties
}

fn writes_what_the_reference_writes(name: &str) {
    let family = family(name);
    let settings = without_branches();
    let decoding = family.decode(family.prefix(), PageDrafts::default(), &settings);
    let copied = family.decode_with_copy(family.prefix(), &settings);
    assert_eq!(copied.trunk, decoding.trunk, "a copy of the prefix changes nothing");
    let prompt = family.pack.grammar.trunk_prompt().len();
    let compared = assert_written(&decoding.trunk[prompt..], &family.expected.greedy, name);
    assert!(compared >= 32, "{name}: only {compared} tokens before a tie");
}

#[test]
fn the_tiles_of_hpd_give_the_tokens_of_transformers() {
    writes_what_the_reference_writes("hpd");
}

#[test]
fn the_patches_of_qwen2_5_vl_give_the_tokens_of_transformers() {
    writes_what_the_reference_writes("olmocr");
}

#[test]
fn the_tiles_of_idefics3_give_the_tokens_of_transformers() {
    writes_what_the_reference_writes("doctags");
}

#[test]
fn the_patches_and_deep_features_of_padoc_give_the_tokens_of_transformers() {
    writes_what_the_reference_writes("padoc");
}

#[test]
fn the_multi_token_head_drafts_what_the_reference_drafts_and_changes_no_token() {
    let family = family("hpd");
    let expected = family.expected.mtp.as_ref().unwrap();
    let name = family.pack.manifest.graphs.mtp.as_ref().unwrap();
    let dims = family.pack.manifest.dims.into();
    let mut head = MultiTokenHead::load(&family.pack.dir.join(name), dims, 1).unwrap();
    let drafted = head.run(&family.expected.hidden, &[expected.token]).unwrap();
    assert_eq!(drafted.ids, expected.drafts);
    for (own, reference) in drafted.probabilities.iter().zip(&expected.probabilities) {
        assert!((own - reference).abs() <= 1e-4, "{own} {reference}");
    }
    let guesses = GuessSettings { head: true, ngram: true };
    let settings = LoopSettings { guesses, ..without_branches() };
    let decoding = family.decode(family.prefix(), PageDrafts::default(), &settings);
    let prompt = family.pack.grammar.trunk_prompt().len();
    assert_written(&decoding.trunk[prompt..], &family.expected.greedy, "with a head");
    let asked = decoding.stats.guesses.get(&Guesser::Head).map_or(0, |count| count.proposed);
    assert!(asked > 0, "the head was never asked");
}

fn sees_the_same_page_through_two_prefill_graphs(name: &str) {
    let family = family(name);
    let (whole, text) = (family.prefix(), family.pack.manifest.extras.prefix_text);
    let at = |rate: f32| family.prefix_after(&|saliency, len| propagated(saliency, len, rate, text));
    assert_eq!(at(1.0), whole, "{name}: rate 1 is off");
    let all = family.prefix_after(&|_, len| Some((0..len as u32).collect()));
    assert_eq!((&all.keys, &all.values), (&whole.keys, &whole.values), "{name}: all positions by choice");
    let half = at(0.5);
    let first = family.pack.manifest.extras.tsp_layer.unwrap() + 1;
    assert_eq!(half.kept(first - 1), None);
    let kept = half.kept(first).unwrap();
    assert_eq!(kept.len(), (whole.len - text).div_ceil(2) + text, "{name}");
    assert_eq!(kept[kept.len() - text..], ((whole.len - text) as u32..whole.len as u32).collect::<Vec<_>>());
    assert_eq!(half.keys[..first], whole.keys[..first], "{name}: the lower layers hold everything");
    let decoding = family.decode(half, PageDrafts::default(), &without_branches());
    assert!(decoding.trunk.len() > 1, "{name}: nothing was written");
}

#[test]
fn token_selective_propagation_works_with_published_packs() {
    for name in ["hpd", "olmocr", "doctags"] {
        sees_the_same_page_through_two_prefill_graphs(name);
    }
}

fn without_branches() -> LoopSettings {
    LoopSettings { max_trunk_tokens: 64, max_branches: 0, ..LoopSettings::default() }
}

/// Fixation on everything changes no token; on less, a step reads less of the page.
fn looks_at_less_with_fixation(name: &str) {
    let family = family(name);
    let text_tail = family.pack.manifest.extras.prefix_text;
    let fixation = |tau, max_share| {
        let settings = FixationSettings { text_tail, max_share, ..FixationSettings::new(tau) };
        LoopSettings { fixation: Some(settings), ..without_branches() }
    };
    let run = |settings: &LoopSettings| family.decode(family.prefix(), PageDrafts::default(), settings);
    let whole = run(&without_branches());
    let read = |decoding: &PageDecoding| decoding.stats.prefix_read / decoding.stats.calls as f64;
    let ids = |decoding: &PageDecoding| decoding.trunk.iter().map(|token| token.id).collect::<Vec<_>>();
    assert_eq!(ids(&run(&fixation(1.0, 1.0))), ids(&whole), "{name}: fixation on everything");
    let less = run(&fixation(0.1, 1.0));
    assert!(less.trunk.len() > 8 && read(&less) < 0.9 * read(&whole), "{name}: {}", read(&less));
}

#[test]
fn fixation_works_with_published_packs() {
    for name in ["hpd", "olmocr", "doctags", "padoc"] {
        looks_at_less_with_fixation(name);
    }
}

#[test]
fn branches_write_what_the_reference_writes_after_the_prompt_and_the_trunk_before_their_fork() {
    branches_write_what_the_reference_writes("hpd");
}

#[test]
fn branches_that_see_their_fork_write_what_the_reference_writes_after_it() {
    branches_write_what_the_reference_writes("padoc");
}

/// The trunk is drafted and trusted; the branches are written by the model alone. With retention at rate 1 they write the same, below
/// it they read less of the page.
fn branches_write_what_the_reference_writes(name: &str) {
    let family = family(name);
    let text_tail = family.pack.manifest.extras.prefix_text;
    let retention = |rate| RetentionSettings { text_tail, max_share: 1.0, ..RetentionSettings::new(rate) };
    let whole = branches_written(&family, None, name);
    branches_written(&family, Some(retention(1.0)), &format!("{name}, retention 1"));
    let decoding = decode_branches(&family, Some(retention(0.05)));
    let read = |decoding: &PageDecoding| decoding.stats.prefix_read / decoding.stats.calls as f64;
    assert!(read(&decoding) < 0.9 * read(&whole), "{} {}", read(&decoding), read(&whole));
}

fn decode_branches(family: &Family, retention: Option<RetentionSettings>) -> PageDecoding {
    let branches = family.expected.branches.as_ref().unwrap();
    let draft = |(at, &id): (usize, &TokenId)| DraftToken {
        id,
        confidence: 1.0,
        source: Source::Layout,
        origin: at as u32,
    };
    let trunk = branches.trunk.iter().enumerate().map(draft).collect();
    let always = TrustThreshold {
        own_confidence: 0.0,
        model_probability: 2.0,
        override_probability: 0.0,
        coordinate_bins: 0,
    };
    let settings = LoopSettings {
        acceptance: AcceptanceRule::Trust(TrustThresholds::new(|_, _| always)),
        max_tokens: 64,
        retention,
        ..LoopSettings::default()
    };
    let drafts = PageDrafts { trunk, content: BTreeMap::new(), ..PageDrafts::default() };
    family.decode(family.prefix(), drafts, &settings)
}

fn branches_written(family: &Family, retention: Option<RetentionSettings>, name: &str) -> PageDecoding {
    let branches = family.expected.branches.as_ref().unwrap();
    let decoding = decode_branches(family, retention);
    assert_eq!(decoding.branches.len(), branches.written.len());
    assert!(decoding.stats.steps < 70, "branches run side by side: {} steps", decoding.stats.steps);
    let prompt = family.pack.grammar.trunk_prompt().len();
    for (branch, expected) in decoding.branches.iter().zip(&branches.written) {
        assert_eq!(branch.fork_index, expected.fork + prompt);
        let what = format!("{name}: the branch of the fork at {}", expected.fork);
        assert!(assert_written(&branch.tokens, &expected.written, &what) >= 32, "{what}: a tie");
    }
    decoding
}
