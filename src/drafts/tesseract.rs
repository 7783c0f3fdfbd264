//! The `tesseract` program, where it is installed, for pages in scripts that the OCR network's alphabet lacks. What the page
//! shows decides: the network cannot read its lines either way up, and tesseract's own detection names a script for which a
//! language is installed, and how the page must be turned.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::characters::acts_on_terminals;
use crate::geometry::Rect;
use crate::page::{Source, Word};
use crate::pdf::confine;
use crate::raster::Raster;

/// Mean confidence below which tesseract's reading is no better than none.
const LEAST_CONFIDENCE: f32 = 0.5;
/// Tesseract's confidence in a page's script, from which on it is believed; it takes a page of clear Hebrew for Thai with 0.8.
const SURE_SCRIPT: f32 = 5.0;
/// Height of the strip of a page on which scripts are tried, px: some lines.
const STRIP: usize = 320;
/// Address space that the program may take, MiB: as much as the process that looks into files.
const MOST_MEMORY: u32 = 4096;
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
pub fn installed_languages() -> &'static [String] {
    static LANGUAGES: OnceLock<Vec<String>> = OnceLock::new();
    LANGUAGES.get_or_init(|| {
        let mut command = Command::new("tesseract");
        command.arg("--list-langs");
        let soon = Instant::now() + Duration::from_secs(30);
        let listed = output(command, None, Some(soon)).unwrap_or_default();
        // The first line is a heading.
        let mut names: Vec<String> = listed.lines().skip(1).map(|name| name.trim().to_owned()).collect();
        names.retain(|name| !name.is_empty());
        names.sort();
        if names.iter().any(|name| name == "osd") { names } else { Vec::new() }
    })
}

/// Does the OCR network lack the script of this language (as tesseract names it: `ara`, `script/Thai`)?
pub fn needs_tesseract(language: &str) -> bool {
    SCRIPTS.iter().any(|(script, languages)| {
        languages.contains(&language) || language.strip_prefix("script/") == Some(script)
    })
}

/// What tesseract read of a page.
pub(crate) struct TesseractPage {
    pub(crate) words: Vec<Word>,
    /// Quarter turns clockwise that made the picture upright; the words stand on the turned picture.
    pub(crate) turn: u8,
    pub(crate) raster: Raster,
}

/// Reads a picture that lies in any of the four ways. `languages`: those that the user named; none: those of the script that
/// tesseract sees. `None` where it does not know the script, the network does, or nothing came out.
pub(crate) fn read_page(
    raster: &Raster,
    languages: &[String],
    deadline: Option<Instant>,
) -> Option<TesseractPage> {
    let detected = output(tesseract(&["--psm", "0"]), Some(portable_pixmap(raster)), deadline);
    let seen = detected.as_deref().map(Seen::of).unwrap_or_default();
    let turned = raster.turned_clockwise(seen.turn);
    let language = match languages {
        // Without a script there is too little text to tell one: a formula, a figure.
        [] if seen.confidence >= SURE_SCRIPT || seen.script.is_none() => {
            language_of(seen.script?, installed_languages())?
        }
        [] => best_language(&turned, deadline)?,
        named => named.join("+"),
    };
    let words = read(&turned, &language, deadline)?;
    (confidence(&words) >= LEAST_CONFIDENCE).then_some(TesseractPage {
        words,
        turn: seen.turn,
        raster: turned,
    })
}

fn read(raster: &Raster, language: &str, deadline: Option<Instant>) -> Option<Vec<Word>> {
    let command = tesseract(&["-l", language, "--psm", "3", "tsv", "txt"]);
    Some(words_of(&output(command, Some(portable_pixmap(raster)), deadline)?))
}

/// Mean over the characters; 0 without any.
fn confidence(words: &[Word]) -> f32 {
    let letters: usize = words.iter().map(|word| word.text.chars().count()).sum();
    let sum: f32 = words.iter().map(|word| word.confidence * word.text.chars().count() as f32).sum();
    sum / letters.max(1) as f32
}

/// The languages of that installed script in which the most printed strip of the page reads best. English stands for all that
/// the network reads: where it is the best, tesseract is not needed.
fn best_language(raster: &Raster, deadline: Option<Instant>) -> Option<String> {
    let strip = most_printed_strip(raster)?;
    let installed = installed_languages();
    let mut candidates: Vec<String> =
        SCRIPTS.iter().filter_map(|(script, _)| language_of(script, installed)).collect();
    candidates.dedup();
    candidates.push("eng".into());
    let tried = candidates.into_iter().filter_map(|language| {
        let words = read(&strip, &language, deadline)?;
        Some((confidence(&words), language))
    });
    let (_, best) = tried.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best != "eng").then_some(best)
}

fn most_printed_strip(raster: &Raster) -> Option<Raster> {
    const INK: u8 = 128;
    let height = STRIP.min(raster.height);
    let gray = raster.gray();
    let ink: Vec<usize> =
        gray.chunks_exact(raster.width.max(1)).map(|row| row.iter().filter(|v| **v < INK).count()).collect();
    let top = (0..=raster.height - height).max_by_key(|&top| ink[top..top + height].iter().sum::<usize>())?;
    raster.cropped(0, top as i64, raster.width as i64, (top + height) as i64)
}

