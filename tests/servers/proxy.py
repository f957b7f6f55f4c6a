"""A proxy on loopback that loses the answer to one request: the server did what it was asked, and nobody hears."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import threading
from collections.abc import Iterator


class Proxy:
    """What stands between a client and a server on loopback.

    Parameters
    ----------
    port : int
        The port of the server.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[str] = []
        self.lost, self.stays_down, self.is_down = 0, False, False
        self.lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))

    @property
    def uri(self) -> str:
        """Return its own address."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def lose(self, number: int, *, stays_down: bool) -> None:
        """Lose the answer to a request, counted from 1 from now on; 0 loses none.

        Parameters
        ----------
        number : int
            The request.
        stays_down : bool
            Whether every later request is lost too, until the next call of this method.
        """
        self.asked, self.lost, self.stays_down, self.is_down = [], number, stays_down, False


def _handler(proxy: Proxy) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with proxy.lock:
                proxy.asked.append(f"{self.command} {self.path}")
                loses, is_down = len(proxy.asked) == proxy.lost, proxy.is_down
                proxy.is_down |= loses and proxy.stays_down
            if not is_down:
                status, headers, answer = self.answer(body)
            if is_down or loses:
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def answer(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            upstream = http.client.HTTPConnection("127.0.0.1", proxy.port)
            with contextlib.closing(upstream):
                upstream.request(self.command, self.path, body, dict(self.headers))
                answer = upstream.getresponse()
                return answer.status, answer.getheaders(), answer.read()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = forward  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextlib.contextmanager
def before(port: int) -> Iterator[Proxy]:
    """Run a proxy before the server on a port, and end it."""
    proxy = Proxy(port)
    thread = threading.Thread(target=proxy.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.server.shutdown()
        proxy.server.server_close()
        thread.join()
