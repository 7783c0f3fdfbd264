//! Regions whose kind and box the trunk writes as text: `<BLOCK>table [12, 100, 500, 400]<FORK>`.

use std::sync::LazyLock;

use regex::Regex;

use crate::geometry::Rect;
use crate::graphs::TokenId;
use crate::graphs::manifest::{Dropped, LabelEntry};
use crate::page::Kind;

/// The form `block-label-box` with its names resolved.
#[derive(Clone, Debug)]
pub struct BlockForm {
    pub(super) marker: TokenId,
    pub(super) labels: Vec<LabelEntry>,
    /// Largest coordinate.
    pub(super) grid: u32,
}

/// What the trunk says of a region.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockHead {
    pub label: String,
    /// On the grid. Sides in order, whatever order they were written in, and within the grid.
    pub bbox: Rect,
}

/// A label, then four numbers; commas or spaces between them.
static HEAD: LazyLock<Regex> = LazyLock::new(|| {
    let number = r"(\d{1,6}(?:\.\d{1,6})?)";
    let box_of_four = [number; 4].join(r"[\s,]+");
    Regex::new(&format!(r"^\s*([^\[]*?)\s*\[\s*{box_of_four}\s*(?:\]|$)")).expect("a constant pattern")
});

impl BlockForm {
    /// The token before a label.
    pub fn marker(&self) -> TokenId {
        self.marker
    }

    /// Reads what stands between a marker and a fork. `None` where there are no four numbers.
    pub fn read(&self, text: &str) -> Option<BlockHead> {
        let found = HEAD.captures(text)?;
        let grid = self.grid as f32;
        let side = |index: usize| found[index].parse::<f32>().unwrap_or(0.0).min(grid);
        let [x0, y0, x1, y1] = [2, 3, 4, 5].map(side);
        let bbox = Rect::new(x0.min(x1), y0.min(y1), x0.max(x1), y0.max(y1));
        Some(BlockHead { label: found[1].to_owned(), bbox })
    }

    /// What a region of `kind` with a box on the grid is written as; `None` for kinds without a label.
    pub fn write(&self, kind: Kind, bbox: Rect) -> Option<String> {
        let label = &self.labels.iter().find(|entry| entry.kind == kind)?.label;
        let side = |number: f32| number.round().clamp(0.0, self.grid as f32);
        let [x0, y0, x1, y1] = <[f32; 4]>::from(bbox).map(side);
        Some(format!("{label} [{x0}, {y0}, {x1}, {y1}]"))
    }

    /// The kind that a label names and what is left out of it. Labels that the manifest lacks are text.
    pub fn meaning(&self, label: &str) -> (Kind, Dropped) {
        match self.labels.iter().find(|entry| entry.label == label) {
            Some(entry) => (entry.kind, entry.drop),
            None => {
                tracing::warn!(
                    "the model wrote the label `{label}`, which the manifest lacks; taken for text"
                );
                (Kind::Text, Dropped::Nothing)
            }
        }
    }

    /// Is the content of such a region read by a branch?
    pub fn forks(&self, kind: Kind) -> bool {
        self.labels
            .iter()
            .find(|entry| entry.kind == kind)
            .is_some_and(|entry| entry.drop == Dropped::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> BlockForm {
        let entry = |label: &str, kind, drop| LabelEntry { label: label.into(), kind, drop };
        let labels = vec![
            entry("text", Kind::Text, Dropped::Nothing),
            entry("doc_title", Kind::Title, Dropped::Nothing),
            entry("image", Kind::Figure, Dropped::Content),
        ];
        BlockForm { marker: 9, labels, grid: 1000 }
    }

    #[test]
    fn boxes_are_read_with_commas_or_spaces_and_in_any_order() {
        let read = |text: &str| form().read(text).map(|head| (head.label, <[f32; 4]>::from(head.bbox)));
        let table = || Some(("table".to_owned(), [12.0, 100.0, 500.0, 400.0]));
        assert_eq!(read("table [12, 100, 500, 400]"), table());
        assert_eq!(read(" table[12 100 500 400"), table());
        assert_eq!(read("table [500,400,12,100]"), table());
        assert_eq!(read("table [12, 100, 500, 40000]").unwrap().1[3], 1000.0);
        assert_eq!(read("table [12, 100, 500]"), None);
        assert_eq!(read("table"), None);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let written = form().write(Kind::Title, Rect::new(1.4, -3.0, 900.6, 1200.0)).unwrap();
        assert_eq!(written, "doc_title [1, 0, 901, 1000]");
        let head = form().read(&written).unwrap();
        assert_eq!(form().meaning(&head.label), (Kind::Title, Dropped::Nothing));
        assert_eq!(form().write(Kind::Formula, Rect::default()), None);
    }

    #[test]
    fn an_unknown_label_is_text_and_a_picture_is_not_read() {
        assert_eq!(form().meaning("marginal_note"), (Kind::Text, Dropped::Nothing));
        assert!(form().forks(Kind::Text) && !form().forks(Kind::Figure) && !form().forks(Kind::Code));
    }
}
