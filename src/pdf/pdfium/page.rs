//! One page: size, view, pixels, annotations.

use std::ffi::c_int;

use pdfium_render::prelude::*;

use super::{File, Matrix, call, read_bytes, read_utf16};
use crate::raster::Raster;

// fpdf_annot.h
const ANNOTATION_FREE_TEXT: c_int = 3;
const ANNOTATION_STAMP: c_int = 13;
const ANNOTATION_WIDGET: c_int = 20;
const FLAG_HIDDEN: c_int = 1 << 1;
const FLAG_NO_VIEW: c_int = 1 << 5;
// fpdf_formfill.h: combo box, list box, text field
const FIELDS_WITH_TEXT: [c_int; 3] = [4, 5, 6];
// fpdfview.h
const BITMAP_BGR: c_int = 2;
const DRAW_ANNOTATIONS: c_int = 1;
/// More annotations than this are not looked at.
const MAX_ANNOTATIONS: c_int = 20_000;

/// The visible value of a form field or a note written on the page; `bounds` in page units `[left, bottom, right, top]`.
pub(crate) struct Field {
    pub(crate) bounds: [f32; 4],
    pub(crate) text: String,
}

/// What a page's annotations hold.
#[derive(Default)]
pub(crate) struct Annotations {
    /// `([left, bottom, right, top], URI)` in page units.
    pub(crate) links: Vec<([f32; 4], String)>,
    pub(crate) fields: Vec<Field>,
    /// Annotations that show text of their own.
    pub(crate) with_text: usize,
}

/// A loaded page.
pub(crate) struct Page<'f> {
    pub(super) file: &'f File<'f>,
    pub(super) handle: FPDF_PAGE,
}

impl<'f> File<'f> {
    /// Loads the page with the given 0-based index.
    pub(crate) fn page(&'f self, index: u32) -> Option<Page<'f>> {
        let index = c_int::try_from(index).ok()?;
        let handle = call!(self.bindings, FPDF_LoadPage(self.handle, index));
        if handle.is_null() {
            return None;
        }
        if !self.form.is_null() {
            call!(self.bindings, FORM_OnAfterLoadPage(handle, self.form));
        }
        Some(Page { file: self, handle })
    }
}

impl Page<'_> {
    /// Width and height in points as the page is shown, its `/Rotate` applied.
    pub(crate) fn size(&self) -> (f32, f32) {
        let bindings = self.file.bindings;
        let width = call!(bindings, FPDF_GetPageWidthF(self.handle));
        (width, call!(bindings, FPDF_GetPageHeightF(self.handle)))
    }

    /// `/Rotate` in quarter turns clockwise.
    pub(crate) fn rotation(&self) -> u8 {
        call!(self.file.bindings, FPDFPage_GetRotation(self.handle)).rem_euclid(4) as u8
    }

    /// Page units -> pixels of a `width x height` view that shows the page turned by `quarters` clockwise.
    pub(crate) fn view(&self, quarters: u8, width: usize, height: usize) -> Matrix {
        /// pdfium answers whole pixels, so it is asked about a view that is finer than any raster.
        const FINE: c_int = 1 << 16;
        let (w, h) = self.size();
        let at = |px: f32, py: f32| {
            let (mut x, mut y): (c_int, c_int) = (0, 0);
            call!(
                self.file.bindings,
                FPDF_PageToDevice(
                    self.handle,
                    0,
                    0,
                    FINE,
                    FINE,
                    c_int::from(quarters),
                    f64::from(px),
                    f64::from(py),
                    &mut x,
                    &mut y
                )
            );
            (x as f32 / FINE as f32 * width as f32, y as f32 / FINE as f32 * height as f32)
        };
        let (e, f) = at(0.0, 0.0);
        let (ax, ay) = at(w, 0.0);
        let (bx, by) = at(0.0, h);
        Matrix { a: (ax - e) / w, b: (ay - f) / w, c: (bx - e) / h, d: (by - f) / h, e, f }
    }

    /// Renders the page with its annotations and form fields on white, turned by `quarters` clockwise.
    pub(crate) fn render(&self, quarters: u8, width: usize, height: usize) -> Option<Raster> {
        let bindings = self.file.bindings;
        let (w, h) = (c_int::try_from(width).ok()?, c_int::try_from(height).ok()?);
        let stride = width.checked_mul(3)?.next_multiple_of(4);
        let mut bytes = vec![0xff_u8; stride.checked_mul(height)?];
        let bitmap = call!(
            bindings,
            FPDFBitmap_CreateEx(w, h, BITMAP_BGR, bytes.as_mut_ptr().cast(), c_int::try_from(stride).ok()?)
        );
        if bitmap.is_null() {
            return None;
        }
        let turn = c_int::from(quarters);
        call!(bindings, FPDF_RenderPageBitmap(bitmap, self.handle, 0, 0, w, h, turn, DRAW_ANNOTATIONS));
        if !self.file.form.is_null() {
            call!(
                bindings,
                FPDF_FFLDraw(self.file.form, bitmap, self.handle, 0, 0, w, h, turn, DRAW_ANNOTATIONS)
            );
        }
        call!(bindings, FPDFBitmap_Destroy(bitmap));
        let mut rgb = Vec::with_capacity(width * height * 3);
        for row in bytes.chunks_exact(stride) {
            for p in row[..width * 3].chunks_exact(3) {
                rgb.extend_from_slice(&[p[2], p[1], p[0]]);
            }
        }
        Some(Raster { width, height, rgb })
    }

