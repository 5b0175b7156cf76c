//! Values that people write as text: lengths of time, numbers of bytes, addresses, layers.
//!
//! Lengths of time and numbers of bytes are read by hand. `jiff`'s duration knows no days, so it refuses `1d` and `P1D`, and it
//! takes `1.5s` and `10 minutes`; `bytesize` takes `1.5MiB` and `20M`, and makes the largest number of one that is too large. The
//! documentation says otherwise of each.

use memtrove_core::memories::Layer;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

/// A length of time, written `10s`, `1500ms`, `5m`, `2h`, `1d`, or as ISO 8601 (`PT10M`). A bare number is seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

const SPAN_IS: &str = "a length of time such as \"10s\", \"5m\" or \"PT10M\"";
const SPAN_UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl Span {
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    pub const fn hours(hours: u64) -> Self {
        Self::seconds(hours * 3600)
    }

    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not {SPAN_IS}");
        let trimmed = text.trim();
        if trimmed.starts_with(['P', 'p']) {
            // The rule for periods refuses zero, which is a sensible pause.
            let zero = trimmed.eq_ignore_ascii_case("PT0S");
            let micros = if zero { Some(0) } else { memtrove_core::period::parse(trimmed) };
            let micros = micros.and_then(|micros| u64::try_from(micros).ok()).ok_or_else(wrong)?;
            return Ok(Self(Duration::from_micros(micros)));
        }
        let (number, unit) = split_unit(trimmed).ok_or_else(wrong)?;
        let unit = if unit.is_empty() { "s" } else { unit };
        let millis = SPAN_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
        number.checked_mul(millis).map(Self::millis).ok_or_else(wrong)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let (unit, size) = SPAN_UNITS
            .iter()
            .rev()
            .find(|(_, size)| millis >= u128::from(*size) && millis.is_multiple_of(u128::from(*size)))
            .unwrap_or(&("ms", 1));
        write!(f, "{}{unit}", millis / u128::from(*size))
    }
}

/// A number of bytes, written `20MiB`, `512 KiB`, `10MB` or as a bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

const BYTES_ARE: &str = "a number of bytes such as \"20MiB\", \"512KiB\" or 1048576";
const BYTE_UNITS: [(&str, u64); 8] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
    ("", 1),
];

impl Bytes {
    pub const fn mebi(count: u64) -> Self {
        Self(count << 20)
    }
}

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not {BYTES_ARE}");
        let (number, unit) = split_unit(text.trim()).ok_or_else(wrong)?;
        let size = BYTE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(wrong)?.1;
        number.checked_mul(size).map(Self).ok_or_else(wrong)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = BYTE_UNITS[..3]
            .iter()
            .find(|(_, size)| self.0 >= *size && self.0.is_multiple_of(*size))
            .unwrap_or(&("B", 1));
        write!(f, "{}{unit}", self.0 / size)
    }
}

/// `12` and `ms` of `12 ms`.
fn split_unit(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim_start()))
}

/// Where to listen: `127.0.0.1:7077`, `[::1]:7077` or `localhost:7077`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen(pub SocketAddr);

const LISTEN_IS: &str = "an address with a port such as \"127.0.0.1:7077\" or \"[::]:7077\"";

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let local = |port: &str| port.parse().ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let address = match text.trim().strip_prefix("localhost:") {
            Some(port) => local(port),
            None => text.trim().parse().ok(),
        };
        address.map(Self).ok_or_else(|| format!("'{text}' is not {LISTEN_IS}"))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A layer of memories, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerName(pub Layer);

const LAYER_IS: &str = "a layer: agent, user, session, project, team, org or company";

impl FromStr for LayerName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Layer::parse(text.trim()).map(Self).ok_or_else(|| format!("'{text}' is not {LAYER_IS}"))
    }
}

impl fmt::Display for LayerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// Reads a type from its text form, or from a number written in the same notation.
struct FromText<T>(&'static str, std::marker::PhantomData<T>);

impl<T: FromStr<Err = String>> Visitor<'_> for FromText<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

macro_rules! as_text {
    ($type:ty, $expected:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(FromText($expected, std::marker::PhantomData))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

as_text!(Span, SPAN_IS);
as_text!(Bytes, BYTES_ARE);
as_text!(Listen, LISTEN_IS);
as_text!(LayerName, LAYER_IS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_in_every_notation() {
        let check = |text: &str, millis: u64| {
            assert_eq!(text.parse::<Span>().unwrap().0, Duration::from_millis(millis), "{text}");
        };
        check("10s", 10_000);
        check("100ms", 100);
        check("5m", 300_000);
        check(" 2 h ", 7_200_000);
        check("1d", 86_400_000);
        check("30", 30_000);
        check("0s", 0);
        check("PT10M", 600_000);
        check("pt0.5s", 500);
        check("PT0S", 0);
        check("P1D", 86_400_000);
        for wrong in [
            "",
            "s",
            "10 minutes",
            "-1s",
            "1.5s",
            "P",
            "PT",
            "99999999999999999999d",
            "18446744073709551615d",
        ] {
            assert!(wrong.parse::<Span>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn spans_and_bytes_print_as_they_are_written() {
        for text in ["10s", "100ms", "10m", "2h", "1d", "90s", "0ms"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        for text in ["20MiB", "512KiB", "3GiB", "1000B", "0B"] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn bytes_are_read_in_every_notation() {
        let check = |text: &str, bytes: u64| assert_eq!(text.parse::<Bytes>().unwrap().0, bytes, "{text}");
        check("20MiB", 20 << 20);
        check("20 mib", 20 << 20);
        check("1KiB", 1024);
        check("10MB", 10_000_000);
        check("4096", 4096);
        for wrong in ["", "MiB", "1.5MiB", "-1", "20MoB", "99999999999GiB"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_need_a_port() {
        assert_eq!("localhost:0".parse::<Listen>().unwrap().to_string(), "127.0.0.1:0");
        assert_eq!("[::1]:7077".parse::<Listen>().unwrap().to_string(), "[::1]:7077");
        for wrong in ["127.0.0.1", "7077", "example.com:80", "localhost"] {
            assert!(wrong.parse::<Listen>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn layers_are_named_as_in_requests() {
        for layer in Layer::ALL {
            assert_eq!(layer.as_str().parse(), Ok(LayerName(layer)));
            assert!(LAYER_IS.contains(layer.as_str()), "{LAYER_IS}");
        }
        assert!("galaxy".parse::<LayerName>().is_err());
    }
}
