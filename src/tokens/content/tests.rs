use proptest::prelude::*;

use super::*;
use crate::drafts::content_draft::content_draft;
use crate::geometry::Rect;
use crate::lines::tests::word;
use crate::page::{Cell, Source, Word};
use crate::tokens::grammar::tests::{stepping, tiny};

fn region(kind: Kind, words: Vec<Word>) -> Region {
    let bbox = Rect::new(0.0, 0.0, 900.0, 700.0);
    Region { kind, score: 0.9, bbox, words, cells: None, markup: None, stop: Some(StopReason::End) }
}

/// All of the draft's tokens as they are kept.
fn kept(draft: &ContentDraft) -> Vec<KeptToken> {
    let keep =
        |t: &DraftToken| KeptToken { id: t.id, probability: 0.9, source: t.source, origin: Some(t.origin) };
    draft.tokens.iter().map(keep).collect()
}

fn model(id: TokenId) -> KeptToken {
    KeptToken { id, probability: 0.6, source: Source::Model, origin: None }
}

fn read(tokens: &[KeptToken], draft: &ContentDraft, original: &Region, grammar: &Grammar) -> Region {
    read_region(tokens, Some(draft), original, grammar, &mapping(), original.stop)
}

fn mapping() -> PixelMapping {
    PixelMapping::uniform(0.5)
}

fn char_id(grammar: &Grammar, c: char) -> TokenId {
    grammar.vocabulary.char_token(c).unwrap()
}

/// `[line y pitch] [x word]*` of a line whose words are 20 px high and 10 px a character wide.
fn two_words() -> Region {
    region(Kind::Text, vec![word("hello", 100.0, 40.0, 150.0, 60.0), word("you", 160.0, 40.0, 190.0, 60.0)])
}

#[test]
fn a_line_is_y_pitch_and_words_with_their_left_edge() {
    let grammar = tiny();
    let draft = content_draft(&two_words(), &grammar, &mapping()).unwrap();
    let ids: Vec<TokenId> = draft.tokens.iter().map(|t| t.id).collect();
    // y 25 px -> bin 4; pitch 45 px / 9 -> 5 px -> bin 20; x 50 -> bin 8, x 80 -> bin 13
    let mut expected = vec![450 + 4, 770 + 20, 130 + 8];
    expected.extend("hello".chars().map(|c| char_id(&grammar, c)));
    expected.push(130 + 13);
    expected.extend("you".chars().map(|c| char_id(&grammar, c)));
    expected.push(102);
    assert_eq!(ids, expected);
}

#[test]
fn characters_that_the_vocabulary_lacks_are_not_up_for_judgement() {
    let grammar = tiny();
    let unsure = Word { confidence: 0.4, ..word("a\u{4e2d}", 100.0, 40.0, 130.0, 60.0) };
    let draft = content_draft(&region(Kind::Text, vec![unsure]), &grammar, &mapping()).unwrap();
    let confidences: Vec<f32> = draft.tokens.iter().map(|t| t.confidence).collect();
    assert_eq!(draft.tokens[4].id, 100);
    assert_eq!(confidences, [0.4, 0.4, 0.4, 0.4, 1.0, 0.4]);
}

#[test]
fn a_changed_character_keeps_the_rest_of_the_word() {
    let grammar = tiny();
    let original = two_words();
    let draft = content_draft(&original, &grammar, &mapping()).unwrap();
    let mut tokens = kept(&draft);
    tokens[4] = model(char_id(&grammar, 'u'));
    let read = read(&tokens, &draft, &original, &grammar);
    assert_eq!(read.words[0].text, "hullo");
    assert_eq!((read.words[0].source, read.words[0].confidence), (Source::Model, 0.6));
    assert_eq!(read.words[0].bbox, original.words[0].bbox);
    assert_eq!(read.words[1], original.words[1]);
}

