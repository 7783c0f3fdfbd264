//! Words -> running text: lines in logical order, joined without the hyphens that only the line end put there.

use std::collections::HashSet;

use unicode_bidi::{BidiClass, bidi_class};

use crate::document::Line;
use crate::document::composed::Composed;
use crate::lines::{hull_of, is_cjk, is_spaceless, line_indices, rtl_share};
use crate::page::{Source, Word};

/// Text lines, top to bottom; the words of each from left to right.
pub(crate) type Lines<'a> = Vec<Vec<&'a Word>>;

/// The words as text lines; words without characters are left out.
pub(crate) fn lines_of(words: &[Word]) -> Lines<'_> {
    line_indices(words)
        .into_iter()
        .map(|line| {
            line.into_iter().map(|i| &words[i]).filter(|w| !w.text.trim().is_empty()).collect::<Vec<_>>()
        })
        .filter(|line| !line.is_empty())
        .collect()
}

/// Are these words mostly of a script that runs from right to left?
pub(crate) fn is_rtl<'a>(words: impl IntoIterator<Item = &'a &'a Word>) -> bool {
    let text: String = words.into_iter().map(|w| w.text.as_str()).collect();
    rtl_share(&text) > 0.5
}

/// Writes text lines; knows which compounds the page spells with a hyphen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    compounds: HashSet<String>,
}

impl Writer {
    /// Learns the hyphenated compounds of a page from its words.
    pub(crate) fn new<'a>(words: impl IntoIterator<Item = &'a Word>) -> Writer {
        let inner = |w: &str| w.char_indices().any(|(at, c)| c == '-' && at > 0 && at + 1 < w.len());
        let compounds =
            words.into_iter().map(|w| bare(&w.text)).filter(|w| inner(w)).map(str::to_lowercase).collect();
        Writer { compounds }
    }

    /// Lines -> one text; hyphens at line ends are taken out where the word goes on.
    pub(crate) fn unwrapped(&self, lines: &Lines) -> Composed {
        let rtl = is_rtl(lines.iter().flatten());
        let mut out = Composed::default();
        for line in lines {
            self.join(&mut out, &line_text(line, rtl));
        }
        out.trim();
        out
    }

    /// Appends a line as running text.
    pub(crate) fn join(&self, out: &mut Composed, line: &Composed) {
        if out.is_empty() || line.is_empty() {
            out.append("", line);
            return;
        }
        match self.joint(&out.text, &line.text) {
            Joint::Space => out.append(" ", line),
            Joint::Nothing => out.append("", line),
            Joint::DropHyphen => {
                out.pop_char();
                out.append("", line);
            }
        }
    }

    /// How the line `after` goes on from `before`.
    pub(crate) fn joint(&self, before: &str, after: &str) -> Joint {
        let mut back = before.chars().rev();
        let (Some(last), Some(first)) = (back.next(), after.chars().next()) else { return Joint::Nothing };
        let before_last = back.next().unwrap_or(' ');
        let after_letter = before_last.is_alphabetic();
        if is_cjk(last) && is_cjk(first) || is_spaceless(last) && is_spaceless(first) {
            return Joint::Nothing;
        }
        if last == SOFT_HYPHEN {
            return Joint::DropHyphen;
        }
        // Numbers of a range, parts of a number.
        let ranges = matches!(last, '-' | '\u{2010}' | '–') && before_last.is_ascii_digit()
            || last == '–' && before_last.is_alphabetic();
        if ranges && first.is_ascii_digit() {
            return Joint::Nothing;
        }
        if !after_letter || !matches!(last, '-' | '\u{2010}' | '—') || !first.is_alphanumeric() {
            return Joint::Space;
        }
        if last == '—' || !first.is_lowercase() || self.keeps_hyphen(before, after) {
            return Joint::Nothing;
        }
        Joint::DropHyphen
    }

    /// Does the hyphen belong to the word: has the word another one, or does the page spell it so elsewhere?
    fn keeps_hyphen(&self, before: &str, after: &str) -> bool {
        let head = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let tail = after.split(char::is_whitespace).next().unwrap_or_default();
        let inside = head.trim_end_matches(['-', '\u{2010}']);
        inside.contains('-') || self.compounds.contains(&bare(&format!("{inside}-{tail}")).to_lowercase())
    }
}

/// What stands between two lines of running text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joint {
    Space,
    Nothing,
    /// The hyphen at the end of the first was only put there by the line end.
    DropHyphen,
}

const SOFT_HYPHEN: char = '\u{ad}';

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Lines as they stand on the page, with boxes in points.
pub(crate) fn page_lines(lines: &Lines, scale: f32) -> Vec<Line> {
    let rtl = is_rtl(lines.iter().flatten());
    lines
        .iter()
        .map(|line| Line {
            text: line_text(line, rtl).text,
            bbox: hull_of(line.iter().copied()).scaled(1.0 / scale),
        })
        .collect()
}

