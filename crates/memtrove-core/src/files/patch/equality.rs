//! When two JSON values are the same (RFC 6902 §4.6).

use serde_json::{Number, Value};
use std::cmp::Ordering;

/// Whether two values say the same: numbers by value whatever their spelling, objects whatever their order.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => equal_numbers(left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same = |(name, value)| right.get(name).is_some_and(|other| equal(value, other));
            left.len() == right.len() && left.iter().all(same)
        }
        _ => left == right,
    }
}

/// Exact: a number may have more digits than any machine type. Only exponents of forty digits and more, which no
/// decimal here has room for, are compared as they are written.
fn equal_numbers(left: &Number, right: &Number) -> bool {
    left == right
        || matches!((Decimal::of(left), Decimal::of(right)), (Some(left), Some(right)) if left == right)
}

/// Which of two numbers is larger, exactly. `None` only beside an exponent of forty digits and more.
pub(crate) fn compare_numbers(left: &Number, right: &Number) -> Option<Ordering> {
    let (left, right) = (Decimal::of(left)?, Decimal::of(right)?);
    let magnitudes = || left.exponent.cmp(&right.exponent).then_with(|| left.digits.cmp(&right.digits));
    Some(left.sign().cmp(&right.sign()).then_with(|| match left.sign() {
        0 => Ordering::Equal,
        1 => magnitudes(),
        _ => magnitudes().reverse(),
    }))
}

/// A number as `0.digits × 10^exponent` with neither leading nor trailing zeros: one form for one value.
#[derive(PartialEq)]
struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i128,
}

impl Decimal {
    fn of(number: &Number) -> Option<Self> {
        let text = number.as_str();
        let (negative, magnitude) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
        let Some(first) = digits.iter().position(|digit| *digit != b'0') else {
            return Some(Self { negative: false, digits: Vec::new(), exponent: 0 });
        };
        let last = digits.iter().rposition(|digit| *digit != b'0').unwrap_or(first);
        let exponent = exponent.parse::<i128>().ok()?.checked_add(whole.len() as i128 - first as i128)?;
        Some(Self { negative, digits: digits[first..=last].to_vec(), exponent })
    }

    fn sign(&self) -> i8 {
        match (self.digits.is_empty(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }
}
