//! The tree of a formula, and the pieces from which it is put together.

use unicode_normalization::UnicodeNormalization;

use super::bars::{Bar, with_bars};
use super::faces::plain;
use super::scripts::scripted;
use super::symbols::is_large_operator;
use crate::geometry::{Rect, hull};
use crate::lines::median;
use crate::page::Glyph;

/// A formula or a part of one, from left to right.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Row(pub(super) Vec<Node>);

/// A symbol or a part with what hangs on it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) base: Base,
    pub(super) accent: Option<&'static str>,
    /// Below: subscript or lower limit.
    pub(super) sub: Row,
    pub(super) sup: Row,
    /// Space to the node before, em.
    pub(super) gap: f32,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Base {
    /// `tall`: a bracket that is stretched.
    Glyph {
        glyph: Glyph,
        tall: bool,
    },
    Fraction(Row, Row),
    Root {
        degree: Row,
        body: Row,
    },
    Overline(Row),
    /// Scripts with nothing before them.
    Nothing,
}

/// Height of the axis above the baseline (on which bars and large operators are centred), em: TeX's math fonts have 0.25.
pub(super) const AXIS: f32 = 0.25;
/// Scripts are at least this much smaller (TeX: 0.7; word processors: 0.58 to 0.75).
pub(super) const SCRIPT_SIZE: f32 = 0.88;
/// Glyphs whose baselines differ by less are on one level, em (TeX lowers subscripts by at least 0.15).
pub(super) const LEVEL: f32 = 0.1;
/// Height and depth of a line of text, em.
pub(super) const HEIGHT: f32 = 0.75;
pub(super) const DEPTH: f32 = 0.25;
/// Nested deeper than this, a formula is written flat.
pub(super) const DEEPEST: usize = 12;
/// A glyph whose ink is higher than this is stretched, em.
const TALL: f32 = 1.25;
/// A stroke through the sign beside it.
const STROKE: char = '\u{338}';

/// A glyph or a part that is put together.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) base: Base,
    pub(super) ink: Rect,
    /// Of parts with a bar: where their neighbours' would be.
    pub(super) baseline: f32,
    /// 1 em, pixels; of parts: of what is in them.
    pub(super) size: f32,
}

impl Piece {
    fn of(glyph: &Glyph) -> Piece {
        let tall = glyph.ink.height() > TALL * glyph.size;
        Piece {
            base: Base::Glyph { glyph: glyph.clone(), tall },
            ink: glyph.ink,
            baseline: glyph.baseline,
            size: glyph.size,
        }
    }

    pub(super) fn character(&self) -> Option<char> {
        match &self.base {
            Base::Glyph { glyph, .. } => Some(plain(glyph).0),
            _ => None,
        }
    }

    /// A glyph whose baseline says nothing: stretched, a large operator, or a root.
    pub(super) fn is_large(&self) -> bool {
        match &self.base {
            Base::Glyph { glyph, tall } => {
                let (c, _) = plain(glyph);
                *tall || is_large_operator(c) || c == '√'
            }
            _ => true,
        }
    }

    pub(super) fn is_operator(&self) -> bool {
        self.character().is_some_and(is_large_operator)
    }

    pub(super) fn has_bar(&self) -> bool {
        matches!(self.base, Base::Fraction(..))
    }
}

/// The tree of a formula on one line.
pub(super) fn expression(glyphs: &[&Glyph], bars: &[Bar]) -> Row {
    scripted(pieces(glyphs, bars), 0)
}

/// The formula's pieces: fractions and roots put together, all else as it is.
pub(super) fn pieces(glyphs: &[&Glyph], bars: &[Bar]) -> Vec<Piece> {
    with_bars(negated(glyphs).iter().map(Piece::of).collect(), bars.to_vec(), 0)
}

/// Strokes through a sign, which are glyphs of their own, become part of the sign: `=` and a stroke are `≠`.
fn negated(glyphs: &[&Glyph]) -> Vec<Glyph> {
    let (strokes, mut out): (Vec<Glyph>, Vec<Glyph>) =
        glyphs.iter().copied().cloned().partition(|g| g.character == STROKE);
    for stroke in strokes {
        let shared = |g: &Glyph| g.ink.overlap_x(&stroke.ink) / g.ink.width().max(1.0);
        let struck = out.iter_mut().filter(|g| !plain(g).0.is_alphanumeric() && shared(g) > 0.2);
        if let Some(sign) = struck.max_by(|a, b| shared(a).total_cmp(&shared(b))) {
            let mut composed = [sign.character, STROKE].into_iter().nfc();
            if let (Some(c), None) = (composed.next(), composed.next()) {
                sign.character = c;
            }
        }
    }
    out
}

/// Takes out of `from` what `wanted` says.
pub(super) fn take<T>(from: &mut Vec<T>, wanted: impl Fn(&T) -> bool) -> Vec<T> {
    from.extract_if(.., |item| wanted(item)).collect()
}

pub(super) fn hull_of(pieces: &[Piece]) -> Rect {
    hull(pieces.iter().map(|p| p.ink)).unwrap_or_default()
}

/// Size of the largest ordinary glyph.
pub(super) fn largest(pieces: &[Piece]) -> Option<f32> {
    let ordinary = pieces.iter().filter(|p| !p.is_large()).map(|p| p.size).reduce(f32::max);
    ordinary.or_else(|| pieces.iter().map(|p| p.size).reduce(f32::max))
}

/// Baseline of most of the largest ordinary glyphs; of a formula without any, the one its parts suggest.
pub(super) fn level(pieces: &[Piece]) -> Option<f32> {
    let size = largest(pieces)?;
    let voters: Vec<f32> =
        pieces.iter().filter(|p| !p.is_large() && p.size > SCRIPT_SIZE * size).map(|p| p.baseline).collect();
    let votes = |at: f32| voters.iter().filter(|v| (*v - at).abs() < LEVEL * size).count();
    let most = voters.iter().map(|&v| votes(v)).max();
    match most {
        Some(most) => voters.iter().copied().find(|&v| votes(v) == most),
        None => {
            let axis =
                pieces.iter().map(|p| if p.has_bar() { p.baseline } else { p.ink.center().1 + AXIS * size });
            Some(median(axis))
        }
    }
}
