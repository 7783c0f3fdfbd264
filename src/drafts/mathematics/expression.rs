//! Glyphs and bars -> the tree of a formula: fractions and roots by their bars, then scripts and limits by size and level.

use unicode_normalization::UnicodeNormalization;

use super::faces::plain;
use super::symbols::{accent, is_large_operator, takes_limits};
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

/// A drawn horizontal line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) x0: f32,
    pub(super) x1: f32,
    pub(super) y: f32,
}

/// Height of the axis above the baseline (on which bars and large operators are centred), em: TeX's math fonts have 0.25.
const AXIS: f32 = 0.25;
/// Scripts are at least this much smaller (TeX: 0.7; word processors: 0.58 to 0.75).
pub(super) const SCRIPT_SIZE: f32 = 0.88;
/// Glyphs whose baselines differ by less are on one level, em (TeX lowers subscripts by at least 0.15).
const LEVEL: f32 = 0.1;
/// A glyph whose ink is higher than this is stretched, em.
const TALL: f32 = 1.25;
/// How far a numerator may stand from its bar, and its parts from each other, em.
const FROM_BAR: f32 = 0.8;
const WITHIN: f32 = 0.45;
/// An operator is larger than what stands in its limits by this factor at least.
const OWNER_SIZE: f32 = 1.25;
/// A stroke through the sign beside it.
const STROKE: char = '\u{338}';
/// Nested deeper than this, a formula is written flat.
const DEEPEST: usize = 12;

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
    fn is_large(&self) -> bool {
        match &self.base {
            Base::Glyph { glyph, tall } => {
                let (c, _) = plain(glyph);
                *tall || is_large_operator(c) || c == '√'
            }
            _ => true,
        }
    }

    fn is_operator(&self) -> bool {
        self.character().is_some_and(is_large_operator)
    }

    /// An operator of a font that has it in every size. (The extension fonts of TeX have one size for all.)
    fn is_scaled_operator(&self) -> bool {
        match &self.base {
            Base::Glyph { glyph, .. } => {
                is_large_operator(plain(glyph).0)
                    && !glyph.font.contains("ex")
                    && glyph.ink.height() < 1.6 * glyph.size
            }
            _ => false,
        }
    }

    fn has_bar(&self) -> bool {
        matches!(self.base, Base::Fraction(..))
    }
}

/// The tree of a formula on one line.
pub(super) fn expression(glyphs: &[&Glyph], bars: &[Bar]) -> Row {
    scripted(pieces(glyphs, bars, 0), 0)
}

