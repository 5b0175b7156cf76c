//! Tensors out of a safetensors file, one at a time: a model is never in memory twice.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::io::{BufReader, Read, Seek, SeekFrom};

/// A safetensors file. What it says about itself is believed only as far as its tensors can be read.
pub(super) struct Weights<R> {
    file: BufReader<R>,
    header: HashMap<String, Box<RawValue>>,
    /// Where the header ends.
    data: u64,
}

/// No model has a header that is longer.
const MAX_HEADER: u64 = 16 << 20;

#[derive(Deserialize)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

impl<R: Read + Seek> Weights<R> {
    /// Reads the header.
    pub(super) fn new(file: R) -> Result<Self, String> {
        let mut file = BufReader::with_capacity(1 << 16, file);
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(|error| format!("its header cannot be read: {error}"))?;
        let length = u64::from_le_bytes(length);
        if length > MAX_HEADER {
            return Err("it is not a safetensors file".to_owned());
        }
        let header = serde_json::from_reader(file.by_ref().take(length))
            .map_err(|error| format!("its header is no JSON object: {error}"))?;
        Ok(Self { file, header, data: 8 + length })
    }

    /// Whether there is such a tensor.
    pub(super) fn has(&self, name: &str) -> bool {
        self.header.contains_key(name)
    }

    /// All numbers of a tensor, which must have this shape.
    pub(super) fn read(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let mut numbers = Vec::new();
        self.read_rows(name, shape, |row| numbers.extend_from_slice(row))?;
        Ok(numbers)
    }

    /// Reads a tensor row by row: what lies along its last dimension.
    pub(super) fn read_rows(
        &mut self,
        name: &str,
        shape: &[usize],
        mut take: impl FnMut(&[f32]),
    ) -> Result<(), String> {
        let Tensor { dtype, shape: found, data_offsets: [start, end] } = self.tensor(name)?;
        if found != shape {
            return Err(format!(
                "the tensor {name} has the shape {found:?} where config.json means {shape:?}"
            ));
        }
        let (size, decode): (usize, fn(&[u8]) -> f32) = match dtype.as_str() {
            "F32" => (4, |bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
            "F16" => (2, |bytes| f16_to_f32(u16::from_le_bytes([bytes[0], bytes[1]]))),
            "BF16" => (2, |bytes| bf16_to_f32(u16::from_le_bytes([bytes[0], bytes[1]]))),
            _ => return Err(format!("the tensor {name} holds {dtype}, not F32, F16 or BF16")),
        };
        let width = shape.last().copied().unwrap_or(1);
        let length = shape.iter().try_fold(size as u64, |length, side| length.checked_mul(*side as u64));
        if length.is_none() || length != end.checked_sub(start) {
            return Err(format!("the tensor {name} has another length than its shape"));
        }
        let mut bytes = vec![0; width * size];
        let mut row = Vec::with_capacity(width);
        let at = self.data.checked_add(start).ok_or_else(|| format!("the tensor {name} lies nowhere"))?;
        let read = |error| format!("the tensor {name} cannot be read: {error}");
        self.file.seek(SeekFrom::Start(at)).map_err(read)?;
        for _ in 0..shape.iter().product::<usize>() / width {
            self.file.read_exact(&mut bytes).map_err(read)?;
            row.clear();
            row.extend(bytes.chunks_exact(size).map(decode));
            if !row.iter().all(|number| number.is_finite()) {
                return Err(format!("the tensor {name} holds something that is no number"));
            }
            take(&row);
        }
        Ok(())
    }

    fn tensor(&self, name: &str) -> Result<Tensor, String> {
        let entry = self.header.get(name).ok_or_else(|| format!("there is no tensor {name}"))?;
        serde_json::from_str(entry.get())
            .map_err(|error| format!("the tensor {name} is described wrongly: {error}"))
    }
}

/// A float of half the size: 5 bits of exponent, 10 of mantissa.
fn f16_to_f32(bits: u16) -> f32 {
    if bits & 0x7c00 == 0x7c00 {
        return f32::NAN;
    }
    // Moved to where a float has them, the bits mean 2¹¹² less; that holds for the smallest ones too.
    let magnitude = f32::from_bits(u32::from(bits & 0x7fff) << 13) * 2f32.powi(112);
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

/// The upper half of a float.
fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::super::tiny::file;
    use super::*;
    use std::io::Cursor;

    fn read(file: &[u8], name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        Weights::new(Cursor::new(file))?.read(name, shape)
    }

    fn one(dtype: &str, bytes: &[u8]) -> Result<Vec<f32>, String> {
        let header = format!(
            r#"{{"__metadata__":{{"format":"pt"}},"t":{{"dtype":"{dtype}","shape":[2],"data_offsets":[0,{}]}}}}  "#,
            bytes.len()
        );
        read(&file(&header, bytes), "t", &[2])
    }

    #[test]
    fn floats_of_all_sizes_are_read() {
        let expected = Ok(vec![1.5, -0.25]);
        assert_eq!(one("F32", &[1.5_f32.to_le_bytes(), (-0.25_f32).to_le_bytes()].concat()), expected);
        assert_eq!(one("BF16", &[0xc0, 0x3f, 0x80, 0xbe]), expected);
        assert_eq!(one("F16", &[0x00, 0x3e, 0x00, 0xb4]), expected);
        // The largest and the smallest half.
        assert_eq!(one("F16", &[0xff, 0x7b, 0x01, 0x00]), Ok(vec![65504.0, 2f32.powi(-24)]));
    }

    #[test]
    fn what_is_no_model_is_refused_with_a_reason() {
        let check = |result: Result<Vec<f32>, String>, reason: &str| {
            assert!(
                result.as_ref().is_err_and(|error| error.contains(reason)),
                "{result:?} does not say {reason:?}"
            );
        };
        let tensor =
            |offsets: &str| format!(r#"{{"t":{{"dtype":"F32","shape":[2],"data_offsets":{offsets}}}}}"#);
        check(read(b"PK", "t", &[2]), "header cannot be read");
        check(read(b"PK\x03\x04 a zip archive", "t", &[2]), "not a safetensors file");
        check(read(&file("[]", &[]), "t", &[2]), "no JSON object");
        check(read(&9u64.to_le_bytes(), "t", &[2]), "no JSON object");
        check(read(&file("{}", &[]), "t", &[2]), "there is no tensor t");
        check(read(&file(r#"{"t":1}"#, &[]), "t", &[2]), "described wrongly");
        check(read(&file(&tensor("[0,8]"), &[0; 8]), "t", &[3]), "shape [2] where config.json means [3]");
        check(read(&file(&tensor("[0,4]"), &[0; 8]), "t", &[2]), "another length");
        check(read(&file(&tensor("[8,0]"), &[0; 8]), "t", &[2]), "another length");
        check(read(&file(&tensor("[0,8]"), &[0; 7]), "t", &[2]), "cannot be read");
        check(
            read(&file(&tensor("[18446744073709551607,18446744073709551615]"), &[]), "t", &[2]),
            "lies nowhere",
        );
        check(one("I8", &[0, 0]), "holds I8");
        check(one("F32", &[f32::NAN.to_le_bytes(); 2].concat()), "no number");
        check(one("F16", &[0x00, 0x7c, 0, 0]), "no number");
        let huge = format!(r#"{{"t":{{"dtype":"F32","shape":[{0},{0}],"data_offsets":[0,0]}}}}"#, usize::MAX);
        check(read(&file(&huge, &[]), "t", &[usize::MAX; 2]), "another length");
    }
}
