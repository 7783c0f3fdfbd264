//! List items: their marks, and how deep they stand.

use crate::document::composed::Composed;
use crate::document::escape::{BlockStart, inline};
use crate::document::{Element, ElementKind};
use crate::lines::rtl_share;
use crate::page::Link;
use crate::patterns::{BULLET, NUMBER};

/// How a list item is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A bullet, which is not part of the text; characters to take away.
    Bullet(usize),
    /// A number that Markdown knows (`3.` or `3)`); its characters, without the space after it.
    Ordered(usize),
    /// Another mark (`(a)`, `iv.`), which stays in the text.
    Lettered,
    /// An item whose mark is not on the page.
    None,
}

impl Mark {
    /// The mark at the beginning of a paragraph. Letters mark an item only where a list is known to stand.
    pub(crate) fn of(text: &str, in_list: bool) -> Option<Mark> {
        if let Some(found) = BULLET.find(text) {
            return Some(Mark::Bullet(found.as_str().chars().count()));
        }
        let found = NUMBER.captures(text)?.get(1)?.as_str();
        if found.starts_with(|c: char| c.is_ascii_digit()) {
            return Some(Mark::Ordered(found.chars().count()));
        }
        in_list.then_some(Mark::Lettered)
    }

    /// The item's Markdown; takes a bullet off the text.
    pub(crate) fn item(self, text: &mut Composed, links: &[Link]) -> String {
        match self {
            Mark::Bullet(count) => {
                text.strip_front(count);
                format!("- {}", inline(text, links, BlockStart::At(0)))
            }
            Mark::Ordered(count) => inline(text, links, BlockStart::At(count + 1)),
            Mark::Lettered | Mark::None => format!("- {}", inline(text, links, BlockStart::At(0))),
        }
    }
}

/// Does a paragraph begin like a list item?
pub(crate) fn is_mark_paragraph(text: &str) -> bool {
    BULLET.is_match(text) || NUMBER.is_match(text)
}

/// Does a paragraph begin with a mark that only other such marks prove to be one?
pub(crate) fn lettered(text: &str) -> bool {
    Mark::of(text, true) == Some(Mark::Lettered)
}

/// Levels of the list items of a page, by indent: 1 is the outermost.
pub(crate) fn list_levels(elements: &mut [Element]) {
    // Left edges of the open levels, outermost first.
    let mut open: Vec<f32> = Vec::new();
    let mut top = f32::NEG_INFINITY;
    for element in elements {
        if element.kind != ElementKind::ListItem {
            open.clear();
            continue;
        }
        let size = element.style.as_ref().map_or(10.0, |s| s.size);
        let first = element.lines.first().map_or(element.bbox, |l| l.bbox);
        let edge = if rtl_share(&element.text) > 0.5 { -first.x1 } else { first.x0 };
        if first.y0 < top {
            // A new column: its edge says nothing of the levels in the one before.
            open.clear();
        }
        top = first.y0;
        while open.last().is_some_and(|&last| edge < last - 0.8 * size) {
            open.pop();
        }
        if open.last().is_none_or(|&last| edge > last + 0.8 * size) {
            open.push(edge);
        }
        element.level = Some(open.len().clamp(1, 9) as u8);
    }
}
