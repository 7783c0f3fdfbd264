//! Medians, spreads and ratios of repeated measurements.

use serde::Serialize;

/// The middle of `values`; 0 of none.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which a share of `values` lies, between neighbours linearly; 0 of none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = share.clamp(0.0, 1.0) * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    match (sorted.get(below), sorted.get(above)) {
        (Some(&low), Some(&high)) => low + (high - low) * (place - below as f64),
        _ => 0.0,
    }
}

/// Median, least and largest of a figure over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Figure {
    pub fn of(values: &[f64]) -> Figure {
        Figure { median: median(values), least: quantile(values, 0.0), most: quantile(values, 1.0) }
    }
}

/// Which way a ratio is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Higher,
    Lower,
}

/// A ratio of two figures that were measured side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// Median over the repetitions.
    pub value: f64,
    pub numerator: String,
    pub denominator: String,
    pub better: Better,
    pub repetitions: usize,
    /// Least and largest over the repetitions.
    pub spread: [f64; 2],
    /// Drafts of the multi-token head, where it is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<usize>,
}

impl Ratio {
    /// Of the pairs of one repetition each; `None` without pairs or where a denominator is 0.
    pub fn of(
        numerators: &[f64],
        denominators: &[f64],
        (numerator, denominator): (&str, &str),
        better: Better,
    ) -> Option<Ratio> {
        let ratios: Vec<f64> = numerators.iter().zip(denominators).map(|(n, d)| n / d).collect();
        if ratios.is_empty() || !ratios.iter().all(|ratio| ratio.is_finite()) {
            return None;
        }
        let Figure { median, least, most } = Figure::of(&ratios);
        Some(Ratio {
            value: median,
            numerator: numerator.into(),
            denominator: denominator.into(),
            better,
            repetitions: ratios.len(),
            spread: [least, most],
            k: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(quantile(&[0.0, 10.0, 20.0], 0.95), 19.0);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn a_ratio_pairs_what_ran_in_the_same_repetition() {
        let ratio = Ratio::of(&[2.0, 30.0, 4.0], &[1.0, 10.0, 1.0], ("a", "b"), Better::Higher).unwrap();
        assert_eq!((ratio.value, ratio.spread, ratio.repetitions), (3.0, [2.0, 4.0], 3));
        assert_eq!(Ratio::of(&[1.0], &[0.0], ("a", "b"), Better::Lower), None);
        assert_eq!(Ratio::of(&[], &[], ("a", "b"), Better::Lower), None);
    }
}
