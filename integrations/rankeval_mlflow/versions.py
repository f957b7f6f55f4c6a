"""Versions of MLflow: the newest one that the tests passed with, and those that are known to break something.

Every version below 4 may be installed, since a release of ours for each of MLflow's would come too
late. A break that becomes known is named here, with the way around it, and whoever has that version
is warned.
"""

from __future__ import annotations

import re
from importlib import metadata

from rankeval.errors import warn

NEWEST_TESTED = "3.17"
"""The newest minor version of MLflow with which all tests passed."""

BREAKS: dict[str, str] = {}
"""The start of a version, such as "3.19" or "3.19.1": what it breaks, and what to do, as a sentence."""


def warn_of_breaks() -> None:
    """Warn of what the installed MLflow is known to break."""
    version = metadata.version("mlflow")
    for start, sentence in BREAKS.items():
        if f"{version}.".startswith(f"{start}."):
            warn(f"MLflow {version}: {sentence}")


def note_on_newer() -> str:
    """Return a note in parentheses if the installed MLflow is newer than all that were tested, else nothing."""
    version = metadata.version("mlflow")
    is_newer = _minor(version) > _minor(NEWEST_TESTED)
    return (
        f" ({version} is newer than the newest version tested, {NEWEST_TESTED})" if is_newer else ""
    )


def _minor(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)[:2]]
