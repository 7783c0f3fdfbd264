//! Characters of a text layer -> words. Pure; all lengths in pixels of the upright raster.
//!
//! Gaps decide where a word ends; the spaces that pdfium makes up count only where there is some gap. Letters that a page shows
//! in parts (TeX accents, halves of surrogate pairs) are put together, glyphs of presentation forms become letters. Chinese and Japanese
//! characters below one another are one word, which stands.

use std::collections::HashMap;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;

use super::accents::{self, Accent};
use super::dingbats::printed;
use super::protocol::{Character, Font, PageReply};
use crate::characters::turns_direction;
use crate::clock::worked;
use crate::geometry::Rect;
use crate::lines::{STANDING, is_cjk, median};
use crate::page::{Glyph, Source, Word};

/// A gap wider than this share of the font height ends a word, whatever the content says.
const GAP: f32 = 0.35;
/// The same in lines whose letters touch: pdfium does not see the narrow spaces of some fonts.
const GAP_OF_TOUCHING: f32 = 0.17;
/// Letters nearer to each other than this share of their height touch.
const TOUCHING: f32 = 0.03;
/// The same where pdfium made up a space.
const GAP_AT_MADE_UP_SPACE: f32 = 0.06;
/// Words of one text nearer to each other than this share of their height are one word, painted twice.
const SAME_PLACE: f32 = 0.2;
/// How many of the latest words of one text are looked at: a page on which one stands more often is not painted twice word by word.
const RECENT: usize = 1000;
/// No word has more characters; all are looked at for each that may join.
const LONGEST: u32 = 1000;
/// Characters of one word overlap vertically by more than this share of the smaller height.
const SAME_LINE: f32 = 0.3;

/// From one character of a standing line to the next below, in heights of their boxes; boxes reach from ascent to descent.
const STEP_DOWN: std::ops::Range<f32> = 0.5..1.5;
/// How far their centres may stand beside each other, in heights.
const ASIDE: f32 = 0.2;

/// Ascent to descent of text fonts, em (Times 1.11, Helvetica 1.12).
const USUAL_HEIGHT: f32 = 1.1;
/// Share of it that a box has whose font says nothing true about its ascent. A lower one comes from a font size that says nothing.
const TOO_LOW: std::ops::Range<f32> = 0.5..0.8;

/// A box higher than this many usual ones says nothing about the line.
const TOO_HIGH: f32 = 1.35;
/// Ascent of text fonts, em.
const USUAL_ASCENT: f32 = 0.85;

/// A glyph that paints less than this, px, paints nothing.
const LEAST_INK: f32 = 0.5;

/// What Windows' code page 1252 has at 0x80 to 0x9F.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{fffd}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{fffd}', 'Ž',
    '\u{fffd}', //
    '\u{fffd}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{fffd}', 'ž', 'Ÿ',
];

/// The words of a text layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TextLayer {
    pub(crate) words: Vec<Word>,
    /// The words' glyphs, in the same order.
    pub(crate) glyphs: Vec<Glyph>,
    /// Share of the words' characters that are not painted, 0..1.
    pub(crate) hidden_share: f32,
    /// Characters left out: at another angle than the page's text, or outside the page.
    pub(crate) left_out: usize,
}

/// A word that still grows.
struct Open {
    text: String,
    bbox: Rect,
    size: f32,
    font: u32,
    angle: u8,
    line: u32,
    glue: bool,
    characters: u32,
    suspicious: u32,
    invisible: u32,
    glyphs: Vec<OpenGlyph>,
}

/// A glyph of an open word: what it shows, and the character that it was.
#[derive(Clone, Copy)]
struct OpenGlyph {
    shows: char,
    character: Character,
}

/// What stands between two characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Between {
    Nothing,
    /// A space that pdfium made up.
    Guess,
    LineEnd,
    Space,
}