#[test]
fn a_moved_left_edge_keeps_the_word_and_a_dropped_one_glues_it() {
    let grammar = tiny();
    let original = two_words();
    let draft = content_draft(&original, &grammar, &mapping()).unwrap();
    let mut tokens = kept(&draft);
    tokens[8] = model(130 + 15);
    assert_eq!(read(&tokens, &draft, &original, &grammar), original);
    tokens.remove(8);
    let joined = read(&tokens, &draft, &original, &grammar);
    assert_eq!(joined.words[1], Word { glue: true, ..original.words[1].clone() });
}

#[test]
fn words_of_the_model_are_placed_by_their_line() {
    let grammar = tiny();
    let empty = region(Kind::Text, Vec::new());
    assert_eq!(content_draft(&empty, &grammar, &mapping()), None);
    let tokens: Vec<KeptToken> = [450 + 10, 770 + 20, 130 + 5]
        .into_iter()
        .chain("ab".chars().map(|c| char_id(&grammar, c)))
        .chain([130 + 10, 100, 102, 130 + 12, 0])
        .map(model)
        .collect();
    let read = read_region(&tokens, None, &empty, &grammar, &mapping(), Some(StopReason::End));
    let text: Vec<&str> = read.words.iter().map(|w| w.text.as_str()).collect();
    assert_eq!(text, ["ab", "\u{fffd}"], "nothing is read after the end");
    // x 30 px of the model's raster is 60 px of the page; two characters of 5 px are 20 px.
    let ab = &read.words[0];
    assert_eq!((ab.bbox.x0, ab.bbox.x1), (60.0, 80.0));
    assert_eq!(ab.bbox.center().1, 120.0);
    assert_eq!((ab.source, ab.confidence, ab.glue), (Source::Model, 0.6, false));
    assert_eq!(ab.line, read.words[1].line);
}

#[test]
fn a_word_of_another_line_number_is_found_beside_the_models_own() {
    let grammar = tiny();
    let mut original = two_words();
    original.words.iter_mut().for_each(|w| w.line = 7);
    let draft = content_draft(&original, &grammar, &mapping()).unwrap();
    let mut tokens = kept(&draft);
    let end = tokens.len() - 1;
    tokens.splice(end..end, [model(130 + 20), model(char_id(&grammar, 'z'))]);
    let read = read(&tokens, &draft, &original, &grammar);
    assert_eq!((read.words[2].text.as_str(), read.words[2].line), ("z", 7));
}

fn cell(row: usize, col: usize, span: (usize, usize), words: Vec<Word>) -> Cell {
    let bbox =
        Rect::new(col as f32 * 100.0, row as f32 * 30.0, col as f32 * 100.0 + 90.0, row as f32 * 30.0 + 25.0);
    Cell { row, col, rows: span.0, cols: span.1, bbox, words, header: row == 0 }
}

fn small_table() -> Region {
    let mut table = region(Kind::Table, Vec::new());
    table.cells = Some(vec![
        cell(0, 0, (1, 2), vec![word("head", 5.0, 5.0, 45.0, 20.0)]),
        cell(1, 1, (1, 1), Vec::new()),
        cell(1, 0, (1, 1), vec![word("a", 5.0, 35.0, 15.0, 50.0)]),
    ]);
    table
}

#[test]
fn table_drafts_have_rows_cells_and_empty_cells() {
    let grammar = tiny();
    let draft = content_draft(&small_table(), &grammar, &mapping()).unwrap();
    let structure: Vec<TokenId> =
        draft.tokens.iter().map(|t| t.id).filter(|id| matches!(id, 102 | 106 | 107)).collect();
    assert_eq!(structure, [107, 106, 107, 106, 106, 102]);
    assert_eq!(read(&kept(&draft), &draft, &small_table(), &grammar), small_table());
}

