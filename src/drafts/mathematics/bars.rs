//! What drawn bars put together: fractions, roots, lines above.

use super::expression::{AXIS, Base, DEEPEST, Piece, SCRIPT_SIZE, hull_of, largest, level, take};
use super::scripts::scripted;
use crate::clock::worked;
use crate::geometry::Rect;

/// A drawn horizontal line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) x0: f32,
    pub(super) x1: f32,
    pub(super) y: f32,
}

/// How far a numerator may stand from its bar, and its parts from each other, em.
const FROM_BAR: f32 = 0.8;
const WITHIN: f32 = 0.45;
/// An operator is larger than what stands in its limits by this factor at least.
const OWNER_SIZE: f32 = 1.25;

/// Puts together what bars join; all other pieces stay as they are.
pub(super) fn with_bars(mut pieces: Vec<Piece>, mut bars: Vec<Bar>, depth: usize) -> Vec<Piece> {
    bars.sort_by(|a, b| (b.x1 - b.x0).total_cmp(&(a.x1 - a.x0)));
    while let Some(bar) = (!bars.is_empty()).then(|| bars.remove(0)) {
        worked(pieces.len() + bars.len());
        if depth < DEEPEST
            && let Some(made) = under_root(&mut pieces, &mut bars, bar, depth)
                .or_else(|| fraction(&mut pieces, &mut bars, bar, depth))
                .or_else(|| overline(&mut pieces, bar, depth))
        {
            pieces.push(made);
        }
    }
    pieces
}

/// The bar goes on from the top of a root sign.
fn under_root(pieces: &mut Vec<Piece>, bars: &mut Vec<Bar>, bar: Bar, depth: usize) -> Option<Piece> {
    let sign = pieces.iter().position(|p| {
        p.character() == Some('√')
            && (p.ink.x1 - bar.x0).abs() < 0.35 * p.size
            && (p.ink.y0 - bar.y).abs() < 0.35 * p.size
    })?;
    let sign = pieces.remove(sign);
    let inside = |x: f32, y: f32| {
        (bar.x0 - 0.1 * sign.size..=bar.x1 + 0.1 * sign.size).contains(&x)
            && (bar.y..=sign.ink.y1 + 0.3 * sign.size).contains(&y)
    };
    let body = take(pieces, |p| inside(p.ink.center().0, p.ink.center().1));
    let inner = take(bars, |b| inside((b.x0 + b.x1) / 2.0, b.y));
    let degree = take(pieces, |p| {
        p.size < SCRIPT_SIZE * sign.size
            && p.ink.x1 < sign.ink.center().0 + 0.2 * sign.size
            && p.ink.x0 > sign.ink.x0 - 0.4 * sign.size
            && p.ink.x1 > sign.ink.x0 + 0.1 * sign.size
            && p.ink.y1 < sign.ink.center().1 + 0.2 * sign.size
            && p.ink.y1 > bar.y
    });
    let body = with_bars(body, inner, depth + 1);
    let ink = hull_of(&body).union(&sign.ink).union(&Rect::new(bar.x0, bar.y, bar.x1, bar.y));
    let baseline = level(&body).unwrap_or(sign.baseline);
    let size = largest(&body).unwrap_or(sign.size);
    let base = Base::Root { degree: scripted(degree, depth + 1), body: scripted(body, depth + 1) };
    Some(Piece { base, ink, baseline, size })
}

fn fraction(pieces: &mut Vec<Piece>, bars: &mut Vec<Bar>, bar: Bar, depth: usize) -> Option<Piece> {
    let above = side(pieces, bars, bar, true);
    let below = side(pieces, bars, bar, false);
    let (Some(top), Some(bottom)) = (above, below) else { return None };
    let part = |pieces: &mut Vec<Piece>, bars: &mut Vec<Bar>, reach: &Rect| {
        let holds = |x: f32, y: f32| (reach.x0..=reach.x1).contains(&x) && (reach.y0..=reach.y1).contains(&y);
        let inside = take(pieces, |p| holds(p.ink.center().0, p.ink.center().1));
        let inner = take(bars, |b| holds((b.x0 + b.x1) / 2.0, b.y));
        with_bars(inside, inner, depth + 1)
    };
    let numerator = part(pieces, bars, &top);
    let denominator = part(pieces, bars, &bottom);
    let size = largest(&numerator).into_iter().chain(largest(&denominator)).fold(0.0, f32::max);
    let ink =
        hull_of(&numerator).union(&hull_of(&denominator)).union(&Rect::new(bar.x0, bar.y, bar.x1, bar.y));
    let base = Base::Fraction(scripted(numerator, depth + 1), scripted(denominator, depth + 1));
    Some(Piece { base, ink, baseline: bar.y + AXIS * size, size })
}

/// A piece or a bar near a bar.
struct Near {
    top: f32,
    bottom: f32,
    /// 1 em; 0 for a bar.
    size: f32,
    operator: bool,
}

/// What stands right above (or below) a bar without a gap: the box that holds it.
fn side(pieces: &[Piece], bars: &[Bar], bar: Bar, above: bool) -> Option<Rect> {
    let within = |x: f32| x > bar.x0 - 1.0 && x < bar.x1 + 1.0;
    let mut near: Vec<Near> = pieces
        .iter()
        .filter(|p| within(p.ink.center().0))
        .map(|p| Near { top: p.ink.y0, bottom: p.ink.y1, size: p.size, operator: p.is_operator() })
        .chain(bars.iter().filter(|b| within((b.x0 + b.x1) / 2.0)).map(|b| Near {
            top: b.y,
            bottom: b.y,
            size: 0.0,
            operator: false,
        }))
        .filter(|n| ((n.top + n.bottom) / 2.0 < bar.y) == above)
        .collect();
    if above {
        near.sort_by(|a, b| b.bottom.total_cmp(&a.bottom));
    } else {
        near.sort_by(|a, b| a.top.total_cmp(&b.top));
    }
    let mut reach: Option<(f32, f32)> = None;
    let mut most = 0.0f32;
    for n in near {
        let size = if n.size > 0.0 { n.size } else { most.max(1.0) };
        let gap = match reach {
            None if above => bar.y - n.bottom,
            None => n.top - bar.y,
            Some((top, _)) if above => top - n.bottom,
            Some((_, bottom)) => n.top - bottom,
        };
        // The fraction is a limit of this operator.
        let owner = n.operator && most > 0.0 && n.size > OWNER_SIZE * most && gap > 0.0;
        if owner || gap > if reach.is_none() { FROM_BAR } else { WITHIN } * size {
            break;
        }
        most = most.max(n.size);
        let (top, bottom) = reach.unwrap_or((n.top, n.bottom));
        reach = Some((top.min(n.top), bottom.max(n.bottom)));
    }
    reach.map(|(top, bottom)| Rect::new(bar.x0 - 1.0, top, bar.x1 + 1.0, bottom))
}

/// A bar right above glyphs.
fn overline(pieces: &mut Vec<Piece>, bar: Bar, depth: usize) -> Option<Piece> {
    let under = |p: &Piece| {
        let (x, _) = p.ink.center();
        x > bar.x0 - 0.1 * p.size
            && x < bar.x1 + 0.1 * p.size
            && (-0.1 * p.size..0.4 * p.size).contains(&(p.ink.y0 - bar.y))
    };
    let body = take(pieces, under);
    if body.is_empty() {
        return None;
    }
    let (ink, baseline) = (hull_of(&body), level(&body)?);
    let size = largest(&body)?;
    Some(Piece { base: Base::Overline(scripted(body, depth + 1)), ink, baseline, size })
}
