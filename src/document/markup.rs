//! Markdown that models write -> blocks. Only the forms that published models use; the rest stays a paragraph.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::document::escape::is_safe_target;

/// A block of Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// Level and text.
    Heading(u8, String),
    /// The mark (`-` or `3.`) and the text.
    Item(String, String),
    /// A GitHub table: rows of cells, the first is the header.
    Table(Vec<Vec<String>>),
    /// An HTML table.
    Html(String),
    Formula(String),
    Code(String),
    Paragraph(String),
}

static ITEM: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*([-*+]|\d{1,9}[.)])\s+(.*)$").expect("a constant pattern"));
static HEADING: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$").expect("a constant pattern"));
static RULER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*\|?(\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?\s*$").expect("a constant pattern"));
static IMAGE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"!\[[^\]]*\]\([^)]*\)").expect("a constant pattern"));
static LINK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[([^\]]*)\]\(([^)]*)\)").expect("a constant pattern"));
static TYPE_TAG: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^<(/?(b|i|u|em|strong|sub|sup)|br ?/?)>").expect("a constant pattern"));

/// Splits Markdown into blocks.
pub(crate) fn blocks(markdown: &str) -> Vec<Block> {
    let lines: Vec<&str> = markdown.lines().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at].trim();
        let (block, next) = if line.is_empty() {
            (None, at + 1)
        } else if let Some(fence) = fence(line) {
            let end = find(&lines, at + 1, |l| l.trim().starts_with(fence));
            (Some(Block::Code(lines[at + 1..end].join("\n"))), end + 1)
        } else if let Some(close) = formula_end(line) {
            formula(&lines, at, close)
        } else if line.to_ascii_lowercase().starts_with("<table") {
            let end = find(&lines, at, |l| l.to_ascii_lowercase().contains("</table>"));
            (Some(Block::Html(lines[at..(end + 1).min(lines.len())].join("\n"))), end + 1)
        } else if line.starts_with('|') && lines.get(at + 1).is_some_and(|l| RULER.is_match(l)) {
            let end = find(&lines, at, |l| !l.trim_start().starts_with('|'));
            (
                Some(Block::Table(
                    lines[at..end].iter().filter(|l| !RULER.is_match(l)).map(|l| row(l)).collect(),
                )),
                end,
            )
        } else if let Some(found) = HEADING.captures(line) {
            (Some(Block::Heading(found[1].len() as u8, plain(&found[2]))), at + 1)
        } else {
            let begins = |l: &str| {
                let l = l.trim();
                l.is_empty()
                    || HEADING.is_match(l)
                    || ITEM.is_match(l)
                    || fence(l).is_some()
                    || formula_end(l).is_some()
            };
            let end = find(&lines, at + 1, begins);
            (text_block(&lines[at..end].join("\n")), end)
        };
        out.extend(block);
        at = next;
    }
    out
}

fn find(lines: &[&str], from: usize, wanted: impl Fn(&str) -> bool) -> usize {
    (from..lines.len()).find(|&k| wanted(lines[k])).unwrap_or(lines.len())
}

fn fence(line: &str) -> Option<&'static str> {
    ["```", "~~~"].into_iter().find(|f| line.starts_with(f))
}

fn formula_end(line: &str) -> Option<&'static str> {
    [("$$", "$$"), ("\\[", "\\]")]
        .into_iter()
        .find(|(open, _)| line.starts_with(open))
        .map(|(_, close)| close)
}

fn formula(lines: &[&str], at: usize, close: &str) -> (Option<Block>, usize) {
    let first = &lines[at].trim()[2..];
    if let Some(end) = first.find(close) {
        return (Some(Block::Formula(latex(&first[..end]))), at + 1);
    }
    let end = find(lines, at + 1, |l| l.contains(close));
    let last = lines.get(end).map_or("", |l| &l[..l.find(close).unwrap_or(0)]);
    let body = [&[first], &lines[(at + 1).min(end)..end], &[last]].concat().join("\n");
    (Some(Block::Formula(latex(&body))), end + 1)
}

fn text_block(text: &str) -> Option<Block> {
    let text = IMAGE.replace_all(text, "");
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match ITEM.captures(&one_line) {
        Some(found) => Some(Block::Item(found[1].to_string(), found[2].to_string())),
        None if one_line.is_empty() => None,
        None => Some(Block::Paragraph(one_line)),
    }
}

fn row(line: &str) -> Vec<String> {
    let line = line.trim();
    let inner = line.strip_prefix('|').unwrap_or(line);
    let inner = inner.strip_suffix('|').filter(|s| !s.ends_with('\\')).unwrap_or(inner);
    let mut out = vec![String::new()];
    let mut escaped = false;
    for c in inner.chars() {
        match c {
            '|' if !escaped => out.push(String::new()),
            c => {
                if let Some(cell) = out.last_mut() {
                    if c == '|' {
                        cell.pop();
                    }
                    cell.push(c);
                }
            }
        }
        escaped = c == '\\' && !escaped;
    }
    out.iter().map(|cell| plain(cell.trim())).collect()
}

