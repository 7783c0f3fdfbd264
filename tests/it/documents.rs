//! Real documents through the program: streams, exit codes, passwords, with and without model and drafts.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Ran, convert, converted, docparse, fixture, repository};

fn path(name: &str) -> String {
    fixture(name).to_str().unwrap().to_owned()
}

fn text(ran: &Ran) -> &str {
    std::str::from_utf8(&ran.stdout).expect("text")
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
fn a_pdf_on_stdin_gives_the_page_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let pdf = fs::read(fixture("form.pdf")).unwrap();
    docparse(folder.path()).args(["convert", "-", "-q", "-o", "out"]).write_stdin(pdf).assert().code(0);
    let page = fs::read(folder.path().join("out/stdin/page-0001.md")).unwrap();
    assert_eq!(page, fs::read(converted().join("form/page-0001.md")).unwrap());
}

#[test]
fn exit_codes_tell_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").to_str().unwrap().to_owned();
    let (blank, truncated) = (path("blank.pdf"), path("truncated.pdf"));
    let code = |arguments: &[&str], wanted: i32, says: &str| {
        let ran = convert(arguments);
        assert_eq!(ran.code, Some(wanted), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says) && ran.stdout.is_empty(), "{arguments:?}: {}", ran.stderr);
    };
    code(&[&blank, "-o", &out], 0, "1 page");
    code(&[&blank, "-o", &out], 4, "--resume");
    code(&[&blank, "-o", &out, "--resume"], 0, "1 kept");
    code(&[&truncated, "-o", &out], 1, "truncated.pdf");
    code(&[&blank, "-o", &out, "--overwrite", "--pages", "2"], 1, "blank.pdf");
    code(&[&blank, "-o", &out, "--format", "docx"], 2, "docx");
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
#[cfg(target_os = "linux")]
fn stdout_on_a_full_disk_is_code_4() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_docparse"));
    let output = command.args(["convert", &path("form.pdf"), "-o", "-"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
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
    let mut command = docparse(folder.path());
    let from_variable =
        command.args(["convert", &locked, "-o", "-"]).env("DOCPARSE_PASSWORD", "secret").output();
    let from_variable = from_variable.unwrap();
    assert_eq!(from_variable.stdout, right.stdout);
}

#[test]
fn nobody_reading_stdout_any_more_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_docparse"))
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
