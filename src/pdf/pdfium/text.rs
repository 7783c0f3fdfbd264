//! The text layer as pdfium tells it, character by character in content order.

use std::collections::HashMap;
use std::ffi::c_int;

use pdfium_render::prelude::*;

use super::{Page, call};
use crate::pdf::protocol::{CharacterFlags, Font};

/// A page with more characters is read up to here (about 50 pages of dense print).
const MAX_CHARACTERS: c_int = 500_000;
/// Text render mode that paints nothing (ISO 32000-1, table 106).
const RENDER_INVISIBLE: c_int = 3;

/// A character; lengths in page units.
pub(crate) struct RawCharacter {
    pub(crate) code: u32,
    /// `[left, bottom, right, top]`: origin to advance, ascent to descent. `None` for spaces and line ends.
    pub(crate) bounds: Option<[f32; 4]>,
    /// `[left, bottom, right, top]` of what is painted; zeros where `bounds` is `None`.
    pub(crate) ink: [f32; 4],
    /// `[x, y]` on the baseline.
    pub(crate) origin: [f32; 2],
    /// Height of 1 em.
    pub(crate) size: f32,
    pub(crate) font: u32,
    /// Direction of writing before the page's `/Rotate`, quarter turns counter-clockwise.
    pub(crate) angle: u8,
    pub(crate) flags: CharacterFlags,
}

struct Reader<'p> {
    page: &'p Page<'p>,
    handle: FPDF_TEXTPAGE,
    fonts: Vec<Font>,
    /// Font and visibility by text object.
    objects: HashMap<FPDF_PAGEOBJECT, (u32, CharacterFlags)>,
}

impl Page<'_> {
    /// Characters in content order, and the fonts that they name.
    pub(crate) fn characters(&self) -> (Vec<RawCharacter>, Vec<Font>) {
        let handle = call!(self.file.bindings, FPDFText_LoadPage(self.handle));
        if handle.is_null() {
            return (Vec::new(), Vec::new());
        }
        let mut reader = Reader { page: self, handle, fonts: Vec::new(), objects: HashMap::new() };
        let count = call!(self.file.bindings, FPDFText_CountChars(handle)).clamp(0, MAX_CHARACTERS);
        let characters = (0..count).map(|index| reader.character(index)).collect();
        (characters, std::mem::take(&mut reader.fonts))
    }
}

impl Reader<'_> {
    fn character(&mut self, index: c_int) -> RawCharacter {
        let bindings = self.page.file.bindings;
        let code = call!(bindings, FPDFText_GetUnicode(self.handle, index));
        let made_up = call!(bindings, FPDFText_IsGenerated(self.handle, index)) == 1;
        let blank = |code| RawCharacter {
            code,
            bounds: None,
            ink: [0.0; 4],
            origin: [0.0; 2],
            size: 0.0,
            font: 0,
            angle: 0,
            flags: CharacterFlags { made_up, ..CharacterFlags::default() },
        };
        match code {
            9 | 0x20 | 0xa0 => return blank(0x20),
            10 | 13 => return blank(10),
            _ if made_up => return blank(code),
            _ => {}
        }
        let (font, mut flags) = self.object(index);
        flags.unmapped = call!(bindings, FPDFText_HasUnicodeMapError(self.handle, index)) == 1;
        let ink = self.ink(index);
        let (angle, size) = self.direction(index);
        RawCharacter {
            code,
            bounds: Some(self.bounds(index, ink)),
            ink,
            origin: self.origin(index),
            size,
            font,
            angle,
            flags,
        }
    }

    /// Direction of the baseline and height of 1 em. From the matrix: `FPDFText_GetCharAngle` counts the other way round than it
    /// says, and the font size alone lacks the matrix's scale.
    fn direction(&self, index: c_int) -> (u8, f32) {
        let mut m = FS_MATRIX { a: 1.0, b: 0.0, c: 0.0, d: 1.0, e: 0.0, f: 0.0 };
        call!(self.page.file.bindings, FPDFText_GetMatrix(self.handle, index, &mut m));
        let quarters = m.b.atan2(m.a) / std::f32::consts::FRAC_PI_2;
        let size = call!(self.page.file.bindings, FPDFText_GetFontSize(self.handle, index)) as f32;
        // A matrix that is no number casts to 0.
        ((quarters.round() as i32).rem_euclid(4) as u8, size.abs() * m.c.hypot(m.d))
    }

    /// The loose box, or the tight one where the font gives no metrics.
    fn bounds(&self, index: c_int, [left, bottom, right, top]: [f32; 4]) -> [f32; 4] {
        let mut loose = FS_RECTF { left: 0.0, top: 0.0, right: 0.0, bottom: 0.0 };
        call!(self.page.file.bindings, FPDFText_GetLooseCharBox(self.handle, index, &mut loose));
        if loose.right - loose.left >= 0.01 && loose.top - loose.bottom >= 0.01 {
            return [loose.left, loose.bottom, loose.right, loose.top];
        }
        [left, bottom, right.max(left + 0.05), top.max(bottom + 0.05)]
    }

    /// The tight box.
    fn ink(&self, index: c_int) -> [f32; 4] {
        let (mut left, mut right, mut bottom, mut top) = (0.0, 0.0, 0.0, 0.0);
        call!(
            self.page.file.bindings,
            FPDFText_GetCharBox(self.handle, index, &mut left, &mut right, &mut bottom, &mut top)
        );
        [left, bottom, right, top].map(|v| v as f32)
    }

    fn origin(&self, index: c_int) -> [f32; 2] {
        let (mut x, mut y) = (0.0, 0.0);
        call!(self.page.file.bindings, FPDFText_GetCharOrigin(self.handle, index, &mut x, &mut y));
        [x as f32, y as f32]
    }

    /// Number of the character's font, and whether its text object is painted.
    fn object(&mut self, index: c_int) -> (u32, CharacterFlags) {
        let bindings = self.page.file.bindings;
        let object = call!(bindings, FPDFText_GetTextObject(self.handle, index));
        if let Some(&known) = self.objects.get(&object) {
            return known;
        }
        let font = self.font(index);
        let number = match self.fonts.iter().position(|f| *f == font) {
            Some(at) => at as u32,
            None => {
                self.fonts.push(font);
                self.fonts.len() as u32 - 1
            }
        };
        let invisible =
            !object.is_null() && call!(bindings, FPDFTextObj_GetTextRenderMode(object)) == RENDER_INVISIBLE;
        let answer = (number, CharacterFlags { invisible, ..CharacterFlags::default() });
        self.objects.insert(object, answer);
        answer
    }

    fn font(&self, index: c_int) -> Font {
        let bindings = self.page.file.bindings;
        let flags = std::cell::Cell::new(0);
        let name = super::read_bytes(|buffer, len| {
            call!(bindings, FPDFText_GetFontInfo(self.handle, index, buffer.cast(), len, flags.as_ptr()))
        });
        let weight = call!(bindings, FPDFText_GetFontWeight(self.handle, index));
        Font::new(&name, weight, flags.get())
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        call!(self.page.file.bindings, FPDFText_ClosePage(self.handle));
    }
}
