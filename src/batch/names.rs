//! Names of files as text that leads back to them: journals are JSON, and a name may be any bytes.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The path as it is, but bytes that are no UTF-8 as `\xff`, and backslashes doubled.
pub fn text(path: &Path) -> String {
    let mut out = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        out.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").expect("writing to a string does not fail");
        }
    }
    out
}

/// The path that [`text`] made into `text`.
pub fn path(text: &str) -> PathBuf {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        (rest, _) = match tail {
            [b'\\', tail @ ..] if *first == b'\\' => (tail, out.push(b'\\')),
            [b'x', high, low, tail @ ..] if *first == b'\\' => match hexadecimal(*high, *low) {
                Some(byte) => (tail, out.push(byte)),
                None => (&rest[1..], out.push(*first)),
            },
            _ => (tail, out.push(*first)),
        };
    }
    OsString::from_vec(out).into()
}

fn hexadecimal(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn usual_names_stay_as_they_are() {
        assert_eq!(text(Path::new("a b/é.pdf")), "a b/é.pdf");
        assert_eq!(text(Path::new(OsStr::from_bytes(b"\xff\\x41"))), "\\xff\\\\x41");
    }

    proptest! {
        #[test]
        fn every_name_comes_back(bytes in prop::collection::vec(any::<u8>(), 0..12), tricky in "[\\\\x4f]{0,9}") {
            for bytes in [&bytes[..], tricky.as_bytes()] {
                let name = Path::new(OsStr::from_bytes(bytes));
                prop_assert_eq!(path(&text(name)), name);
            }
            let _ = path(&tricky);
        }
    }
}
