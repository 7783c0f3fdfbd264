//! Long runs: parts for several machines, what became of them, doing again what failed; names that lead elsewhere.

use std::path::Path;

use crate::convert::pictures;
use crate::program::{docparse, fixture, tree};

/// No network has to be loaded for what is tested here.
const COMMON: [&str; 6] = ["convert", "in", "--model", "none", "--drafts", "none"];

fn stdout(folder: &Path, arguments: &[&str], code: i32) -> String {
    let done = docparse(folder).args(arguments).assert().code(code);
    String::from_utf8(done.get_output().stdout.clone()).expect("text")
}

fn stderr(folder: &Path, arguments: &[&str], code: i32) -> String {
    let done = docparse(folder).args(arguments).assert().code(code);
    String::from_utf8_lossy(&done.get_output().stderr).into_owned()
}

#[test]
fn the_shards_of_a_run_make_the_tree_of_the_whole() {
    let dir = pictures(9);
    // Two that keep their extensions only because both are planned for, whoever converts which.
    std::fs::copy(dir.path().join("in/p01.png"), dir.path().join("in/p02.jpg")).unwrap();
    docparse(dir.path()).args(COMMON).args(["-o", "whole"]).assert().code(0);
    let mut most = 0;
    for shard in ["1/3", "2/3", "3/3"] {
        let done = docparse(dir.path()).args(COMMON).args(["-o", "parts", "--shard", shard]).assert().code(0);
        let summary = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        let files: usize = summary.split(' ').next().unwrap().parse().unwrap();
        most = files.max(most);
    }
    assert!(most < 10, "one shard did everything");
    assert_eq!(tree(&dir.path().join("parts")), tree(&dir.path().join("whole")));
    let status = stdout(dir.path(), &["status", "parts"], 0);
    assert!(
        status.contains("run-3-of-3.jsonl: ended") && status.contains("\n10 files: 10 done\n"),
        "{status}"
    );
    // A run of one machine goes on from what the shards did.
    let summary = stderr(dir.path(), &[&COMMON[..], &["-o", "parts", "--resume"]].concat(), 0);
    assert!(summary.contains("10 files, 10 pages, 10 kept"), "{summary}");
}

#[test]
fn status_says_what_failed_and_a_retry_does_only_that() {
    let dir = pictures(3);
    let broken = dir.path().join("in/broken.png");
    std::fs::write(&broken, b"no picture").unwrap();
    docparse(dir.path()).args(COMMON).args(["-o", "out"]).assert().code(1);
    let text = stdout(dir.path(), &["status", "out"], 1);
    assert!(text.contains("4 files: 3 done, 1 failed\n3 pages: 3 done\n"), "{text}");
    assert!(text.contains("failed:\n  in/broken.png: "), "{text}");
    let object: serde_json::Value =
        serde_json::from_str(&stdout(dir.path(), &["status", "out", "--json"], 1)).unwrap();
    assert_eq!(object["counts"]["failed"], 1);
    assert_eq!(object["files"][0]["file"], "in/broken.png");
    assert!(object["runs"][0]["pages_per_second"].as_f64().unwrap() > 0.0);

    std::fs::copy(dir.path().join("in/p01.png"), &broken).unwrap();
    let retry = [&COMMON[..], &["-o", "out", "--resume", "--retry-failed"]].concat();
    let planned = stdout(dir.path(), &[&retry[..], &["--dry-run"]].concat(), 0);
    assert_eq!(planned, "try again\tin/broken.png\tout/broken\n1 file\n");
    let summary = stderr(dir.path(), &retry, 0);
    assert!(summary.starts_with("1 file, 1 page, "), "{summary}");
    let text = stdout(dir.path(), &["status", "out"], 0);
    assert!(text.contains("4 files: 4 done\n"), "{text}");
    assert!(stderr(dir.path(), &retry, 0).starts_with("0 files, 0 pages, "));
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let dir = pictures(2);
    let dry = [&COMMON[..], &["-o", "out", "--dry-run"]].concat();
    let planned = "convert\tin/p01.png\tout/p01\nconvert\tin/p02.png\tout/p02\n2 files\n";
    assert_eq!(stdout(dir.path(), &dry, 0), planned);
    assert!(!dir.path().join("out").exists());
    docparse(dir.path()).args(COMMON).args(["-o", "out"]).assert().code(0);
    let before = tree(&dir.path().join("out"));
    stdout(dir.path(), &dry, 4);
    assert!(stdout(dir.path(), &[&dry[..], &["--overwrite"]].concat(), 0).starts_with("replace\t"));
    assert!(stdout(dir.path(), &[&dry[..], &["--resume"]].concat(), 0).starts_with("keep\t"));
    assert_eq!(tree(&dir.path().join("out")), before);
}

