//! Lines that were read -> words of the page.

use super::recognise::{ReadChar, Reading};
use crate::geometry::Rect;
use crate::lines::STANDING;
use crate::page::Word;
use crate::raster::Raster;
use crate::raster::quad::Quad;

/// Lines whose mean probability is lower are no text.
const LEAST_CONFIDENCE: f32 = 0.5;
/// Share of a detected line's height that growing its box added above, and below.
const MARGIN: f32 = 0.18;

/// Does the line run from top to bottom?
pub(crate) fn is_standing(quad: &Quad) -> bool {
    quad.height() >= STANDING * quad.width()
}

/// Cuts a line out of the page; lines that stand are turned a quarter counter-clockwise, so that their top is on the left.
pub(crate) fn cut_line(raster: &Raster, quad: &Quad) -> Raster {
    let crop = raster.cut(quad);
    if is_standing(quad) { crop.turned_clockwise(3) } else { crop }
}

/// The words of one line, with the boxes that their characters' places give. `line` is the line's number.
pub(crate) fn words_of_line(quad: &Quad, reading: &Reading, line: u32) -> Vec<Word> {
    let characters = &reading.characters;
    if reading.confidence < LEAST_CONFIDENCE {
        return Vec::new();
    }
    let (Some(first), Some(last)) = (characters.first(), characters.last()) else { return Vec::new() };
    let half =
        if characters.len() > 1 { 0.5 * (last.x - first.x) / (characters.len() - 1) as f32 } else { 0.5 };
    let bbox = quad.bbox();
    let height = quad.height().min(quad.width());
    let margin = height * MARGIN;
    let standing = is_standing(quad);
    let word = |part: &[ReadChar]| -> Option<Word> {
        let (start, end) = (part.first()?, part.last()?);
        let (left, right) = ((start.x - half).max(0.0), (end.x + half).min(1.0));
        let x = |share: f32| bbox.x0 + share * bbox.width();
        let y = |share: f32| bbox.y0 + share * bbox.height();
        Some(Word {
            text: part.iter().map(|c| c.character).collect(),
            bbox: if standing {
                Rect::new(bbox.x0 + margin, y(left), bbox.x1 - margin, y(right))
            } else {
                Rect::new(x(left), bbox.y0 + margin, x(right), bbox.y1 - margin)
            },
            size: height - 2.0 * margin,
            bold: false,
            font: "".into(),
            line,
            glue: false,
            confidence: part.iter().map(|c| c.confidence).sum::<f32>() / part.len() as f32,
            source: reading.source,
            link: None,
            suspicious: 0.0,
            latex: None,
        })
    };
    characters.split(|c| c.character.is_whitespace()).filter_map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Source;

    fn reading(text: &str, confidence: f32) -> Reading {
        let n = text.chars().count() as f32;
        let place = |(i, character)| ReadChar { character, x: (i as f32 + 0.5) / n, confidence };
        Reading { characters: text.chars().enumerate().map(place).collect(), confidence, source: Source::Ocr }
    }

    #[test]
    fn words_stand_where_their_characters_stand() {
        let quad = Quad([[100.0, 10.0], [200.0, 10.0], [200.0, 30.0], [100.0, 30.0]]);
        let words = words_of_line(&quad, &reading("ab cde fg ", 0.9), 3);
        let texts: Vec<&str> = words.iter().map(|w| w.text.as_str()).collect();
        assert_eq!(texts, ["ab", "cde", "fg"]);
        let b = words[1].bbox;
        assert!((b.x0 - 130.0).abs() < 1e-3 && (b.x1 - 160.0).abs() < 1e-3, "{b:?}");
        assert!((words[1].size - 12.8).abs() < 1e-3 && words[1].line == 3);
    }

    #[test]
    fn words_of_a_standing_line_stand_below_each_other() {
        let quad = Quad([[10.0, 100.0], [30.0, 100.0], [30.0, 200.0], [10.0, 200.0]]);
        let words = words_of_line(&quad, &reading("ab cde fg ", 0.9), 0);
        let b = words[1].bbox;
        assert!((b.y0 - 130.0).abs() < 1e-3 && (b.y1 - 160.0).abs() < 1e-3, "{b:?}");
        let mut page = Raster::filled(40, 220, [255; 3]);
        page.rgb[(105 * 40 + 20) * 3..][..3].fill(0);
        let crop = cut_line(&page, &quad);
        assert!(crop.width > crop.height && crop.pixel(5, 9)[0] < 50, "the top is on the left");
    }

    #[test]
    fn unsure_and_empty_lines_have_no_words() {
        let quad = Quad([[0.0, 0.0], [10.0, 0.0], [10.0, 5.0], [0.0, 5.0]]);
        assert!(words_of_line(&quad, &reading("abc", 0.4), 0).is_empty());
        assert!(words_of_line(&quad, &reading("  ", 0.9), 0).is_empty());
        assert!(words_of_line(&quad, &Reading::default(), 0).is_empty());
    }
}
