//! How the words of a region read: as running text, as a formula, as code; and what that says about the kind that the layout
//! network gave it.

use std::sync::LazyLock;

use regex::Regex;

use crate::lines::is_cjk;
use crate::page::{Kind, Region, Word};

use super::regions::{runs_of, tabular};
use crate::patterns::{CAPTION, monospaced, plain};

/// A figure with more words than this is text that stands oddly.
const FIGURE_WORDS: usize = 40;

static LONG_WORD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\p{L}\p{M}]{4,}").expect("a constant pattern"));

/// Do the words read like running text rather than cells? Most characters in long pieces, few pieces of numbers only.
pub(super) fn prose(words: &[Word]) -> bool {
    let texts: Vec<String> = runs_of(words, 0.7).iter().map(|run| plain(run)).collect();
    if texts.len() < 3 {
        return false;
    }
    let length = |t: &String| t.chars().count();
    let all: usize = texts.iter().map(length).sum();
    let long = |t: &&String| length(t) >= 28 || t.chars().filter(|&c| is_cjk(c)).count() >= 14;
    let in_long: usize = texts.iter().filter(long).map(length).sum();
    let numbers = texts.iter().filter(|t| !t.chars().any(|c| c.is_alphabetic() || c == '_')).count();
    in_long as f32 > 0.7 * all as f32 && (numbers as f32) < 0.12 * texts.len() as f32
}

/// What a look at the words says about a region's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Is(Kind),
    /// The region is none at all: its box misleads. What else stands there is to be found out.
    Rejected,
}

/// Second thoughts about the kind that the layout network gave a region, from the words in it.
pub(super) fn second_thoughts(region: &Region) -> Verdict {
    let words = &region.words;
    let text = plain(words);
    let long_words = LONG_WORD.find_iter(&text).count();
    let kind = match region.kind {
        Kind::Table if prose(words) => return Verdict::Rejected,
        Kind::Figure | Kind::Chart | Kind::Text | Kind::List if tabular(words) => Kind::Table,
        Kind::Figure | Kind::Chart if words.len() > FIGURE_WORDS => return Verdict::Rejected,
        Kind::Formula if long_words >= 1 && !has_mathematics(&text) => Kind::Text,
        Kind::Formula if long_words >= 3 && !text.contains(['=', '∑', '∫', '≤', '≥', '∈']) => {
            Kind::Text
        }
        Kind::Title | Kind::Heading => heading(&text, words, region.kind, long_words),
        other => other,
    };
    Verdict::Is(kind)
}

/// Does a text hold anything but words, numbers and punctuation?
fn has_mathematics(text: &str) -> bool {
    let sign = |c: char| {
        "=+−<>≤≥±×÷/|^_{}∗*".contains(c)
            || matches!(c, '\u{370}'..='\u{3ff}' | '\u{2070}'..='\u{209f}' | '\u{2190}'..='\u{22ff}' | '\u{1d400}'..='\u{1d7ff}')
    };
    let short = |w: &str| w.chars().filter(|c| c.is_alphabetic()).count() == 1;
    let words = text.split_whitespace();
    text.contains(sign) || 2 * words.clone().filter(|w| short(w)).count() > words.count()
}

fn heading(text: &str, words: &[Word], kind: Kind, long_words: usize) -> Kind {
    let length = text.chars().count();
    if CAPTION.is_match(text) {
        Kind::Caption
    } else if length > 200 || length > 60 && text.ends_with('.') || text.contains('@') || monospaced(words) {
        Kind::Text
    } else if long_words == 0 && text.contains(['=', '≤', '≥']) {
        Kind::Formula
    } else {
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::super::regions::bare_region;
    use super::*;
    use crate::geometry::Rect;
    use crate::lines::tests::word;

    /// Lines of words, each line at 14 px below the one before.
    fn words(lines: &[&str]) -> Vec<Word> {
        let mut out = Vec::new();
        for (r, line) in lines.iter().enumerate() {
            let mut x = 0.0;
            for part in line.split(' ') {
                let width = 6.0 * part.chars().count() as f32;
                out.push(word(part, x, 14.0 * r as f32, x + width, 14.0 * r as f32 + 10.0));
                x += width + 4.0;
            }
        }
        out
    }

    fn verdict(kind: Kind, lines: &[&str]) -> Verdict {
        second_thoughts(&Region { words: words(lines), ..bare_region(kind, 0.9, Rect::default()) })
    }

    const SENTENCES: [&str; 3] = [
        "The committee met on the first of May and heard",
        "three reports about the state of the harbour, which",
        "had been closed for repairs since the last winter",
    ];

    #[test]
    fn running_text_is_no_table_and_short_cells_are_no_prose() {
        assert!(prose(&words(&SENTENCES)));
        assert!(!prose(&words(&["a 1", "b 2", "c 3"])));
        assert_eq!(verdict(Kind::Table, &SENTENCES), Verdict::Rejected);
    }

    #[test]
    fn headings_that_are_captions_formulas_or_sentences_change_kind() {
        assert_eq!(verdict(Kind::Heading, &["Figure 3: A map"]), Verdict::Is(Kind::Caption));
        assert_eq!(verdict(Kind::Heading, &["a = b + c"]), Verdict::Is(Kind::Formula));
        assert_eq!(
            verdict(Kind::Heading, &["This sentence is far too long to be a heading, and it ends."]),
            Verdict::Is(Kind::Heading)
        );
        assert_eq!(
            verdict(Kind::Heading, &["This sentence is far too long to be a heading, and it ends here."]),
            Verdict::Is(Kind::Text)
        );
        assert_eq!(verdict(Kind::Heading, &["2 Methods"]), Verdict::Is(Kind::Heading));
    }

    #[test]
    fn figure_full_of_words_is_rejected_and_formula_of_words_is_text() {
        let lines: Vec<&str> = SENTENCES.iter().chain(&SENTENCES).copied().collect();
        assert_eq!(verdict(Kind::Figure, &lines), Verdict::Rejected);
        assert_eq!(verdict(Kind::Formula, &["SAMPLE PAPER"]), Verdict::Is(Kind::Text));
        assert_eq!(verdict(Kind::Formula, &["sinc α"]), Verdict::Is(Kind::Formula));
        assert_eq!(verdict(Kind::Figure, &["Fig label"]), Verdict::Is(Kind::Figure));
        assert_eq!(verdict(Kind::Formula, &["where these words stand"]), Verdict::Is(Kind::Text));
    }
}
