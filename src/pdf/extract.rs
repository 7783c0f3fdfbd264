//! One page of an open document -> what the child answers: its turn, its pixels, and everything else in their coordinates.

use super::pdfium::{Annotations, File, Matrix, Page, Painted, PaintedKind, RawCharacter};
use super::protocol::{Character, FieldText, PageReply};
use crate::geometry::Rect;
use crate::page::{Link, Rules};
use crate::raster::Raster;

/// Most drawn lines of a page, in each direction.
const MAX_RULES: usize = 8_000;
/// Pictures beyond this number do not count for the share of the largest.
const MAX_PICTURES: usize = 2_000;
/// Where a picture covers at least half of the page, fewer characters than this are a stamp on a scan and do not tell how the
/// scan lies.
const STAMP_CHARACTERS: usize = 200;

/// How large a raster may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RasterLimits {
    pub(crate) dpi: f32,
    pub(crate) max_side: u32,
}

/// Reads the page `number` (1-based).
pub(crate) fn page(
    file: &File<'_>,
    number: u32,
    limits: RasterLimits,
) -> Result<(PageReply, Raster), String> {
    let load = || number.checked_sub(1).and_then(|index| file.page(index)).ok_or("the page cannot be loaded");
    let mut page = load()?;
    let annotations = page.annotations();
    if annotations.with_text > 0 {
        page.flatten();
        drop(page);
        page = load()?;
    }
    let (raw, fonts) = page.characters();
    let painted = page.painted();
    let (width, height, scale) = raster_size(page.size(), limits)?;
    let angle = angle_of_most(&raw);
    let turn = match angle {
        Some(angle) if !is_stamped_scan(&page, &painted, raw.len()) => (angle + 4 - page.rotation()) % 4,
        _ => 0,
    };
    let (width, height) = if turn % 2 == 1 { (height, width) } else { (width, height) };
    let view = page.view(turn, width, height);
    let raster = page.render(turn, width, height).ok_or("no memory for the page's pixels")?;
    let characters = characters(&raw, &view);
    let reply = PageReply {
        width,
        height,
        scale,
        turn,
        angle: (turn + page.rotation()) % 4,
        fonts,
        rules: rules(&painted, &view, width as f32, height as f32),
        picture_share: picture_share(&painted, &view, width as f32, height as f32),
        links: links(&annotations, &view),
        fields: missing_fields(&annotations, &view, &characters),
        characters,
        is_picture: false,
    };
    Ok((reply, raster))
}

/// Width, height and pixels per point of the raster of a page of `size` points: `dpi`, or less where a side would be too long.
fn raster_size((w, h): (f32, f32), limits: RasterLimits) -> Result<(usize, usize, f32), String> {
    if !(w.is_finite() && h.is_finite() && w > 0.0 && h > 0.0) {
        return Err(format!("page of {w} x {h} points"));
    }
    let longest = limits.max_side.max(1) as f32;
    let scale = (limits.dpi / 72.0).min(longest / w.max(h)).max(f32::MIN_POSITIVE);
    let pixels = |points: f32| (points * scale).round().clamp(1.0, longest) as usize;
    Ok((pixels(w), pixels(h), scale))
}

/// Direction in which most characters run; `None` without characters.
fn angle_of_most(raw: &[RawCharacter]) -> Option<u8> {
    let mut counts = [0usize; 4];
    for character in raw.iter().filter(|c| c.bounds.is_some()) {
        counts[usize::from(character.angle % 4)] += 1;
    }
    let most = counts.iter().copied().max().filter(|&n| n > 0)?;
    counts.iter().position(|&n| n == most).map(|at| at as u8)
}

fn is_stamped_scan(page: &Page<'_>, painted: &[Painted], characters: usize) -> bool {
    let view = page.view(0, 1000, 1000);
    characters < STAMP_CHARACTERS && picture_share(painted, &view, 1000.0, 1000.0) >= 0.5
}

fn characters(raw: &[RawCharacter], view: &Matrix) -> Vec<Character> {
    let mut out: Vec<Character> = raw
        .iter()
        .map(|c| Character {
            code: c.code,
            bbox: c.bounds.map(|b| view.bounds(b)),
            ink: view.bounds(c.ink),
            baseline: view.bounds([c.origin[0], c.origin[1], c.origin[0], c.origin[1]]).y1,
            size: c.size,
            font: c.font,
            angle: c.angle,
            flags: c.flags,
        })
        .collect();
    swap_lam_alef(&mut out);
    out
}

