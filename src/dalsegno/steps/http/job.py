"""The process of an HTTP step: makes one request, to no address that it was not allowed to call.

Run as ``python -I -S job.py``, so it imports the standard library only. The request comes on standard input, since
its headers may hold secrets. A name is resolved once, every address is checked, and the connection goes to an address
that was checked: a name that means something else a moment later makes no difference. Redirects are checked alike.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import os
import re
import signal
import socket
import ssl
import sys
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import SplitResult, quote, quote_plus, urljoin, urlsplit

BODY_LIMIT = 1 << 20
REDIRECT_LIMIT = 5
#: Exit codes: see ``processes``.
PASSING, REFUSED, USERS_FAULT = 75, 78, 1

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEEP_METHOD = frozenset({307, 308})
#: What is meant for one host only: by name, or by a part of the name.
_PRIVATE_HEADERS = re.compile(r"auth|cookie|credential|key|password|secret|session|signature|token", re.IGNORECASE)
_PUBLIC_HEADERS = frozenset({"idempotency-key"})
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
#: Not public, as IANA's registries of special addresses have it: what Python thinks of them changes with its version.
_SPECIAL_IPV4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
            *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            # Azure's own service for its machines, at a public address.
            "168.63.129.16/32",
        ),
    )
)
_PUBLIC_IPV6 = ipaddress.IPv6Network("2000::/3")
#: Of those: protocols of their own (Teredo, ORCHID), documentation, 6to4.
_SPECIAL_IPV6 = tuple(map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))

#: Shorter ones have too little in common with what base64 makes of them.
_SHORT = 5

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Refusal(Exception):
    """The request must not be made."""


def main() -> None:
    request = json.load(sys.stdin)
    signal.signal(signal.SIGALRM, _time_is_up)
    signal.setitimer(signal.ITIMER_REAL, request["timeout"])
    try:
        status, headers, body, url = fetched(request)
    except Refusal as refusal:
        _give_up(REFUSED, str(refusal))
    except ssl.SSLCertVerificationError as error:
        _give_up(USERS_FAULT, f"The server's certificate is not trusted: {error.verify_message}.")
    except (http.client.InvalidURL, ValueError) as error:
        _give_up(REFUSED, f"The request cannot be made: {error}.")
    except TimeoutError:
        _give_up(PASSING, f"There was no whole answer within {request['timeout']:g} s.")
    except (OSError, http.client.HTTPException) as error:
        _give_up(PASSING, f"The request failed: {str(error) or type(error).__name__}.")
    signal.setitimer(signal.ITIMER_REAL, 0)
    if len(body) > BODY_LIMIT:
        _give_up(USERS_FAULT, f"The answer is longer than {BODY_LIMIT:,} bytes.")
    text = body.decode(headers.get_content_charset("utf-8"), errors="replace")
    # No store can hold it.
    text = text.replace("\0", "\ufffd")
    told = {"status_code": status, "response_body": text}
    if request.get("tell_location") and "Location" in headers:
        told["location"] = urljoin(url, headers["Location"])
    try:
        with open(os.environ["DALSEGNO_OUTPUT"], "a", encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes its time
            file.write(json.dumps(told) + "\n")
    except OSError as error:
        _give_up(PASSING, f"The server answered {status}, but the answer could not be kept: {error.strerror}.")
    _say(f"{request['method']} {request['url']}: {status}, {len(body):,} bytes")


def fetched(request: dict[str, Any]) -> tuple[int, http.client.HTTPMessage, bytes, str]:
    """The answer at the end of all redirects: status, headers, body, and where it came from."""
    method, url, body = request["method"], request["url"], request["body"]
    headers: dict[str, str] = dict(request["headers"])
    for _ in range(REDIRECT_LIMIT + 1):
        target = checked_url(url)
        connection = connected(target, request["allow"], request["timeout"])
        try:
            connection.request(method, path_of(target), None if body is None else body.encode(), headers)
            answer = connection.getresponse()
            location = answer.getheader("Location")
            if answer.status not in _REDIRECTS or not location or not request["follow"]:
                return answer.status, answer.headers, answer.read(BODY_LIMIT + 1), url
        finally:
            connection.close()
        _say(f"{answer.status}: redirected to {location}")
        following = urljoin(url, location)
        if answer.status not in _KEEP_METHOD and method != "HEAD":
            method, body = "GET", None
        if origin(checked_url(following)) != origin(target):
            headers = without_private(headers, request["secrets"])
            if body is not None and holds_secret(body, request["secrets"]):
                raise Refusal(
                    f"The server answered {answer.status} and names another host, but the body holds a secret. "
                    "If that host may have it, call it directly."
                )
        url = following
    raise Refusal(f"There are more than {REDIRECT_LIMIT} redirects.")


def checked_url(url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refusal(f"{url!r} is not an address of the form https://HOST/PATH.")
    if parts.username or parts.password:
        raise Refusal("The address holds a user or a password: put them into the header Authorization.")
    return parts


def without_private(headers: dict[str, str], secrets: list[str]) -> dict[str, str]:
    """Those that another host than the one they were meant for may see."""
    return {
        name: value
        for name, value in headers.items()
        if (name.lower() in _PUBLIC_HEADERS or not _PRIVATE_HEADERS.search(name)) and not holds_secret(value, secrets)
    }


def holds_secret(text: str, secrets: list[str]) -> bool:
    """Whether one is in a text, as it is or as it is usually written."""
    return any(form in text for secret in secrets if secret for form in secret_forms(secret))


def secret_forms(secret: str) -> set[str]:
    raw = secret.encode()
    # In the middle of other text, base64 depends on where it begins; the characters at its ends on what is beside it.
    shifted = [base64.b64encode(b"\0" * skipped + raw).decode().rstrip("=") for skipped in range(3)]
    encoded = {text[cut:-1] for cut, text in zip((0, 2, 3), shifted, strict=True)} if len(raw) > _SHORT else set()
    url_safe = {text.translate(str.maketrans("+/", "-_")) for text in encoded}
    written = {
        quote(secret, ""),
        quote_plus(secret),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    }
    return {secret, raw.hex(), *encoded, *url_safe, *written}


def origin(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, port_of(parts)


def port_of(parts: SplitResult) -> int:
    return parts.port or (443 if parts.scheme == "https" else 80)


def path_of(parts: SplitResult) -> str:
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    return f"{path}?{quote(parts.query, safe='/%:@!$&()*+,;=?~')}" if parts.query else path


def connected(target: SplitResult, allow: list[str], timeout: float) -> http.client.HTTPConnection:
    """A connection to an address that was checked; the host's name stays in the request and in the certificate."""
    host = str(target.hostname)
    port = port_of(target)
    last: OSError | None = None
    for family, address in permitted_addresses(host, port, allow):
        raw = socket.socket(family, socket.SOCK_STREAM)
        raw.settimeout(timeout)
        try:
            raw.connect(address)
        except OSError as error:
            raw.close()
            last = error
            continue
        if target.scheme == "https":
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, port)
            connection.sock = ssl.create_default_context().wrap_socket(raw, server_hostname=host)
        else:
            connection = http.client.HTTPConnection(host, port)
            connection.sock = raw
        return connection
    raise last or OSError(f"{host} has no address")


