//! What parent and child say to each other: frames of a JSON header and raw bytes, over the child's stdin and stdout.
//!
//! ```text
//! frame    header length u32 LE | payload length u32 LE | header (JSON) | payload
//! parent   Open {..}  payload: the path's bytes      -> child   Opened | Refused
//!          Page {..}  no payload                     -> child   Page, payload: RGB rows | Failed
//! ```

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::geometry::Rect;
use crate::page::{DocumentInfo, Link, Rules};

/// Longest header and payload that are believed; a page of 500,000 characters takes 40 MB.
const MAX_HEADER: u32 = 256 << 20;
const MAX_PAYLOAD: u32 = 1 << 30;

#[derive(Serialize, Deserialize)]
pub(crate) enum Request {
    /// Opens the document whose path is the payload.
    Open {
        /// pdfium, or why there is none.
        library: Result<PathBuf, String>,
        password: Option<String>,
        dpi: f32,
        max_side: u32,
        max_pixels: u64,
        /// MiB.
        memory: u32,
        /// CPU seconds for opening, and for each page.
        seconds: u64,
    },
    /// Reads a page, 1-based.
    Page { number: u32 },
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Opened(DocumentInfo),
    Refused(Refusal),
    Page(Box<PageReply>),
    Failed(String),
}

/// Why the child did not open a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Refusal {
    Library(String),
    File(String),
    Password,
    Format(String),
}

/// Everything of a page but its pixels. All boxes in pixels of the upright raster.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PageReply {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Pixels per point.
    pub(crate) scale: f32,
    /// Quarter turns clockwise that make the page upright.
    pub(crate) turn: u8,
    /// Angle of the characters that read upright in the raster.
    pub(crate) angle: u8,
    pub(crate) fonts: Vec<Font>,
    pub(crate) characters: Vec<Character>,
    pub(crate) rules: Rules,
    pub(crate) picture_share: f32,
    pub(crate) links: Vec<Link>,
    pub(crate) fields: Vec<FieldText>,
    /// The file is a picture.
    pub(crate) is_picture: bool,
}

/// A font of the text layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Font {
    /// Lower case, without subset prefix.
    pub(crate) name: String,
    pub(crate) bold: bool,
}

impl Font {
    /// From a PostScript name, e.g. `ABCDEF+Helvetica-Bold`, pdfium's weight and the font descriptor's flags.
    pub(crate) fn new(name: &str, weight: i32, descriptor_flags: i32) -> Font {
        // ISO 32000-1, table 123: ForceBold.
        const FORCE_BOLD: i32 = 1 << 18;
        const MARKS: [&str; 9] =
            ["bold", "black", "heavy", "demi", "cmbx", "sfbx", "ecbx", "-medi", "halbfett"];
        let name = match name.split_once('+') {
            Some((prefix, rest)) if prefix.len() == 6 && prefix.bytes().all(|b| b.is_ascii_alphabetic()) => {
                rest
            }
            _ => name,
        };
        let abbreviated = name.contains("Bd");
        let name = name.to_lowercase();
        let named = abbreviated || name.ends_with("-bd") || MARKS.iter().any(|mark| name.contains(mark));
        // pdfium makes up weights from the stem width (Georgia: 665, some Arial: 1340); only plain hundreds are believed.
        let bold = named || descriptor_flags & FORCE_BOLD != 0 || matches!(weight, 700 | 800 | 900);
        Font { name, bold }
    }
}

/// One character of the text layer, in content order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Packed", into = "Packed")]
pub(crate) struct Character {
    /// Code point, or a half of a surrogate pair.
    pub(crate) code: u32,
    /// Origin to advance, ascent to descent; `None` for spaces (32) and line ends (10).
    pub(crate) bbox: Option<Rect>,
    /// What is painted.
    pub(crate) ink: Rect,
    pub(crate) baseline: f32,
    /// Height of 1 em, points.
    pub(crate) size: f32,
    /// Index into [`PageReply::fonts`].
    pub(crate) font: u32,
    /// Direction of writing before `/Rotate`, quarter turns counter-clockwise.
    pub(crate) angle: u8,
    pub(crate) flags: CharacterFlags,
}

