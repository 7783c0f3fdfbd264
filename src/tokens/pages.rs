//! A whole page that the trunk wrote as text -> regions.

use crate::geometry::Rect;
use crate::graphs::manifest::RegionForm;
use crate::page::{Kind, Markup, Region, StopReason};

use super::{doctags, formats};

/// What a page's text says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageText {
    /// In reading order, boxes in page pixels.
    pub regions: Vec<Region>,
    /// What the model says about the page itself.
    pub notes: Vec<String>,
}

/// Reads the text of a page of `size` (width and height, px). `grid`: largest coordinate of boxes within the text.
pub fn read_page(text: &str, form: RegionForm, size: (f32, f32), grid: u32, stop: StopReason) -> PageText {
    let text = &formats::printable(text);
    match form {
        RegionForm::Doctags => PageText { regions: doctags::read(text, size, grid, stop), notes: Vec::new() },
        RegionForm::FrontMatterMarkdown => {
            let (matter, body) = front_matter(text);
            PageText { regions: markdown(body, size, stop), notes: notes(&matter) }
        }
        RegionForm::Markdown | RegionForm::KindBox | RegionForm::BlockLabelBox => {
            PageText { regions: markdown(text, size, stop), notes: Vec::new() }
        }
    }
}

/// A region without words.
pub(super) fn region(kind: Kind, bbox: Rect, markup: Option<Markup>, stop: StopReason) -> Region {
    Region { kind, score: 0.0, bbox, words: Vec::new(), cells: None, markup, stop: Some(stop) }
}

fn markdown(text: &str, (width, height): (f32, f32), stop: StopReason) -> Vec<Region> {
    let text = unfenced(text.trim());
    if text.is_empty() || text == "null" {
        return Vec::new();
    }
    let whole = Rect::new(0.0, 0.0, width, height);
    vec![region(Kind::Text, whole, Some(Markup::Markdown(text.to_owned())), stop)]
}

/// Models put a page into a fence now and then; a fence that does not hold the whole page stays.
fn unfenced(text: &str) -> &str {
    let inner = ["```markdown\n", "```md\n"].iter().find_map(|fence| text.strip_prefix(fence));
    match inner {
        Some(inner) if inner.matches("```").count() % 2 == 1 => {
            inner.strip_suffix("```").unwrap_or(inner).trim()
        }
        Some(inner) if !inner.contains("```") => inner,
        _ => text,
    }
}

/// Lines of `name: value` before the text, and the text. Without a closing line there is none.
fn front_matter(text: &str) -> (Vec<(&str, &str)>, &str) {
    let text = text.trim_start();
    let rest = text.strip_prefix("---\n").and_then(|rest| {
        let end = if rest.starts_with("---") { 0 } else { rest.find("\n---")? + 1 };
        let after = &rest[end + 3..];
        Some((&rest[..end], after.strip_prefix('\n').unwrap_or(after)))
    });
    let Some((matter, body)) = rest else { return (Vec::new(), text) };
    let pair = |line| str::split_once(line, ':').map(|(name, value)| (name.trim(), value.trim()));
    (matter.lines().filter_map(pair).collect(), body)
}

/// What the front matter says that a reader should know.
fn notes(matter: &[(&str, &str)]) -> Vec<String> {
    let value = |name: &str| matter.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
    let turned = value("is_rotation_valid").is_some_and(|v| v.eq_ignore_ascii_case("false"));
    let note = || {
        format!(
            "the model says that the page is turned: {}° clockwise puts it right",
            value("rotation_correction").unwrap_or("?")
        )
    };
    turned.then(note).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, form: RegionForm) -> (Option<String>, Vec<String>) {
        let page = read_page(text, form, (100.0, 200.0), 1000, StopReason::End);
        let text = page.regions.into_iter().next().map(|r| match r.markup {
            Some(Markup::Markdown(text)) => text,
            other => panic!("{other:?}"),
        });
        (text, page.notes)
    }

    #[test]
    fn front_matter_is_taken_off_and_a_turned_page_is_noted() {
        let text = "---\nprimary_language: en\nis_rotation_valid: False\nrotation_correction: 90\nis_table: False\n---\n# A\n\n---\nb";
        let (body, notes) = read(text, RegionForm::FrontMatterMarkdown);
        assert_eq!(body.as_deref(), Some("# A\n\n---\nb"));
        assert!(notes[0].contains("90°"), "{notes:?}");
        let upright = text.replace("valid: False", "valid: True");
        assert!(read(&upright, RegionForm::FrontMatterMarkdown).1.is_empty());
    }

    #[test]
    fn control_characters_go() {
        let (body, _) = read("a\u{1b}[31m\u{9b}b\r\nc\td", RegionForm::Markdown);
        assert_eq!(body.as_deref(), Some("a[31mb\nc\td"));
    }

    #[test]
    fn torn_or_missing_front_matter_is_text() {
        assert_eq!(read("# A", RegionForm::FrontMatterMarkdown).0.as_deref(), Some("# A"));
        assert_eq!(read("---\na: b", RegionForm::FrontMatterMarkdown).0.as_deref(), Some("---\na: b"));
        assert_eq!(read("---\n---\nx", RegionForm::FrontMatterMarkdown).0.as_deref(), Some("x"));
        assert_eq!(read("---\na: b\n---", RegionForm::FrontMatterMarkdown).0, None);
        assert_eq!(read("---\na: b\n---\nnull", RegionForm::FrontMatterMarkdown).0, None);
    }

    #[test]
    fn a_fence_around_the_page_goes_and_one_within_stays() {
        assert_eq!(read("```markdown\n# A\n```", RegionForm::Markdown).0.as_deref(), Some("# A"));
        let code = "```rust\nlet a;\n```\ntext";
        assert_eq!(read(code, RegionForm::Markdown).0.as_deref(), Some(code));
        let both = "```markdown\n```c\nx\n```\n```";
        assert_eq!(read(both, RegionForm::Markdown).0.as_deref(), Some("```c\nx\n```"));
    }
}
