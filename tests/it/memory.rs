//! Memory does not grow with the number of pages. Run it with
//! `cargo test --release --test it memory -- --ignored --nocapture`.

use std::fs;

use crate::long;
use crate::program::convert_to;

/// Most bytes that the process held at once, and pages that came out, for a PDF of `page_count` pages.
fn peak_rss_bytes(page_count: u32) -> u64 {
    let folder = tempfile::tempdir().expect("a folder");
    let (input, stats) = (folder.path().join("long.pdf"), folder.path().join("stats.json"));
    fs::write(&input, long::pdf(page_count, &[])).expect("a writable folder");
    let stats_option = stats.to_str().expect("a plain name");
    convert_to(&folder.path().join("out"), &[input], &["--model", "none", "--stats", stats_option]);
    let stats: serde_json::Value =
        serde_json::from_slice(&fs::read(&stats).expect("the stats are there")).expect("the stats are JSON");
    assert_eq!(stats["run"]["ok"], page_count);
    stats["peak_rss_bytes"].as_u64().expect("Linux tells the peak")
}

#[test]
#[ignore = "takes minutes: 400 pages"]
#[expect(clippy::print_stdout, reason = "the figures are what the test is run for")]
fn four_hundred_pages_take_no_more_than_forty() {
    let (few, many) = (peak_rss_bytes(40), peak_rss_bytes(400));
    println!("peak RSS: {} MB at 40 pages, {} MB at 400 pages", few >> 20, many >> 20);
    assert!(many < few + few / 5, "{few} bytes at 40 pages, {many} at 400");
}