/// The words of `page`, form field values at their end.
pub(crate) fn words(page: &PageReply) -> TextLayer {
    let fonts: Vec<(Arc<str>, bool)> =
        page.fonts.iter().map(|f: &Font| (f.name.as_str().into(), f.bold)).collect();
    let raster = Rect::new(0.0, 0.0, page.width as f32, page.height as f32);
    let mut layer = TextLayer::default();
    let (mut all, mut hidden) = (0u32, 0u32);
    for open in painted_once(group(&printed(&page.characters, &page.fonts), page.scale)) {
        let inside = open.bbox.overlap_x(&raster) > 0.0 && open.bbox.overlap_y(&raster) > 0.0;
        if open.angle != page.angle || !inside {
            layer.left_out += open.characters as usize;
            continue;
        }
        all += open.characters;
        hidden += open.invisible;
        let word = layer.words.len() as u32;
        layer.glyphs.extend(open.glyphs.iter().map(|g| glyph(g, word, &fonts, page.scale)));
        layer.words.push(finished(&open, &fonts, page));
    }
    layer.hidden_share = hidden as f32 / all.max(1) as f32;
    let mut line = layer.words.last().map_or(0, |w| w.line + 1);
    for field in &page.fields {
        super::fields::append(field, page.scale, &mut line, &mut layer.words);
    }
    layer
}

fn finished(open: &Open, fonts: &[(Arc<str>, bool)], page: &PageReply) -> Word {
    worked(page.links.len());
    let (font, bold) = fonts.get(open.font as usize).cloned().unwrap_or_default();
    let (x, y) = open.bbox.center();
    let covers = |b: &Rect| (b.x0..=b.x1).contains(&x) && (b.y0..=b.y1).contains(&y);
    Word {
        text: open.text.nfc().collect(),
        bbox: open.bbox,
        size: font_height(open, page.scale),
        bold,
        font,
        line: open.line,
        glue: open.glue,
        confidence: 1.0,
        source: Source::TextLayer,
        link: page.links.iter().position(|l| covers(&l.bbox)).map(|at| at as u32),
        suspicious: open.suspicious as f32 / open.characters.max(1) as f32,
        latex: None,
    }
}

/// Ascent to descent, px: the height of the box, or what fonts of this size usually have where the font's own figures make the box
/// much too low.
fn font_height(open: &Open, scale: f32) -> f32 {
    let usual = USUAL_HEIGHT * scale * open.glyphs.first().map_or(0.0, |g| g.character.size);
    if TOO_LOW.contains(&(open.size / usual)) { usual } else { open.size }
}

/// The box of a character whose font claims far more above and below than others (TeX's symbols): what is usual around the baseline,
/// and what is painted.
fn usual_box(character: &Character, bbox: Rect, scale: f32) -> Rect {
    let em = character.size * scale;
    let usual = USUAL_HEIGHT * em;
    if !(em > 0.0 && character.baseline.is_finite() && bbox.height() > TOO_HIGH * usual) {
        return bbox;
    }
    let top = character.baseline - USUAL_ASCENT * em;
    let (y0, y1) = (top.min(character.ink.y0), (top + usual).max(character.ink.y1));
    Rect { y0: y0.max(bbox.y0), y1: y1.min(bbox.y1), ..bbox }
}

fn glyph(open: &OpenGlyph, word: u32, fonts: &[(Arc<str>, bool)], scale: f32) -> Glyph {
    let character = &open.character;
    let (font, bold) = fonts.get(character.font as usize).cloned().unwrap_or_default();
    Glyph {
        character: open.shows,
        ink: character.ink,
        baseline: character.baseline,
        size: character.size * scale,
        font,
        bold,
        word,
    }
}

/// The glyphs of a character that shows `letters`; the letters of a ligature share its width.
fn glyphs(character: Character, letters: &str) -> Vec<OpenGlyph> {
    let count = letters.chars().count().max(1) as f32;
    let ink = character.ink;
    let part = |k: usize| ink.x0 + ink.width() * k as f32 / count;
    let letter = |(k, shows): (usize, char)| {
        let ink = Rect::new(part(k), ink.y0, part(k + 1), ink.y1);
        OpenGlyph { shows, character: Character { ink, ..character } }
    };
    letters.chars().enumerate().map(letter).collect()
}

