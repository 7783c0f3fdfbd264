use insta::assert_snapshot;

use super::*;
use crate::document::assemble::tests::{page, region, set};
use crate::document::{PageStatus, page_json};
use crate::geometry::Rect;
use crate::lines::hull_of;
use crate::page::{Bookmark, Cell, Kind, Region};

struct Written {
    markdown: String,
    json: serde_json::Value,
    text: String,
}

fn header() -> PageHeader {
    PageHeader::new(None, "cd", "ef", "in.pdf")
}

fn written(pages: &[Page], settings: &OutputSettings) -> Written {
    let folder = tempfile::tempdir().expect("a folder");
    let paths: Vec<PathBuf> = pages
        .iter()
        .map(|page| {
            let path = folder.path().join(format!("page-{:04}.json", page.number));
            std::fs::write(&path, page_json(page, &header())).expect("written");
            path
        })
        .collect();
    let info = DocumentInfo {
        page_count: pages.len() as u32,
        metadata: vec![("Title".into(), "A".into())],
        bookmarks: vec![Bookmark { title: "One".into(), level: 1, page: Some(1) }],
    };
    let (mut markdown, mut json, mut text) = (Vec::new(), Vec::new(), Vec::new());
    let outputs =
        DocumentOutputs { markdown: Some(&mut markdown), json: Some(&mut json), text: Some(&mut text) };
    write_document(&paths, &info, &header(), settings, outputs).expect("a document");
    let json = serde_json::from_slice(&json).expect("JSON");
    let schema = serde_json::from_str(include_str!("../document.schema.json")).expect("the schema is JSON");
    let validator = jsonschema::draft202012::new(&schema).expect("the schema is one");
    let errors: Vec<String> = validator.iter_errors(&json).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    Written {
        markdown: String::from_utf8(markdown).expect("text"),
        json,
        text: String::from_utf8(text).expect("text"),
    }
}

fn text(y: f32, lines: &[&str]) -> Region {
    region(Kind::Text, set(0.0, y, lines))
}

fn grid(y: f32, rows: &[[&str; 2]]) -> Region {
    let mut cells = Vec::new();
    for (row, texts) in rows.iter().enumerate() {
        for (col, text) in texts.iter().enumerate() {
            let words = set(col as f32 * 100.0, y + row as f32 * 20.0, &[text]);
            let bbox = hull_of(&words);
            cells.push(Cell { row, col, rows: 1, cols: 1, bbox, words, header: row == 0 });
        }
    }
    let bbox = Rect::new(0.0, y, 200.0, y + rows.len() as f32 * 20.0);
    Region { bbox, cells: Some(cells), ..region(Kind::Table, Vec::new()) }
}

#[test]
fn an_empty_document_is_valid_too() {
    let got = written(&[], &OutputSettings::default());
    assert_eq!((got.markdown.as_str(), got.text.as_str()), ("", ""));
    assert_eq!(got.json["elements"], serde_json::json!([]));
}

