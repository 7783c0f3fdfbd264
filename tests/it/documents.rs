//! The command line as scripts see it: streams, exit codes, passwords.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use serde_json::Value;

use crate::program::{Ran, command, convert, converted, fixture, repository};

fn path(name: &str) -> String {
    fixture(name).to_str().unwrap().to_owned()
}

fn text(ran: &Ran) -> &str {
    std::str::from_utf8(&ran.stdout).expect("text")
}

#[test]
fn transcripts_are_what_happens() {
    trycmd::TestCases::new().case("tests/cli/*.md");
}

#[test]
fn stdout_holds_the_page_and_nothing_else() {
    let form = path("form.pdf");
    let plain = convert([&form, "-o", "-"]);
    let page = fs::read_to_string(converted().join("form/page-0001.md")).unwrap();
    assert_eq!((plain.code, text(&plain)), (Some(0), format!("<!-- page 1 -->\n\n{page}").as_str()));
    let loud = convert([&form, "-o", "-", "-vv", "--log-format", "json", "--progress", "always"]);
    assert_eq!((loud.code, text(&loud)), (Some(0), text(&plain)));
    assert!(loud.stderr.lines().count() > 2, "{}", loud.stderr);
    let json = convert([&form, "-o", "-", "--format", "json", "-v"]);
    let pages: Vec<Value> = text(&json).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((pages.len(), &pages[0]["page"]["status"]), (1, &Value::from("ok")));
    let quiet = convert([&form, "-o", "-", "-q"]);
    assert_eq!((text(&quiet), quiet.stderr.as_str()), (text(&plain), ""));
}

#[test]
fn stdin_and_lists_of_files_are_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let child = command()
        .args(["convert", "-", "-q", "-o"])
        .arg(&out)
        .stdin(fs::File::open(fixture("form.pdf")).unwrap())
        .status()
        .unwrap();
    assert_eq!(child.code(), Some(0));
    let page = |folder: &str| fs::read(out.join(folder).join("page-0001.md")).ok();
    assert_eq!(page("stdin"), fs::read(converted().join("form/page-0001.md")).ok());
    let list = folder.path().join("list");
    fs::write(&list, format!("{}\0{}\0", path("blank.pdf"), path("tiny.pdf"))).unwrap();
    let ran = convert(["--files-from", list.to_str().unwrap(), "-0", "-o", out.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(page("blank").is_some() && page("tiny").is_some());
}

#[test]
fn exit_codes_tell_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_owned();
    let (blank, truncated) = (path("blank.pdf"), path("truncated.pdf"));
    let code = |arguments: &[&str], wanted: i32, says: &str| {
        let ran = convert(arguments);
        assert_eq!(ran.code, Some(wanted), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{arguments:?}");
    };
    code(&[&blank, "-o", &out], 0, "1 page");
    code(&[&blank, "-o", &out], 4, "--resume");
    code(&[&blank, "-o", &out, "--resume"], 0, "");
    code(&[&truncated, "-o", &out], 1, "truncated.pdf");
    code(&["missing.pdf", "-o", &out], 1, "missing.pdf");
    code(&[&blank, "-o", &out, "--pages", "3-1", "--overwrite"], 2, "3-1");
    code(&[&blank, "-o", &out, "--format", "docx"], 2, "docx");
    code(&[&blank, &truncated, "-o", "-"], 2, "one input");
    code(&[&blank, "-o", &out, "--overwrite", "--model", "no-such-pack"], 3, "no-such-pack");
}

#[test]
fn a_pack_that_is_not_what_its_manifest_says_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pack = folder.path().join("pack");
    fs::create_dir(&pack).unwrap();
    for file in fs::read_dir(repository("models/nano")).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&file, pack.join(file.file_name().unwrap())).unwrap();
    }
    let mut graph = fs::read(pack.join("decode.onnx")).unwrap();
    *graph.last_mut().unwrap() ^= 1;
    fs::write(pack.join("decode.onnx"), graph).unwrap();
    let out = folder.path().join("out");
    let ran = convert([&path("form.pdf"), "-o", out.to_str().unwrap(), "--model", pack.to_str().unwrap()]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("decode.onnx") && ran.stderr.contains("sha256"), "{}", ran.stderr);
    assert!(!out.join("form").exists());
}

#[test]
fn output_that_cannot_be_written_is_code_4() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"not a folder").unwrap();
    for out in [file.join("below"), file.clone()] {
        let ran = convert([path("blank.pdf").as_str(), "-o", out.to_str().unwrap()]);
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
    assert_eq!(fs::read(&file).unwrap(), b"not a folder");
    // A disk without room.
    if fs::metadata("/dev/full").is_ok() {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let input = path("form.pdf");
        let output = command().args(["convert", &input, "-o", "-"]).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn passwords_open_what_is_locked() {
    let locked = path("password-secret.pdf");
    let none = convert([&locked, "-o", "-"]);
    assert_eq!((none.code, text(&none)), (Some(1), ""), "{}", none.stderr);
    assert!(none.stderr.contains("qpdf --decrypt"), "{}", none.stderr);
    let wrong = convert([&locked, "-o", "-", "--password", "Secret"]);
    assert_eq!((wrong.code, text(&wrong)), (Some(1), ""), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("password") && wrong.stderr != none.stderr, "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("Secret"), "the password is not repeated: {}", wrong.stderr);
    let right = convert([&locked, "-o", "-", "--password", "secret"]);
    assert_eq!(right.code, Some(0), "{}", right.stderr);
    assert!(text(&right).contains("For your eyes only."), "{}", text(&right));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    fs::write(&file, "secret\nand a second line\n").unwrap();
    let from_file = convert([&locked, "-o", "-", "--password-file", file.to_str().unwrap()]);
    assert_eq!(text(&from_file), text(&right), "{}", from_file.stderr);
    let from_variable =
        command().args(["convert", &locked, "-o", "-"]).env("DOCPARSE_PASSWORD", "secret").output().unwrap();
    assert_eq!(from_variable.stdout, right.stdout);
}

#[test]
fn nobody_reading_stdout_any_more_is_no_failure() {
    let mut child = command()
        .args(["convert", &path("report.pdf"), "-o", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{stderr}");
    assert!(!stderr.contains("error") && !stderr.contains("panic"), "{stderr}");
}

#[test]
fn without_a_model_the_drafts_are_written_and_said_to_be_unverified() {
    let ran = convert([&path("form.pdf"), "-o", "-", "--format", "json", "--model", "none"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let page: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!((&page["model"], &page["page"]["verification"]), (&Value::Null, &"unverified".into()));
    let elements = page["page"]["elements"].as_array().unwrap();
    assert!(!elements.is_empty() && elements.iter().all(|e| e["stop"] == "unverified"), "{page}");
}

#[test]
fn without_drafts_the_model_reads_alone_and_a_small_budget_is_told() {
    let arguments = ["--drafts", "none", "--max-tokens", "8", "--format", "json", "-o", "-"];
    let form = path("form.pdf");
    let ran = convert([form.as_str()].into_iter().chain(arguments));
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    let page: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let page = &page["page"];
    assert_eq!((&page["status"], &page["verification"]), (&"partial".into(), &"verified".into()), "{page}");
    assert!(page["reason"].as_str().unwrap().contains("budget"), "{page}");
    let elements = page["elements"].as_array().unwrap();
    let runs = elements.iter().filter_map(|e| e["runs"].as_array()).flatten();
    let sources: Vec<&Value> = runs.map(|run| &run["source"]).collect();
    assert!(!sources.is_empty() && sources.iter().all(|source| *source == "model"), "{page}");
}