#[test]
fn a_cell_that_the_model_adds_moves_the_others() {
    let grammar = tiny();
    let original = small_table();
    let draft = content_draft(&original, &grammar, &mapping()).unwrap();
    let mut tokens = kept(&draft);
    let second_row = tokens.iter().rposition(|t| t.id == 107).unwrap();
    tokens.splice(
        second_row + 1..second_row + 1,
        [model(106), model(450 + 3), model(770 + 20), model(130), model(char_id(&grammar, 'z'))],
    );
    let cells = read(&tokens, &draft, &original, &grammar).cells.unwrap();
    let places: Vec<(usize, usize, usize, String)> = cells
        .iter()
        .map(|c| (c.row, c.col, c.cols, c.words.iter().map(|w| w.text.as_str()).collect()))
        .collect();
    let expected = [(0, 0, 2, "head"), (1, 0, 1, "z"), (1, 1, 1, "a"), (1, 2, 1, "")];
    assert_eq!(places, expected.map(|(r, c, s, t)| (r, c, s, t.to_owned())));
    assert!(cells[0].header && !cells[1].header);
}

#[test]
fn a_cell_below_a_tall_one_goes_beside_it() {
    let grammar = tiny();
    let mut original = region(Kind::Table, Vec::new());
    original.cells = Some(vec![cell(0, 0, (2, 1), Vec::new()), cell(0, 1, (1, 1), Vec::new())]);
    let draft = content_draft(&original, &grammar, &mapping()).unwrap();
    let mut tokens = kept(&draft);
    let end = tokens.len() - 1;
    tokens.splice(end..end, [model(107), model(106)]);
    let cells = read(&tokens, &draft, &original, &grammar).cells.unwrap();
    assert_eq!((cells[2].row, cells[2].col), (1, 1));
}

#[test]
fn formulas_without_places_are_latex() {
    let grammar = tiny();
    let original = region(Kind::Formula, Vec::new());
    let tokens: Vec<KeptToken> =
        [char_id(&grammar, 'x'), 101, char_id(&grammar, '='), 102].into_iter().map(model).collect();
    let read_back = read_region(&tokens, None, &original, &grammar, &mapping(), None);
    assert_eq!(read_back.markup, Some(Markup::Latex("x =".into())));
    let drafted = Region { markup: Some(Markup::Latex("\\alpha =\n\u{3b2}".into())), ..original };
    let draft = content_draft(&drafted, &grammar, &mapping()).unwrap();
    assert_eq!(read(&kept(&draft), &draft, &drafted, &grammar), drafted);
}

#[test]
fn tokens_without_sense_are_survived() {
    let grammar = tiny();
    let original = small_table();
    let draft = content_draft(&original, &grammar, &mapping()).unwrap();
    let lost = KeptToken { id: 0, probability: 1.0, source: Source::Ocr, origin: Some(u32::MAX) };
    let tokens =
        [lost, model(-5), model(1 << 40), model(107), model(107), model(110), model(104), model(106)];
    let read = read(&tokens, &draft, &original, &grammar);
    assert_eq!(read.cells.unwrap().len(), 1);
    assert_eq!(read.words[0].text, "!");
}

/// Text of every kind of script that the vocabulary has or lacks.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("plain".to_owned()),
        Just("e\u{301}te\u{301}".to_owned()),
        Just("\u{fb01}ne".to_owned()),
        Just("中文".to_owned()),
        Just("\u{645}\u{631}\u{62d}\u{628}\u{627}".to_owned()),
        Just("a b".to_owned()),
        Just(" ".to_owned()),
        Just("\u{200b}\u{1f469}\u{200d}\u{1f52c}".to_owned()),
        Just(String::new()),
        "\\PC{0,6}",
    ];
    proptest::collection::vec(piece, 0..3).prop_map(|pieces| pieces.concat())
}

fn any_word() -> impl Strategy<Value = Word> {
    let place = (-50.0f32..2000.0, -50.0f32..2000.0, 0.0f32..80.0, 0.0f32..30.0);
    (any_text(), place, any::<bool>(), 0u32..9, 0.0f32..1.0).prop_map(
        |(text, (x, y, w, h), glue, line, confidence)| {
            let plain = word(&text, x, y, x + w, y + h);
            Word { glue, line, confidence, source: Source::Ocr, bold: glue, link: Some(line), ..plain }
        },
    )
}

fn any_words(most: usize) -> impl Strategy<Value = Vec<Word>> {
    proptest::collection::vec(any_word(), 0..most)
}

