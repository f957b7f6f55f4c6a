"""Find the ledger of this process.

The first of these decides, once per process and value of the variable:

1. the variable ``RANKEVAL_LEDGER``: a path, an SQLAlchemy URL, or ``off``;
2. ``ledger = "..."`` under ``[tool.rankeval]`` in the project's pyproject.toml;
3. the folder ``rankeval-ledger`` in the working directory or a folder above it, up to the root of the project, which
   is the first folder with a pyproject.toml or a .git. If there is no project around, the same from the folder of the
   script that runs: a scheduler starts it elsewhere.

A path names a folder, or a file of SQLite if it ends in ``.db``, ``.sqlite`` or ``.sqlite3``.

A `Guard` with a ledger of its own adds that one to those that the process looks into. Other
processes do not look there, so whoever writes to it is warned (`announce`).
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rankeval._checks import require
from rankeval.errors import ConfigError, LedgerError, warn

VARIABLE = "RANKEVAL_LEDGER"
FOLDER = "rankeval-ledger"
_SQLITE = (".db", ".sqlite", ".sqlite3")
_NO_LEDGERS = {
    "mlflow": "is not a ledger",  # a word that reads like a server, and would be the name of a folder
    **dict.fromkeys(
        ("sqlite://", "sqlite:///:memory:", ":memory:"), "is gone when the process ends"
    ),
}
# A server's address without its slashes or one slash (a Path has one), a file of SQLite with a
# login, and settings of libpq: as the name of a folder, the password would be shown and kept.
_LOGIN = re.compile(
    r"[a-z][\w+.-]+:/?[^/]*:[^/]*@|sqlite[+\w]*://[^/]*@|(?!.*://).*\bpass\w*\s*=", re.IGNORECASE
)


@dataclass(frozen=True)
class _Found:
    """The project's own ledger; none if ledgers are switched off."""

    url: str | None = None  # The ledger; None if ledgers are switched off
    named_by: str | None = None  # The setting that names it; None if it is the default
    # Whether it lies in the working directory because there is no project around.
    homeless: bool = False


_WATCHED: list[str] = []
"""Ledgers of guards of this process, whatever the setting says later; unless it says that they are off."""
_SEEN: set[str] = set()
"""Ledgers that were there once in this process."""
_SAID: set[str] = set()
"""What was warned about; a ledger by its URL."""


def default_url() -> str | None:
    """Return the URL of the project's ledger, whether it exists or not; None if ledgers are switched off."""
    return _project_ledger().url


def watch(url: str) -> None:
    """Look into this ledger too from now on, unless ledgers are switched off."""
    if _project_ledger().url is not None and url not in _WATCHED:
        _WATCHED.append(url)


def active_urls() -> list[str]:
    """Return the ledgers that this process looks into, without files that do not exist.

    A ledger that is gone is among them, once it was there. If the project's own never was there
    although a setting names it, that is said once.
    """
    own = _project_ledger().url
    if own is None:
        return []
    others = [url for url in _WATCHED if url != own and (may_exist(url) or url in _SEEN)]
    return [own, *others] if may_exist(own) or _was_there_or_warn(own) else others


def reset() -> None:
    """Forget the ledgers of this process, so that they are looked for again: for tests."""
    _found.cache_clear()
    _WATCHED.clear()
    _SEEN.clear()
    _SAID.clear()


def warn_once(key: str, message: str) -> None:
    """Warn, unless this process was warned of the same."""
    if key not in _SAID:
        _SAID.add(key)
        warn(message)


def announce(url: str, where: str) -> None:
    """Warn once if other processes will not find a ledger that is about to be written, unless it is a trial."""
    found, trials = _project_ledger(), Path(tempfile.gettempdir()).resolve()
    if url == found.url and found.homeless and not may_exist(url):
        warn_once(
            url,
            f"there is no project around (no pyproject.toml, no .git), so the ledger is made in the working directory: "
            f"{where}. Work that starts in another folder will not find it: name its place with {VARIABLE}",
        )
    elif found.url not in {None, url} and trials not in Path(place_of(url).path).parents:
        warn_once(
            url,
            f"no other process looks into the ledger {where}: what is registered there is refused in this process "
            f"only. Leave ledger= out, or name the ledger for all processes: by the variable {VARIABLE}, or by "
            "ledger under [tool.rankeval] in pyproject.toml",
        )