/// Words of one line -> text in logical order.
pub(crate) fn line_text(line: &[&Word], rtl: bool) -> Composed {
    let mut out = Composed::default();
    let mut before: Option<&Word> = None;
    for word in logical_order(line, rtl) {
        let mut text = clean(word, rtl);
        if text.is_empty() && before.is_none() && line.len() > 1 {
            // A glyph without a known character at the beginning of a line: a bullet of a symbol font.
            text.push('•');
        }
        let Some(first) = text.chars().next() else { continue };
        if let (Some(before), Some(last)) = (before, out.text.chars().last()) {
            let gap = (word.bbox.x0 - before.bbox.x1).max(before.bbox.x0 - word.bbox.x1);
            let close = is_cjk(last) && is_cjk(first) && gap < 0.5 * word.size;
            let glued = !rtl && word.glue && gap < 0.12 * word.size;
            // Behind a raised mark a sentence's end begins a word of its own; dots of an ellipsis stay as they are set.
            let ends = word.source == Source::TextLayer
                && !rtl
                && last != '.'
                && matches!(text.as_str(), "." | ",")
                && gap < 0.25 * word.size;
            if !close && !glued && !ends {
                out.push_gap(" ");
            }
        }
        out.push_word(&text, word);
        before = Some(word);
    }
    out
}

/// A word's characters as they are written: no control characters, no hyphens for line ends inside.
fn clean(word: &Word, rtl: bool) -> String {
    let text = word.text.trim();
    // Text layers and OCR give brackets as they look, not as they open and close.
    let mirror = rtl
        && matches!(word.source, Source::TextLayer | Source::Ocr | Source::Tesseract)
        && !text.chars().any(|c| bidi_class(c) == BidiClass::L);
    let last = text.char_indices().last().map_or(0, |(at, _)| at);
    text.char_indices()
        .filter(|&(at, c)| (c != SOFT_HYPHEN || at == last) && (!c.is_control() || c.is_whitespace()))
        .map(|(_, c)| match c {
            c if c.is_whitespace() => ' ',
            c if mirror => mirrored(c),
            c => c,
        })
        .collect()
}

