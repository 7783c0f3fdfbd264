//! What captions, list marks, section numbers, typewriter fonts and running lines look like. Shared by the structure of a page
//! and by the paragraphs of a document.

use std::sync::LazyLock;

use regex::Regex;

use crate::page::Word;

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("patterns of this file are constant and tested")
}

/// Start of a caption: `Figure 3`, `Tab. IV`, `Source:`; a number must follow the word.
pub static CAPTION: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^\W*(?:(?i:fig(?:ure)?|table|tab|chart|scheme|plate|exhibit|listing|abb(?:ildung)?|tabelle|tableau|figura|tabla)s?\.?\s*(?:\d|[IVX]+\b)|(?i:notes?|sources?)\s*:|[图圖表]\s*\d)",
    )
});

/// A whole word that is a list mark: a bullet, `3.`, `(b)`.
pub static MARK: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:[•●▪■◦‣∙·*➢❑☐✓▶\x{f000}-\x{f0ff}\x{fffd}]|\(?\d{1,2}[.)]|\(?[a-z]\))$"));

/// A whole piece of text that numbers the heading after it: `2.1`, `IV.`, `B`.
pub static HEADING_NUMBER: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^(?:\d{1,2}(?:\.\d{1,2}){0,3}|[A-Z](?:\.\d{1,2}){0,3}|[IVX]{1,4})\.?$"));

/// A bullet at the start of an item, with the space after it.
pub static BULLET: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^\s*(?:[•●▪■◆◦‣∙·–—*\-➢❑☐✓▶\x{f020}-\x{f0ff}\x{fffd}]|o)\s+"));

/// A number at the start of an item, with the space after it: `3. `, `(b) `, `iv) `.
pub static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| regex(r"^\s*(\(?\d{1,2}[.)]|\(?[a-z][.)]|\(?[ivx]{1,4}[.)])\s+"));

/// Section number at the start of a heading; group 1 is the number: `2.1`, `IV`, `B.3`.
pub static SECTION: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^\s*(?:(?i:chapter|section|appendix)\s+)?((?:\d{1,2}|[A-Z]|[IVX]{1,4})(?:\.\d{1,2}){0,3})\.?\s+\S",
    )
});

/// Names of typewriter fonts, lower case.
pub static MONO: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"mono|courier|consol|typewr|cmtt|cmsltt|nimbusmon|inconsolata|menlo|fira ?code|source ?code|lucidatype|txtt|pcrr",
    )
});

/// A whole line that is a page number: `12`, `- 12 -`, `Page 3 of 9`, `xiv`, `A-7`; in brackets it would number a formula.
pub static PAGE_NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"^[^\w()\[\]]*(?i:(?:page|seite|p\.)\s*)?(?:\d{1,4}|[ivxlc]{1,6}|[IVXLC]{1,6}|[A-Z]{1,2}[-–.]\d{1,3})(?i:\s*(?:of|/|\||von)\s*\d{1,4})?[^\w()\[\]]*$",
    )
});

/// What only running lines say: rights, addresses of the web, mail addresses, identifiers of the publication.
pub static IMPRINT: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)©|\(c\)\s*\d{4}|copyright|all rights reserved|https?://|\bwww\.|\bdoi\b|\bissn\b|\bisbn\b|\S@\S+\.\w|confidential|\bpage \d{1,4}\b",
    )
});

/// Start of a footnote: a number or one of the usual signs, then text (with or without a space).
pub static FOOTNOTE: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^\s*(?:[*∗†‡§¶]{1,3}|\(?\d{1,3}\)?|[¹²³⁰-⁹]+|[a-z])[.)]?\s*[\p{Lu}\p{Lo}“”\x22(‘]")
});

/// Dots in a row that lead the eye to a page number.
pub const LEADER_DOTS: usize = 5;

/// How many dots a word ends with, and whether it is nothing else.
fn dots(word: &Word) -> (usize, bool) {
    let dot = |c: &char| matches!(c, '.' | '·' | '…' | '․' | '_');
    let count = word.text.chars().rev().take_while(dot).map(|c| if c == '…' { 3 } else { 1 }).sum();
    (count, word.text.chars().all(|c| dot(&c)))
}

