//! What list marks, section numbers, captions and typewriter fonts look like.

use std::sync::LazyLock;

use regex::Regex;

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant that a test compiles")
}

/// A bullet with the space after it. The private-use characters are what Symbol and Wingdings bullets become in text layers.
pub static BULLET: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r"^\s*(?:[•●▪■◦‣∙·–—*\-➢❑☐✓▶",
        r"\u{f0a7}\u{f0a3}\u{f0b7}\u{f0fc}\u{f0d8}\u{f06e}\u{f076}\u{f02d}\u{f084}\u{84}]|o)\s+"
    ))
});

/// A whole word that is a list mark.
pub static MARK: LazyLock<Regex> =
    LazyLock::new(|| compile(r"^(?:[•●▪■◦‣∙·*➢❑☐✓▶\u{f000}-\u{f0ff}\u{84}]|\(?\d{1,2}[.)]|\(?[a-z]\))$"));

/// The number or letter of an ordered list item, with the space after it.
pub static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| compile(r"^\s*(\(?\d{1,2}[.)]|\(?[a-z][.)]|\(?[ivx]{1,4}[.)])\s+"));

/// A numbered heading; group 1 is the number.
pub static SECTION: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r"(?i)^\s*(?:(?:chapter|section|appendix)\s+)?",
        r"((?:\d{1,2}|[A-Z]|[IVX]{1,4})(?:\.\d{1,2}){0,3})\.?\s+\S"
    ))
});

/// The beginning of a caption.
pub static CAPTION: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r"(?i)^\W*((fig(ure)?|table|tab|chart|scheme|plate|exhibit|listing)s?\.?\s*[\dIVX]",
        r"|(notes?|sources?)\s*:)"
    ))
});

/// Lower-case names of typewriter fonts.
pub static MONO: LazyLock<Regex> = LazyLock::new(|| {
    compile(concat!(
        r"mono|courier|consol|typewr|cmtt|cmsltt|nimbusmon|inconsolata|menlo",
        r"|fira ?code|source ?code|lucidatype|txtt|pcrr"
    ))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_numbers_sections_and_captions_are_told_apart() {
        assert!(BULLET.is_match("• item") && BULLET.is_match("o item") && !BULLET.is_match("of item"));
        assert!(MARK.is_match("(a)") && !MARK.is_match("(ab)"));
        assert!(
            NUMBER.is_match("iv) four") && NUMBER.is_match("(3) three") && !NUMBER.is_match("1984. A year")
        );
        assert_eq!(&SECTION.captures("Section 2.1.3 Results").expect("a section")[1], "2.1.3");
        assert!(CAPTION.is_match("Fig. 3: a curve") && CAPTION.is_match("Sources: own work"));
        assert!(!CAPTION.is_match("Table of contents") && MONO.is_match("nimbusmonl-regu"));
    }
}
