//! The `tesseract` program, where it is installed, for pages in scripts that the OCR network's alphabet lacks. What the page
//! shows decides: the network is unsure of most lines, and tesseract's own detection names a script for which a language is
//! installed.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::geometry::Rect;
use crate::page::{Source, Word};
use crate::raster::Raster;

/// A line of the network whose words are less sure than this on average is doubted. Lines in its own alphabet have 0.95 and up.
const SURE: f32 = 0.85;
/// Share of the detected lines that must be doubted before tesseract is asked.
const DOUBTED: f32 = 0.5;
/// Mean confidence below which tesseract's reading is no better.
const LEAST_CONFIDENCE: f32 = 0.5;
/// A page that takes tesseract longer is left as the network read it. A dense page takes it some 5 s of one core; the clock
/// allows for crowded machines.
const TIME_LIMIT: Duration = Duration::from_secs(180);
/// What the program may answer: a page of words is some hundred kB.
const MOST_OUTPUT: u64 = 32 << 20;

/// Names of scripts as the program detects them, and languages written in them, the likeliest first. Latin and Chinese
/// characters are not here: the network reads them.
const SCRIPTS: [(&str, &[&str]); 19] = [
    ("Arabic", &["ara", "fas", "urd", "pus", "uig"]),
    ("Hebrew", &["heb", "yid"]),
    ("Cyrillic", &["rus", "ukr", "bul", "srp", "bel", "mkd", "kaz"]),
    ("Greek", &["ell", "grc"]),
    ("Devanagari", &["hin", "mar", "nep", "san"]),
    ("Bengali", &["ben", "asm"]),
    ("Thai", &["tha"]),
    ("Hangul", &["kor"]),
    ("Korean", &["kor"]),
    ("Tamil", &["tam"]),
    ("Telugu", &["tel"]),
    ("Kannada", &["kan"]),
    ("Malayalam", &["mal"]),
    ("Gujarati", &["guj"]),
    ("Gurmukhi", &["pan"]),
    ("Georgian", &["kat"]),
    ("Armenian", &["hye"]),
    ("Ethiopic", &["amh", "tir"]),
    ("Khmer", &["khm"]),
];

/// The languages that the installed program has, sorted; asked once. None without the program or its script detection (`osd`).
pub fn languages() -> &'static [String] {
    static LANGUAGES: OnceLock<Vec<String>> = OnceLock::new();
    LANGUAGES.get_or_init(|| {
        let mut command = Command::new("tesseract");
        command.arg("--list-langs");
        let listed = output(command, None).unwrap_or_default();
        // The first line is a heading.
        let mut names: Vec<String> = listed.lines().skip(1).map(|name| name.trim().to_owned()).collect();
        names.retain(|name| !name.is_empty());
        names.sort();
        if names.iter().any(|name| name == "osd") { names } else { Vec::new() }
    })
}

/// The words of an upright picture as tesseract reads them, if the network's (`words`, of `lines` detected lines) are mostly
/// unsure and tesseract knows the page's script. `None`: the network's stand.
pub(crate) fn better_words(raster: &Raster, words: &[Word], lines: usize) -> Option<Vec<Word>> {
    if !is_doubted(words, lines) || languages().is_empty() {
        return None;
    }
    let picture = portable_pixmap(raster);
    let detected = output(tesseract(&["--psm", "0"]), Some(picture.clone()))?;
    let language = language_of(script(&detected)?, languages())?;
    let table = output(tesseract(&["-l", &language, "--psm", "3", "tsv"]), Some(picture))?;
    let read = words_of_table(&table);
    let letters: usize = read.iter().map(|word| word.text.chars().count()).sum();
    let sum: f32 = read.iter().map(|word| word.confidence * word.text.chars().count() as f32).sum();
    (letters > 0 && sum / letters as f32 >= LEAST_CONFIDENCE).then_some(read)
}