/// pdfium gives the two letters of one lam-alef glyph, which share its box, the wrong way round.
fn swap_lam_alef(characters: &mut [Character]) {
    for at in 1..characters.len() {
        let (first, second) = (characters[at - 1], characters[at]);
        let is_pair = matches!(first.code, 0x622 | 0x623 | 0x625 | 0x627) && second.code == 0x644;
        let same_box = first.bbox.zip(second.bbox).is_some_and(|(a, b)| {
            let difference = |f: fn(&Rect) -> f32| (f(&a) - f(&b)).abs();
            difference(|r| r.x0).max(difference(|r| r.x1)).max(difference(|r| r.y0)).max(difference(|r| r.y1))
                < 0.3
        });
        if is_pair && same_box {
            characters.swap(at - 1, at);
        }
    }
}

/// Share of the raster that its largest picture covers; the strips into which scanners cut a page count as one picture.
fn picture_share(painted: &[Painted], view: &Matrix, width: f32, height: f32) -> f32 {
    let raster = Rect::new(0.0, 0.0, width, height);
    let pictures = painted.iter().filter(|object| object.kind == PaintedKind::Picture).take(MAX_PICTURES);
    let mut boxes: Vec<Rect> = pictures.map(|object| in_view(object.bounds, view)).collect();
    boxes.sort_by(|a, b| a.y0.total_cmp(&b.y0));
    let mut whole: Vec<Rect> = Vec::new();
    for strip in boxes {
        let same_column = |r: &Rect| (r.x0 - strip.x0).abs().max((r.x1 - strip.x1).abs()) < 0.01 * width;
        let touches = |r: &Rect| (r.y1 - strip.y0).abs() < 0.005 * height;
        match whole.iter_mut().find(|r| same_column(r) && touches(r)) {
            Some(above) => *above = above.union(&strip),
            None => whole.push(strip),
        }
    }
    let shares = whole.iter().map(|r| r.intersection(&raster) / raster.area().max(1.0));
    shares.fold(0.0, f32::max).min(1.0)
}

fn in_view(bounds: Rect, view: &Matrix) -> Rect {
    view.bounds(bounds.into())
}

/// Thin painted paths, edges of painted boxes, straight lines of stroked paths.
fn rules(painted: &[Painted], view: &Matrix, width: f32, height: f32) -> Rules {
    let thin = (0.003 * width.max(height)).max(3.0);
    let mut out = Rules::default();
    for object in painted {
        let PaintedKind::Path { lines } = &object.kind else { continue };
        let bounds = in_view(object.bounds, view);
        // A frame around the whole page, or its background.
        if bounds.width() > 0.95 * width && bounds.height() > 0.95 * height && lines.len() <= 4 {
            continue;
        }
        // Up to four lines are a line or a box, which the bounds tell.
        if lines.len() > 4 {
            for &[x0, y0, x1, y1] in lines {
                let (a, b) = (view.point(x0, y0), view.point(x1, y1));
                let line = Rect::new(a.0.min(b.0), a.1.min(b.1), a.0.max(b.0), a.1.max(b.1));
                if line.width().min(line.height()) <= 1.0 {
                    add_rules(&mut out, line, thin);
                }
            }
        } else {
            add_rules(&mut out, bounds, thin);
        }
    }
    out.horizontal.truncate(MAX_RULES);
    out.vertical.truncate(MAX_RULES);
    out
}

fn add_rules(out: &mut Rules, b: Rect, thin: f32) {
    if !(b.x0.is_finite() && b.y0.is_finite() && b.x1.is_finite() && b.y1.is_finite()) {
        return;
    }
    let (flat, narrow) = (b.height() <= thin, b.width() <= thin);
    let (wide, tall) = (b.width() > 2.0 * thin, b.height() > 2.0 * thin);
    if flat && wide {
        out.horizontal.push((b.x0, b.x1, (b.y0 + b.y1) / 2.0));
    } else if narrow && tall {
        out.vertical.push((b.y0, b.y1, (b.x0 + b.x1) / 2.0));
    } else if wide && tall {
        out.horizontal.extend([(b.x0, b.x1, b.y0), (b.x0, b.x1, b.y1)]);
        out.vertical.extend([(b.y0, b.y1, b.x0), (b.y0, b.y1, b.x1)]);
    }
}

fn links(annotations: &Annotations, view: &Matrix) -> Vec<Link> {
    let links = annotations.links.iter();
    links.map(|(bounds, uri)| Link { bbox: view.bounds(*bounds), uri: uri.clone() }).collect()
}

