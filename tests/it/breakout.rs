//! Pages, links, metadata and names that try to be more than text: in Markdown, in HTML, on a terminal.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::program::{docparse, tree};

/// Pieces of a page, in points from the bottom left.
#[derive(Default)]
struct Sheet {
    content: String,
    annotations: String,
}

/// A PDF string.
fn string(text: &str) -> String {
    format!("({})", text.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)"))
}

impl Sheet {
    /// `font`: F (Helvetica), B (bold), C (Courier).
    fn text(&mut self, (x, y): (u32, u32), font: char, size: u32, text: &str) {
        let text = string(text);
        let _ = writeln!(self.content, "BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm {text} Tj ET");
    }

    fn line(&mut self, from: (u32, u32), to: (u32, u32)) {
        let _ = writeln!(self.content, "0.8 w {} {} m {} {} l S", from.0, from.1, to.0, to.1);
    }

    fn link(&mut self, [x0, y0, x1, y1]: [u32; 4], uri: &str) {
        let uri = string(uri);
        let _ = write!(
            self.annotations,
            "<</Type/Annot/Subtype/Link/Rect[{x0} {y0} {x1} {y1}]/A<</S/URI/URI{uri}>>>>"
        );
    }

    /// Cells of `(text, width)` in rows of 20 points, the top line at `top`.
    fn table(&mut self, top: u32, rows: &[&[(&str, u32)]]) {
        const LEFT: u32 = 60;
        let right = LEFT + rows[0].iter().map(|cell| cell.1).sum::<u32>();
        self.line((LEFT, top), (right, top));
        for (row, cells) in (1u32..).zip(rows) {
            let (low, mut x) = (top - 20 * row, LEFT);
            self.line((LEFT, low), (right, low));
            self.line((LEFT, low + 20), (LEFT, low));
            for (text, width) in *cells {
                self.text((x + 5, low + 6), 'F', 9, text);
                x += width;
                self.line((x, low + 20), (x, low));
            }
        }
    }

    /// The fonts' ToUnicode say that their letters A, B, C are the characters of `codes`.
    fn pdf(&self, codes: [u16; 3], title: &str) -> String {
        let [a, b, c] = codes;
        let map = format!(
            "/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <ff> endcodespacerange \
             3 beginbfchar <41> <{a:04x}> <42> <{b:04x}> <43> <{c:04x}> endbfchar endcmap end"
        );
        let stream = |data: &str| format!("<</Length {}>>\nstream\n{data}\nendstream", data.len());
        let font = |name| {
            format!("<</Type/Font/Subtype/Type1/BaseFont/{name}/Encoding/WinAnsiEncoding/ToUnicode 8 0 R>>")
        };
        let page = format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Annots[{}]\
             /Resources<</Font<</F 5 0 R/B 6 0 R/C 7 0 R>>>>>>",
            self.annotations
        );
        let title = string(title);
        let objects = [
            "<</Type/Catalog/Pages 2 0 R/Outlines 10 0 R>>".into(),
            "<</Type/Pages/Kids[3 0 R]/Count 1>>".into(),
            page,
            stream(&self.content),
            font("Helvetica"),
            font("Helvetica-Bold"),
            font("Courier"),
            stream(&map),
            format!("<</Title{title}>>"),
            "<</Type/Outlines/First 11 0 R/Last 11 0 R/Count 1>>".into(),
            format!("<</Title{title}/Parent 10 0 R/Dest[3 0 R/Fit]>>"),
        ];
        let mut out = String::from("%PDF-1.4\n");
        for (number, object) in (1..).zip(objects) {
            let _ = write!(out, "{number} 0 obj\n{object}\nendobj\n");
        }
        out + "trailer\n<</Root 1 0 R/Info 9 0 R>>\n%%EOF\n"
    }
}

/// A page with one line of text.
fn mapped_pdf(codes: [u16; 3], text: &str) -> String {
    let mut sheet = Sheet::default();
    sheet.text((40, 700), 'F', 14, text);
    sheet.pdf(codes, "")
}

/// Two empty lines end what HTML stands in Markdown, a quotation mark an attribute.
const URI: &str = "https://x.example/\n\n[c](javascript:alert(7))\n\n<img src=x onerror=alert(8)>\" onclick=\"alert(9)\u{1b}[31m";