/// Joins characters that follow each other without a space or a wide gap.
fn group(characters: &[Character], scale: f32) -> Vec<Open> {
    let mut words: Vec<Open> = Vec::new();
    // Whether the next character may join the last word, and what stood before it.
    let (mut joins, mut between, mut line) = (false, Between::Space, 0u32);
    let parts = parts(characters, scale);
    let spaced = letter_gaps(&parts);
    for part in parts {
        match part {
            Part::LineEnd => {
                line += 1;
                joins = false;
                // pdfium ends the line after each character of a line that stands.
                between = if between == Between::Space { between } else { Between::LineEnd };
            }
            Part::Space => (joins, between) = (false, Between::Space),
            Part::Guess if between == Between::Nothing => between = Between::Guess,
            Part::Guess => {}
            Part::Letters(mut piece) => {
                (piece.line, piece.glue) = (line, between == Between::Nothing);
                let goes_on = |word: &&mut Open| {
                    worked(word.characters as usize);
                    word.characters < LONGEST
                        && (joins && continues(word, &piece, between, spaced[line as usize])
                            || between != Between::Space && continues_below(word, &piece))
                };
                match words.last_mut().filter(goes_on) {
                    Some(word) => extend(word, &piece),
                    None => words.push(piece),
                }
                (joins, between) = (true, Between::Nothing);
            }
        }
    }
    words
}

/// The words without those that are painted again in the same place: bold type made by hand, shadows.
fn painted_once(words: Vec<Open>) -> Vec<Open> {
    let mut places: HashMap<String, Vec<Rect>> = HashMap::new();
    let mut is_again = |word: &Open| {
        let slack = SAME_PLACE * word.bbox.height();
        let same = |b: &Rect| (b.x0 - word.bbox.x0).abs() < slack && (b.y0 - word.bbox.y0).abs() < slack;
        let is_near = |boxes: &[Rect]| {
            worked(boxes.len().min(RECENT));
            boxes.iter().rev().take(RECENT).any(same)
        };
        match places.get_mut(&word.text) {
            Some(boxes) if is_near(boxes) => true,
            Some(boxes) => {
                boxes.push(word.bbox);
                false
            }
            None => {
                places.insert(word.text.clone(), vec![word.bbox]);
                false
            }
        }
    };
    words.into_iter().filter(|word| !is_again(word)).collect()
}

/// What a character is for the words around it.
enum Part {
    LineEnd,
    Space,
    /// A space that pdfium made up.
    Guess,
    /// A word of one character.
    Letters(Open),
}

fn parts(characters: &[Character], scale: f32) -> Vec<Part> {
    let accents = accents::find(characters);
    let mut out = Vec::with_capacity(characters.len());
    let mut second_half = false;
    for (index, &character) in characters.iter().enumerate() {
        if std::mem::take(&mut second_half) || accents.get(&index) == Some(&Accent::Moved) {
            continue;
        }
        let Some(bbox) = character.bbox.filter(is_finite) else {
            out.push(match character.code {
                10 => Part::LineEnd,
                0x20 if character.flags.made_up => Part::Guess,
                _ => Part::Space,
            });
            continue;
        };
        let bbox = usual_box(&character, bbox, scale);
        let pair = surrogate_pair(character, characters.get(index + 1));
        second_half = pair.is_some();
        let Some(letters) = letters(&character, pair) else { continue };
        if letters.chars().all(char::is_whitespace) {
            out.push(Part::Space);
            continue;
        }
        let letters = match accents.get(&index) {
            Some(&Accent::Carries(mark)) => accents::composed(&letters, mark),
            _ => letters,
        };
        let suspicious = character.flags.unmapped || letters.chars().any(cannot_be_right);
        let glyphs = match char::from_u32(character.code) {
            // The code may be a place in the font.
            Some(c) if c.is_control() => vec![OpenGlyph { shows: c, character }],
            _ => glyphs(character, &letters),
        };
        out.push(Part::Letters(Open {
            text: letters,
            glyphs,
            bbox,
            size: bbox.height(),
            font: character.font,
            angle: character.angle,
            line: 0,
            glue: false,
            characters: 1,
            suspicious: u32::from(suspicious),
            invisible: u32::from(character.flags.invisible),
        }));
    }
    out
}

