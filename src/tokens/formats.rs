//! Content without places: plain text, Markdown, HTML tables, LaTeX. What published models write.

use std::sync::LazyLock;

use regex::Regex;

use crate::characters::acts_on_terminals;
use crate::graphs::TokenId;
use crate::graphs::manifest::ContentFormat;
use crate::lines::is_cjk;
use crate::page::{Cell, Markup, Region, Word};

use super::grammar::Grammar;

/// Text of a branch's tokens in `format`; `None` where the model says that there is nothing to read, or wrote nothing. Text ends
/// at the first token that ends a branch or that belongs to the trunk (a leaked marker).
pub fn read(ids: &[TokenId], format: ContentFormat, grammar: &Grammar) -> Option<Markup> {
    let end = ids.iter().position(|&id| grammar.is_marker(id)).unwrap_or(ids.len());
    let decoded = grammar.vocabulary.decode(&ids[..end]).ok()?;
    let text = printable(decoded.trim());
    let says_nothing = |nothing: &String| match nothing.strip_suffix('*') {
        Some(start) => text.starts_with(start),
        None => *nothing == text,
    };
    if text.is_empty() || grammar.no_content().iter().any(says_nothing) {
        return None;
    }
    Some(match format {
        ContentFormat::Text | ContentFormat::GroundedWords | ContentFormat::GroundedSteps => {
            Markup::Text(text)
        }
        ContentFormat::Markdown => Markup::Markdown(text),
        ContentFormat::Html => Markup::Html(text),
        ContentFormat::Latex => Markup::Latex(without_tail(text)),
    })
}

/// A model's text without the control and direction characters that its vocabulary may hold; line ends and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars().filter(|&c| !acts_on_terminals(c) || matches!(c, '\n' | '\t')).collect()
}

/// What weak models fill formulas with when they lose their place.
static TAIL: LazyLock<Regex> = LazyLock::new(|| {
    let filler = r"\\(?:q?quad|[lcd]?dots|,|;|!|hspace\{[^{}]*\})|[~.]";
    Regex::new(&format!(r"(?:\s*(?:{filler})){{4,}}\s*((?:\\\]|\$\$|\\\))?\s*)$"))
        .expect("a constant pattern")
});

/// A formula without a run of four or more fillers at its end; a closing delimiter stays.
fn without_tail(formula: String) -> String {
    match TAIL.captures(&formula) {
        Some(found) => {
            let start = found.get(0).map_or(0, |tail| tail.start());
            format!("{}{}", &formula[..start], found.get(1).map_or("", |close| close.as_str()))
        }
        None => formula,
    }
}