def permitted_addresses(host: str, port: int, allow: list[str]) -> list[tuple[socket.AddressFamily, Any]]:
    """What the name means, if every address of it may be called."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    named = any(fnmatchcase(host.lower(), pattern.lower()) for pattern in allow)
    for *_, address in found:
        if not named and not may_call(ipaddress.ip_address(str(address[0]).partition("%")[0]), allow):
            raise Refusal(
                f"{host} is at {address[0]}, which is not a public address. "
                "If steps may call it, add the host or its network to the setting http_allow."
            )
    return [(family, address) for family, _, _, _, address in found]


def may_call(address: Address, allow: list[str]) -> bool:
    """Whether an address is public, or allowed by a network; what is wrapped in IPv6 counts as what it is.

    Tunnels (6to4, Teredo) are not public, whatever is at their other end.
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return may_call(inner, allow)
    if any(address in network for network in networks(allow)):
        return True
    if isinstance(address, ipaddress.IPv6Address):
        return address in _PUBLIC_IPV6 and not any(address in network for network in _SPECIAL_IPV6)
    return not any(address in network for network in _SPECIAL_IPV4)


def networks(allow: list[str]) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    found = []
    for text in allow:
        try:
            found.append(ipaddress.ip_network(text, strict=False))
        except ValueError:
            # The name of a host.
            continue
    return found


def _time_is_up(*_: object) -> None:
    raise TimeoutError


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _give_up(code: int, message: str) -> None:
    _say(message)
    sys.exit(code)


if __name__ == "__main__":
    main()
