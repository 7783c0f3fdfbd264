//! Text while it is put together: its characters, which source each came from, and which of them are links.

use std::sync::Arc;

use crate::document::Run;
use crate::page::{Source, Word};

/// A range of characters that are one hyperlink.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LinkSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Index into the page's links.
    pub(crate) link: u32,
}

/// A range of characters that are one formula.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FormulaSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) latex: Arc<str>,
}

/// Text with its runs, links and formulas. The runs always cover the text exactly; what stands between two words belongs to the run
/// before it, or to the first run where there is none before.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Composed {
    pub(crate) text: String,
    pub(crate) runs: Vec<Run>,
    pub(crate) links: Vec<LinkSpan>,
    pub(crate) formulas: Vec<FormulaSpan>,
    /// Characters in `text`.
    chars: usize,
    /// Link of the word written last.
    open_link: Option<u32>,
}

impl Composed {
    /// Text that comes from one source in one piece.
    pub(crate) fn whole(text: &str, source: Source, confidence: f32) -> Composed {
        let mut out = Composed::default();
        out.push(text, source, confidence, None);
        out
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn push_word(&mut self, text: &str, word: &Word) {
        let start = self.chars;
        self.push(text, word.source, word.confidence, word.link);
        if let Some(latex) = word.latex.clone().filter(|_| self.chars > start) {
            self.formulas.push(FormulaSpan { start, end: self.chars, latex });
        }
    }

    fn push(&mut self, text: &str, source: Source, confidence: f32, link: Option<u32>) {
        let count = text.chars().count();
        if count == 0 {
            return;
        }
        let confidence = if confidence.is_finite() { (confidence * 100.0).round() / 100.0 } else { 0.0 };
        self.text.push_str(text);
        self.push_run(Run { start: self.chars, end: self.chars + count, source, confidence });
        if let Some(link) = link {
            self.push_link(LinkSpan { start: self.chars, end: self.chars + count, link });
        }
        self.open_link = link;
        self.chars += count;
    }

    fn push_run(&mut self, run: Run) {
        match self.runs.last_mut() {
            Some(last) if last.source == run.source && last.confidence == run.confidence => {
                last.end = run.end;
            }
            Some(_) => self.runs.push(run),
            None => self.runs.push(Run { start: 0, ..run }),
        }
    }

    fn push_link(&mut self, span: LinkSpan) {
        match self.links.last_mut() {
            Some(last) if self.open_link == Some(span.link) && last.link == span.link => last.end = span.end,
            _ => self.links.push(span),
        }
    }

    /// Writes what stands between words.
    pub(crate) fn push_gap(&mut self, gap: &str) {
        self.text.push_str(gap);
        self.chars += gap.chars().count();
        if let Some(last) = self.runs.last_mut() {
            last.end = self.chars;
        }
    }

    /// Takes the last character away.
    pub(crate) fn pop_char(&mut self) {
        if self.text.pop().is_some() {
            self.chars -= 1;
            self.clip();
        }
    }

    fn clip(&mut self) {
        let end = self.chars;
        for run in &mut self.runs {
            run.end = run.end.min(end);
        }
        self.runs.retain(|run| run.start < run.end);
        for span in &mut self.links {
            span.end = span.end.min(end);
        }
        self.links.retain(|span| span.start < span.end);
        // A formula that loses a part is text again.
        self.formulas.retain(|span| span.end <= end);
    }

    /// Takes the first `count` characters away.
    pub(crate) fn strip_front(&mut self, count: usize) {
        let count = count.min(self.chars);
        let at = self.text.char_indices().nth(count).map_or(self.text.len(), |(at, _)| at);
        self.text.drain(..at);
        self.chars -= count;
        self.runs = runs_from(&self.runs, count);
        for span in &mut self.links {
            span.start = span.start.saturating_sub(count);
            span.end = span.end.saturating_sub(count);
        }
        self.links.retain(|span| span.start < span.end);
        self.formulas.retain(|span| span.start >= count);
        for span in &mut self.formulas {
            span.start -= count;
            span.end -= count;
        }
    }

    /// Takes white space away at both ends.
    pub(crate) fn trim(&mut self) {
        while self.text.ends_with(char::is_whitespace) {
            self.pop_char();
        }
        let front = self.text.chars().take_while(|c| c.is_whitespace()).count();
        if front > 0 {
            self.strip_front(front);
        }
    }

    /// Appends other text, with `gap` before it.
    pub(crate) fn append(&mut self, gap: &str, other: &Composed) {
        self.push_gap(gap);
        let shift = self.chars;
        self.text.push_str(&other.text);
        for run in &other.runs {
            self.push_run(Run { start: run.start + shift, end: run.end + shift, ..run.clone() });
        }
        self.chars += other.chars;
        if let Some(last) = self.runs.last_mut() {
            last.end = self.chars;
        }
        let mut spans =
            other.links.iter().map(|s| LinkSpan { start: s.start + shift, end: s.end + shift, ..*s });
        if let Some(first) = spans.next() {
            if first.start == shift {
                self.push_link(first);
            } else {
                self.links.push(first);
            }
            self.links.extend(spans);
        }
        let formulas = other.formulas.iter();
        self.formulas.extend(formulas.map(|s| FormulaSpan {
            start: s.start + shift,
            end: s.end + shift,
            ..s.clone()
        }));
        if !other.is_empty() {
            self.open_link = other.open_link;
        }
    }

    /// The same with line ends and tabs turned into spaces.
    pub(crate) fn on_one_line(&self) -> Composed {
        Composed { text: self.text.replace(['\n', '\t'], " "), ..self.clone() }
    }
}

/// Runs of a text without its first `count` characters.
pub(crate) fn runs_from(runs: &[Run], count: usize) -> Vec<Run> {
    runs.iter()
        .filter(|run| run.end > count)
        .map(|run| Run { start: run.start.saturating_sub(count), end: run.end - count, ..run.clone() })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lines::tests::word;

    fn covers(c: &Composed) -> bool {
        let mut at = 0;
        for run in &c.runs {
            if run.start != at || run.end <= run.start {
                return false;
            }
            at = run.end;
        }
        at == c.text.chars().count() && at == c.chars
    }

    fn linked(text: &str, link: Option<u32>, confidence: f32) -> Word {
        Word { link, confidence, ..word(text, 0.0, 0.0, 10.0, 10.0) }
    }

    #[test]
    fn neighbours_of_one_source_and_confidence_are_one_run() {
        let mut c = Composed::default();
        for (text, confidence) in [("a", 1.0), ("b", 1.0), ("ü", 0.5)] {
            if !c.is_empty() {
                c.push_gap(" ");
            }
            c.push_word(text, &linked(text, None, confidence));
        }
        let ends: Vec<usize> = c.runs.iter().map(|r| r.end).collect();
        assert_eq!((c.text.as_str(), ends), ("a b ü", vec![4, 5]));
    }

    #[test]
    fn words_of_one_link_are_one_span_and_a_word_between_parts_them() {
        let mut c = Composed::default();
        for link in [Some(3), Some(3), None, Some(3)] {
            c.push_word("x", &linked("x", link, 1.0));
            c.push_gap(" ");
        }
        let spans: Vec<(usize, usize)> = c.links.iter().map(|s| (s.start, s.end)).collect();
        assert_eq!(spans, [(0, 3), (6, 7)]);
    }

    proptest! {
        #[test]
        fn runs_cover_the_text_after_any_operations(steps in prop::collection::vec((0u8..6, "[a-zéا ]{0,4}", 0u8..3), 0..30)) {
            let mut c = Composed::default();
            for (step, text, n) in steps {
                match step {
                    0 | 1 => c.push_word(&text, &linked(&text, Some(u32::from(n)), f32::from(n) / 2.0)),
                    2 if !c.is_empty() => c.push_gap(&text),
                    3 => c.pop_char(),
                    4 => c.strip_front(usize::from(n)),
                    5 if !c.is_empty() => c.append(" ", &Composed::whole(&text, Source::Ocr, 0.5)),
                    _ => c.trim(),
                }
                prop_assert!(covers(&c), "{c:?}");
                prop_assert!(c.formulas.iter().all(|s| s.start < s.end && s.end <= c.chars));
                prop_assert!(c.links.iter().all(|s| s.start < s.end && s.end <= c.chars));
            }
        }
    }
}
