use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;
use crate::document::json::{PageHeader, page_json, rounded};
use crate::document::{Page, PageStatus, page_markdown, page_text};
use crate::lines::tests::word;
use crate::page::{Cell, Source, StopReason};
use crate::settings::OutputSettings;

/// Words 6 px a character, 12 px a line; leading spaces indent. `y` is the top of the first line.
pub(crate) fn set(x: f32, y: f32, lines: &[&str]) -> Vec<Word> {
    let mut out = Vec::new();
    for (row, line) in lines.iter().enumerate() {
        let mut column = 0;
        for text in line.split(' ') {
            let width = text.chars().count();
            let (left, top) = (x + column as f32 * 6.0, y + row as f32 * 12.0);
            if width > 0 {
                out.push(word(text, left, top, left + width as f32 * 6.0, top + 10.0));
            }
            column += width + 1;
        }
    }
    out
}

pub(crate) fn region(kind: Kind, words: Vec<Word>) -> Region {
    Region { kind, score: 0.9, bbox: hull_of(&words), words, cells: None, markup: None, stop: None }
}

pub(crate) fn page(number: u32, regions: &[Region]) -> Page {
    page_with(number, regions, &[], false)
}

fn page_with(number: u32, regions: &[Region], links: &[Link], figures: bool) -> Page {
    let context = PageContext {
        scale: 1.0,
        printed: Rect::new(0.0, 0.0, 600.0, 800.0),
        from_layer: true,
        links,
        figures,
    };
    Page {
        number,
        width: 600.0,
        height: 800.0,
        turn: 0,
        skew_deg: 0.0,
        status: PageStatus::Ok,
        reason: None,
        text_layer: "used".into(),
        verification: "unverified".into(),
        elements: assemble(number, regions, &context),
    }
}

fn markdown(regions: &[Region]) -> String {
    page_markdown(&page(1, regions), &OutputSettings::default())
}

fn with_markup(kind: Kind, markup: Markup) -> Region {
    Region { markup: Some(markup), bbox: Rect::new(0.0, 0.0, 50.0, 50.0), ..region(kind, Vec::new()) }
}

fn restyled(words: Vec<Word>, bold: bool, font: &str) -> Vec<Word> {
    words.into_iter().map(|w| Word { bold, font: font.into(), ..w }).collect()
}

