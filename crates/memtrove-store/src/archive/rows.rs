//! A row as bytes: each value with its kind before it, so that equal rows are equal bytes in every engine.

use super::tables::{Column, ColumnKind};
use crate::{Row, StoreError, Value};
use uuid::Uuid;

const NULL: u8 = 0;
const INT: u8 = 1;
const REAL: u8 = 2;
const TEXT: u8 = 3;
const BYTES: u8 = 4;
const UUID: u8 = 5;

/// Appends a row that was read with these columns.
pub(super) fn append_row(bytes: &mut Vec<u8>, columns: &[Column], row: &dyn Row) -> Result<(), StoreError> {
    for (at, column) in columns.iter().enumerate() {
        append(
            bytes,
            match column.kind {
                ColumnKind::Int => row.opt_int(at)?.into(),
                ColumnKind::Real => row.opt_real(at)?.into(),
                ColumnKind::Text => row.opt_text(at)?.into(),
                ColumnKind::Bytes => row.opt_bytes(at)?.into(),
                ColumnKind::Uuid => row.opt_uuid(at)?.into(),
            },
        )?;
    }
    Ok(())
}

/// Appends a value.
pub(super) fn append(bytes: &mut Vec<u8>, value: Value<'_>) -> Result<(), StoreError> {
    let kind = |bytes: &mut Vec<u8>, kind: u8, value: &[u8]| {
        bytes.push(kind);
        bytes.extend_from_slice(value);
    };
    match value {
        Value::Null => bytes.push(NULL),
        Value::Int(value) => kind(bytes, INT, &value.to_le_bytes()),
        Value::Real(value) => kind(bytes, REAL, &value.to_bits().to_le_bytes()),
        Value::Text(value) => {
            kind(bytes, TEXT, &length(value.len())?);
            bytes.extend_from_slice(value.as_bytes());
        }
        Value::Bytes(value) => {
            kind(bytes, BYTES, &length(value.len())?);
            bytes.extend_from_slice(value);
        }
        Value::Uuid(value) => kind(bytes, UUID, value.as_bytes()),
        Value::Uuids(_) | Value::Ints(_) => {
            return Err(StoreError::Broken("a list is no value of a row".into()));
        }
    }
    Ok(())
}

fn length(length: usize) -> Result<[u8; 4], StoreError> {
    let length = u32::try_from(length).map_err(|_| StoreError::Broken("a value of 4 GiB or more".into()))?;
    Ok(length.to_le_bytes())
}

/// Takes a value of this kind off the front; `None` if there is none.
pub(super) fn take<'a>(bytes: &mut &'a [u8], kind: ColumnKind) -> Option<Value<'a>> {
    let (found, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(match (*found, kind) {
        (NULL, _) => Value::Null,
        (INT, ColumnKind::Int) => Value::Int(i64::from_le_bytes(take_array(bytes)?)),
        (REAL, ColumnKind::Real) => Value::Real(f64::from_bits(u64::from_le_bytes(take_array(bytes)?))),
        (TEXT, ColumnKind::Text) => Value::Text(std::str::from_utf8(take_counted(bytes)?).ok()?),
        (BYTES, ColumnKind::Bytes) => Value::Bytes(take_counted(bytes)?),
        (UUID, ColumnKind::Uuid) => Value::Uuid(Uuid::from_bytes(take_array(bytes)?)),
        _ => return None,
    })
}

/// Takes a row of these columns off the front; `None` if there is none.
pub(super) fn take_row<'a, 'c>(
    bytes: &mut &'a [u8],
    columns: impl IntoIterator<Item = &'c Column>,
) -> Option<Vec<Value<'a>>> {
    columns.into_iter().map(|column| take(bytes, column.kind)).collect()
}

fn take_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*array)
}

fn take_counted<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_le_bytes(take_array(bytes)?) as usize;
    let (counted, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(counted)
}