/// By line the median gap between letters that nothing stands between, as a share of their height; large where type is set spaced
/// out.
fn letter_gaps(parts: &[Part]) -> Vec<f32> {
    let lines = parts.split(|part| matches!(part, Part::LineEnd));
    let gap = |pair: &[Part]| match pair {
        [Part::Letters(a), Part::Letters(b)] => {
            Some((b.bbox.x0 - a.bbox.x1) / a.bbox.height().max(b.bbox.height()).max(1e-6))
        }
        _ => None,
    };
    lines.map(|line| median(line.windows(2).filter_map(gap))).collect()
}

/// Does `next` stand in the same word, where letters of this line usually are `usual` of their height apart?
fn continues(word: &Open, next: &Open, between: Between, usual: f32) -> bool {
    let (a, b) = (word.bbox, next.bbox);
    let height = a.height().max(b.height());
    let gap = (b.x0 - a.x1).max(a.x0 - b.x1);
    let touching = usual < TOUCHING && ![&word.text, &next.text].iter().any(|text| text.chars().any(is_cjk));
    let limit = match between {
        Between::Guess => GAP_AT_MADE_UP_SPACE,
        _ if touching => GAP_OF_TOUCHING,
        _ => GAP,
    };
    word.angle == next.angle
        && !stands(word)
        && a.overlap_y(&b) > SAME_LINE * a.height().min(b.height())
        && gap < limit * height
}

/// Does `next` stand under the one character, or the standing line, that the word is so far?
fn continues_below(word: &Open, next: &Open) -> bool {
    let Some(last) = word.glyphs.last().and_then(|glyph| glyph.character.bbox) else { return false };
    let height = word.size.max(next.size);
    let ((x, y), (next_x, next_y)) = (last.center(), next.bbox.center());
    word.angle == next.angle
        && (word.characters == 1 || stands(word))
        && word.text.chars().chain(next.text.chars()).all(is_cjk)
        && (next_x - x).abs() < ASIDE * height
        && STEP_DOWN.contains(&((next_y - y) / height))
}

fn stands(word: &Open) -> bool {
    word.characters > 1 && word.bbox.height() > STANDING * word.bbox.width() && word.text.chars().all(is_cjk)
}

fn extend(word: &mut Open, next: &Open) {
    word.text.push_str(&next.text);
    word.bbox = word.bbox.union(&next.bbox);
    word.characters += next.characters;
    word.suspicious += next.suspicious;
    word.invisible += next.invisible;
    word.glyphs.extend_from_slice(&next.glyphs);
}

fn is_finite(b: &Rect) -> bool {
    b.x0.is_finite() && b.y0.is_finite() && b.x1.is_finite() && b.y1.is_finite()
}

/// The code point that two halves of a surrogate pair make.
fn surrogate_pair(first: Character, second: Option<&Character>) -> Option<u32> {
    let second = second?.code;
    ((0xd800..0xdc00).contains(&first.code) && (0xdc00..0xe000).contains(&second))
        .then(|| 0x1_0000 + ((first.code - 0xd800) << 10) + (second - 0xdc00))
}

