//! The output tree: names, and files that are either complete or not there.
//!
//! ```text
//! DIR/run.jsonl
//! DIR/<input>/page-0001.json  page-0001.md  page-0001.txt  page-0001-figure-1.png   one set a page, the JSON last
//!             page-0001.jpg                                                        with HTML only
//! DIR/<input>/document.json   document.md   document.txt  document.html             once all pages are there
//! ```

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::render::page_bytes;
use crate::document::PageHeader;
use crate::raster::Raster;
use crate::reader::PageOutput;
use crate::settings::{Format, OutputSettings};

/// Output cannot be written: exit code 4.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct OutputError {
    pub path: PathBuf,
    pub source: io::Error,
}

impl OutputError {
    /// For use in `map_err`.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> OutputError + use<> {
        let path = path.to_path_buf();
        move |source| OutputError { path, source }
    }
}

const PART_PREFIX: &str = ".docparse-";
const PART_SUFFIX: &str = ".part";

/// A file that takes its name only when it is complete: written beside its place, synchronised, renamed.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    file: io::BufWriter<tempfile::NamedTempFile>,
}

impl AtomicFile {
    /// Starts the file that will be `path`; its folder must exist.
    pub fn create(path: &Path) -> Result<AtomicFile, OutputError> {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(PART_PREFIX)
            .suffix(PART_SUFFIX)
            // As any new file: what the umask leaves of it.
            .permissions(std::fs::Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| OutputError { path: path.to_path_buf(), source: error })?;
        Ok(AtomicFile { path: path.to_path_buf(), file: io::BufWriter::new(file) })
    }

    /// Gives the file its name.
    pub fn commit(self) -> Result<(), OutputError> {
        let file = self.file.into_inner().map_err(|e| OutputError::at(&self.path)(e.into_error()))?;
        file.as_file().sync_all().map_err(OutputError::at(&self.path))?;
        file.persist(&self.path).map_err(|e| OutputError::at(&self.path)(e.error))?;
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes `bytes` as `path`, whole or not at all.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(OutputError::at(path))?;
    file.commit()
}

/// Extension of a format's files.
pub fn extension(format: Format) -> &'static str {
    match format {
        Format::Markdown => "md",
        Format::Json => "json",
        Format::Text => "txt",
        Format::Html => "html",
    }
}

/// `page-0001.md`; for HTML the page's picture, `page-0001.jpg`.
pub fn page_name(number: u32, format: Format) -> String {
    let extension = if format == Format::Html { "jpg" } else { extension(format) };
    format!("page-{number:04}.{extension}")
}

/// `document.md`
pub fn document_name(format: Format) -> String {
    format!("document.{}", extension(format))
}

/// Writes the files of one page: figures, the formats asked for, and at last the JSON, by which a later run knows that the
/// page is complete. The JSON is written even if it is not asked for; see [`super::finish`].
pub fn write_page(
    folder: &Path,
    output: &PageOutput,
    header: &PageHeader,
    settings: &OutputSettings,
) -> Result<(), OutputError> {
    for (name, raster) in &output.figures {
        let path = folder.join(name);
        let png = encoded_png(raster).map_err(OutputError::at(&path))?;
        write_atomic(&path, &png)?;
    }
    let asked = settings.formats.iter().copied().filter(|&format| format != Format::Json);
    for format in asked.chain([Format::Json]) {
        let bytes = match page_bytes(&output.page, header, format, settings) {
            Some(bytes) => bytes,
            None => match &output.picture {
                Some(picture) => encoded_jpeg(picture).map_err(OutputError::at(folder))?,
                None => continue,
            },
        };
        write_atomic(&folder.join(page_name(output.page.number, format)), &bytes)?;
    }
    Ok(())
}

fn encoded_png(raster: &Raster) -> io::Result<Vec<u8>> {
    use image::ImageEncoder;
    let mut bytes = Vec::new();
    image::codecs::png::PngEncoder::new(&mut bytes)
        .write_image(&raster.rgb, raster.width as u32, raster.height as u32, image::ExtendedColorType::Rgb8)
        .map_err(io::Error::other)?;
    Ok(bytes)
}

/// Compresses pages about tenfold; at this quality letters have no visible halos.
const JPEG_QUALITY: u8 = 80;

