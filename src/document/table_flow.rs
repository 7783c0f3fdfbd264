//! Tables that go on on the next page: when two are one, and how their rows are put together.

use std::sync::LazyLock;

use regex::Regex;

use crate::document::composed::runs_from;
use crate::document::flow::DocumentElement;
use crate::document::{Element, ElementKind};

/// What captions of continued tables say, in the languages whose word for it is known here.
static CONTINUED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\bcont(inue[ds]?|inuation|['’.]?d)?\b|fortsetzung|\bsuite\b|continuaci[oó]n|continua[cç][aã]o|续|續")
        .expect("a constant pattern")
});

/// May this element stand between the halves of a table?
pub(crate) fn may_stand_between(element: &Element) -> bool {
    match element.kind {
        ElementKind::Caption => CONTINUED.is_match(&element.text),
        ElementKind::Figure | ElementKind::Chart => false,
        _ => true,
    }
}

/// Is `next` the rest of the table `open`? `heights`: of the two pages, points.
pub(crate) fn continues(open: &DocumentElement, next: &DocumentElement, heights: [f32; 2]) -> bool {
    let (page, end) = open.end();
    let begin = next.element.bbox;
    next.element.kind == ElementKind::Table
        && next.page == page + 1
        && end.y1 > 0.5 * heights[0]
        && begin.y0 < 0.5 * heights[1]
        && end.overlap_x(&begin) > 0.7 * end.width().max(begin.width())
        && columns(&open.element) > 1
        && columns(&open.element) == columns(&next.element)
        && (repeated_rows(&open.element, &next.element) > 0 || !new_header(&open.element, &next.element))
}

fn columns(element: &Element) -> usize {
    rows(&element.text).next().map_or(0, |row| row.split('\t').count())
}

fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n')
}

fn html_rows(element: &Element) -> Vec<&str> {
    element.html.iter().flat_map(|html| html.lines()).filter(|line| line.starts_with("<tr>")).collect()
}

/// Header rows of `next` that say the same as those of `open`.
fn repeated_rows(open: &Element, next: &Element) -> usize {
    let letters = |row: &str| {
        row.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect::<String>()
    };
    let html = html_rows(next);
    let same = rows(&open.text).zip(rows(&next.text)).map(|(a, b)| (letters(a), letters(b)));
    let count = same.take_while(|(a, b)| a == b && !a.is_empty()).count();
    // Never the whole table, and no row that reaches into the next.
    let count = count.min(rows(&next.text).count().saturating_sub(1)).min(4);
    (0..=count).rev().find(|&n| html[..n.min(html.len())].iter().all(|r| !r.contains("rowspan"))).unwrap_or(0)
}

/// Begins `next` with a header row of its own: marked as one, without figures, above rows with figures?
fn new_header(open: &Element, next: &Element) -> bool {
    let figures = |row: &str| row.contains(|c: char| c.is_numeric());
    let marked = |element: &Element| html_rows(element).first().is_some_and(|row| row.contains("<th"));
    let first = rows(&next.text).next().unwrap_or_default();
    marked(open) && marked(next) && !figures(first) && rows(&open.text).last().is_some_and(figures)
}

/// Appends the rows of `next`.
pub(crate) fn join(open: &mut DocumentElement, next: DocumentElement) {
    let drop = repeated_rows(&open.element, &next.element);
    let html = joined_html(&open.element, &next.element, drop);
    let github = |e: &Element| e.markdown.starts_with('|');
    open.element.markdown = if github(&open.element) && github(&next.element) {
        let more = next.element.markdown.lines().enumerate().filter(|(k, _)| *k != 1).map(|(_, line)| line);
        let lines: Vec<&str> = open.element.markdown.lines().chain(more.skip(drop)).collect();
        lines.join("\n")
    } else {
        html.clone()
    };
    open.element.html = Some(html);
    let dropped: usize = rows(&next.element.text).take(drop).map(|row| row.chars().count() + 1).sum();
    let rest: String = next.element.text.chars().skip(dropped).collect();
    open.element.text.push('\n');
    let start = open.element.text.chars().count();
    open.element.text.push_str(&rest);
    open.add_runs(runs_from(&next.element.runs, dropped), start);
    open.add_part(next, start);
}

fn joined_html(open: &Element, next: &Element, drop: usize) -> String {
    let mut out = String::from("<table>\n");
    let more = html_rows(next).into_iter().skip(drop).map(|row| {
        // A row in the middle of a table heads nothing.
        row.replace("<th>", "<td>").replace("<th ", "<td ").replace("</th>", "</td>")
    });
    for row in html_rows(open).into_iter().map(str::to_string).chain(more) {
        out.push_str(&row);
        out.push('\n');
    }
    out.push_str("</table>");
    out
}
