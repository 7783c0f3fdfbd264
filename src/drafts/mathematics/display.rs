//! Formula regions: lines, numbers, and their LaTeX.

use std::sync::LazyLock;

use regex::Regex;

use super::bars::Bar;
use super::expression::{Base, DEPTH, HEIGHT, Piece, Row, SCRIPT_SIZE, pieces};
use super::faces::plain;
use super::latex::latex;
use super::scripts::scripted;
use super::symbols::is_relation;
use crate::clock::worked;
use crate::geometry::Rect;
use crate::lines::{lines_of, median};
use crate::page::{Glyph, Kind, Markup, Region, Rules, Word};

/// A gap of this many em before the end of a line parts the formula's number.
const NUMBER_GAP: f32 = 1.0;
/// Lines are parted by more than this, em.
const LINE_GAP: f32 = 0.2;
/// So many words of so many letters on a line are running text.
const PROSE_WORDS: usize = 5;
const WORD_LETTERS: usize = 3;
/// More glyphs than this are no formula.
const MOST_GLYPHS: usize = 2000;

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^[(\[]\s*([A-Za-z]{0,3}\.?[0-9]+[0-9.\-–]*[a-z']{0,2})\s*[)\]]$")
        .expect("a constant pattern")
});

/// Writes the LaTeX of every formula region whose glyphs are known. The words stay: they say where the markup came from.
pub(in crate::drafts) fn write_display(regions: &mut [Region], glyphs: &[Glyph], rules: &Rules) {
    for region in regions.iter_mut().filter(|r| r.kind == Kind::Formula && r.markup.is_none()) {
        worked(glyphs.len());
        let inside: Vec<&Glyph> = glyphs.iter().filter(|g| stands_in(&g.ink, &region.bbox)).collect();
        let letters: usize =
            region.words.iter().flat_map(|w| w.text.chars()).filter(|c| !c.is_whitespace()).count();
        // Where words came from elsewhere (a picture), the glyphs are not the whole formula.
        if inside.is_empty() || inside.len() > MOST_GLYPHS || 10 * inside.len() < 8 * letters {
            continue;
        }
        let em = median(inside.iter().map(|g| g.size));
        if holds_prose(&region.words) {
            region.kind = Kind::Text;
            continue;
        }
        let source = display(&inside, &bars_in(rules, &region.bbox.grown(0.5 * em, 0.5 * em)));
        if !source.is_empty() {
            region.markup = Some(Markup::Latex(source));
        }
    }
}

/// Do the words hold a line of running text? The region then is a paragraph with formulas in it.
fn holds_prose(words: &[Word]) -> bool {
    let is_word =
        |w: &&Word| w.latex.is_none() && w.text.chars().filter(|c| c.is_alphabetic()).count() >= WORD_LETTERS;
    lines_of(words).iter().any(|line| line.iter().filter(is_word).count() >= PROSE_WORDS)
}

fn stands_in(ink: &Rect, bbox: &Rect) -> bool {
    let (x, y) = ink.center();
    (bbox.x0 - 1.0..=bbox.x1 + 1.0).contains(&x) && (bbox.y0 - 1.0..=bbox.y1 + 1.0).contains(&y)
}

/// Horizontal lines inside a box, each once: a painted bar has two edges.
pub(super) fn bars_in(rules: &Rules, bbox: &Rect) -> Vec<Bar> {
    let mut out: Vec<Bar> = Vec::new();
    for &(x0, x1, y) in &rules.horizontal {
        worked(1 + out.len());
        let inside = x0 > bbox.x0 - 3.0 && x1 < bbox.x1 + 3.0 && y > bbox.y0 - 3.0 && y < bbox.y1 + 3.0;
        let known =
            out.iter().any(|b| (b.y - y).abs() < 3.0 && (b.x0 - x0).abs() < 3.0 && (b.x1 - x1).abs() < 3.0);
        if inside && !known {
            out.push(Bar { x0, x1, y });
        }
    }
    out
}

fn display(glyphs: &[&Glyph], bars: &[Bar]) -> String {
    let mut numbers = Vec::new();
    let rows: Vec<Row> = lines(pieces(glyphs, bars))
        .into_iter()
        .filter_map(|line| {
            let (line, number) = part_number(line);
            numbers.extend(number);
            (!line.is_empty()).then(|| scripted(line, 0))
        })
        .collect();
    let mut source = match rows.as_slice() {
        [] => return String::new(),
        [row] => latex(row).trim().to_owned(),
        rows => {
            let lines: Vec<String> = rows.iter().map(aligned).collect();
            format!("\\begin{{aligned}}\n{}\n\\end{{aligned}}", lines.join(" \\\\\n"))
        }
    };
    if let [number] = numbers.as_slice() {
        source.push_str(&format!(r" \tag{{{number}}}"));
    }
    source
}

/// A line of several, aligned at its first relation.
fn aligned(row: &Row) -> String {
    let relation = |base: &Base| matches!(base, Base::Glyph { glyph, .. } if is_relation(plain(glyph).0));
    let at = row.0.iter().position(|n| relation(&n.base)).unwrap_or(0);
    let (before, after) = row.0.split_at(at);
    let (before, after) = (latex(&Row(before.to_vec())), latex(&Row(after.to_vec())));
    format!("{} &{}", before.trim(), after.trim_end()).trim().to_owned()
}

/// Parts pieces into lines where nothing stands between them.
fn lines(mut pieces: Vec<Piece>) -> Vec<Vec<Piece>> {
    let reach = |p: &Piece| match &p.base {
        Base::Glyph { tall: false, .. }
            if p.ink.y1 > p.baseline - p.size && p.ink.y0 < p.baseline + DEPTH * p.size =>
        {
            (p.ink.y0.min(p.baseline - HEIGHT * p.size), p.ink.y1.max(p.baseline + DEPTH * p.size))
        }
        _ => (p.ink.y0, p.ink.y1),
    };
    pieces.sort_by(|a, b| reach(a).0.total_cmp(&reach(b).0));
    let mut out: Vec<Vec<Piece>> = Vec::new();
    let mut bottom = f32::NEG_INFINITY;
    for piece in pieces {
        let (top, end) = reach(&piece);
        if out.is_empty() || top - bottom > LINE_GAP * piece.size {
            out.push(Vec::new());
            bottom = f32::NEG_INFINITY;
        }
        bottom = bottom.max(end);
        if let Some(line) = out.last_mut() {
            line.push(piece);
        }
    }
    with_limits(out)
}

/// Lines of nothing but small glyphs are the limits of the line that they are next to.
fn with_limits(lines: Vec<Vec<Piece>>) -> Vec<Vec<Piece>> {
    let size = |line: &[Piece]| line.iter().map(|p| p.size).fold(0.0, f32::max);
    let mut out: Vec<Vec<Piece>> = Vec::new();
    for line in lines {
        let own = size(&line);
        match out.last_mut() {
            Some(before) if own < SCRIPT_SIZE * size(before) || size(before) < SCRIPT_SIZE * own => {
                before.extend(line);
            }
            _ => out.push(line),
        }
    }
    out
}

/// Takes the formula's number off a line, at its right or its left end.
fn part_number(mut line: Vec<Piece>) -> (Vec<Piece>, Option<String>) {
    line.sort_by(|a, b| a.ink.x0.total_cmp(&b.ink.x0));
    let gap = |k: usize| line[k].ink.x0 - line[k - 1].ink.x1 > NUMBER_GAP * line[k].size;
    let number = |part: &[Piece]| {
        let text: Option<String> = part.iter().map(Piece::character).collect();
        Some(NUMBER.captures(text?.trim())?.get(1)?.as_str().to_owned())
    };
    let last = (1..line.len()).rev().find(|&k| gap(k));
    if let Some(found) = last.and_then(|k| number(&line[k..]).map(|n| (k, n))) {
        line.truncate(found.0);
        return (line, Some(found.1));
    }
    let first = (1..line.len()).find(|&k| gap(k));
    if let Some(found) = first.and_then(|k| number(&line[..k]).map(|n| (k, n))) {
        return (line.split_off(found.0), Some(found.1));
    }
    match number(&line) {
        Some(found) => (Vec::new(), Some(found)),
        None => (line, None),
    }
}
