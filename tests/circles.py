"""Which cases a run of the tests tries: three circles, drawn by what a case is for.

    circle     asked for by                what it tries
    default    pytest                      laws, golden values, drills, one case of each way in: eight minutes
    complete   RANKEVAL_TESTS=complete     also servers, Spark, the browser, all guides, types: what `.ci/run` tries
    full       RANKEVAL_TESTS=full         also simulations, hundreds of kills, long fuzzing: `.ci/run --full PART`

A case belongs to the default circle unless a marker moves it to a wider one. Each marker is declared below, once, with
its one meaning; a case whose needs this machine lacks is left out, and that is a failure beyond the default circle.
A table of many rows is a law that loops over it, and `choose` says how many rows each circle tries.

The trap: pytest imports a module before it knows its marks, and the modules of wider circles import the largest
libraries. So the marks of a whole module (``pytestmark = ...``) are read from its text, and a module beyond the circle
is never imported.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TypeVar

CIRCLES = ("default", "complete", "full")
CIRCLE = os.environ.get("RANKEVAL_TESTS") or "default"
if CIRCLE not in CIRCLES:
    raise ValueError(f"RANKEVAL_TESTS={CIRCLE}: expected one of {', '.join(CIRCLES)}")
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
SLOW = 3.0
"""CPU seconds above which a case of the default circle needs the marker `worth`."""

T = TypeVar("T")
_PYTESTMARK = re.compile(r"^pytestmark = (\[[^]]*\]|[^#\n]*)", re.MULTILINE)


@dataclass(frozen=True)
class Marker:
    """What a marker means, the circle that its cases belong to, and why this machine cannot run them, if so.

    No installation mends an excused need: its cases are left out and counted in the wider circles too.
    """

    meaning: str
    circle: str = "default"
    missing: Callable[..., str | None] = lambda *_: None
    excused: bool = False


def _collections() -> str | None:
    return None if SHARED.is_dir() else f"needs the shared collections at {SHARED}"


def _browser() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return None if any(map(which, names)) else "needs Chromium on the PATH"


def _postgres() -> str | None:
    """Debian keeps PostgreSQL's programs off the PATH."""
    installed = which("postgres") or next(Path("/usr/lib/postgresql").glob("*/bin/postgres"), None)
    found = installed and find_spec("psycopg")
    return None if found else "needs PostgreSQL (Debian's package postgresql) and psycopg"


def _spark() -> str | None:
    found = which("java") and find_spec("pyspark")
    return None if found else "needs Java (Debian's package default-jre-headless) and PySpark"


def _packages(*names: str) -> str | None:
    absent = [name for name in names if not find_spec(name)]
    return f"needs {', '.join(absent)}: python -m pip install '.[test-all]'" if absent else None


def _other_users() -> str | None:
    """Only root can be other users and fill a disk, and not every container lets it mount one."""
    may_run = all(folder.stat().st_mode & 0o001 for folder in Path(sys.prefix).resolve().parents)
    is_root = os.name == "posix" and not os.getuid() and which("unshare")
    if (
        may_run
        and is_root
        and not subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode
    ):
        return None
    return "needs root, the right to mount, and a Python that other users may run"


MARKERS = {
    # What a case needs.
    "shared": Marker(
        "reads the collections in ../shared/data, which exist on our machines only", missing=_collections, excused=True
    ),
    "needs": Marker("imports these packages, which '.[test]' does not install", missing=_packages),
    "server": Marker("starts an MLflow server on loopback, which takes 13 s", "complete"),
    "browser": Marker("drives headless Chromium", "complete", _browser),
    "postgres": Marker("starts a PostgreSQL server of its own on a socket", "complete", _postgres),
    "spark": Marker("starts Spark on loopback, in a JVM of its own", "complete", _spark),
    # What a case is for.
    "docs": Marker("runs or builds a page: guides beyond the five of the default, examples, the site", "complete"),
    "types": Marker("runs mypy or Pyright over a user's program", "complete"),
    "users": Marker("acts as other users of the machine, which only root may", "complete", _other_users, excused=True),
    "further": Marker("tries a way that the default circle does not", "complete"),
    "rest": Marker("tries the rest of a table, or again at length what a narrower circle shows once", "full"),
    "world": Marker("simulates a world many times, to hold a rate", "full"),
    "kill": Marker("kills processes, loses answers or lets writers race, many times", "full"),
    "fuzz": Marker("tries random inputs by the thousand", "full"),
    # What is tried in every circle, and more of it in a wider one.
    "random": Marker("tries random inputs, or a sample of a table; the circle says how many"),
    # What the default circle pays for.
    "worth": Marker(f"takes more than {SLOW:.0f} CPU seconds, and is in the default circle for the reason given"),
}
PARTS = {"worlds": "world", "kills": "kill", "fuzz": "fuzz or random", "laws": "hypothesis", "rest": "rest"}
"""Part of `.ci/run --full` -> the markers of the cases that it tries; the other parts need other environments."""


def choose(*, default: T, complete: T | None = None, full: T | None = None) -> T:
    """Return the value of the circle that is tried; a wider circle without one has that of the next narrower."""
    given = dict(zip(CIRCLES, (default, complete, full), strict=True))
    narrower = CIRCLES[: CIRCLES.index(CIRCLE) + 1]
    return next(given[circle] for circle in reversed(narrower) if given[circle] is not None)


def examples(number: int) -> int:
    """Return how many examples of Hypothesis to try: a quarter of a number, all of them, or three times as many."""
    return choose(default=max(number // 4, 8), complete=number, full=3 * number)


def is_beyond(circle: str) -> bool:
    """Return whether a circle is wider than the one that is tried."""
    return CIRCLES.index(circle) > CIRCLES.index(CIRCLE)


@cache
def missing(name: str, arguments: tuple[str, ...] = ()) -> str | None:
    """Return why this machine cannot run the cases of a marker, or None."""
    return MARKERS[name].missing(*arguments) if name in MARKERS else None


def module_marks(path: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Return the marks of a whole module and their arguments, as its text has them."""
    statement = _PYTESTMARK.search(path.read_text("utf-8"))
    found = re.findall(r"\bpytest\.mark\.(\w+)(\([^)]*\))?", statement[0] if statement else "")
    return [(name, tuple(re.findall(r"""["'](.*?)["']""", arguments))) for name, arguments in found if name in MARKERS]
