//! Files under `fixtures/pdf` through the child process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use docparse::page::PageEvidence;
use docparse::pdf::{Document, OpenError, OpenOptions, PageError};
use docparse::settings::{Limits, RasterSettings};

fn options() -> OpenOptions {
    OpenOptions {
        raster: RasterSettings { dpi: 100.0, max_side: 1500 },
        password: None,
        limits: Limits { page_time: Duration::from_secs(60), ..Limits::default() },
        program: env!("CARGO_BIN_EXE_docparse").into(),
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pdf").join(name)
}

fn open(name: &str) -> Document {
    Document::open(&fixture(name), &options()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn page(name: &str) -> PageEvidence {
    open(name).page(1).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn error(name: &str, password: Option<&str>) -> OpenError {
    let options = OpenOptions { password: password.map(Into::into), ..options() };
    Document::open(&fixture(name), &options).expect_err(name)
}

fn text(page: &PageEvidence) -> String {
    page.words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// Share of the words in whose box something is printed, less that of their boxes moved by a third of the page.
fn alignment(page: &PageEvidence) -> f32 {
    let gray = page.raster.gray();
    let (w, h) = (page.raster.width, page.raster.height);
    let ink = |down: usize| {
        let dark = page.words.iter().filter(|word| {
            let b = word.bbox;
            (b.y0 as usize..=b.y1 as usize).any(|y| {
                (b.x0 as usize..=b.x1 as usize).any(|x| gray[(y + down) % h * w + x.min(w - 1)] < 128)
            })
        });
        dark.count() as f32 / page.words.len() as f32
    };
    ink(0) - ink(h / 3)
}

#[test]
fn a_paper_gives_words_where_they_are_printed_a_link_and_the_lines_of_its_table() {
    let page = page("paper.pdf");
    assert!(text(&page).contains("A narrow mouth delays the flood"));
    assert!(alignment(&page) > 0.1, "{}", alignment(&page));
    assert!(page.words.iter().all(|w| page.raster.width as f32 > w.bbox.x0 && w.suspicious == 0.0));
    let bold: Vec<&str> = page.words.iter().filter(|w| w.bold).map(|w| w.text.as_str()).collect();
    assert!(bold.contains(&"Tides") && !bold.contains(&"boats"), "{bold:?}");
    let linked: Vec<&str> =
        page.words.iter().filter(|w| w.link == Some(0)).map(|w| w.text.as_str()).collect();
    assert_eq!(linked, ["the", "project", "page."]);
    assert_eq!(page.links[0].uri, "https://example.org/tides");
    assert!(page.rules.horizontal.len() >= 5 && page.rules.vertical.len() >= 4, "{:?}", page.rules);
    assert_eq!((page.turn, page.is_picture, page.hidden_share), (0, false, 0.0));
    assert!((page.scale - 100.0 / 72.0).abs() < 1e-4);
}

#[test]
fn a_report_gives_its_metadata_and_bookmarks() {
    let document = open("report.pdf");
    let info = document.info();
    assert_eq!(info.page_count, 3);
    assert!(info.metadata.contains(&("author".into(), "Library Committee".into())), "{:?}", info.metadata);
    let marks: Vec<(&str, u32, Option<u32>)> =
        info.bookmarks.iter().map(|b| (b.title.as_str(), b.level, b.page)).collect();
    assert_eq!(marks[..2], [("Readers and Loans", 1, Some(1)), ("Opening Hours", 2, Some(1))]);
    assert_eq!(marks.last(), Some(&("Outlook", 1, Some(3))));
}

#[test]
fn pages_come_out_upright() {
    for (name, turn) in [
        ("rotate-90.pdf", 0),
        ("rotate-90-sideways.pdf", 3),
        ("text-turned.pdf", 3),
        ("text-upside-down.pdf", 2),
    ] {
        let mut page = page(name);
        // pdfium orders the lines of a page that lies on its side from the bottom up.
        page.words.sort_by(|a, b| (a.bbox.y0, a.bbox.x0).partial_cmp(&(b.bbox.y0, b.bbox.x0)).unwrap());
        assert_eq!(page.turn, turn, "{name}");
        assert_eq!(
            text(&page),
            "This side is up. The page tells where its top is, or its text does.",
            "{name}"
        );
        let (first, last) = (page.words[0].bbox, page.words[14].bbox);
        assert!(first.y1 < last.y0 && first.width() > first.height(), "{name}: {first:?} {last:?}");
        assert!(alignment(&page) > 0.9, "{name}: {}", alignment(&page));
        assert_eq!(page.rules.horizontal.len(), 2, "{name}");
    }
}

#[test]
fn scans_are_told_apart_from_their_layers() {
    let plain = page("scan.pdf");
    assert!(plain.words.is_empty() && plain.picture_share > 0.99);
    let layered = page("scan-garbage-layer.pdf");
    assert!(layered.words.len() > 100 && layered.hidden_share == 1.0);
}

#[test]
fn values_of_form_fields_are_words_and_pixels() {
    let page = page("form.pdf");
    for value in ["Ada", "Lovelace", "London"] {
        assert!(page.words.iter().any(|w| w.text == value), "{value} in {}", text(&page));
    }
    assert!(alignment(&page) > 0.5);
}

#[test]
fn lines_inside_a_form_xobject_are_where_they_are_drawn() {
    let page = page("nested-form.pdf");
    let to_pixels = page.scale;
    let near = |a: f32, points: f32| (a - points * to_pixels).abs() < 1.5;
    let mut vertical: Vec<f32> = page.rules.vertical.iter().map(|r| r.2).collect();
    vertical.sort_by(f32::total_cmp);
    assert!(vertical.len() == 3 && near(vertical[0], 100.5) && near(vertical[2], 300.5), "{vertical:?}");
    assert!(page.rules.horizontal.iter().all(|r| near(r.0, 100.0) && near(r.1, 300.0)), "{:?}", page.rules);
}

#[test]
fn right_to_left_words_come_in_reading_order() {
    assert!(
        text(&page("hebrew.pdf")).starts_with("\u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{5e2}\u{5d5}\u{5dc}\u{5dd}")
    );
}

#[test]
fn odd_sizes_are_rendered_within_bounds() {
    let huge = page("huge.pdf");
    assert_eq!((huge.raster.width, huge.raster.height), (1500, 1500));
    assert_eq!(text(&huge), "A very large page.");
    let tiny = page("tiny.pdf");
    assert_eq!((tiny.raster.width, tiny.raster.height), (4, 4));
    let blank = page("blank.pdf");
    assert!(blank.words.is_empty() && blank.raster.rgb.iter().all(|&v| v == 255));
}

#[test]
fn files_that_cannot_be_opened_say_why() {
    assert!(matches!(error("password-secret.pdf", None), OpenError::PasswordNeeded));
    assert!(matches!(error("password-secret.pdf", Some("Secret")), OpenError::PasswordWrong));
    assert!(matches!(error("password-secret.pdf", Some("se\0cret")), OpenError::PasswordWrong));
    for name in ["truncated.pdf", "not-a-pdf.pdf", "empty.pdf"] {
        assert!(matches!(error(name, None), OpenError::Format(_)), "{name}");
    }
    assert!(matches!(error("no-pages.pdf", None), OpenError::NoPages));
    assert!(matches!(error("missing.pdf", None), OpenError::Io(_)));
}

#[test]
fn a_child_that_wants_more_memory_than_it_may_have_costs_only_its_file() {
    let limits = Limits { raster_memory: 8, ..Limits::default() };
    let error = Document::open(&fixture("paper.pdf"), &OpenOptions { limits, ..options() }).unwrap_err();
    assert!(matches!(error, OpenError::Format(_) | OpenError::Library(_)), "{error}");
}

#[test]
fn pictures_of_more_pixels_than_allowed_are_refused() {
    let limits = Limits { picture_pixels: 1_000_000, ..Limits::default() };
    let mut picture = Document::open(&fixture("page.png"), &OpenOptions { limits, ..options() }).unwrap();
    assert!(picture.page(1).unwrap_err().to_string().contains("`--max-pixels`"));
}

#[test]
fn the_right_password_opens_and_owner_passwords_do_not_matter() {
    let options = OpenOptions { password: Some("secret".into()), ..options() };
    let mut document = Document::open(&fixture("password-secret.pdf"), &options).unwrap();
    assert_eq!(text(&document.page(1).unwrap()), "For your eyes only.");
    assert_eq!(text(&page("owner-password.pdf")), "For your eyes only.");
}

#[test]
fn pictures_come_upright_in_colour_and_page_by_page() {
    let (png, turned) = (page("page.png"), page("turned.jpg"));
    assert!(png.is_picture && (png.scale - 150.0 / 72.0 * 1500.0 / 1754.0).abs() < 0.01, "{}", png.scale);
    assert_eq!((png.raster.width, png.raster.height), (turned.raster.width, turned.raster.height));
    let differing =
        png.raster.gray().iter().zip(turned.raster.gray()).filter(|(a, b)| a.abs_diff(*b) > 64).count();
    assert!(differing < png.raster.width * png.raster.height / 200, "{differing} pixels differ");
    let red = page("cmyk.jpg").raster.pixel(10, 40);
    assert!(red[0] > 200 && red[1] < 60 && red[2] < 60, "{red:?}");

    let mut tiff = open("two-pages.tiff");
    assert_eq!(tiff.info().page_count, 2);
    let (first, second) = (tiff.page(1).unwrap(), tiff.page(2).unwrap());
    assert_ne!(first.raster, second.raster);
    assert!((second.scale - 100.0 / 72.0).abs() < 1e-3);
    assert!(matches!(tiff.page(3), Err(PageError::Render(_))));
    assert!(matches!(open("bomb.png").page(1), Err(PageError::Render(_))));
}

#[cfg(unix)]
mod renderers_that_fail {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Command;

    use super::*;

    /// A program that says it opened a document of two pages, and then runs `then`.
    fn stub(dir: &Path, then: &str) -> OpenOptions {
        let header = br#"{"Opened":{"page_count":2,"metadata":[],"bookmarks":[]}}"#;
        let mut frame = (header.len() as u32).to_le_bytes().to_vec();
        frame.extend([0; 4]);
        frame.extend(header);
        std::fs::write(dir.join("frame"), frame).expect("a writable folder");
        script(dir, &format!("cat '{}'\n{then}", dir.join("frame").display()))
    }

    fn script(dir: &Path, body: &str) -> OpenOptions {
        let program = dir.join("program");
        let _ = std::fs::remove_file(&program);
        std::fs::write(&program, format!("#!/bin/sh\n{body}\n")).expect("a writable folder");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))
            .expect("a writable folder");
        OpenOptions {
            program,
            limits: Limits { page_time: Duration::from_millis(500), ..Limits::default() },
            ..options()
        }
    }

    #[test]
    fn a_page_that_hangs_costs_its_time_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let mut document =
            Document::open(&fixture("report.pdf"), &stub(dir.path(), "exec sleep 60")).unwrap();
        let start = Instant::now();
        assert!(matches!(document.page(1), Err(PageError::Timeout(_))));
        assert!(matches!(document.page(2), Err(PageError::Timeout(_))));
        assert!(start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn a_page_on_which_the_renderer_dies_says_how() {
        let dir = tempfile::tempdir().unwrap();
        let options = stub(dir.path(), "head -c 8 > /dev/null; kill -s SEGV $$");
        let mut document = Document::open(&fixture("report.pdf"), &options).unwrap();
        let error = document.page(1).unwrap_err();
        assert!(matches!(&error, PageError::Died(how) if how == "signal 11"), "{error}");
    }

    #[test]
    fn a_renderer_that_talks_nonsense_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let options = script(dir.path(), "echo 'docparse: something quite different from a frame'");
        assert!(matches!(Document::open(&fixture("report.pdf"), &options), Err(OpenError::Format(_))));
    }

    #[test]
    fn the_pages_after_a_dead_renderer_are_read_by_a_fresh_one() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("docparse");
        symlink(env!("CARGO_BIN_EXE_docparse"), &program).unwrap();
        let options = OpenOptions { program: program.clone(), ..options() };
        let mut document = Document::open(&fixture("report.pdf"), &options).unwrap();
        let first = text(&document.page(1).unwrap());
        kill_processes_of(&program);
        assert!(text(&document.page(2).unwrap()).contains("Accounts"));
        kill_processes_of(&program);
        std::fs::remove_file(&program).unwrap();
        assert!(matches!(document.page(3), Err(PageError::Render(_))));
        symlink(env!("CARGO_BIN_EXE_docparse"), &program).unwrap();
        assert_eq!(text(&document.page(1).unwrap()), first);
    }

    fn kill_processes_of(program: &Path) {
        let name = program.to_string_lossy();
        for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
            let command_line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if command_line.starts_with(name.as_bytes()) {
                let pid = entry.file_name();
                assert!(Command::new("kill").arg("-9").arg(pid).status().expect("`kill` exists").success());
            }
        }
    }
}
