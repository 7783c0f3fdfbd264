//! A page as square tiles.
//!
//! `internvl-tiles`: the grid whose aspect ratio is about the page's and whose area is about the page's; the page is stretched to
//! it. `idefics3-tiles`: the page at a fixed longest side, stretched to whole tiles. In both the whole page follows as one tile.

use crate::graphs::manifest::{AspectTiles, CappedTiles, PixelRule, ResizeFilter};
use crate::raster::Raster;

use super::picture::{Picture, Planes, Tiles, VisualLayout, push_planes, resized};

/// Grids whose aspect ratio differs by at most this from the page's are near enough.
const NEAR_ASPECT: f64 = 0.2;
/// Of the near grids, so many of the nearest area are looked at.
const NEAREST_AREAS: usize = 3;
/// Longest side that any picture is given before it is cut, px.
const MOST_SIDE: usize = 4096;

/// Columns and rows of tiles for a page of this size.
pub fn aspect_grid(width: usize, height: usize, rule: &AspectTiles) -> (usize, usize) {
    let aspect = width as f64 / height.max(1) as f64;
    let difference = |&(columns, rows): &(usize, usize)| (aspect - columns as f64 / rows as f64).abs();
    let mut grids: Vec<(usize, usize)> = (1..=rule.max_tiles)
        .flat_map(|columns| (1..=rule.max_tiles / columns).map(move |rows| (columns, rows)))
        .filter(|(columns, rows)| columns * rows >= rule.min_tiles)
        .collect();
    grids.sort_by_key(|(columns, rows)| columns * rows);
    let near: Vec<(usize, usize)> = grids.iter().copied().filter(|g| difference(g) <= NEAR_ASPECT).collect();
    let mut choice = if near.is_empty() { grids } else { near };
    choice.sort_by_key(|(columns, rows)| (width * height).abs_diff(rule.tile * rule.tile * columns * rows));
    choice.truncate(NEAREST_AREAS);
    choice.into_iter().min_by(|a, b| difference(a).total_cmp(&difference(b))).unwrap_or((1, 1))
}

/// The page on the grid of [`aspect_grid`].
pub(super) fn aspect_tiles(raster: &Raster, rule: &AspectTiles) -> Picture {
    let (columns, rows) = aspect_grid(raster.width, raster.height, rule);
    let filter = rule.pixels.filter;
    let mut cutter = Cutter::new(rule.tile, rule.tiles_per_call, &rule.pixels);
    cutter.grid(&resized(raster, columns * rule.tile, rows * rule.tile, filter), columns, rows);
    let whole = rule.whole && columns * rows > 1;
    if whole {
        cutter.grid(&resized(raster, rule.tile, rule.tile, filter), 1, 1);
    }
    let layout = VisualLayout::Tiles { columns, rows, whole, tokens: rule.tokens_per_tile };
    Picture { planes: Planes::Tiles(cutter.tiles), layout }
}

/// Width and height of a page whose longest side becomes `longest`; the other side is made even.
fn capped_size(width: usize, height: usize, longest: usize) -> (usize, usize) {
    let aspect = width as f64 / height.max(1) as f64;
    let even = |side: f64| (side as usize).next_multiple_of(2).max(1);
    let (width, height) = if width >= height {
        (longest, even(longest as f64 / aspect))
    } else {
        (even(longest as f64 * aspect), longest)
    };
    let most = width.max(height);
    if most <= MOST_SIDE {
        return (width, height);
    }
    let aspect = width as f64 / height as f64;
    if width >= height {
        (MOST_SIDE, ((MOST_SIDE as f64 / aspect) as usize).max(1))
    } else {
        (((MOST_SIDE as f64 * aspect) as usize).max(1), MOST_SIDE)
    }
}

/// The size in whole tiles that a page is stretched to.
fn tiled_size((width, height): (usize, usize), tile: usize) -> (usize, usize) {
    let aspect = width as f64 / height.max(1) as f64;
    if width >= height {
        let width = width.next_multiple_of(tile);
        (width, ((width as f64 / aspect) as usize).next_multiple_of(tile))
    } else {
        let height = height.next_multiple_of(tile);
        (((height as f64 * aspect) as usize).next_multiple_of(tile), height)
    }
}

