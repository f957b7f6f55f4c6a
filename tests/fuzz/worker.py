"""Tries inputs by number, in a process that dies of a hang or of too much memory: ``python -m fuzz.worker FIRST LAST``.

Each complaint is one line of JSON on stdout. The number of the input that is tried stands in the file ``at``, so that
whoever started this process knows what it died of.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import tempfile
import warnings
from pathlib import Path

from fuzz.kinds import Kind, all_kinds
from fuzz.mutations import mutated
from fuzz.plain_readers import Open, Wrong

from rankeval.errors import RankevalError, Refusal

SECONDS, MEMORY, SEED = 10, 2 << 30, 20261121


def complaint(kind: Kind, content: bytes, folder: Path) -> str | None:
    """Return what is wrong with the answer to an input, if anything is."""
    for name, beside in kind.beside:
        (folder / name).write_bytes(beside)
    path = folder / kind.name
    path.write_bytes(content)
    try:
        rows = kind.read(path)
    except (RankevalError, Refusal) as error:
        said = str(error)
        if "\n" in said:
            return f"several lines: {said!r}"
        if kind.named and path.stem not in said:
            return f"no name of a file: {said}"
        return None if kind.plain is None or not kind.strict else _refused(kind, content, said)
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        return f"traceback: {type(error).__name__}: {error}"
    if kind.plain is None:
        return None
    try:
        expected = kind.plain(content)
    except Open:
        return None
    except Wrong as wrong:
        return f"read, though it is wrong ({wrong}): {rows[:3]!r} ... {len(rows)} rows"
    return None if list(rows) == expected else f"other rows: {_difference(rows, expected)}"


def _refused(kind: Kind, content: bytes, said: str) -> str | None:
    """Say so where the plain reader takes what was refused, unless a limit was the reason."""
    if "raise it: limits=" in said or "it must fit a 64-bit number" in said:
        return None
    try:
        kind.plain(content)
    except Wrong:
        return None
    return f"refused, though it is right: {said}"


def _difference(rows: list[object], expected: list[object]) -> str:
    if len(rows) != len(expected):
        return f"{len(rows)} rows, {len(expected)} expected"
    at = next(at for at, (one, other) in enumerate(zip(rows, expected, strict=True)) if one != other)
    return f"row {at}: {rows[at]!r}, expected {expected[at]!r}"


def _complain(number: int, kind: Kind, found: str) -> None:
    sys.stdout.write(json.dumps([number, kind.name, found[:600]]) + "\n")
    sys.stdout.flush()


def main(first: int, last: int, at: int) -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        kinds = all_kinds(folder)
        for kind in kinds:
            inside = folder / f"whole-{kind.name}"
            inside.mkdir()
            if found := complaint(kind, kind.example, inside):
                _complain(-1, kind, found)
        # On top of what the libraries map when they are loaded, most of which is never touched.
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))
        for number in range(first, last):
            kind = kinds[number % len(kinds)]
            os.pwrite(at, b"%12d" % number, 0)
            content = mutated(kind.example, random.Random(f"{SEED}-{number}"))  # noqa: S311 - no secret
            inside = folder / str(number % len(kinds))  # files of one kind are no neighbours of another's
            inside.mkdir(exist_ok=True)
            signal.alarm(SECONDS)
            found = complaint(kind, content, inside)
            signal.alarm(0)
            if found:
                _complain(number, kind, found)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), os.open(sys.argv[3], os.O_CREAT | os.O_RDWR))
