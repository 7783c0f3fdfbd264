//! Pages for tests: lines of block letters, drawn without a font.

use std::path::PathBuf;

use crate::geometry::Rect;
use crate::lines::tests::word;
use crate::page::{PageEvidence, Rules, Word};
use crate::raster::Raster;

/// 5 x 7 dots, row by row, most significant bit on the left.
const GLYPHS: [(char, [u8; 7]); 22] = [
    ('A', [0x0e, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11]),
    ('B', [0x1e, 0x11, 0x11, 0x1e, 0x11, 0x11, 0x1e]),
    ('C', [0x0e, 0x11, 0x10, 0x10, 0x10, 0x11, 0x0e]),
    ('D', [0x1e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1e]),
    ('E', [0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x1f]),
    ('F', [0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x10]),
    ('G', [0x0e, 0x11, 0x10, 0x17, 0x11, 0x11, 0x0f]),
    ('H', [0x11, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11]),
    ('I', [0x0e, 0x04, 0x04, 0x04, 0x04, 0x04, 0x0e]),
    ('K', [0x11, 0x12, 0x14, 0x18, 0x14, 0x12, 0x11]),
    ('L', [0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1f]),
    ('M', [0x11, 0x1b, 0x15, 0x15, 0x11, 0x11, 0x11]),
    ('N', [0x11, 0x19, 0x15, 0x13, 0x11, 0x11, 0x11]),
    ('O', [0x0e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e]),
    ('P', [0x1e, 0x11, 0x11, 0x1e, 0x10, 0x10, 0x10]),
    ('R', [0x1e, 0x11, 0x11, 0x1e, 0x14, 0x12, 0x11]),
    ('S', [0x0f, 0x10, 0x10, 0x0e, 0x01, 0x01, 0x1e]),
    ('T', [0x1f, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04]),
    ('U', [0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e]),
    ('W', [0x11, 0x11, 0x11, 0x15, 0x15, 0x1b, 0x11]),
    ('Y', [0x11, 0x11, 0x0a, 0x04, 0x04, 0x04, 0x04]),
    ('X', [0x11, 0x11, 0x0a, 0x04, 0x0a, 0x11, 0x11]),
];
/// Pixels of a dot, and of a letter with the gap after it.
const DOT: usize = 4;
const ADVANCE: usize = 6 * DOT;

pub(crate) const LINES: [&str; 5] = [
    "THE SCANNER READ THE WHOLE PAGE",
    "ORDINARY LETTERS STAND ON LINES",
    "EACH LINE HOLDS SOME WORDS MORE",
    "NOTHING ELSE IS PRINTED ON IT",
    "AND HERE THE PAPER ENDS AT LAST",
];

/// Where the networks lie in a checkout.
pub(crate) fn models() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("models/third-party")
}

/// Draws `text` with its top left corner at `(x, y)`; the box of what was drawn.
pub(crate) fn draw(page: &mut Raster, text: &str, x: usize, y: usize) -> Rect {
    for (n, c) in text.chars().enumerate() {
        let Some((_, rows)) = GLYPHS.iter().find(|(glyph, _)| *glyph == c) else { continue };
        for (row, bits) in rows.iter().enumerate() {
            for column in (0..5).filter(|column| bits >> (4 - column) & 1 == 1) {
                let (left, top) = (x + n * ADVANCE + column * DOT, y + row * DOT);
                for line in top..top + DOT {
                    page.rgb[(line * page.width + left) * 3..][..DOT * 3].fill(20);
                }
            }
        }
    }
    Rect::new(x as f32, y as f32, (x + text.len() * ADVANCE) as f32, (y + 7 * DOT) as f32)
}

/// A page of [`LINES`], and its words as a text layer would give them.
pub(crate) fn page() -> (Raster, Vec<Word>) {
    let mut raster = Raster::filled(1000, 1300, [255; 3]);
    let mut words = Vec::new();
    for (n, line) in LINES.iter().enumerate() {
        let y = 200 + n * 90;
        draw(&mut raster, line, 110, y);
        let mut start = 0;
        for text in line.split(' ') {
            let (x0, x1) = (110 + start * ADVANCE, 110 + (start + text.len()) * ADVANCE);
            words.push(Word {
                line: n as u32,
                ..word(text, x0 as f32, y as f32 - 4.0, x1 as f32, y as f32 + 32.0)
            });
            start += text.len() + 1;
        }
    }
    (raster, words)
}

/// A page as its file gave it.
pub(crate) fn evidence(raster: Raster, words: Vec<Word>, picture_share: f32) -> PageEvidence {
    PageEvidence {
        number: 1,
        raster,
        scale: 1.0,
        turn: 0,
        words,
        glyphs: Vec::new(),
        rules: Rules::default(),
        links: Vec::new(),
        picture_share,
        hidden_share: 0.0,
        is_picture: false,
    }
}