/// The page at the rule's longest side, cut into tiles.
pub(super) fn capped_tiles(raster: &Raster, rule: &CappedTiles) -> Picture {
    let filter = rule.pixels.filter;
    let capped = capped_size(raster.width, raster.height, rule.longest_side);
    let (width, height) = tiled_size(capped, rule.tile);
    let page = resized(&resized(raster, capped.0, capped.1, filter), width, height, filter);
    let mut cutter = Cutter::new(rule.tile, rule.tiles_per_call, &rule.pixels);
    let (columns, rows) = (width / rule.tile, height / rule.tile);
    let layout =
        |columns, rows| VisualLayout::Tiles { columns, rows, whole: true, tokens: rule.tokens_per_tile };
    if columns * rows == 1 {
        cutter.grid(&page, 1, 1);
        return Picture { planes: Planes::Tiles(cutter.tiles), layout: layout(0, 0) };
    }
    cutter.grid(&page, columns, rows);
    cutter.grid(&squashed(&page, rule.tile, filter), 1, 1);
    Picture { planes: Planes::Tiles(cutter.tiles), layout: layout(columns, rows) }
}

fn squashed(page: &Raster, side: usize, filter: ResizeFilter) -> Raster {
    resized(page, side, side, filter)
}

/// Collects tiles.
struct Cutter<'a> {
    tiles: Tiles,
    rule: &'a PixelRule,
}

impl<'a> Cutter<'a> {
    fn new(side: usize, per_call: usize, rule: &'a PixelRule) -> Self {
        Cutter { tiles: Tiles { count: 0, side, per_call, values: Vec::new() }, rule }
    }

    fn grid(&mut self, page: &Raster, columns: usize, rows: usize) {
        let side = self.tiles.side;
        self.tiles.values.reserve(columns * rows * 3 * side * side);
        for row in 0..rows {
            for column in 0..columns {
                let corner = (column * side, row * side);
                push_planes(&mut self.tiles.values, page, corner, (side, side), self.rule);
            }
        }
        self.tiles.count += columns * rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vision::picture::tests::reference_page;

    const PIXELS: PixelRule =
        PixelRule { filter: ResizeFilter::Bicubic, mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };

    fn rule() -> AspectTiles {
        AspectTiles {
            tile: 448,
            tokens_per_tile: 256,
            min_tiles: 1,
            max_tiles: 25,
            whole: true,
            tiles_per_call: 4,
            pixels: PIXELS,
        }
    }

    /// Grids that the reference processor of HPD-Parsing chooses.
    #[test]
    fn the_grid_is_the_reference_processors() {
        let grids = [(514, 64), (760, 865), (248, 193), (720, 1150)].map(|(w, h)| aspect_grid(w, h, &rule()));
        assert_eq!(grids, [(8, 1), (2, 2), (5, 4), (2, 3)]);
    }

    #[test]
    fn a_ribbon_or_a_dot_of_a_page_has_a_grid() {
        assert_eq!(aspect_grid(90_000, 1, &rule()), (2, 1));
        assert_eq!(aspect_grid(900, 90_000, &rule()), (1, 25));
        assert_eq!(aspect_grid(1, 1, &rule()), (1, 1));
    }

    #[test]
    fn a_single_tile_is_not_followed_by_the_whole_page() {
        let rule = AspectTiles { max_tiles: 1, tile: 28, ..rule() };
        let picture = aspect_tiles(&reference_page(60, 40), &rule);
        assert_eq!(picture.layout, VisualLayout::Tiles { columns: 1, rows: 1, whole: false, tokens: 256 });
        let Planes::Tiles(tiles) = picture.planes else { panic!("tiles") };
        assert_eq!((tiles.count, tiles.values.len()), (1, 3 * 28 * 28));
    }

    #[test]
    fn capped_pages_are_whole_tiles_with_the_longest_side_fixed() {
        assert_eq!(capped_size(1700, 2200, 2048), (1582, 2048));
        assert_eq!(tiled_size((1582, 2048), 512), (2048, 2048));
        assert_eq!(capped_size(100, 33, 2048), (2048, 676));
        assert_eq!(tiled_size((2048, 676), 512), (2048, 1024));
        assert_eq!(capped_size(1, 9000, 2048), (1, 2048));
        assert_eq!(capped_size(10, 10, 9000), (4096, 4096));
    }
}
