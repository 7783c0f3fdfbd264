//! DocTags, the page language of SmolDocling and granite-docling -> regions.
//!
//! ```text
//! <doctag><section_header_level_1><loc_40><loc_20><loc_300><loc_35>A heading</section_header_level_1>
//! <otsl><loc_40>..<ched>a<ched>b<nl><fcel>1<lcel><nl></otsl></doctag>
//! ```
//!
//! It is no XML: tags may stay open, and a new block ends the one before it.

use std::sync::LazyLock;

use regex::Regex;

use crate::geometry::Rect;
use crate::page::{Kind, Markup, Region, StopReason};

use super::otsl;
use super::pages::region;

static TAG: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"<(/?)([A-Za-z0-9_+#.-]{1,64})>").expect("a constant pattern"));

/// A block that is being read.
struct Open<'a> {
    tag: &'a str,
    kind: Kind,
    /// Coordinates seen so far.
    places: Vec<f32>,
    text: String,
}

/// Reads a page of `size` (px) whose boxes are on a grid of `grid` steps.
pub(super) fn read(text: &str, size: (f32, f32), grid: u32, stop: StopReason) -> Vec<Region> {
    let mut reader =
        Reader { size, grid: grid.max(1) as f32, stop, open: Vec::new(), list: Vec::new(), out: Vec::new() };
    let mut at = 0;
    for found in TAG.captures_iter(text) {
        let whole = found.get(0).expect("group 0 is the match");
        reader.text(&text[at..whole.start()]);
        at = whole.end();
        let name = found.get(2).map_or("", |name| name.as_str());
        if found[1].is_empty() { reader.opened(name) } else { reader.closed(name) }
    }
    reader.text(&text[at..]);
    while reader.open.last().is_some() {
        reader.finish();
    }
    reader.out
}

/// The kind of block that a tag starts; `None` for tags within blocks and for wrappers.
fn kind_of(tag: &str) -> Option<Kind> {
    Some(match tag {
        "text"
        | "paragraph"
        | "checkbox_selected"
        | "checkbox_unselected"
        | "smiles"
        | "form"
        | "key_value_region" => Kind::Text,
        "title" => Kind::Title,
        "list_item" => Kind::List,
        "caption" => Kind::Caption,
        "footnote" => Kind::Footnote,
        "formula" => Kind::Formula,
        "page_header" => Kind::Header,
        "page_footer" => Kind::Footer,
        "picture" => Kind::Figure,
        "chart" => Kind::Chart,
        "otsl" | "table" | "document_index" => Kind::Table,
        "code" => Kind::Code,
        "reference" => Kind::Reference,
        _ if tag.starts_with("section_header_level_") => Kind::Heading,
        _ => return None,
    })
}

struct Reader<'a> {
    size: (f32, f32),
    grid: f32,
    stop: StopReason,
    /// A block, and the caption within it.
    open: Vec<Open<'a>>,
    /// Lists around: the number of the last item, or 0 for lists without numbers.
    list: Vec<Option<usize>>,
    out: Vec<Region>,
}

impl<'a> Reader<'a> {
    fn text(&mut self, text: &str) {
        match self.open.last_mut() {
            Some(open) => open.text.push_str(text),
            None if text.trim().is_empty() => {}
            // Text outside of any block is not lost.
            None => self.push(Kind::Text, self.whole(), Some(Markup::Text(text.trim().to_owned()))),
        }
    }

    fn whole(&self) -> Rect {
        Rect::new(0.0, 0.0, self.size.0, self.size.1)
    }

    fn push(&mut self, kind: Kind, bbox: Rect, markup: Option<Markup>) {
        self.out.push(region(kind, bbox, markup, self.stop));
    }

    fn opened(&mut self, tag: &'a str) {
        if let Some(kind) = kind_of(tag) {
            let within = kind == Kind::Caption
                && self
                    .open
                    .last()
                    .is_some_and(|o| matches!(o.kind, Kind::Table | Kind::Figure | Kind::Chart | Kind::Code));
            while !within && self.open.last().is_some() {
                self.finish();
            }
            return self.open.push(Open { tag, kind, places: Vec::new(), text: String::new() });
        }
        match tag {
            "ordered_list" | "unordered_list" => {
                while self.open.last().is_some() {
                    self.finish();
                }
                self.list.push((tag == "ordered_list").then_some(0));
            }
            "page_break" | "doctag" | "inline" | "group" | "end_of_utterance" => {}
            _ => self.mark(tag),
        }
    }

    /// A tag within a block: a place, a cell, or one that says what the block is (the class of a picture, a language).
    fn mark(&mut self, tag: &str) {
        let Some(open) = self.open.last_mut() else { return };
        match tag.strip_prefix("loc_").and_then(|number| number.parse::<u32>().ok()) {
            Some(place) if open.places.len() < 4 => open.places.push((place as f32).min(self.grid)),
            Some(_) => {}
            None if otsl::is_cell(tag) => {
                // A cell ends a caption that was left open.
                if open.kind == Kind::Caption && self.open.len() > 1 {
                    self.finish();
                }
                if let Some(open) = self.open.last_mut() {
                    open.text += &format!("<{tag}>");
                }
            }
            None => {}
        }
    }

    fn closed(&mut self, tag: &str) {
        if matches!(tag, "ordered_list" | "unordered_list") {
            while self.open.last().is_some() {
                self.finish();
            }
            self.list.pop();
        } else if self.open.iter().any(|open| open.tag == tag) {
            while self.open.last().is_some_and(|open| open.tag != tag) {
                self.finish();
            }
            self.finish();
        }
    }

