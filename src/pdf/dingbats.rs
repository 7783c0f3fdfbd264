//! Fonts with signs in the places of letters: their text layer says the letter (`n` for a square, `ü` for a tick), a reader sees the sign.

use std::borrow::Cow;

use super::protocol::{Character, CharacterFlags, Font};

/// What Wingdings prints (Microsoft's chart of the font) in the places that documents use, by code in the font.
const WINGDINGS: [(u8, char); 25] = [
    (0x28, '☎'),
    (0x2a, '✉'),
    (0x46, '☞'),
    (0x6c, '●'),
    (0x6e, '■'),
    (0x6f, '☐'),
    (0x70, '☐'),
    (0x71, '❑'),
    (0x72, '❑'),
    (0x73, '◆'),
    (0x74, '◆'),
    (0x75, '◆'),
    (0x76, '◆'),
    (0x77, '◆'),
    (0xa7, '▪'),
    (0xa8, '☐'),
    (0xd8, '➢'),
    (0xdf, '←'),
    (0xe0, '→'),
    (0xe8, '→'),
    (0xf0, '→'),
    (0xfb, '✗'),
    (0xfc, '✓'),
    (0xfd, '☒'),
    (0xfe, '☑'),
];

/// A sign that nothing is known of: nearly always that of a list.
const UNKNOWN: char = '•';

/// `characters` with the signs that are printed in the places of letters.
pub(super) fn printed<'a>(characters: &'a [Character], fonts: &[Font]) -> Cow<'a, [Character]> {
    let holds_signs: Vec<bool> = fonts.iter().map(|font| holds_signs(&font.name)).collect();
    if !holds_signs.contains(&true) {
        return Cow::Borrowed(characters);
    }
    let sign_of = |character: &Character| {
        let font = character.font as usize;
        let known = holds_signs.get(font).copied().unwrap_or_default();
        known.then(|| sign(character.code, &fonts[font].name)).flatten()
    };
    let with_sign = |character: &Character| match sign_of(character) {
        Some(sign) => {
            let flags = CharacterFlags { unmapped: false, ..character.flags };
            Character { code: sign.into(), flags, ..*character }
        }
        None => *character,
    };
    Cow::Owned(characters.iter().map(with_sign).collect())
}

fn holds_signs(name: &str) -> bool {
    ["wingdings", "webdings", "dingbats"].iter().any(|part| name.contains(part))
}

/// The sign in the place of the letter or punctuation mark `code`; `None` for what already is a sign.
fn sign(code: u32, name: &str) -> Option<char> {
    let place = match code {
        // Where Windows puts the places of symbol fonts.
        0xf021..=0xf0ff => (code - 0xf000) as u8,
        0x21..=0xff => code as u8,
        // Other letters, and general punctuation.
        0x100..=0x52f | 0x2010..=0x2027 | 0x2030..=0x205e => 0,
        _ => return None,
    };
    // Only the first of the fonts of that name is charted.
    let charted = name.contains("wingdings") && !name.contains("wingdings2") && !name.contains("wingdings3");
    let known = WINGDINGS.iter().find(|(at, _)| charted && *at == place);
    Some(known.map_or(UNKNOWN, |(_, sign)| *sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;

    fn shown(font: &str, text: &str) -> String {
        let fonts = [Font::new("Times", 400, 0), Font::new(font, 400, 0)];
        let character = |c: char| Character { font: 1, ..Character::boxed(c.into(), Rect::default()) };
        let characters: Vec<Character> = text.chars().map(character).collect();
        printed(&characters, &fonts).iter().filter_map(|c| char::from_u32(c.code)).collect()
    }

    #[test]
    fn letters_of_sign_fonts_are_shown_as_printed() {
        assert_eq!(shown("ABCDEF+Wingdings", "nü\u{f0a8}\u{f0fe}„"), "■✓☐☑•");
        assert_eq!(shown("Wingdings2", "n"), "•", "another chart");
        assert_eq!(shown("AllumiStd-DingbatsTwo", "y ➔"), "• ➔", "what is a sign stays, and a space");
        assert_eq!(shown("Times-Roman", "nü"), "nü");
    }
}
