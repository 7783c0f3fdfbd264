//! Which part of the files one of several machines takes. Every machine is given the same inputs and plans the same folders;
//! a hash of a file's folder says whose it is, so that no machine needs to know another, or any page count. The parts are equal
//! in files, not in pages: with many more files than machines that comes to the same.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// Part `index` of `count`, 1-based.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    count: u32,
}

/// Why a shard cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a part such as `2/8`, counted from 1")]
pub struct ShardError(String);

impl Shard {
    /// Is what goes to `folder`, relative to the output folder, this shard's?
    pub fn holds(self, folder: &Path) -> bool {
        let sum = Sha256::digest(folder.as_os_str().as_bytes());
        // Eight bytes are many more than there are shards: what the remainder favours is nothing.
        let number = sum.iter().take(8).fold(0u64, |number, &byte| number << 8 | u64::from(byte));
        number % u64::from(self.count) == u64::from(self.index - 1)
    }

    /// `run-2-of-8.jsonl`
    pub fn journal_name(self) -> String {
        format!("run-{}-of-{}.jsonl", self.index, self.count)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let number = |digits: &str| -> Option<u32> {
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
        };
        text.split_once('/')
            .and_then(|(index, count)| Some(Shard { index: number(index)?, count: number(count)? }))
            .filter(|shard| (1..=shard.count).contains(&shard.index))
            .ok_or_else(|| ShardError(text.to_owned()))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(text: &str) -> Shard {
        text.parse().unwrap()
    }

    #[test]
    fn parts_are_counted_from_one() {
        assert_eq!(shard("2/8").to_string(), "2/8");
        for wrong in ["0/8", "9/8", "1/0", "2", "/", "-1/2", "+1/2", "1/2/3", "1/99999999999", ""] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_file_is_one_shards_and_the_shards_are_about_equal() {
        let shards: Vec<Shard> = (1..=4).map(|index| Shard { index, count: 4 }).collect();
        let mut held = [0; 4];
        for number in 0..4000 {
            let folder = format!("scans/{number:05}");
            let holders: Vec<usize> = (0..4).filter(|&k| shards[k].holds(Path::new(&folder))).collect();
            assert_eq!(holders.len(), 1);
            held[holders[0]] += 1;
        }
        // Five standard deviations of a fair draw.
        assert!(held.iter().all(|count| (863..=1137).contains(count)), "{held:?}");
    }

    #[test]
    fn the_parting_is_the_same_in_every_version() {
        // A run may be gone on with by another version: what changes this makes it do everything twice.
        let held: Vec<u32> = (0..12).filter(|n| shard("1/3").holds(Path::new(&format!("a/{n}")))).collect();
        assert_eq!(held, [7, 10]);
    }
}
