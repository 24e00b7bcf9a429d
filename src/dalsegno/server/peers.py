"""Who is on the other side of a connection, for limits."""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network, ip_address


def peer_of(host: str | None) -> str:
    """An address; of IPv6 the network, because one host can use all addresses of its network."""
    try:
        address = ip_address((host or "").partition("%")[0])
    except ValueError:
        return host or ""
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or IPv6Network((address, 64), strict=False))
    return str(address)
