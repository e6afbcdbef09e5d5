"""Who may talk to the viewer's server: a page that this server itself sent, asked for by an address, and nobody else.

A browser tells with every request which Host it was asked for, and which page (Origin) asks. A name of somebody else's that
leads here (DNS rebinding) shows in the first, a page of another site in the second. Programs that are no browsers send no
Origin; they run on this machine, or are let in by whoever opened the server to others.
"""

from __future__ import annotations

import contextlib
import http
import io
import ipaddress
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

from sharnir.errors import SimulationError
from sharnir.view import need

_LOCK = threading.Lock()
QUIET = logging.getLogger("sharnir.view")  # of connections that come to nothing: turn it up to hear of them
QUIET.setLevel(logging.CRITICAL)


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


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def _guarded(served_on: str, pages: dict[str, Callable[[], str]], sockets: dict[str, Any]) -> Iterator[list[bool]]:
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
            if why:
                body = f"{why}\n".encode()
                length = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body))}
                status = http.HTTPStatus.FORBIDDEN
                return websockets.Response(status.value, status.phrase, headers.Headers(**length), body)
            path = urlsplit(request.path).path
            if path in pages and request.headers.get("Upgrade") is None:
                body = pages[path]().encode()
                kind = {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body)), "Cache-Control": "no-store"}
                return websockets.Response(http.HTTPStatus.OK.value, "OK", headers.Headers(**kind), body)
            if path in sockets:
                return None  # the handshake goes on
            return None if process_request is None else process_request(connection, request)

        async def handle(connection: Any) -> None:
            own = sockets.get(urlsplit(connection.request.path).path)
            await (handler if own is None else own)(connection)

        return plain(handle, *place, process_request=ask, **({"logger": QUIET} | options))

    with _LOCK:
        server.serve = serve
        try:
            yield used
        finally:
            server.serve = plain


def open_server(
    host: str, port: int, title: str, pages: dict[str, Callable[[], str]] | None = None, sockets: dict[str, Any] | None = None
) -> Any:
    """viser's server behind the gate, with pages and sockets of our own beside it; its banner is not shown."""
    viser = need("viser", "view")
    with _guarded(host, pages or {}, sockets or {}) as used, contextlib.redirect_stdout(io.StringIO()):
        server = viser.ViserServer(host=host, port=port, label=title, verbose=False)
    if not used[0]:
        server.stop()
        raise SimulationError(f"view: viser {viser.__version__} starts its server in a way that is not guarded; take 1.1")
    server.request_share_url = lambda *_, **__: None  # a page may ask for a tunnel to the outside: there is none
    return server
