//! In which face a glyph is set: by its code point where that tells, else by its font's name.

use unicode_normalization::UnicodeNormalization;

use crate::page::Glyph;

/// How a letter is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    Italic,
    Upright,
    Bold,
    Blackboard,
    Script,
    Fraktur,
}

/// Parts of the names of fonts that are made for mathematics: Computer Modern and AMS, MathTime, Times and Palatino of TeX, Euler,
/// and everything that says so.
const MATHEMATICAL: [&str; 26] = [
    "cmmi", "cmsy", "cmex", "cmbsy", "cmmib", "msam", "msbm", "eufm", "eusm", "eurm", "rsfs", "lmsy", "lmex",
    "mtmi", "mtsy", "mtex", "txmi", "txsy", "txex", "pxmi", "pxsy", "pxex", "stmary", "wasy", "esint",
    "math",
];
const ITALIC: [&str; 9] = ["cmmi", "mtmi", "txmi", "pxmi", "mmi", "italic", "oblique", "slanted", "-it"];
const BLACKBOARD: [&str; 4] = ["msbm", "bbm", "dsrom", "blackboard"];

/// Is the font made for mathematics?
pub(super) fn is_mathematical(font: &str) -> bool {
    MATHEMATICAL.iter().any(|name| font.contains(name))
}

/// A code point of the mathematical alphabets, or a letter-like symbol that belongs to them.
pub(super) fn is_mathematical_letter(c: char) -> bool {
    matches!(
        c,
        '\u{1d400}'
            ..='\u{1d7ff}'
                | 'ℂ'
                | 'ℍ'
                | 'ℕ'
                | 'ℙ'
                | 'ℚ'
                | 'ℝ'
                | 'ℤ'
                | 'ℎ'
                | 'ℬ'
                | 'ℰ'
                | 'ℱ'
                | 'ℋ'
                | 'ℐ'
                | 'ℒ'
                | 'ℳ'
                | 'ℛ'
                | 'ℓ'
    )
}

/// The plain character behind a glyph's, and its face.
pub(super) fn plain(glyph: &Glyph) -> (char, Face) {
    let c = glyph.character;
    let base = match c {
        'ℓ' | '′' | '″' | '…' => c,
        _ if is_mathematical_letter(c) => std::iter::once(c).nfkc().next().unwrap_or(c),
        _ => c,
    };
    (computer_modern(base, &glyph.font), face(c, glyph))
}

/// The Computer Modern fonts name their two forms of phi the other way round than Unicode does, and the large symbols of the
/// extension font often come as their places in the font (TeX's OMX encoding, to 0x77).
fn computer_modern(c: char, font: &str) -> char {
    const EXTENSION: &str = "()[]⌊⌋⌈⌉{}⟨⟩|‖/\\()()[]⌊⌋⌈⌉{}⟨⟩/\\()[]⌊⌋⌈⌉{}⟨⟩/\\/\\()[][][]{}{}{}|‖()()⟨⟩⨆⨆∮∮⨀⨀⨁⨁⨂⨂∑∏∫⋃⋂⨄⋀⋁∑∏∫⋃⋂⨄⋀⋁∐∐ˆˆˆ˜˜˜[]⌊⌋⌈⌉{}√√√√√√√‖";
    match c {
        // Fonts of signs whose places in the font are letters.
        'A'..='Z' | 'a'..='z'
            if ["msam", "txsya", "pxsya", "stmary", "wasy"].iter().any(|f| font.contains(f)) =>
        {
            char::REPLACEMENT_CHARACTER
        }
        'φ' if font.contains("cmmi") => 'ϕ',
        'ϕ' if font.contains("cmmi") => 'φ',
        '\0'..='w' if font.contains("cmex") && !"()[]{}|/\\".contains(c) => {
            EXTENSION.chars().nth(c as usize).unwrap_or(c)
        }
        c => c,
    }
}

fn face(c: char, glyph: &Glyph) -> Face {
    match c {
        '\u{1d400}'..='\u{1d433}'
        | '\u{1d468}'..='\u{1d49b}'
        | '\u{1d6a8}'..='\u{1d6e1}'
        | '\u{1d7ce}'..='\u{1d7d7}' => {
            return Face::Bold;
        }
        '\u{1d434}'..='\u{1d467}' | 'ℎ' | '\u{1d6e2}'..='\u{1d71b}' => return Face::Italic,
        '\u{1d49c}'..='\u{1d503}' | 'ℬ' | 'ℰ' | 'ℱ' | 'ℋ' | 'ℐ' | 'ℒ' | 'ℳ' | 'ℛ' => {
            return Face::Script;
        }
        '\u{1d504}'..='\u{1d537}' | '\u{1d56c}'..='\u{1d59f}' => return Face::Fraktur,
        '\u{1d538}'..='\u{1d56b}' | 'ℂ' | 'ℍ' | 'ℕ' | 'ℙ' | 'ℚ' | 'ℝ' | 'ℤ' => {
            return Face::Blackboard;
        }
        _ => {}
    }
    let font = &glyph.font;
    let named = |names: &[&str]| names.iter().any(|name| font.contains(name));
    // The symbol fonts of TeX have their script capitals where other fonts have capitals.
    if c.is_ascii_uppercase() && named(&["cmsy", "cmbsy", "lmsy", "mtsy", "txsy", "pxsy", "rsfs", "eusm"]) {
        Face::Script
    } else if named(&["eufm"]) {
        Face::Fraktur
    } else if named(&BLACKBOARD) {
        Face::Blackboard
    } else if named(&ITALIC) {
        Face::Italic
    } else if glyph.bold {
        Face::Bold
    } else {
        Face::Upright
    }
}
