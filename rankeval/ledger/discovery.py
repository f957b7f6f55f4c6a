"""Where the ledger of this process is.

``RANKEVAL_LEDGER`` (a path, an SQLAlchemy URL, or ``off``), else ``ledger = "..."`` under ``[tool.rankeval]`` in the
project's pyproject.toml, else ``rankeval-ledger.db`` from the working directory up to the project's root, which is the
first folder with a pyproject.toml or a .git. This is resolved once per process and value of the variable; a `Guard`
with a ledger of its own adds that one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from rankeval.errors import ConfigError, LedgerError

VARIABLE = "RANKEVAL_LEDGER"
FILE = "rankeval-ledger.db"


@dataclass
class _Place:
    """What was found for one value of the variable, and the ledgers added since."""

    variable: str | None
    url: str | None
    watched: list[str] = field(default_factory=list)


_PLACE: list[_Place] = []


def default_url() -> str | None:
    """Return the URL of the project's ledger, whether it exists or not; None if it is switched off."""
    return _place().url


def watch(url: str) -> None:
    """Look into this ledger too from now on, unless ledgers are switched off.

    Parameters
    ----------
    url : str
        As `ledger_url` returns it.
    """
    place = _place()
    if place.url is not None and url != place.url and url not in place.watched:
        place.watched.append(url)


def active_urls() -> tuple[str, ...]:
    """Return the ledgers that this process looks into; files that do not exist are left out."""
    place = _place()
    if place.url is None:
        return ()
    return tuple(url for url in (place.url, *place.watched) if may_exist(url))


def reset() -> None:
    """Forget what was resolved, so that it is looked for anew: for tests."""
    _PLACE.clear()


def ledger_url(spec: str | os.PathLike[str], *, base: Path | None = None) -> str:
    """Return a path or URL as an SQLAlchemy URL that does not depend on the working directory.

    Parameters
    ----------
    spec : str or path
        ``"ledger.db"``, ``"sqlite:///ledger.db"``, ``"postgresql+psycopg://..."``.
    base : path, optional
        The folder that relative paths start from; by default the working directory.

    Raises
    ------
    LedgerError
        For what cannot be a ledger.
    """
    text = os.fspath(spec)
    if text == "mlflow":
        raise LedgerError('ledger="mlflow" is not there yet: give a path, "sqlite:///..." or another SQLAlchemy URL')
    if text in {"sqlite://", "sqlite:///:memory:", ":memory:"}:
        raise LedgerError(f"ledger={text!r} is gone when the process ends: give the path of a file")
    if "://" in text and not text.startswith("sqlite"):
        return text
    if "://" in text:
        text = sqlite_path(text) or ""
    if not text or text.endswith(("/", os.sep)):
        raise LedgerError(f"ledger={os.fspath(spec)!r} names no file: give a path such as {FILE}")
    return f"sqlite:///{((base or Path.cwd()) / Path(text).expanduser()).resolve()}"


def sqlite_path(url: str) -> str | None:
    """Return the file behind an SQLite URL, None for other databases.

    Parameters
    ----------
    url : str
        An SQLAlchemy URL.
    """
    scheme, _, rest = url.partition("://")
    if scheme.partition("+")[0] != "sqlite":
        return None
    return rest.partition("?")[0].removeprefix("/")


def _place() -> _Place:
    variable = os.environ.get(VARIABLE)
    if not _PLACE or _PLACE[0].variable != variable:
        _PLACE[:] = [_Place(variable, _resolve(variable))]
    return _PLACE[0]


def _resolve(variable: str | None) -> str | None:
    if variable is not None and variable.strip().lower() == "off":
        return None
    if variable:
        return ledger_url(variable)
    here = Path.cwd()
    nearest = None
    for folder in (here, *here.parents):
        if nearest is None and (folder / FILE).is_file():
            nearest = folder / FILE
        configured = _configured(folder / "pyproject.toml")
        if configured is not None:
            return None if configured.lower() == "off" else ledger_url(configured, base=folder)
        if (folder / "pyproject.toml").is_file() or (folder / ".git").exists():
            return ledger_url(nearest or folder / FILE)
    # No project around: a ledger further up belongs to something else.
    return ledger_url(here / FILE)


def _configured(pyproject: Path) -> str | None:
    """Return the ledger that a pyproject.toml names; the file is parsed only if it speaks of us."""
    import tomllib

    try:
        text = pyproject.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{pyproject} cannot be read, and may name the ledger: {error}") from error
    if "tool.rankeval" not in text:
        return None
    try:
        ledger = tomllib.loads(text).get("tool", {}).get("rankeval", {}).get("ledger")
    except (tomllib.TOMLDecodeError, RecursionError, AttributeError) as error:  # the last where tool is no table
        raise ConfigError(f"{pyproject} cannot be read, and may name the ledger: {error}") from error
    if ledger is not None and (not isinstance(ledger, str) or not ledger.strip()):
        raise ConfigError(f'{pyproject}: [tool.rankeval] ledger is {ledger!r}, expected a path, a URL or "off"')
    return ledger


def may_exist(url: str) -> bool:
    """Say whether there may be a ledger: False where it is a file that is not there.

    Parameters
    ----------
    url : str
        SQLAlchemy URL of a ledger.
    """
    path = sqlite_path(url)
    return path is None or os.path.exists(path)  # noqa: PTH110 - called for every score; os is ten times faster
