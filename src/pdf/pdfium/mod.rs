//! pdfium behind owned handles: the only place that calls the library. Runs in the child process alone.
//!
//! A [`Page`] borrows its [`File`], which borrows the [`Library`], so that no handle outlives what it belongs to. Nothing in
//! here may be relied on to return: on damaged files pdfium can abort the process or run for minutes; the parent process
//! deals with both.

mod objects;
mod page;
mod text;

use std::collections::HashSet;
use std::ffi::c_ulong;
use std::path::Path;

use pdfium_render::prelude::*;

pub(crate) use objects::{Matrix, Painted, PaintedKind};
pub(crate) use page::{Annotations, Page};
pub(crate) use text::RawCharacter;

use crate::page::{Bookmark, DocumentInfo};

/// Calls a function of the library.
macro_rules! call {
    ($bindings:expr, $function:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: handles come from the owner types of this module, which close them once, on drop, in the order that their
        // lifetimes enforce; handles that pdfium lends (objects, fonts, bookmarks) are used while their owner lives; pointers
        // to results point to live values of the type and length that are passed with them; all calls come from one thread.
        #[expect(unsafe_code, reason = "pdfium is a C library")]
        unsafe {
            $bindings.$function($($argument),*)
        }
    }};
}
pub(crate) use call;

/// More bookmarks than this are not read: outlines can be circular.
const MAX_BOOKMARKS: usize = 10_000;
const MAX_BOOKMARK_LEVEL: u32 = 32;
/// Longest string that is taken from a document's dictionaries, bytes.
const MAX_STRING: usize = 1 << 20;
const METADATA: [(&str, &str); 7] = [
    ("title", "Title"),
    ("author", "Author"),
    ("subject", "Subject"),
    ("keywords", "Keywords"),
    ("creator", "Creator"),
    ("producer", "Producer"),
    ("created", "CreationDate"),
];

/// Why pdfium did not open a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadError {
    File,
    Format,
    Password,
    Security,
    Unknown,
}

/// The loaded and initialised library.
pub(crate) struct Library {
    bindings: Box<dyn PdfiumLibraryBindings>,
}

impl Library {
    /// Loads the library at `path`; once per process.
    pub(crate) fn load(path: &Path) -> Result<Library, String> {
        let bindings = Pdfium::bind_to_library(path).map_err(|e| match e {
            PdfiumError::LoadLibraryError(e) => e.to_string(),
            other => format!("`{}` does not fit: {other:?}", path.display()),
        })?;
        call!(bindings, FPDF_InitLibrary());
        Ok(Library { bindings })
    }

    /// Opens the document at `path`.
    pub(crate) fn open(&self, path: &Path, password: Option<&str>) -> Result<File<'_>, LoadError> {
        let bindings = self.bindings.as_ref();
        if password.is_some_and(|p| p.contains('\0')) {
            return Err(LoadError::Password);
        }
        let mut bytes = Vec::new();
        let handle = match path.to_str() {
            Some(path) => call!(bindings, FPDF_LoadDocument(path, password)),
            None => {
                bytes = std::fs::read(path).map_err(|_| LoadError::File)?;
                call!(bindings, FPDF_LoadMemDocument64(&bytes, password))
            }
        };
        if handle.is_null() {
            return Err(match call!(bindings, FPDF_GetLastError()) {
                // fpdfview.h: FPDF_ERR_FILE, _FORMAT, _PASSWORD, _SECURITY
                2 => LoadError::File,
                3 => LoadError::Format,
                4 => LoadError::Password,
                5 => LoadError::Security,
                _ => LoadError::Unknown,
            });
        }
        // All callbacks absent: pdfium checks each before it calls it. The box keeps the address that pdfium stores.
        // SAFETY: a struct of an integer, nullable pointers and optional function pointers, for all of which zero is valid.
        #[expect(unsafe_code, reason = "pdfium is a C library")]
        let mut form_info: Box<FPDF_FORMFILLINFO> = Box::new(unsafe { std::mem::zeroed() });
        form_info.version = 2;
        let form = call!(bindings, FPDFDOC_InitFormFillEnvironment(handle, form_info.as_mut()));
        Ok(File { bindings, handle, form, _form_info: form_info, _bytes: bytes })
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        call!(self.bindings, FPDF_DestroyLibrary());
    }
}