fn encoded_jpeg(raster: &Raster) -> io::Result<Vec<u8>> {
    use image::ImageEncoder;
    let mut bytes = Vec::new();
    image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, JPEG_QUALITY)
        .write_image(&raster.rgb, raster.width as u32, raster.height as u32, image::ExtendedColorType::Rgb8)
        .map_err(io::Error::other)?;
    Ok(bytes)
}

/// A file of an output folder that docparse wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owned {
    Page(u32),
    Document,
    Part,
}

fn owned(name: &str) -> Option<Owned> {
    if name.starts_with(PART_PREFIX) && name.ends_with(PART_SUFFIX) {
        return Some(Owned::Part);
    }
    let (stem, extension) = name.rsplit_once('.')?;
    let is_format = ["md", "json", "txt"].contains(&extension);
    if stem == "document" && (is_format || extension == "html") {
        return Some(Owned::Document);
    }
    let rest = stem.strip_prefix("page-")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let number = rest[..digits].parse().ok()?;
    let is_page = match &rest[digits..] {
        "" => is_format || extension == "jpg",
        tail => tail.starts_with("-figure-") && extension == "png",
    };
    (is_page && digits >= 4).then_some(Owned::Page(number))
}

fn owned_files(folder: &Path) -> io::Result<Vec<(PathBuf, Owned)>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        if let Some(owner) = entry.file_name().to_str().and_then(owned) {
            files.push((entry.path(), owner));
        }
    }
    Ok(files)
}

/// Does `folder` hold output of an earlier run?
pub fn has_output(folder: &Path) -> Result<bool, OutputError> {
    let files = owned_files(folder).map_err(OutputError::at(folder))?;
    Ok(files.iter().any(|(_, owner)| *owner != Owned::Part))
}

/// What of an earlier run's output goes.
#[derive(Clone, Copy, Debug)]
pub enum Clear<'a> {
    Everything,
    /// These pages (ascending) and the files of the whole document.
    Pages(&'a [u32]),
    /// Only what a killed run left half written.
    Parts,
}

/// Removes earlier output from `folder`; files that docparse did not write stay.
pub fn clear(folder: &Path, what: Clear<'_>) -> Result<(), OutputError> {
    for (path, owner) in owned_files(folder).map_err(OutputError::at(folder))? {
        let goes = match (what, owner) {
            (_, Owned::Part) | (Clear::Everything, _) | (Clear::Pages(_), Owned::Document) => true,
            (Clear::Pages(pages), Owned::Page(number)) => pages.binary_search(&number).is_ok(),
            (Clear::Parts, _) => false,
        };
        if goes {
            std::fs::remove_file(&path).map_err(OutputError::at(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page-0001.md");
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(file);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        write_atomic(&path, b"whole").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    }

    #[test]
    fn only_files_of_ours_are_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let names = [
            "page-0001.md",
            "page-0001-figure-2.png",
            "page-0002.json",
            "page-12.md",
            "page-0003.pdf",
            "document.md",
            "document.docx",
            "notes.md",
            ".docparse-x.part",
        ];
        for name in names {
            std::fs::write(dir.path().join(name), b"").unwrap();
        }
        let left = || {
            let mut left: Vec<String> = std::fs::read_dir(dir.path())
                .unwrap()
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect();
            left.sort();
            left
        };
        assert!(has_output(dir.path()).unwrap());
        clear(dir.path(), Clear::Parts).unwrap();
        assert_eq!(left().len(), names.len() - 1);
        clear(dir.path(), Clear::Pages(&[1])).unwrap();
        assert_eq!(left(), ["document.docx", "notes.md", "page-0002.json", "page-0003.pdf", "page-12.md"]);
        clear(dir.path(), Clear::Everything).unwrap();
        assert_eq!(left(), ["document.docx", "notes.md", "page-0003.pdf", "page-12.md"]);
        assert!(!has_output(dir.path()).unwrap());
    }

    #[test]
    fn new_files_have_the_usual_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, usual) = (dir.path().join("a"), dir.path().join("b"));
        write_atomic(&ours, b"").unwrap();
        std::fs::write(&usual, b"").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&usual));
    }
}
