//! `docparse diff`: what changed between two runs.

use std::fmt::Write;

use serde_json::json;

use super::args::{DiffArguments, MessageArguments};
use super::exit::Outcome;
use super::report::{Report, counted, escaped, print};
use crate::batch::compare::{ChangedPage, Compared, ElementChange, PageChange, PageDifference, compare};
use crate::characters::escaped_json;
use crate::document::ElementKind;

/// Runs `diff`. Exit code 0: the same; 1: not the same. Every page is printed as it is found.
pub(super) fn diff(arguments: &DiffArguments) -> Outcome {
    let report = Report::new(&MessageArguments::default());
    let mut printed = Outcome::Done;
    let done = compare(&arguments.first, &arguments.second, &mut |page| {
        let text = if arguments.json { object(&page) } else { page_text(&page) };
        if printed == Outcome::Done {
            printed = print(&text);
        }
    });
    let compared = match done {
        Ok(compared) => compared,
        Err(error) => {
            report.error(&error.to_string(), &[]);
            return Outcome::BadArguments;
        }
    };
    if compared.pages == 0 {
        let message = "neither folder holds page JSON (`page-0001.json`)";
        report.error(message, &["write it with `--format json`".to_owned()]);
        return Outcome::BadArguments;
    }
    let text =
        if arguments.json { json!({ "compared": compared }).to_string() + "\n" } else { summary(&compared) };
    if printed == Outcome::Done {
        printed = print(&text);
    }
    match printed {
        Outcome::Done if compared.same < compared.pages => Outcome::Failed,
        printed => printed,
    }
}

fn object(page: &ChangedPage) -> String {
    escaped_json(serde_json::to_string(page).expect("these are plain data")) + "\n"
}

fn summary(compared: &Compared) -> String {
    let mut out = format!("{}, {} the same", counted(compared.pages, "page"), compared.same);
    let counts = [
        (compared.changed, "changed"),
        (compared.added, "added"),
        (compared.removed, "removed"),
        (compared.unreadable, "unreadable"),
    ];
    for (count, what) in counts {
        if count > 0 {
            let _ = write!(out, ", {count} {what}");
        }
    }
    out + "\n"
}

fn page_text(page: &ChangedPage) -> String {
    let name = format!("{}: page {}", escaped(&page.output), page.page);
    match &page.change {
        PageChange::Added => format!("{name}: added\n"),
        PageChange::Removed => format!("{name}: removed\n"),
        PageChange::Unreadable { reason } => format!("{name}: {}\n", escaped(reason)),
        PageChange::Changed(difference) => format!("{name}: {}", difference_text(difference)),
    }
}

fn difference_text(difference: &PageDifference) -> String {
    let mut out = format!("text {:.1} % alike", difference.similarity * 100.0);
    if let Some((before, after)) = difference.status {
        let name = |status| format!("{status:?}").to_lowercase();
        let _ = write!(out, ", {} -> {}", name(before), name(after));
    }
    out.push('\n');
    let forms = difference.elements.iter().filter(|e| matches!(e, ElementChange::Form { .. })).count();
    for change in &difference.elements {
        match change {
            ElementChange::Added { id, kind, text } => {
                let _ = writeln!(out, "  + {} {}: {}", escaped(id), name(*kind), shown(text));
            }
            ElementChange::Removed { id, kind, text } => {
                let _ = writeln!(out, "  - {} {}: {}", escaped(id), name(*kind), shown(text));
            }
            ElementChange::Kind { id, before, after, text } => {
                let _ = writeln!(out, "  ~ {} {before} -> {after}: {}", escaped(id), shown(text));
            }
            ElementChange::Text { id, kind, similarity, before, after } => {
                let _ =
                    writeln!(out, "  ~ {} {}: {:.1} % alike", escaped(id), name(*kind), similarity * 100.0);
                let (before, after) = around_change(before, after);
                let _ = writeln!(out, "    - {}\n    + {}", escaped(&before), escaped(&after));
            }
            ElementChange::Form { .. } => {}
        }
    }
    if forms > 0 {
        let _ = writeln!(out, "  {} with other boxes, runs or markup", counted(forms, "element"));
    }
    out
}

fn name(kind: ElementKind) -> String {
    serde_json::to_value(kind).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Characters of a text that are shown.
const SHOWN: usize = 70;

fn shown(text: &str) -> String {
    let mut start: String = text.chars().take(SHOWN).collect();
    if start.len() < text.len() {
        start.push('…');
    }
    escaped(&start)
}

/// Both texts from a little before the place where they part.
fn around_change(before: &str, after: &str) -> (String, String) {
    let same = before.chars().zip(after.chars()).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(SHOWN / 4);
    let part = |text: &str| {
        let mut part: String = text.chars().skip(start).take(SHOWN).collect();
        if start > 0 {
            part.insert(0, '…');
        }
        if text.chars().nth(start + SHOWN).is_some() {
            part.push('…');
        }
        part
    };
    (part(before), part(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_shown_where_they_part() {
        let long = "a".repeat(500);
        let (before, after) = around_change(&format!("{long}x{long}"), &format!("{long}y{long}"));
        assert_eq!(before, format!("…{}x{}…", "a".repeat(17), "a".repeat(52)));
        assert!(after.contains('y') && after.chars().count() == SHOWN + 2);
        assert_eq!(around_change("ab", "ac"), ("ab".into(), "ac".into()));
    }
}
