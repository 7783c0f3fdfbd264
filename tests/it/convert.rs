//! `docparse convert` on small pictures, without a model: the output tree, stdout, stopping and going on.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use image::{Rgb, RgbImage};

use crate::program::{docparse, tree};

/// A white page with a black bar, as PNG.
fn write_picture(path: &Path, bar: u32) {
    let picture = RgbImage::from_fn(160, 120, |x, y| {
        let black = (40..44).contains(&y) && (20..20 + bar).contains(&x);
        Rgb(if black { [0; 3] } else { [255; 3] })
    });
    picture.save(path).unwrap();
}

pub(crate) fn pictures(count: u32) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("in")).unwrap();
    for number in 1..=count {
        write_picture(&dir.path().join(format!("in/p{number:02}.png")), number);
    }
    dir
}

const COMMON: [&str; 4] = ["convert", "in", "--model", "none"];

#[test]
fn a_picture_becomes_a_page_and_a_document() {
    let dir = pictures(1);
    docparse(dir.path()).args(COMMON).args(["-o", "out", "-f", "md,json,text"]).assert().code(0);
    let names: Vec<String> = tree(&dir.path().join("out")).into_keys().collect();
    let expected =
        ["document.json", "document.md", "document.txt", "page-0001.json", "page-0001.md", "page-0001.txt"];
    assert_eq!(names, expected.map(|name| format!("p01/{name}")));
    // There again: refused, replaced, kept.
    docparse(dir.path()).args(COMMON).args(["-o", "out"]).assert().code(4);
    docparse(dir.path()).args(COMMON).args(["-o", "out", "--overwrite"]).assert().code(0);
    let done = docparse(dir.path()).args(COMMON).args(["-o", "out", "--resume"]).assert().code(0);
    let summary = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(summary.contains("1 file, 1 page, 1 kept"), "{summary}");
}

#[test]
fn html_is_one_file_that_names_no_other() {
    let dir = pictures(1);
    let html = ["-o", "out", "-f", "html"];
    docparse(dir.path()).args(COMMON).args(html).assert().code(0);
    let out = dir.path().join("out");
    assert_eq!(tree(&out).into_keys().collect::<Vec<_>>(), ["p01/document.html", "p01/page-0001.jpg"]);
    let page = std::fs::read_to_string(out.join("p01/document.html")).unwrap();
    assert!(page.contains("href=\"data:image/jpeg;base64,/9j/"));
    assert!(!page.contains("page-0001.jpg") && !page.contains("://"));
    // What is there stands; without its picture a page is read anew.
    let resumed = |kept: &str| {
        let done = docparse(dir.path()).args(COMMON).args(html).arg("--resume").assert().code(0);
        let summary = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(summary.contains(kept), "{summary}");
    };
    resumed("1 page, 1 kept");
    std::fs::remove_file(out.join("p01/page-0001.jpg")).unwrap();
    resumed("1 file, 1 page, ");
    assert!(out.join("p01/page-0001.jpg").exists());
    let done = docparse(dir.path()).args(["convert", "in/p01.png", "-o", "-", "-f", "html"]).assert().code(2);
    assert!(String::from_utf8_lossy(&done.get_output().stderr).contains("whole documents"));
}

#[test]
fn stdout_holds_one_line_of_json_a_page_and_nothing_else() {
    let dir = pictures(1);
    let from_file = ["convert", "in/p01.png", "-o", "-", "-f", "json", "--model", "none", "-vv"];
    let done = docparse(dir.path()).args(from_file).assert().code(0);
    let line = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    assert_eq!(line.lines().count(), 1);
    let page: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((page["input"].as_str(), page["page"]["number"].as_u64()), (Some("p01.png"), Some(1)));
    // From stdin, only the name differs.
    let picture = std::fs::read(dir.path().join("in/p01.png")).unwrap();
    let from_stdin = ["convert", "-", "-o", "-", "-f", "json", "--model", "none"];
    let done = docparse(dir.path()).args(from_stdin).write_stdin(picture).assert().code(0);
    let piped = String::from_utf8(done.get_output().stdout.clone()).unwrap();
    assert_eq!(piped, line.replace("\"p01.png\"", "\"stdin\""));
}

fn start(dir: &Path, output: &str) -> Child {
    std::process::Command::new(env!("CARGO_BIN_EXE_docparse"))
        .current_dir(dir)
        .args(COMMON)
        .args(["-o", output, "--jobs", "1"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until a page is written. False if the run is over first.
fn wait_for_a_page(child: &mut Child, output: &Path) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if output.is_dir() && tree(output).keys().any(|name| name.ends_with(".json")) {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("no page in a minute");
}

#[test]
fn a_killed_run_leaves_no_half_file_and_resumes_to_the_same_bytes() {
    let dir = pictures(24);
    docparse(dir.path()).args(COMMON).args(["-o", "whole", "--jobs", "2"]).assert().code(0);
    let mut child = start(dir.path(), "out");
    wait_for_a_page(&mut child, &dir.path().join("out"));
    child.kill().unwrap();
    child.wait().unwrap();
    for (name, bytes) in tree(&dir.path().join("out")) {
        if name.ends_with(".json") {
            assert!(serde_json::from_slice::<serde_json::Value>(&bytes).is_ok(), "{name}");
        }
    }
    docparse(dir.path()).args(COMMON).args(["-o", "out", "--resume"]).assert().code(0);
    assert_eq!(tree(&dir.path().join("out")), tree(&dir.path().join("whole")));
}

#[test]
fn an_interrupted_run_finishes_what_it_is_at_and_says_so() {
    let dir = pictures(40);
    let mut child = start(dir.path(), "out");
    if wait_for_a_page(&mut child, &dir.path().join("out")) {
        let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let code = child.wait().unwrap().code();
        let journal = std::fs::read_to_string(dir.path().join("out/run.jsonl")).unwrap();
        let last: serde_json::Value = serde_json::from_str(journal.lines().last().unwrap()).unwrap();
        assert_eq!(last["event"], "run_finished");
        assert_eq!((code, last["signal"].as_i64()), (Some(130), Some(2)));
    }
}