/// A heading, a paragraph with links, a list, program text, a caption, a table for each form of Markdown. A, B and C are ESC, U+202E and BEL.
fn hostile_pdf() -> String {
    let mut sheet = Sheet::default();
    sheet.text((60, 740), 'B', 20, "<img src=x onerror=alert(1)> [go](javascript:x) #");
    let lines = [
        "Words before a [link](javascript:alert) and `code` and </td><script>alert(1)</script> after",
        "which go on here, with A B C some marks and ![pic](javascript:x) as well as <https://x> <!-- no end",
        "and more words of the paragraph so that it is one, a safe link here: follow me ](javascript:x) [",
    ];
    for (line, y) in lines.into_iter().zip([710, 696, 682]) {
        sheet.text((60, y), 'F', 11, line);
    }
    sheet.link([190, 680, 330, 694], URI);
    sheet.link([400, 680, 440, 694], "javascript:alert(10)");
    sheet.text((60, 640), 'F', 11, "1. [item]: javascript:alert(4)");
    sheet.text((60, 625), 'F', 11, "2. ~~~");
    for (line, y) in
        ["```", "</code></pre><script>alert(5)</script>", "~~~~ | [x](javascript:y)", "````` A B C"]
            .into_iter()
            .zip([560, 548, 536, 524])
    {
        sheet.text((60, y), 'C', 10, line);
    }
    sheet.text((60, 490), 'F', 11, "Table 1: <b onmouseover=x> a | caption [c](javascript:z) `");
    let row = |[a, b, c]: [&'static str; 3]| [(a, 160), (b, 160), (c, 160)];
    let rows = [
        row(["a|b", "</td><script>", "``` x"]),
        row(["\\|c", "](javascript:x)", "A B C|"]),
        row(["[d", "one\\", "`|`"]),
        row(["5", "6", "<!--"]),
    ];
    sheet.table(480, &rows.each_ref().map(|row| &row[..]));
    sheet.text(
        (60, 370),
        'F',
        11,
        "Some words between the tables, so that they are two and not one table of the page.",
    );
    let head: &[(&str, u32)] = &[("Head over both </th></table><script>alert(6)</script>", 480)];
    sheet.table(350, &[head, &[("click here", 240), ("two", 240)], &[("3", 240), ("A <img src=x>", 240)]]);
    sheet.link([60, 312, 200, 328], URI);
    sheet.pdf([0x1b, 0x202e, 0x07], "<script>alert(11)</script>\u{1b}]0;x\u{7}")
}

/// Name of a file, without extension, that is all of it at once.
const NAME: &[u8] = b"a|b`<img src=x onerror=alert(1)>](javascript:x)\n\x1b[31m\xe2\x80\xae\xc2\x9b";

fn acts(text: &str) -> bool {
    text.contains(|c: char| {
        c != '\n' && (c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    })
}

/// Markdown without its blocks of code; fails where one stays open.
fn outside_of_code(markdown: &str) -> String {
    let mut fence: Option<usize> = None;
    let mut out = String::new();
    for line in markdown.lines() {
        let ticks = line.bytes().take_while(|b| *b == b'`').count();
        match fence {
            Some(length) if ticks >= length && line.len() == ticks => fence = None,
            Some(_) => {}
            None if ticks > 2 => fence = Some(ticks),
            None => out.extend([line, "\n"]),
        }
    }
    assert_eq!(fence, None, "{markdown}");
    out
}

fn assert_markdown_is_harmless(markdown: &str) {
    assert!(!acts(markdown), "{markdown:?}");
    let outside = outside_of_code(markdown).replace("<!-- page 1 -->", "");
    for acting in ["<script", "<img", "<!--", "<b ", "<http", "\n[", "\n~~~"] {
        assert!(!outside.contains(acting), "{acting}: {markdown}");
    }
    // A bracket that closes before a target is escaped, stands without one that opens, or leads to where a reader may go.
    for (at, _) in outside.match_indices("](") {
        let line = outside[..at].rsplit(['\n', '|']).next().unwrap_or_default();
        let safe = outside[at..].starts_with("](https://x.example/");
        assert!(safe || line.ends_with('\\') || !line.contains('[') || line.contains("href="), "{markdown}");
    }
    // Three cells a row, none of which parts another.
    let rows: Vec<&str> = outside.lines().filter(|line| line.starts_with('|')).collect();
    let bars = |row: &&str| row.replace("\\\\", "").replace("\\|", "").matches('|').count();
    assert_eq!(rows.iter().map(bars).collect::<Vec<_>>(), [4; 5], "{markdown}");
    // An HTML table without an empty line.
    let table = &outside[outside.find("<table>").expect("a table with a cell over two")..];
    let table = &table[..table.find("</table>").expect("its end")];
    assert!(!table.contains("\n\n") && !table.contains("onclick=\""), "{markdown}");
    assert!(table.contains("<a href=\"https://x.example/"), "{markdown}");
}

#[test]
fn nothing_on_a_page_or_in_a_name_breaks_out() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("in")).unwrap();
    let name = [NAME, b".pdf"].concat();
    std::fs::write(dir.path().join("in").join(OsStr::from_bytes(&name)), hostile_pdf()).unwrap();
    let convert = ["convert", "in", "--model", "none", "-o", "out", "-f", "md,html,json,text", "-v"];
    let done = docparse(dir.path()).args(convert).assert().code(0);
    assert!(done.get_output().stdout.is_empty());
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(!acts(&messages) && messages.contains("\\u{1b}[31m"), "{messages:?}");

    let folder = dir.path().join("out").join(OsStr::from_bytes(NAME));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    assert_markdown_is_harmless(&read("page-0001.md"));
    assert_markdown_is_harmless(&read("document.md"));
    for name in ["page-0001.json", "document.json"] {
        let text = read(name);
        assert!(!acts(&text), "{text:?}");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert!(json["input"].as_str().unwrap().contains("\n\u{1b}[31m\u{202e}\u{9b}"), "{text}");
    }
    assert!(!acts(&read("document.txt").replace('\t', " ")));
    let html = read("document.html");
    assert!(!acts(&html));
    assert_eq!((html.matches("<script").count(), html.matches("<img").count()), (1, 0));
    let tags = html.split('<').skip(1).map(|part| part.split('>').next().unwrap_or_default());
    let marks: Vec<&str> = tags.filter(|tag| tag.contains(" on") || tag.contains("javascript")).collect();
    assert_eq!(marks, [""; 0]);

    let status = docparse(dir.path()).args(["status", "out"]).assert().code(0);
    assert!(!acts(&String::from_utf8_lossy(&status.get_output().stdout)));
    for format in ["md", "json", "text"] {
        let convert = ["convert", "in", "--model", "none", "--drafts", "text-layer", "-o", "-", "-f", format];
        let done = docparse(dir.path()).args(convert).assert().code(0);
        let text = String::from_utf8(done.get_output().stdout.clone()).unwrap();
        assert!(text.contains("click here"), "{text}");
        assert!(!acts(&text.replace('\t', " ")), "{text:?}");
    }
    assert!(tree(dir.path()).keys().all(|name| name.starts_with("in/") || name.starts_with("out/")));
}