/// The formula's pieces: fractions and roots put together, all else as it is.
pub(super) fn pieces(glyphs: &[&Glyph], bars: &[Bar], depth: usize) -> Vec<Piece> {
    with_bars(negated(glyphs).iter().map(Piece::of).collect(), bars.to_vec(), depth)
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

fn with_bars(mut pieces: Vec<Piece>, mut bars: Vec<Bar>, depth: usize) -> Vec<Piece> {
    bars.sort_by(|a, b| (b.x1 - b.x0).total_cmp(&(a.x1 - a.x0)));
    while let Some(bar) = (!bars.is_empty()).then(|| bars.remove(0)) {
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

/// Takes out of `from` what `wanted` says.
fn take<T>(from: &mut Vec<T>, wanted: impl Fn(&T) -> bool) -> Vec<T> {
    let (taken, left) = std::mem::take(from).into_iter().partition(|item| wanted(item));
    *from = left;
    taken
}

fn hull_of(pieces: &[Piece]) -> Rect {
    hull(pieces.iter().map(|p| p.ink)).unwrap_or_default()
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

/// Size of the largest glyph that tells the size of its line.
fn largest(pieces: &[Piece]) -> Option<f32> {
    let telling =
        pieces.iter().filter(|p| !p.is_large() || p.is_scaled_operator()).map(|p| p.size).reduce(f32::max);
    telling.or_else(|| pieces.iter().map(|p| p.size).reduce(f32::max))
}

/// Baseline of most of the largest ordinary glyphs; of a formula without any, the one its parts suggest.
fn level(pieces: &[Piece]) -> Option<f32> {
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

/// Hangs scripts and limits on what stands on the main line.
pub(super) fn scripted(mut pieces: Vec<Piece>, depth: usize) -> Row {
    pieces.sort_by(|a, b| a.ink.x0.total_cmp(&b.ink.x0));
    let (Some(size), Some(baseline)) = (largest(&pieces), level(&pieces)) else { return Row::default() };
    let line = MainLine { size, baseline };
    let (mut main, mut rest): (Vec<Piece>, Vec<Piece>) = (Vec::new(), Vec::new());
    for piece in pieces {
        // What is smaller still than a script beside it hangs on that script, on whatever level it stands.
        let nested = rest.last().is_some_and(|last| is_script_of(&piece, last));
        if line.holds(&piece) && !nested && !line.is_raised_accent(&piece) {
            main.push(piece);
        } else {
            rest.push(piece);
        }
    }
    if main.is_empty() || depth >= DEEPEST {
        main.append(&mut rest);
        main.sort_by(|a, b| a.ink.x0.total_cmp(&b.ink.x0));
    }
    let accents = take(&mut rest, |p| line.is_accent(p, &main));
    let limits = line.limits(&main, &mut rest);
    let mut slots: Vec<Slot> = main.iter().map(|p| Slot { x: p.ink.x0, ..Slot::default() }).collect();
    for (at, above, run) in limits {
        let slot = &mut slots[at];
        if above { &mut slot.sup } else { &mut slot.sub }.extend(run);
    }
    let mut leading = Slot { x: f32::NEG_INFINITY, ..Slot::default() };
    for piece in rest {
        let slot = slots.iter_mut().rev().find(|s| s.x <= piece.ink.x0).unwrap_or(&mut leading);
        slot.hang(piece, &line);
    }
    let mut nodes = Vec::with_capacity(main.len() + 1);
    if !(leading.sub.is_empty() && leading.sup.is_empty()) {
        nodes.push(leading.node(Base::Nothing, None, 0.0, depth));
    }
    let mut right = f32::NAN;
    for (piece, slot) in main.into_iter().zip(slots) {
        let mark =
            accents.iter().find(|a| piece.ink.overlap_x(&a.ink) > 0.5 * a.ink.width().min(piece.ink.width()));
        let scripts = || slot.sub.iter().chain(&slot.sup).map(|p| p.ink);
        let left = scripts().map(|b| b.x0).fold(piece.ink.x0, f32::min);
        let gap = if right.is_nan() { 0.0 } else { (left - right) / size };
        right = scripts().map(|b| b.x1).fold(piece.ink.x1, f32::max);
        nodes.push(slot.node(piece.base, mark.and_then(|a| accent(a.character()?)), gap, depth));
    }
    Row(nodes)
}

/// Is a piece smaller than the one before it, and next to it?
fn is_script_of(piece: &Piece, before: &Piece) -> bool {
    piece.size < SCRIPT_SIZE * before.size && (piece.ink.x0 - before.ink.x1).abs() < 0.4 * before.size
}

/// What hangs on a node.
#[derive(Default)]
struct Slot {
    /// Left edge of the node.
    x: f32,
    sub: Vec<Piece>,
    sup: Vec<Piece>,
}

impl Slot {
    /// Puts a piece into the subscript or the superscript: with what it is next to if it is smaller still, else by its level.
    fn hang(&mut self, piece: Piece, line: &MainLine) {
        let nested = |script: &[Piece]| {
            let right = script.iter().map(|p| p.ink.x1).fold(f32::MIN, f32::max);
            let most = script.iter().map(|p| p.size).fold(0.0, f32::max);
            piece.size < SCRIPT_SIZE * most && (piece.ink.x0 - right).abs() < 0.6 * most
        };
        let up = match (nested(&self.sub), nested(&self.sup)) {
            (true, false) => false,
            (false, true) => true,
            _ => line.is_above(&piece),
        };
        if up { &mut self.sup } else { &mut self.sub }.push(piece);
    }

    fn node(self, base: Base, accent: Option<&'static str>, gap: f32, depth: usize) -> Node {
        Node { base, accent, sub: scripted(self.sub, depth + 1), sup: scripted(self.sup, depth + 1), gap }
    }
}

/// The line on which a formula's larger symbols stand.
struct MainLine {
    size: f32,
    baseline: f32,
}

impl MainLine {
    fn axis(&self) -> f32 {
        self.baseline - AXIS * self.size
    }

    fn holds(&self, piece: &Piece) -> bool {
        let off = (piece.baseline - self.baseline).abs();
        match &piece.base {
            // The bar of a fraction lies on the axis of its line.
            Base::Fraction(..) => (piece.baseline - AXIS * piece.size - self.axis()).abs() < 0.15 * self.size,
            Base::Glyph { .. } if piece.is_large() => {
                piece.size > SCRIPT_SIZE * self.size && (piece.ink.y0..=piece.ink.y1).contains(&self.axis())
            }
            _ if piece.size > SCRIPT_SIZE * self.size => off < 0.2 * self.size,
            _ => off < LEVEL * self.size,
        }
    }

    fn is_above(&self, piece: &Piece) -> bool {
        if piece.is_large() {
            piece.ink.center().1 < self.axis()
        } else {
            piece.baseline < self.baseline - 0.5 * LEVEL * self.size
        }
    }

    /// A spacing accent: it stands on the line of its letter, but its ink is above.
    fn is_raised_accent(&self, piece: &Piece) -> bool {
        piece.character().is_some_and(|c| !c.is_ascii() && c != '→' && accent(c).is_some())
            && piece.ink.y1 < self.baseline - 0.4 * self.size
    }

    /// A hat, bar or dot right above a glyph of the line.
    fn is_accent(&self, piece: &Piece, main: &[Piece]) -> bool {
        piece.character().and_then(accent).is_some()
            && main.iter().any(|m| {
                !m.is_large()
                    && piece.ink.y1 < m.ink.center().1
                    && m.ink.overlap_x(&piece.ink) > 0.5 * piece.ink.width().min(m.ink.width())
            })
    }

    /// Takes the limits of large operators out of `rest`: (index of the operator in `main`, above?, the limit).
    fn limits(&self, main: &[Piece], rest: &mut Vec<Piece>) -> Vec<(usize, bool, Vec<Piece>)> {
        let operators = operators(main);
        if operators.is_empty() {
            return Vec::new();
        }
        let mut out = Vec::new();
        for run in runs(std::mem::take(rest)) {
            let b = hull_of(&run);
            let owner = operators.iter().find_map(|(at, o)| {
                let shared = o.overlap_x(&b) > 0.5 * b.width().min(o.width());
                let below = b.y0 > o.y1 - 0.2 * self.size;
                let above = b.y1 < o.y0 + 0.2 * self.size;
                (shared && (below || above)).then_some((*at, above))
            });
            match owner {
                Some((at, above)) => out.push((at, above, run)),
                None => rest.extend(run),
            }
        }
        rest.sort_by(|a, b| a.ink.x0.total_cmp(&b.ink.x0));
        out
    }
}

/// Large operators and named ones that take limits: index of the last glyph, and their box.
fn operators(main: &[Piece]) -> Vec<(usize, Rect)> {
    let mut out = Vec::new();
    let mut start = 0;
    while start < main.len() {
        if main[start].character().is_some_and(is_large_operator) {
            out.push((start, main[start].ink));
            start += 1;
            continue;
        }
        let letters = main[start..].iter().map_while(|p| p.character().filter(char::is_ascii_alphabetic));
        let name: String = letters.collect();
        let length = (2..=name.len()).rev().find(|&n| takes_limits(&name[..n]));
        match length {
            Some(n) => {
                out.push((start + n - 1, hull_of(&main[start..start + n])));
                start += n;
            }
            None => start += 1,
        }
    }
    out
}

/// Neighbours on one level; what is smaller still goes with what it is next to.
fn runs(mut pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    pieces.sort_by(|a, b| a.ink.x0.total_cmp(&b.ink.x0));
    let mut out: Vec<Vec<Piece>> = Vec::new();
    for piece in pieces {
        let joins = |run: &&mut Vec<Piece>| {
            let Some(first) = run.first() else { return false };
            let right = run.iter().map(|p| p.ink.x1).fold(f32::MIN, f32::max);
            let size = first.size.max(piece.size);
            let level = (piece.baseline - first.baseline).abs() < 0.25 * size
                || piece.is_large()
                || piece.size < SCRIPT_SIZE * first.size
                    && (piece.baseline - first.baseline).abs() < 0.6 * size;
            level && piece.ink.x0 - right < 0.4 * size
        };
        match out.iter_mut().rev().find(joins) {
            Some(run) => run.push(piece),
            None => out.push(vec![piece]),
        }
    }
    out
}
