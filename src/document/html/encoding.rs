//! Text and bytes as HTML takes them.

use std::io::{self, Write};

use crate::characters::turns_direction;

/// `text` for use between tags and in double-quoted attributes. Control characters, which HTML has no way to write, and the
/// characters that turn the direction of the text around them become U+FFFD.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_escaped(&mut out, text);
    out
}

pub(super) fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || turns_direction(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes bytes as base64 (RFC 4648, with padding), a piece at a time.
pub(super) struct Base64Writer<W: Write> {
    out: W,
    waiting: Vec<u8>,
}

impl<W: Write> Base64Writer<W> {
    pub(super) fn new(out: W) -> Self {
        Base64Writer { out, waiting: Vec::new() }
    }

    /// Writes what is left, padded.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.waiting.is_empty() { Ok(()) } else { self.out.write_all(&quartet(&self.waiting)) }
    }
}

impl<W: Write> Write for Base64Writer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Multiples of three, so that only the last piece waits.
        let taken = bytes.len().min(3 * 4096);
        self.waiting.extend_from_slice(&bytes[..taken]);
        let whole = self.waiting.len() / 3 * 3;
        let text: Vec<u8> = self.waiting[..whole].chunks_exact(3).flat_map(quartet).collect();
        self.out.write_all(&text)?;
        self.waiting.drain(..whole);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Four letters for one to three bytes.
fn quartet(bytes: &[u8]) -> [u8; 4] {
    let at = |k: usize| u32::from(bytes.get(k).copied().unwrap_or(0));
    let bits = at(0) << 16 | at(1) << 8 | at(2);
    let letter = |k: u32| ALPHABET[(bits >> (18 - 6 * k) & 63) as usize];
    let mut out = [letter(0), letter(1), letter(2), letter(3)];
    out[(bytes.len() + 1).min(4)..].fill(b'=');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, section 10.
        let known = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (plain, expected) in known {
            for piece in 1..=plain.len().max(1) {
                let mut out = Vec::new();
                let mut writer = Base64Writer::new(&mut out);
                plain.as_bytes().chunks(piece).for_each(|part| writer.write_all(part).unwrap());
                writer.finish().unwrap();
                assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        }
    }

    #[test]
    fn no_character_that_ends_text_or_attribute_is_left() {
        let hostile = "</script><img src=x onerror='alert(1)'>\" & \u{1b}[31m\u{202e}\0";
        let safe = escaped(hostile);
        assert!(!safe.contains(['<', '>', '"', '\'', '\u{1b}', '\u{202e}', '\0']), "{safe}");
        assert!(safe.starts_with("&lt;/script&gt;&lt;img"));
    }
}