fn stdout(folder: &Path, arguments: &[&str]) -> String {
    let done = docparse(folder).args(arguments).assert().code(0);
    String::from_utf8(done.get_output().stdout.clone()).expect("text")
}

#[test]
fn text_of_a_page_cannot_act_on_the_terminal_either() {
    let dir = tempfile::tempdir().unwrap();
    let pdf = mapped_pdf([0x1b, 0x9b, 0x07], "some words A]0;title C and B31m more words");
    std::fs::write(dir.path().join("a.pdf"), pdf).unwrap();
    for format in ["md", "text", "json"] {
        let arguments =
            ["convert", "a.pdf", "--model", "none", "--drafts", "text-layer", "-o", "-", "-f", format];
        let text = stdout(dir.path(), &arguments);
        assert!(text.contains("more words"), "{text}");
        let acting = |c: char| c.is_control() && c != '\n';
        assert!(!text.contains(acting), "{text:?}");
    }
}

#[test]
fn text_of_a_page_stays_text_in_markdown_and_html() {
    let dir = tempfile::tempdir().unwrap();
    let pdf = mapped_pdf([0x41, 0x42, 0x43], "<script src=x> | and --> [go](javascript:x) <!-- end");
    std::fs::write(dir.path().join("a.pdf"), pdf).unwrap();
    let arguments =
        ["convert", "a.pdf", "--model", "none", "--drafts", "text-layer", "-o", "out", "-f", "md,html"];
    stdout(dir.path(), &arguments);
    let markdown = std::fs::read_to_string(dir.path().join("out/a/page-0001.md")).unwrap();
    assert!(markdown.contains("&lt;script src=x>") && markdown.contains("&lt;!-- end"), "{markdown}");
    assert!(!markdown.contains("[go](javascript:x)"), "{markdown}");
    let html = std::fs::read_to_string(dir.path().join("out/a/document.html")).unwrap();
    assert!(!html.contains("<script src") && html.contains("&lt;script src=x&gt;"));
}
