//! The tree of a formula -> LaTeX.

use unicode_normalization::UnicodeNormalization;

use super::expression::{Base, Node, Row};
use super::faces::{Face, is_mathematical, plain};
use super::symbols::{accent, closing, command, is_binary, is_closing, is_function, is_relation};
use crate::page::Glyph;

/// A wider gap is a space between words, em.
const WORD_GAP: f32 = 0.18;
/// A gap this wide parts two formulas on one line, em.
const QUAD: f32 = 1.0;

/// The LaTeX of a formula.
pub(super) fn latex(row: &Row) -> String {
    let mut writer = Writer { italics: has_italics(row), out: String::new() };
    writer.row(row);
    writer.out
}

/// Does any letter stand in italics? If none does, upright letters are the variables.
fn has_italics(row: &Row) -> bool {
    row.0.iter().any(|node| {
        let own = match &node.base {
            Base::Glyph { glyph, .. } => {
                let (c, face) = plain(glyph);
                c.is_alphabetic() && face == Face::Italic
            }
            Base::Fraction(a, b) | Base::Root { degree: a, body: b } => has_italics(a) || has_italics(b),
            Base::Overline(body) => has_italics(body),
            Base::Nothing => false,
        };
        own || has_italics(&node.sub) || has_italics(&node.sup)
    })
}

struct Writer {
    italics: bool,
    out: String,
}

/// A node that is a plain upright letter of a text font.
fn text_letter(node: &Node) -> Option<char> {
    let Base::Glyph { glyph, .. } = &node.base else { return None };
    let (c, face) = plain(glyph);
    let upright = matches!(face, Face::Upright | Face::Bold) && !is_mathematical(&glyph.font);
    (c.is_alphabetic() && c.is_ascii() && upright && node.accent.is_none()).then_some(c)
}

fn bracket(node: &Node) -> Option<(char, bool)> {
    match &node.base {
        Base::Glyph { glyph, tall } => Some((plain(glyph).0, *tall)),
        _ => None,
    }
}

/// Dots that leave something out.
const DOTS: usize = 3;

fn dots(nodes: &[Node]) -> Option<&'static str> {
    let plain_dot = |c: char| {
        let same = |n: &Node| {
            bracket(n).is_some_and(|(own, _)| own == c) && n.sub.0.is_empty() && n.sup.0.is_empty()
        };
        nodes.len() >= DOTS && nodes[..DOTS].iter().all(same)
    };
    if plain_dot('.') {
        Some(r"\ldots")
    } else {
        ['·', '⋅'].into_iter().any(plain_dot).then_some(r"\cdots")
    }
}

/// Indices of stretched brackets that close each other.
fn stretched_pairs(nodes: &[Node]) -> Vec<(usize, usize)> {
    let mut open: Vec<usize> = Vec::new();
    let mut out = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        let Some((c, true)) = bracket(node) else { continue };
        if closing(c).is_some() {
            open.push(at);
        } else if is_closing(c)
            && let Some(start) = open.pop()
        {
            out.push((start, at));
        }
    }
    out
}

impl Writer {
    fn row(&mut self, row: &Row) {
        let nodes = &row.0;
        let pairs = stretched_pairs(nodes);
        let mut at = 0;
        while at < nodes.len() {
            let word = self.word(&nodes[at..]);
            if word > 1 {
                self.text(&nodes[at..at + word], nodes.get(at + word));
                at += word;
                continue;
            }
            let node = &nodes[at];
            if let Some(dots) = dots(&nodes[at..]) {
                self.push(dots);
                at += DOTS;
                continue;
            }
            if at > 0 && node.gap > QUAD {
                self.out.push_str(r" \quad ");
            }
            if pairs.iter().any(|p| p.0 == at) {
                self.push(r"\left");
            }
            if pairs.iter().any(|p| p.1 == at) {
                self.push(r"\right");
            }
            self.node(node);
            at += 1;
        }
    }

    /// How many nodes from the first on make an upright word: letters side by side, of which only the last has scripts.
    fn word(&self, nodes: &[Node]) -> usize {
        let mut count = 0;
        for node in nodes {
            if text_letter(node).is_none() || count > 0 && node.gap > WORD_GAP {
                break;
            }
            count += 1;
            if !(node.sub.0.is_empty() && node.sup.0.is_empty()) {
                break;
            }
        }
        // Letters without italics anywhere else are variables, unless they make a known name.
        let name: String = nodes[..count].iter().filter_map(text_letter).collect();
        if self.italics || count > 3 || is_function(&name) { count } else { 0 }
    }

