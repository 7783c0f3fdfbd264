//! The child process: `docparse __raster`. Answers requests on stdin with frames on stdout until stdin closes; writes nothing
//! else to stdout.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};

use super::confine;
use super::extract::{self, RasterLimits};
use super::pdfium::{Library, LoadError};
use super::picture::PictureFile;
use super::protocol::{PageReply, Refusal, Reply, Request, read_frame, write_frame};
use crate::page::DocumentInfo;
use crate::raster::Raster;

/// Runs the child until its stdin closes.
pub fn child_main() -> ExitCode {
    let requests = listen();
    match answer(&requests, &mut BufWriter::new(io::stdout().lock())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Reads requests on a thread of its own, so that the process ends with its parent even while a page is being rendered.
fn listen() -> Receiver<(Request, Vec<u8>)> {
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(request) = read_frame(&mut input) {
            if sender.send(request).is_err() {
                break;
            }
        }
        #[expect(clippy::exit, reason = "pdfium may never return; nothing of this process is worth keeping")]
        std::process::exit(0);
    });
    requests
}

fn answer(requests: &Receiver<(Request, Vec<u8>)>, out: &mut impl Write) -> io::Result<()> {
    let Ok((request, path)) = requests.recv() else { return Ok(()) };
    let Request::Open { library, password, dpi, max_side, max_pixels, memory, seconds } = request else {
        return Ok(());
    };
    confine::process(memory)?;
    confine::from_now_on(seconds)?;
    let path = path_from(path);
    match PictureFile::open(&path, max_side, max_pixels) {
        Ok(None) => {}
        Ok(Some(picture)) => {
            let info = DocumentInfo { page_count: picture.page_count(), ..DocumentInfo::default() };
            write_frame(out, &Reply::Opened(info), &[])?;
            return answer_pages(requests, out, seconds, |number| picture.page(number));
        }
        Err(refusal) => return write_frame(out, &Reply::Refused(refusal), &[]),
    }
    let mut refuse = |refusal| write_frame(out, &Reply::Refused(refusal), &[]);
    let library = match library.and_then(|path| Library::load(&path)) {
        Ok(library) => library,
        Err(message) => return refuse(Refusal::Library(message)),
    };
    let file = match library.open(&path, password.as_deref()) {
        Ok(file) => file,
        Err(error) => return refuse(refusal(error)),
    };
    write_frame(out, &Reply::Opened(file.info()), &[])?;
    let limits = RasterLimits { dpi, max_side };
    answer_pages(requests, out, seconds, |number| extract::page(&file, number, limits))
}

fn answer_pages(
    requests: &Receiver<(Request, Vec<u8>)>,
    out: &mut impl Write,
    seconds: u64,
    page: impl Fn(u32) -> Result<(PageReply, Raster), String>,
) -> io::Result<()> {
    for (request, _) in requests {
        let Request::Page { number } = request else { break };
        confine::from_now_on(seconds)?;
        match page(number) {
            Ok((page, raster)) => write_frame(out, &Reply::Page(Box::new(page)), &raster.rgb)?,
            Err(message) => write_frame(out, &Reply::Failed(message), &[])?,
        }
    }
    Ok(())
}

fn refusal(error: LoadError) -> Refusal {
    match error {
        LoadError::File => Refusal::File("cannot be read".into()),
        LoadError::Format => Refusal::Format("damaged, or not a PDF".into()),
        LoadError::Password => Refusal::Password,
        LoadError::Security => Refusal::Format("unsupported encryption".into()),
        LoadError::Unknown => Refusal::Format("pdfium gives no reason".into()),
    }
}

#[cfg(unix)]
fn path_from(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn path_from(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// The bytes of `path` that [`child_main`] turns back into it.
#[cfg(unix)]
pub(super) fn path_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(not(unix))]
pub(super) fn path_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}
