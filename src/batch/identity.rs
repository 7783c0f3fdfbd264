//! The sums by which page files are known: what made two pages with one header is the same, and so are they.

use std::io::{self, Read};
use std::path::Path;

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::settings::{Acceptance, DecodeSettings, OutputSettings, RasterSettings};

/// The settings that change page files, and nothing else: neither jobs nor device nor which pages are asked for.
#[derive(Debug)]
pub struct PageSettings<'a> {
    pub raster: &'a RasterSettings,
    pub decode: &'a DecodeSettings,
    pub output: &'a OutputSettings,
    /// Name and bytes of each small third-party model that is installed, and tesseract's languages: without one its drafter is off.
    pub third_party: &'a [(String, u64)],
}

impl PageSettings<'_> {
    /// sha256 over the settings and the version of docparse.
    pub fn sha256(&self) -> String {
        let drafters = self.decode.drafters;
        let text = json!({
            "docparse": env!("CARGO_PKG_VERSION"),
            "dpi": self.raster.dpi,
            "max_side": self.raster.max_side,
            "drafts": [drafters.layout, drafters.text_layer, drafters.ocr, drafters.table, drafters.glyph, drafters.mtp, drafters.ngram],
            "accept": self.decode.acceptance.map(|acceptance| match acceptance {
                Acceptance::Lossless => "lossless",
                Acceptance::Trust => "trust",
            }),
            "max_tokens": self.decode.max_tokens,
            "max_branches": self.decode.max_branches,
            "languages": self.decode.languages,
            "fixation": self.decode.fixation,
            "focal_layers": self.decode.focal_layers,
            "tsp": self.decode.tsp,
            "retention": self.decode.retention,
            "figures": self.output.figures,
            "running_matter": self.output.running_matter,
            "third_party": self.third_party,
        });
        sha256_of(text.to_string().as_bytes())
    }
}

/// sha256 of a file, in hexadecimal; the file is streamed.
pub fn file_sha256(path: &Path) -> io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(&digest.finalize())),
            read => digest.update(&buffer[..read]),
        }
    }
}

fn sha256_of(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_sum_changes_with_what_changes_pages() {
        let (raster, decode, output) =
            (RasterSettings::default(), DecodeSettings::default(), OutputSettings::default());
        let sum = |raster: &RasterSettings, decode: &DecodeSettings, output: &OutputSettings| {
            PageSettings { raster, decode, output, third_party: &[] }.sha256()
        };
        let base = sum(&raster, &decode, &output);
        assert_eq!(
            base,
            sum(&raster, &decode, &OutputSettings { page_markers: false, ..OutputSettings::default() })
        );
        assert_ne!(base, sum(&RasterSettings { dpi: 150.0, ..RasterSettings::default() }, &decode, &output));
        let lossless = DecodeSettings { acceptance: Some(Acceptance::Lossless), ..DecodeSettings::default() };
        assert_ne!(base, sum(&raster, &lossless, &output));
        assert_ne!(
            base,
            sum(&raster, &decode, &OutputSettings { figures: false, ..OutputSettings::default() })
        );
        let installed = [("layout_cdla.onnx".to_owned(), 7)];
        let with =
            PageSettings { raster: &raster, decode: &decode, output: &output, third_party: &installed };
        assert_ne!(base, with.sha256());
    }

    #[test]
    fn a_file_has_the_published_sum() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"abc").unwrap();
        assert_eq!(
            file_sha256(file.path()).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // FIPS 180-2, appendix B.1
        );
    }
}