    /// Ends the innermost block.
    fn finish(&mut self) {
        let Some(open) = self.open.pop() else { return };
        let bbox = match open.places[..] {
            [x0, y0, x1, y1] => {
                let (x, y) = (self.size.0 / self.grid, self.size.1 / self.grid);
                Rect::new(x0.min(x1) * x, y0.min(y1) * y, x0.max(x1) * x, y0.max(y1) * y)
            }
            _ => self.whole(),
        };
        let text = open.text.trim();
        let markup = match open.kind {
            Kind::Figure => None,
            _ if text.is_empty() => return,
            Kind::Table | Kind::Chart => Some(Markup::Html(otsl::html(text))),
            Kind::Formula => Some(Markup::Latex(text.to_owned())),
            Kind::Heading => Some(Markup::Markdown(format!("{} {text}", "#".repeat(level(open.tag))))),
            Kind::List => Some(Markup::Text(self.item(text))),
            _ => Some(Markup::Text(checked(open.tag, text))),
        };
        self.push(open.kind, bbox, markup);
    }

    /// An item of a numbered list has its number, if the model did not write one.
    fn item(&mut self, text: &str) -> String {
        match self.list.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                if text.starts_with(|c: char| c.is_ascii_digit()) {
                    text.to_owned()
                } else {
                    format!("{number}. {text}")
                }
            }
            _ => text.to_owned(),
        }
    }
}

/// Level of a heading: below the title.
fn level(tag: &str) -> usize {
    let number = tag.rsplit('_').next().and_then(|number| number.parse::<usize>().ok()).unwrap_or(1);
    (number + 1).clamp(1, 6)
}

fn checked(tag: &str, text: &str) -> String {
    match tag {
        "checkbox_selected" => format!("☒ {text}"),
        "checkbox_unselected" => format!("☐ {text}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> Vec<(Kind, [f32; 4], Option<Markup>)> {
        let regions = read(text, (1000.0, 2000.0), 500, StopReason::End);
        regions.into_iter().map(|r| (r.kind, <[f32; 4]>::from(r.bbox), r.markup)).collect()
    }

    fn text(text: &str) -> Option<Markup> {
        Some(Markup::Text(text.into()))
    }

    #[test]
    fn blocks_have_kinds_boxes_and_text() {
        let page = "<doctag><page_header><loc_10><loc_5><loc_100><loc_15>Annual report</page_header>\n\
            <section_header_level_1><loc_10><loc_20><loc_90><loc_30>Results</section_header_level_1>\
            <formula><loc_1><loc_2><loc_3><loc_4>a^2</formula></doctag>";
        let read = read_all(page);
        assert_eq!(read[0], (Kind::Header, [20.0, 20.0, 200.0, 60.0], text("Annual report")));
        assert_eq!(read[1].2, Some(Markup::Markdown("## Results".into())));
        assert_eq!(read[2], (Kind::Formula, [2.0, 8.0, 6.0, 16.0], Some(Markup::Latex("a^2".into()))));
    }

    #[test]
    fn tags_may_stay_open() {
        let read = read_all(
            "<doctag><text><loc_1><loc_1><loc_9><loc_9>one<text><loc_2><loc_2><loc_8><loc_8>two<title>three",
        );
        let said: Vec<_> = read.iter().map(|(kind, _, markup)| (*kind, markup.clone())).collect();
        assert_eq!(
            said,
            [(Kind::Text, text("one")), (Kind::Text, text("two")), (Kind::Title, text("three"))]
        );
        assert_eq!(read[2].1, [0.0, 0.0, 1000.0, 2000.0], "without a box it is somewhere on the page");
    }

    #[test]
    fn boxes_stay_on_the_page() {
        let read = read_all("<text><loc_1><loc_inf><loc_nan><loc_2><loc_4294967295><loc_-3><loc_700>a");
        assert_eq!(read[0].1, [2.0, 8.0, 1000.0, 2000.0]);
    }

    #[test]
    fn a_tables_caption_is_a_region_of_its_own() {
        let read = read_all(
            "<otsl><loc_1><loc_2><loc_3><loc_4><caption><loc_1><loc_1><loc_3><loc_2>Table 1<ched>a<lcel><nl><fcel>1<fcel>2<nl></otsl>",
        );
        assert_eq!(read[0], (Kind::Caption, [2.0, 4.0, 6.0, 8.0], text("Table 1")));
        let html = "<table><tr><th colspan=\"2\">a</th></tr><tr><td>1</td><td>2</td></tr></table>";
        assert_eq!((read[1].0, read[1].2.clone()), (Kind::Table, Some(Markup::Html(html.into()))));
    }

    #[test]
    fn lists_code_and_pictures() {
        let read = read_all(
            "<ordered_list><list_item>first</list_item><list_item>7. seventh</list_item></ordered_list>\
             <unordered_list><list_item>dot</list_item></unordered_list>\
             <code><_Rust_>fn main() {}</code><picture><loc_1><loc_1><loc_2><loc_2><logo></picture>\
             <checkbox_selected>yes</checkbox_selected>stray",
        );
        let said: Vec<_> = read.into_iter().map(|(kind, _, markup)| (kind, markup)).collect();
        let expected = [
            (Kind::List, text("1. first")),
            (Kind::List, text("7. seventh")),
            (Kind::List, text("dot")),
            (Kind::Code, text("fn main() {}")),
            (Kind::Figure, None),
            (Kind::Text, text("☒ yes")),
            (Kind::Text, text("stray")),
        ];
        assert_eq!(said, expected);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_panic(page in "(<doctag>|<text>|</text>|<otsl>|</otsl>|<caption>|<fcel>|<lcel>|<ucel>|<nl>|<loc_9>|<loc_x>|<|>|é|<list_item>|<ordered_list>|</ordered_list>|a){0,40}") {
            let _ = read_all(&page);
        }
    }
}