/// What a character stands for, if two make a pair, what the pair does; `None` for codes that show nothing.
fn letters(character: &Character, pair: Option<u32>) -> Option<String> {
    let code = pair.unwrap_or(character.code);
    match code {
        // Something is printed, and nobody knows what.
        0 | 0xfffe | 0xffff => {
            let printed = character.ink.width() > LEAST_INK && character.ink.height() > LEAST_INK;
            printed.then(|| char::REPLACEMENT_CHARACTER.to_string())
        }
        // Soft hyphen, zero-width space, byte order mark, variation selectors.
        0xad | 0x200b | 0xfeff | 0xfe00..=0xfe0f => None,
        _ if char::from_u32(code).is_some_and(turns_direction) => None,
        // pdfium's mark for a hyphen at a line's end.
        2 => Some("-".into()),
        // No Unicode text holds these controls: they are characters of Windows' code page.
        0x80..=0x9f => Some(WINDOWS_1252[code as usize - 0x80].to_string()),
        // Ligatures, Hebrew, Arabic and vertical presentation forms.
        0xfb00..=0xfdff | 0xfe10..=0xfe19 | 0xfe30..=0xfe4f | 0xfe70..=0xfeff => {
            let plain: String = char::from_u32(code)?.nfkc().filter(|c| !c.is_whitespace()).collect();
            Some(plain)
        }
        _ => Some(match char::from_u32(code) {
            Some(c) if !c.is_control() => c.to_string(),
            _ => char::REPLACEMENT_CHARACTER.to_string(),
        }),
    }
}

