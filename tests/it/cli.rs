//! The program from outside: transcripts (`tests/cli/*.md`), and what a transcript cannot say.

use assert_cmd::Command;

use crate::program::docparse;

#[test]
fn transcripts() {
    trycmd::TestCases::new().case("tests/cli/*.md");
}

#[test]
fn messages_go_to_stderr_and_stdout_stays_empty() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("broken.pdf"), b"no PDF").unwrap();
    for arguments in [
        &["convert", "broken.pdf", "-o", "-", "--model", "none", "-vvv"][..],
        &["convert", "broken.pdf", "-o", "out", "--model", "none", "--progress", "always"],
        &["convert", "missing.pdf", "-o", "-", "--model", "none"],
    ] {
        let done = docparse(dir.path()).args(arguments).assert().code(1);
        let output = done.get_output();
        assert_eq!(output.stdout, b"", "{arguments:?}");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(messages.contains(&format!("{}: ", arguments[1])), "{messages}");
    }
}

#[test]
fn json_logs_are_objects_with_their_event_first() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a\u{1b}[31m.pdf"), b"no PDF").unwrap();
    let arguments = ["convert", ".", "missing.pdf", "-o", "out", "--model", "none", "--log-format", "json"];
    let done = docparse(dir.path()).args(arguments).assert().code(1);
    let messages = String::from_utf8(done.get_output().stderr.clone()).unwrap();
    let events: Vec<String> = messages
        .lines()
        .map(|line| {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(line.starts_with("{\"event\":"), "{line}");
            object["event"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(events.iter().filter(|event| *event == "file_failed").count(), 2);
    assert_eq!(events.last().unwrap(), "run_finished");
    assert!(!messages.contains('\u{1b}'));
}

#[test]
fn a_name_cannot_act_on_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a\u{1b}[31m\n.pdf"), b"no PDF").unwrap();
    let done = docparse(dir.path()).args(["convert", ".", "-o", "out", "--model", "none"]).assert().code(1);
    let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
    assert!(messages.contains("a\\u{1b}[31m\\n.pdf: "), "{messages}");
    assert!(!messages.contains('\u{1b}'));
}

#[test]
fn output_that_cannot_be_written_is_noticed_before_any_work() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.pdf"), b"no PDF").unwrap();
    std::fs::write(dir.path().join("file"), b"").unwrap();
    std::fs::create_dir_all(dir.path().join("taken")).unwrap();
    std::fs::write(dir.path().join("taken/a"), b"").unwrap();
    for (output, stats) in
        [("file", "s.json"), ("file/below", "s.json"), ("taken", "s.json"), ("out", "no/s.json")]
    {
        let arguments = ["convert", "a.pdf", "--model", "none", "-o", output, "--stats", stats];
        let done = docparse(dir.path()).args(arguments).assert().code(4);
        let messages = String::from_utf8_lossy(&done.get_output().stderr).into_owned();
        assert!(messages.starts_with("error: "), "{messages}");
        assert!(!messages.contains("a.pdf: "), "{messages}");
    }
    assert!(!dir.path().join("out").exists());
}

#[test]
fn the_report_of_a_run_says_what_it_cost() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.pdf"), b"no PDF").unwrap();
    let arguments = ["convert", "a.pdf", "-o", "out", "--model", "none", "-q", "--stats", "stats.json"];
    docparse(dir.path()).args(arguments).assert().code(1);
    let text = std::fs::read_to_string(dir.path().join("stats.json")).unwrap();
    let stats: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&stats["run"]["files"], &stats["run"]["files_failed"]), (&1.into(), &1.into()));
    assert!(stats["peak_rss_bytes"].as_u64().unwrap() > 1_000_000);
}

#[test]
fn file_lists_are_read_from_files_and_from_stdin() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a.pdf", "b.pdf"] {
        std::fs::write(dir.path().join(name), b"no PDF").unwrap();
    }
    std::fs::write(dir.path().join("list"), "a.pdf\n\nb.pdf\n").unwrap();
    let common = ["convert", "-o", "out", "--model", "none", "--files-from"];
    let summary = |command: &mut Command| {
        let done = command.assert().code(1);
        String::from_utf8_lossy(&done.get_output().stderr).lines().last().unwrap_or_default().to_owned()
    };
    let from_file = summary(docparse(dir.path()).args(common).arg("list"));
    assert!(from_file.starts_with("2 files, 0 pages, 2 files failed"), "{from_file}");
    let from_stdin =
        summary(docparse(dir.path()).args(common).args(["-", "-0"]).write_stdin("a.pdf\0b.pdf\0"));
    assert!(from_stdin.starts_with("2 files, 0 pages, 2 files failed"), "{from_stdin}");
}