#[cfg(test)]
impl Character {
    /// A painted, upright character for tests of what does not look at its ink.
    pub(crate) fn boxed(code: u32, bbox: Rect) -> Character {
        Character {
            code,
            bbox: Some(bbox),
            ink: Rect::default(),
            baseline: 0.0,
            size: 9.0,
            font: 0,
            angle: 0,
            flags: CharacterFlags::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CharacterFlags {
    /// Put in by pdfium, not in the file.
    pub(crate) made_up: bool,
    /// The font has no Unicode value for it.
    pub(crate) unmapped: bool,
    /// Not painted (render mode 3).
    pub(crate) invisible: bool,
}

/// A character on the wire: code, box, ink and baseline, size, font, angle, flags.
type Packed = (u32, Option<Rect>, (Rect, f32), f32, u32, u8, u8);

impl From<Character> for Packed {
    fn from(c: Character) -> Packed {
        let flags = [c.flags.made_up, c.flags.unmapped, c.flags.invisible];
        let bits = flags.iter().enumerate().map(|(i, &on)| u8::from(on) << i).sum();
        (c.code, c.bbox.map(hundredths), (hundredths(c.ink), c.baseline), c.size, c.font, c.angle, bits)
    }
}

impl From<Packed> for Character {
    fn from((code, bbox, (ink, baseline), size, font, angle, bits): Packed) -> Character {
        let flags =
            CharacterFlags { made_up: bits & 1 != 0, unmapped: bits & 2 != 0, invisible: bits & 4 != 0 };
        Character { code, bbox, ink, baseline, size, font, angle, flags }
    }
}

/// Rounded, which halves the length of the JSON.
fn hundredths(b: Rect) -> Rect {
    let round = |v: f32| (v * 100.0).round() / 100.0;
    Rect::new(round(b.x0), round(b.y0), round(b.x1), round(b.y1))
}

/// The value of a form field, or a note written on the page, that the text layer lacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FieldText {
    pub(crate) bbox: Rect,
    pub(crate) text: String,
}

/// Writes one frame.
pub(crate) fn write_frame(out: &mut impl Write, header: &impl Serialize, payload: &[u8]) -> io::Result<()> {
    let header = serde_json::to_vec(header)?;
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::FileTooLarge);
    out.write_all(&length(&header)?.to_le_bytes())?;
    out.write_all(&length(payload)?.to_le_bytes())?;
    out.write_all(&header)?;
    out.write_all(payload)?;
    out.flush()
}

/// Reads one frame; an error of kind `UnexpectedEof` where the other side has gone.
pub(crate) fn read_frame<H: DeserializeOwned>(input: &mut impl Read) -> io::Result<(H, Vec<u8>)> {
    let header_length = read_length(input, MAX_HEADER)?;
    let payload_length = read_length(input, MAX_PAYLOAD)?;
    let header = read_exactly(input, header_length)?;
    let payload = read_exactly(input, payload_length)?;
    Ok((serde_json::from_slice(&header)?, payload))
}

fn read_length(input: &mut impl Read, limit: u32) -> io::Result<usize> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    let length = u32::from_le_bytes(bytes);
    if length > limit {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("frame of {length} bytes")));
    }
    Ok(length as usize)
}

fn read_exactly(input: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_as_it_went() {
        let flags = CharacterFlags { made_up: false, unmapped: true, invisible: true };
        let bbox = Some(Rect::new(1.0, 2.25, 3.5, 4.0));
        let ink = Rect::new(1.5, 2.0, 3.0, 3.5);
        let character =
            Character { code: 0x41, bbox, ink, baseline: 3.5, size: 9.5, font: 1, angle: 3, flags };
        let page = PageReply { width: 1, height: 1, characters: vec![character], ..PageReply::default() };
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &page, &[1, 2, 3]).unwrap();
        let (back, payload): (PageReply, _) = read_frame(&mut bytes.as_slice()).unwrap();
        assert_eq!((back, payload), (page, vec![1, 2, 3]));
    }

    #[test]
    fn cut_and_senseless_frames_are_errors() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, &Request::Page { number: 3 }, b"pixels").unwrap();
        for length in 0..bytes.len() {
            assert!(read_frame::<Request>(&mut &bytes[..length]).is_err(), "cut at {length}");
        }
        assert!(read_frame::<Request>(&mut [0xff; 64].as_slice()).is_err());
    }

    #[test]
    fn font_names_lose_their_subset_prefix_and_tell_weight() {
        assert_eq!(Font::new("ABCDEF+CMBX10", 400, 0), Font { name: "cmbx10".into(), bold: true });
        assert_eq!(Font::new("C+Test", 400, 0), Font { name: "c+test".into(), bold: false });
        assert!(Font::new("Arial", 700, 0).bold && Font::new("Arial", 0, 1 << 18).bold);
        assert!(Font::new("MyriadBdIt", 0, 0).bold && !Font::new("Georgia", 665, 4).bold);
    }
}