def ledger_url(spec: str | os.PathLike[str], *, base: Path | None = None) -> str:
    """Return a path or URL as a URL that does not depend on the working directory."""
    require(
        isinstance(spec, (str, os.PathLike)), "ledger", type(spec), "a path or an SQLAlchemy URL"
    )
    text = os.fspath(spec)
    remedy = f"give a path such as {FOLDER}, or an SQLAlchemy URL"
    if _LOGIN.match(text):
        raise LedgerError("ledger is neither a path nor a URL, and has a password", remedy=remedy)
    kind, path = place_of(text) if "://" in text else LedgerPlace("folder", text)
    if kind == "server":
        return text
    whole = ((base or Path.cwd()) / Path(path).expanduser()).resolve()
    in_file = kind == "sqlite" or path.endswith(_SQLITE)
    problem = _NO_LEDGERS.get(text) or ("" if path else "names no file or folder")
    if in_file and "?" in str(whole):
        problem = "has a question mark, where SQLAlchemy begins the options of a URL"
    if problem:
        raise LedgerError(f"ledger={text!r} {problem}: {remedy}")
    return f"{'sqlite:///' if in_file else 'file://'}{whole}"


class LedgerPlace(NamedTuple):
    """The place that a URL names."""

    kind: str  # "folder", "sqlite" or "server"
    path: str  # of the folder or the file; empty for a server


@cache
def place_of(url: str) -> LedgerPlace:
    """Return the place that a URL names; here alone the kinds of URLs are told apart."""
    scheme, _, rest = url.partition("://")
    if scheme == "file":
        return LedgerPlace("folder", rest)
    if scheme.partition("+")[0] == "sqlite":
        return LedgerPlace("sqlite", rest.partition("?")[0].removeprefix("/"))
    return LedgerPlace("server", "")


def may_exist(url: str) -> bool:
    """Return whether there may be a ledger at a URL: False only for a file or folder that does not exist."""
    path = place_of(url).path
    there = not path or os.path.exists(path)  # noqa: PTH110 - called for every score; os is ten times faster
    if there:
        _SEEN.add(url)
    return there


def _was_there_or_warn(url: str) -> bool:
    """Return whether the project's ledger, which is not there now, was there before; warns if it never was."""
    found = _project_ledger()
    if url not in _SEEN and found.named_by is not None:
        warn_once(
            url,
            f"the ledger {place_of(url).path or url}, which {found.named_by} names, is not there: "
            "it guards nothing until a test collection is registered in it",
        )
    return url in _SEEN


def _project_ledger() -> _Found:
    return _found(os.environ.get(VARIABLE))


def _named(spec: str, by: str, base: Path | None = None) -> _Found:
    is_off = spec.strip().lower() == "off"
    return _Found(None if is_off else ledger_url(spec, base=base), by)


@cache
def _found(variable: str | None) -> _Found:
    if variable:
        return _named(variable, f"the variable {VARIABLE}")
    for start in _starts():
        if (found := _in_project(start)) is not None:
            return found
    # There is no project around: a ledger further up belongs to something else.
    return _Found(ledger_url(FOLDER), homeless=True)


def _starts() -> list[Path]:
    """Return the working directory, and the folder of the script that runs."""
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is None or Path(sys.prefix) in Path(script).absolute().parents:
        return [Path.cwd()]
    return [Path.cwd(), Path(script).resolve().parent]


def _in_project(here: Path) -> _Found | None:
    """Return the ledger of the project around a folder; None if there is no project."""
    nearest = None
    for folder in (here, *here.parents):
        if nearest is None and (folder / FOLDER).is_dir():
            nearest = folder / FOLDER
        pyproject = folder / "pyproject.toml"
        configured = _configured(pyproject)
        if configured is not None:
            return _named(configured, str(pyproject), folder)
        if pyproject.is_file() or (folder / ".git").exists():
            return _Found(ledger_url(nearest or folder / FOLDER))
    return None


def _configured(pyproject: Path) -> str | None:
    """Return the ledger that a pyproject.toml names; a file that does not mention us is not parsed."""
    import tomllib

    try:
        text = pyproject.read_text(encoding="utf-8")
        if "tool.rankeval" not in text:
            return None
        ledger = tomllib.loads(text).get("tool", {}).get("rankeval", {}).get("ledger")
    except (FileNotFoundError, NotADirectoryError):
        return None
    # An AttributeError if `tool` or `tool.rankeval` is no table.
    except (
        OSError,
        UnicodeDecodeError,
        tomllib.TOMLDecodeError,
        RecursionError,
        AttributeError,
    ) as error:
        raise ConfigError(
            f"{pyproject} cannot be read, and may name the ledger: {error}"
        ) from error
    if ledger is not None and (not isinstance(ledger, str) or not ledger.strip()):
        raise ConfigError(
            f'{pyproject}: [tool.rankeval] ledger is {ledger!r}, expected a path, a URL or "off"'
        )
    return ledger
