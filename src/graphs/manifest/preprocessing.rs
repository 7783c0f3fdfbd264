//! How a page's raster becomes what the vision graph reads, and what is said around the picture.

use serde::Deserialize;

/// How a page's raster becomes the vision graph's input.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub enum Preprocessing {
    FixedGrid(FixedGrid),
    AspectTiles(AspectTiles),
    CappedTiles(CappedTiles),
    NativeGrid(NativeGrid),
}

/// Names of the families, as the manifest has them.
const FAMILIES: [&str; 4] = ["fixed-grid", "internvl-tiles", "idefics3-tiles", "qwen-native"];

impl TryFrom<serde_json::Value> for Preprocessing {
    type Error = String;

    fn try_from(mut value: serde_json::Value) -> Result<Self, String> {
        let family = value.as_object_mut().and_then(|map| map.remove("family"));
        let known = FAMILIES.join(", ");
        let read = match family.as_ref().and_then(serde_json::Value::as_str) {
            Some("fixed-grid") => serde_json::from_value(value).map(Preprocessing::FixedGrid),
            Some("internvl-tiles") => serde_json::from_value(value).map(Preprocessing::AspectTiles),
            Some("idefics3-tiles") => serde_json::from_value(value).map(Preprocessing::CappedTiles),
            Some("qwen-native") => serde_json::from_value(value).map(Preprocessing::NativeGrid),
            Some(other) => {
                return Err(format!(
                    "preprocessing.family: `{other}` is not supported by this version; supported: {known}"
                ));
            }
            None => return Err(format!("preprocessing.family: missing; supported: {known}")),
        };
        read.map_err(|e| format!("preprocessing: {e}"))
    }
}

/// One gray picture, scaled so that lower-case letters have a known height, cut into cells; cells without ink are left out.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedGrid {
    /// Size of a cell, px of the model's raster.
    pub cell_width: usize,
    pub cell_height: usize,
    /// A cell is kept if its darkest pixel has more ink than this, 0..1.
    pub ink_threshold: f32,
    /// Wanted median height of lower-case letters, px of the model's raster.
    pub x_height: f32,
    /// Height of lower-case letters as a share of the font height (ascent to descent).
    pub x_height_share: f32,
    /// Resolution of the model's raster where no words tell the type size.
    pub default_dpi: f32,
    /// Longest side of the model's raster, px.
    pub max_side: usize,
    /// Most cells with ink of a page; the raster is made smaller until they fit.
    pub max_cells: usize,
    /// The visual tokens are the characters that the vision graph reads; without it they are the cells.
    pub characters: Option<CharacterTokens>,
}

/// How characters are read off the vision graph's map.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CharacterTokens {
    /// What "none" counted in the graph's training, against 1 for the characters.
    pub none_weight: f32,
}

/// How pixels are made smaller or larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResizeFilter {
    /// Cubic with a = -0.5, support scaled when smaller (Pillow's `BICUBIC`).
    Bicubic,
    /// Lanczos with three lobes (Pillow's `LANCZOS`).
    Lanczos,
}

/// Pixels 0..255 -> the numbers that the graph reads: (pixel / 255 - mean) / std, by channel.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PixelRule {
    pub filter: ResizeFilter,
    pub mean: [f32; 3],
    pub std: [f32; 3],
}

/// Square tiles on a grid of about the page's aspect ratio; the grid's area decides among the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AspectTiles {
    /// Side of a tile, px.
    pub tile: usize,
    pub tokens_per_tile: usize,
    pub min_tiles: usize,
    pub max_tiles: usize,
    /// Does the whole page, made as small as a tile, follow the tiles if there is more than one?
    pub whole: bool,
    /// Tiles of one call of the vision graph: bounds its memory.
    pub tiles_per_call: usize,
    pub pixels: PixelRule,
}

/// Square tiles of the page at a fixed length of its longest side, then the whole page as one tile.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CappedTiles {
    /// Side of a tile, px.
    pub tile: usize,
    pub tokens_per_tile: usize,
    /// Longest side of the page before it is fitted to whole tiles, px.
    pub longest_side: usize,
    /// Tiles of one call of the vision graph.
    pub tiles_per_call: usize,
    pub pixels: PixelRule,
}

/// Patches of the page at about its own size.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeGrid {
    /// Side of a patch, px.
    pub patch: usize,
    /// Patches a side that become one visual token.
    pub merge: usize,
    /// Bounds of the picture's area, px.
    pub min_pixels: usize,
    pub max_pixels: usize,
    /// Longest side before anything else, px; 0: any.
    pub max_side: usize,
    /// Side of an attention window, patches; 0: no layer has windows.
    pub window: usize,
    /// Side of the square of learnt places that is stretched over the page; 0: there is none.
    pub place_side: usize,
    pub pixels: PixelRule,
}

/// The prompt as text: `before`, the picture, `after`. Within the picture stand the `visual` tokens, one for each feature, and
/// the marks of its tiles.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptText {
    pub before: String,
    pub after: String,
    pub visual: String,
    /// Before each tile; `{row}` and `{column}` count from 1.
    #[serde(default)]
    pub tile: String,
    /// After each row of tiles.
    #[serde(default)]
    pub row_end: String,
    /// Before the whole page that follows tiles.
    #[serde(default)]
    pub whole: String,
    /// Before the whole page that stands alone.
    #[serde(default)]
    pub only: String,
    /// After the picture.
    #[serde(default)]
    pub end: String,
}
