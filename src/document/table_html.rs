//! HTML tables that models write -> cells. Everything but cells, spans and text is dropped.

use crate::characters::acts_on_terminals;
use crate::document::composed::Composed;
use crate::document::grid::GridCell;
use crate::page::Source;

/// Rows, columns and spans past these are not read.
const MOST: usize = 5_000;

/// Cells of the first table in some HTML; none if there is no table.
pub(crate) fn cells(html: &str, confidence: f32) -> Vec<GridCell> {
    let mut reader = TableReader::default();
    for piece in pieces(html) {
        match piece {
            Piece::Tag { name, attributes } => {
                if !reader.tag(&name, attributes) {
                    break;
                }
            }
            Piece::Text(text) => reader.text(&text),
        }
    }
    reader.finish(confidence)
}

/// Text without tags; block ends become line ends.
pub(crate) fn plain(html: &str) -> String {
    let mut out = String::new();
    for piece in pieces(html) {
        match piece {
            Piece::Text(text) => out.push_str(&text),
            Piece::Tag { name, .. } if matches!(name.as_str(), "br" | "/p" | "/div" | "/li" | "/tr") => {
                out.push('\n');
            }
            Piece::Tag { name, .. } if matches!(name.as_str(), "/td" | "/th") => out.push('\t'),
            Piece::Tag { .. } => {}
        }
    }
    out.trim().to_string()
}

pub(crate) enum Piece<'a> {
    Tag { name: String, attributes: &'a str },
    Text(String),
}

/// HTML as tags and text, entities decoded. Tag names are lower case.
pub(crate) fn pieces(html: &str) -> Vec<Piece<'_>> {
    let mut out = Vec::new();
    let mut rest = html;
    while !rest.is_empty() {
        let opens = |s: &str| s[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '!');
        if rest.starts_with('<')
            && opens(rest)
            && let Some(end) = rest.find('>')
        {
            let inner = &rest[1..end];
            let name_len = inner.find(|c: char| c.is_whitespace()).unwrap_or(inner.len());
            let name = inner[..name_len].trim_end_matches('/').to_ascii_lowercase();
            out.push(Piece::Tag { name, attributes: &inner[name_len..] });
            rest = &rest[end + 1..];
            continue;
        }
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let end = rest[first..].find('<').map_or(rest.len(), |at| at + first);
        out.push(Piece::Text(decoded(&rest[..end])));
        rest = &rest[end..];
    }
    out
}

/// Text with the common entities decoded.
fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.char_indices().take(12).find(|&(_, c)| c == ';').map(|(k, _)| k);
        match end.and_then(|end| Some((end, entity(&rest[1..end])?))) {
            Some((end, c)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn entity(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "times" => '×',
        "ndash" => '–',
        "mdash" => '—',
        _ => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            char::from_u32(code.ok()?)
                .map(|c| if c.is_whitespace() { ' ' } else { c })
                .filter(|&c| !acts_on_terminals(c))?
        }
    })
}

#[derive(Default)]
struct TableReader {
    begun: bool,
    /// Rows begun so far.
    rows: usize,
    col: usize,
    /// Column -> first row that is free again.
    taken: Vec<usize>,
    open: Option<(GridCell, String)>,
    done: Vec<(GridCell, String)>,
    in_head: bool,
}

impl TableReader {
    /// Reads a tag; false at the table's end.
    fn tag(&mut self, name: &str, attributes: &str) -> bool {
        match name {
            "table" => self.begun = true,
            "/table" => {
                self.close();
                return !self.begun;
            }
            "thead" => self.in_head = true,
            "/thead" => self.in_head = false,
            "tr" if self.begun => {
                self.close();
                self.rows += 1;
                self.col = 0;
            }
            "td" | "th" if self.begun => self.cell(name == "th" || self.in_head, attributes),
            "/td" | "/th" | "/tr" => self.close(),
            "br" | "/p" | "/li" => {
                if let Some((_, text)) = &mut self.open {
                    text.push('\n');
                }
            }
            _ => {}
        }
        true
    }

    fn text(&mut self, text: &str) {
        if let Some((_, own)) = &mut self.open {
            // Line ends of the source are spaces; only `<br>` and its like part lines.
            own.push_str(&text.replace(['\n', '\r', '\t'], " "));
        }
    }

    fn cell(&mut self, header: bool, attributes: &str) {
        self.close();
        self.rows = self.rows.max(1);
        let row = self.rows - 1;
        while self.taken.get(self.col).is_some_and(|&free| free > row) {
            self.col += 1;
        }
        let (rows, cols) = (span(attributes, "rowspan"), span(attributes, "colspan"));
        if self.col + cols > MOST {
            return;
        }
        self.taken.resize(self.taken.len().max(self.col + cols), 0);
        self.taken[self.col..self.col + cols].fill(row + rows);
        let cell = GridCell { row, col: self.col, rows, cols, header, content: Composed::default() };
        self.open = Some((cell, String::new()));
        self.col += cols;
    }

    fn close(&mut self) {
        self.done.extend(self.open.take());
    }

    fn finish(mut self, confidence: f32) -> Vec<GridCell> {
        self.close();
        let content = |text: &str| {
            let lines: Vec<String> =
                text.split('\n').map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
            let full: Vec<&str> = lines.iter().map(String::as_str).filter(|l| !l.is_empty()).collect();
            Composed::whole(&full.join("\n"), Source::Model, confidence)
        };
        self.done.into_iter().map(|(cell, text)| GridCell { content: content(&text), ..cell }).collect()
    }
}

/// A `rowspan` or `colspan`, at least 1.
pub(crate) fn span(attributes: &str, name: &str) -> usize {
    let lower = attributes.to_ascii_lowercase();
    let value = lower.find(name).map_or("", |at| &lower[at + name.len()..]);
    let value = value.trim_start_matches([' ', '=', '"', '\'']);
    let digits = value.find(|c: char| !c.is_ascii_digit()).unwrap_or(value.len());
    value[..digits].parse::<usize>().unwrap_or(1).clamp(1, MOST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::document::grid::Grid;

    #[test]
    fn spans_headers_and_entities_are_read() {
        let html = "<table border=1><thead><tr><td colspan='2'>A &amp; B</td></tr></thead>\
                    <tr><td rowspan=2>x<br/>y<td><b>1</b> &lt; 2</td></tr><tr><td>3</table>";
        let grid = Grid::new(cells(html, 1.0)).expect("a grid");
        insta::assert_snapshot!(grid.html(&[]), @r#"
        <table>
        <tr><th colspan="2">A &amp; B</th></tr>
        <tr><td rowspan="2">x<br>y</td><td>1 &lt; 2</td></tr>
        <tr><td>3</td></tr>
        </table>
        "#);
    }

    #[test]
    fn scripts_cannot_stay() {
        let grid = Grid::new(cells(
            "<table><tr><td><script>a</script><img src=x onerror=y>b</td></tr></table>",
            1.0,
        ));
        assert_eq!(grid.expect("a grid").html(&[]), "<table>\n<tr><td>ab</td></tr>\n</table>");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(html in "(<table>|<tr>|<td|</td>| rowspan=9| colspan=\"99999999\"|>|<|&|&#x41;|é|a){0,40}") {
            let _ = Grid::new(cells(&html, 1.0)).map(|g| g.html(&[]));
            let _ = plain(&html);
        }
    }
}
