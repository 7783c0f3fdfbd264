//! Painted objects of a page, those inside form XObjects included.

use std::ffi::c_int;

use pdfium_render::prelude::*;

use super::{Page, call};
use crate::geometry::Rect;

// fpdf_edit.h
const OBJECT_PATH: c_int = 2;
const OBJECT_IMAGE: c_int = 3;
const OBJECT_FORM: c_int = 5;
const SEGMENT_LINE: c_int = 0;
const SEGMENT_MOVE: c_int = 2;
/// Objects beyond this number, and forms nested deeper than this, are not looked at.
const MAX_OBJECTS: usize = 20_000;
const MAX_DEPTH: usize = 6;
/// Paths of more segments are curves and drawings: only their bounds count.
const MAX_SEGMENTS: c_int = 2_000;

/// `x' = a x + c y + e`, `y' = b x + d y + f`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) a: f32,
    pub(crate) b: f32,
    pub(crate) c: f32,
    pub(crate) d: f32,
    pub(crate) e: f32,
    pub(crate) f: f32,
}

impl Matrix {
    pub(crate) const IDENTITY: Matrix = Matrix { a: 1.0, b: 0.0, c: 0.0, d: 1.0, e: 0.0, f: 0.0 };

    pub(crate) fn point(&self, x: f32, y: f32) -> (f32, f32) {
        (self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f)
    }

    /// The transform that applies `self` first and `next` to its result.
    pub(crate) fn then(&self, next: &Matrix) -> Matrix {
        let (a, b) = (next.a * self.a + next.c * self.b, next.b * self.a + next.d * self.b);
        let (c, d) = (next.a * self.c + next.c * self.d, next.b * self.c + next.d * self.d);
        let (e, f) = next.point(self.e, self.f);
        Matrix { a, b, c, d, e, f }
    }

    /// The axis-parallel box around the transformed corners of `[left, bottom, right, top]`.
    pub(crate) fn bounds(&self, [left, bottom, right, top]: [f32; 4]) -> Rect {
        let corners = [(left, bottom), (left, top), (right, bottom), (right, top)];
        let corners = corners.map(|(x, y)| self.point(x, y));
        let low = |pick: fn(&(f32, f32)) -> f32| corners.iter().map(pick).fold(f32::INFINITY, f32::min);
        let high = |pick: fn(&(f32, f32)) -> f32| corners.iter().map(pick).fold(f32::NEG_INFINITY, f32::max);
        Rect::new(low(|p| p.0), low(|p| p.1), high(|p| p.0), high(|p| p.1))
    }
}

/// What an object is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PaintedKind {
    Picture,
    /// A filled or stroked path, or a straight-edged part of a filled one; `lines` are the straight segments of a stroked one,
    /// page units.
    Path {
        lines: Vec<[f32; 4]>,
    },
}

/// A painted picture or path; `bounds` in page units `[x0, y0, x1, y1]`.
pub(crate) struct Painted {
    pub(crate) kind: PaintedKind,
    pub(crate) bounds: Rect,
}

/// The box around line segments.
fn hull(lines: &[[f32; 4]]) -> Option<Rect> {
    let boxes =
        lines.iter().map(|&[x0, y0, x1, y1]| Rect::new(x0.min(x1), y0.min(y1), x0.max(x1), y0.max(y1)));
    boxes.reduce(|a, b| a.union(&b))
}