/// Values of fields in whose box no character stands: flattening has not made them part of the text layer.
fn missing_fields(annotations: &Annotations, view: &Matrix, characters: &[Character]) -> Vec<FieldText> {
    let fields =
        annotations.fields.iter().map(|f| FieldText { bbox: view.bounds(f.bounds), text: f.text.clone() });
    fields
        .filter(|field| {
            !characters.iter().filter_map(|c| c.bbox).any(|b| {
                let (x, y) = b.center();
                (field.bbox.x0..=field.bbox.x1).contains(&x) && (field.bbox.y0..=field.bbox.y1).contains(&y)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RasterLimits = RasterLimits { dpi: 200.0, max_side: 3400 };
    const VIEW: Matrix = Matrix { a: 1.0, b: 0.0, c: 0.0, d: -1.0, e: 0.0, f: 100.0 };

    fn path(bounds: Rect, lines: Vec<[f32; 4]>) -> Painted {
        Painted { kind: PaintedKind::Path { lines }, bounds }
    }

    #[test]
    fn rasters_stay_within_the_longest_side_and_above_nothing() {
        assert_eq!(raster_size((595.0, 842.0), LIMITS).unwrap().0, 1653);
        let (w, h, scale) = raster_size((14_000.0, 7_000.0), LIMITS).unwrap();
        assert_eq!((w, h), (3400, 1700));
        assert!((scale - 3400.0 / 14_000.0).abs() < 1e-6);
        assert_eq!(raster_size((0.001, 3.0), LIMITS).unwrap().0, 1);
        assert!(raster_size((f32::NAN, 3.0), LIMITS).is_err());
        assert!(raster_size((0.0, 3.0), LIMITS).is_err());
    }

    #[test]
    fn a_thin_box_is_one_rule_and_a_box_four() {
        let painted = [
            path(Rect::new(10.0, 50.0, 90.0, 51.0), vec![]),
            path(Rect::new(20.0, 20.0, 40.0, 40.0), vec![]),
        ];
        let got = rules(&painted, &VIEW, 100.0, 100.0);
        assert_eq!(got.horizontal, [(10.0, 90.0, 49.5), (20.0, 40.0, 60.0), (20.0, 40.0, 80.0)]);
        assert_eq!(got.vertical, [(60.0, 80.0, 20.0), (60.0, 80.0, 40.0)]);
    }

    #[test]
    fn a_grid_stroked_as_one_path_gives_its_inner_lines() {
        let lines: Vec<[f32; 4]> = (0..5).map(|k| [10.0, 10.0 * k as f32, 90.0, 10.0 * k as f32]).collect();
        let got = rules(&[path(Rect::new(10.0, 0.0, 90.0, 40.0), lines)], &VIEW, 100.0, 100.0);
        assert_eq!(got.horizontal.len(), 5);
        assert!(got.vertical.is_empty());
    }

    #[test]
    fn pictures_count_only_where_they_show() {
        let painted = [Painted { kind: PaintedKind::Picture, bounds: Rect::new(-50.0, 0.0, 50.0, 50.0) }];
        assert!((picture_share(&painted, &VIEW, 100.0, 100.0) - 0.25).abs() < 1e-6);
    }

    #[test]
    fn strips_of_one_scan_count_as_one_picture() {
        let strip = |y| Painted { kind: PaintedKind::Picture, bounds: Rect::new(0.0, y, 100.0, y + 10.0) };
        let scan: Vec<Painted> = (0..5).map(|k| strip(k as f32 * 10.0)).collect();
        assert!((picture_share(&scan, &VIEW, 100.0, 100.0) - 0.5).abs() < 1e-6);
        let apart = [strip(0.0), strip(50.0)];
        assert!((picture_share(&apart, &VIEW, 100.0, 100.0) - 0.1).abs() < 1e-6);
    }

    #[test]
    fn lam_comes_before_alef_only_where_both_are_one_glyph() {
        let letter = |code, x| Character::boxed(code, Rect::new(x, 0.0, x + 5.0, 9.0));
        let mut text = [letter(0x627, 0.0), letter(0x644, 0.0), letter(0x627, 20.0), letter(0x644, 30.0)];
        swap_lam_alef(&mut text);
        assert_eq!(text.map(|c| c.code), [0x644, 0x627, 0x627, 0x644]);
    }

    #[test]
    fn matrices_apply_in_order() {
        let shift = Matrix { e: 10.0, ..Matrix::IDENTITY };
        let double = Matrix { a: 2.0, d: 2.0, ..Matrix::IDENTITY };
        assert_eq!(shift.then(&double).point(1.0, 1.0), (22.0, 2.0));
        assert_eq!(double.then(&shift).point(1.0, 1.0), (12.0, 2.0));
    }
}
