use std::sync::Arc;

use proptest::prelude::*;

use super::bars::Bar;
use super::expression::expression;
use super::latex::latex;
use super::{write_display, write_inline};
use crate::drafts::regions::bare_region;
use crate::geometry::{Rect, hull};
use crate::lines::tests::word;
use crate::page::{Glyph, Kind, Markup, Rules, Word};

const ITALIC: &str = "cmmi10";
const UPRIGHT: &str = "cmr10";

/// A glyph of 1/2 em width on a baseline: letters 0.45 em high, all else 0.7 em.
fn glyph(character: char, x: f32, baseline: f32, size: f32) -> Glyph {
    let font: Arc<str> = if character.is_ascii_alphabetic() { ITALIC } else { UPRIGHT }.into();
    let height = if character.is_lowercase() { 0.45 } else { 0.7 };
    let ink = Rect::new(x, baseline - height * size, x + 0.5 * size, baseline);
    Glyph { character, ink, baseline, size, font, bold: false, word: 0 }
}

/// Glyphs side by side.
fn set(text: &str, x: f32, baseline: f32, size: f32) -> Vec<Glyph> {
    text.chars()
        .enumerate()
        .filter(|(_, c)| *c != ' ')
        .map(|(k, c)| glyph(c, x + 0.55 * size * k as f32, baseline, size))
        .collect()
}

fn written(glyphs: &[Glyph], bars: &[Bar]) -> String {
    latex(&expression(&glyphs.iter().collect::<Vec<_>>(), bars))
}

#[test]
fn scripts_hang_on_what_is_before_them() {
    let mut glyphs = set("ax", 0.0, 100.0, 10.0);
    glyphs.extend(set("i", 11.0, 102.0, 7.0));
    glyphs.extend(set("2", 11.0, 96.0, 7.0));
    glyphs.extend(set("+1", 16.0, 100.0, 10.0));
    assert_eq!(written(&glyphs, &[]), "ax_{i}^{2} + 1");
}

#[test]
fn a_script_of_a_script_is_not_one_of_the_line() {
    let mut glyphs = set("x", 0.0, 100.0, 10.0);
    glyphs.extend(set("g", 5.5, 102.5, 7.0));
    glyphs.extend(set("′", 9.4, 100.0, 5.0));
    assert_eq!(written(&glyphs, &[]), r"x_{g^{\prime}}");
}

#[test]
fn bars_make_fractions_inside_fractions() {
    let mut glyphs = set("a", 10.0, 78.0, 7.0);
    glyphs.extend(set("b", 10.0, 86.0, 7.0));
    glyphs.extend(set("+c", 15.0, 82.0, 10.0));
    glyphs.extend(set("d", 15.0, 100.0, 10.0));
    glyphs.extend(set("=e", 30.0, 92.5, 10.0));
    let bars = [Bar { x0: 9.0, x1: 15.0, y: 79.5 }, Bar { x0: 8.0, x1: 28.0, y: 90.0 }];
    assert_eq!(written(&glyphs, &bars), r"\frac{\frac{a}{b} + c}{d} = e");
}

#[test]
fn a_root_ends_with_its_bar() {
    let mut sign = glyph('√', 0.0, 100.0, 10.0);
    sign.ink = Rect::new(0.0, 90.0, 8.0, 102.0);
    let mut glyphs = vec![sign];
    glyphs.extend(set("x", 8.5, 100.0, 10.0));
    glyphs.extend(set("+1", 16.0, 100.0, 10.0));
    assert_eq!(written(&glyphs, &[Bar { x0: 8.0, x1: 14.0, y: 90.0 }]), r"\sqrt{x} + 1");
}

#[test]
fn limits_belong_to_their_operator_though_they_begin_before_it() {
    let mut sum = glyph('∑', 10.0, 100.0, 10.0);
    sum.ink = Rect::new(10.0, 88.0, 22.0, 104.0);
    let mut glyphs = set("y", 0.0, 100.0, 10.0);
    glyphs.push(sum);
    glyphs.extend(set("i=1", 9.0, 112.0, 7.0));
    glyphs.extend(set("n", 14.0, 86.0, 7.0));
    glyphs.extend(set("x", 23.0, 100.0, 10.0));
    assert_eq!(written(&glyphs, &[]), r"y\sum_{i = 1}^{n}x");
}