    /// An upright word: a function, an operator of its own, or text.
    fn text(&mut self, nodes: &[Node], next: Option<&Node>) {
        let name: String = nodes.iter().filter_map(text_letter).collect();
        let Some((first, last)) = nodes.first().zip(nodes.last()) else { return };
        let scripts = !(last.sub.0.is_empty() && last.sup.0.is_empty());
        let applied =
            next.and_then(bracket).is_some_and(|(c, _)| c == '(') && next.is_some_and(|n| n.gap < WORD_GAP);
        if is_function(&name) {
            self.push(&format!(r"\{name}"));
        } else if scripts || applied {
            self.push(&format!(r"\operatorname{{{name}}}"));
        } else {
            let space = |gap: Option<f32>| if gap.is_some_and(|g| g > WORD_GAP) { " " } else { "" };
            let before = if self.out.is_empty() { "" } else { space(Some(first.gap)) };
            let text = format!("{before}{name}{}", space(next.map(|n| n.gap)));
            match self
                .out
                .strip_suffix('}')
                .filter(|o| o.rfind(r"\text{").is_some_and(|at| !o[at..].contains('}')))
            {
                Some(open) => {
                    let joined =
                        format!("{}{}}}", open, if open.ends_with(' ') { text.trim_start() } else { &text });
                    self.out = joined;
                }
                None => self.push(&format!(r"\text{{{text}}}")),
            }
        }
        self.scripts(last);
    }

    /// Appends a token; a command before a letter is kept apart from it.
    fn push(&mut self, token: &str) {
        let command = self.out.rfind('\\').is_some_and(|at| {
            let name = &self.out[at + 1..];
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphabetic())
        });
        if command && token.starts_with(|c: char| c.is_alphabetic()) {
            self.out.push(' ');
        }
        self.out.push_str(token);
    }

    fn node(&mut self, node: &Node) {
        match &node.base {
            Base::Glyph { glyph, .. } => self.glyph(glyph, node.accent),
            Base::Fraction(top, bottom) => {
                self.push(r"\frac");
                self.group(top);
                self.group(bottom);
            }
            Base::Root { degree, body } => {
                self.push(r"\sqrt");
                if !degree.0.is_empty() {
                    self.out.push('[');
                    self.row(degree);
                    self.out.push(']');
                }
                self.group(body);
            }
            Base::Overline(body) => {
                self.push(if body.0.len() == 1 { r"\bar" } else { r"\overline" });
                self.group(body);
            }
            Base::Nothing => self.push("{}"),
        }
        self.scripts(node);
    }

    fn group(&mut self, row: &Row) {
        self.out.push('{');
        self.row(row);
        self.out.push('}');
    }

    fn scripts(&mut self, node: &Node) {
        for (mark, script) in [('_', &node.sub), ('^', &node.sup)] {
            if !script.0.is_empty() {
                self.out.push(mark);
                self.group(script);
            }
        }
    }

    fn glyph(&mut self, glyph: &Glyph, above: Option<&'static str>) {
        let (c, face) = plain(glyph);
        if is_relation(c) || is_binary(c) {
            let sign = command(c).map_or_else(|| c.to_string(), str::to_owned);
            let unary =
                is_binary(c) && (self.out.is_empty() || self.out.ends_with(['{', '(', '[', ' ', ',']));
            if !unary && !self.out.ends_with([' ', '{']) {
                self.out.push(' ');
            }
            self.push(&sign);
            if !unary {
                self.out.push(' ');
            }
            return;
        }
        let letter = self.letter(c, face);
        match above {
            Some(mark) => self.push(&format!("{mark}{{{letter}}}")),
            None => self.push(&letter),
        }
    }

    /// A letter or sign without its scripts.
    fn letter(&self, c: char, face: Face) -> String {
        // A letter with its accent, as text layers give it.
        let parts: Vec<char> = std::iter::once(c).nfd().collect();
        if let [base, mark] = parts[..]
            && let Some(mark) = accent(mark)
        {
            return format!("{mark}{{{}}}", self.letter(base, face));
        }
        if let Some(command) = command(c) {
            return command.into();
        }
        let wrapped = |name: &str| format!(r"\{name}{{{c}}}");
        match face {
            _ if !c.is_alphanumeric() => c.to_string(),
            Face::Blackboard => wrapped("mathbb"),
            Face::Script => wrapped("mathcal"),
            Face::Fraktur => wrapped("mathfrak"),
            Face::Bold => wrapped("mathbf"),
            Face::Upright if self.italics && c.is_alphabetic() && c.is_ascii() => wrapped("mathrm"),
            _ if c.is_alphabetic() && !c.is_ascii() => wrapped("text"),
            _ => c.to_string(),
        }
    }
}