impl Page<'_> {
    /// Pictures and painted paths, in painting order.
    pub(crate) fn painted(&self) -> Vec<Painted> {
        let mut out = Vec::new();
        let count = call!(self.file.bindings, FPDFPage_CountObjects(self.handle));
        for index in 0..count {
            let object = call!(self.file.bindings, FPDFPage_GetObject(self.handle, index));
            self.collect(object, &Matrix::IDENTITY, 0, &mut out);
            if out.len() >= MAX_OBJECTS {
                break;
            }
        }
        out
    }

    fn collect(&self, object: FPDF_PAGEOBJECT, outer: &Matrix, depth: usize, out: &mut Vec<Painted>) {
        if object.is_null() || out.len() >= MAX_OBJECTS {
            return;
        }
        let bindings = self.file.bindings;
        match call!(bindings, FPDFPageObj_GetType(object)) {
            OBJECT_IMAGE => {
                let bounds = self.object_bounds(object);
                out.extend(bounds.map(|b| Painted { kind: PaintedKind::Picture, bounds: outer.bounds(b) }));
            }
            OBJECT_PATH => self.path(object, outer, out),
            OBJECT_FORM if depth < MAX_DEPTH => {
                let inner = self.object_matrix(object).unwrap_or(Matrix::IDENTITY).then(outer);
                for index in 0..call!(bindings, FPDFFormObj_CountObjects(object)) {
                    let Ok(index) = u32::try_from(index) else { break };
                    let child = call!(bindings, FPDFFormObj_GetObject(object, index.into()));
                    self.collect(child, &inner, depth + 1, out);
                }
            }
            _ => {}
        }
    }

    fn path(&self, object: FPDF_PAGEOBJECT, outer: &Matrix, out: &mut Vec<Painted>) {
        let bindings = self.file.bindings;
        let (mut fill, mut stroke): (c_int, FPDF_BOOL) = (0, 0);
        call!(bindings, FPDFPath_GetDrawMode(object, &mut fill, &mut stroke));
        if fill == 0 && stroke == 0 {
            return;
        }
        let outlines = self.outlines(object, outer);
        // Browsers fill all lines of a table as one path of thin boxes.
        if stroke == 0 && outlines.len() > 1 {
            let parts = outlines.iter().filter_map(|outline| hull(outline));
            out.extend(parts.map(|bounds| Painted { kind: PaintedKind::Path { lines: Vec::new() }, bounds }));
            return;
        }
        let lines = if stroke != 0 { outlines.concat() } else { Vec::new() };
        let bounds = self.object_bounds(object).map(|bounds| outer.bounds(bounds));
        out.extend(bounds.map(|bounds| Painted { kind: PaintedKind::Path { lines }, bounds }));
    }

    /// By subpath, the straight segments `[x0, y0, x1, y1]` of a path that consists of nothing else.
    fn outlines(&self, object: FPDF_PAGEOBJECT, outer: &Matrix) -> Vec<Vec<[f32; 4]>> {
        let bindings = self.file.bindings;
        let count = call!(bindings, FPDFPath_CountSegments(object));
        if !(2..=MAX_SEGMENTS).contains(&count) {
            return Vec::new();
        }
        let matrix = self.object_matrix(object).unwrap_or(Matrix::IDENTITY).then(outer);
        let mut out: Vec<Vec<[f32; 4]>> = vec![Vec::new()];
        let (mut start, mut last) = ((0.0, 0.0), (0.0, 0.0));
        for index in 0..count {
            let segment = call!(bindings, FPDFPath_GetPathSegment(object, index));
            let (mut x, mut y) = (0.0, 0.0);
            if segment.is_null() || call!(bindings, FPDFPathSegment_GetPoint(segment, &mut x, &mut y)) == 0 {
                return Vec::new();
            }
            let point = matrix.point(x, y);
            let mut current = out.pop().unwrap_or_default();
            match call!(bindings, FPDFPathSegment_GetType(segment)) {
                SEGMENT_MOVE => {
                    start = point;
                    if !current.is_empty() {
                        out.push(std::mem::take(&mut current));
                    }
                }
                SEGMENT_LINE => current.push([last.0, last.1, point.0, point.1]),
                _ => return Vec::new(),
            }
            last = point;
            if call!(bindings, FPDFPathSegment_GetClose(segment)) != 0 {
                current.push([last.0, last.1, start.0, start.1]);
                last = start;
            }
            out.push(current);
        }
        out.retain(|outline| !outline.is_empty());
        out
    }

    fn object_bounds(&self, object: FPDF_PAGEOBJECT) -> Option<[f32; 4]> {
        let (mut left, mut bottom, mut right, mut top) = (0.0, 0.0, 0.0, 0.0);
        let found = call!(
            self.file.bindings,
            FPDFPageObj_GetBounds(object, &mut left, &mut bottom, &mut right, &mut top)
        );
        (found != 0).then_some([left, bottom, right, top])
    }

    fn object_matrix(&self, object: FPDF_PAGEOBJECT) -> Option<Matrix> {
        let mut m = FS_MATRIX { a: 1.0, b: 0.0, c: 0.0, d: 1.0, e: 0.0, f: 0.0 };
        let found = call!(self.file.bindings, FPDFPageObj_GetMatrix(object, &mut m)) != 0;
        found.then_some(Matrix { a: m.a, b: m.b, c: m.c, d: m.d, e: m.e, f: m.f })
    }
}
