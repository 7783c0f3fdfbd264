//! Where on the page a stream looks: which prefix positions its next token attends to. Pure.
//!
//! After FastOCR (arXiv 2605.17447): a few *focal* layers attend to the whole prefix and choose the share `tau` of it that the
//! other layers read; text is always read. Here the choice is made between calls, so every other layer reads what a focal
//! layer chose in the step before: what the paper's cross-step reuse (CSFR) does for the layers before the first focal one.
//! A stream's first steps attend to everything; on the first steps of a page the focal layers are found.

use crate::graphs::Prefix;

/// How streams fixate.
#[derive(Clone, Debug, PartialEq)]
pub struct FixationSettings {
    /// Share of the visual tokens that the other layers read, 0..1; 1 is off.
    pub tau: f32,
    /// Steps of a page that find the focal layers. The paper's number is not published; 4 settles the order of nano's layers.
    pub warm_up: usize,
    /// Focal layers, ascending; `None`: the `FOCAL_LAYERS` of the graph's that look at the page most.
    pub focal_layers: Option<Vec<usize>>,
    /// Rows of a call read one set, the union of theirs; if that is more than this share of the prefix, they read all of it.
    pub max_share: f32,
    /// Last positions of the prefix that are text.
    pub text_tail: usize,
}

/// Focal layers that are chosen, if the graph has more.
const FOCAL_LAYERS: usize = 2;

impl FixationSettings {
    pub fn new(tau: f32) -> FixationSettings {
        // Sets change every step. Gathering 5 / 10 / 20 / 50 % of 2,200 positions for 6 layers of 5 heads of 64 took 0.4 / 1.0 /
        // 2.0 / 20 ms at least, where a step of 16 rows that reads everything takes 17 (native-stack.md 2.5): beyond a quarter
        // the copy costs what the call gains.
        FixationSettings { tau, warm_up: 4, focal_layers: None, max_share: 0.25, text_tail: 0 }
    }
}

/// The positions that the share `tau` of the visual tokens with the highest scores have, and those of the text behind them,
/// ascending. At least one visual token; of equal scores the first.
pub fn select(scores: &[f32], tau: f32, text_tail: usize) -> Vec<u32> {
    let visual = scores.len().saturating_sub(text_tail);
    let wanted = ((tau * visual as f32).ceil() as usize).clamp(visual.min(1), visual);
    let mut order: Vec<u32> = (0..visual as u32).collect();
    let by_score =
        |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then_with(|| a.cmp(b));
    if wanted < visual {
        order.select_nth_unstable_by(wanted, by_score);
        order.truncate(wanted);
        order.sort_unstable();
    }
    order.extend(visual as u32..scores.len() as u32);
    order
}

/// Indices into `candidates` of the focal layers: those that are `given`, or those with the largest image attention.
pub fn choose_focal(candidates: &[usize], image_attention: &[f64], given: Option<&[usize]>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    match given {
        Some(given) => order.retain(|&index| given.contains(&candidates[index])),
        None => {
            let of = |index: usize| image_attention.get(candidates[index]).copied().unwrap_or(0.0);
            order.sort_by(|&a, &b| of(b).total_cmp(&of(a)).then(a.cmp(&b)));
            order.truncate(FOCAL_LAYERS);
        }
    }
    order.sort_by_key(|&index| candidates[index]);
    order
}

/// For each layer the index of the focal layer whose choice it reads; `None` for focal layers, which read everything. Layers
/// before the first focal one read the choice of the deepest.
pub fn governing(layers: usize, focal: &[usize]) -> Vec<Option<usize>> {
    let Some(deepest) = focal.len().checked_sub(1) else { return vec![None; layers] };
    let of = |layer: usize| match focal.iter().rposition(|&f| f <= layer) {
        Some(index) if focal[index] == layer => None,
        Some(index) => Some(index),
        None => Some(deepest),
    };
    (0..layers).map(of).collect()
}

/// The focal layers of a page: being found, then known.
#[derive(Clone, Debug)]
pub(super) struct PageFixation {
    settings: FixationSettings,
    /// Layers of which the graph returns scores.
    candidates: Vec<usize>,
    /// By layer, over the warm-up.
    image_attention: Vec<f64>,
    steps: usize,
    /// Indices into `candidates` once they are known.
    focal: Option<Vec<usize>>,
}

impl PageFixation {
    /// `None` where there is nothing to choose.
    pub(super) fn new(settings: &FixationSettings, candidates: &[usize]) -> Option<PageFixation> {
        (settings.tau < 1.0 && !candidates.is_empty()).then(|| PageFixation {
            settings: settings.clone(),
            candidates: candidates.to_vec(),
            image_attention: Vec::new(),
            steps: 0,
            focal: None,
        })
    }

