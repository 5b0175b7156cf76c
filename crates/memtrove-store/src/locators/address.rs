//! Where a node is found by others.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;
use std::str::FromStr;

/// A host and a port. Hosts are the same whatever their letter case, as names on the network are.
#[derive(Debug, Clone, Eq)]
pub struct Address {
    /// A name, or an IP address without brackets.
    pub host: String,
    pub port: u16,
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.port == other.port && self.host.eq_ignore_ascii_case(&other.host)
    }
}

impl Hash for Address {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.host.to_ascii_lowercase().hash(state);
        self.port.hash(state);
    }
}

impl From<SocketAddr> for Address {
    /// An IPv4 address that came over an IPv6 socket is written as the IPv4 address that it is.
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_canonical().to_string(), port: address.port() }
    }
}

impl fmt::Display for Address {
    /// `host:port`, an IPv6 address in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an address: write host:port, an IPv6 address in brackets")]
pub struct NotAnAddress(String);

impl Address {
    /// An address of these parts, if they are those of one. To be used on whatever somebody else wrote: credentials are sent to
    /// where an address says.
    pub fn new(host: &str, port: u16) -> Option<Self> {
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let is_name = !host.is_empty() && host.chars().all(named);
        let is_host = is_name || host.parse::<std::net::Ipv6Addr>().is_ok();
        (is_host && port > 0).then(|| Self { host: host.to_owned(), port })
    }
}

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let wrong = || NotAnAddress(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(inside) => inside.parse::<std::net::Ipv6Addr>().map_err(|_| wrong())?.to_string(),
            None if host.contains(':') => return Err(wrong()),
            None => host.to_owned(),
        };
        Self::new(&host, port).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, host: &str, port: u16) {
        let address: Address = text.parse().unwrap();
        assert_eq!((address.host.as_str(), address.port), (host, port));
        assert_eq!(address.to_string(), text);
    }

    #[test]
    fn an_address_is_written_as_it_was_read() {
        check("node-1.example:8080", "node-1.example", 8080);
        check("10.0.0.7:1", "10.0.0.7", 1);
        check("[2001:db8::7]:65535", "2001:db8::7", 65535);
    }

    #[test]
    fn a_text_without_host_or_port_is_no_address() {
        for text in [
            "",
            "node",
            "node:",
            ":80",
            "node:0",
            "node:65536",
            "2001:db8::7:80",
            "[node]:80",
            "a|b:80",
            "a b:80",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn hosts_are_compared_whatever_their_letter_case() {
        let [upper, lower]: [Address; 2] =
            ["Node.Example:80", "node.example:80"].map(|text| text.parse().unwrap());
        assert_eq!(upper, lower);
        assert_ne!(upper, "node.example:81".parse().unwrap());
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_address_that_it_maps() {
        let socket: SocketAddr = "[::ffff:10.0.0.7]:80".parse().unwrap();
        assert_eq!(Address::from(socket).to_string(), "10.0.0.7:80");
    }
}