/// Are most of the detected lines unread or read unsurely?
fn is_doubted(words: &[Word], lines: usize) -> bool {
    let mut of_line: HashMap<u32, (f32, usize)> = HashMap::new();
    for word in words {
        let letters = word.text.chars().count();
        let (sum, count) = of_line.entry(word.line).or_default();
        *sum += word.confidence * letters as f32;
        *count += letters;
    }
    let sure = of_line.values().filter(|(sum, count)| *sum >= SURE * *count as f32).count();
    lines > 0 && (lines.saturating_sub(sure) as f32) >= DOUBTED * lines as f32
}

/// The script that `--psm 0` names.
fn script(detected: &str) -> Option<&str> {
    detected.lines().find_map(|line| line.strip_prefix("Script:")).map(str::trim)
}

/// What to ask the program for: a script's own model if it is installed, else up to two of its languages, with English for the
/// words in between.
fn language_of(script: &str, installed: &[String]) -> Option<String> {
    let (_, languages) = SCRIPTS.iter().find(|(name, _)| *name == script)?;
    let has = |name: &str| installed.iter().any(|installed| installed == name);
    let whole = format!("script/{script}");
    if has(&whole) {
        return Some(whole);
    }
    let mut names: Vec<&str> = languages.iter().copied().filter(|name| has(name)).take(2).collect();
    if names.is_empty() {
        return None;
    }
    names.extend(has("eng").then_some("eng"));
    Some(names.join("+"))
}

/// The words of the program's TSV. Rows that are no words, and rows that cannot be read, are passed over.
fn words_of_table(table: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let (mut line, mut place) = (0, None);
    for row in table.lines().skip(1) {
        // level, page, block, paragraph, line, word, left, top, width, height, confidence (-1, 0..100), text
        let fields: Vec<&str> = row.splitn(12, '\t').collect();
        let [_, _, block, paragraph, number, _, left, top, width, height, confidence, text] = fields[..]
        else {
            continue;
        };
        let numbers: Option<Vec<f32>> = [left, top, width, height, confidence]
            .iter()
            .map(|field| field.parse().ok().filter(|value: &f32| value.is_finite()))
            .collect();
        let Some([left, top, width, height, confidence]) = numbers.as_deref() else { continue };
        let text: String = text.trim().chars().filter(|c| !c.is_control()).collect();
        if text.is_empty() || *confidence < 0.0 {
            continue;
        }
        let here = (block, paragraph, number);
        if place.is_some_and(|place| place != here) {
            line += 1;
        }
        place = Some(here);
        words.push(Word {
            text,
            bbox: Rect::new(*left, *top, left + width.max(0.0), top + height.max(0.0)),
            size: height.max(0.0),
            bold: false,
            font: "".into(),
            line,
            glue: false,
            confidence: (confidence / 100.0).min(1.0),
            source: Source::Tesseract,
            link: None,
            suspicious: 0.0,
        });
    }
    words
}

fn tesseract(arguments: &[&str]) -> Command {
    let mut command = Command::new("tesseract");
    command.args(["stdin", "stdout"]).args(arguments);
    // Pages are read in parallel already.
    command.env("OMP_THREAD_LIMIT", "1");
    command
}

/// A picture as the program reads it from a pipe: a short head, then the pixels as they are.
fn portable_pixmap(raster: &Raster) -> Vec<u8> {
    let mut out = format!("P6\n{} {}\n255\n", raster.width, raster.height).into_bytes();
    out.extend_from_slice(&raster.rgb);
    out
}

/// What a child process writes to its stdout; `None` if it cannot be started, fails or takes too long.
fn output(mut command: Command, input: Option<Vec<u8>>) -> Option<String> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let feeder = child.stdin.take().zip(input).map(|(mut stdin, bytes)| {
        // A child that ends early needs no more.
        std::thread::spawn(move || drop(stdin.write_all(&bytes)))
    });
    let reader: Option<JoinHandle<Vec<u8>>> = child.stdout.take().map(|stdout| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What came before an error is of no use either: the status tells.
            let _ = stdout.take(MOST_OUTPUT).read_to_end(&mut bytes);
            bytes
        })
    });
    let succeeded = ended_well(&mut child);
    if let Some(feeder) = feeder {
        let _ = feeder.join();
    }
    let bytes = reader?.join().ok()?;
    succeeded.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Waits for a child; one that takes too long is killed.