    pub(super) fn max_share(&self) -> f32 {
        self.settings.max_share
    }

    pub(super) fn is_known(&self) -> bool {
        self.focal.is_some()
    }

    /// Takes the image attention of the first `streams` rows of a call, `[layers, rows]`; the others are fillers. Once the
    /// warm-up is over: which layer follows which focal layer.
    pub(super) fn profile(
        &mut self,
        image_attention: &[f32],
        layers: usize,
        rows: usize,
        streams: usize,
    ) -> Option<Vec<Option<usize>>> {
        if self.is_known() {
            return None;
        }
        self.image_attention.resize(layers, 0.0);
        for (sum, of_layer) in self.image_attention.iter_mut().zip(image_attention.chunks_exact(rows.max(1)))
        {
            let shares = of_layer.iter().take(streams).map(|&share| f64::from(share));
            *sum += shares.sum::<f64>() / streams.max(1) as f64;
        }
        self.steps += 1;
        if self.steps < self.settings.warm_up {
            return None;
        }
        let given = self.settings.focal_layers.as_deref();
        let focal = choose_focal(&self.candidates, &self.image_attention, given);
        let of_layers: Vec<usize> = focal.iter().map(|&index| self.candidates[index]).collect();
        self.focal = Some(focal);
        Some(governing(layers, &of_layers))
    }

    /// What `row` looks at after a call with these focal scores, by candidate `[rows, prefix of the layer]`: positions of the page
    /// for each focal layer.
    pub(super) fn sets(
        &self,
        focal_scores: &[Vec<f32>],
        row: usize,
        rows: usize,
        prefix: &Prefix,
    ) -> Option<Vec<Vec<u32>>> {
        let focal = self.focal.as_ref().filter(|focal| !focal.is_empty())?;
        let set = |&index: &usize| {
            let of_layer = focal_scores.get(index)?;
            let len = of_layer.len() / rows.max(1);
            let chosen =
                select(of_layer.get(row * len..(row + 1) * len)?, self.settings.tau, self.settings.text_tail);
            Some(match prefix.kept(self.candidates[index]) {
                Some(kept) => chosen.iter().filter_map(|&row| kept.get(row as usize).copied()).collect(),
                None => chosen,
            })
        };
        focal.iter().map(set).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn the_best_share_and_all_text_are_selected() {
        let scores = [0.1, 0.4, 0.2, 0.4, 0.0, 0.05];
        assert_eq!(select(&scores, 0.5, 0), [1, 2, 3]);
        assert_eq!(select(&scores, 0.2, 0), [1, 3]);
        assert_eq!(select(&scores, 0.5, 2), [1, 3, 4, 5], "text does not count among the visual tokens");
        assert_eq!(select(&scores, 1.0, 0), [0, 1, 2, 3, 4, 5]);
        assert_eq!(select(&scores, 0.0, 1), [1, 5], "one visual token at least");
        assert_eq!(select(&[], 0.5, 0), [0u32; 0]);
        assert_eq!(select(&[f32::NAN, 1.0], 0.1, 9), [0, 1]);
    }

    #[test]
    fn layers_follow_the_focal_layer_before_them() {
        assert_eq!(governing(6, &[2, 4]), [Some(1), Some(1), None, Some(0), None, Some(1)]);
        assert_eq!(governing(2, &[0]), [None, Some(0)]);
        assert_eq!(governing(2, &[]), [None, None]);
    }

    #[test]
    fn focal_layers_are_those_that_look_at_the_page_most() {
        assert_eq!(choose_focal(&[1, 2, 4], &[9.0, 0.2, 0.5, 9.0, 0.6], None), [1, 2]);
        assert_eq!(choose_focal(&[1, 2, 4], &[], Some(&[4, 0])), [2]);
    }

    #[derive(Deserialize)]
    struct Reference {
        candidates: Vec<usize>,
        layers: usize,
        image_attention: Vec<f64>,
        focal: Vec<usize>,
        governing: Vec<Option<usize>>,
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        scores: Vec<f32>,
        tau: f32,
        text_tail: usize,
        selected: Vec<u32>,
    }

    /// `scripts/reference/fixation.py` states the rules in numpy.
    #[test]
    fn the_numpy_reference_selects_the_same() {
        let text = include_str!("../../fixtures/reference/fixation.json");
        let reference: Reference = serde_json::from_str(text).unwrap();
        let focal = choose_focal(&reference.candidates, &reference.image_attention, None);
        let layers: Vec<usize> = focal.iter().map(|&index| reference.candidates[index]).collect();
        assert_eq!(layers, reference.focal);
        assert_eq!(governing(reference.layers, &layers), reference.governing);
        assert!(reference.cases.len() > 20);
        for case in reference.cases {
            assert_eq!(select(&case.scores, case.tau, case.text_tail), case.selected);
        }
    }
}
