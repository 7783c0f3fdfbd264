//! Long PDFs, made when they are needed: real text in a standard font, no compression.

use std::fmt::Write;

const WORDS: [&str; 24] = [
    "the", "library", "counted", "readers", "and", "books", "after", "winter", "with", "a", "quiet",
    "harbour", "where", "boats", "returned", "slowly", "before", "evening", "while", "every", "lamp", "was",
    "lit", "again",
];
/// First words of the pages' paragraphs, in turn.
pub(crate) const FIRST_WORDS: [&str; 3] = ["Nobody", "Sometimes", "Usually"];
const PARAGRAPHS: usize = 3;
const LINES: usize = 8;
const WORDS_PER_LINE: usize = 11;

/// A PDF of `page_count` pages of text. The pages whose numbers are in `broken` are listed in its page tree, but not there.
pub(crate) fn pdf(page_count: u32, broken: &[u32]) -> Vec<u8> {
    // 1 catalogue, 2 page tree, 3 and 4 fonts, then two objects a page.
    let first = |page: u32| 3 + 2 * page;
    let missing = first(page_count + 1);
    let kids: Vec<String> = (1..=page_count)
        .map(|page| format!("{} 0 R", if broken.contains(&page) { missing } else { first(page) }))
        .collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Count {page_count} /Kids [{}] >>", kids.join(" ")),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >>".to_owned(),
    ];
    for page in 1..=page_count {
        let content = content(page);
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R \
             /Resources << /Font << /Text 3 0 R /Bold 4 0 R >> >> >>",
            first(page) + 1
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}endstream", content.len()));
    }
    written(&objects)
}

/// A heading, paragraphs and a page number.
fn content(page: u32) -> String {
    let word = |number: usize| WORDS[(page as usize * 7 + number) % WORDS.len()];
    let mut out = format!("BT /Bold 18 Tf 72 770 Td (Of {} and {}) Tj ET\n", word(3), word(17));
    let mut y = 730;
    for paragraph in 0..PARAGRAPHS {
        for line in 0..LINES {
            let number = |at: usize| paragraph * 5 + line * 13 + at * (5 + page as usize % 3);
            let mut words: Vec<&str> = (0..WORDS_PER_LINE).map(|at| word(number(at))).collect();
            if line == 0 {
                words[0] = FIRST_WORDS[(page as usize - 1) % FIRST_WORDS.len()];
            }
            let end = if line + 1 == LINES { "." } else { "" };
            let _ = writeln!(out, "BT /Text 11 Tf 72 {y} Td ({}{end}) Tj ET", words.join(" "));
            y -= 15;
        }
        y -= 20;
    }
    let _ = writeln!(out, "BT /Text 9 Tf 290 40 Td ({page}) Tj ET");
    out
}

fn written(objects: &[String]) -> Vec<u8> {
    let mut out = String::from("%PDF-1.4\n");
    let mut table = String::from("0000000000 65535 f \n");
    for (index, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", out.len());
        let _ = write!(out, "{} 0 obj\n{object}\nendobj\n", index + 1);
    }
    let (start, size) = (out.len(), objects.len() + 1);
    let _ = write!(
        out,
        "xref\n0 {size}\n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    );
    out.into_bytes()
}