#[test]
fn nothing_is_written_outside_the_output_folder() {
    let dir = pictures(1);
    let picture = std::fs::read(dir.path().join("in/p01.png")).unwrap();
    let below = dir.path().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    // Without their extensions these are the output folder and the one above it.
    for name in ["..png", "...png"] {
        std::fs::write(below.join(name), &picture).unwrap();
    }
    let absolute = dir.path().join("in/p01.png");
    let list = format!("../../in/../in/p01.png\n{}\n..png\n...png\n../b\n", absolute.display());
    std::fs::write(below.join("list"), list).unwrap();
    let convert =
        ["convert", "--files-from", "list", "-o", "out", "--model", "none", "--drafts", "none", "-f", "md"];
    stderr(&below, &convert, 0);
    let mut names: Vec<String> = tree(&dir.path().join("a")).into_keys().collect();
    names.retain(|name| !name.starts_with("b/out/"));
    assert_eq!(names, ["b/...png", "b/..png", "b/list"]);
    let written: Vec<String> =
        tree(&below.join("out")).into_keys().filter(|name| name.ends_with("0001.md")).collect();
    assert_eq!(written, ["...png/page-0001.md", "..png/page-0001.md", "p01/page-0001.md"]);
    assert_eq!(tree(&dir.path().join("in")).len(), 1);
}

#[test]
fn a_password_is_told_to_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let secret = "correct-horse-battery";
    std::fs::write(dir.path().join("password"), format!("{secret}\n")).unwrap();
    let locked = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pdf/password-secret.pdf");
    std::fs::copy(locked, dir.path().join("locked.pdf")).unwrap();
    let common = [
        "convert",
        "locked.pdf",
        "-o",
        "out",
        "--model",
        "none",
        "-vvv",
        "--stats",
        "stats.json",
        "--overwrite",
    ];
    for password in [&["--password", secret][..], &["--password-file", "password"]] {
        for format in ["text", "json"] {
            let log = ["--log-format", format];
            let messages = stderr(dir.path(), &[&common[..], &log, password].concat(), 1);
            assert!(!messages.contains(secret), "{messages}");
        }
    }
    std::fs::remove_file(dir.path().join("password")).unwrap();
    for (name, bytes) in tree(dir.path()) {
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{name}");
    }
    let journal = std::fs::read_to_string(dir.path().join("out/run.jsonl")).unwrap();
    assert!(journal.contains("locked.pdf") && !journal.contains(secret));
}

#[test]
fn what_status_prints_cannot_act_on_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("in")).unwrap();
    std::fs::write(dir.path().join("in/a\u{1b}]0;x\u{7}\u{202e}.pdf"), b"no PDF").unwrap();
    docparse(dir.path()).args(COMMON).args(["-o", "out"]).assert().code(1);
    for arguments in [&["status", "out"][..], &["status", "out", "--json"]] {
        let text = stdout(dir.path(), arguments, 1);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    }
    let dry = stdout(dir.path(), &[&COMMON[..], &["-o", "out", "--dry-run"]].concat(), 0);
    assert!(dry.contains("\\u{1b}]0;x") && !dry.contains('\u{1b}'));
}

