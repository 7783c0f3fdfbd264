//! The resolution that a PNG or JPEG file states.

/// Resolutions outside are placeholders or nonsense.
const SENSIBLE: std::ops::RangeInclusive<f32> = 30.0..=4800.0;
const INCHES_PER_METRE: f32 = 0.0254;
const CENTIMETRES_PER_INCH: f32 = 2.54;

/// Dots per inch from the PNG's `pHYs` chunk or the JPEG's JFIF header, `None` where the file does not say.
pub(super) fn dpi(bytes: &[u8]) -> Option<f32> {
    if bytes.starts_with(&[0xff, 0xd8]) { jfif(bytes) } else { phys(bytes) }.and_then(sensible)
}

/// `dpi` unless it cannot be meant.
pub(super) fn sensible(dpi: f32) -> Option<f32> {
    SENSIBLE.contains(&dpi).then_some(dpi)
}

fn jfif(bytes: &[u8]) -> Option<f32> {
    let mut at = 2;
    loop {
        let [0xff, marker, high, low] = *bytes.get(at..at + 4)? else { return None };
        if marker == 0xda {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        if marker == 0xe0 && bytes.get(at + 4..at + 9)? == b"JFIF\0" {
            let [unit, high, low] = *bytes.get(at + 11..at + 14)? else { return None };
            let density = f32::from(u16::from_be_bytes([high, low]));
            return match unit {
                1 => Some(density),
                2 => Some(density * CENTIMETRES_PER_INCH),
                _ => None,
            };
        }
        at += 2 + length.max(2);
    }
}

fn phys(bytes: &[u8]) -> Option<f32> {
    let mut at = 8;
    loop {
        let length = u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize;
        match bytes.get(at + 4..at + 8)? {
            b"pHYs" => {
                let per_unit = u32::from_be_bytes(bytes.get(at + 8..at + 12)?.try_into().ok()?);
                let is_metre = *bytes.get(at + 16)? == 1;
                return is_metre.then_some(per_unit as f32 * INCHES_PER_METRE);
            }
            b"IDAT" => return None,
            _ => at = at.checked_add(length)?.checked_add(12)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jpeg_density_is_read_in_both_units() {
        let header = |unit, density| {
            let mut bytes = vec![0xff, 0xd8, 0xff, 0xe0, 0, 16];
            bytes.extend(b"JFIF\0\x01\x02");
            bytes.extend([unit, 0, density, 0, density, 0, 0]);
            bytes
        };
        assert_eq!(dpi(&header(1, 200)), Some(200.0));
        assert_eq!(dpi(&header(2, 100)), Some(254.0));
        assert_eq!(dpi(&header(1, 1)), None);
        assert_eq!(dpi(&header(0, 200)), None);
    }

    #[test]
    fn png_density_is_read_and_short_files_have_none() {
        let mut bytes = vec![0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 9];
        bytes.extend(b"pHYs");
        bytes.extend(11_811_u32.to_be_bytes().repeat(2));
        bytes.push(1);
        assert!((dpi(&bytes).unwrap() - 300.0).abs() < 0.1);
        for length in 0..bytes.len() {
            assert_eq!(dpi(&bytes[..length]), None);
        }
    }
}
