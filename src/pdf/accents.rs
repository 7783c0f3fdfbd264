//! Accents that a page sets as glyphs of their own (TeX does), and the letters that they belong to.

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization;

use super::protocol::Character;
use crate::clock::worked;

/// Spacing accents and the combining marks that they stand for.
const MARKS: [(char, char); 12] = [
    ('\u{b4}', '\u{301}'),
    ('\u{60}', '\u{300}'),
    ('\u{a8}', '\u{308}'),
    ('\u{2c6}', '\u{302}'),
    ('\u{2dc}', '\u{303}'),
    ('\u{2c7}', '\u{30c}'),
    ('\u{b8}', '\u{327}'),
    ('\u{2da}', '\u{30a}'),
    ('\u{2d8}', '\u{306}'),
    ('\u{2d9}', '\u{307}'),
    ('\u{af}', '\u{304}'),
    ('\u{2dd}', '\u{30b}'),
];
/// How far from its letter an accent may stand in content order, before and after: pdfium may put the accents of a line at its
/// end.
const REACH: (usize, usize) = (400, 16);

/// A character's part in an accented letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accent {
    /// A letter that gets this combining mark.
    Carries(char),
    /// An accent that has gone to its letter.
    Moved,
}

/// Accents and their letters, by index of the character.
pub(super) fn find(characters: &[Character]) -> HashMap<usize, Accent> {
    let mut out = HashMap::new();
    for (index, accent) in characters.iter().enumerate() {
        let mark = MARKS.iter().find(|(spacing, _)| accent.code == u32::from(*spacing));
        let (Some(&(_, mark)), Some(bbox)) = (mark, accent.bbox) else { continue };
        let (x, y) = bbox.center();
        // Some of them are composed.
        worked(16 * (REACH.0 + REACH.1));
        let near = index.saturating_sub(REACH.0)..(index + REACH.1).min(characters.len());
        let letter = near
            .filter(|&at| at != index && !out.contains_key(&at))
            .filter_map(|at| {
                let b = characters[at].bbox?;
                let letter = char::from_u32(characters[at].code).filter(|c| c.is_alphabetic())?;
                let away = (x - b.center().0).abs();
                let overlaps = away <= 0.65 * b.width() && (y - b.center().1).abs() < 0.5 * b.height();
                let fits = composed(letter.encode_utf8(&mut [0; 4]), mark).chars().count() == 1;
                (overlaps && fits).then_some((at, away))
            })
            .min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((at, _)) = letter {
            out.insert(at, Accent::Carries(mark));
            out.insert(index, Accent::Moved);
        }
    }
    out
}

/// `letters` with a combining mark; dotless letters, which TeX sets under accents, get their plain form.
pub(super) fn composed(letters: &str, mark: char) -> String {
    let plain = letters.chars().map(|c| match c {
        '\u{131}' => 'i',
        '\u{237}' => 'j',
        c => c,
    });
    plain.chain([mark]).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;

    fn character(c: char, x0: f32) -> Character {
        Character::boxed(c.into(), Rect::new(x0, 0.0, x0 + 5.0, 10.0))
    }

    #[test]
    fn an_accent_goes_to_the_letter_that_it_stands_over() {
        let found = find(&[character('a', 0.0), character('\u{a8}', 5.2), character('o', 5.0)]);
        assert_eq!(found.get(&2), Some(&Accent::Carries('\u{308}')));
        assert_eq!(found.get(&1), Some(&Accent::Moved));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn an_accent_beside_letters_or_over_one_without_such_a_form_stays() {
        assert!(find(&[character('`', 0.0), character('a', 9.0)]).is_empty());
        assert!(find(&[character('\u{2c7}', 0.0), character('x', 0.0)]).is_empty());
    }

    #[test]
    fn dotless_letters_get_their_plain_form() {
        assert_eq!(composed("\u{131}", '\u{301}'), "\u{ed}");
    }
}
