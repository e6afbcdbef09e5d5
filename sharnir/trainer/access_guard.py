"""Who may talk to the viewer's server: a page that this server itself sent, asked for by an address, and nobody else.

A browser tells with every request which Host it was asked for, and which page (Origin) asks. A name of somebody else's that
leads here (DNS rebinding) shows in the first, a page of another site in the second. Programs that are no browsers send no
Origin; they run on this machine, or are let in by whoever opened the server to others.

Where there are tokens, the picture's socket is for those alone who have one: a page that is asked for with `?token=…` gets it as
a cookie (of this server's port, not to be read by scripts, not sent from other sites), which the browser shows with the socket.
"""

from __future__ import annotations

import contextlib
import errno
import http
import io
import ipaddress
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sharnir.core.bounded_json import same_token
from sharnir.core.extras import need
from sharnir.errors import SimulationError

_LOCK = threading.Lock()
TRIED = 100  # ports from the one that is asked for, of which one has to be free
QUIET_LOG = logging.getLogger("sharnir.view")  # of connections that come to nothing: turn it up to hear of them
QUIET_LOG.setLevel(logging.CRITICAL)


def name_of(address: str) -> str:
    """The host of "host:port" without the port, in small letters; "" where there is none."""
    try:
        return (urlsplit(f"//{address}").hostname or "").lower()
    except ValueError:
        return ""


def is_loopback(name: str) -> bool:
    """Whether a host is this machine, as it calls itself."""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def allowed(served_on: str, host: str | None, origin: str | None) -> str:
    """Why a request is refused, or "".

    Args:
        served_on: the address that the server listens on. host, origin: what the request says; None where it says nothing.
    """
    name = name_of(host or "")
    if is_loopback(name_of(served_on)):
        known = is_loopback(name)
    else:  # open to others: by number, or by the name that this machine has
        known = is_loopback(name) or _is_number(name) or name in {socket.gethostname().lower(), name_of(served_on)}
    if not known:
        return f"Host {host!r} is not this server"
    if origin is not None and origin.lower() != f"http://{(host or '').lower()}":
        return f"Origin {origin!r} is not this server's page"
    return ""


def port_of(address: str) -> str:
    """The port of "host:port", as digits; "" where there is none."""
    try:
        return str(urlsplit(f"//{address}").port or "")
    except ValueError:
        return ""


def known(given: str, tokens: tuple[str, ...]) -> bool:
    """Whether a token is one of those, found in a time that tells nothing."""
    return any([same_token(given, token) for token in tokens])


def cookies(headers: list[str]) -> dict[str, str]:
    """Cookies of a request by name."""
    pairs = (pair.partition("=") for header in headers for pair in header.split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def shown_by(server: Any, client: int) -> str:
    """The token that a page of viser's server came with; "" where it had none."""
    connection = getattr(getattr(server, "_websock_server", None), "_live_connections", {}).get(client)
    if connection is None:
        return ""
    headers = connection.request.headers
    return cookies(headers.get_all("Cookie")).get(f"sharnir-{port_of(headers.get('Host', ''))}", "")


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def _guarded(
    served_on: str, pages: dict[str, Callable[[], str]], sockets: dict[str, Any], tokens: tuple[str, ...]
) -> Iterator[list[bool]]:
    """While this holds, a websocket server that is started asks `allowed` before anything else.

    It has further pages (HTML by path) and sockets (handlers by path) of our own.
    """
    server = need("websockets.asyncio.server", "view")
    websockets = need("websockets.http11", "view")
    headers = need("websockets.datastructures", "view")
    plain, used = server.serve, [False]

    def serve(handler: Any, *place: Any, process_request: Any = None, **options: Any) -> Any:
        used[0] = True

        def ask(connection: Any, request: Any) -> Any:
            said = [request.headers.get_all(name) for name in ("Host", "Origin")]
            twice = "a header is given twice" if max(map(len, said)) > 1 else ""
            why = twice or allowed(served_on, *(values[0] if values else None for values in said))
            path, given = urlsplit(request.path).path, parse_qs(urlsplit(request.path).query).get("token", [""])[-1]
            cookie = f"sharnir-{port_of(said[0][0] if said[0] else '')}"
            if not why and tokens and request.headers.get("Upgrade") is not None and path not in sockets:
                shown = cookies(request.headers.get_all("Cookie")).get(cookie, "")
                why = "" if known(shown, tokens) else "the picture is for those with a token: take the address that has one"
            if why:
                body = f"{why}\n".encode()
                length = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body))}
                status = http.HTTPStatus.FORBIDDEN
                return websockets.Response(status.value, status.phrase, headers.Headers(**length), body)
            keep = {"Set-Cookie": f"{cookie}={given}; HttpOnly; SameSite=Strict; Path=/"} if known(given, tokens) else {}
            if path in pages and request.headers.get("Upgrade") is None:
                body = pages[path]().encode()
                kind = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body)), "Cache-Control": "no-store"}
                return websockets.Response(http.HTTPStatus.OK.value, "OK", headers.Headers(**(kind | keep)), body)
            if path in sockets or process_request is None:
                return None  # the handshake goes on
            response = process_request(connection, request)
            if response is not None:
                response.headers.update(keep)
            return response

        async def handle(connection: Any) -> None:
            own = sockets.get(urlsplit(connection.request.path).path)
            await (handler if own is None else own)(connection)

        return plain(handle, *place, process_request=ask, **({"logger": QUIET_LOG} | options))

    with _LOCK:
        server.serve = serve
        try:
            yield used
        finally:
            server.serve = plain


def check_address(host: Any, port: Any) -> None:
    """Raise an error at once where no page can be served; a port that is busy is none, as long as one of the next is free."""
    if not isinstance(host, str):
        raise SimulationError(f"view: host is a text such as '127.0.0.1', got {host!r}")
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65535:
        raise SimulationError(f"view: port is a whole number from 0 (any free one) to 65535, got {port!r}")
    last = min(port + TRIED, 65536) - 1
    for each in range(port, last + 1):
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host or None, each, type=socket.SOCK_STREAM)[0]
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                return
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise SimulationError(f"view: {host}:{each} cannot be served on: {error.strerror or error}") from None
        except UnicodeError:
            raise SimulationError(f"view: host is an address or a name, got {host!r}") from None
    raise SimulationError(f"view: port {port} of {host} is busy, and so are all up to {last}; give another port")


def open_server(
    host: str, port: int, title: str, pages: dict[str, Callable[[], str]] | None = None, sockets: dict[str, Any] | None = None,
    tokens: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    """viser's server behind the gate, with pages and sockets of our own beside it; its banner is not shown.

    Args:
        tokens: of which one is needed to look; none: everybody may who is let in at all.
    """
    viser = need("viser", "view")
    with _guarded(host, pages or {}, sockets or {}, tokens) as used, contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host=host, port=port, label=title, verbose=False)
    if not used[0]:
        server.stop()
        raise SimulationError(f"view: viser {viser.__version__} starts its server in a way that is not guarded; take 1.1")
    server.request_share_url = lambda *_, **__: None  # a page may ask for a tunnel to the outside: there is none
    return server
