//! Checking a session against expected tensors, and tensors as views.

use std::borrow::Cow;
use std::fmt::{Debug, Display};
use std::path::Path;

use ort::session::{Session, SessionInputValue, SessionOutputs};
use ort::value::{Outlet, PrimitiveTensorElementType, TensorElementType, TensorRef};

use crate::graphs::manifest::PackError;
use crate::graphs::runtime::SessionOptions;
use crate::graphs::{GraphError, runtime};

/// Named inputs of one call.
pub(super) type Inputs<'a> = Vec<(Cow<'a, str>, SessionInputValue<'a>)>;

/// A tensor of the contract; `None` sizes may be anything.
pub(super) struct Expected {
    name: String,
    element: TensorElementType,
    shape: Vec<Option<usize>>,
}

pub(super) const F32: TensorElementType = TensorElementType::Float32;
pub(super) const I64: TensorElementType = TensorElementType::Int64;

pub(super) fn expected(
    name: impl Into<String>,
    element: TensorElementType,
    shape: &[Option<usize>],
) -> Expected {
    Expected { name: name.into(), element, shape: shape.to_vec() }
}

/// A session over the graph at `path` whose inputs and outputs fit. Inputs that nobody would feed are refused; further
/// outputs are not.
pub(super) fn open(
    path: &Path,
    options: SessionOptions,
    inputs: &[Expected],
    outputs: &[Expected],
) -> Result<Session, PackError> {
    checked(runtime::session(path, options)?, path, inputs, outputs)
}

/// `session`, which is over the graph at `path`, if its inputs and outputs fit.
pub(super) fn checked(
    session: Session,
    path: &Path,
    inputs: &[Expected],
    outputs: &[Expected],
) -> Result<Session, PackError> {
    check("input", session.inputs(), inputs)
        .and_then(|()| check("output", session.outputs(), outputs))
        .and_then(|()| {
            match session.inputs().iter().find(|o| inputs.iter().all(|want| want.name != o.name())) {
                Some(outlet) => Err(format!("input `{}` is not part of the contract", outlet.name())),
                None => Ok(()),
            }
        })
        .map_err(|message| PackError::File { path: path.to_path_buf(), message })?;
    Ok(session)
}

/// Checks that `found` holds the `needed` tensors.
fn check(side: &str, found: &[Outlet], needed: &[Expected]) -> Result<(), String> {
    for want in needed {
        let name = &want.name;
        let outlet =
            found.iter().find(|o| o.name() == name).ok_or_else(|| format!("missing {side} `{name}`"))?;
        let (Some(element), Some(shape)) = (outlet.dtype().tensor_type(), outlet.dtype().tensor_shape())
        else {
            return Err(format!("{side} `{name}` is not a tensor"));
        };
        if element != want.element {
            return Err(format!("{side} `{name}` is {element}, expected {}", want.element));
        }
        if shape.len() != want.shape.len() {
            return Err(format!("{side} `{name}` has rank {}, expected {}", shape.len(), want.shape.len()));
        }
        for (axis, (&have, size)) in shape.iter().zip(&want.shape).enumerate() {
            if let Some(size) = size.filter(|&size| have >= 0 && have != size as i64) {
                return Err(format!("{side} `{name}` has size {have} on axis {axis}, expected {size}"));
            }
        }
    }
    Ok(())
}

/// Does the graph leave the size of the first axis of its input `name` open?
pub(super) fn first_axis_is_free(inputs: &[Outlet], name: &str) -> bool {
    let outlet = inputs.iter().find(|outlet| outlet.name() == name);
    outlet
        .and_then(|outlet| outlet.dtype().tensor_shape())
        .and_then(|shape| shape.first())
        .is_some_and(|&size| size < 0)
}

/// Names of a tensor that each layer has.
pub(super) fn layer_names(stem: &str, layers: usize) -> Vec<String> {
    (0..layers).map(|layer| format!("{stem}.{layer}")).collect()
}

pub(super) fn graph_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(super) fn failed(graph: &str, error: impl Display) -> GraphError {
    GraphError { graph: graph.to_owned(), message: error.to_string() }
}

/// `data` as the input `name` of the given shape, not copied. Sizes of 0 are fine.
pub(super) fn view<'a, T: PrimitiveTensorElementType + Clone + Debug + 'static>(
    name: &'a str,
    data: &'a [T],
    shape: Vec<usize>,
) -> Result<(Cow<'a, str>, SessionInputValue<'a>), String> {
    let tensor = TensorRef::from_array_view((shape, data)).map_err(|e| format!("input `{name}`: {e}"))?;
    Ok((Cow::Borrowed(name), tensor.into()))
}

/// A copy of the values of an output.
pub(super) fn values<T: PrimitiveTensorElementType + Clone>(
    outputs: &SessionOutputs<'_>,
    name: &str,
) -> Result<Vec<T>, String> {
    let value = outputs.get(name).ok_or_else(|| format!("no output `{name}`"))?;
    let (_, data) = value.try_extract_tensor::<T>().map_err(|e| format!("output `{name}`: {e}"))?;
    Ok(data.to_vec())
}
