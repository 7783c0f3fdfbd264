//! The pack's tokenizer: text <-> ids, and single characters <-> ids for models that write characters.

use std::collections::HashMap;
use std::path::Path;

use tokenizers::Tokenizer;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

use crate::graphs::TokenId;
use crate::graphs::manifest::{PackError, TokenName};

/// A loaded `tokenizer.json`.
pub struct Vocabulary {
    tokenizer: Tokenizer,
    by_char: HashMap<char, TokenId>,
    by_id: HashMap<TokenId, char>,
}

impl std::fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vocabulary({} single characters)", self.by_char.len())
    }
}

/// A piece of a word that one token stands for: bytes `start..end` of the word, and its token if the vocabulary has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub start: usize,
    pub end: usize,
    pub token: Option<TokenId>,
}

impl Vocabulary {
    /// Reads a `tokenizer.json`.
    pub fn load(path: &Path) -> Result<Vocabulary, PackError> {
        let fail = |message: String| PackError::File { path: path.to_path_buf(), message };
        let json = std::fs::read_to_string(path).map_err(|e| fail(e.to_string()))?;
        Vocabulary::from_json(&json).map_err(fail)
    }

    /// Reads the text of a `tokenizer.json`.
    pub fn from_json(json: &str) -> Result<Vocabulary, String> {
        // `from_str` is not generic: the reading of all tokenizer parts is compiled with `tokenizers`, not here.
        let tokenizer: Tokenizer = json.parse().map_err(|e: tokenizers::Error| e.to_string())?;
        let mut by_char = HashMap::new();
        for (text, id) in tokenizer.get_vocab(true) {
            let mut chars = text.chars();
            if let (Some(c), None) = (chars.next(), chars.next()) {
                by_char.insert(c, TokenId::from(id));
            }
        }
        let by_id = by_char.iter().map(|(&c, &id)| (id, c)).collect();
        Ok(Vocabulary { tokenizer, by_char, by_id })
    }

    /// The id of a token that the manifest names.
    pub fn resolve(&self, name: &TokenName) -> Result<TokenId, String> {
        match name {
            TokenName::Id(id) => Ok(*id),
            TokenName::Text(text) => self
                .tokenizer
                .token_to_id(text)
                .map(TokenId::from)
                .ok_or_else(|| format!("`{text}` is not a token of the tokenizer")),
        }
    }

    /// The token that stands for one character.
    pub fn char_token(&self, c: char) -> Option<TokenId> {
        self.by_char.get(&c).copied()
    }

    /// The character that a token stands for.
    pub fn token_char(&self, token: TokenId) -> Option<char> {
        self.by_id.get(&token).copied()
    }

    /// Ids of `text`, without anything that the tokenizer would add around it.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, String> {
        let encoding = self.tokenizer.encode_fast(text, false).map_err(|e| e.to_string())?;
        Ok(encoding.get_ids().iter().map(|&id| TokenId::from(id)).collect())
    }

    /// Text of `ids`, special tokens kept: without them a model's markup would vanish.
    pub fn decode(&self, ids: &[TokenId]) -> Result<String, String> {
        let ids: Vec<u32> = ids.iter().filter_map(|&id| u32::try_from(id).ok()).collect();
        self.tokenizer.decode(&ids, false).map_err(|e| e.to_string())
    }

    /// Cuts a word into pieces of one token each. A letter with its combining marks is one piece if the vocabulary has the
    /// composed character; spaces have no token and belong to the piece before (or after) them. The pieces cover the word.
    pub fn pieces(&self, word: &str) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for (at, cluster) in word.grapheme_indices(true) {
            let end = at + cluster.len();
            if let Some(token) = self.composed(cluster) {
                pieces.push(Piece { start: at, end, token: Some(token) });
                continue;
            }
            for (offset, c) in cluster.char_indices().filter(|(_, c)| !c.is_whitespace()) {
                let start = at + offset;
                pieces.push(Piece { start, end: start + c.len_utf8(), token: self.char_token(c) });
            }
        }
        close_gaps(&mut pieces, word.len());
        pieces
    }

    /// The token of a letter with marks, composed.
    fn composed(&self, cluster: &str) -> Option<TokenId> {
        cluster.chars().nth(1)?;
        let mut composed = cluster.nfc();
        match (composed.next(), composed.next()) {
            (Some(c), None) => self.char_token(c),
            _ => None,
        }
    }
}

/// Stretches pieces so that they cover `0..len` without gaps.
fn close_gaps(pieces: &mut [Piece], len: usize) {
    let starts: Vec<usize> = pieces.iter().skip(1).map(|p| p.start).chain([len]).collect();
    for (piece, next) in pieces.iter_mut().zip(starts) {
        piece.end = next;
    }
    if let Some(first) = pieces.first_mut() {
        first.start = 0;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A `tokenizer.json` of single characters: ASCII letters, digits, punctuation, "é", and an added marker.
    pub(crate) fn tiny_json() -> String {
        let mut vocab = serde_json::Map::new();
        for (id, c) in ('!'..='~').chain(['é']).enumerate() {
            vocab.insert(c.to_string(), id.into());
        }
        for (name, id) in
            [("<unk>", 100), ("<space>", 101), ("<end>", 102), ("<child>", 103), ("<fork>", 104)]
        {
            vocab.insert(name.into(), id.into());
        }
        let split = r#"{"type":"Split","pattern":{"Regex":"[\\s\\S]"},"behavior":"Isolated","invert":false}"#;
        let vocab = serde_json::Value::Object(vocab);
        format!(
            r#"{{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,"pre_tokenizer":{split},
            "post_processor":null,"decoder":{{"type":"Fuse"}},
            "model":{{"type":"WordLevel","vocab":{vocab},"unk_token":"<unk>"}}}}"#
        )
    }

    pub(crate) fn tiny() -> Vocabulary {
        Vocabulary::from_json(&tiny_json()).unwrap()
    }

    #[test]
    fn names_resolve_and_text_comes_back() {
        let vocabulary = tiny();
        assert_eq!(vocabulary.resolve(&TokenName::Text("<fork>".into())), Ok(104));
        assert!(vocabulary.resolve(&TokenName::Text("<mask>".into())).unwrap_err().contains("`<mask>`"));
        let ids = vocabulary.encode("abc").unwrap();
        assert_eq!(ids, ['a', 'b', 'c'].map(|c| vocabulary.char_token(c).unwrap()));
        assert_eq!(vocabulary.decode(&ids).unwrap(), "abc");
        assert_eq!(vocabulary.token_char(ids[1]), Some('b'));
    }

    #[test]
    fn pieces_cover_the_word_and_compose_marks() {
        let vocabulary = tiny();
        let pieces = vocabulary.pieces("e\u{301}x \u{4e2d}q\u{323}");
        let text: Vec<&str> = pieces.iter().map(|p| &"e\u{301}x \u{4e2d}q\u{323}"[p.start..p.end]).collect();
        assert_eq!(text, ["e\u{301}", "x ", "\u{4e2d}", "q", "\u{323}"]);
        assert_eq!(pieces[0].token, vocabulary.char_token('é'));
        assert_eq!(pieces[2].token, None);
        assert!(vocabulary.pieces("  ").is_empty());
    }
}
