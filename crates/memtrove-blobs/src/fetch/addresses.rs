//! Which addresses are public: those that anybody on the internet could reach, and that lead nowhere else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public internet. What is reserved, shared, local, for documentation or for many at
/// once is not, and neither is an address that only wraps such a one.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// What answers the machines of Azure about themselves, in a network that is otherwise like any.
const AZURE_MACHINES: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let reserved = match a {
        // This network, private, loopback.
        0 | 10 | 127 => true,
        // Shared by carriers.
        100 => (64..128).contains(&b),
        168 => address == AZURE_MACHINES,
        // Link-local, and with it the metadata of cloud machines.
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => match (b, c) {
            // Protocol assignments, documentation, relays of 6to4, direct delegation of name servers' sinks.
            (0, 0) | (0, 2) | (88, 99) | (31, 196) | (52, 193) | (175, 48) => true,
            _ => b == 168,
        },
        // Benchmarks, documentation.
        198 => matches!(b, 18 | 19) || (b, c) == (51, 100),
        203 => (b, c) == (0, 113),
        // Multicast, the future, broadcast.
        _ => a >= 224,
    };
    !reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        // Wraps an IPv4 address: mapped, or NAT64.
        (0, 0) => (c, d, e, f) == (0, 0, 0, 0xffff) && v4(g, h),
        (0x64, 0xff9b) => (c, d, e, f) == (0, 0, 0, 0) && v4(g, h),
        // 6to4.
        (0x2002, high) => v4(high, c),
        // Protocol assignments: Teredo, ORCHID, benchmarks, anycast.
        (0x2001, b) if b < 0x200 => false,
        // Documentation.
        (0x2001, 0xdb8) => false,
        (0x3fff, b) if b < 0x1000 => false,
        // Nothing else has been given to anybody to be reached by everybody.
        _ => a & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the registries of special addresses list, and what we refuse besides.
    const NOT_PUBLIC: [(&str, u32); 34] = [
        ("0.0.0.0", 8),
        ("10.0.0.0", 8),
        ("100.64.0.0", 10),
        ("127.0.0.0", 8),
        ("168.63.129.16", 32),
        ("169.254.0.0", 16),
        ("172.16.0.0", 12),
        ("192.0.0.0", 24),
        ("192.0.2.0", 24),
        ("192.31.196.0", 24),
        ("192.52.193.0", 24),
        ("192.88.99.0", 24),
        ("192.168.0.0", 16),
        ("192.175.48.0", 24),
        ("198.18.0.0", 15),
        ("198.51.100.0", 24),
        ("203.0.113.0", 24),
        ("224.0.0.0", 4),
        ("240.0.0.0", 4),
        ("255.255.255.255", 32),
        ("::", 128),
        ("::1", 128),
        ("::", 96),
        ("64:ff9b:1::", 48),
        ("100::", 64),
        ("2001::", 23),
        ("2001:db8::", 32),
        ("3fff::", 20),
        ("5f00::", 16),
        ("fc00::", 7),
        ("fe80::", 10),
        ("fec0::", 10),
        ("ff00::", 8),
        ("4000::", 3),
    ];

    fn bits(address: IpAddr) -> (u128, u32) {
        match address {
            IpAddr::V4(address) => (address.to_bits().into(), 32),
            IpAddr::V6(address) => (address.to_bits(), 128),
        }
    }

    fn within(address: IpAddr, network: &str, prefix: u32) -> bool {
        let ((address, width), (network, other)) = (bits(address), bits(network.parse().unwrap()));
        width == other && (address ^ network).checked_shr(width - prefix).unwrap_or(0) == 0
    }

    fn any_v4() -> impl Strategy<Value = Ipv4Addr> {
        // Reserved ones are rare, so half of them are made near one.
        let near = (0usize..20, any::<u32>()).prop_map(|(index, noise)| {
            let (network, prefix) = NOT_PUBLIC[index];
            let host = noise.checked_shr(prefix.saturating_sub(1)).unwrap_or(0);
            Ipv4Addr::from_bits(network.parse::<Ipv4Addr>().unwrap().to_bits() ^ host)
        });
        prop_oneof![near, any::<u32>().prop_map(Ipv4Addr::from_bits)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn an_address_is_public_unless_a_registry_lists_it(address in any_v4()) {
            let listed = NOT_PUBLIC[..20].iter().any(|(network, prefix)| within(address.into(), network, *prefix));
            prop_assert_eq!(is_public(address.into()), !listed);
        }

        #[test]
        fn wrapping_an_address_does_not_make_it_public(address in any_v4(), rest in any::<u64>()) {
            let bits = u128::from(address.to_bits());
            let mapped = Ipv6Addr::from_bits(0xffff << 32 | bits);
            let nat64 = Ipv6Addr::from_bits(0x0064_ff9b << 96 | bits);
            let six_to_four = Ipv6Addr::from_bits(0x2002 << 112 | bits << 80 | u128::from(rest));
            for wrapped in [mapped, nat64, six_to_four] {
                prop_assert_eq!(is_public(wrapped.into()), is_public(address.into()), "{}", wrapped);
            }
            prop_assert!(!is_public(Ipv6Addr::from_bits(bits).into()));
        }

        #[test]
        fn no_address_of_a_listed_network_is_public(index in 0usize..34, noise in any::<u128>()) {
            let (network, prefix) = NOT_PUBLIC[index];
            let (start, width) = bits(network.parse().unwrap());
            let host = noise & (u128::MAX.checked_shr(128 - width + prefix).unwrap_or(0));
            let address: IpAddr = match u32::try_from(start | host) {
                Ok(address) if width == 32 => Ipv4Addr::from_bits(address).into(),
                _ => Ipv6Addr::from_bits(start | host).into(),
            };
            // All of `::/96` but what is mapped, which the next ones have.
            prop_assert!(!is_public(address), "{} of {}/{}", address, network, prefix);
        }

        #[test]
        fn only_addresses_that_were_given_out_are_public(bits in any::<u128>()) {
            let address = Ipv6Addr::from_bits(bits);
            let wraps = address.segments()[0] == 0x64 || address.segments()[0] == 0;
            prop_assert!(wraps || !is_public(address.into()) || within(address.into(), "2000::", 3));
        }
    }

    #[test]
    fn well_known_addresses_are_what_everybody_takes_them_for() {
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "168.63.129.17",
            "93.184.215.14",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for not in [
            "127.0.0.1",
            "169.254.169.254",
            "168.63.129.16",
            "::ffff:168.63.129.16",
            "10.1.2.3",
            "::1",
            "fe80::1",
            "fd00:ec2::254",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "::127.0.0.1",
            "0.0.0.0",
            "::",
            "255.255.255.255",
        ] {
            assert!(!is_public(not.parse().unwrap()), "{not}");
        }
    }
}