#[test]
fn a_diff_names_the_pages_that_are_not_the_same() {
    let dir = pictures(2);
    docparse(dir.path()).args(COMMON).args(["-o", "one"]).assert().code(0);
    docparse(dir.path()).args(COMMON).args(["-o", "two"]).assert().code(0);
    assert_eq!(stdout(dir.path(), &["diff", "one", "two"], 0), "2 pages, 2 the same\n");
    let path = dir.path().join("two/p02/page-0001.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"status\": \"ok\"", "\"status\": \"partial\"")).unwrap();
    std::fs::remove_dir_all(dir.path().join("two/p01")).unwrap();
    let said = stdout(dir.path(), &["diff", "one", "two"], 1);
    let expected = "p01: page 1: removed\np02: page 1: text 100.0 % alike, ok -> partial\n\
                    2 pages, 0 the same, 1 changed, 1 removed\n";
    assert_eq!(said, expected);
    let lines = stdout(dir.path(), &["diff", "one", "two", "--json"], 1);
    let objects: Vec<serde_json::Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((&objects[0]["change"], &objects[1]["change"]), (&"removed".into(), &"changed".into()));
    assert_eq!(objects[2]["compared"]["pages"], 2);
    assert!(stderr(dir.path(), &["diff", "one", "in"], 1).is_empty());
    assert!(stderr(dir.path(), &["diff", "in", "in"], 2).contains("--format json"));
    assert!(stderr(dir.path(), &["diff", "one", "three"], 2).contains("three: "));
}

#[test]
#[ignore = "needs tesseract with osd and heb"]
fn a_picture_in_a_script_that_the_ocr_lacks_is_read_by_tesseract() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(fixture("hebrew.pdf"), dir.path().join("a.pdf")).unwrap();
    let convert = ["convert", "a.pdf", "--model", "none", "--drafts", "layout,ocr", "-o", "-"];
    let read = stdout(dir.path(), &convert, 0);
    let layer = stdout(dir.path(), &["convert", "a.pdf", "--model", "none", "-o", "-"], 0);
    let alike = rapidfuzz::distance::indel::normalized_similarity(read.chars(), layer.chars());
    assert!(alike > 0.8, "{alike}: {read}");
}

#[test]
fn a_language_that_tesseract_does_not_have_is_an_error() {
    let dir = pictures(1);
    let convert = [&COMMON[..], &["-o", "out", "--lang", "script/Gurmukhi"]].concat();
    let done = docparse(dir.path()).args(convert).env("PATH", "/nonexistent").assert().code(3);
    assert!(String::from_utf8_lossy(&done.get_output().stderr).contains("`--lang script/Gurmukhi`"));
}

#[test]
fn names_of_any_bytes_are_told_apart_by_status_and_resume() {
    use std::os::unix::ffi::OsStrExt;
    let dir = pictures(2);
    let (first, second) = (dir.path().join("in/p01.png"), dir.path().join("in/p02.png"));
    std::fs::rename(first, dir.path().join("in").join(std::ffi::OsStr::from_bytes(b"\xff.png"))).unwrap();
    std::fs::rename(second, dir.path().join("in").join(std::ffi::OsStr::from_bytes(b"\xfe.png"))).unwrap();
    docparse(dir.path()).args(COMMON).args(["-o", "out"]).assert().code(0);
    let status = stdout(dir.path(), &["status", "out"], 0);
    assert!(status.contains("\n2 files: 2 done\n"), "{status}");
    let summary =
        stderr(dir.path(), &[&COMMON[..], &["-o", "out", "--resume", "--retry-failed"]].concat(), 0);
    assert!(summary.starts_with("0 files"), "{summary}");
}

#[test]
fn a_file_that_grows_past_its_limit_is_an_error_of_the_output() {
    let dir = pictures(1);
    let program = env!("CARGO_BIN_EXE_docparse");
    let script = format!("ulimit -f 0; exec {program} {} -o out", COMMON.join(" "));
    let done =
        std::process::Command::new("sh").args(["-c", &script]).current_dir(dir.path()).output().unwrap();
    assert_eq!(done.status.code(), Some(4), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("error: "), "{done:?}");
}
