//! `docparse models`: what packs there are, what one says of itself, whether its files are what it says.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::args::{MessageArguments, ModelsArguments, ModelsCommand};
use super::exit::Outcome;
use super::locate;
use super::report::{Report, escaped, print};
use crate::batch::identity::file_sha256;

/// Runs `models`.
pub(super) fn models(arguments: &ModelsArguments) -> Outcome {
    let report = Report::new(&MessageArguments::default());
    let result = match &arguments.command {
        ModelsCommand::List => Ok(list()),
        ModelsCommand::Inspect { pack } => {
            found(pack).and_then(|(folder, manifest)| inspect(&folder, &manifest))
        }
        ModelsCommand::Verify { pack } => {
            found(pack).and_then(|(folder, manifest)| verify(&folder, &manifest))
        }
    };
    match result {
        Ok(text) => print(&text),
        Err(message) => {
            report.error(&message, &[]);
            Outcome::Missing
        }
    }
}

fn found(pack: &str) -> Result<(PathBuf, Value), String> {
    let folder = locate::pack(pack).map_err(|missing| missing.to_string())?;
    let manifest = locate::manifest(&folder)?;
    Ok((folder, manifest))
}

fn list() -> String {
    let mut text = String::new();
    let packs = locate::packs();
    for (name, folder) in &packs {
        let licence = match locate::manifest(folder) {
            Ok(manifest) => field(&manifest, "licence"),
            Err(_) => "manifest cannot be read".to_owned(),
        };
        let _ = writeln!(
            text,
            "{}\t{}\t{}",
            escaped(name),
            escaped(&licence),
            escaped(&folder.display().to_string())
        );
    }
    let third_party = locate::third_party();
    for (name, size) in locate::third_party_files(&third_party) {
        let _ = writeln!(text, "{}\t{:.1} MB\t{}", escaped(&name), size as f64 / 1e6, third_party.display());
    }
    text
}

/// A manifest's text field, whichever type it has.
fn field(manifest: &Value, name: &str) -> String {
    match manifest.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "not stated".to_owned(),
    }
}

fn inspect(folder: &Path, manifest: &Value) -> Result<String, String> {
    let mut text = format!("folder: {}\n", escaped(&folder.display().to_string()));
    let Some(entries) = manifest.as_object() else { return Err("the manifest is not an object".into()) };
    for (name, value) in entries {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let _ = writeln!(text, "{}: {}", escaped(name), escaped(&value));
    }
    Ok(text)
}

/// Checks every file that the manifest lists under `files` (name -> sha256).
fn verify(folder: &Path, manifest: &Value) -> Result<String, String> {
    let files = manifest
        .get("files")
        .and_then(Value::as_object)
        .ok_or_else(|| format!("`{}`: the manifest lists no `files`", folder.display()))?;
    let mut text = String::new();
    for (name, sum) in files {
        let is_inside =
            Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !is_inside {
            return Err(format!("`{name}` lies outside the pack"));
        }
        let path = folder.join(name);
        let stated = sum.as_str().or_else(|| sum.get("sha256").and_then(Value::as_str)).unwrap_or_default();
        let actual = file_sha256(&path).map_err(|error| format!("`{}`: {error}", path.display()))?;
        if !stated.eq_ignore_ascii_case(&actual) {
            return Err(format!("`{}`: sha256 is {actual}, the manifest says {stated}", path.display()));
        }
        let _ = writeln!(text, "ok\t{}", escaped(name));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn verify_tells_a_right_sum_from_a_wrong_one() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("g.onnx"), b"abc").unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(verify(dir.path(), &json!({ "files": { "g.onnx": sum } })).unwrap(), "ok\tg.onnx\n");
        let nested = json!({ "files": { "g.onnx": { "sha256": sum } } });
        assert_eq!(verify(dir.path(), &nested).unwrap(), "ok\tg.onnx\n");
        let wrong = verify(dir.path(), &json!({ "files": { "g.onnx": "00" } })).unwrap_err();
        assert!(wrong.contains("the manifest says 00"), "{wrong}");
        assert!(verify(dir.path(), &json!({ "files": { "missing.onnx": sum } })).is_err());
        assert!(
            verify(dir.path(), &json!({ "files": { "../g.onnx": sum } })).unwrap_err().contains("outside")
        );
        assert!(verify(dir.path(), &json!({})).is_err());
    }
}
