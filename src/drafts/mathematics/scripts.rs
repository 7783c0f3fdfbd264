//! What hangs on the symbols of a line: scripts and limits, by size and level, and accents.

use super::expression::{
    AXIS, Base, DEEPEST, LEVEL, Node, Piece, Row, SCRIPT_SIZE, hull_of, largest, level, take,
};
use super::symbols::{accent, takes_limits};
use crate::geometry::Rect;

/// An operator of which all else is a script is larger by this factor, and so far off the line of its scripts, em.
const OPERATOR_SIZE: f32 = 1.2;
const OFF_AXIS: f32 = 0.3;

/// Hangs scripts and limits on what stands on the main line.
pub(super) fn scripted(mut pieces: Vec<Piece>, depth: usize) -> Row {
    pieces.sort_by(|a, b| a.ink.x0.total_cmp(&b.ink.x0));
    let Some(line) = MainLine::of(&pieces) else { return Row::default() };
    let size = line.size;
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
    /// The line of the largest ordinary glyphs, unless they are all scripts of a larger operator, which is not centred on their line.
    fn of(pieces: &[Piece]) -> Option<MainLine> {
        let line = MainLine { size: largest(pieces)?, baseline: level(pieces)? };
        let apart = |p: &&Piece| {
            p.is_operator()
                && p.size > OPERATOR_SIZE * line.size
                && (p.ink.center().1 - line.axis()).abs() > OFF_AXIS * p.size
        };
        let operator = pieces.iter().find(apart);
        Some(operator.map_or(line, |p| MainLine { size: p.size, baseline: p.ink.center().1 + AXIS * p.size }))
    }

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
        if main[start].is_operator() {
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
