use std::path::PathBuf;

use super::*;
use crate::document::{PageStatus, Run, page_json};
use crate::geometry::Rect;

const HOSTILE: &str =
    "</span></p></script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u{202e}\u{1b}[31m";

fn element(number: usize, kind: ElementKind, text: &str) -> Element {
    Element {
        id: format!("p1e{number}"),
        kind,
        level: None,
        bbox: Rect::new(10.0, 20.0, 110.0, 40.0),
        text: text.into(),
        markdown: text.into(),
        html: None,
        latex: None,
        lines: Vec::new(),
        stop: None,
        runs: vec![Run { start: 0, end: text.chars().count(), source: Source::Ocr, confidence: 0.95 }],
        style: None,
        image: None,
    }
}

fn page(elements: Vec<Element>) -> Page {
    Page {
        number: 1,
        width: 200.0,
        height: 300.0,
        turn: 0,
        skew_deg: 0.0,
        status: PageStatus::Ok,
        reason: None,
        text_layer: "none".into(),
        verification: "unverified".into(),
        elements,
    }
}

/// The HTML of a document of one page, with or without a picture.
fn html(page: &Page, input: &str, picture: Option<&[u8]>) -> String {
    let dir = tempfile::tempdir().unwrap();
    let header = PageHeader::new(None, "s", "i", input);
    let path: PathBuf = dir.path().join("page-0001.json");
    std::fs::write(&path, page_json(page, &header)).unwrap();
    if let Some(picture) = picture {
        std::fs::write(path.with_extension("jpg"), picture).unwrap();
    }
    let info = DocumentInfo { metadata: vec![("title".into(), input.into())], ..DocumentInfo::default() };
    let mut out = Vec::new();
    write_html(&[path], &info, &header, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// All tags of `html` outside its style sheet and script.
fn tags(html: &str) -> Vec<String> {
    let html = html.replace(STYLE, "").replace(SCRIPT, "");
    html.split('<').skip(1).map(|piece| piece.split('>').next().unwrap().to_owned()).collect()
}

#[test]
fn what_a_document_says_cannot_become_a_tag_or_an_attribute() {
    let kinds = [ElementKind::Paragraph, ElementKind::Heading, ElementKind::Code, ElementKind::Formula];
    let mut elements: Vec<Element> =
        kinds.iter().enumerate().map(|(at, &kind)| element(at + 1, kind, HOSTILE)).collect();
    let mut table = element(9, ElementKind::Table, HOSTILE);
    table.html = Some(format!(
        "<table onload=\"x\"><tr><td rowspan=\"2\" onclick=\"{HOSTILE}\">{HOSTILE}</td></tr></table>{HOSTILE}"
    ));
    table.id = HOSTILE.into();
    let mut formula = element(10, ElementKind::Formula, "");
    formula.latex = Some(HOSTILE.into());
    elements.extend([table, formula]);
    let mut hostile = page(elements);
    (hostile.status, hostile.reason) = (PageStatus::Partial, Some(HOSTILE.into()));
    let mut harmless = hostile.clone();
    harmless.reason = Some("a".into());
    for element in &mut harmless.elements {
        if !element.text.is_empty() {
            element.text = "a".into();
            element.runs[0].end = 1;
        }
        element.latex = element.latex.as_ref().map(|_| "a".into());
        element.html = element.html.as_ref().map(|_| "<table><tr><td rowspan=2>a</td></tr></table>".into());
    }
    harmless.elements[4].id = "p1e9".into();

    let html_of_hostile = html(&hostile, HOSTILE, None);
    let names = |html: &str| -> Vec<String> {
        let name = |tag: &String| tag.split([' ', '\n']).next().unwrap_or_default().to_owned();
        let mut names: Vec<String> =
            tags(html).iter().map(name).filter(|name| !name.ends_with("span")).collect();
        names.dedup();
        names
    };
    // The same skeleton as that of a page that says "a" everywhere; `span`s are the runs'.
    assert_eq!(names(&html_of_hostile), names(&html(&harmless, "a", None)));
    assert!(!html_of_hostile.contains(['\u{1b}', '\u{202e}']));
    assert_eq!(html_of_hostile.matches("<script>").count(), 1);
}

#[test]
fn the_policy_lets_only_this_script_and_this_style_in() {
    // The sum of nothing, from the standard's examples.
    assert_eq!(policy_sum(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    let html = html(&page(Vec::new()), "a.pdf", None);
    assert!(html.contains(&format!("script-src '{}'", policy_sum(SCRIPT))));
    assert!(html.contains("default-src 'none'") && !html.contains("unsafe-inline"));
    // An element that carries a style of its own would be refused by it.
    assert!(!html.replace(SCRIPT, "").contains("style=\""));
}

#[test]
fn each_element_stands_on_both_sides_with_its_order_and_type() {
    let html = html(
        &page(vec![element(1, ElementKind::Title, "One"), element(2, ElementKind::ListItem, "Two")]),
        "a.pdf",
        Some(b"foobar"),
    );
    for (id, label) in [("p1e1", "1 title"), ("p1e2", "2 list_item")] {
        assert_eq!(html.matches(&format!("data-element=\"{id}\"")).count(), 2);
        assert_eq!(html.matches(&format!(">{label}<")).count(), 3, "tooltip, box, text: {label}");
    }
    assert!(html.contains("href=\"data:image/jpeg;base64,Zm9vYmFy\""));
}

#[test]
fn runs_carry_their_source_and_how_sure_it_is() {
    let mut paragraph = element(1, ElementKind::Paragraph, "über a<b");
    paragraph.runs = vec![
        Run { start: 0, end: 4, source: Source::TextLayer, confidence: 1.0 },
        Run { start: 5, end: 8, source: Source::Ocr, confidence: 0.5 },
    ];
    let marked = marked_text(&paragraph);
    let expected = "<span class=\"by-text-layer\" title=\"text layer, 1.00\">über</span> \
                    <span class=\"by-ocr doubtful\" title=\"OCR, 0.50\">a&lt;b</span>";
    assert_eq!(marked, expected);
}

#[test]
fn cells_are_marked_while_their_text_is_the_elements() {
    let mut table = element(1, ElementKind::Table, "a b\tc\nd");
    table.runs = vec![Run { start: 0, end: 3, source: Source::Table, confidence: 0.8 }];
    let marked = marked_table(
        "<table><tr><th>a b</th><td colspan=\"2\">c</td></tr><tr><td>d</td></tr></table>",
        &table,
    );
    let run = "class=\"by-table unsure\" title=\"table network, 0.80\"";
    assert!(
        marked.contains(&format!("<th dir=auto><span {run}>a b</span></th><td dir=auto colspan=2>c</td>")),
        "{marked}"
    );
    // Text of which the element knows nothing is shown, unmarked.
    let other = marked_table("<tr><td>xyz</td></tr>", &table);
    assert_eq!(other, "<table><tr><td dir=auto>xyz</td></tr></table>");
}

#[test]
fn a_failed_page_says_why_and_has_no_picture() {
    let mut failed = page(Vec::new());
    (failed.status, failed.reason, failed.width, failed.height) =
        (PageStatus::Failed, Some("no such object".into()), 0.0, 0.0);
    let html = html(&failed, "a.pdf", None);
    assert!(html.contains("failed: no such object") && !html.contains("<svg"));
}
