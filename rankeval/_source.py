"""Where this package can be installed from, for commands that people copy and for files that they commit.

No name on an index is ours, so a name alone would install what anybody registers under it. An
address is named only if the user set it (``RANKEVAL_SOURCE``) or pip recorded it (PEP 610), and
only if it works elsewhere and holds no secret: ``https``, or a repository by ``https`` or ``ssh``,
without a login and a query. For all else a placeholder stands in the command, which pip refuses
without asking an index.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rankeval._secrets import masked

DISTRIBUTION = "rankeval-mlflow"
SETTING = "RANKEVAL_SOURCE"
PLACEHOLDER = "<PATH-OR-URL-OF-RANKEVAL>"
FILL_IN = f"fill in {PLACEHOLDER}: file:///..., https://... or git+https://..., or set {SETTING}"

# No quote, blank, $ or brace: an address stands in a shell's quotes, and in the expressions of a
# workflow.
_PLAIN = re.compile(r"[A-Za-z0-9._~:/@%+,=#-]+")
_REPOSITORY = re.compile(r"(git|hg|svn|bzr)\+(https|ssh)")
_REVISION = re.compile(r"[A-Za-z0-9._-]+")


def requirement(extra: str = "") -> str:
    """Return this package, with an extra of it, as a requirement of pip: with its address or a placeholder."""
    return f"{DISTRIBUTION}{extra and f'[{extra}]'} @ {address() or PLACEHOLDER}"


def install(extra: str = "", options: str = "") -> str:
    """Return the command that installs this package, with a comment if something must be filled in."""
    command = " ".join(filter(None, ("pip install", options, f'"{requirement(extra)}"')))
    return command if address() else f"{command}  # {FILL_IN}"


def address() -> str | None:
    """Return the address that others can install this package from, or None if none is known."""
    setting = os.environ.get(SETTING, "").strip()
    found = setting or _recorded()
    return found if found and _is_for_others(found) else None


def _is_for_others(text: str) -> bool:
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    is_reachable = parts.scheme == "https" or _REPOSITORY.fullmatch(parts.scheme) is not None
    has_more = (
        "@" in parts.netloc or "?" in text or not re.fullmatch("(subdirectory=.*)?", parts.fragment)
    )
    bare = text.partition("#")[0]
    is_plain = _PLAIN.fullmatch(text) is not None and masked(bare) == bare
    return is_reachable and has_host and is_plain and not has_more


def _recorded() -> str | None:
    """Return the address in pip's record of this installation, a repository with the commit."""
    from importlib import metadata  # slow to import

    try:
        found = metadata.distribution(DISTRIBUTION)
        record: Any = json.loads(found.read_text("direct_url.json") or "{}")
        is_this = (
            Path(str(found.locate_file("rankeval"))).resolve() == Path(__file__).resolve().parent
        )
        url, below = str(record["url"]), record.get("subdirectory")
        if "vcs_info" in record:
            version = record["vcs_info"]
            is_plain = _REVISION.fullmatch(version["commit_id"]) and "@" not in urlsplit(url).path
            url = f"{version['vcs']}+{url}@{version['commit_id']}" if is_plain else ""
        elif "archive_info" not in record:
            url = ""
    except (
        metadata.PackageNotFoundError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OSError,
    ):
        return None
    if not (url and is_this):
        return None
    return f"{url}#subdirectory={below}" if below else url
