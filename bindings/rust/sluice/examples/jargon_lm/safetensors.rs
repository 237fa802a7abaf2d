//! Loads a safetensors file. Every offset comes from the file, so every offset is checked before it is used.

use crate::json::Json;
use sluice::F16;
use std::collections::BTreeMap;
use std::path::Path;

/// Values in float, and extents.
pub struct Tensor {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

pub fn load(path: &Path) -> Result<BTreeMap<String, Tensor>, String> {
    let explain = |what: String| format!("{}: {what}", path.display());
    let bytes = std::fs::read(path).map_err(|error| explain(error.to_string()))?;
    parse(&bytes).map_err(explain)
}

fn parse(bytes: &[u8]) -> Result<BTreeMap<String, Tensor>, String> {
    let size = bytes.get(..8).ok_or("is too short for a header")?;
    let size = u64::from_le_bytes(size.try_into().expect("8 bytes"));
    let end = usize::try_from(size).ok().and_then(|size| size.checked_add(8)).unwrap_or(usize::MAX);
    let header = bytes.get(8..end).ok_or("its header is longer than the file")?;
    let data = &bytes[end..];
    let header = std::str::from_utf8(header).map_err(|_| "its header is not UTF-8")?;
    let mut tensors = BTreeMap::new();
    for (name, entry) in Json::parse(header)?.members()? {
        if name != "__metadata__" {
            let tensor = tensor(entry, data).map_err(|what| format!("{name}: {what}"))?;
            tensors.insert(name.clone(), tensor);
        }
    }
    Ok(tensors)
}

fn tensor(entry: &Json, data: &[u8]) -> Result<Tensor, String> {
    let dtype = entry.get("dtype")?.text()?;
    if dtype != "F16" {
        return Err(format!("is {dtype}, not F16"));
    }
    let counts = |name| entry.get(name)?.list()?.iter().map(Json::count).collect::<Result<Vec<_>, String>>();
    let (shape, offsets) = (counts("shape")?, counts("data_offsets")?);
    let elements = shape.iter().try_fold(1usize, |product, extent| product.checked_mul(*extent));
    let bytes = match offsets[..] {
        [begin, end] => data.get(begin..end),
        _ => None,
    };
    match (bytes, elements.and_then(|elements| elements.checked_mul(2))) {
        (Some(bytes), Some(size)) if bytes.len() == size => {
            let half = |pair: &[u8]| F16(u16::from_le_bytes([pair[0], pair[1]])).to_f32();
            Ok(Tensor { shape, values: bytes.chunks_exact(2).map(half).collect() })
        }
        _ => Err("is not within the file".into()),
    }
}