/// Markdown without emphasis, links and escapes.
pub(crate) fn plain(markdown: &str) -> String {
    let text = LINK.replace_all(markdown, "$1");
    let mut out = String::with_capacity(text.len());
    let source = text.replace("**", "");
    let mut rest = source.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' if rest.peek().is_some_and(char::is_ascii_punctuation) => out.extend(rest.next()),
            '`' => {}
            c => out.push(c),
        }
    }
    out.trim().to_string()
}

/// LaTeX without the marks around it, and without what would end the block that it is written into.
pub(crate) fn latex(source: &str) -> String {
    let mut text = source.trim();
    for (open, close) in [("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$")] {
        if let Some(inner) = text.strip_prefix(open).and_then(|t| t.strip_suffix(close)) {
            text = inner.trim();
            break;
        }
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|l| !l.trim().is_empty()).collect();
    inert(&lines.join("\n").replace("$$", "")).lines().map(unfenced).collect::<Vec<_>>().join("\n")
}

/// LaTeX in which a reader of Markdown finds no tag and no link. Spaces mean nothing in a formula.
pub(crate) fn inert(latex: &str) -> String {
    let mut parts = latex.split('<');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str(if part.starts_with(opens_tag) { "< " } else { "<" });
        out.push_str(part);
    }
    out.replace("](", "] (")
}

/// A line of LaTeX that opens no block of code: an empty group sets nothing.
fn unfenced(line: &str) -> Cow<'_, str> {
    match fence(line.trim_start()) {
        Some(_) => format!("{{}}{}", line.trim_start()).into(),
        None => line.into(),
    }
}

/// Closes no bracket before a target that a reader may not follow, as is left of links in links.
fn without_links(text: &str) -> String {
    let mut parts = text.split("](");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let escaped = out.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1;
        out.push_str(if is_safe_target(part) || escaped { "](" } else { "\\](" });
        out.push_str(part);
    }
    out
}

/// After `<`: does a tag, a comment or a declaration begin?
fn opens_tag(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')
}

/// Markdown that a model wrote, without what could act: of HTML it keeps bare tags that set type, links lead only to where
/// a reader may go.
pub(crate) fn harmless(markdown: &str) -> String {
    let text = LINK.replace_all(markdown, |link: &Captures<'_>| match is_safe_target(&link[2]) {
        true => link[0].to_owned(),
        false => link[1].to_owned(),
    });
    let text = without_links(&text);
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let kept = match TYPE_TAG.find(rest) {
            Some(tag) => tag.end(),
            None => usize::from(!rest[1..].starts_with(opens_tag)),
        };
        out.push_str(if kept > 0 { &rest[..kept] } else { "&lt;" });
        rest = &rest[kept.max(1)..];
    }
    out.push_str(rest);
    // A line that would say where a reference leads.
    out.replace("]:", "\\]:")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_that_acts_is_left() {
        assert_eq!(harmless("a<br>b <sup>2</sup> x < y"), "a<br>b <sup>2</sup> x < y");
        assert_eq!(
            harmless("<tr<script>a</script> <b onclick=x>"),
            "&lt;tr&lt;script>a&lt;/script> &lt;b onclick=x>"
        );
        assert_eq!(
            harmless("[a](javascript:x) [b](https://c.org) <javascript:x> <!--"),
            "a [b](https://c.org) &lt;javascript:x> &lt;!--"
        );
        assert_eq!(harmless("[[a](javascript:x)](javascript:y)"), "[a\\](javascript:y)");
        assert_eq!(harmless("[a]: javascript:x"), "[a\\]: javascript:x");
        assert_eq!(latex("$$ a<b <script> $$"), "a< b < script>");
    }

    #[test]
    fn each_form_becomes_its_block() {
        let text = "# Title #\nA *first*\nline\n\n- one\n  more\n- two\n3. three\n\n| a | b\\|c |\n|---|:-:|\n| 1 | **2** |\n\n\
                    $$x^2$$\n\\[\ny\n\\]\n```py\ncode\n```\n<table>\n<tr></tr></table>\n![](x.png)";
        let s = String::from;
        assert_eq!(
            blocks(text),
            [
                Block::Heading(1, s("Title")),
                Block::Paragraph(s("A *first* line")),
                Block::Item(s("-"), s("one more")),
                Block::Item(s("-"), s("two")),
                Block::Item(s("3."), s("three")),
                Block::Table(vec![vec![s("a"), s("b|c")], vec![s("1"), s("2")]]),
                Block::Formula(s("x^2")),
                Block::Formula(s("y")),
                Block::Code(s("code")),
                Block::Html(s("<table>\n<tr></tr></table>")),
            ]
        );
    }

    #[test]
    fn latex_loses_its_marks() {
        assert_eq!(latex(" $$ a \n\n b $$ "), "a\n b");
        assert_eq!((latex("\\[x\\]"), latex("a $$ b")), ("x".into(), "a  b".into()));
        assert_eq!(latex("a\n ```\n~~~x\n~~y"), "a\n{}```\n{}~~~x\n~~y");
        assert_eq!(latex("[a](javascript:x)"), "[a] (javascript:x)");
    }

    proptest! {
        #[test]
        fn any_markdown_is_split_without_panic(text in "(\\$\\$|\\\\\\[|\\||---|```|# |- |<table|\n|a|é|\\\\){0,30}") {
            for block in blocks(&text) {
                if let Block::Paragraph(text) = block {
                    let _ = plain(&text);
                }
            }
        }
    }
}