/// The last row of dots in a line: index of its first word (which may begin with text) and of the word after it.
pub fn leader(line: &[Word]) -> Option<(usize, usize)> {
    let mut found = None;
    let (mut from, mut count) = (0, 0);
    for (at, word) in line.iter().enumerate() {
        let (here, only) = dots(word);
        if !only {
            count = 0;
        }
        if !only && here < 3 {
            // The full stop of an abbreviation.
            continue;
        }
        if count == 0 {
            from = at;
        }
        count += here;
        if count >= LEADER_DOTS {
            found = Some((from, at + 1));
        }
    }
    found
}

/// A word without the dots at its end.
pub fn undotted(word: &Word) -> Word {
    let kept = word.text.trim_end_matches(['.', '·', '…', '․', '_']).len();
    Word { text: word.text[..kept].into(), ..word.clone() }
}

/// Joined text of some words, as they come.
pub fn plain(words: &[Word]) -> String {
    let parts: Vec<&str> = words.iter().map(|w| w.text.as_str()).collect();
    parts.join(" ")
}

/// An address of the web or of mail as a whole word.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r"(?i)^\W*(?:\S+@\S+\.\w+|(?:mailto:|https?://|ftp://|www\.)\S+|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,6}/\S*)\W*$",
    )
});

/// Is this text set in a typewriter font, and more than addresses, which are often set so? More than 80 % of its characters must
/// be; pictures have no fonts.
pub fn monospaced<'a>(words: impl IntoIterator<Item = &'a Word>) -> bool {
    let (mut all, mut mono, mut address) = (0usize, 0usize, 0usize);
    for word in words {
        let n = word.text.chars().count();
        all += n;
        mono += if MONO.is_match(&word.font) { n } else { 0 };
        address += if ADDRESS.is_match(&word.text) { n } else { 0 };
    }
    mono as f32 > 0.8 * all as f32 && 2 * address <= all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captions_need_a_number() {
        for yes in ["Figure 3: The map", "Table IV. Results", "Fig. 2", "Source: Eurostat", "表 3 结果"] {
            assert!(CAPTION.is_match(yes), "{yes}");
        }
        for no in ["Table is shown", "Figures of speech", "Notes on a scandal"] {
            assert!(!CAPTION.is_match(no), "{no}");
        }
    }

    #[test]
    fn page_numbers_are_whole_lines() {
        for yes in ["12", "- 12 -", "Page 3 of 9", "xiv", "A-7", "3 / 40"] {
            assert!(PAGE_NUMBER.is_match(yes), "{yes}");
        }
        for no in ["12 apples", "(24)", "2.5 %", "12345", "mild"] {
            assert!(!PAGE_NUMBER.is_match(no), "{no}");
        }
    }

    #[test]
    fn marks_bullets_numbers_and_sections_are_told_apart() {
        assert!(MARK.is_match("•") && MARK.is_match("(b)") && !MARK.is_match("b"));
        assert!(
            HEADING_NUMBER.is_match("2.1.1")
                && HEADING_NUMBER.is_match("IV.")
                && !HEADING_NUMBER.is_match("In")
        );
        assert!(BULLET.is_match("\u{fffd} item"), "a sign of a font whose characters nobody knows");
        assert!(BULLET.is_match("– item") && BULLET.is_match("o item") && !BULLET.is_match("one"));
        assert!(NUMBER.is_match("iv) item") && !NUMBER.is_match("12 men"));
        let number = SECTION.captures("Appendix B.3 Proofs").map(|c| c[1].to_string());
        assert_eq!(number.as_deref(), Some("B.3"));
        assert!(
            FOOTNOTE.is_match("1See the note")
                && FOOTNOTE.is_match("* Corresponding")
                && !FOOTNOTE.is_match("The")
        );
        assert!(
            ADDRESS.is_match("<me@example.org>,")
                && ADDRESS.is_match("example.org/a")
                && !ADDRESS.is_match("a.b")
        );
        assert!(IMPRINT.is_match("© 2020 The Authors") && !IMPRINT.is_match("The authors"));
    }
}
