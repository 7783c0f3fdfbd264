//! The report's curves as SVG: a line for each series over a few points, axes with a handful of ticks.

use std::fmt::Write;

/// Points of one line.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// What a plot shows.
pub(super) struct Plot {
    /// File name without its extension.
    pub(super) name: &'static str,
    pub(super) title: String,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    pub(super) series: Vec<Series>,
    /// A horizontal line: where a method neither gains nor loses.
    pub(super) level: Option<f64>,
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
/// Left, top, right (room for names), bottom.
const MARGIN: (f64, f64, f64, f64) = (60.0, 40.0, 170.0, 50.0);
/// Told apart by people who see colours differently, too (Okabe and Ito).
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999"];

impl Plot {
    /// The picture. Points whose numbers are not finite are left out.
    pub(super) fn svg(&self) -> String {
        let points =
            || self.series.iter().flat_map(|s| &s.points).filter(|p| p.0.is_finite() && p.1.is_finite());
        let most_x = points().map(|p| p.0).fold(0.0, f64::max).max(1e-9);
        let most_y = points().map(|p| p.1).chain(self.level).fold(0.0, f64::max).max(1e-9) * 1.08;
        let (left, top, right, bottom) = MARGIN;
        let place = |(x, y): (f64, f64)| {
            (
                left + x / most_x * (WIDTH - left - right),
                HEIGHT - bottom - y / most_y * (HEIGHT - top - bottom),
            )
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{left}\" y=\"22\" font-size=\"14\">{}</text>\n",
            escaped(&self.title)
        );
        let (x0, y0) = place((0.0, 0.0));
        let (x1, y1) = place((most_x, most_y));
        let _ =
            writeln!(svg, "<path d=\"M{x0:.1} {y1:.1}V{y0:.1}H{x1:.1}\" fill=\"none\" stroke=\"black\"/>");
        for tick in 0..=4 {
            let share = f64::from(tick) / 4.0;
            let (x, _) = place((most_x * share, 0.0));
            let (_, y) = place((0.0, most_y * share));
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                y0 + 18.0,
                short(most_x * share),
                x0 - 6.0,
                y + 4.0,
                short(most_y * share)
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text><text x=\"14\" y=\"{:.1}\" \
             transform=\"rotate(-90 14 {:.1})\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(x0, x1),
            HEIGHT - 10.0,
            escaped(self.x),
            f64::midpoint(y0, y1),
            f64::midpoint(y0, y1),
            escaped(self.y)
        );
        if let Some(level) = self.level {
            let (_, y) = place((0.0, level));
            let _ = writeln!(
                svg,
                "<path d=\"M{x0:.1} {y:.1}H{x1:.1}\" stroke=\"#777\" stroke-dasharray=\"4 4\"/>"
            );
        }
        for (index, series) in self.series.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let finite = series.points.iter().filter(|p| p.0.is_finite() && p.1.is_finite());
            let placed: Vec<(f64, f64)> = finite.map(|&point| place(point)).collect();
            let line: Vec<String> = placed.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
                line.join(" ")
            );
            for (x, y) in &placed {
                let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
            }
            let y = top + 16.0 * index as f64;
            let x = WIDTH - right + 14.0;
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {y:.1}h16\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{:.1}\" \
                 y=\"{:.1}\">{}</text>",
                x + 22.0,
                y + 4.0,
                escaped(&series.name)
            );
        }
        svg + "</svg>\n"
    }
}

fn short(number: f64) -> String {
    match number {
        n if n >= 100.0 => format!("{n:.0}"),
        n if n >= 10.0 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lie_inside_the_axes_and_names_are_escaped() {
        let series = Series { name: "a < b".into(), points: vec![(1.0, 2.0), (16.0, 0.5), (4.0, f64::NAN)] };
        let plot = Plot {
            name: "p",
            title: "t".into(),
            x: "rows",
            y: "ratio",
            series: vec![series],
            level: Some(1.0),
        };
        let svg = plot.svg();
        assert!(svg.contains("a &lt; b") && svg.contains("stroke-dasharray") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<circle").count(), 2, "what is not finite is left out");
        let line = svg.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        for point in line.split(' ') {
            let (x, y) = point.split_once(',').unwrap();
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((60.0..=470.0).contains(&x) && (40.0..=350.0).contains(&y), "{point}");
        }
    }
}