#[test]
fn an_operator_of_a_larger_font_leaves_the_line_where_the_letters_are() {
    let mut sum = glyph('∑', 0.0, 100.0, 14.0);
    sum.ink = Rect::new(0.0, 90.5, 11.0, 104.5);
    let mut glyphs = vec![sum];
    glyphs.extend(set("x", 12.0, 100.0, 10.0));
    glyphs.extend(set("i", 17.5, 102.0, 7.0));
    assert_eq!(written(&glyphs, &[]), r"\sum x_{i}");
}

#[test]
fn an_operator_in_a_denominator_of_scripts_keeps_them_as_scripts() {
    let mut sum = glyph('∑', 0.0, 338.2, 33.3);
    sum.ink = Rect::new(0.0, 312.8, 31.0, 346.5);
    let mut glyphs = vec![sum];
    glyphs.extend(set("n", 36.0, 321.5, 23.3));
    glyphs.extend(set("k", 36.0, 353.2, 23.3));
    assert_eq!(written(&glyphs, &[]), r"\sum_{k}^{n}");
}

#[test]
fn upright_names_are_functions_operators_or_text() {
    let upright = |text: &str, x: f32| -> Vec<Glyph> {
        set(text, x, 100.0, 10.0).into_iter().map(|g| Glyph { font: "times-roman".into(), ..g }).collect()
    };
    let mut glyphs = upright("sin", 0.0);
    glyphs.extend(set("x", 18.0, 100.0, 10.0));
    glyphs.extend(upright("rank(", 24.5));
    glyphs.extend(set("A)", 52.0, 100.0, 10.0));
    glyphs.extend(upright("if", 70.0));
    assert_eq!(written(&glyphs, &[]), r"\sin x\operatorname{rank}(A)\text{ if}");
}

#[test]
fn accents_strokes_and_faces() {
    let mut hat = glyph('ˆ', 0.5, 100.0, 10.0);
    hat.ink = Rect::new(1.0, 92.0, 4.0, 94.0);
    let mut stroke = glyph('\u{338}', 6.0, 100.0, 10.0);
    stroke.ink = Rect::new(6.0, 93.0, 10.0, 101.0);
    let mut glyphs = vec![hat];
    glyphs.extend(set("x=", 0.0, 100.0, 10.0));
    glyphs.push(stroke);
    glyphs.extend(set("ℝ", 12.0, 100.0, 10.0));
    assert_eq!(written(&glyphs, &[]), r"\hat{x} \neq \mathbb{R}");
}

#[test]
fn places_in_the_extension_font_are_large_signs() {
    let mut sum = glyph('X', 0.0, 100.0, 10.0);
    (sum.font, sum.ink) = ("cmex10".into(), Rect::new(0.0, 90.0, 12.0, 104.0));
    let mut glyphs = vec![sum];
    glyphs.extend(set("x", 13.0, 100.0, 10.0));
    assert_eq!(written(&glyphs, &[]), r"\sum x");
}

#[test]
fn lines_of_a_display_are_aligned_and_numbered() {
    let mut glyphs = set("a=b", 0.0, 100.0, 10.0);
    glyphs.extend(set("c<d", 0.0, 118.0, 10.0));
    glyphs.extend(set("(7)", 60.0, 118.0, 10.0));
    let mut regions = vec![bare_region(Kind::Formula, 0.9, Rect::new(0.0, 90.0, 90.0, 120.0))];
    write_display(&mut regions, &glyphs, &Rules::default());
    let expected = "\\begin{aligned}\na & = b \\\\\nc & < d\n\\end{aligned} \\tag{7}";
    assert_eq!(regions[0].markup, Some(Markup::Latex(expected.into())));
}

