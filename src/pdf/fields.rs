//! Values of form fields that no text layer shows -> words, laid out in the field's box as a viewer would.

use super::protocol::FieldText;
use crate::characters::turns_direction;
use crate::geometry::Rect;
use crate::page::{Source, Word};

/// Font height of form fields where the file leaves it open, points.
const FIELD_FONT_HEIGHT: f32 = 12.0;
/// Mean advance of a letter in font heights (Helvetica).
const ADVANCE: f32 = 0.5;
/// Longest value that is laid out, characters.
const MAX_TEXT: usize = 20_000;

/// Appends the field's words, one `line` number for each line of the value.
pub(super) fn append(field: &FieldText, scale: f32, line: &mut u32, words: &mut Vec<Word>) {
    let text: String = field.text.chars().filter(|&c| !turns_direction(c)).take(MAX_TEXT).collect();
    let lines: Vec<&str> = text.split(['\r', '\n']).filter(|l| !l.trim().is_empty()).collect();
    let room = field.bbox.height() / lines.len().max(1) as f32;
    let size = (FIELD_FONT_HEIGHT * scale).min(room).max(1.0);
    for (row, text) in lines.iter().enumerate() {
        let top = if lines.len() == 1 {
            field.bbox.center().1 - size / 2.0
        } else {
            field.bbox.y0 + row as f32 * room
        };
        let letters = text.chars().count().max(1) as f32;
        let advance = (ADVANCE * size).min(field.bbox.width().max(1.0) / letters);
        let mut x = field.bbox.x0;
        for part in text.split(' ') {
            let width = part.chars().count() as f32 * advance;
            if !part.is_empty() {
                words.push(Word {
                    text: part.to_owned(),
                    bbox: Rect::new(x, top, x + width, top + size),
                    size,
                    bold: false,
                    font: "".into(),
                    line: *line,
                    glue: false,
                    confidence: 1.0,
                    source: Source::TextLayer,
                    link: None,
                    suspicious: 0.0,
                    latex: None,
                });
            }
            x += width + advance;
        }
        *line += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_laid_out_inside_its_box() {
        let field =
            FieldText { bbox: Rect::new(10.0, 10.0, 60.0, 40.0), text: "Ada Lovelace\rLondon".into() };
        let (mut words, mut line) = (Vec::new(), 7);
        append(&field, 1.0, &mut line, &mut words);
        let got: Vec<(&str, u32)> = words.iter().map(|w| (w.text.as_str(), w.line)).collect();
        assert_eq!(got, [("Ada", 7), ("Lovelace", 7), ("London", 8)]);
        assert!(words.iter().all(|w| field.bbox.intersection(&w.bbox) > 0.99 * w.bbox.area()));
        assert_eq!(line, 9);
    }
}