fn mirrored(c: char) -> char {
    match c {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '«' => '»',
        '»' => '«',
        c => c,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Left,
    Right,
    Number,
    Neutral,
}

fn direction(word: &Word) -> Direction {
    let mut number = false;
    for c in word.text.chars() {
        match bidi_class(c) {
            BidiClass::L => return Direction::Left,
            BidiClass::R | BidiClass::AL => return Direction::Right,
            BidiClass::EN | BidiClass::AN => number = true,
            _ => {}
        }
    }
    if number { Direction::Number } else { Direction::Neutral }
}

/// Words from left to right -> words in reading order: the Unicode bidirectional algorithm, undone at the level of words.
fn logical_order<'a>(line: &[&'a Word], rtl: bool) -> Vec<&'a Word> {
    let (base, against) =
        if rtl { (Direction::Right, Direction::Left) } else { (Direction::Left, Direction::Right) };
    let mut words = line.to_vec();
    if !rtl && words.iter().all(|w| direction(w) != against) {
        return words;
    }
    let kinds: Vec<Direction> = words.iter().map(|w| direction(w)).collect();
    let mut start = 0;
    // Turn every run against the base direction; in a right-to-left line then turn the whole, which puts the runs right again.
    while start < words.len() {
        if kinds[start] != against {
            start += 1;
            continue;
        }
        let mut end = start + 1;
        let mut k = start + 1;
        while k < words.len() && kinds[k] != base {
            // Numbers follow a left-to-right word in its direction; neutrals only count between two words of the run.
            if kinds[k] == against || rtl && kinds[k] == Direction::Number {
                end = k + 1;
            }
            k += 1;
        }
        words[start..end].reverse();
        start = end;
    }
    if rtl {
        words.reverse();
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_bidi::{BidiInfo, Level};

    use super::*;
    use crate::lines::tests::word;

    fn text_of(words: &[Word]) -> String {
        Writer::new(words).unwrapped(&lines_of(words)).text
    }

    /// Words of equal width, one line under the other.
    fn set(lines: &[&str]) -> Vec<Word> {
        let mut out = Vec::new();
        for (row, line) in lines.iter().enumerate() {
            for (col, text) in line.split(' ').enumerate() {
                let (x, y) = (col as f32 * 60.0, row as f32 * 14.0);
                out.push(word(text, x, y, x + 50.0, y + 10.0));
            }
        }
        out
    }

    #[test]
    fn a_hyphen_at_a_line_end_goes_where_the_word_goes_on() {
        assert_eq!(text_of(&set(&["the hy-", "phenated word"])), "the hyphenated word");
        assert_eq!(text_of(&set(&["Anglo-", "Saxon law"])), "Anglo-Saxon law");
        assert_eq!(text_of(&set(&["pages 3-", "7 and on"])), "pages 3-7 and on");
        assert_eq!(text_of(&set(&["a soft\u{ad}", "ware run"])), "a software run");
    }

    #[test]
    fn numbers_go_on_after_a_dash_at_a_line_end() {
        assert_eq!(
            text_of(&set(&["models 737–8 and 737–", "9 of 2023-", "0379 and M–", "30"])),
            "models 737–8 and 737–9 of 2023-0379 and M–30"
        );
        assert_eq!(text_of(&set(&["in 1990 –", "5 years"])), "in 1990 – 5 years");
    }

    #[test]
    fn a_hyphen_that_the_page_spells_elsewhere_stays() {
        assert_eq!(
            text_of(&set(&["a well-known", "and well-", "known fact"])),
            "a well-known and well-known fact"
        );
        assert_eq!(text_of(&set(&["state-of-the-", "art tool"])), "state-of-the-art tool");
    }

    #[test]
    fn control_characters_go_and_before_a_line_they_were_a_bullet() {
        assert_eq!(text_of(&set(&["\u{84} an\u{1} item \u{2}"])), "• an item");
        assert_eq!(text_of(&set(&["\u{84}"])), "");
    }

    #[test]
    fn chinese_and_thai_lines_join_without_spaces() {
        assert_eq!(text_of(&set(&["这是一", "个句子"])), "这是一个句子");
        assert_eq!(text_of(&set(&["ของ", "ประเทศ ลาว"])), "ของประเทศ ลาว");
    }

    #[test]
    fn glued_words_touch_only_where_they_are_close() {
        let mut words = [word("foo", 0.0, 0.0, 30.0, 10.0), word("bar", 30.5, 0.0, 60.0, 10.0)];
        words[1].glue = true;
        assert_eq!(text_of(&words), "foobar");
        words[1].bbox.x0 = 45.0;
        assert_eq!(text_of(&words), "foo bar");
    }

    #[test]
    fn latin_words_keep_their_order_in_a_right_to_left_line() {
        let line = set(&["الآن Word Excel استخدم"]);
        assert_eq!(text_of(&line), "استخدم Word Excel الآن");
    }

    #[test]
    fn brackets_of_a_right_to_left_line_open_and_close() {
        assert_eq!(text_of(&set(&[")مرحبا( سلام"])), "سلام (مرحبا)");
    }

    /// Places words as a line of text would show them.
    fn shown(logical: &[&str], rtl: bool) -> Vec<Word> {
        let text = logical.join(" ");
        let level = if rtl { Level::rtl() } else { Level::ltr() };
        let info = BidiInfo::new(&text, Some(level));
        let (levels, ranges) = info.visual_runs(&info.paragraphs[0], info.paragraphs[0].range.clone());
        let mut order: Vec<usize> = Vec::new();
        for range in ranges {
            let chars: Vec<usize> =
                text[range.clone()].char_indices().map(|(at, _)| at + range.start).collect();
            let right = levels[range.start].is_rtl();
            order.extend(if right { chars.into_iter().rev().collect::<Vec<_>>() } else { chars });
        }
        let mut at = 0;
        let mut out = Vec::new();
        for w in logical {
            let place = order.iter().position(|&o| o == at).expect("every character is shown");
            out.push(word(w, place as f32 * 10.0, 0.0, place as f32 * 10.0 + 5.0, 10.0));
            at += w.len() + 1;
        }
        out
    }

    proptest! {
        #[test]
        fn lines_come_back_in_the_order_in_which_they_were_typed(
            picks in prop::collection::vec(0usize..5, 1..9), rtl in any::<bool>(),
        ) {
            // Single characters, so that a word's place is its character's place. Numbers only after text of the base
            // direction: next to the other direction the picture is ambiguous.
            let latin = ["a", "b", "c"];
            let hebrew = ["א", "ב", "ג"];
            let mut logical: Vec<&str> = vec![if rtl { "ד" } else { "d" }];
            for (n, p) in picks.iter().enumerate() {
                logical.push(match p {
                    0 | 1 => latin[n % 3],
                    2 | 3 => hebrew[n % 3],
                    _ => "–",
                });
            }
            let words = shown(&logical, rtl);
            let lines = lines_of(&words);
            let line = line_text(&lines[0], rtl);
            prop_assert_eq!(line.text, logical.join(" "));
        }
    }
}