fn any_region() -> impl Strategy<Value = Region> {
    let cell = (0usize..5, 0usize..5, 1usize..3, 1usize..3, any_words(3))
        .prop_map(|(row, col, rows, cols, words)| cell(row, col, (rows, cols), words));
    let cells = proptest::option::of(proptest::collection::vec(cell, 0..8));
    let markup = proptest::option::of(any_text().prop_map(Markup::Latex));
    (any_words(8), cells, markup, 0u8..3).prop_map(|(words, cells, markup, form)| {
        let plain = region(Kind::Text, words);
        match form {
            0 => plain,
            1 => Region { kind: Kind::Table, cells, ..plain },
            _ => Region { kind: Kind::Formula, markup, ..plain },
        }
    })
}

/// A drawn region with each position rule.
fn each_rule() -> [Grammar; 2] {
    [tiny(), stepping()]
}

thread_local! {
    static RULES: [Grammar; 2] = each_rule();
}

proptest! {
    #[test]
    fn a_region_whose_draft_stood_comes_back_as_it_was(original in any_region()) {
        RULES.with(|rules| {
            for grammar in rules {
                if let Some(draft) = content_draft(&original, grammar, &mapping()) {
                    prop_assert_eq!(draft.tokens.len(), draft.origins.len());
                    prop_assert_eq!(&read(&kept(&draft), &draft, &original, grammar), &original);
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn reading_survives_dropped_doubled_and_changed_tokens(
        original in any_region(),
        changes in proptest::collection::vec((0usize..200, 0u8..3, 0i64..1060), 0..12),
    ) {
        RULES.with(|rules| {
            for grammar in rules {
                let draft = content_draft(&original, grammar, &mapping()).unwrap_or_default();
                let mut tokens = kept(&draft);
                for &(at, change, id) in &changes {
                    let at = at % (tokens.len() + 1);
                    match change {
                        0 if at < tokens.len() => drop(tokens.remove(at)),
                        1 if at < tokens.len() => tokens.push(tokens[at]),
                        _ => tokens.insert(at, model(id)),
                    }
                }
                read(&tokens, &draft, &original, grammar);
            }
        });
    }

    /// Places that only the tokens tell are near the words' own: half a bin of each, and what the pitch's bin adds up to.
    #[test]
    fn steps_that_the_model_writes_lead_to_where_the_words_are(
        places in proptest::collection::vec((0u8..4, 60.0f32..240.0, 2usize..7), 1..12),
        corner in (0.0f32..300.0, 0.0f32..300.0),
    ) {
        RULES.with(|rules| {
            let (x0, y0) = corner;
            let mut y = y0;
            let mut words: Vec<Word> = Vec::new();
            for (rows, gap, letters) in places {
                y += f32::from(rows) * 30.0;
                let before = words.last().filter(|w| w.bbox.y0 == y).map_or(x0, |w| w.bbox.x1);
                let x = before + gap / 10.0;
                words.push(word(&"n".repeat(letters), x, y, x + 12.0 * letters as f32, y + 20.0));
            }
            let original = Region { bbox: Rect::new(x0, y0, x0 + 900.0, y + 20.0), ..region(Kind::Text, words) };
            let draft = content_draft(&original, &rules[1], &mapping()).unwrap();
            let tokens: Vec<KeptToken> = draft.tokens.iter().map(|t| model(t.id)).collect();
            let empty = Region { words: Vec::new(), ..original.clone() };
            let read = read_region(&tokens, None, &empty, &rules[1], &mapping(), None);
            prop_assert_eq!(read.words.len(), original.words.len());
            for (read, word) in read.words.iter().zip(&original.words) {
                prop_assert_eq!(&read.text, &word.text);
                prop_assert!((read.bbox.x0 - word.bbox.x0).abs() <= 2.0 + 1e-2, "{:?} {:?}", read.bbox, word.bbox);
                prop_assert!((read.bbox.center().1 - word.bbox.center().1).abs() <= 2.0 + 1e-2);
                prop_assert!((read.bbox.width() - word.bbox.width()).abs() <= 0.06 * word.bbox.width() + 4.0);
            }
            Ok(())
        })?;
    }
}