fn cannot_be_right(c: char) -> bool {
    c == char::REPLACEMENT_CHARACTER
        || c.is_control()
        || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::super::protocol::CharacterFlags;
    use super::*;
    use crate::clock::TimeLimit;
    use crate::page::Link;

    fn character(code: u32, x0: f32, x1: f32) -> Character {
        Character::boxed(code, Rect::new(x0, 0.0, x1, 10.0))
    }

    fn blank(code: u32, made_up: bool) -> Character {
        let flags = CharacterFlags { made_up, ..CharacterFlags::default() };
        Character { bbox: None, flags, ..character(code, 0.0, 0.0) }
    }

    fn page(characters: Vec<Character>) -> PageReply {
        PageReply { width: 1000, height: 1000, scale: 1.0, characters, ..PageReply::default() }
    }

    fn texts(characters: Vec<Character>) -> Vec<(String, bool, u32)> {
        words(&page(characters)).words.into_iter().map(|w| (w.text, w.glue, w.line)).collect()
    }

    fn texts_of(characters: Vec<Character>) -> Vec<String> {
        texts(characters).into_iter().map(|(text, ..)| text).collect()
    }

    #[test]
    fn spaces_gaps_and_line_ends_part_words() {
        let text = vec![
            character(0x61, 0.0, 5.0),
            character(0x62, 5.0, 10.0),
            blank(0x20, false),
            character(0x63, 11.0, 16.0),
            character(0x64, 40.0, 45.0),
            blank(10, true),
            character(0x65, 46.0, 50.0),
        ];
        let expected = [("ab", false, 0), ("c", false, 0), ("d", true, 0), ("e", false, 1)];
        assert_eq!(texts(text), expected.map(|(t, g, l)| (t.to_owned(), g, l)));
    }

    /// One row of letters that touch.
    fn row_of_letters(count: usize) -> PageReply {
        let x = |k: usize| 0.3 * k as f32;
        page((0..count).map(|k| character(0x61, x(k), x(k + 1))).collect())
    }

    #[test]
    fn no_word_is_longer_than_can_be_looked_at_for_each_letter() {
        let lengths: Vec<usize> = words(&row_of_letters(2500)).words.iter().map(|w| w.text.len()).collect();
        assert_eq!(lengths, [1000, 1000, 500]);
    }

    #[test]
    fn a_layer_whose_time_is_over_is_given_up() {
        let late = TimeLimit::start(std::time::Duration::ZERO, 1);
        let row = row_of_letters(500);
        assert_eq!(late.hold(|| words(&row)), None);
        let links = vec![Link { bbox: Rect::default(), uri: String::new() }; 30_000];
        let linked = PageReply { links, ..page(vec![character(0x61, 0.0, 5.0)]) };
        assert_eq!(late.hold(|| words(&linked)), None);
    }

    #[test]
    fn a_font_without_a_true_ascent_is_as_high_as_others_of_its_size() {
        let size = |points| {
            words(&page(vec![Character { size: points, ..character(0x61, 0.0, 5.0) }])).words[0].size
        };
        assert_eq!((size(9.0), size(40.0)), (10.0, 10.0));
        assert!((size(14.0) - 15.4).abs() < 1e-3);
    }

    #[test]
    fn a_font_that_claims_half_a_line_below_does_not_get_it() {
        let brace = Character {
            baseline: 8.0,
            size: 9.0,
            ink: Rect::new(0.0, 1.0, 4.0, 10.0),
            ..Character::boxed(0x7b, Rect::new(0.0, 0.0, 5.0, 16.0))
        };
        let word = &words(&page(vec![brace])).words[0];
        assert!((word.bbox.y0 - 0.35).abs() < 1e-3 && (word.bbox.y1 - 10.25).abs() < 1e-3, "{:?}", word.bbox);
    }

    #[test]
    fn a_word_that_is_painted_twice_counts_once() {
        let text = |shift: f32| {
            vec![
                character(0x61, shift, shift + 5.0),
                character(0x62, shift + 5.0, shift + 10.0),
                blank(10, true),
            ]
        };
        assert_eq!(texts([text(0.0), text(0.4)].concat()).len(), 1);
        assert_eq!(texts([text(0.0), text(30.0)].concat()).len(), 2);
    }

    #[test]
    fn a_narrow_gap_ends_a_word_where_letters_touch_and_none_where_they_are_spaced_out() {
        let set = |letter_gap: f32, word_gap: f32| {
            let mut x = 0.0;
            let text = "oneway".char_indices().map(|(at, c)| {
                x += if at == 3 { word_gap } else { letter_gap };
                x += 5.0;
                character(c as u32, x - 5.0, x)
            });
            texts(text.collect()).len()
        };
        assert_eq!((set(0.0, 2.3), set(0.0, 1.0), set(2.0, 2.3)), (2, 1, 1));
    }

    #[test]
    fn a_made_up_space_needs_a_gap() {
        let at = |x| vec![character(0x61, 0.0, 5.0), blank(0x20, true), character(0x62, x, x + 5.0)];
        assert_eq!(texts(at(5.2)), [("ab".to_owned(), false, 0)]);
        assert_eq!(texts(at(6.0)), [("a".to_owned(), false, 0), ("b".to_owned(), false, 0)]);
    }

    #[test]
    fn characters_below_one_another_are_a_line_that_stands() {
        let at = |code, x: f32, y: f32| Character::boxed(code, Rect::new(x, y, x + 10.0, y + 13.0));
        // Two columns of three, the right one first; then a line across, and a word below its first character.
        let mut text = Vec::new();
        for (x, codes) in [(100.0, [0x5929, 0x5730, 0x3002]), (80.0, [0x7384, 0x9ec4, 0x5b87])] {
            for (row, code) in codes.into_iter().enumerate() {
                text.extend([at(code, x, 10.5 * row as f32), blank(10, true)]);
            }
        }
        text.extend([at(0x5929, 0.0, 50.0), at(0x5730, 10.0, 50.0), blank(10, true), at(0x5929, 0.0, 62.0)]);
        let words = words(&page(text)).words;
        let texts: Vec<&str> = words.iter().map(|w| w.text.as_str()).collect();
        assert_eq!(texts, ["天地。", "玄黄宇", "天地", "天"]);
        assert_eq!(words[0].bbox, Rect::new(100.0, 0.0, 110.0, 34.0));
        let latin = vec![at(0x61, 0.0, 0.0), blank(10, true), at(0x62, 0.0, 10.5)];
        assert_eq!(texts_of(latin), ["a", "b"]);
    }

    #[test]
    fn ligatures_hyphens_and_pairs_become_letters_and_soft_hyphens_go() {
        let text = vec![
            character(0xfb01, 0.0, 5.0),
            character(0xad, 5.0, 5.0),
            character(0xd835, 5.0, 9.0),
            character(0xdc00, 5.0, 9.0),
            character(2, 9.0, 11.0),
        ];
        assert_eq!(texts(text), [("fi\u{1d400}-".to_owned(), false, 0)]);
        assert_eq!(letters(&character(0xfefb, 0.0, 5.0), None).as_deref(), Some("\u{644}\u{627}"));
    }

    #[test]
    fn an_accent_of_its_own_joins_its_letter() {
        let text = vec![character(0xb4, 1.0, 5.0), character(0x65, 0.5, 5.5), character(0x74, 5.5, 8.0)];
        assert_eq!(texts(text), [("\u{e9}t".to_owned(), false, 0)]);
    }

    #[test]
    fn unmapped_and_private_characters_are_suspicious_and_hidden_ones_counted() {
        let mut text = vec![character(0x61, 0.0, 5.0), character(0xe001, 5.0, 9.0)];
        text[0].flags.invisible = true;
        let layer = words(&page(text));
        assert!((layer.words[0].suspicious - 0.5).abs() < 1e-6);
        assert!((layer.hidden_share - 0.5).abs() < 1e-6);
    }

    #[test]
    fn controls_that_only_windows_prints_are_its_characters() {
        let text = vec![character(0x74, 0.0, 5.0), character(0x92, 5.0, 7.0), character(0x73, 7.0, 11.0)];
        assert_eq!(texts(text), [("t’s".to_owned(), false, 0)]);
    }

    #[test]
    fn what_has_no_code_is_unknown_where_it_prints_and_nothing_where_it_does_not() {
        let unprinted = character(0, 5.0, 9.0);
        assert_eq!(texts(vec![character(0x61, 0.0, 5.0), unprinted]), [("a".to_owned(), false, 0)]);
        let printed = Character { ink: Rect::new(5.0, 0.0, 9.0, 8.0), ..character(0, 5.0, 9.0) };
        assert_eq!(texts(vec![character(0x61, 0.0, 5.0), printed]), [("a\u{fffd}".to_owned(), false, 0)]);
    }

    #[test]
    fn turned_and_outlying_characters_are_counted_not_kept() {
        let mut text =
            vec![character(0x61, 0.0, 5.0), character(0x62, 50.0, 55.0), character(0x63, 2000.0, 2005.0)];
        text[1].angle = 1;
        let layer = words(&page(text));
        assert_eq!((layer.words.len(), layer.left_out), (1, 2));
    }

    #[test]
    fn a_word_knows_the_link_over_its_centre() {
        let link = |x0, x1| Link { bbox: Rect::new(x0, 0.0, x1, 10.0), uri: "https://example.org".into() };
        let reply = PageReply {
            links: vec![link(100.0, 200.0), link(0.0, 20.0)],
            ..page(vec![character(0x61, 0.0, 5.0), blank(0x20, false), character(0x62, 50.0, 55.0)])
        };
        let links: Vec<Option<u32>> = words(&reply).words.iter().map(|w| w.link).collect();
        assert_eq!(links, [Some(1), None]);
    }

    #[test]
    fn senseless_characters_do_no_harm() {
        let mut odd = character(0xffff_ffff, f32::NAN, 5.0);
        odd.font = 77;
        let far = Character { code: 0xdc00, font: 9, ..character(0, 1.0, f32::INFINITY) };
        let layer = words(&page(vec![odd, far, character(0x110000, 3.0, 2.0), character(7, 0.0, 3.0)]));
        assert_eq!(layer.words.iter().map(|w| w.text.as_str()).collect::<String>(), "\u{fffd}\u{fffd}");
    }
}
