//! What must hold of packs that read a picture and a prompt.

use super::{Fault, fault};
use crate::graphs::manifest::{Manifest, PixelRule, Preprocessing, ProtocolTable};

/// Longest side of a tile or a picture, px; most tiles, tokens and patches.
const MOST: usize = 1 << 16;
/// Most pixels of a picture.
const MOST_PIXELS: usize = 1 << 28;

/// Checks a family of pictures.
pub(super) fn check(preprocessing: &Preprocessing, manifest: &Manifest) -> Result<(), Fault> {
    if manifest.prompt.is_none() {
        return fault("prompt", "is missing; packs that read a picture need one");
    }
    match preprocessing {
        Preprocessing::FixedGrid(_) => Ok(()),
        Preprocessing::AspectTiles(tiles) => {
            sizes(&[
                ("tile", tiles.tile),
                ("tokens_per_tile", tiles.tokens_per_tile),
                ("min_tiles", tiles.min_tiles),
                ("max_tiles", tiles.max_tiles),
                ("tiles_per_call", tiles.tiles_per_call),
            ])?;
            if tiles.min_tiles > tiles.max_tiles || tiles.max_tiles > 1024 {
                return fault("preprocessing.max_tiles", "must be between min_tiles and 1024");
            }
            numbers(&tiles.pixels)
        }
        Preprocessing::CappedTiles(tiles) => {
            sizes(&[
                ("tile", tiles.tile),
                ("tokens_per_tile", tiles.tokens_per_tile),
                ("longest_side", tiles.longest_side),
                ("tiles_per_call", tiles.tiles_per_call),
            ])?;
            numbers(&tiles.pixels)
        }
        Preprocessing::NativeGrid(grid) => {
            sizes(&[("patch", grid.patch), ("merge", grid.merge)])?;
            if grid.max_side > MOST || grid.window > MOST || grid.place_side > 4096 {
                return fault(
                    "preprocessing",
                    format!("max_side, window and place_side must be below {MOST}"),
                );
            }
            if !grid.window.is_multiple_of(grid.merge) {
                return fault("preprocessing.window", "must be a whole number of merged patches");
            }
            let cell = (grid.patch * grid.merge).pow(2);
            if grid.max_pixels < cell || grid.max_pixels > MOST_PIXELS || grid.min_pixels > grid.max_pixels {
                return fault(
                    "preprocessing.max_pixels",
                    format!("must be between min_pixels, {cell} and {MOST_PIXELS}"),
                );
            }
            numbers(&grid.pixels)
        }
    }
}

fn sizes(sizes: &[(&str, usize)]) -> Result<(), Fault> {
    match sizes.iter().find(|(_, size)| *size == 0 || *size > MOST) {
        Some((name, size)) => {
            fault(format!("preprocessing.{name}"), format!("{size} is not between 1 and {MOST}"))
        }
        None => Ok(()),
    }
}

fn numbers(pixels: &PixelRule) -> Result<(), Fault> {
    let normal = pixels.std.iter().all(|std| (1e-3..=1e3).contains(std));
    if !normal || !pixels.mean.iter().all(|mean| (-1e3..=1e3).contains(mean)) {
        return fault("preprocessing.pixels", "mean and std must be numbers, and std above 0.001");
    }
    Ok(())
}

/// Checks the form `block-label-box`.
pub(super) fn check_labels(protocol: &ProtocolTable) -> Result<(), Fault> {
    if protocol.block.is_none() {
        return fault("protocol.block", "is missing; the region form block-label-box needs one");
    }
    if protocol.labels.is_empty() {
        return fault("protocol.labels", "is empty");
    }
    if protocol.grid == 0 {
        return fault("protocol.grid", "must be above 0");
    }
    let mut seen: Vec<&str> = Vec::new();
    for (index, entry) in protocol.labels.iter().enumerate() {
        if entry.label.is_empty() || seen.contains(&entry.label.as_str()) {
            return fault(
                format!("protocol.labels[{index}]"),
                format!("`{}` is empty or given twice", entry.label),
            );
        }
        seen.push(&entry.label);
    }
    Ok(())
}
