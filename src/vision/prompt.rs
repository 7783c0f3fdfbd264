//! The prompt around a picture -> tokens, which visual feature stands where, and positions.

use crate::graphs::TokenId;
use crate::graphs::manifest::{PositionRule, PromptText};
use crate::tokens::vocabulary::Vocabulary;

use super::picture::VisualLayout;

/// A page's prompt without the tokens that the trunk starts with.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptTokens {
    pub tokens: Vec<TokenId>,
    /// For each token 1 + index of the visual feature that stands there; 0 for text.
    pub visual: Vec<i64>,
    /// `[tokens, parts]`
    pub positions: Vec<f32>,
    /// Number of visual features.
    pub features: usize,
    /// Order of the token that comes next.
    pub next_order: f32,
}

/// How a pack's prompts are made.
#[derive(Clone, Debug)]
pub struct Prompter {
    text: PromptText,
    visual: TokenId,
    trunk_prompt: Vec<TokenId>,
    rule: PositionRule,
    parts: usize,
}

impl Prompter {
    /// Checks that the visual token is one token, and that the prompt ends with what the trunk starts with.
    pub fn new(
        text: &PromptText,
        vocabulary: &Vocabulary,
        trunk_prompt: &[TokenId],
        rule: PositionRule,
        parts: usize,
    ) -> Result<Prompter, (String, String)> {
        let fault = |field: &str, message: String| (format!("prompt.{field}"), message);
        let ids = |field: &str, text: &str| vocabulary.encode(text).map_err(|e| fault(field, e));
        let [visual] = ids("visual", &text.visual)?[..] else {
            return Err(fault("visual", format!("`{}` is not one token of the tokenizer", text.visual)));
        };
        if !ids("after", &text.after)?.ends_with(trunk_prompt) || trunk_prompt.is_empty() {
            return Err(fault("after", format!("does not end with protocol.trunk_prompt {trunk_prompt:?}")));
        }
        Ok(Prompter { text: text.clone(), visual, trunk_prompt: trunk_prompt.to_vec(), rule, parts })
    }

    /// The prompt of a page whose picture is laid out as `layout`.
    pub fn prompt(&self, layout: VisualLayout, vocabulary: &Vocabulary) -> Result<PromptTokens, String> {
        let mut tokens = vocabulary.encode(&self.written(layout))?;
        tokens.truncate(tokens.len().saturating_sub(self.trunk_prompt.len()));
        let mut features = 0;
        let visual = tokens.iter().map(|&token| {
            let is_visual = token == self.visual;
            features += i64::from(is_visual);
            if is_visual { features } else { 0 }
        });
        let visual: Vec<i64> = visual.collect();
        let (positions, next_order) = self.positions(&visual, layout);
        let features = usize::try_from(features).unwrap_or(0);
        Ok(PromptTokens { tokens, visual, positions, features, next_order })
    }

    /// The prompt as text.
    fn written(&self, layout: VisualLayout) -> String {
        let text = &self.text;
        let run = |tokens: usize| text.visual.repeat(tokens);
        let mut out = text.before.clone();
        match layout {
            VisualLayout::Grid { columns, rows } => out += &run(columns * rows),
            VisualLayout::Tiles { columns: 0, tokens, .. } => {
                out += &text.only;
                out += &run(tokens);
            }
            VisualLayout::Tiles { columns, rows, whole, tokens } => {
                for row in 1..=rows {
                    for column in 1..=columns {
                        let mark = text.tile.replace("{row}", &row.to_string());
                        out += &mark.replace("{column}", &column.to_string());
                        out += &run(tokens);
                    }
                    out += &text.row_end;
                }
                if whole {
                    out += &text.whole;
                    out += &run(tokens);
                }
            }
        }
        out + &text.end + &text.after
    }

    /// Positions of tokens, and the order of the next one. With `mrope` the picture's tokens all have the order of its first one
    /// and count rows and columns from there; the text after it goes on past the longer side.
    fn positions(&self, visual: &[i64], layout: VisualLayout) -> (Vec<f32>, f32) {
        let mut out = Vec::with_capacity(visual.len() * self.parts);
        let mut next = 0;
        let mut start = 0;
        for &feature in visual {
            let place = match (self.rule, layout, usize::try_from(feature - 1)) {
                (PositionRule::Mrope, VisualLayout::Grid { columns, rows }, Ok(index)) => {
                    if index == 0 {
                        start = next;
                        next += columns.max(rows);
                    }
                    [start, start + index / columns.max(1), start + index % columns.max(1)]
                }
                _ => {
                    next += 1;
                    [next - 1; 3]
                }
            };
            out.extend(place.iter().take(self.parts).map(|&part| part as f32));
        }
        (out, next as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::vocabulary::tests::tiny;

    fn prompter(rule: PositionRule, parts: usize) -> Prompter {
        let text = PromptText {
            before: "ab".into(),
            after: "cd".into(),
            visual: "V".into(),
            tile: "<{row}{column}".into(),
            row_end: "|".into(),
            whole: "*".into(),
            only: "!".into(),
            end: "#".into(),
        };
        let vocabulary = tiny();
        let d = vocabulary.char_token('d').unwrap();
        Prompter::new(&text, &vocabulary, &[d], rule, parts).unwrap()
    }

    fn said(layout: VisualLayout) -> String {
        let vocabulary = tiny();
        let prompt = prompter(PositionRule::Sequential, 1).prompt(layout, &vocabulary).unwrap();
        vocabulary.decode(&prompt.tokens).unwrap()
    }

    #[test]
    fn tiles_have_their_marks_and_the_trunks_tokens_are_left_out() {
        let tiles = VisualLayout::Tiles { columns: 2, rows: 2, whole: true, tokens: 2 };
        assert_eq!(said(tiles), "ab<11VV<12VV|<21VV<22VV|*VV#c");
        assert_eq!(said(VisualLayout::Tiles { columns: 0, rows: 0, whole: true, tokens: 2 }), "ab!VV#c");
        assert_eq!(said(VisualLayout::Grid { columns: 3, rows: 1 }), "abVVV#c");
    }

    #[test]
    fn a_pictures_tokens_have_rows_and_columns() {
        let prompt = prompter(PositionRule::Mrope, 3)
            .prompt(VisualLayout::Grid { columns: 2, rows: 3 }, &tiny())
            .unwrap();
        let at = |token: usize| &prompt.positions[token * 3..token * 3 + 3];
        assert_eq!(prompt.visual, [0, 0, 1, 2, 3, 4, 5, 6, 0, 0]);
        assert_eq!(at(1), [1.0, 1.0, 1.0]);
        assert_eq!((at(2), at(3), at(7)), (&[2.0; 3][..], &[2.0, 2.0, 3.0][..], &[2.0, 4.0, 3.0][..]));
        assert_eq!((at(8), prompt.next_order), (&[5.0; 3][..], 7.0));
    }

    #[test]
    fn a_prompt_that_does_not_end_as_the_trunk_starts_is_refused() {
        let vocabulary = tiny();
        let text = PromptText { visual: "VV".into(), ..prompter(PositionRule::Sequential, 1).text };
        let c = vocabulary.char_token('c').unwrap();
        let fault = |text: &PromptText| {
            Prompter::new(text, &vocabulary, &[c], PositionRule::Sequential, 1).unwrap_err().0
        };
        assert_eq!(fault(&text), "prompt.visual");
        assert_eq!(fault(&PromptText { visual: "V".into(), ..text }), "prompt.after");
    }
}