/// Words of a line of running text: upright words, formulas in italics, and the glyphs of both. `_` lowers what follows.
fn line(text: &str) -> (Vec<Word>, Vec<Glyph>) {
    let (mut words, mut glyphs, mut x) = (Vec::new(), Vec::new(), 0.0);
    for (number, part) in text.split(' ').enumerate() {
        let start = glyphs.len();
        let text = part.chars().filter(|c| c.is_alphabetic()).count() > 2;
        let mut lowered = false;
        for c in part.chars() {
            if c == '_' {
                lowered = true;
                continue;
            }
            let (size, baseline) = if lowered { (7.0, 102.0) } else { (10.0, 100.0) };
            let font: Arc<str> = if text { "times-roman" } else { ITALIC }.into();
            glyphs.push(Glyph { word: number as u32, font, ..glyph(c, x, baseline, size) });
            x += 0.55 * size;
            lowered = false;
        }
        let bbox = hull(glyphs[start..].iter().map(|g| g.ink)).unwrap_or_default();
        let text: String = part.chars().filter(|c| *c != '_').collect();
        words.push(Word {
            size: 10.0,
            font: "times-roman".into(),
            ..word(&text, bbox.x0, bbox.y0, bbox.x1, bbox.y1)
        });
        x += 2.5;
    }
    (words, glyphs)
}

fn marked(text: &str) -> Vec<String> {
    let (words, glyphs) = line(text);
    write_inline(&words, &glyphs, &Rules::default())
        .into_iter()
        .map(|w| w.latex.map_or(w.text, |latex| format!("${latex}$")))
        .collect()
}

#[test]
fn formulas_in_running_text_become_words_and_leave_the_punctuation() {
    assert_eq!(
        marked("where x_i = y, with many words"),
        ["where", "$x_{i} = y$", ",", "with", "many", "words"]
    );
    assert_eq!(marked("(see f(x)) there"), ["(see", "$f(x)$", ")", "there"]);
    assert_eq!(
        marked("plain words only, from 3 - 4 pages"),
        ["plain", "words", "only,", "from", "3", "-", "4", "pages"]
    );
}

#[test]
fn a_ligature_from_a_font_of_symbols_is_no_formula() {
    let (words, mut glyphs) = line("the difference between");
    let ligature: Vec<usize> = (0..glyphs.len()).filter(|&k| glyphs[k].character == 'f').collect();
    ligature.iter().for_each(|&k| glyphs[k].font = "cmmi10".into());
    assert_eq!(ligature.len(), 2);
    assert!(write_inline(&words, &glyphs, &Rules::default()).iter().all(|w| w.latex.is_none()));
}

proptest! {
    #[test]
    fn no_character_of_running_text_is_lost(parts in prop::collection::vec("[a-z(),.=_0-9]{1,7}", 1..12)) {
        let (words, glyphs) = line(&parts.join(" "));
        let plain = |words: &[Word]| words.iter().flat_map(|w| w.text.chars()).filter(|c| *c != ' ').collect::<String>();
        let before = plain(&words);
        prop_assert_eq!(plain(&write_inline(&words, &glyphs, &Rules::default())), before);
    }

    #[test]
    fn any_glyphs_make_balanced_latex(
        glyphs in prop::collection::vec((any::<char>(), -50.0f32..500.0, -50.0f32..300.0, 0.0f32..40.0), 0..60),
        bars in prop::collection::vec((-10.0f32..400.0, 0.0f32..200.0, -10.0f32..300.0), 0..12),
    ) {
        let glyphs: Vec<Glyph> = glyphs.into_iter().map(|(c, x, y, size)| glyph(c, x, y, size)).collect();
        let bars: Vec<Bar> = bars.into_iter().map(|(x0, width, y)| Bar { x0, x1: x0 + width, y }).collect();
        let source = written(&glyphs, &bars).replace(r"\{", "").replace(r"\}", "").replace(r"\backslash", "");
        let mut depth = 0i32;
        for c in source.chars() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            prop_assert!(depth >= 0);
        }
        prop_assert_eq!(depth, 0);
    }
}
