//! Text -> Markdown and HTML that means just this text. Only what would change the meaning is escaped.

use crate::characters::acts_on_terminals;
use crate::document::composed::{Composed, FormulaSpan, LinkSpan};
use crate::document::markup::inert;
use crate::page::Link;

/// Where in a text a Markdown block begins: what opens a list, a heading or a quotation counts only there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockStart {
    /// Index of the block's first character.
    At(usize),
    /// Behind a mark of its own, as in headings and table cells.
    Nowhere,
}

/// The inline Markdown of a text, links included.
pub(crate) fn inline(composed: &Composed, links: &[Link], start: BlockStart) -> String {
    let chars: Vec<char> = composed.text.chars().collect();
    let mut marks = vec![Mark::Plain; chars.len()];
    mark_pairs(&chars, !composed.formulas.is_empty(), &mut marks);
    mark_singles(&chars, &mut marks);
    match start {
        BlockStart::At(at) => mark_block_start(&chars, at, &mut marks),
        BlockStart::Nowhere => mark_heading_end(&chars, &mut marks),
    }
    let spans = known(&composed.links, links, &chars);
    for (span, _) in &spans {
        mark_brackets(&chars, span, &mut marks);
    }
    mark_formulas(&composed.formulas, &mut marks);
    written(&chars, &marks, &spans, |uri, end| if end { format!("]({})", target(uri)) } else { "[".into() })
}

/// A formula's first character stands for its LaTeX, the others for nothing.
fn mark_formulas<'a>(formulas: &'a [FormulaSpan], marks: &mut [Mark<'a>]) {
    for span in formulas {
        if let Some(marks) = marks.get_mut(span.start..span.end) {
            marks.fill(Mark::As(""));
            marks[0] = Mark::Formula(&span.latex);
        }
    }
}

/// The HTML of a text, links included; line ends become `<br>`.
pub(crate) fn html(composed: &Composed, links: &[Link]) -> String {
    let chars: Vec<char> = composed.text.chars().collect();
    let marks: Vec<Mark> = chars.iter().map(|&c| html_mark(c)).collect();
    written(&chars, &marks, &known(&composed.links, links, &chars), |uri, end| {
        if end { "</a>".into() } else { format!("<a href=\"{}\">", attribute(uri)) }
    })
}

fn html_mark(c: char) -> Mark<'static> {
    match c {
        '&' => Mark::As("&amp;"),
        '<' => Mark::As("&lt;"),
        '>' => Mark::As("&gt;"),
        '\n' => Mark::As("<br>"),
        _ => Mark::Plain,
    }
}

