//! Which addresses may be called (trust 4; engine e.9; decisions, Network).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is, to the guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// An address of the public internet.
    Public,
    /// Loopback or a private network: the host's policy decides.
    Private,
    /// Link-local, metadata, or nothing that a server stands at: refused under every policy.
    Never,
}

/// Classifies an address, after taking an IPv4 address out of the IPv6 forms that embed one.
pub(super) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(v4) => reach_v4(v4),
        IpAddr::V6(v6) => match (reach_v6(v6), embedded_v4(v6)) {
            (Reach::Never, _) => Reach::Never,
            (own, None) => own,
            (Reach::Public | Reach::Private, Some(v4)) => reach_v4(v4),
        },
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    let bits = u32::from(address);
    let within = |table: &[(Ipv4Addr, u32)]| {
        table.iter().any(|(network, length)| (bits ^ u32::from(*network)).leading_zeros() >= *length)
    };
    if within(NEVER_V4) {
        Reach::Never
    } else if within(PRIVATE_V4) {
        Reach::Private
    } else {
        Reach::Public
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    let bits = u128::from(address);
    let within = |table: &[(Ipv6Addr, u32)]| {
        table.iter().any(|(network, length)| (bits ^ u128::from(*network)).leading_zeros() >= *length)
    };
    if within(NEVER_V6) {
        Reach::Never
    } else if within(PRIVATE_V6) {
        Reach::Private
    } else {
        Reach::Public
    }
}

/// The IPv4 address in a mapped (`::ffff:0:0/96`), compatible (`::/96`), translated (`::ffff:0:0:0/96`), NAT64
/// (`64:ff9b::/96`), 6to4 (`2002::/16`) or ISATAP (`…:0:5efe:a.b.c.d`) address.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let of = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0xffff) | (0, 0, 0, 0, 0xffff, 0) | (0x64, 0xff9b, 0, 0, 0, 0) => of(g, h),
        // A link-local or unique local ISATAP address is what its own prefix says.
        (0x2000..0x4000, _, _, _, 0 | 0x200, 0x5efe) => of(g, h),
        (0, 0, 0, 0, 0, 0) if g != 0 => of(g, h),
        (0x2002, ..) => of(b, c),
        _ => None,
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

const fn v6(segments: [u16; 8]) -> Ipv6Addr {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Addr::new(a, b, c, d, e, f, g, h)
}

/// Networks that a host's policy may open.
const PRIVATE_V4: &[(Ipv4Addr, u32)] = &[
    (v4(0, 0, 0, 0), 8),
    (v4(10, 0, 0, 0), 8),
    (v4(100, 64, 0, 0), 10),
    (v4(127, 0, 0, 0), 8),
    (v4(172, 16, 0, 0), 12),
    (v4(192, 168, 0, 0), 16),
];

/// Link-local with most clouds' metadata, Azure's and Alibaba's metadata, protocol assignments (Oracle's metadata is
/// among them), documentation, 6to4 relays, benchmarks, multicast, reserved.
const NEVER_V4: &[(Ipv4Addr, u32)] = &[
    (v4(169, 254, 0, 0), 16),
    (v4(168, 63, 129, 16), 32),
    (v4(100, 100, 100, 200), 32),
    (v4(192, 0, 0, 0), 24),
    (v4(192, 0, 2, 0), 24),
    (v4(192, 88, 99, 0), 24),
    (v4(198, 18, 0, 0), 15),
    (v4(198, 51, 100, 0), 24),
    (v4(203, 0, 113, 0), 24),
    (v4(224, 0, 0, 0), 4),
    (v4(240, 0, 0, 0), 4),
];

/// Unspecified, loopback, unique local.
const PRIVATE_V6: &[(Ipv6Addr, u32)] =
    &[(v6([0; 8]), 128), (v6([0, 0, 0, 0, 0, 0, 0, 1]), 128), (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0]), 7)];

/// Metadata of Amazon, Google and Scaleway; link-local, site-local, multicast, local NAT64, protocol assignments with
/// Teredo, documentation, discard and its neighbour, segment routing.
const NEVER_V6: &[(Ipv6Addr, u32)] = &[
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0]), 32),
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]), 128),
    (v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42]), 128),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0]), 10),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0]), 10),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0]), 8),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0]), 48),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0]), 23),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0]), 32),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0]), 20),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0]), 63),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0]), 16),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_range_is_what_the_table_says() {
        let expected = [
            (Reach::Public, "1.1.1.1 8.8.8.8 100.128.0.1 172.32.0.1 169.253.0.1 192.0.1.1 2606:4700::1 2a00::1"),
            (
                Reach::Private,
                "0.0.0.0 10.1.2.3 100.64.0.1 100.127.255.255 127.0.0.1 127.9.9.9 172.16.0.1 172.31.255.255",
            ),
            (Reach::Private, "192.168.1.1 :: ::1 fc00::1 fdff::1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::7f00:1"),
            (Reach::Private, "64:ff9b::10.0.0.1 2002:a00:1:: 2002:7f00:1::1 ::ffff:0:10.0.0.1 2a00::5efe:10.0.0.1"),
            (Reach::Private, "fd00::5efe:8.8.8.8 fd00:ec3::254 2a00::200:5efe:7f00:1"),
            (
                Reach::Public,
                "64:ff9b::8.8.8.8 2002:808:808::1 ::ffff:8.8.8.8 2a00::5efe:8.8.8.8 2001:200::1 2001:470::1",
            ),
            (Reach::Never, "169.254.169.254 169.254.0.1 168.63.129.16 100.100.100.200 192.0.0.1 192.0.2.1 198.19.0.1"),
            (Reach::Never, "198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 fe80::1 febf::1"),
            (Reach::Never, "fec0::1 ff02::1 fd00:ec2::254 64:ff9b:1::1 2001::1 2001:db8::1 100::1 100:0:0:1::1"),
            (Reach::Never, "fd00:ec2::23 fd20:ce::254 fd00:42::42 192.88.99.1 192.0.0.192 169.254.170.2 2001:2::1"),
            (Reach::Never, "3fff::1 5f00::1 fe80::5efe:8.8.8.8 2001::5efe:8.8.8.8 2a00::5efe:169.254.169.254"),
            (Reach::Never, "::ffff:0:169.254.169.254"),
            (Reach::Never, "::ffff:169.254.169.254 64:ff9b::169.254.169.254 2002:a9fe:a9fe::1 ::a9fe:a9fe"),
        ];
        for (reached, addresses) in expected {
            for address in addresses.split(' ') {
                assert_eq!(reach(address.parse().unwrap()), reached, "{address}");
            }
        }
    }
}
