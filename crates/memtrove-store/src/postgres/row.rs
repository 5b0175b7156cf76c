//! Parameters on their way into the database, and columns on their way out.

use crate::{Row, StoreError, Value};
use std::error::Error;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use uuid::Uuid;

/// A parameter that outlives the call it came with.
#[derive(Debug)]
pub(super) enum Parameter {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Bytes(Vec<u8>),
    Uuid(Uuid),
    Uuids(Vec<Uuid>),
    Ints(Vec<i64>),
}

impl From<&Value<'_>> for Parameter {
    fn from(value: &Value<'_>) -> Self {
        match *value {
            Value::Null => Self::Null,
            Value::Int(value) => Self::Int(value),
            Value::Real(value) => Self::Real(value),
            Value::Text(value) => Self::Text(value.to_owned()),
            Value::Bytes(value) => Self::Bytes(value.to_owned()),
            Value::Uuid(value) => Self::Uuid(value),
            Value::Uuids(values) => Self::Uuids(values.to_owned()),
            Value::Ints(values) => Self::Ints(values.to_owned()),
        }
    }
}

/// The type a parameter is declared with. Saying it, instead of having it guessed from the place it stands at, makes a
/// statement mean the same on every engine.
pub(super) fn type_of(value: &Value<'_>) -> Type {
    match value {
        Value::Null => Type::UNKNOWN,
        Value::Int(_) => Type::INT8,
        Value::Real(_) => Type::FLOAT8,
        Value::Text(_) => Type::TEXT,
        Value::Bytes(_) => Type::BYTEA,
        Value::Uuid(_) => Type::UUID,
        Value::Uuids(_) => Type::UUID_ARRAY,
        Value::Ints(_) => Type::INT8_ARRAY,
    }
}

impl ToSql for Parameter {
    fn to_sql(&self, of: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Int(value) => value.to_sql(of, out),
            Self::Real(value) => value.to_sql(of, out),
            Self::Text(value) => value.to_sql(of, out),
            Self::Bytes(value) => value.to_sql(of, out),
            Self::Uuid(value) => value.to_sql(of, out),
            Self::Uuids(values) => values.to_sql(of, out),
            Self::Ints(values) => values.to_sql(of, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        // Each is declared with its own type, so that the database has refused what does not fit.
        true
    }

    to_sql_checked!();
}

/// A column as it came over the wire.
struct Raw<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

pub(super) struct PostgresRow(pub tokio_postgres::Row);

impl PostgresRow {
    fn value(&self, column: usize) -> Result<Option<(&Type, &[u8])>, StoreError> {
        let of = self.0.columns().get(column).map(|column| column.type_());
        let of = of.ok_or_else(|| StoreError::Broken(format!("the statement has no column {column}")))?;
        let raw: Option<Raw<'_>> =
            self.0.try_get(column).map_err(|error| StoreError::Broken(error.to_string()))?;
        Ok(raw.map(|raw| (of, raw.0)))
    }
}

fn mistyped(column: usize, of: &Type, wanted: &str) -> StoreError {
    StoreError::Broken(format!("column {column} holds {of} where {wanted} was asked for"))
}

impl Row for PostgresRow {
    fn opt_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        let Some((of, raw)) = self.value(column)? else { return Ok(None) };
        let wrong = || mistyped(column, of, "an integer");
        let value = match *of {
            Type::INT8 => i64::from_be_bytes(raw.try_into().map_err(|_| wrong())?),
            Type::INT4 => i32::from_be_bytes(raw.try_into().map_err(|_| wrong())?).into(),
            Type::BOOL => i64::from(raw == [1]),
            // What `SUM` makes of integers.
            Type::NUMERIC => whole_number(raw).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        };
        Ok(Some(value))
    }

    fn opt_real(&self, column: usize) -> Result<Option<f64>, StoreError> {
        let Some((of, raw)) = self.value(column)? else { return Ok(None) };
        let wrong = || mistyped(column, of, "a double");
        match *of {
            Type::FLOAT8 => Ok(Some(f64::from_be_bytes(raw.try_into().map_err(|_| wrong())?))),
            _ => Err(wrong()),
        }
    }

    /// Also of bytes: where text may hold U+0000, which the database's own cannot.
    fn opt_text(&self, column: usize) -> Result<Option<&str>, StoreError> {
        let Some((of, raw)) = self.value(column)? else { return Ok(None) };
        match *of {
            Type::TEXT | Type::BYTEA | Type::NAME | Type::UNKNOWN => {
                std::str::from_utf8(raw).map(Some).map_err(|_| mistyped(column, of, "UTF-8"))
            }
            _ => Err(mistyped(column, of, "a text")),
        }
    }

    fn opt_bytes(&self, column: usize) -> Result<Option<&[u8]>, StoreError> {
        let Some((of, raw)) = self.value(column)? else { return Ok(None) };
        match *of {
            Type::BYTEA => Ok(Some(raw)),
            _ => Err(mistyped(column, of, "bytes")),
        }
    }

    fn opt_uuid(&self, column: usize) -> Result<Option<Uuid>, StoreError> {
        let Some((of, raw)) = self.value(column)? else { return Ok(None) };
        match *of {
            Type::UUID => Uuid::from_slice(raw).map(Some).map_err(|_| mistyped(column, of, "a UUID")),
            _ => Err(mistyped(column, of, "a UUID")),
        }
    }
}

/// A `NUMERIC` without a fraction, as it is sent: how many digits to the base 10,000 follow, the place of the first, the
/// sign, how many places to show; then the digits.
fn whole_number(raw: &[u8]) -> Option<i64> {
    let mut parts = raw.chunks_exact(2).map(|part| i16::from_be_bytes([part[0], part[1]]));
    let (count, weight, sign, _) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let mut value: i128 = 0;
    for place in (0..=weight.max(-1)).rev() {
        let digit = if weight - place < count { parts.next()? } else { 0 };
        value = value.checked_mul(10_000)?.checked_add(digit.into())?;
    }
    if parts.next().is_some() {
        return None;
    }
    let negative = sign == 0x4000;
    i64::try_from(if negative { -value } else { value }).ok()
}

#[cfg(test)]
mod tests {
    use super::whole_number;

    fn numeric(weight: i16, sign: i16, digits: &[i16]) -> Vec<u8> {
        let head = [digits.len() as i16, weight, sign, 0];
        head.iter().chain(digits).flat_map(|part| part.to_be_bytes()).collect()
    }

    #[test]
    fn whole_numbers_are_read() {
        assert_eq!(whole_number(&numeric(0, 0, &[])), Some(0));
        assert_eq!(whole_number(&numeric(0, 0, &[7])), Some(7));
        assert_eq!(whole_number(&numeric(1, 0, &[1, 234])), Some(10_234));
        assert_eq!(whole_number(&numeric(2, 0x4000, &[3])), Some(-300_000_000));
        assert_eq!(whole_number(&numeric(4, 0, &[922, 3372, 368, 5477, 5807])), Some(i64::MAX));
    }

    #[test]
    fn what_is_no_whole_number_is_refused() {
        assert_eq!(whole_number(&numeric(-1, 0, &[5000])), None, "a half");
        assert_eq!(whole_number(&numeric(9, 0, &[1])), None, "more than 64 bits");
        assert_eq!(whole_number(&[0, 1]), None);
    }
}
