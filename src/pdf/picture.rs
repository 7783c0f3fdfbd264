//! Picture files -> what the child answers: PNG, JPEG and the pages of a TIFF, upright, on white, within limits.

use std::io::{self, Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use image::imageops::FilterType;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

use super::protocol::{PageReply, Refusal};
use super::resolution;
use super::tiff_directory::{self, Directory};
use crate::raster::Raster;

/// Most memory that a decoder may take, per pixel that is allowed: four bytes, and room for its own buffers.
const BYTES_A_PIXEL: u64 = 5;
/// Largest picture file.
const MAX_FILE: u64 = 1 << 30;

/// A picture file, still encoded.
pub(super) struct PictureFile {
    bytes: Vec<u8>,
    format: ImageFormat,
    /// Pages of a TIFF; empty for the other formats, which have one page.
    directories: Vec<Directory>,
    max_side: u32,
    max_pixels: u64,
}

impl std::fmt::Debug for PictureFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PictureFile({:?}, {} bytes)", self.format, self.bytes.len())
    }
}

impl PictureFile {
    /// Opens `path` if it starts like a picture; `None` for anything else. Pages of more than `max_pixels` are refused.
    pub(super) fn open(path: &Path, max_side: u32, max_pixels: u64) -> Result<Option<PictureFile>, Refusal> {
        let unread = |error: io::Error| Refusal::File(error.to_string());
        let mut file = std::fs::File::open(path).map_err(unread)?;
        let mut bytes = Vec::new();
        file.by_ref().take(16).read_to_end(&mut bytes).map_err(unread)?;
        if bytes.is_empty() {
            return Err(Refusal::Format("empty file".into()));
        }
        let Some(format) = format_of(&bytes) else { return Ok(None) };
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(unread)?;
        if bytes.len() as u64 >= MAX_FILE {
            return Err(Refusal::Format(format!("picture file of more than {} MiB", MAX_FILE >> 20)));
        }
        let directories = match format {
            ImageFormat::Tiff => tiff_directory::pages(&bytes),
            _ => Vec::new(),
        };
        if format == ImageFormat::Tiff && directories.is_empty() {
            return Err(Refusal::Format("TIFF without a readable page".into()));
        }
        let picture = PictureFile { bytes, format, directories, max_side: max_side.max(1), max_pixels };
        if format != ImageFormat::Tiff {
            guarded(|| picture.reader(&picture.bytes).into_dimensions().map_err(|e| e.to_string()))
                .map_err(Refusal::Format)?;
        }
        Ok(Some(picture))
    }

    pub(super) fn page_count(&self) -> u32 {
        self.directories.len().max(1) as u32
    }

    /// Decodes the page `number`, 1-based.
    pub(super) fn page(&self, number: u32) -> Result<(PageReply, Raster), String> {
        let (raster, scale) = guarded(|| self.decode(number))?;
        let (width, height) = (raster.width, raster.height);
        let reply =
            PageReply { width, height, scale, picture_share: 1.0, is_picture: true, ..PageReply::default() };
        Ok((reply, raster))
    }

    fn decode(&self, number: u32) -> Result<(Raster, f32), String> {
        let directory = self.directories.get(number.saturating_sub(1) as usize);
        let start = directory.map(|d| tiff_directory::starting_at(&self.bytes, d));
        let bytes = start.as_deref().unwrap_or(&self.bytes);
        let mut decoder = self.reader(bytes).into_decoder().map_err(|e| e.to_string())?;
        let (width, height) = decoder.dimensions();
        if u64::from(width) * u64::from(height) > self.max_pixels {
            let limit = self.max_pixels as f64 / 1e6;
            return Err(format!(
                "picture of {width} x {height} pixels, more than {limit} million (`--max-pixels`)"
            ));
        }
        let orientation = decoder.orientation().ok();
        let mut picture = DynamicImage::from_decoder(decoder).map_err(|e| e.to_string())?;
        if let Some(orientation) = orientation {
            picture.apply_orientation(orientation);
        }
        let dpi = match directory {
            Some(directory) => directory.dpi,
            None => resolution::dpi(&self.bytes),
        };
        let full = picture.width().max(picture.height());
        let raster = on_white(picture, self.max_side);
        let shrunk = raster.width.max(raster.height) as f32 / full.max(1) as f32;
        Ok((raster, dpi.map_or(1.0, |dpi| dpi / 72.0) * shrunk))
    }

