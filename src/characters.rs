//! Characters that show nothing but act: on a terminal, or on the direction of the text around them.

/// Marks, embeddings, overrides and isolates of the Unicode bidirectional algorithm. Text is written in logical order without them.
pub fn turns_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Control characters, line ends among them, and [`turns_direction`].
pub fn acts_on_terminals(c: char) -> bool {
    c.is_control() || turns_direction(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A line of JSON with such characters as `\u` escapes, which stays JSON: outside of its strings it has none.
pub fn escaped_json(line: String) -> String {
    if !line.contains(acts_on_terminals) {
        return line;
    }
    line.chars().fold(String::with_capacity(line.len() + 16), |mut out, c| {
        if acts_on_terminals(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_meaning_without_characters_that_act() {
        let value = serde_json::json!({ "file": "a\u{9b}\u{202e}\x1b\n\u{2028}é" });
        let line = escaped_json(value.to_string());
        assert!(!line.contains(acts_on_terminals) && line.contains('é'), "{line}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
    }
}
