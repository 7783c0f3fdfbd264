//! Whole pages against what they gave before: `fixtures/golden/<name>`. A change of the output shows as a change of these
//! files; `UPDATE_GOLDEN=1 cargo test --test it golden` writes them anew. Read the difference, never edit them by hand.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{CONVERTED, converted, repository};

/// Points by which a box may differ, and so may other lengths: processors round differently.
const LENGTH: f64 = 1.0;
/// By which a confidence may differ.
const CONFIDENCE: f64 = 0.05;

#[test]
fn pages_are_what_they_were() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut differing = Vec::new();
    for name in CONVERTED.map(|name| Path::new(name).file_stem().expect("a name").display().to_string()) {
        let (made, kept) = (converted().join(&name), repository("fixtures/golden").join(&name));
        let mut files = vec!["page-0001.md", "page-0001.json"];
        if made.join("page-0002.md").exists() {
            files.push("document.md");
        }
        if update {
            let _ = fs::remove_dir_all(&kept);
            fs::create_dir_all(&kept).expect("a writable repository");
        }
        for file in files {
            let text = fs::read_to_string(made.join(file)).expect("a finished page");
            let text = if file.ends_with(".json") { page_alone(&text) } else { text };
            if update {
                fs::write(kept.join(file), text).expect("a writable repository");
                continue;
            }
            let wanted = fs::read_to_string(kept.join(file)).unwrap_or_default();
            let difference = if file.ends_with(".json") {
                json_difference(&wanted, &text)
            } else {
                line_difference(&wanted, &text)
            };
            differing.extend(difference.map(|difference| format!("{name}/{file}: {difference}")));
        }
    }
    let hint = "`UPDATE_GOLDEN=1 cargo test --test it golden` writes the golden files anew";
    assert!(differing.is_empty(), "{}\n{hint}", differing.join("\n"));
}

/// The file without what made it: versions and sums change without the page.
fn page_alone(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let volatile = ["\"docparse\"", "\"model\"", "\"settings_sha256\"", "\"input_sha256\""];
    lines.retain(|line| !volatile.iter().any(|key| line.trim_start().starts_with(key)));
    let mut out = lines.join("\n");
    out.push('\n');
    out
}

fn line_difference(wanted: &str, found: &str) -> Option<String> {
    let at = (0..)
        .find(|&at| wanted.lines().nth(at) != found.lines().nth(at) || wanted.lines().nth(at).is_none())?;
    let (wanted, found) = (wanted.lines().nth(at), found.lines().nth(at));
    (wanted != found).then(|| format!("line {}: {wanted:?} is now {found:?}", at + 1))
}

fn json_difference(wanted: &str, found: &str) -> Option<String> {
    let (Ok(wanted), Ok(found)) = (serde_json::from_str(wanted), serde_json::from_str(found)) else {
        return Some("no JSON".into());
    };
    value_difference("", &wanted, &found)
}

/// Where two values differ first, if they do by more than rounding.
fn value_difference(path: &str, wanted: &Value, found: &Value) -> Option<String> {
    match (wanted, found) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.map(|key| (format!("{path}.{key}"), a.get(key), b.get(key))).find_map(|(path, a, b)| {
                value_difference(&path, a.unwrap_or(&Value::Null), b.unwrap_or(&Value::Null))
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.map(|(i, (a, b))| value_difference(&format!("{path}[{i}]"), a, b)).find_map(|d| d)
        }
        (Value::Number(a), Value::Number(b)) => {
            let tolerance = if path.ends_with(".confidence") {
                CONFIDENCE
            } else if a.is_u64() && b.is_u64() {
                0.0
            } else {
                LENGTH
            };
            let apart = (a.as_f64()? - b.as_f64()?).abs();
            (apart > tolerance).then(|| format!("{path}: {a} is now {b}"))
        }
        _ => (wanted != found).then(|| format!("{path}: {wanted} is now {found}")),
    }
}

#[test]
fn rounding_is_no_difference_and_all_else_is() {
    let page = r#"{"bbox":[1.2,3.0],"runs":[{"confidence":0.91,"end":4}],"text":"abc"}"#;
    let same = r#"{"bbox":[1.9,2.5],"runs":[{"confidence":0.93,"end":4}],"text":"abc"}"#;
    assert_eq!(json_difference(page, same), None);
    for (other, path) in [
        (same.replace("1.9", "2.9"), ".bbox[0]"),
        (same.replace("0.93", "0.8"), ".runs[0].confidence"),
        (same.replace(":4", ":5"), ".runs[0].end"),
        (same.replace("abc", "abd"), ".text"),
        (same.replace("\"text\"", "\"texts\""), ".text"),
    ] {
        assert!(json_difference(page, &other).is_some_and(|d| d.starts_with(path)), "{other}");
    }
    assert_eq!(line_difference("a\nb\n", "a\nb\n"), None);
    assert!(line_difference("a\n", "a\nb\n").is_some() && line_difference("", "a\n").is_some());
}