/// An attribute's value; an empty line would end the HTML that stands in Markdown.
fn attribute(text: &str) -> String {
    let text: String = text.chars().filter(|&c| !acts_on_terminals(c)).collect();
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// How a character is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark<'a> {
    Plain,
    Backslash,
    As(&'static str),
    /// LaTeX.
    Formula(&'a str),
}

/// Links with a target that a reader may follow. Those of one target with but a space between them are one: a PDF has one for each line.
/// Punctuation at the end is the sentence's.
fn known<'a>(spans: &[LinkSpan], links: &'a [Link], chars: &[char]) -> Vec<(LinkSpan, &'a str)> {
    let mut out: Vec<(LinkSpan, &str)> = Vec::new();
    for span in spans {
        let Some(uri) =
            links.get(span.link as usize).map(|link| link.uri.as_str()).filter(|uri| is_safe_target(uri))
        else {
            continue;
        };
        match out.last_mut() {
            Some((last, target)) if *target == uri && chars.get(last.end..span.start) == Some(&[' ']) => {
                last.end = span.end;
            }
            _ => out.push((*span, uri)),
        }
    }
    for (span, _) in &mut out {
        let text = chars.get(span.start..span.end).unwrap_or_default();
        let word = text.rsplit(|c| *c == ' ').next().unwrap_or_default();
        if let [before @ .., '.' | ',' | ';' | ':'] = word
            && before.iter().any(|c| c.is_alphanumeric())
            && !before.contains(&'.')
        {
            span.end -= 1;
        }
    }
    out
}

/// May a reader follow a link there? Not to scripts and files.
pub(crate) fn is_safe_target(uri: &str) -> bool {
    const SCHEMES: [&str; 5] = ["http://", "https://", "mailto:", "ftp://", "tel:"];
    SCHEMES.iter().any(|s| uri.get(..s.len()).is_some_and(|u| u.eq_ignore_ascii_case(s)))
}

/// A link target in which nothing ends the target.
fn target(uri: &str) -> String {
    let mut out = String::with_capacity(uri.len());
    for c in uri.chars() {
        match c {
            ' ' => out.push_str("%20"),
            '(' => out.push_str("%28"),
            ')' => out.push_str("%29"),
            '<' => out.push_str("%3C"),
            '>' => out.push_str("%3E"),
            '\\' => out.push_str("%5C"),
            c if acts_on_terminals(c) || c.is_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

fn written(
    chars: &[char],
    marks: &[Mark<'_>],
    spans: &[(LinkSpan, &str)],
    tag: impl Fn(&str, bool) -> String,
) -> String {
    let mut out = String::with_capacity(chars.len() + 16);
    let mut spans = spans.iter().filter(|(span, uri)| {
        let text: String = chars[span.start.min(chars.len())..span.end.min(chars.len())].iter().collect();
        text != *uri
    });
    let mut next = spans.next();
    for (at, (&c, mark)) in chars.iter().zip(marks).enumerate() {
        if let Some((span, uri)) = next
            && span.start == at
        {
            out.push_str(&tag(uri, false));
        }
        match mark {
            Mark::Plain => out.push(c),
            Mark::Backslash => out.extend(['\\', c]),
            Mark::As(text) => out.push_str(text),
            Mark::Formula(latex) => out.extend(["$", &inert(latex), "$"]),
        }
        if let Some((span, uri)) = next
            && span.end == at + 1
        {
            out.push_str(&tag(uri, true));
            next = spans.next();
        }
    }
    out
}

/// A run of one delimiter character and what it may do.
struct Delimiter {
    start: usize,
    end: usize,
    opens: bool,
    closes: bool,
}

fn delimiters(chars: &[char], mark: char) -> Vec<Delimiter> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        if chars[at] != mark {
            at += 1;
            continue;
        }
        let start = at;
        while at < chars.len() && chars[at] == mark {
            at += 1;
        }
        let before = start.checked_sub(1).map_or(' ', |k| chars[k]);
        let after = chars.get(at).copied().unwrap_or(' ');
        let punctuation = |c: char| !c.is_alphanumeric() && !c.is_whitespace();
        let left = !after.is_whitespace() && (!punctuation(after) || !before.is_alphanumeric());
        let right = !before.is_whitespace() && (!punctuation(before) || !after.is_alphanumeric());
        // Underscores do not emphasise inside words.
        let (opens, closes) = match mark {
            '_' => (left && (!right || punctuation(before)), right && (!left || punctuation(after))),
            _ => (left, right),
        };
        out.push(Delimiter { start, end: at, opens, closes });
    }
    out
}

/// Emphasis, strike-through, code and formulas need two delimiters: without a partner they are left alone.
fn mark_pairs(chars: &[char], formulas: bool, marks: &mut [Mark<'_>]) {
    for mark in ['*', '_', '~'] {
        let runs = delimiters(chars, mark);
        let (Some(first), Some(last)) =
            (runs.iter().position(|r| r.opens), runs.iter().rposition(|r| r.closes))
        else {
            continue;
        };
        for run in runs.iter().take(last + 1).skip(first).filter(|r| first < last && (r.opens || r.closes)) {
            marks[run.start..run.end].fill(Mark::Backslash);
        }
    }
    for (mark, pair) in
        [('`', chars.iter().filter(|&&c| c == '`').count() > 1), ('$', formulas || formula(chars))]
    {
        for (c, out) in chars.iter().zip(marks.iter_mut()) {
            if pair && *c == mark {
                *out = Mark::Backslash;
            }
        }
    }
}

/// Would some dollar signs be read as the bounds of a formula?
fn formula(chars: &[char]) -> bool {
    let dollars: Vec<usize> = (0..chars.len()).filter(|&k| chars[k] == '$').collect();
    let before = |k: usize| k.checked_sub(1).map_or(' ', |k| chars[k]);
    let after = |k: usize| chars.get(k + 1).copied().unwrap_or(' ');
    let opens = |k: usize| !after(k).is_whitespace() && !before(k).is_alphanumeric();
    let closes = |k: usize| !before(k).is_whitespace() && !after(k).is_alphanumeric();
    let double = dollars.windows(2).filter(|w| w[1] == w[0] + 1).count();
    let (first, last) = (dollars.iter().find(|&&k| opens(k)), dollars.iter().rfind(|&&k| closes(k)));
    double > 1 || matches!((first, last), (Some(first), Some(last)) if first < last)
}

/// Characters that mean something on their own.
fn mark_singles(chars: &[char], marks: &mut [Mark<'_>]) {
    for (at, &c) in chars.iter().enumerate() {
        let rest = &chars[at + 1..];
        let mark = match c {
            '\\' if rest.first().is_none_or(char::is_ascii_punctuation) => Mark::Backslash,
            // At the start of a line `<script` opens a block of HTML without being closed.
            '<' if rest.first().is_some_and(|n| n.is_ascii_alphabetic() || matches!(n, '/' | '!' | '?')) => {
                Mark::As("&lt;")
            }
            '&' if entity(rest) => Mark::As("&amp;"),
            ']' if matches!(rest.first(), Some('(')) && chars[..at].contains(&'[') => Mark::Backslash,
            _ => continue,
        };
        marks[at] = mark;
    }
}

fn entity(rest: &[char]) -> bool {
    let name = rest.iter().take(32).take_while(|c| c.is_ascii_alphanumeric() || **c == '#').count();
    name > 0 && rest.get(name) == Some(&';')
}

/// Brackets inside a link's text.
fn mark_brackets(chars: &[char], span: &LinkSpan, marks: &mut [Mark<'_>]) {
    for at in span.start..span.end.min(chars.len()) {
        if matches!(chars[at], '[' | ']') {
            marks[at] = Mark::Backslash;
        }
    }
}

/// What would open another block than a paragraph. Up to three digits may: they number the paragraph, and a list shows them.
fn mark_block_start(chars: &[char], at: usize, marks: &mut [Mark<'_>]) {
    let Some(block) = chars.get(at..) else { return };
    let Some(&first) = block.first() else { return };
    let run = block.iter().take_while(|&&c| c == first).count();
    let ends = |k: usize| block.get(k).is_none_or(|c| c.is_whitespace());
    let ruler =
        block.iter().all(|&c| c == first || c == ' ') && block.iter().filter(|&&c| c == first).count() > 2;
    let digits = block.iter().take_while(|c| c.is_ascii_digit()).count();
    let opens = match first {
        '#' => run <= 6 && ends(run),
        '>' => true,
        '+' => ends(1),
        '-' | '*' | '_' => ruler || first != '_' && ends(1),
        '=' => ruler,
        '~' | '`' => run > 2,
        '[' => block.windows(2).any(|w| w == [']', ':']),
        _ => false,
    };
    if opens {
        marks[at] = Mark::Backslash;
    } else if (4..=9).contains(&digits)
        && matches!(block[digits..].first(), Some('.' | ')'))
        && ends(digits + 1)
    {
        marks[at + digits] = Mark::Backslash;
    }
}

/// A heading ends at its last character that is not a `#` after a space.
fn mark_heading_end(chars: &[char], marks: &mut [Mark<'_>]) {
    let tail = chars.iter().rev().take_while(|&&c| c == '#').count();
    let from = chars.len() - tail;
    if tail > 0 && from.checked_sub(1).is_none_or(|k| chars[k] == ' ') {
        marks[from] = Mark::Backslash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;
    use crate::page::Source;

    fn paragraph(text: &str) -> String {
        inline(&Composed::whole(text, Source::TextLayer, 1.0), &[], BlockStart::At(0))
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        for text in [
            "It costs $5 and 3 * 4 = 12, snake_case_name, a < b > c, AT&T, see [1] (and [2]).",
            "C:\\path is a #1 choice; 50 % - or so + more ~ 3",
            "-5 degrees, #hashtag, 3.14 is pi, +49 30 1234",
            "155. A numbered paragraph",
        ] {
            assert_eq!(paragraph(text), text);
        }
    }

    #[test]
    fn what_would_open_a_block_is_escaped() {
        let got: Vec<String> =
            ["# no", "> no", "+ no", "- no", "1984. A year", "---", "[a]: b", "```"].map(paragraph).into();
        assert_eq!(
            got,
            ["\\# no", "\\> no", "\\+ no", "\\- no", "1984\\. A year", "\\---", "\\[a]: b", "\\`\\`\\`"]
        );
    }

    #[test]
    fn what_would_format_text_is_escaped() {
        assert_eq!(paragraph("a *b* c"), "a \\*b\\* c");
        assert_eq!(paragraph("__init__ and _x_"), "\\_\\_init\\_\\_ and \\_x\\_");
        assert_eq!(paragraph("5 * 3 * 2 and note*"), "5 * 3 * 2 and note*");
        assert_eq!(
            paragraph("`a` and <b>bold</b> &amp; \\* end"),
            "\\`a\\` and &lt;b>bold&lt;/b> &amp;amp; \\\\* end"
        );
        assert_eq!(paragraph("<script"), "&lt;script");
        assert_eq!(paragraph("<!-- a"), "&lt;!-- a");
        assert_eq!(paragraph("$x$ and [a](b)"), "\\$x\\$ and [a\\](b)");
    }

    #[test]
    fn a_heading_keeps_its_last_hash() {
        let heading = |t| inline(&Composed::whole(t, Source::Ocr, 1.0), &[], BlockStart::Nowhere);
        assert_eq!(
            (heading("F #"), heading("F#"), heading("# F")),
            ("F \\#".into(), "F#".into(), "# F".into())
        );
    }

    #[test]
    fn a_link_over_a_line_end_is_one_and_leaves_punctuation_to_the_sentence() {
        let link = |uri: &str| Link { bbox: Rect::default(), uri: uri.into() };
        let mut text = Composed::whole("of King of the English, then U.S. law", Source::TextLayer, 1.0);
        let links = [link("https://a.org/e"), link("https://a.org/e"), link("https://a.org/u")];
        text.links = [(3, 10, 0), (11, 23, 1), (29, 33, 2)]
            .map(|(start, end, link)| LinkSpan { start, end, link })
            .into();
        assert_eq!(
            inline(&text, &links, BlockStart::At(0)),
            "of [King of the English](https://a.org/e), then [U.S.](https://a.org/u) law"
        );
    }

    #[test]
    fn links_keep_their_target_and_unsafe_ones_only_their_text() {
        let link = |uri: &str| Link { bbox: Rect::default(), uri: uri.into() };
        let mut text = Composed::whole("see here now", Source::TextLayer, 1.0);
        text.links = vec![LinkSpan { start: 4, end: 8, link: 0 }];
        let links = [link("https://a.org/x (1)")];
        assert_eq!(inline(&text, &links, BlockStart::At(0)), "see [here](https://a.org/x%20%281%29) now");
        assert_eq!(html(&text, &links), "see <a href=\"https://a.org/x (1)\">here</a> now");
        let lines = [link("https://a.org/\n\n[c](javascript:x)\u{202e}")];
        assert_eq!(html(&text, &lines), "see <a href=\"https://a.org/[c](javascript:x)\">here</a> now");
        assert_eq!(inline(&text, &[link("javascript:x")], BlockStart::At(0)), "see here now");
        assert_eq!(inline(&text, &[], BlockStart::At(0)), "see here now");
    }
}