    /// Links to URIs, values of form fields, and how many annotations show text.
    pub(crate) fn annotations(&self) -> Annotations {
        let mut out = Annotations { links: self.links(), ..Annotations::default() };
        let bindings = self.file.bindings;
        let count = call!(bindings, FPDFPage_GetAnnotCount(self.handle)).min(MAX_ANNOTATIONS);
        for index in 0..count {
            let annotation = call!(bindings, FPDFPage_GetAnnot(self.handle, index));
            if annotation.is_null() {
                continue;
            }
            let subtype = call!(bindings, FPDFAnnot_GetSubtype(annotation));
            let flags = call!(bindings, FPDFAnnot_GetFlags(annotation));
            let shows_text = matches!(subtype, ANNOTATION_FREE_TEXT | ANNOTATION_STAMP | ANNOTATION_WIDGET);
            if shows_text && flags & (FLAG_HIDDEN | FLAG_NO_VIEW) == 0 {
                out.with_text += 1;
                out.fields.extend(self.field(annotation, subtype));
            }
            call!(bindings, FPDFPage_CloseAnnot(annotation));
        }
        out
    }

    fn field(&self, annotation: FPDF_ANNOTATION, subtype: c_int) -> Option<Field> {
        let (bindings, form) = (self.file.bindings, self.file.form);
        let text = match subtype {
            ANNOTATION_WIDGET if !form.is_null() => {
                let kind = call!(bindings, FPDFAnnot_GetFormFieldType(form, annotation));
                FIELDS_WITH_TEXT.contains(&kind).then(|| {
                    read_utf16(|buffer, len| {
                        call!(bindings, FPDFAnnot_GetFormFieldValue(form, annotation, buffer, len))
                    })
                })
            }
            ANNOTATION_FREE_TEXT => Some(read_utf16(|buffer, len| {
                call!(bindings, FPDFAnnot_GetStringValue(annotation, "Contents", buffer, len))
            })),
            _ => None,
        }
        .filter(|text| !text.is_empty())?;
        let mut rect = FS_RECTF { left: 0.0, top: 0.0, right: 0.0, bottom: 0.0 };
        (call!(bindings, FPDFAnnot_GetRect(annotation, &mut rect)) != 0)
            .then_some(Field { bounds: [rect.left, rect.bottom, rect.right, rect.top], text })
    }

    fn links(&self) -> Vec<([f32; 4], String)> {
        let bindings = self.file.bindings;
        let mut out = Vec::new();
        let mut position: c_int = 0;
        for _ in 0..MAX_ANNOTATIONS {
            let mut link: FPDF_LINK = std::ptr::null_mut();
            if call!(bindings, FPDFLink_Enumerate(self.handle, &mut position, &mut link)) == 0 {
                break;
            }
            if link.is_null() {
                continue;
            }
            let action = call!(bindings, FPDFLink_GetAction(link));
            // fpdf_doc.h: PDFACTION_URI
            if action.is_null() || call!(bindings, FPDFAction_GetType(action)) != 3 {
                continue;
            }
            let uri = read_bytes(|buffer, len| {
                call!(bindings, FPDFAction_GetURIPath(self.file.handle, action, buffer.cast(), len))
            });
            let mut rect = FS_RECTF { left: 0.0, top: 0.0, right: 0.0, bottom: 0.0 };
            if !uri.is_empty() && call!(bindings, FPDFLink_GetAnnotRect(link, &mut rect)) != 0 {
                out.push(([rect.left, rect.bottom, rect.right, rect.top], uri));
            }
        }
        out
    }

    /// Makes the appearance of annotations part of the page's content. Seen by a page that is loaded afterwards; its
    /// annotations, links too, are gone.
    pub(crate) fn flatten(&self) {
        // fpdf_flatten.h: FLAT_NORMALDISPLAY
        call!(self.file.bindings, FPDFPage_Flatten(self.handle, 0));
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        if !self.file.form.is_null() {
            call!(self.file.bindings, FORM_OnBeforeClosePage(self.handle, self.file.form));
        }
        call!(self.file.bindings, FPDF_ClosePage(self.handle));
    }
}
