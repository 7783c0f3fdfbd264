//! The manifest's acceptance table: when a draft stands, per kind of token and per drafter.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::decode::protocol::{TokenClass, TrustThreshold, TrustThresholds};
use crate::page::Source;
use crate::settings::Acceptance;

/// When drafts stand.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptanceTable {
    mode: AcceptanceMode,
    pub(super) default: ThresholdRow,
    #[serde(default)]
    pub(super) classes: BTreeMap<ClassName, BTreeMap<String, ThresholdRow>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AcceptanceMode {
    Lossless,
    Trust,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ClassName {
    Text,
    Coordinate,
    Kind,
    Structure,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThresholdRow {
    pub(super) own_confidence: f32,
    pub(super) model_probability: f32,
    pub(super) override_probability: f32,
    #[serde(default)]
    coordinate_bins: u32,
}

impl From<ThresholdRow> for TrustThreshold {
    fn from(row: ThresholdRow) -> Self {
        TrustThreshold {
            own_confidence: row.own_confidence,
            model_probability: row.model_probability,
            override_probability: row.override_probability,
            coordinate_bins: row.coordinate_bins,
        }
    }
}

/// Key of the thresholds that hold for every drafter of a class.
const ANY_DRAFTER: &str = "any";

impl AcceptanceTable {
    pub fn mode(&self) -> Acceptance {
        match self.mode {
            AcceptanceMode::Lossless => Acceptance::Lossless,
            AcceptanceMode::Trust => Acceptance::Trust,
        }
    }

    /// All thresholds.
    pub fn thresholds(&self) -> TrustThresholds {
        TrustThresholds::new(|class, source| self.threshold(class, source))
    }

    /// Threshold for tokens of `class` that `source` drafted: the drafter's own row, else the class's `any`, else the default.
    pub fn threshold(&self, class: TokenClass, source: Source) -> TrustThreshold {
        let class = match class {
            TokenClass::Text => ClassName::Text,
            TokenClass::Coordinate => ClassName::Coordinate,
            TokenClass::Kind => ClassName::Kind,
            TokenClass::Structure => ClassName::Structure,
        };
        let rows = self.classes.get(&class);
        let row = rows.and_then(|rows| rows.get(source_name(source)).or_else(|| rows.get(ANY_DRAFTER)));
        row.copied().unwrap_or(self.default).into()
    }
}

/// Name of a drafter in the acceptance table.
fn source_name(source: Source) -> &'static str {
    match source {
        Source::Model => "model",
        Source::TextLayer => "text-layer",
        Source::Ocr => "ocr",
        Source::Glyph => "glyph",
        Source::Table => "table",
        Source::Tesseract => "tesseract",
        Source::Layout => "layout",
    }
}

/// Names that [`AcceptanceTable`] knows.
pub(super) const DRAFTERS: [&str; 8] =
    ["any", "model", "text-layer", "ocr", "glyph", "table", "tesseract", "layout"];
