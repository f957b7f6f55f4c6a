"""Find the ledger of this process.

The first of these decides, once per process and value of the variable:

1. the variable ``RANKEVAL_LEDGER``: a path, an SQLAlchemy URL, or ``off``;
2. ``ledger = "..."`` under ``[tool.rankeval]`` in the project's pyproject.toml;
3. the folder ``rankeval-ledger`` in the working directory or a folder above it, up to the root of the project, which
   is the first folder with a pyproject.toml or a .git.

A path names a folder, or a file of SQLite if it ends in ``.db``, ``.sqlite`` or ``.sqlite3``.

A `Guard` with a ledger of its own adds that one to those that the process looks into.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from rankeval._checks import shown
from rankeval.errors import ConfigError, InvalidInput, LedgerError

VARIABLE = "RANKEVAL_LEDGER"
_FILE = "file://"
FOLDER = "rankeval-ledger"
_SQLITE = (".db", ".sqlite", ".sqlite3")


def default_url() -> str | None:
    """Return the URL of the project's ledger, whether it exists or not; None if ledgers are switched off."""
    return next(iter(_ledgers()), None)


def watch(url: str) -> None:
    """Look into this ledger too from now on, unless ledgers are switched off.

    Parameters
    ----------
    url : str
        As `ledger_url` returns it.
    """
    ledgers = _ledgers()
    if ledgers and url not in ledgers:
        ledgers.append(url)


def active_urls() -> list[str]:
    """Return the ledgers that this process looks into, without files that do not exist."""
    return [url for url in _ledgers() if may_exist(url)]


def reset() -> None:
    """Forget the ledgers of this process, so that they are looked for again: for tests."""
    _found.cache_clear()


def ledger_url(spec: str | os.PathLike[str], *, base: Path | None = None) -> str:
    """Return a path or URL as a URL that does not depend on the working directory.

    Parameters
    ----------
    spec : str or path
        ``"rankeval-ledger"``, ``"ledger.db"``, ``"sqlite:///ledger.db"``, ``"postgresql+psycopg://..."``.
    base : path, optional
        The folder that relative paths start from; by default the working directory.

    Raises
    ------
    InvalidInput
        If it is neither.
    LedgerError
        If nothing can be kept there.
    """
    if not isinstance(spec, (str, os.PathLike)):
        raise InvalidInput(f"ledger is {shown(spec)}; expected a path or an SQLAlchemy URL")
    text = os.fspath(spec)
    if text == "mlflow":  # a word that reads like a server, and would be the name of a folder
        raise LedgerError("ledger='mlflow' is no ledger: give a path such as mlflow.db, or an SQLAlchemy URL")
    if text in {"sqlite://", "sqlite:///:memory:", ":memory:"}:
        raise LedgerError(f"ledger={text!r} is gone when the process ends: give a path")
    if "://" in text and sqlite_path(text) is None and not text.startswith(_FILE):
        return text
    path = sqlite_path(text) if "://" in text else text
    if text.startswith(_FILE):
        path = text.removeprefix(_FILE)
    if not path:
        raise LedgerError(f"ledger={text!r} names no file or folder: give a path such as {FOLDER}")
    whole = ((base or Path.cwd()) / Path(path).expanduser()).resolve()
    scheme = "sqlite:///" if sqlite_path(text) is not None or path.endswith(_SQLITE) else _FILE
    return f"{scheme}{whole}"


def folder_of(url: str) -> Path | None:
    """Return the folder of a URL; None for a database."""
    return Path(url.removeprefix(_FILE)) if url.startswith(_FILE) else None


def sqlite_path(url: str) -> str | None:
    """Return the file of an SQLite URL; None for other databases."""
    scheme, _, rest = url.partition("://")
    if scheme.partition("+")[0] != "sqlite":
        return None
    return rest.partition("?")[0].removeprefix("/")


def may_exist(url: str) -> bool:
    """Return whether there may be a ledger at a URL: False only for a file or folder that does not exist."""
    path = url.removeprefix(_FILE) if url.startswith(_FILE) else sqlite_path(url)
    return path is None or os.path.exists(path)  # noqa: PTH110 - called for every score; os is ten times faster


def _ledgers() -> list[str]:
    """Return the ledgers of this process, the project's own first; none if they are switched off."""
    return _found(os.environ.get(VARIABLE))


@cache
def _found(variable: str | None) -> list[str]:
    """Return the project's ledger in a list, to which `watch` adds others."""
    url = _resolved(variable)
    return [] if url is None else [url]


def _resolved(variable: str | None) -> str | None:
    if variable is not None and variable.strip().lower() == "off":
        return None
    if variable:
        return ledger_url(variable)
    here = Path.cwd()
    nearest = None
    for folder in (here, *here.parents):
        if nearest is None and (folder / FOLDER).is_dir():
            nearest = folder / FOLDER
        configured = _configured(folder / "pyproject.toml")
        if configured is not None:
            return None if configured.lower() == "off" else ledger_url(configured, base=folder)
        if (folder / "pyproject.toml").is_file() or (folder / ".git").exists():
            return ledger_url(nearest or folder / FOLDER)
    # There is no project around: a ledger further up belongs to something else.
    return ledger_url(here / FOLDER)


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
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError, AttributeError) as error:
        raise ConfigError(f"{pyproject} cannot be read, and may name the ledger: {error}") from error
    if ledger is not None and (not isinstance(ledger, str) or not ledger.strip()):
        raise ConfigError(f'{pyproject}: [tool.rankeval] ledger is {ledger!r}, expected a path, a URL or "off"')
    return ledger
