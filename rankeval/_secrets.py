"""Addresses without their secrets: ledgers, tracking stores, and what other libraries say of them.

A secret is a password, the user of an address that is no database's (a token, the key of a store of
objects), or a value of the query or after ``#``, unless its name is known to be harmless and it
holds no setting of its own: libpq reads ``dbname=password=...``. If nobody can tell where a
password ends, since it has letters that an address does not allow, nothing of the address is shown.

`bare` leaves secrets out, for links and for what is stored; `masked` writes ``***`` in their
places, for people. The messages of all errors and warnings, and the lines of the command line, pass
through `without_secrets`.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Iterator
from urllib.parse import unquote, unquote_plus, urlsplit

_HAS_USERS = re.compile(
    "(?:postgres(?:ql)?|mysql|mariadb|mssql|oracle|cockroachdb|sqlite)(?:[+].*)?"
)
"""Schemes whose user says whose tables they are."""
_WEB = re.compile("o|workspace|workflowtype")
_DATABASE = re.compile(
    "host|hostaddr|port|dbname|database|service|unix_socket|driver|trusted_connection|charset|client_encoding"
    "|application_name|sslmode|ssl_mode|sslrootcert|sslcert|ssl_ca|ssl_cert|ssl_key|gssencmode"
    "|connect_timeout|timeout|target_session_attrs|mode|cache|uri"
)
"""Names in the query of an address, in lower case, whose values are shown."""
_ANCHOR = re.compile(r"[a-z]{1,20}(?:[_-][a-z]{1,20})+")
"""The place in a page that is a file: words, which no token is."""
_PLAIN = re.compile(r"(?!.*://)[\w.,:@/+\- \[\]]*")
_SECRET = re.compile(
    r"token|pass|pwd|secret|api[_.-]?key|access[_.-]?key|signature|credential|odbc_connect|authorization|jwt|bearer"
    r"|cookie|session|^(?:x[_.-])?(?:auth|key|pw|sig|code)$",
    re.IGNORECASE,
)
# Addresses, and settings of addresses without a host, in the message of another library. The bounds
# keep a search linear in a text of any length.
_WITHIN = re.compile(r"\b[A-Za-z][\w+.\-]{0,30}://[^\s'\"<>]*")
_VALUE = re.compile(r"(?P<name>[?&;][\w.\-]{1,100})=[^\s&;#'\"]+")


def is_web(uri: str) -> bool:
    """Return whether an address is one of the web, whose user may be a token."""
    return uri.lower().startswith(("http://", "https://"))


def bare(uri: str) -> str:
    """Return an address without its secrets; the user of a database stays, who says whose tables they are."""
    found = ""
    for shown, _, _ in _parts(uri):
        # The first setting of a query that is shown may have been a later one.
        found += f"?{shown[1:]}" if shown[:1] in {"&", ";"} and "?" not in found else shown
    return found


def masked(uri: str) -> str:
    """Return an address with ``***`` in the places of its secrets.

    Examples
    --------
    >>> masked("postgresql+psycopg://me:hunter2@host/db?sslmode=require&password=hunter2")
    'postgresql+psycopg://me:***@host/db?sslmode=require&password=***'
    """
    return "".join(mask for _, mask, _ in _parts(uri))


def without_secrets(text: str) -> str:
    """Return a text with ``***`` in the places of the secrets of all addresses in it."""
    return _WITHIN.sub(lambda found: masked(found[0]), text) if "://" in text else text


def hidden(text: str, uris: Iterable[str | None] = ()) -> str:
    """Return a text without the secrets of some addresses, and without those of the addresses that stand in it."""
    known = [uri for uri in uris if uri]
    written = [secret for uri in known for _, _, secret in _parts(uri)]
    meant = {form for secret in written for form in (secret, unquote(secret), unquote_plus(secret))}
    pieces = {
        piece for form in meant for piece in re.split(r"[@:/?#&;=\s]", form) if len(piece) > 3
    }
    pieces = {piece for piece in pieces if not any(piece in bare(uri) for uri in known)}
    for secret in sorted(meant | pieces, key=len, reverse=True):
        text = text.replace(secret, "***") if len(secret) > 2 else text
    without = _WITHIN.sub(lambda found: bare(found[0]), text)
    return _VALUE.sub(
        lambda found: f"{found['name']}=***" if _SECRET.search(found["name"][1:]) else found[0],
        without,
    )


def shareable(error: BaseException, uri: str) -> BaseException | None:
    """Return an error as the cause of one of ours; None if it, or one that led to it, says a secret of an address."""
    text = "".join(
        part for cause in _chain(error) for part in traceback.format_exception_only(cause)
    )
    return error if hidden(text, [uri]) == text else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__ or error.__context__


def _parts(uri: str) -> Iterator[tuple[str, str, str]]:
    """Yield the parts of an address from left to right: what is shown of each, the same with a mask, and its secret."""
    scheme, mark, rest = uri.partition("://")
    yield scheme + mark, scheme + mark, ""
    if not mark or not _is_clear(rest, web=is_web(uri)):
        yield (*("***" if rest else "",) * 2, rest)
        return
    web, is_file = is_web(uri), scheme.lower().startswith(("sqlite", "file"))
    place = re.split("[?#]", rest, maxsplit=1)[0]
    server, slash, path = place.partition("/")
    login, at, host = server.rpartition("@")
    user, _, password = login.partition(":")
    named = _HAS_USERS.fullmatch(scheme.lower())
    secret = password or ("" if named else user)
    shown, mask = (user, f"{user}:***" if secret else user) if named else ("", "***")
    yield f"{shown}@" if shown else "", f"{mask}@" if at else "", secret
    place = f"{host}{slash}{path}"
    holds_settings = (
        not web and not is_file and "=" in unquote(place) and _SECRET.search(unquote(place))
    )
    yield ("***", "***", place) if holds_settings else (place, place, "")
    parts = re.split("([?&;#])", rest[len(server + slash + path) :])
    for before, part in zip(parts[1::2], parts[2::2], strict=True):
        name, equals, value = part.partition("=")
        is_shown = _is_harmless(name, value, _WEB if web else _DATABASE)
        if not equals:  # "#/runs/1" is the route of a page, and a file may have a # in its name
            is_anchor = place.endswith((".html", ".htm")) and _ANCHOR.fullmatch(part)
            is_place = before == "#" and (is_file or part.startswith("/") or is_anchor)
            value, is_shown = part, bool(not part or is_place)
        masked_part = f"{before}{name}=***" if equals else f"{before}***"
        yield (before + part, before + part, "") if is_shown else ("", masked_part, value)


def _is_harmless(name: str, value: str, known: re.Pattern[str]) -> bool:
    return bool(known.fullmatch(unquote(name).lower()) and _PLAIN.fullmatch(unquote_plus(value)))


def _is_clear(rest: str, *, web: bool) -> bool:
    """Return whether it is known where the password of an address ends, given what follows its scheme.

    A password with a slash or a question mark ends in the path or the query, and what is before
    that looks like a host.
    """
    try:
        found = urlsplit(f"//{rest}")
    except ValueError:  # a bracket that is not closed
        return "@" not in rest
    beyond = found.path + found.fragment + re.sub("[^&;]*=[^&;]*", "", found.query)
    if "@" not in found.netloc:
        try:
            _ = found.port
        except ValueError:
            beyond += found.query
    return "@" not in beyond or (not web and {":", "@"}.isdisjoint(found.netloc))
