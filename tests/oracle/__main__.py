"""The oracle for what comes: the same calls on two commits, and what differs.

::

    cd tests
    python -m oracle HEAD~1 HEAD                   # 20,000 calls on each
    python -m oracle HEAD . --borrow --calls 2000  # the working tree, with this interpreter's packages
    python -m oracle v1 . --only comparison --allow words --out found.json

Each commit is installed into an environment of its own, and a process there makes the calls: every
public function and command, with inputs drawn from the seed and the number of the call, a fifth of
them wrong. Of each result there is a digest. Calls whose digests differ are made again on both
commits, in new processes, with the whole tree of the result: a call that differs with itself is not
reproducible, any other difference has a class. Exit code 0: nothing differs but what is allowed; 1:
something does; 2: bad use.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from oracle.calls import load_recipes
from oracle.coverage import EXEMPT, public_names
from oracle.differences import CLASSES, Leaf, class_of
from oracle.environments import Environment, NoSourceError, build, copy_program, packages
from oracle.names import Names
from oracle.running import Job, results_of

AGAIN = 200
"""Differing calls of a recipe that are repeated and classed at most."""
EXAMPLES = 3


@dataclass
class Difference:
    """A call that differs: its recipe, its class and the places."""

    call: int
    recipe: str
    kind: str
    leaves: list[Leaf] = field(default_factory=list)

    @property
    def room(self) -> str:
        """The room of the recipe."""
        return self.recipe.partition(".")[0]


def say(text: str = "") -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    """Return the arguments of the command."""
    parser = argparse.ArgumentParser(
        prog="python -m oracle", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "old", nargs="?", default="HEAD", help="a revision, a folder, or . for the working tree"
    )
    parser.add_argument("new", nargs="?", default=".", help="as OLD; by default the working tree")
    parser.add_argument("--calls", type=int, default=20_000, help="number of calls")
    parser.add_argument("--first", type=int, default=0, help="number of the first call")
    parser.add_argument("--seed", type=int, default=0, help="the seed of all calls")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ROOM",
        help="a room of recipes; several times",
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes for each commit; from 2, both at a time"
    )
    parser.add_argument("--limit", type=float, default=120, help="seconds that a call may take")
    parser.add_argument(
        "--borrow", action="store_true", help="import dependencies from this interpreter"
    )
    parser.add_argument(
        "--allow", action="append", default=[], choices=CLASSES, help="a class that may differ"
    )
    parser.add_argument("--names", type=Path, help="another table of names than names.toml")
    parser.add_argument("--out", type=Path, help="a file of JSON for all that was found")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    asked = parser.parse_args(words)
    rooms = {each.room for each in load_recipes().values()}
    if unknown := set(asked.only) - rooms:
        parser.error(f"unknown room {min(unknown)}; rooms: {', '.join(sorted(rooms))}")
    return asked


def main(words: list[str] | None = None) -> int:
    """Run the oracle; return the exit code."""
    asked = parsed(words)
    base = Path(tempfile.mkdtemp(prefix="oracle-"))
    try:
        return _compared(asked, base)
    except NoSourceError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _compared(asked: argparse.Namespace, base: Path) -> int:
    program = copy_program(base / "program")
    old = build(asked.old, base / "old", program, borrow=asked.borrow)
    new = build(asked.new, base / "new", program, borrow=asked.borrow)
    for name, versions in _other_packages(old, new):
        say(f"the environments differ in {name}: {versions}")
    names = asked.names.resolve() if asked.names else None
    job = Job(asked.seed, base, _database(new, base), asked.only, asked.limit, names, asked.quiet)
    numbers = range(asked.first, asked.first + asked.calls)
    first, second = _on_both(old, new, numbers, job, asked.jobs)
    differing = [number for number in first if first[number]["digest"] != second[number]["digest"]]
    found = _classed(old, new, differing, first, job, asked.jobs)
    allowed = {*asked.allow}
    report(first, second, found, allowed)
    if asked.out:
        asked.out.write_text(json.dumps(_record(asked, first, second, found), indent=1))
    return int(any(each.kind not in allowed for each in found))


def _other_packages(old: Environment, new: Environment) -> Iterable[tuple[str, str]]:
    before, after = packages(old), packages(new)
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield name, f"{before.get(name)} and {after.get(name)}"


def _database(environment: Environment, base: Path) -> Path:
    """Make the tables of MLflow once."""
    path = base / "empty.db"
    program = f"from oracle.stores import make_database; make_database({str(path)!r})"
    command = [str(environment.python), "-P", "-c", program]
    found = subprocess.run(
        command, env=environment.variables, cwd=base, capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise NoSourceError(f"{environment.label}: no database of MLflow: {found.stderr[-2000:]}")
    return path


def _on_both(
    old: Environment,
    new: Environment,
    numbers: Iterable[int],
    job: Job,
    jobs: int,
    *,
    full: bool = False,
    word: str = "run",
) -> list[dict[int, dict[str, Any]]]:
    """Make the calls on both commits, at the same time if there may be several processes."""
    with ThreadPoolExecutor(max_workers=min(jobs, 2)) as pool:
        started = [
            pool.submit(
                results_of, each, numbers, job, jobs=max(jobs // 2, 1), full=full, word=word
            )
            for each in (old, new)
        ]
        try:
            return [each.result() for each in started]
        except BaseException:  # also an interrupt from the keyboard: the workers end too
            job.stop.set()
            raise


def _classed(
    old: Environment,
    new: Environment,
    differing: list[int],
    first: dict[int, dict[str, Any]],
    job: Job,
    jobs: int,
) -> list[Difference]:
    """Repeat the calls that differ, twice on each commit; return them with their classes."""
    by_recipe: Counter[str] = Counter()
    again = []
    for number in differing:
        by_recipe[first[number]["recipe"]] += 1
        if by_recipe[first[number]["recipe"]] <= AGAIN:
            again.append(number)
    if not again:
        return []
    if len(again) < len(differing):
        say(f"{len(differing) - len(again):,} calls differ and are not repeated: {AGAIN} a recipe")
    made = _on_both(old, new, again, job, jobs, full=True, word="again")
    repeats = _on_both(old, new, again, job, jobs, full=True, word="once-more")
    found = []
    for number in again:
        recipe = first[number]["recipe"]
        for side, repeated in zip(made, repeats, strict=True):
            if side[number]["digest"] != repeated[number]["digest"]:
                _, places = class_of(side[number]["tree"], repeated[number]["tree"])
                found.append(Difference(number, recipe, "not reproducible", places))
                break
        else:
            found.append(_difference(number, recipe, made[0][number], made[1][number]))
    return found


def _difference(number: int, recipe: str, old: dict[str, Any], new: dict[str, Any]) -> Difference:
    """Class a call; one that differed in the run and does not now depends on earlier calls."""
    if old["digest"] == new["digest"]:
        depends = Leaf(
            "calls before", "not reproducible", "differed in the run", "equal when made alone"
        )
        return Difference(number, recipe, "not reproducible", [depends])
    kind, places = class_of(old["tree"], new["tree"])
    return Difference(number, recipe, kind, places)


def report(
    first: dict[int, dict[str, Any]],
    second: dict[int, dict[str, Any]],
    found: list[Difference],
    allowed: set[str],
) -> None:
    """Print a table of classes by room, and examples of each class.

    Parameters
    ----------
    first, second : dict of int to dict
        Results of both commits.
    found : list of Difference
        Calls that differ.
    allowed : set of str
        Classes that may differ.
    """
    rooms = Counter(line["recipe"].partition(".")[0] for line in first.values())
    seconds = [sum(line["cpu"] for line in side.values()) for side in (first, second)]
    equal = sum(first[number]["digest"] == second[number]["digest"] for number in first)
    say(f"{len(first):,} calls, {equal:,} equal; {seconds[0]:.0f} and {seconds[1]:.0f} CPU s")
    kinds = [kind for kind in CLASSES if any(each.kind == kind for each in found)]
    header = ["room", "calls", "CPU s", *kinds]
    rows = [
        [room, *_row(room, count, first, found, kinds)] for room, count in sorted(rooms.items())
    ]
    widths = [max(len(str(row[at])) for row in [header, *rows]) for at in range(len(header))]
    for row in [header, *rows]:
        cells = (str(cell).rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        say("  ".join((str(row[0]).ljust(widths[0]), *cells)))
    for kind in kinds:
        of_kind = [each for each in found if each.kind == kind]
        say(f"\n{kind}{' (allowed)' * (kind in allowed)}: {len(of_kind)} calls; {CLASSES[kind]}")
        for each in _spread(of_kind):
            say(f"  call {each.call} {each.recipe}: {' '.join(str(each.leaves[0]).split())}")
    if never := _never_called(first):
        say(f"\nnever called in this run: {len(never)} public names: {', '.join(never[:12])} ...")


def _row(
    room: str,
    count: int,
    first: dict[int, dict[str, Any]],
    found: list[Difference],
    kinds: list[str],
) -> list[str]:
    seconds = sum(line["cpu"] for line in first.values() if line["recipe"].startswith(f"{room}."))
    counts = Counter(each.kind for each in found if each.room == room)
    return [f"{count:,}", f"{seconds:.1f}", *(str(counts[kind] or "") for kind in kinds)]


def _spread(found: list[Difference]) -> list[Difference]:
    """Return a few examples, of recipes that differ from each other if there are several."""
    of_recipe = list({each.recipe: each for each in reversed(found)}.values())[::-1]
    return of_recipe[:EXAMPLES] if len(of_recipe) >= EXAMPLES else found[:EXAMPLES]


def _never_called(results: dict[int, dict[str, Any]]) -> list[str]:
    """Return the public names that no call of a run has called."""
    called = {name for line in results.values() for name in line["called"]}
    met = {name for line in results.values() for name in line["classes"]}
    commands = [name for name in called if name.startswith("rankeval ")]
    return [
        name
        for name in public_names()
        if not any(each == name or each.endswith(f".{name}") for each in called)
        and name not in EXEMPT
        and name.rpartition(".")[2] not in met
        and not any(line.startswith(name) for line in commands)
    ]


def _record(
    asked: argparse.Namespace,
    first: dict[int, dict[str, Any]],
    second: dict[int, dict[str, Any]],
    found: list[Difference],
) -> dict[str, Any]:
    """Return all that was found, for a file."""
    differences = [
        {
            "call": each.call,
            "recipe": each.recipe,
            "class": each.kind,
            "places": [str(leaf) for leaf in each.leaves[:20]],
        }
        for each in found
    ]
    digests = {
        number: [line["recipe"], line["digest"], second[number]["digest"], line["cpu"]]
        for number, line in first.items()
    }
    settings = {"old": asked.old, "new": asked.new, "seed": asked.seed, "calls": asked.calls}
    renamed = len(Names.read(asked.names).names) if asked.names else len(Names.read().names)
    return {
        **settings,
        "names": renamed,
        "never_called": _never_called(first),
        "differences": differences,
        "digests": digests,
    }


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the workers end too
    sys.exit(main())