fn ended_well(child: &mut Child) -> bool {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if begun.elapsed() < TIME_LIMIT => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(line: u32, text: &str, confidence: f32) -> Word {
        let row = format!("5\t1\t1\t1\t1\t1\t0\t0\t9\t9\t{}\t{text}", confidence * 100.0);
        Word { line, source: Source::Ocr, ..words_of_table(&format!("head\n{row}")).remove(0) }
    }

    #[test]
    fn a_page_is_doubted_when_most_of_its_lines_are() {
        let sure = [word(0, "alpha", 0.97), word(1, "beta", 0.99)];
        assert!(!is_doubted(&sure, 2));
        // Two more lines were found of which nothing could be read.
        assert!(is_doubted(&sure, 4));
        assert!(is_doubted(&[word(0, "nL>", 0.6), word(0, "a", 0.99)], 1));
        assert!(!is_doubted(&[], 0));
    }

    #[test]
    fn the_script_of_the_page_picks_among_the_installed_languages() {
        let detected = "Page number: 0\nOrientation in degrees: 0\nScript: Arabic\nScript confidence: 4.2\n";
        assert_eq!(script(detected), Some("Arabic"));
        let installed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(language_of("Arabic", &installed(&["ara", "eng", "osd"])).as_deref(), Some("ara+eng"));
        assert_eq!(
            language_of("Arabic", &installed(&["ara", "script/Arabic"])).as_deref(),
            Some("script/Arabic")
        );
        assert_eq!(language_of("Thai", &installed(&["ara", "eng"])), None);
        assert_eq!(language_of("Latin", &installed(&["eng"])), None);
    }

    #[test]
    fn words_of_the_table_keep_their_lines_boxes_and_confidence() {
        let table = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n\
                     4\t1\t1\t1\t1\t0\t0\t0\t99\t20\t-1\t\n\
                     5\t1\t1\t1\t1\t1\t60\t2\t30\t18\t93.5\tمرحبا\n\
                     5\t1\t1\t1\t1\t2\t10\t2\t40\t18\t80\tيا\u{1b}\n\
                     5\t1\t1\t1\t2\t1\t10\t30\tNaN\t18\t80\tx\n\
                     5\t1\t1\t1\t2\t1\n\
                     5\t1\t2\t1\t1\t1\t10\t60\t20\t18\t70\tعالم\n";
        let words = words_of_table(table);
        let seen: Vec<(&str, u32, f32)> =
            words.iter().map(|w| (w.text.as_str(), w.line, w.bbox.x0)).collect();
        assert_eq!(seen, [("مرحبا", 0, 60.0), ("يا", 0, 10.0), ("عالم", 1, 10.0)]);
        assert!((words[0].confidence - 0.935).abs() < 1e-6 && words[0].source == Source::Tesseract);
    }

    #[test]
    fn a_program_that_is_not_there_or_fails_gives_nothing() {
        assert_eq!(output(Command::new("docparse-no-such-program"), None), None);
        let mut fails = Command::new("sh");
        fails.args(["-c", "echo x; exit 3"]);
        assert_eq!(output(fails, None), None);
        // More than a pipe holds, both ways at once.
        assert_eq!(
            output(Command::new("cat"), Some(vec![b'a'; 1 << 20])).map(|text| text.len()),
            Some(1 << 20)
        );
    }

    #[test]
    #[ignore = "needs tesseract"]
    fn the_installed_program_is_asked_for_its_languages() {
        assert!(languages().iter().any(|name| name == "osd"));
    }
}