/// What `--psm 0` says of a page.
#[derive(Debug, Default, PartialEq)]
struct Seen<'a> {
    script: Option<&'a str>,
    /// In the script.
    confidence: f32,
    turn: u8,
}

impl<'a> Seen<'a> {
    fn of(detected: &'a str) -> Seen<'a> {
        let value = |name: &str| detected.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let degrees: u16 = value("Rotate:").and_then(|text| text.parse().ok()).unwrap_or(0);
        let confidence = value("Script confidence:").and_then(|text| text.parse().ok()).unwrap_or(0.0);
        Seen { script: value("Script:"), confidence, turn: (degrees / 90 % 4) as u8 }
    }
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

/// A word of the program's TSV.
struct Row<'a> {
    /// Block, paragraph and line.
    line: [&'a str; 3],
    bbox: Rect,
    confidence: f32,
    text: String,
}

impl<'a> Row<'a> {
    /// `None` for rows that are no words, and those that cannot be read.
    fn of(row: &'a str) -> Option<Row<'a>> {
        // level, page, block, paragraph, line, word, left, top, width, height, confidence (-1, 0..100), text
        let fields: Vec<&str> = row.splitn(12, '\t').collect();
        let [_, _, block, paragraph, number, _, left, top, width, height, confidence, text] = fields[..]
        else {
            return None;
        };
        let number_of = |field: &str| field.parse().ok().filter(|value: &f32| value.is_finite());
        let (left, top) = (number_of(left)?, number_of(top)?);
        let (width, height, confidence) = (number_of(width)?, number_of(height)?, number_of(confidence)?);
        let text: String = text.chars().filter(|&c| shows(c)).collect();
        (!text.is_empty() && confidence >= 0.0).then_some(Row {
            line: [block, paragraph, number],
            bbox: Rect::new(left, top, left + width.max(0.0), top + height.max(0.0)),
            confidence: (confidence / 100.0).min(1.0),
            text,
        })
    }
}

/// The words of what the program wrote: its table, and its text, which alone tells where spaces stand. The table parts scripts
/// without spaces into characters or syllables.
fn words_of(answer: &str) -> Vec<Word> {
    let (table, text): (Vec<&str>, Vec<&str>) = answer.lines().partition(|line| line.contains('\t'));
    let mut spaces = Spaces(&text.join("\n"));
    let mut words: Vec<Word> = Vec::new();
    let (mut line, mut place) = (0, None);
    for Row { line: here, bbox, confidence, text } in table.into_iter().skip(1).filter_map(Row::of) {
        let begins = place.is_none_or(|place| place != here);
        line += u32::from(begins && place.is_some());
        place = Some(here);
        let after_space = spaces.before(&text);
        if let Some(word) = words.last_mut().filter(|_| !begins && !after_space) {
            word.text += &text;
            word.bbox = word.bbox.union(&bbox);
            word.size = word.bbox.height();
            word.confidence = word.confidence.min(confidence);
            continue;
        }
        words.push(Word {
            text,
            bbox,
            size: bbox.height(),
            bold: false,
            font: "".into(),
            line,
            glue: false,
            confidence,
            source: Source::Tesseract,
            link: None,
            suspicious: 0.0,
            latex: None,
        });
    }
    for word in &mut words {
        word.text = with_sara_am(&word.text);
    }
    words
}

/// The rest of a text whose words are looked for in order.
struct Spaces<'a>(&'a str);

impl Spaces<'_> {
    /// Does white space stand before this word, or is that unknown?
    fn before(&mut self, word: &str) -> bool {
        let rest = self.0.trim_start_matches(|c| !shows(c));
        if let Some(after) = rest.strip_prefix(word) {
            let space = rest.len() < self.0.len();
            self.0 = after;
            return space;
        }
        if let Some(at) = self.0.find(word) {
            self.0 = &self.0[at + word.len()..];
        }
        true
    }
}

/// Neither white space nor a character without a form.
fn shows(c: char) -> bool {
    !c.is_whitespace() && !acts_on_terminals(c)
}

/// Thai whose vowel am, and the tone mark over it, is written as Thai is typed; the program reads its ring and its stroke apart.
fn with_sara_am(text: &str) -> String {
    const RING: char = '\u{e4d}';
    let mut out: Vec<char> = Vec::with_capacity(text.len());
    for c in text.chars() {
        match (c, out.as_slice()) {
            ('\u{e32}', [.., RING]) => {
                out.pop();
                out.push('\u{e33}');
            }
            ('\u{e32}', [.., RING, tone @ '\u{e48}'..='\u{e4b}']) => {
                let tone = *tone;
                out.truncate(out.len() - 2);
                out.extend([tone, '\u{e33}']);
            }
            _ => out.push(c),
        }
    }
    out.into_iter().collect()
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

/// What a child process writes to its stdout; `None` if it cannot be started, fails or has not ended at the deadline.
fn output(mut command: Command, input: Option<Vec<u8>>, deadline: Option<Instant>) -> Option<String> {
    let stdin = if input.is_some() { Stdio::piped() } else { Stdio::null() };
    let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    // Before it has seen any pixel.
    if confine::other(&child, MOST_MEMORY).is_err() {
        let _ = child.kill();
    }
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
    let succeeded = ended_well(&mut child, deadline);
    if let Some(feeder) = feeder {
        let _ = feeder.join();
    }
    let bytes = reader?.join().ok()?;
    succeeded.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// Waits for a child; one that runs past the deadline is killed.
fn ended_well(child: &mut Child, deadline: Option<Instant>) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if deadline.is_none_or(|deadline| Instant::now() < deadline) => {
                std::thread::sleep(Duration::from_millis(10));
            }
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

    #[test]
    fn the_script_of_the_page_picks_among_the_installed_languages() {
        let detected = "Page number: 0\nOrientation in degrees: 180\nRotate: 180\nScript: Arabic\nScript confidence: 4\n";
        assert_eq!(Seen::of(detected), Seen { script: Some("Arabic"), confidence: 4.0, turn: 2 });
        assert_eq!(Seen::of("Rotate: x\n"), Seen::default());
        let installed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(language_of("Arabic", &installed(&["ara", "eng", "osd"])).as_deref(), Some("ara+eng"));
        assert_eq!(
            language_of("Arabic", &installed(&["ara", "script/Arabic"])).as_deref(),
            Some("script/Arabic")
        );
        assert_eq!(language_of("Thai", &installed(&["ara", "eng"])), None);
        assert_eq!(language_of("Latin", &installed(&["eng"])), None);
        assert!(needs_tesseract("ara") && needs_tesseract("script/Thai") && !needs_tesseract("deu"));
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
        let words = words_of(table);
        let seen: Vec<(&str, u32, f32)> =
            words.iter().map(|w| (w.text.as_str(), w.line, w.bbox.x0)).collect();
        assert_eq!(seen, [("مرحبا", 0, 60.0), ("يا", 0, 10.0), ("عالم", 1, 10.0)]);
        assert!((words[0].confidence - 0.935).abs() < 1e-6 && words[0].source == Source::Tesseract);
    }

    #[test]
    fn what_the_program_parts_is_put_together_where_its_text_has_no_space() {
        let row =
            |word: u8, line: u8, text: &str| format!("\n5\t1\t1\t1\t{line}\t{word}\t9\t0\t9\t20\t90\t{text}");
        let rows =
            [row(1, 1, "กั"), row(2, 1, "ม"), row(3, 1, "ลาว"), row(4, 1, "a"), row(1, 2, "นํ้า")].concat();
        let texts = |text: &str| -> Vec<String> {
            words_of(&format!("head\tof it{rows}\n{text}")).into_iter().map(|w| w.text).collect()
        };
        assert_eq!(texts("\u{200f}กัม ลาวa\nนํ้า\n"), ["กัม", "ลาวa", "น้ำ"]);
        assert_eq!(texts("กัx ลาวaนํ้า"), ["กั", "ม", "ลาวa", "น้ำ"]);
        assert_eq!(texts(""), ["กั", "ม", "ลาว", "a", "น้ำ"]);
        assert_eq!(with_sara_am("คํา"), "คำ");
    }

    #[test]
    fn the_program_may_take_so_much_memory_and_no_more() {
        let mut asks = Command::new("sh");
        asks.args(["-c", "read line; ulimit -v"]);
        let limit = output(asks, Some(b"go\n".to_vec()), None).expect("an answer");
        assert_eq!(limit.trim(), (u64::from(MOST_MEMORY) << 10).to_string());
    }

    #[test]
    fn the_strip_that_is_tried_is_where_the_print_is() {
        let mut page = Raster::filled(100, 1000, [255; 3]);
        page.rgb[600 * 300..700 * 300].fill(0);
        let strip = most_printed_strip(&page).unwrap();
        assert_eq!((strip.width, strip.height), (100, STRIP));
        assert_eq!(strip.gray().iter().filter(|v| **v == 0).count(), 100 * 100);
    }

    #[test]
    fn a_program_that_is_not_there_or_fails_gives_nothing() {
        assert_eq!(output(Command::new("docparse-no-such-program"), None, None), None);
        let mut fails = Command::new("sh");
        fails.args(["-c", "echo x; exit 3"]);
        assert_eq!(output(fails, None, None), None);
        // More than a pipe holds, both ways at once.
        assert_eq!(
            output(Command::new("cat"), Some(vec![b'a'; 1 << 20]), None).map(|text| text.len()),
            Some(1 << 20)
        );
    }

    #[test]
    fn a_program_that_runs_past_the_deadline_is_ended() {
        let mut slow = Command::new("sleep");
        slow.arg("60");
        assert_eq!(output(slow, None, Some(Instant::now() + Duration::from_millis(30))), None);
    }
}
