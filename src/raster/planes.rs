//! Pixels -> normalised planes: the input of a network, `[3, height, width]` float32 in BGR order, `(v / 255 - mean) / std`.

use super::Raster;

/// Means and standard deviations in the order of the planes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalisation {
    pub mean: [f32; 3],
    pub std: [f32; 3],
}

impl Normalisation {
    /// ImageNet's constants as PaddleOCR's models use them: in RGB's order although the planes are BGR.
    pub const IMAGENET: Normalisation =
        Normalisation { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };
    /// -1..1.
    pub const CENTRED: Normalisation = Normalisation { mean: [0.5; 3], std: [0.5; 3] };
}

/// Writes `raster` into the top left of planes of `width x height`, `planes.len() == 3 * width * height`; the rest stays as it
/// is. What does not fit is cut off.
pub fn write_planes(raster: &Raster, norm: &Normalisation, planes: &mut [f32], width: usize, height: usize) {
    let columns = raster.width.min(width);
    for (plane, target) in planes.chunks_exact_mut((width * height).max(1)).take(3).enumerate() {
        let channel = 2 - plane;
        let table: Vec<f32> =
            (0..=255u8).map(|v| (f32::from(v) / 255.0 - norm.mean[plane]) / norm.std[plane]).collect();
        let rows = raster.rgb.chunks_exact((raster.width * 3).max(1));
        for (line, row) in rows.zip(target.chunks_exact_mut(width.max(1))) {
            for (pixel, value) in line.chunks_exact(3).zip(&mut row[..columns]) {
                *value = table[usize::from(pixel[channel])];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_are_blue_green_red_and_padding_stays() {
        let mut planes = vec![9.0; 3 * 4];
        write_planes(&Raster::filled(1, 2, [255, 0, 255]), &Normalisation::CENTRED, &mut planes, 2, 2);
        assert_eq!(planes, [1.0, 9.0, 1.0, 9.0, -1.0, 9.0, -1.0, 9.0, 1.0, 9.0, 1.0, 9.0]);
    }
}
