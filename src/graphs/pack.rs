//! A model pack: a folder with a checked manifest, a tokenizer, and the graphs that sessions are made from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::manifest::{MANIFEST_FILE, Manifest, PackError, Preprocessing};
use super::onnx::{
    MultiTokenHead, OnnxDecodeGraph, PictureGraph, PrefillGraph, PromptGraph, StepExtras, VisionGraph,
};
use super::runtime::{Profiling, SessionOptions};
use crate::tokens::Grammar;
use crate::tokens::vocabulary::Vocabulary;

/// Files up to this size are hashed at every start (about 0.1 s for all of a small pack); larger ones by [`Pack::verify`] only.
const HASHED_AT_START: u64 = 64 << 20;

/// A loaded pack. Sessions are made per worker.
#[derive(Clone, Debug)]
pub struct Pack {
    pub dir: PathBuf,
    pub manifest: Manifest,
    /// Token protocol and grammar.
    pub grammar: Arc<Grammar>,
    /// Sha256 of the manifest, which holds the hashes of all other files: the pack's identity.
    pub sha256: String,
}

impl Pack {
    /// Loads `dir/docparse.json` and the tokenizer and checks that every file is there and, if small, unchanged.
    pub fn load(dir: &Path) -> Result<Pack, PackError> {
        let (manifest, bytes) = Manifest::load(dir)?;
        check_files(dir, &manifest, HASHED_AT_START)?;
        let vocabulary = Vocabulary::load(&dir.join(&manifest.tokenizer))?;
        let grammar = Grammar::new(&manifest, vocabulary).map_err(|(field, message)| PackError::Field {
            path: dir.join(MANIFEST_FILE),
            field,
            message,
        })?;
        Ok(Pack {
            dir: dir.to_path_buf(),
            manifest,
            grammar: Arc::new(grammar),
            sha256: hex(&Sha256::digest(&bytes)),
        })
    }

    /// Checks the hash of every file.
    pub fn verify(&self) -> Result<(), PackError> {
        check_files(&self.dir, &self.manifest, u64::MAX)
    }

    /// What the decode graph returns beyond the contract's least.
    pub fn step_extras(&self) -> StepExtras {
        StepExtras {
            focal_layers: self.manifest.extras.focal_layers.clone(),
            saliency: self.manifest.extras.saliency,
        }
    }

    /// The decode graph on `threads` threads of the CPU, profiled.
    pub fn profiled_decode_graph(
        &self,
        profiling: Profiling<'_>,
        threads: usize,
    ) -> Result<OnnxDecodeGraph, PackError> {
        let path = self.dir.join(&self.manifest.graphs.decode);
        let (dims, extras) = (self.manifest.dims.into(), self.step_extras());
        OnnxDecodeGraph::load_profiled(&path, dims, &extras, threads.into(), Some(profiling))
    }

    /// The decode graph, with its multi-token head if there is one, as `options` say.
    pub fn decode_graph(&self, options: impl Into<SessionOptions>) -> Result<OnnxDecodeGraph, PackError> {
        let (options, dims) = (options.into(), self.manifest.dims.into());
        let extras = self.step_extras();
        let head = self.manifest.graphs.mtp.as_ref();
        let head = head.map(|name| MultiTokenHead::load(&self.dir.join(name), dims, options)).transpose()?;
        let path = self.dir.join(&self.manifest.graphs.decode);
        Ok(OnnxDecodeGraph::load(&path, dims, &extras, options)?.with_head(head))
    }

    /// The vision graph as `options` say.
    pub fn vision_graph(&self, options: impl Into<SessionOptions>) -> Result<VisionGraph, PackError> {
        VisionGraph::load(&self.dir.join(&self.manifest.graphs.vision), options)
    }

    /// The vision graph of a pack that reads a picture.
    pub fn picture_graph(&self, options: impl Into<SessionOptions>) -> Result<PictureGraph, PackError> {
        let path = self.dir.join(&self.manifest.graphs.vision);
        PictureGraph::load(&path, &self.manifest.preprocessing, self.manifest.dims.hidden, options)
    }

    /// The prefill graph of a pack that reads a picture, or both of them, as `options` say.
    pub fn prompt_graph(&self, options: impl Into<SessionOptions>) -> Result<PromptGraph, PackError> {
        let path = self.dir.join(&self.manifest.graphs.prefill);
        PromptGraph::load(&path, self.upper_prefill(), self.manifest.dims.into(), options)
    }

    /// The prefill graph, or both of them, as `options` say.
    pub fn prefill_graph(&self, options: impl Into<SessionOptions>) -> Result<PrefillGraph, PackError> {
        let path = self.dir.join(&self.manifest.graphs.prefill);
        let characters = match &self.manifest.preprocessing {
            Preprocessing::FixedGrid(grid) => grid.characters,
            _ => None,
        };
        PrefillGraph::load(&path, self.upper_prefill(), self.manifest.dims.into(), characters, options)
    }

    /// The graph of the layers above `extras.tsp_layer`, and the first of them.
    fn upper_prefill(&self) -> Option<(PathBuf, usize)> {
        let path = self.manifest.graphs.prefill_upper.as_ref().map(|name| self.dir.join(name));
        path.zip(self.manifest.extras.tsp_layer.map(|layer| layer + 1))
    }
}

/// Every listed file is there; those of at most `hashed_up_to` bytes have their listed hash. Files are hashed in parallel; the
/// first one in the list's order that is wrong is the error.
fn check_files(dir: &Path, manifest: &Manifest, hashed_up_to: u64) -> Result<(), PackError> {
    let check = |(name, wanted): (&String, &String)| check_file(dir.join(name), wanted, hashed_up_to).err();
    manifest.files.par_iter().find_map_first(check).map_or(Ok(()), Err)
}

fn check_file(path: PathBuf, wanted: &str, hashed_up_to: u64) -> Result<(), PackError> {
    let found = std::fs::metadata(&path).and_then(|file| match file.len() {
        size if size > hashed_up_to => Ok(None),
        _ => sha256_of(&path).map(Some),
    });
    let message = match found {
        Ok(None) => return Ok(()),
        Ok(Some(found)) if found == wanted => return Ok(()),
        Ok(Some(found)) => format!("sha256 is {found}, but {MANIFEST_FILE} says {wanted}"),
        Err(error) => error.to_string(),
    };
    Err(PackError::File { path, message })
}

fn sha256_of(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match std::io::Read::read(&mut file, &mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            n => hash.update(&buffer[..n]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