#[test]
fn text_is_unwrapped_and_parted_at_indents() {
    let text =
        set(0.0, 0.0, &["The first para-", "graph is short.", "   Second one with", "more of it here"]);
    assert_snapshot!(markdown(&[region(Kind::Text, text)]), @r"
    The first paragraph is short.

    Second one with more of it here
    ");
}

#[test]
fn bullets_numbers_and_their_levels() {
    let text = set(
        0.0,
        0.0,
        &["• one goes on", "  here", "  – inner", "• two", "1. first", "   * deep", "2. second"],
    );
    assert_snapshot!(markdown(&[region(Kind::Text, text)]), @r"
    - one goes on here
      - inner
    - two

    1. first
       - deep
    2. second
    ");
}

#[test]
fn letters_mark_items_only_in_company() {
    assert_snapshot!(markdown(&[region(Kind::Text, set(0.0, 0.0, &["a) one", "b) two"]))]), @r"
    - a) one
    - b) two
    ");
    assert_eq!(markdown(&[region(Kind::Text, set(0.0, 0.0, &["i. e. this"]))]), "i. e. this\n");
    assert_eq!(markdown(&[region(Kind::List, set(0.0, 0.0, &["no mark"]))]), "- no mark\n");
}

#[test]
fn a_bold_line_above_a_paragraph_is_a_heading() {
    let mut words = restyled(set(0.0, 0.0, &["Run-in Title"]), true, "serif-bold");
    words.extend(restyled(
        set(0.0, 12.0, &["the text goes on here", "and here it ends now."]),
        false,
        "serif",
    ));
    let page = page(1, &[region(Kind::Text, words)]);
    assert_snapshot!(page_markdown(&page, &OutputSettings::default()), @r"
    ## Run-in Title

    the text goes on here and here it ends now.
    ");
    assert_eq!(page.elements[0].kind, ElementKind::Heading);
}

#[test]
fn typewriter_text_is_code_and_neighbours_are_one_block() {
    let first = restyled(set(0.0, 0.0, &["if x:", "    go(`y`)"]), false, "courier");
    let second = region(Kind::Code, set(0.0, 60.0, &["done"]));
    assert_snapshot!(markdown(&[region(Kind::Text, first), second]), @r"
    ```
    if x:
        go(`y`)
    done
    ```
    ");
}

#[test]
fn links_cover_their_words_once() {
    let mut words = set(0.0, 0.0, &["see the site now"]);
    words[1].link = Some(0);
    words[2].link = Some(0);
    let links = [Link { bbox: Rect::default(), uri: "https://a.org".into() }];
    let page = page_with(1, &[region(Kind::Text, words)], &links, false);
    assert_eq!(page.elements[0].markdown, "see [the site](https://a.org) now");
    assert_eq!(page.elements[0].text, "see the site now");
}

fn cell(row: usize, col: usize, text: &str) -> Cell {
    let words = set(col as f32 * 100.0, row as f32 * 20.0, &[text]);
    Cell { row, col, rows: 1, cols: 1, bbox: hull_of(&words), words, header: row == 0 }
}

fn table(cells: Vec<Cell>, y: f32) -> Region {
    let shift = |w: &Word| Word { bbox: w.bbox.translated(0.0, y), ..w.clone() };
    let cells: Vec<Cell> =
        cells.into_iter().map(|c| Cell { words: c.words.iter().map(shift).collect(), ..c }).collect();
    let bbox = hull_of(cells.iter().flat_map(|c| &c.words));
    Region { bbox, cells: Some(cells), ..region(Kind::Table, Vec::new()) }
}

#[test]
fn tables_keep_their_grid_in_every_form() {
    let mut region =
        table(vec![cell(0, 0, "Name"), cell(0, 1, "A | B"), cell(1, 0, "x"), cell(1, 1, "2 < 3")], 0.0);
    region.words = set(0.0, 60.0, &["left over"]);
    let page = page(1, &[region]);
    assert_snapshot!(page_markdown(&page, &OutputSettings::default()), @r"
    | Name | A \| B |
    | --- | --- |
    | x | 2 < 3 |

    left over
    ");
    assert_eq!(page.elements[0].text, "Name\tA | B\nx\t2 < 3");
    assert_snapshot!(page.elements[0].html.as_deref().unwrap_or_default(), @r"
    <table>
    <tr><th>Name</th><th>A | B</th></tr>
    <tr><td>x</td><td>2 &lt; 3</td></tr>
    </table>
    ");
    assert_eq!(page_text(&page, &OutputSettings::default()), "Name\tA | B\nx\t2 < 3\n\nleft over\n");
}

#[test]
fn formulas_are_latex_only_where_a_model_wrote_it() {
    let words = region(Kind::Formula, set(0.0, 0.0, &["E = mc2 $"]));
    let model = with_markup(Kind::Formula, Markup::Latex("\\[ E = mc^2 \\]".into()));
    let page = page(1, &[words, model]);
    assert_snapshot!(page_markdown(&page, &OutputSettings::default()), @r"
    $$
    E = mc2 \$
    $$

    $$
    E = mc^2
    $$
    ");
    let latex: Vec<Option<&str>> = page.elements.iter().map(|e| e.latex.as_deref()).collect();
    assert_eq!(latex, [None, Some("E = mc^2")]);
}

#[test]
fn figures_name_their_file_and_keep_their_text() {
    let figure = region(Kind::Figure, set(0.0, 0.0, &["axis *label*"]));
    let caption = region(Kind::Caption, set(0.0, 40.0, &["Figure 1: A curve"]));
    let page = page_with(3, &[figure, caption], &[], true);
    assert_snapshot!(page_markdown(&page, &OutputSettings::default()), @r"
    ![](page-0003-figure-1.png)

    axis \*label\*

    Figure 1: A curve
    ");
    assert_eq!(page.elements[0].image.as_deref(), Some("page-0003-figure-1.png"));
    assert_eq!(page.elements[1].kind, ElementKind::Caption);
}

#[test]
fn running_matter_is_in_the_json_and_on_demand_in_the_markdown() {
    let regions = [
        region(Kind::Header, set(0.0, 0.0, &["A Journal"])),
        region(Kind::Text, set(0.0, 100.0, &["Body."])),
        region(Kind::PageNumber, set(0.0, 790.0, &["7"])),
    ];
    let page = page(1, &regions);
    assert_eq!(page.elements.len(), 3);
    assert_eq!(page_markdown(&page, &OutputSettings::default()), "Body.\n");
    let all = OutputSettings { running_matter: true, ..OutputSettings::default() };
    assert_eq!(page_markdown(&page, &all), "A Journal\n\nBody.\n\n7\n");
}

#[test]
fn a_paragraph_goes_on_in_the_next_column_past_a_footnote() {
    let regions = [
        region(Kind::Text, set(0.0, 700.0, &["a long sen-"])),
        region(Kind::Footnote, set(0.0, 760.0, &["* a note"])),
        region(Kind::Text, set(300.0, 0.0, &["tence ends."])),
    ];
    assert_eq!(markdown(&regions), "a long sentence ends.\n\n\\* a note\n");
    assert_eq!(page(1, &regions).elements.len(), 3);
}

#[test]
fn a_paragraph_that_hangs_below_an_item_goes_on_with_it() {
    let item = region(Kind::List, set(0.0, 0.0, &["1. Which of these"]));
    let hanging = |y: f32| region(Kind::Text, set(18.0, y, &["do you know?"]));
    assert_eq!(markdown(&[item.clone(), hanging(12.0)]), "1. Which of these do you know?\n");
    assert_eq!(markdown(&[item, hanging(60.0)]), "1. Which of these\n\ndo you know?\n");
}

#[test]
fn models_without_grounding_write_markdown_html_and_text() {
    let regions = [
        with_markup(Kind::Other, Markup::Markdown("# Top\n\nsome *text*\n\n| a |\n|---|\n| 1 |".into())),
        with_markup(
            Kind::Table,
            Markup::Html("<table><tr><td colspan=2>w</td></tr><tr><td>1<td>2</table>".into()),
        ),
        with_markup(Kind::Text, Markup::Text("plain # text\nwraps\n\n# no heading".into())),
        with_markup(Kind::Code, Markup::Text("x = 1\n  y".into())),
    ];
    assert_snapshot!(markdown(&regions), @r#"
    # Top

    some *text*

    | a |
    | --- |
    | 1 |

    <table>
    <tr><td colspan="2">w</td></tr>
    <tr><td>1</td><td>2</td></tr>
    </table>

    plain # text wraps

    \# no heading

    ```
    x = 1
      y
    ```
    "#);
}

#[test]
fn boxes_are_points_and_ids_count_from_one() {
    let regions = [region(Kind::Text, set(20.0, 40.0, &["one", "two"]))];
    let context = PageContext {
        scale: 2.0,
        printed: printed_area(&regions),
        from_layer: false,
        links: &[],
        figures: false,
    };
    let elements = assemble(4, &regions, &context);
    assert_eq!(elements[0].id, "p4e1");
    assert_eq!(elements[0].bbox, Rect::new(10.0, 20.0, 19.0, 31.0));
    assert_eq!(elements[0].lines[1].bbox, Rect::new(10.0, 26.0, 19.0, 31.0));
    assert_eq!(elements[0].style.as_ref().map(|s| (s.size, s.exact)), Some((5.0, false)));
}

#[test]
fn references_keep_their_numbers_and_lose_only_bullets() {
    let words = set(0.0, 0.0, &["1. Smith, J. A book.", "2. Jones, K. Another.", "• Web site"]);
    let page = page(1, &[region(Kind::Reference, words)]);
    assert_snapshot!(page_markdown(&page, &OutputSettings::default()), @r"
    1. Smith, J. A book.

    2. Jones, K. Another.

    - Web site
    ");
    assert_eq!(page.elements[0].kind, ElementKind::Reference);
}

#[test]
fn a_table_without_a_grid_is_text() {
    let page = page(1, &[region(Kind::Table, set(0.0, 0.0, &["a b", "c d"]))]);
    assert_eq!((page.elements[0].kind, page.elements[0].text.as_str()), (ElementKind::Paragraph, "a b c d"));
}

#[test]
fn a_right_to_left_region_keeps_logical_order() {
    let words = set(0.0, 0.0, &["الآن Word استخدم", "ثم ارجع"]);
    let page = page(1, &[region(Kind::Text, words)]);
    assert_eq!(page.elements[0].text, "استخدم Word الآن ارجع ثم");
}

fn validator(schema: &str) -> jsonschema::Validator {
    let schema: serde_json::Value = serde_json::from_str(schema).expect("the schema is JSON");
    jsonschema::draft202012::new(&schema).expect("the schema is one")
}

#[test]
fn page_files_match_their_schema_and_read_back() {
    let mut table = table(vec![cell(0, 0, "a"), cell(0, 1, "b"), cell(1, 0, "1"), cell(1, 1, "2")], 50.0);
    table.stop = Some(StopReason::Loop);
    let regions = [
        region(Kind::Title, set(3.333, 0.0, &["Title"])),
        table,
        region(Kind::Figure, Vec::new()),
        with_markup(Kind::Formula, Markup::Latex("x".into())),
        region(Kind::List, set(0.0, 300.0, &["• item"])),
    ];
    let page = page_with(12, &regions, &[], true);
    let header = PageHeader::new(Some(("nano".into(), "ab".into())), "cd", "ef", "in.pdf");
    let text = page_json(&page, &header);
    assert_eq!(text, page_json(&page, &header));
    let value = serde_json::from_str(&text).expect("JSON");
    let errors: Vec<String> =
        validator(include_str!("../page.schema.json")).iter_errors(&value).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("page-0012.json");
    std::fs::write(&path, &text).expect("written");
    let (read_header, read) = crate::document::read_page(&path).expect("a page file");
    assert_eq!((read_header, &read), (header.clone(), &rounded(&page)));
    assert_eq!(page_json(&read, &header), text);
}

#[test]
fn numbers_that_are_none_do_not_spoil_the_file() {
    let mut page = page(1, &[region(Kind::Text, set(0.0, 0.0, &["a"]))]);
    page.elements[0].bbox.x0 = f32::NAN;
    page.skew_deg = -0.001;
    let text = page_json(&page, &PageHeader::new(None, "", "", ""));
    assert!(text.contains("\"skew_deg\": 0.0,") && !text.contains("null}"), "{text}");
    assert!(text.contains("\"bbox\":[0.0,0.0,6.0,10.0]"), "{text}");
}

fn any_kind() -> impl Strategy<Value = Kind> {
    use Kind::{Caption, Code, Figure, Footnote, Formula, Heading, List, Other, Table, Text, Title};
    prop::sample::select(vec![
        Caption, Code, Figure, Footnote, Formula, Heading, List, Other, Table, Text, Title,
    ])
}

prop_compose! {
    fn any_word()(
        text in "(•|1\\.|a\\)|[a-zA-Zé中א#*_|<>$`-]{0,4}|\u{ad}|\n)", x in -10f32..500.0, y in -10f32..700.0,
        width in 0f32..90.0, glue in any::<bool>(), bold in any::<bool>(), ocr in any::<bool>(), link in prop::option::of(0u32..3),
    ) -> Word {
        let source = if ocr { Source::Ocr } else { Source::TextLayer };
        Word { glue, bold, link, source, confidence: x / 500.0, ..word(&text, x, y, x + width, y + 10.0) }
    }
}

proptest! {
    #[test]
    fn runs_cover_every_element_and_no_letter_is_lost(
        kinds in prop::collection::vec(any_kind(), 1..4),
        words in prop::collection::vec(any_word(), 0..40),
    ) {
        let share = words.len().div_ceil(kinds.len()).max(1);
        let mut chunks = words.chunks(share);
        let regions: Vec<Region> =
            kinds.iter().map(|k| region(*k, chunks.next().unwrap_or_default().to_vec())).collect();
        let page = page(1, &regions);
        for element in &page.elements {
            let mut at = 0;
            for run in &element.runs {
                prop_assert!(run.start == at && run.end > run.start);
                at = run.end;
            }
            prop_assert_eq!(at, element.text.chars().count());
        }
        let letters = |text: &str| text.chars().filter(|c| c.is_alphabetic() && *c != 'o').count();
        let before: usize = words.iter().map(|w| letters(&w.text)).sum();
        let after: usize = page.elements.iter().map(|e| letters(&e.text)).sum();
        prop_assert_eq!(before, after);
        let markdown = page_markdown(&page, &OutputSettings::default());
        prop_assert_eq!(letters(&markdown.replace("&lt;", "").replace("&amp;", "")), before);
    }

    #[test]
    fn odd_boxes_do_no_harm(x in prop::num::f32::ANY, y in prop::num::f32::ANY, size in prop::num::f32::ANY, kind in any_kind()) {
        let mut words = set(0.0, 0.0, &["• a b", "c d"]);
        words[1].bbox = Rect::new(x, y, y, x);
        words[2].size = size;
        let page = page(1, &[region(kind, words)]);
        let text = page_json(&page, &PageHeader::new(None, "", "", ""));
        prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }
}
