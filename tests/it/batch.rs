//! Runs that must write the same bytes, and runs that are cut short.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::long;
use crate::program::{Ran, assert_same_trees, convert, convert_to, converted, fixture, tree};

/// The quick ones of the shared conversion: text layers, a table, a form field, right-to-left text, a turned page.
const QUICK: [&str; 5] = ["paper.pdf", "report.pdf", "form.pdf", "hebrew.pdf", "rotate-90-sideways.pdf"];

fn part(tree: BTreeMap<String, Vec<u8>>, keep: impl Fn(&str) -> bool) -> BTreeMap<String, Vec<u8>> {
    tree.into_iter().filter(|(name, _)| keep(name)).collect()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn one_job_and_two_write_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    convert_to(folder.path(), &QUICK.map(fixture), &["--jobs", "1"]);
    let stems = QUICK.map(|name| name.replace("pdf", "").replace('.', "/"));
    let of_both = part(tree(converted()), |name| stems.iter().any(|stem| name.starts_with(stem)));
    assert!(of_both.len() >= 4 * 5 + 4, "{:?}", of_both.keys());
    assert_same_trees(&tree(folder.path()), &of_both);
}

#[test]
fn a_scan_gives_the_same_bytes_twice() {
    let folder = tempfile::tempdir().unwrap();
    convert_to(folder.path(), &[fixture("two-pages.tiff")], &[]);
    let before = part(tree(converted()), |name| name.starts_with("two-pages/"));
    assert_eq!(before.len(), 6);
    assert_same_trees(&tree(folder.path()), &before);
}

#[test]
fn a_page_range_gives_the_page_files_of_a_full_run() {
    let folder = tempfile::tempdir().unwrap();
    convert_to(folder.path(), &[fixture("report.pdf")], &["--pages", "2"]);
    let second = |name: &str| name.starts_with("report/page-0002");
    let found = part(tree(folder.path()), |name| name.contains("/page-"));
    assert!(found.len() >= 2 && found.keys().all(|name| second(name)), "{:?}", found.keys());
    assert_same_trees(&found, &part(tree(converted()), second));
}

/// Writes a PDF of `pages` pages and gives its path.
fn long_pdf(folder: &Path, pages: u32, broken: &[u32]) -> PathBuf {
    let path = folder.join("long.pdf");
    fs::write(&path, long::pdf(pages, broken)).expect("a writable folder");
    path
}

/// Starts a conversion of `input` to `out` and kills it once `page` is there.
fn killed_at(input: &Path, out: &Path, page: &str) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_docparse"))
        .args(["convert", "--device", "cpu", "--jobs", "2", "--dpi", "72", "-o"])
        .args([out, input])
        .env_remove("DOCPARSE_MODEL")
        .stderr(Stdio::null())
        .spawn()
        .expect("docparse starts");
    let start = Instant::now();
    while !out.join("long").join(page).exists() {
        assert!(child.try_wait().expect("a child").is_none(), "the run ended before it was killed");
        assert!(start.elapsed() < Duration::from_secs(300), "no page came");
        std::thread::sleep(Duration::from_millis(5));
    }
    // SIGKILL: nothing can be tidied up.
    child.kill().expect("a child");
    child.wait().expect("a child");
}

#[test]
fn a_killed_run_loses_no_page_and_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let input = long_pdf(folder.path(), 12, &[]);
    // Quick pages: what is read on them does not matter here.
    let low = ["--dpi", "72"];
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    convert_to(&whole, std::slice::from_ref(&input), &low);
    let wanted = tree(&whole);
    assert_eq!(wanted.len(), 2 * 12 + 2);

    killed_at(&input, &killed, "page-0004.json");
    let left = part(tree(&killed), |name| !name.ends_with(".part"));
    let pages: Vec<&String> = left.keys().filter(|name| name.ends_with(".json")).collect();
    // One of two jobs may still have been at the page before.
    assert!((3..12).contains(&pages.len()), "{pages:?}");
    for (name, bytes) in &left {
        assert!(wanted.get(name) == Some(bytes), "{name} is not what the whole run wrote");
    }

    let out = killed.to_str().unwrap();
    let refused = convert([input.to_str().unwrap(), "-o", out]);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    let stats = folder.path().join("stats.json");
    let resume = ["--resume", "--stats", stats.to_str().unwrap()];
    convert_to(&killed, &[input], &[&low[..], &resume].concat());
    assert_same_trees(&tree(&killed), &wanted);
    let kept = json(&stats)["run"]["kept"].as_u64().unwrap();
    assert!(kept as usize >= pages.len() - 1, "{kept} of {} finished pages were kept", pages.len());
}

#[test]
fn what_fails_leaves_the_rest_complete() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let names = ["bomb.png", "truncated.pdf", "password-secret.pdf", "form.pdf", "no-pages.pdf", "empty.pdf"];
    let mut arguments: Vec<PathBuf> = names.map(fixture).into();
    arguments.push(long_pdf(folder.path(), 3, &[2]));
    arguments.extend(["-o".into(), out.clone()]);
    let Ran { code, stderr, stdout } = convert(arguments);
    assert_eq!((code, stdout), (Some(1), Vec::new()), "{stderr}");

    let form = part(tree(converted()), |name| name.starts_with("form/"));
    assert_same_trees(&part(tree(&out), |name| name.starts_with("form/")), &form);
    for (page, status) in [(1, "ok"), (2, "failed"), (3, "ok")] {
        let page = json(&out.join(format!("long/page-000{page}.json")));
        assert_eq!(page["page"]["status"], status, "{}", page["page"]);
        assert_eq!(page["page"]["reason"].is_string(), status == "failed");
    }
    let document = fs::read_to_string(out.join("long/document.md")).unwrap();
    assert!(document.contains(long::FIRST_WORDS[0]) && document.contains(long::FIRST_WORDS[2]), "{document}");
    assert_eq!(json(&out.join("bomb/page-0001.json"))["page"]["status"], "failed");
    for name in ["truncated", "password-secret", "no-pages", "empty"] {
        assert!(!out.join(name).exists(), "{name}");
    }
    // One line for each that failed, naming it.
    for name in ["bomb.png", "truncated.pdf", "password-secret.pdf", "no-pages.pdf", "empty.pdf", "long.pdf"]
    {
        let lines = stderr.lines().filter(|line| line.contains(name)).count();
        assert_eq!(lines, 1, "{name} in\n{stderr}");
    }
    assert!(stderr.contains("page 2") && stderr.contains("qpdf --decrypt"), "{stderr}");
}
