//! The prefix of a page, or of the pages that share a step, in the memory of the device that the decode graph runs on: copied once a
//! page, not once a step.

use std::borrow::Cow;

use ort::memory::AllocationDevice;
use ort::session::SessionInputValue;
use ort::value::Tensor;

use crate::graphs::runtime::Provider;
use crate::graphs::{Dims, StepInput};

/// The device of a session, and its number.
pub(super) type Place = (AllocationDevice<'static>, i32);

/// Where a session's tensors should lie; `None` for the CPU, which reads the caller's memory.
pub(super) fn place_of(provider: Provider) -> Option<Place> {
    match provider {
        Provider::Cpu => None,
        Provider::Cuda(device) => Some((AllocationDevice::CUDA, i32::try_from(device).unwrap_or(i32::MAX))),
    }
}

/// Keys and values of a page's prefix on a device.
pub(super) struct Resident {
    keys: Vec<Layer>,
    values: Vec<Layer>,
}

/// One layer: what it is a copy of, and the copy.
struct Layer {
    source: (*const f32, usize),
    tensor: Tensor<f32>,
}

// SAFETY: `source` is compared, never read.
#[expect(unsafe_code, reason = "a pointer that is only compared")]
unsafe impl Send for Layer {}

impl Resident {
    /// Copies what the first step of a page reads. The prefix never changes while its page is decoded, and parts of it that
    /// are gathered lie elsewhere, so an address tells whether a layer is here.
    pub(super) fn new(input: &StepInput<'_>, dims: Dims, place: &Place) -> Result<Resident, String> {
        let copied = |data: &[f32], shape: [usize; 4]| {
            let tensor =
                Tensor::from_array((shape, data.to_vec())).and_then(|t| t.to(place.0.clone(), place.1));
            let tensor = tensor.map_err(|e| format!("the prefix cannot be copied to the device: {e}"))?;
            Ok::<Layer, String>(Layer { source: (data.as_ptr(), data.len()), tensor })
        };
        let (pages, heads, width) = (input.pages, dims.kv_heads, dims.head_dim);
        let lens = || input.prefix_capacity.iter();
        let keys =
            lens().zip(&input.prefix_keys).map(|(&len, keys)| copied(keys, [pages, heads, len, width]));
        let values =
            lens().zip(&input.prefix_values).map(|(&len, values)| copied(values, [pages, heads, width, len]));
        Ok(Resident { keys: keys.collect::<Result<_, _>>()?, values: values.collect::<Result<_, _>>()? })
    }

    /// Is it a copy of what this step reads?
    pub(super) fn holds(&self, input: &StepInput<'_>) -> bool {
        self.keys
            .iter()
            .zip(&input.prefix_keys)
            .all(|(layer, keys)| layer.source == (keys.as_ptr(), keys.len()))
    }

    /// The copy of a layer's keys, as the input `name`.
    pub(super) fn keys<'a>(&'a self, layer: usize, name: &'a str, data: &[f32]) -> Option<Input<'a>> {
        self.keys.get(layer)?.input(name, data)
    }

    /// The copy of a layer's values, as the input `name`.
    pub(super) fn values<'a>(&'a self, layer: usize, name: &'a str, data: &[f32]) -> Option<Input<'a>> {
        self.values.get(layer)?.input(name, data)
    }
}

type Input<'a> = (Cow<'a, str>, SessionInputValue<'a>);

impl Layer {
    fn input<'a>(&'a self, name: &'a str, data: &[f32]) -> Option<Input<'a>> {
        (self.source == (data.as_ptr(), data.len())).then(|| (Cow::Borrowed(name), (&self.tensor).into()))
    }
}
