//! The parent's end: one child process for a document, started again after it died or hung.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use super::child::path_bytes;
use super::protocol::{PageReply, Refusal, Reply, Request, read_frame, write_frame};
use super::text_layer;
use super::{OpenError, OpenOptions, PageError};
use crate::clock::TimeLimit;
use crate::graphs::runtime::find_native;
use crate::page::{DocumentInfo, PageEvidence};
use crate::raster::Raster;

/// A document that child processes read.
#[derive(Debug)]
pub(super) struct Renderer {
    path: PathBuf,
    library: Result<PathBuf, String>,
    options: OpenOptions,
    child: Option<Running>,
}

/// A child that has opened the document.
#[derive(Debug)]
struct Running {
    process: Child,
    stdin: ChildStdin,
    replies: Receiver<(Reply, Vec<u8>)>,
    /// It has answered for a page already.
    used: bool,
}

/// Why no answer came.
enum Silence {
    Died(String),
    Timeout,
}

impl Renderer {
    /// Starts a child and opens the document in it.
    pub(super) fn open(path: &Path, options: &OpenOptions) -> Result<(Renderer, DocumentInfo), OpenError> {
        let library = find_native("libpdfium.so").map_err(|error| error.to_string());
        let path = std::path::absolute(path)?;
        let mut renderer = Renderer { path, library, options: options.clone(), child: None };
        let info = renderer.start()?;
        Ok((renderer, info))
    }

    fn start(&mut self) -> Result<DocumentInfo, OpenError> {
        let mut child = Running::spawn(&self.options.program)?;
        let request = Request::Open {
            library: self.library.clone(),
            password: self.options.password.clone(),
            dpi: self.options.raster.dpi,
            max_side: self.options.raster.max_side,
            max_pixels: self.options.limits.picture_pixels,
            memory: self.options.limits.raster_memory,
            seconds: self.options.limits.page_time.as_secs() + 1,
        };
        let refusal = match child.ask(&request, &path_bytes(&self.path), self.options.limits.page_time) {
            Ok((Reply::Opened(info), _)) => {
                self.child = Some(child);
                return Ok(info);
            }
            Ok((Reply::Refused(refusal), _)) => refusal,
            Ok(_) => Refusal::Format("the renderer answered something else".into()),
            Err(Silence::Died(how)) => Refusal::Format(format!("the renderer died on it ({how})")),
            Err(Silence::Timeout) => Refusal::Format(format!(
                "opening took longer than {:?} (`--page-timeout`)",
                self.options.limits.page_time
            )),
        };
        Err(match refusal {
            Refusal::Library(message) => OpenError::Library(message),
            Refusal::File(message) => OpenError::Io(io::Error::other(message)),
            Refusal::Password if self.options.password.is_some() => OpenError::PasswordWrong,
            Refusal::Password => OpenError::PasswordNeeded,
            Refusal::Format(message) => OpenError::Format(message),
        })
    }

    /// Evidence of a page. A page on which a used child dies is tried again in a fresh one, so that what a page gives does not
    /// depend on the pages before it.
    pub(super) fn page(&mut self, number: u32) -> Result<PageEvidence, PageError> {
        match self.try_page(number) {
            Err((PageError::Died(_), true)) => self.try_page(number).map_err(|(error, _)| error),
            other => other.map_err(|(error, _)| error),
        }
    }

    /// The error comes with whether the child had answered for a page before.
    fn try_page(&mut self, number: u32) -> Result<PageEvidence, (PageError, bool)> {
        let timeout = self.options.limits.page_time;
        if self.child.is_none() {
            let failed = |e: OpenError| (PageError::Render(format!("opening it again: {e}")), false);
            self.start().map_err(failed)?;
        }
        let Some(mut child) = self.child.take() else {
            return Err((PageError::Died("not started".into()), false));
        };
        let was_used = std::mem::replace(&mut child.used, true);
        match child.ask(&Request::Page { number }, &[], timeout) {
            Ok((reply, payload)) => {
                self.child = Some(child);
                // The work of this thread alone.
                TimeLimit::start(timeout, 1)
                    .hold(|| evidence(number, reply, payload))
                    .ok_or((PageError::Timeout(timeout), was_used))?
                    .map_err(|message| (PageError::Render(message), was_used))
            }
            Err(Silence::Died(how)) => Err((PageError::Died(how), was_used)),
            Err(Silence::Timeout) => Err((PageError::Timeout(timeout), was_used)),
        }
    }
}