/// An open document and its form environment.
pub(crate) struct File<'a> {
    bindings: &'a dyn PdfiumLibraryBindings,
    handle: FPDF_DOCUMENT,
    /// Null where pdfium could not set one up; forms are then not drawn.
    form: FPDF_FORMHANDLE,
    _form_info: Box<FPDF_FORMFILLINFO>,
    /// The document where its path is not UTF-8, which pdfium cannot open by itself; else empty.
    _bytes: Vec<u8>,
}

impl File<'_> {
    pub(crate) fn page_count(&self) -> u32 {
        u32::try_from(call!(self.bindings, FPDF_GetPageCount(self.handle))).unwrap_or(0)
    }

    pub(crate) fn info(&self) -> DocumentInfo {
        DocumentInfo {
            page_count: self.page_count(),
            metadata: METADATA
                .iter()
                .map(|&(name, tag)| (name.to_owned(), self.metadata(tag)))
                .filter(|(_, value)| !value.is_empty())
                .collect(),
            bookmarks: self.bookmarks(),
        }
    }

    fn metadata(&self, tag: &str) -> String {
        read_utf16(|buffer, len| call!(self.bindings, FPDF_GetMetaText(self.handle, tag, buffer.cast(), len)))
    }

    /// The outline in reading order.
    fn bookmarks(&self) -> Vec<Bookmark> {
        let first = call!(self.bindings, FPDFBookmark_GetFirstChild(self.handle, std::ptr::null_mut()));
        let mut open = vec![(first, 1)];
        let mut seen = HashSet::new();
        let mut out = Vec::new();
        while let Some((bookmark, level)) = open.pop() {
            if bookmark.is_null() || out.len() >= MAX_BOOKMARKS || !seen.insert(bookmark) {
                continue;
            }
            let title = read_utf16(|buffer, len| {
                call!(self.bindings, FPDFBookmark_GetTitle(bookmark, buffer.cast(), len))
            });
            let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
            if !title.is_empty() {
                out.push(Bookmark { title, level, page: self.bookmark_page(bookmark) });
            }
            open.push((call!(self.bindings, FPDFBookmark_GetNextSibling(self.handle, bookmark)), level));
            if level < MAX_BOOKMARK_LEVEL {
                let child = call!(self.bindings, FPDFBookmark_GetFirstChild(self.handle, bookmark));
                open.push((child, level + 1));
            }
        }
        out
    }

    fn bookmark_page(&self, bookmark: FPDF_BOOKMARK) -> Option<u32> {
        let mut target = call!(self.bindings, FPDFBookmark_GetDest(self.handle, bookmark));
        if target.is_null() {
            let action = call!(self.bindings, FPDFBookmark_GetAction(bookmark));
            // fpdf_doc.h: PDFACTION_GOTO
            if !action.is_null() && call!(self.bindings, FPDFAction_GetType(action)) == 1 {
                target = call!(self.bindings, FPDFAction_GetDest(self.handle, action));
            }
        }
        if target.is_null() {
            return None;
        }
        let index = call!(self.bindings, FPDFDest_GetDestPageIndex(self.handle, target));
        u32::try_from(index).ok().filter(|&i| i < self.page_count()).map(|i| i + 1)
    }
}

impl Drop for File<'_> {
    fn drop(&mut self) {
        if !self.form.is_null() {
            call!(self.bindings, FPDFDOC_ExitFormFillEnvironment(self.form));
        }
        call!(self.bindings, FPDF_CloseDocument(self.handle));
    }
}

/// Reads a UTF-16 string through pdfium's convention: asked without a buffer, a call answers the length in bytes.
fn read_utf16(read: impl Fn(*mut u16, c_ulong) -> c_ulong) -> String {
    let bytes = read(std::ptr::null_mut(), 0) as usize;
    if !(2..=MAX_STRING).contains(&bytes) {
        return String::new();
    }
    let mut buffer = vec![0u16; bytes.div_ceil(2)];
    read(buffer.as_mut_ptr(), bytes as c_ulong);
    let text = String::from_utf16_lossy(&buffer);
    text.trim_end_matches('\0').trim().to_owned()
}

/// Like [`read_utf16`], for strings of bytes.
fn read_bytes(read: impl Fn(*mut u8, c_ulong) -> c_ulong) -> String {
    let len = read(std::ptr::null_mut(), 0) as usize;
    if len == 0 || len > MAX_STRING {
        return String::new();
    }
    let mut buffer = vec![0u8; len];
    read(buffer.as_mut_ptr(), len as c_ulong);
    let text = String::from_utf8_lossy(&buffer);
    text.trim_end_matches('\0').trim().to_owned()
}