/// What a model would write for the region in `format`, without an end token; `None` where the region does not say.
pub fn text_of(region: &Region, format: ContentFormat) -> Option<String> {
    let text = match (&region.markup, &region.cells) {
        (Some(Markup::Text(s) | Markup::Markdown(s) | Markup::Html(s) | Markup::Latex(s)), _) => s.clone(),
        (None, Some(cells)) if format == ContentFormat::Html => html_of(cells),
        (None, Some(cells)) => rows_of(cells).map(|row| row.join("\t")).collect::<Vec<_>>().join("\n"),
        (None, None) => joined(&region.words),
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Words with a space between them, except where glued, and between characters of scripts without spaces.
fn joined(words: &[Word]) -> String {
    let mut text = String::new();
    for word in words {
        let spaceless = |c: Option<char>| c.is_some_and(is_cjk);
        let tight = word.glue || spaceless(text.chars().next_back()) && spaceless(word.text.chars().next());
        if !text.is_empty() && !tight {
            text.push(' ');
        }
        text.push_str(&word.text);
    }
    text
}

/// Cells in the order of rows and columns.
fn sorted(cells: &[Cell]) -> Vec<&Cell> {
    let mut sorted: Vec<&Cell> = cells.iter().collect();
    sorted.sort_by_key(|cell| (cell.row, cell.col));
    sorted
}

/// Text of each row's cells.
fn rows_of(cells: &[Cell]) -> impl Iterator<Item = Vec<String>> {
    let sorted = sorted(cells);
    let rows: Vec<Vec<String>> = sorted
        .chunk_by(|a, b| a.row == b.row)
        .map(|row| row.iter().map(|cell| joined(&cell.words)).collect())
        .collect();
    rows.into_iter()
}

/// `<table><tr><td>..</td></tr></table>`, spans as attributes.
fn html_of(cells: &[Cell]) -> String {
    let mut html = String::from("<table>");
    for row in sorted(cells).chunk_by(|a, b| a.row == b.row) {
        html.push_str("<tr>");
        for cell in row {
            html.push_str("<td");
            for (name, span) in [("rowspan", cell.rows), ("colspan", cell.cols)] {
                if span > 1 {
                    html.push_str(&format!(" {name}=\"{span}\""));
                }
            }
            html.push('>');
            html.push_str(
                &joined(&cell.words).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
            );
            html.push_str("</td>");
        }
        html.push_str("</tr>");
    }
    html.push_str("</table>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;
    use crate::lines::tests::word;
    use crate::page::Kind;
    use crate::tokens::grammar::tests::tiny;

    fn region(kind: Kind) -> Region {
        Region {
            kind,
            score: 1.0,
            bbox: Rect::new(0.0, 0.0, 100.0, 50.0),
            words: Vec::new(),
            cells: None,
            markup: None,
            stop: None,
        }
    }

    fn cell(row: usize, col: usize, cols: usize, text: &str) -> Cell {
        let words = if text.is_empty() { Vec::new() } else { vec![word(text, 0.0, 0.0, 9.0, 9.0)] };
        Cell { row, col, rows: 1, cols, bbox: Rect::default(), words, header: false }
    }

    #[test]
    fn text_comes_back_up_to_the_end_or_a_leaked_marker() {
        let grammar = tiny();
        let mut ids = grammar.vocabulary.encode("x=1").unwrap();
        assert_eq!(read(&ids, ContentFormat::Latex, &grammar), Some(Markup::Latex("x=1".into())));
        ids.push(104);
        ids.extend(grammar.vocabulary.encode("leak").unwrap());
        assert_eq!(read(&ids, ContentFormat::Text, &grammar), Some(Markup::Text("x=1".into())));
        assert_eq!(read(&[102], ContentFormat::Text, &grammar), None);
        // Special tokens are kept: they are the model's markup.
        assert_eq!(read(&[100], ContentFormat::Markdown, &grammar), Some(Markup::Markdown("<unk>".into())));
    }

    #[test]
    fn fillers_at_the_end_of_a_formula_go() {
        let tidy = |formula: &str| without_tail(formula.to_owned());
        assert_eq!(tidy(r"\[ a \dots \quad \quad \dots \quad \]"), r"\[ a\]");
        assert_eq!(tidy(r"a + b \quad\quad\quad\quad\quad"), "a + b");
        assert_eq!(tidy(r"1, \dots, n \quad"), r"1, \dots, n \quad");
    }

    #[test]
    fn tables_become_html_with_spans() {
        let mut table = region(Kind::Table);
        table.cells = Some(vec![cell(1, 0, 1, "a<b"), cell(0, 0, 2, "head"), cell(1, 1, 1, "")]);
        let html = "<table><tr><td colspan=\"2\">head</td></tr><tr><td>a&lt;b</td><td></td></tr></table>";
        assert_eq!(text_of(&table, ContentFormat::Html).as_deref(), Some(html));
        assert_eq!(text_of(&table, ContentFormat::Text).as_deref(), Some("head\na<b\t"));
    }

    #[test]
    fn words_join_with_spaces_where_the_script_has_them() {
        let mut text = region(Kind::Text);
        assert_eq!(text_of(&text, ContentFormat::Text), None);
        text.words = ["one", "two", "中", "文"].map(|t| word(t, 0.0, 0.0, 9.0, 9.0)).to_vec();
        text.words[1].glue = true;
        assert_eq!(text_of(&text, ContentFormat::Text).as_deref(), Some("onetwo 中文"));
    }
}