impl Running {
    fn spawn(program: &Path) -> io::Result<Running> {
        let mut command = Command::new(program);
        command.arg("__raster").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A group of its own: Ctrl-C on the terminal must not take away the page that the parent still finishes.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process = command.spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (stdin, mut stdout) = pipes.expect("both were asked for as pipes");
        let (sender, replies) = channel();
        std::thread::spawn(move || {
            while let Ok(reply) = read_frame(&mut stdout) {
                if sender.send(reply).is_err() {
                    break;
                }
            }
        });
        Ok(Running { process, stdin, replies, used: false })
    }

    fn ask(
        &mut self,
        request: &Request,
        payload: &[u8],
        timeout: std::time::Duration,
    ) -> Result<(Reply, Vec<u8>), Silence> {
        let sent = write_frame(&mut self.stdin, request, payload).and_then(|()| self.stdin.flush());
        if sent.is_err() {
            return Err(Silence::Died(self.end()));
        }
        match self.replies.recv_timeout(timeout) {
            Ok(reply) => Ok(reply),
            Err(RecvTimeoutError::Timeout) => Err(Silence::Timeout),
            Err(RecvTimeoutError::Disconnected) => Err(Silence::Died(self.end())),
        }
    }

    /// Waits for a child whose pipes are closed, and says how it ended.
    fn end(&mut self) -> String {
        // One that closed its output but lives would be waited for without end.
        for _ in 0..50 {
            match self.process.try_wait() {
                Ok(Some(status)) => return how_it_ended(status),
                Ok(None) => std::thread::sleep(std::time::Duration::from_millis(10)),
                Err(error) => return error.to_string(),
            }
        }
        "it closed its output".into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only for a process that is gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(unix)]
fn how_it_ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    const OUT_OF_CPU_TIME: i32 = 24;
    match (status.signal(), status.code()) {
        (Some(OUT_OF_CPU_TIME), _) => "its CPU time was used up (`--page-timeout`)".into(),
        // What an allocation beyond the limit ends with, as a damaged file may.
        (Some(signal @ 4..=6), _) => {
            format!("signal {signal}; perhaps for want of memory (`--raster-memory`)")
        }
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => status.to_string(),
    }
}

#[cfg(not(unix))]
fn how_it_ended(status: ExitStatus) -> String {
    status.to_string()
}

fn evidence(number: u32, reply: Reply, rgb: Vec<u8>) -> Result<PageEvidence, String> {
    let page: PageReply = match reply {
        Reply::Page(page) => *page,
        Reply::Failed(message) => return Err(message),
        Reply::Opened(_) | Reply::Refused(_) => return Err("the renderer answered something else".into()),
    };
    let (width, height) = (page.width, page.height);
    if rgb.len() != width.saturating_mul(height).saturating_mul(3) || rgb.is_empty() {
        return Err("the renderer's pixels do not fit their size".into());
    }
    let layer = text_layer::words(&page);
    if layer.left_out > 0 {
        tracing::debug!(page = number, characters = layer.left_out, "text at other angles left out");
    }
    Ok(PageEvidence {
        number,
        raster: Raster { width, height, rgb },
        scale: page.scale,
        turn: page.turn,
        words: layer.words,
        glyphs: layer.glyphs,
        rules: page.rules,
        links: page.links,
        picture_share: page.picture_share,
        hidden_share: layer.hidden_share,
        is_picture: page.is_picture,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_that_do_not_fit_are_an_error() {
        let page = PageReply { width: 2, height: 2, scale: 1.0, ..PageReply::default() };
        assert!(evidence(1, Reply::Page(Box::new(page)), vec![0; 11]).is_err());
        let page = PageReply { width: 2, height: 2, scale: 1.0, ..PageReply::default() };
        assert_eq!(evidence(4, Reply::Page(Box::new(page)), vec![0; 12]).unwrap().number, 4);
        assert!(evidence(1, Reply::Failed("no".into()), vec![]).is_err());
    }
}