#[test]
fn running_lines_leave_the_markdown_and_are_named_in_the_json() {
    let pages: Vec<Page> = (1..=4)
        .map(|n| {
            page(
                n,
                &[
                    text(0.0, &[&format!("Chapter {n} The Journal")]),
                    text(300.0, &[&format!("Page {n} says this.")]),
                    text(785.0, &[&n.to_string()]),
                ],
            )
        })
        .collect();
    let got = written(&pages, &OutputSettings::default());
    assert_snapshot!(got.markdown, @r"
    <!-- page 1 -->

    Page 1 says this.

    <!-- page 2 -->

    Page 2 says this.

    <!-- page 3 -->

    Page 3 says this.

    <!-- page 4 -->

    Page 4 says this.
    ");
    let kinds: Vec<&str> = (0..3).filter_map(|k| got.json["elements"][k]["type"].as_str()).collect();
    assert_eq!(kinds, ["header", "paragraph", "page_number"]);
    let two = written(&pages[..2], &OutputSettings::default());
    assert!(two.markdown.contains("The Journal"), "two pages prove nothing");
}

#[test]
fn a_paragraph_goes_on_over_the_page_and_its_hyphen_goes() {
    let pages = [
        page(
            1,
            &[text(600.0, &["It ends with a hy-"]), region(Kind::Footnote, set(0.0, 700.0, &["A note."]))],
        ),
        page(
            2,
            &[
                region(Kind::Header, set(0.0, 0.0, &["Head"])),
                text(100.0, &["phen here."]),
                text(300.0, &["Next."]),
            ],
        ),
    ];
    let got = written(&pages, &OutputSettings::default());
    assert_snapshot!(got.markdown, @r"
    <!-- page 1 -->

    It ends with a hyphen here.

    A note.

    <!-- page 2 -->

    Next.
    ");
    let joined = &got.json["elements"][0];
    assert_eq!(joined["runs"][0]["end"], 27);
    assert_eq!((&joined["page"], &joined["continued"][0]["page"]), (&1.into(), &2.into()));
    assert_eq!(
        (&joined["continued"][0]["start"], &joined["continued"][0]["id"]),
        (&17.into(), &"p2e2".into())
    );
    assert_eq!(got.text, "It ends with a hyphen here.\n\nA note.\n\nNext.\n");
}

#[test]
fn a_new_sentence_on_the_next_page_is_its_own() {
    let pages = [page(1, &[text(700.0, &["It ends."])]), page(2, &[text(0.0, &["and not joined"])])];
    assert_eq!(
        written(&pages, &OutputSettings::default()).json["elements"].as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn a_table_goes_on_without_its_repeated_header() {
    let pages = [
        page(1, &[grid(600.0, &[["Name", "Value"], ["a", "1"]])]),
        page(2, &[grid(20.0, &[["Name", "Value"], ["b", "2"]]), text(300.0, &["After."])]),
        page(3, &[grid(20.0, &[["Other", "Head"], ["c", "3"]])]),
    ];
    let settings = OutputSettings { page_markers: false, ..OutputSettings::default() };
    let got = written(&pages, &settings);
    assert_snapshot!(got.markdown, @r"
    | Name | Value |
    | --- | --- |
    | a | 1 |
    | b | 2 |

    After.

    | Other | Head |
    | --- | --- |
    | c | 3 |
    ");
    let table = &got.json["elements"][0];
    assert_eq!(table["text"], "Name\tValue\na\t1\nb\t2");
    assert_eq!(table["runs"][0]["end"], 18);
    assert_eq!(table["html"].as_str().map(|h| h.matches("<tr>").count()), Some(3));
}

#[test]
fn a_table_with_a_head_of_its_own_is_another_table() {
    let pages = [
        page(1, &[grid(600.0, &[["Name", "Value"], ["a", "1"]])]),
        page(2, &[grid(20.0, &[["Other", "Head"], ["b", "2"]])]),
        page(3, &[grid(20.0, &[["7", "8"], ["b", "2"]])]),
    ];
    let got = written(&pages, &OutputSettings::default());
    let count = got.json["elements"].as_array().map(Vec::len);
    assert_eq!(count, Some(3), "the third stands below one that ends high on its page");
    let low = [pages[0].clone(), page(2, &[grid(20.0, &[["7", "8"], ["b", "2"]])])];
    assert_eq!(written(&low, &OutputSettings::default()).json["elements"].as_array().map(Vec::len), Some(1));
}

#[test]
fn heading_levels_are_those_of_the_whole_document() {
    let heading = |n: u32, text: &str, size: f32| {
        let words = set(0.0, 300.0, &[text]).into_iter().map(|w| crate::page::Word { size, ..w }).collect();
        page(n, &[region(Kind::Heading, words)])
    };
    let pages = [heading(1, "Book", 30.0), heading(2, "1 Part", 20.0), heading(3, "1.2 Piece", 14.0)];
    assert_eq!(crate::document::page_markdown(&pages[2], &OutputSettings::default()), "### 1.2 Piece\n");
    let settings = OutputSettings { page_markers: false, ..OutputSettings::default() };
    assert_eq!(written(&pages, &settings).markdown, "# Book\n\n## 1 Part\n\n### 1.2 Piece\n");
}

#[test]
fn a_failed_page_leaves_a_comment_and_stops_joins() {
    let mut failed = page(2, &[]);
    (failed.status, failed.reason) = (PageStatus::Failed, Some("timeout --> x".into()));
    let pages = [page(1, &[text(700.0, &["it goes"])]), failed, page(3, &[text(0.0, &["on here"])])];
    let settings = OutputSettings { page_markers: false, ..OutputSettings::default() };
    let got = written(&pages, &settings);
    assert_eq!(got.markdown, "it goes\n\n<!-- page 2 failed: timeout - -  x -->\n\non here\n");
    assert_eq!(got.json["pages"][1]["status"], "failed");
}

#[test]
fn a_file_that_is_no_page_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page-0001.json");
    std::fs::write(&path, "{").expect("written");
    let result = write_document(
        &[path],
        &DocumentInfo::default(),
        &header(),
        &OutputSettings::default(),
        DocumentOutputs::default(),
    );
    assert!(result.is_err_and(|e| e.to_string().contains("page-0001.json")));
}
