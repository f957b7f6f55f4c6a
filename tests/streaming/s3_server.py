"""As much of S3 on loopback as a reader needs: list a bucket, ask for an object's size, get a range of its bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class _Handler(BaseHTTPRequestHandler):
    """Serves the files below ``root`` as objects; the first folder is the bucket."""

    protocol_version = "HTTP/1.1"
    root: Path
    asked: list[str]

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._object(with_body=False)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if "list-type" in parse_qs(url.query):
            self._listing(unquote(url.path).strip("/"), parse_qs(url.query).get("prefix", [""])[0])
        else:
            self._object(with_body=True)

    def _object(self, *, with_body: bool) -> None:
        path = self.root / unquote(urlsplit(self.path).path).strip("/")
        self.asked.append(self.headers.get("Range", "all") if with_body else "size")
        if not path.is_file():
            self._answer(404, b"", {})
            return
        content, headers, code = path.read_bytes(), {"ETag": '"1"', "Last-Modified": _time(path)}, 200
        if span := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            begin, end = int(span[1]), min(int(span[2]) + 1, len(content))
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(content)}"
            content, code = content[begin:end], 206
        self._answer(code, content, headers, with_body=with_body)

    def _listing(self, bucket: str, prefix: str) -> None:
        keys = {str(path.relative_to(self.root / bucket)): path for path in sorted((self.root / bucket).rglob("*"))}
        found = {key: path for key, path in keys.items() if path.is_file() and key.startswith(prefix)}
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{path.stat().st_size}</Size><ETag>1</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key, path in found.items()
        )
        about = f"<Name>{bucket}</Name><KeyCount>{len(found)}</KeyCount><IsTruncated>false</IsTruncated>"
        content = f"<ListBucketResult>{about}{rows}</ListBucketResult>"
        self._answer(200, content.encode(), {"Content-Type": "application/xml"})

    def _answer(self, code: int, content: bytes, headers: dict[str, str], *, with_body: bool = True) -> None:
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(content)


def _time(path: Path) -> str:
    return formatdate(path.stat().st_mtime, usegmt=True)


@contextmanager
def s3(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder of buckets; yield the query of URLs that name this server, and the list of what was asked."""
    handler = type("Handler", (_Handler,), {"root": root, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"scheme=http&region=us-east-1&endpoint_override=127.0.0.1:{server.server_port}", handler.asked
    finally:
        server.shutdown()
        server.server_close()
