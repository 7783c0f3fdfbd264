//! What a run cost, for `--stats`: seconds by stage, counters, memory.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::journal::{PageRecord, Summary};

/// Collects the figures of pages as they are done.
#[derive(Debug, Default)]
pub struct RunStats {
    /// Seconds of every page that had the stage.
    seconds: BTreeMap<&'static str, Vec<f32>>,
    counts: BTreeMap<&'static str, u64>,
}

impl RunStats {
    pub fn add(&mut self, page: &PageRecord) {
        for (&stage, &seconds) in &page.seconds {
            self.seconds.entry(stage).or_default().push(seconds as f32);
        }
        for (&name, &count) in &page.counts {
            let sum = self.counts.entry(name).or_default();
            // A peak is a property of one page; everything else adds up.
            *sum = if name.contains("peak") { count.max(*sum) } else { count + *sum };
        }
    }

    /// The report: by stage the sum over all pages, and the median and maximum over the pages that had the stage.
    pub fn report(&self, summary: &Summary) -> Value {
        let mut stages = serde_json::Map::new();
        for (&stage, values) in &self.seconds {
            let mut sorted = values.clone();
            sorted.sort_by(f32::total_cmp);
            let sum: f64 = sorted.iter().map(|&v| f64::from(v)).sum();
            let at = |index: usize| rounded(sorted.get(index).copied().map_or(0.0, f64::from));
            let figures = json!({
                "pages": sorted.len(),
                "sum": rounded(sum),
                "median": at(sorted.len() / 2),
                "max": at(sorted.len().saturating_sub(1)),
            });
            stages.insert(stage.to_owned(), figures);
        }
        json!({
            "docparse": env!("CARGO_PKG_VERSION"),
            "run": summary,
            "stages": stages,
            "counts": self.counts,
            "peak_rss_bytes": peak_rss_bytes(),
        })
    }
}

/// Microseconds are as fine as the clocks are worth.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Most memory that this process has had at once; `None` where the system does not tell.
pub fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{PageHeader, PageStatus};

    fn page(ocr: f64, peak: u64) -> PageRecord {
        PageRecord {
            file: String::new(),
            output: String::new(),
            page: 1,
            status: PageStatus::Ok,
            reason: None,
            seconds: BTreeMap::from([("ocr", ocr)]),
            counts: BTreeMap::from([("kv_peak_bytes", peak), ("decode_calls", 2)]),
            header: PageHeader::new(None, "", "", ""),
        }
    }

    #[test]
    fn stages_have_sum_median_and_maximum_and_peaks_do_not_add_up() {
        let mut stats = RunStats::default();
        for (ocr, peak) in [(0.5, 10), (2.0, 30), (0.25, 20)] {
            stats.add(&page(ocr, peak));
        }
        let report = stats.report(&Summary::default());
        assert_eq!(report["stages"]["ocr"], json!({"pages": 3, "sum": 2.75, "median": 0.5, "max": 2.0}));
        assert_eq!(report["counts"], json!({"decode_calls": 6, "kv_peak_bytes": 30}));
        assert!(report["peak_rss_bytes"].as_u64().unwrap() > 1_000_000);
    }
}