    fn reader<'b>(&self, bytes: &'b [u8]) -> ImageReader<Cursor<&'b [u8]>> {
        let mut reader = ImageReader::with_format(Cursor::new(bytes), self.format);
        let mut limits = Limits::default();
        limits.max_image_width = Some(u32::try_from(self.max_pixels).unwrap_or(u32::MAX));
        limits.max_image_height = limits.max_image_width;
        limits.max_alloc = Some(self.max_pixels.saturating_mul(BYTES_A_PIXEL));
        reader.limits(limits);
        reader
    }
}

/// Runs a decoder; a panic in it is an error of the file, not the end of the run.
fn guarded<T>(decode: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_| Err("the picture decoder gave up".into()))
}

fn format_of(start: &[u8]) -> Option<ImageFormat> {
    match start {
        [0x89, b'P', b'N', b'G', ..] => Some(ImageFormat::Png),
        [0xff, 0xd8, 0xff, ..] => Some(ImageFormat::Jpeg),
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some(ImageFormat::Tiff),
        _ => None,
    }
}

/// RGB with transparency on white, no side longer than `max_side`.
fn on_white(picture: DynamicImage, max_side: u32) -> Raster {
    let longest = picture.width().max(picture.height()).max(1);
    let picture = if longest > max_side {
        let side = |n: u32| (u64::from(n) * u64::from(max_side) / u64::from(longest)).max(1) as u32;
        picture.resize_exact(side(picture.width()), side(picture.height()), FilterType::Triangle)
    } else {
        picture
    };
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    if !picture.color().has_alpha() {
        return Raster { width, height, rgb: picture.into_rgb8().into_raw() };
    }
    let mut rgb = Vec::with_capacity(width * height * 3);
    for pixel in picture.into_rgba8().pixels() {
        let [r, g, b, a] = pixel.0.map(u32::from);
        rgb.extend([r, g, b].map(|v| ((v * a + 255 * (255 - a) + 127) / 255) as u8));
    }
    Raster { width, height, rgb }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(bytes: &[u8]) -> Result<Option<PictureFile>, Refusal> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        PictureFile::open(file.path(), 100, 200_000_000)
    }

    fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn transparent_pixels_become_white_and_long_sides_shrink() {
        let picture = DynamicImage::new_rgba16(400, 200);
        let (page, raster) = opened(&encoded(&picture, ImageFormat::Png)).unwrap().unwrap().page(1).unwrap();
        assert_eq!((raster.width, raster.height), (100, 50));
        assert_eq!(raster.pixel(50, 25), [255, 255, 255]);
        assert!((page.scale - 0.25).abs() < 1e-6);
        assert!(page.is_picture && page.picture_share == 1.0);
    }

    #[test]
    fn gray_and_sixteen_bit_pictures_are_read() {
        for picture in
            [DynamicImage::new_luma8(9, 5), DynamicImage::new_luma16(9, 5), DynamicImage::new_rgb16(9, 5)]
        {
            let (_, raster) =
                opened(&encoded(&picture, ImageFormat::Tiff)).unwrap().unwrap().page(1).unwrap();
            assert_eq!(raster, Raster::filled(9, 5, [0, 0, 0]));
        }
    }

    #[test]
    fn cut_pictures_are_errors_and_other_files_are_not_pictures() {
        let bytes = encoded(&DynamicImage::new_rgb8(60, 60), ImageFormat::Png);
        for length in 1..bytes.len() - 20 {
            if let Ok(Some(picture)) = opened(&bytes[..length]) {
                assert!(picture.page(1).is_err(), "cut at {length}");
            }
        }
        assert!(opened(b"%PDF-1.7").unwrap().is_none());
        assert!(matches!(opened(b""), Err(Refusal::Format(_))));
    }

    #[test]
    fn a_bomb_is_refused_before_it_is_decoded() {
        let mut bytes = encoded(&DynamicImage::new_luma8(1, 1), ImageFormat::Png);
        bytes[16..24].copy_from_slice(&[0, 0, 0x75, 0x30, 0, 0, 0x75, 0x30]); // 30,000 x 30,000
        let checksum = crc32(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
        let error = opened(&bytes).unwrap().unwrap().page(1).unwrap_err();
        assert!(error.contains("30000 x 30000"), "{error}");
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |crc: u32, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |c, _| (c >> 1) ^ (0xedb8_8320 & (c & 1).wrapping_neg()))
        })
    }
}
