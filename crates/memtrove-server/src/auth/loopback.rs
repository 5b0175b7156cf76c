//! Which names of a request are this machine's.
//!
//! In local mode every caller is believed, so a web page must not be one. A page whose own name was made to point at this
//! machine calls from the browser as if it belonged here; what it cannot change is the name it calls.

use http::HeaderMap;
use http::Uri;
use http::header::HOST;
use memtrove_core::Error;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What a request is refused with that local mode does not answer to.
pub(crate) fn refusal() -> Error {
    Error::forbidden(
        "local mode answers to localhost, 127.0.0.1 and [::1] only, named once in Host: call this server by one of these, \
         or set auth.mode = \"jwt\" to serve under another name",
    )
}

/// Whether a request calls this machine by name: one name, in `Host`, in the target, or the same in both. Over HTTP/2 the
/// target has it; over HTTP/1.1 a proxy's does.
pub(crate) fn is_called(target: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() {
        return false;
    }
    // Bytes that are no text name nothing.
    let host = host.map(|host| host.to_str().unwrap_or_default());
    match (host, target.authority()) {
        (Some(host), Some(named)) => host.eq_ignore_ascii_case(named.as_str()) && is_this_machine(host),
        (Some(host), None) => is_this_machine(host),
        (None, Some(named)) => is_this_machine(named.as_str()),
        (None, None) => false,
    }
}

/// Whether `host`, or `host:port`, is this machine: `localhost`, an address in 127.0.0.0/8, or `[::1]`, and nothing before,
/// between or after.
pub(crate) fn is_this_machine(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return address.parse() == Ok(Ipv6Addr::LOCALHOST) && is_port_or_nothing(port);
    }
    let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
    let known = name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    known && is_port_or_nothing(port)
}

/// Nothing, or a colon and a port.
fn is_port_or_nothing(text: &str) -> bool {
    if text.is_empty() {
        return true;
    }
    text.strip_prefix(':').is_some_and(|port| {
        // Parsing alone would let a sign through.
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_name_of_this_machine_has_nothing_before_between_or_after() {
        for name in [
            "localhost",
            "LocalHost",
            "localhost:7077",
            "LOCALHOST:1",
            "127.0.0.1",
            "127.0.0.1:65535",
            "127.255.255.254:80",
            "[::1]",
            "[::1]:7077",
            "[0:0:0:0:0:0:0:1]:7077",
        ] {
            assert!(is_this_machine(name), "{name}");
        }
        for name in [
            "",
            " ",
            ":7077",
            "evil.com",
            "localhost.evil.com",
            "localhost.evil.com:7077",
            "evil.com.localhost",
            "evil.localhost:7077",
            "evil-localhost",
            "localhost.",
            "localhost.:7077",
            "localhost:7077@evil.com",
            "localhost@evil.com",
            "user@localhost",
            "user:secret@localhost:7077",
            "localhost,evil.com",
            "localhost evil.com",
            "localhost/evil.com",
            "localhost#evil.com",
            "localhost:",
            "localhost:0",
            "localhost:+80",
            "localhost:-1",
            "localhost:65536",
            "localhost:70000",
            "localhost:7077:80",
            "localhost:port",
            "localhost: 80",
            "127.0.0.1.evil.com",
            "127.0.0.1.",
            "127.0.0.1:7077.evil.com",
            "127.1",
            "127.0.0.01",
            "0127.0.0.1",
            "2130706433",
            "0x7f000001",
            "0.0.0.0",
            "128.0.0.1",
            "192.0.2.7",
            "::1",
            "::1:7077",
            "[::1",
            "[::1]7077",
            "[::1].evil.com",
            "[::1]:7077.evil.com",
            "[::1]:",
            "[::1]]",
            "[::1%25lo]",
            "[::2]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[127.0.0.1]",
            "[localhost]",
            "[2001:db8::7]:7077",
        ] {
            assert!(!is_this_machine(name), "{name}");
        }
    }

    #[test]
    fn a_request_calls_one_name() {
        let called = |target: &str, hosts: &[&str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, HeaderValue::from_bytes(host.as_bytes()).unwrap());
            }
            is_called(&target.parse().unwrap(), &headers)
        };
        assert!(called("/v1/health", &["localhost"]));
        assert!(called("http://localhost:7077/v1/health", &[]));
        assert!(called("http://localhost:7077/v1/health", &["LOCALHOST:7077"]));

        assert!(!called("/v1/health", &[]));
        assert!(!called("/v1/health", &[""]));
        assert!(!called("/v1/health", &["evil.com"]));
        assert!(!called("/v1/health", &["localh\u{f6}st"]));
        assert!(!called("/v1/health", &["localhost", "localhost"]));
        assert!(!called("/v1/health", &["localhost", "evil.com"]));
        assert!(!called("/v1/health", &["evil.com", "localhost"]));
        assert!(!called("http://evil.com/v1/health", &[]));
        assert!(!called("http://evil.com/v1/health", &["localhost"]));
        assert!(!called("http://localhost/v1/health", &["evil.com"]));
        assert!(!called("http://localhost/v1/health", &["127.0.0.1"]));
        assert!(!called("http://localhost:7077/v1/health", &["localhost"]));
        assert!(!called("http://user@localhost/v1/health", &["user@localhost"]));
    }
}
