//! Page ranges as they are typed: `1-3,7`, `5-`, `-3`. 1-based, inclusive.

use std::fmt;
use std::str::FromStr;

/// The pages that are asked for, whatever a file's page count turns out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRanges {
    /// `(first, last)`, sorted, neither overlapping nor touching; `None` as last = to the end.
    ranges: Vec<(u32, Option<u32>)>,
}

/// Why a page range cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageRangeError {
    #[error("`{0}` is not a page or a range such as `1-3`, `5-` or `-3`")]
    Syntax(String),
    #[error("pages count from 1")]
    Zero,
    #[error("`{0}` runs backwards")]
    Backwards(String),
}

impl PageRanges {
    /// Every page.
    pub fn all() -> Self {
        PageRanges { ranges: vec![(1, None)] }
    }

    /// Exactly these pages.
    pub fn of(pages: &[u32]) -> Self {
        PageRanges::merged(pages.iter().map(|&page| (page, Some(page))).collect())
    }

    /// The pages of a document with `page_count` pages that are asked for, ascending.
    pub fn select(&self, page_count: u32) -> Vec<u32> {
        self.ranges
            .iter()
            .flat_map(|&(first, last)| first..=last.unwrap_or(page_count).min(page_count))
            .collect()
    }

    /// Pages past `page_count` that are asked for by an explicit number: the first of them.
    pub fn first_beyond(&self, page_count: u32) -> Option<u32> {
        self.ranges
            .iter()
            .filter(|(_, last)| last.is_some_and(|last| last > page_count))
            .map(|&(first, _)| first.max(page_count.saturating_add(1)))
            .next()
    }

    /// The last page that is asked for; `None` if that depends on the document.
    pub fn last(&self) -> Option<u32> {
        self.ranges.last().and_then(|&(_, last)| last)
    }

    fn merged(mut ranges: Vec<(u32, Option<u32>)>) -> Self {
        ranges.sort_by_key(|&(first, _)| first);
        let mut merged: Vec<(u32, Option<u32>)> = Vec::new();
        for (first, last) in ranges {
            match merged.last_mut() {
                Some((_, None)) => {}
                Some((_, Some(end))) if first <= end.saturating_add(1) => match last {
                    Some(last) => *end = last.max(*end),
                    None => merged.last_mut().expect("it was just seen").1 = None,
                },
                _ => merged.push((first, last)),
            }
        }
        PageRanges { ranges: merged }
    }
}

impl FromStr for PageRanges {
    type Err = PageRangeError;

    fn from_str(text: &str) -> Result<Self, PageRangeError> {
        let ranges = text.split(',').map(|part| range(part.trim())).collect::<Result<Vec<_>, _>>()?;
        Ok(PageRanges::merged(ranges))
    }
}

impl fmt::Display for PageRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.ranges.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match last {
                Some(last) if last == first => write!(f, "{comma}{first}")?,
                Some(last) => write!(f, "{comma}{first}-{last}")?,
                None => write!(f, "{comma}{first}-")?,
            }
        }
        Ok(())
    }
}

fn range(part: &str) -> Result<(u32, Option<u32>), PageRangeError> {
    let syntax = || PageRangeError::Syntax(part.to_owned());
    let number = |digits: &str| -> Result<u32, PageRangeError> {
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(syntax());
        }
        match digits.parse() {
            Ok(0) => Err(PageRangeError::Zero),
            Ok(number) => Ok(number),
            Err(_) => Err(syntax()),
        }
    };
    let (first, last) = match part.split_once('-') {
        None => (number(part)?, Some(number(part)?)),
        Some(("", "")) => return Err(syntax()),
        Some(("", last)) => (1, Some(number(last.trim())?)),
        Some((first, "")) => (number(first.trim())?, None),
        Some((first, last)) => (number(first.trim())?, Some(number(last.trim())?)),
    };
    match last {
        Some(last) if last < first => Err(PageRangeError::Backwards(part.to_owned())),
        _ => Ok((first, last)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pages(text: &str, count: u32) -> Vec<u32> {
        text.parse::<PageRanges>().unwrap().select(count)
    }

    #[test]
    fn ranges_select_pages_in_order_once_each() {
        assert_eq!(pages("7,1-3", 9), [1, 2, 3, 7]);
        assert_eq!(pages("5-", 7), [5, 6, 7]);
        assert_eq!(pages("-3", 2), [1, 2]);
        assert_eq!(pages("2-4,3-5,5", 9), [2, 3, 4, 5]);
        assert_eq!(pages("4-,6-7", 8), [4, 5, 6, 7, 8]);
        assert_eq!(pages("9", 8), [0u32; 0]);
    }

    #[test]
    fn numbers_become_the_shortest_ranges() {
        assert_eq!(PageRanges::of(&[1, 2, 3, 7, 9, 10]).to_string(), "1-3,7,9-10");
        assert_eq!(PageRanges::all().to_string(), "1-");
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "a", "1-2-3", "1,,2", "-", "+1", "1 2", "99999999999"] {
            assert!(matches!(text.parse::<PageRanges>(), Err(PageRangeError::Syntax(_))), "{text:?}");
        }
        assert_eq!("0".parse::<PageRanges>(), Err(PageRangeError::Zero));
        assert_eq!("3-1".parse::<PageRanges>(), Err(PageRangeError::Backwards("3-1".into())));
    }

    #[test]
    fn an_explicit_page_past_the_end_is_noticed_and_an_open_range_is_not() {
        let beyond = |text: &str| text.parse::<PageRanges>().unwrap().first_beyond(3);
        assert_eq!(beyond("2-5"), Some(4));
        assert_eq!(beyond("1,9"), Some(9));
        assert_eq!(beyond("2-"), None);
        assert_eq!(beyond("1-3"), None);
    }

    proptest! {
        #[test]
        fn selection_is_the_union_of_its_parts(parts in prop::collection::vec((1u32..40, 0u32..12), 1..8), count in 0u32..50) {
            let text = parts.iter().map(|(a, n)| format!("{a}-{}", a + n)).collect::<Vec<_>>().join(",");
            let naive: Vec<u32> =
                (1..=count).filter(|p| parts.iter().any(|(a, n)| (*a..=a + n).contains(p))).collect();
            let ranges: PageRanges = text.parse().unwrap();
            prop_assert_eq!(ranges.select(count), naive);
            prop_assert_eq!(ranges.to_string().parse::<PageRanges>().unwrap(), ranges);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}", dashes in "[-,0-9 ]{0,10}") {
            let _ = text.parse::<PageRanges>();
            let _ = dashes.parse::<PageRanges>().map(|r| r.select(20));
        }
    }
}
