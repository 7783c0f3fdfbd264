//! The page chain of a TIFF. The `image` crate reads a file's first page only; here the chain is followed, and a copy of the
//! file whose header points to another page makes that one the first.

use std::collections::HashSet;

use super::resolution::sensible;

const TAG_SUBFILE: u16 = 254;
const TAG_RESOLUTION: u16 = 282;
const TAG_RESOLUTION_UNIT: u16 = 296;
/// The chain is followed no further: far beyond what a run takes (`--max-pages`), so that the reason says how many there are.
const MAX_PAGES: usize = 1_000_000;

/// One page (image file directory).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Directory {
    offset: u64,
    /// Dots per inch, where the file says.
    pub(super) dpi: Option<f32>,
}

/// Byte order and width of offsets, from the header.
#[derive(Clone, Copy)]
struct Layout<'b> {
    bytes: &'b [u8],
    little_endian: bool,
    /// BigTIFF: 8-byte offsets and counts.
    is_big: bool,
}

/// The pages in file order; reduced-size copies of a page are left out. Empty where the header is damaged.
pub(super) fn pages(bytes: &[u8]) -> Vec<Directory> {
    let Some(layout) = Layout::of(bytes) else { return Vec::new() };
    let mut next = layout.offset(layout.first_offset_at());
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    while let Some(offset) = next.filter(|&o| o != 0) {
        if out.len() >= MAX_PAGES || !seen.insert(offset) {
            break;
        }
        let Some((directory, is_thumbnail, following)) = layout.directory(offset) else { break };
        if !is_thumbnail {
            out.push(directory);
        }
        next = following;
    }
    out
}

/// A copy of the file that starts with `directory`.
pub(super) fn starting_at(bytes: &[u8], directory: &Directory) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    let Some(layout) = Layout::of(bytes) else { return copy };
    let at = layout.first_offset_at() as usize;
    let width = if layout.is_big { 8 } else { 4 };
    let mut offset = directory.offset.to_le_bytes()[..width].to_vec();
    if !layout.little_endian {
        offset.reverse();
    }
    if let Some(place) = copy.get_mut(at..at + width) {
        place.copy_from_slice(&offset);
    }
    copy
}

impl<'b> Layout<'b> {
    fn of(bytes: &'b [u8]) -> Option<Layout<'b>> {
        let (little_endian, version) = match *bytes.get(..4)? {
            [b'I', b'I', version, 0] => (true, version),
            [b'M', b'M', 0, version] => (false, version),
            _ => return None,
        };
        matches!(version, 42 | 43).then_some(Layout { bytes, little_endian, is_big: version == 43 })
    }

    fn first_offset_at(&self) -> u64 {
        if self.is_big { 8 } else { 4 }
    }

    /// The unsigned number of `width` bytes (at most 8) at `at`.
    fn number(&self, at: u64, width: usize) -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(width)?)?;
        let fold = |value: u64, &byte: &u8| value << 8 | u64::from(byte);
        Some(if self.little_endian { bytes.iter().rev().fold(0, fold) } else { bytes.iter().fold(0, fold) })
    }

    fn offset(&self, at: u64) -> Option<u64> {
        self.number(at, if self.is_big { 8 } else { 4 })
    }

    /// The page at `offset`, whether it is a reduced copy, and where the next one is.
    fn directory(&self, offset: u64) -> Option<(Directory, bool, Option<u64>)> {
        let (count_width, entry_width, value_at) = if self.is_big { (8, 20, 12) } else { (2, 12, 8) };
        let count = self.number(offset, count_width)?;
        let entries = offset.checked_add(count_width as u64)?;
        let end = entries.checked_add(count.checked_mul(entry_width)?)?;
        if end > self.bytes.len() as u64 {
            return None;
        }
        let (mut is_thumbnail, mut resolution, mut unit) = (false, None, 2);
        for entry in (0..count).map(|k| entries + k * entry_width) {
            let value = entry + value_at;
            match self.number(entry, 2)? as u16 {
                TAG_SUBFILE => is_thumbnail = self.number(value, 4)? & 1 == 1,
                TAG_RESOLUTION => resolution = self.rational(value),
                TAG_RESOLUTION_UNIT => unit = self.number(value, 2)?,
                _ => {}
            }
        }
        let dpi = resolution.and_then(|value| match unit {
            2 => sensible(value),
            3 => sensible(value * 2.54),
            _ => None,
        });
        Some((Directory { offset, dpi }, is_thumbnail, self.offset(end)))
    }

    /// A fraction; eight bytes fit into the entry of a BigTIFF only.
    fn rational(&self, value: u64) -> Option<f32> {
        let at = if self.is_big { value } else { self.offset(value)? };
        let (above, below) = (self.number(at, 4)?, self.number(at.checked_add(4)?, 4)?);
        (below != 0).then(|| above as f32 / below as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A little-endian TIFF of empty pages, the second a reduced copy; offsets 8, 26 and 44.
    fn chain(last_next: u32) -> Vec<u8> {
        let mut bytes = b"II\x2a\0\x08\0\0\0".to_vec();
        for (subfile, next) in [(0_u32, 26_u32), (1, 44), (0, last_next)] {
            bytes.extend(1_u16.to_le_bytes());
            bytes.extend(TAG_SUBFILE.to_le_bytes());
            bytes.extend([4, 0, 1, 0, 0, 0]);
            bytes.extend(subfile.to_le_bytes());
            bytes.extend(next.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn reduced_copies_are_no_pages_and_circles_end() {
        let offsets = |next| pages(&chain(next)).iter().map(|d| d.offset).collect::<Vec<_>>();
        assert_eq!(offsets(0), [8, 44]);
        assert_eq!(offsets(8), [8, 44]);
        assert_eq!(offsets(9_999), [8, 44]);
    }

    #[test]
    fn a_file_of_more_pages_than_a_run_takes_says_so() {
        let mut bytes = b"II\x2a\0\x08\0\0\0".to_vec();
        for page in 1..=10_001_u32 {
            bytes.extend([0, 0]);
            bytes.extend((8 + 6 * page).to_le_bytes());
        }
        bytes.extend([0; 6]);
        assert_eq!(pages(&bytes).len(), 10_002);
    }

    #[test]
    fn a_copy_starts_with_the_chosen_page() {
        let bytes = chain(0);
        let second = pages(&bytes)[1];
        assert_eq!(pages(&starting_at(&bytes, &second)), [second]);
    }

    #[test]
    fn cut_files_give_fewer_pages() {
        let bytes = chain(0);
        for length in 0..bytes.len() {
            assert!(pages(&bytes[..length]).len() <= 2);
        }
    }
}
