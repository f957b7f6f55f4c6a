"""Tries odd values for every argument of every public function, method and command.

The valid calls are those of the oracle's recipes. A recipe is run as it is; after each of its calls, the call is made
again with one argument replaced by each value of `fuzz.odd_values`, also an argument that the recipe left out. ::

    recipe --> evaluate(y, score, qid=qid)              the valid call, whose result the recipe goes on with
                 |-- evaluate(None, score, qid=qid)     an error of ours, a refusal, or a value
                 |-- evaluate(y, score, qid=qid, name=[[1], None]) ...

A complaint is a line of JSON with the call that failed: an error that is not of `rankeval.errors`, no end within
seconds, or a result that cannot be shown. The call that is tried stands in a file, so that `complaints_of` knows what
the process died of, and starts it again without that call. To repeat a complaint, with its traceback::

    cd tests && python -m fuzz.odd_calls online.assign 0 "rankeval.online.assign(shares = None)"

Which pairs of an argument and a value are tried follows from a seed. A pair is tried once for each form of the call,
which is the types of its positional arguments.
"""

from __future__ import annotations

import contextlib
import faulthandler
import inspect
import io
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import typer
from fuzz.odd_values import VALUES, WORDS
from oracle import coverage
from oracle.calls import Call, Recipe, _run_command, load_recipes
from oracle.drawing import Draw
from oracle.names import Names
from oracle.stores import leave_stores, make_database
from oracle.worker import SETTINGS

from rankeval.errors import CheckFailed, RankevalError, Refusal, TrackingError

SEED, SECONDS, MEMORY = 0, 10, 4 << 30
WORDS_OF_SKLEARN = ("sklearn/utils/validation.py", "sklearn/model_selection/_split.py")
"""Its checks of estimators ask for its own words on a shape, and a splitter's own arguments are its own."""
EXEMPT = {
    "RankingData.take": "an IndexError is what it promises",
    "rankeval.profile(queries": "the function that is timed says itself what it cannot take",
    "rankeval.errors.": "errors are made by the library",
    "Claim.": "what tests of significance are written with",
    "Measure.values": "reads chunks that the library makes; evaluate takes what these are made of",
    "Settings.": "what tests of significance are written with",
    "SignificanceTest.floor": "a function of the declaration, which the library calls",
    "Correction.floor": "a function of the declaration, which the library calls",
    "PairedResult.": "what tests of significance are written with",
    "rankeval.report.summaries.GuardFacts": "made of a comparison by the library",
    "rankeval.experiment.ExperimentConfig(": "a model of pydantic, which says what a field cannot be",
    "rankeval_pytest.": "fixtures, which pytest calls",
}
"""Beginnings of names that nobody calls with arguments of their own, and the reason."""


class HangError(BaseException):
    """A call that did not end in time."""


@dataclass
class Trials:
    """Which pairs of an argument and a value to try, and what was found.

    Attributes
    ----------
    share : float
        The share of the pairs that are tried.
    at : int
        The descriptor of the file for the call that is tried.
    only : str
        Calls to try, as the beginning of their labels, with tracebacks; all if empty.
    skip : set of str
        Calls that ended a process.
    run : str
        The recipe and its number.
    """

    share: float
    at: int
    only: str = ""
    skip: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    arguments: set[str] = field(default_factory=set)
    accepted: list[str] = field(default_factory=list)
    run: str = ""

    def tries(self, name: str, argument: str, kind: str, form: str, call: Callable[[], Any]) -> None:
        """Try a pair, if it is of the share and was not tried in this form; write a line if it fails as no call may."""
        label = f"{name}({argument} = {kind}) of {form}"
        self.arguments.add(f"{name}({argument})")
        is_left_out = not label.startswith(self.only) or label.startswith(tuple(EXEMPT))
        if is_left_out or label in self.done or label in self.skip:
            return
        self.done.add(label)
        if random.Random(f"{SEED} {label}").random() < self.share:  # noqa: S311 - no secret
            self._try(label, call)

    def _try(self, label: str, call: Callable[[], Any]) -> None:
        os.pwrite(self.at, label.encode().ljust(300), 0)
        faulthandler.dump_traceback_later(3 * SECONDS, exit=True, file=sys.__stderr__)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        found = complaint(call, with_traceback=bool(self.only))
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        if found is None:
            self.accepted.append(label)
        elif found:
            tell([self.run, label, found])


def tell(line: object) -> None:
    """Write a line of JSON for whoever started this process."""
    sys.__stdout__.write(json.dumps(line) + "\n")
    sys.__stdout__.flush()


def complaint(call: Callable[[], Any], *, with_traceback: bool = False) -> str | None:
    """Return what is wrong with the answer of a call: "" if it is refused as it should be, None if it has a value."""
    try:
        call()
    except (RankevalError, Refusal) as error:
        said = str(error)
        return f"several lines: {said!r}" if "\n" in said and not isinstance(error, CheckFailed | TrackingError) else ""
    except SystemExit as stop:
        return None if stop.code in {0, None} else ""
    except BaseException as error:  # noqa: BLE001 - this is what is looked for
        if with_traceback:
            traceback.print_exception(error, file=sys.__stderr__)
        return "" if is_of_others(error) else f"{type(error).__name__}: {str(error)[:150]} @ {place(error)}"
    return None


def shown(value: Any, function: Callable[..., Any]) -> None:
    """Show what a function returns, as a session does; whoever makes a result by hand answers for its parts."""
    if isinstance(value, Iterator):
        value = list(value)
    if isinstance(function, type):
        return
    repr(value)
    if hasattr(value, "_repr_html_"):
        value._repr_html_()


def is_of_others(error: BaseException) -> bool:
    """Return whether an error is another library's word on its own argument, or Python's on a call that cannot be."""
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    is_unbound = isinstance(error, TypeError) and last.endswith(("odd_calls.py", "_arguments.py"))
    is_in_words = isinstance(error, (ValueError, TypeError)) and last.endswith(WORDS_OF_SKLEARN)
    return is_unbound or is_in_words or type(error).__name__ in {"InvalidParameterError", "NotFittedError"}


def place(error: BaseException) -> str:
    """Return where an error left rankeval: file, line and function."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/rankeval" in frame.filename]
    if not frames:
        return "?"
    return f"{frames[-1].filename.rpartition('/rankeval')[2]}:{frames[-1].lineno} {frames[-1].name}"


class OddCall(Call):
    """The calls of a recipe, each of which is tried with odd arguments after it."""

    def __init__(self, draw: Draw, names: Names, trials: Trials) -> None:
        draw.wrong = False
        super().__init__(draw, names, None)  # type: ignore[arg-type] # nothing is described
        self.trials = trials

    def keep(self, name: str, value: Any) -> None:
        """Record nothing."""

    def make(self, name: str, /, *args: Any, **options: Any) -> Any:
        """Call a public function, and try its arguments."""
        function = self.names.find(name)
        value = function(*args, **options)
        self._vary(self.names.now(name), function, args, options)
        return value

    def of(self, thing: Any, name: str, /, *args: Any, **options: Any) -> Any:
        """Call a method, and try its arguments."""
        try:
            method = self.names.method(thing, name)
            value = method(*args, **options)
            value = list(value) if isinstance(value, Iterator) else value
        except (Exception, Refusal):  # noqa: BLE001 - a recipe may make a wrong call
            return None
        self._vary(name, method, args, options)
        return value

    def _vary(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.trials.arguments.add(f"{name}()")
        form = ", ".join(type(one).__name__ for one in args)
        for argument, where in _places(function, args, options):
            for kind, made in VALUES.items():
                self.trials.tries(name, argument, kind, form, partial(_changed, function, args, options, where, made))

    def command(self, *words: object) -> dict[str, Any]:
        """Run a command, and try each of its words and options."""
        line = [str(word) for word in words]
        main = self.names.find("rankeval.cli.main")
        os.environ.pop("RANKEVAL_TRACEBACK", None)
        printed = _run_command(main, line)
        if printed["exit"] in {0, 1}:
            os.environ["RANKEVAL_TRACEBACK"] = "1"
            self._vary_words(main, line)
        return printed

    def _vary_words(self, main: Callable[[], None], line: list[str]) -> None:
        path = next((path for path in _command_paths() if line[: len(path)] == path), None)
        if path is None:
            return  # a group of commands, which takes nothing
        name = " ".join(["rankeval", *path])
        self.trials.arguments.add(f"{name}()")
        for argument, words in _lines(path, line):
            for kind, word in WORDS.items():
                changed = [word if each is None else each for each in words]
                self.trials.tries(name, argument, kind, "words", partial(_ended, main, changed))


def _changed(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    where: int | str,
    made: Callable[[], Any],
) -> None:
    """Make a call with one argument changed, and show what it returns."""
    given: dict[Any, Any] = {**dict(enumerate(args)), **options, where: made()}
    named = {name: value for name, value in given.items() if isinstance(name, str)}
    shown(function(*(given[place] for place in range(len(args))), **named), function)


def _ended(main: Callable[[], None], line: list[str]) -> None:
    try:
        code = _run_command(main, line)["exit"]
    except OSError as error:
        if error.filename is None:
            raise
        code = 2  # the command line shows file and reason
    if code:
        raise SystemExit(code)


def _places(
    function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
) -> Iterator[tuple[str, int | str]]:
    """Yield the arguments of a function, and where each is given in a call."""
    yield from ((name, name) for name in options)
    place = 0
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            yield from ((f"{name}[{at}]", at) for at in range(place, len(args)))
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) and place < len(args):
            yield name, place
            place += 1
        elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY) and name not in options:
            yield name, name


def _command_paths() -> list[list[str]]:
    """Return the words of all commands, longer ones first."""
    return sorted((name.split()[1:] for name in coverage.commands()), key=len, reverse=True)


def _lines(path: list[str], line: list[str]) -> Iterator[tuple[str, list[str | None]]]:
    """Yield the places of a command line, and the line with None at the place."""
    from rankeval.cli import app

    command = typer.main.get_command(app)
    for word in path:
        context = command.make_context(word, [], resilient_parsing=True)
        command = command.get_command(context, word)  # type: ignore[attr-defined]
    for at in range(len(path), len(line)):
        if not line[at].startswith("-"):
            before = line[at - 1]
            argument = before if before.startswith("-") else f"argument {at - len(path)}"
            yield argument, [*line[:at], None, *line[at + 1 :]]
    for option in command.params:
        flag = max(option.opts, key=len)
        if flag.startswith("-") and not set(option.opts) & set(line) and not getattr(option, "is_flag", False):
            yield flag, [*line, flag, None]


def _stop(*_: object) -> None:
    raise HangError("no end")


def run(chosen: Recipe, number: int, trials: Trials, base: Path, database: Path | None) -> None:
    """Run a recipe in a folder of its own, with all odd calls."""
    from rankeval.contamination import forget

    folder = base / f"{chosen.name}-{number}"
    folder.mkdir()
    os.chdir(folder)
    settings = dict(os.environ)
    trials.run = f"{chosen.name} {number}"
    np.random.seed(number)  # noqa: NPY002 - what estimators may read
    call = OddCall(Draw(SEED, number), Names.read(), trials)
    call.empty_database = database
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            # A recipe may make a wrong call, which ends it.
            with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(Exception, Refusal):
                chosen.function(call.draw, call)
    finally:
        os.chdir(base)
        os.environ.clear()
        os.environ.update(settings)
        forget()
        if database is not None:
            leave_stores()
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
        shutil.rmtree(folder, ignore_errors=True)


def main(job: Mapping[str, Any]) -> None:
    """Run the recipes of a job, and print complaints."""
    base = Path(tempfile.mkdtemp(prefix="odd-calls-"))
    os.environ.update({**SETTINGS, "HOME": str(base), "RANKEVAL_SPOOL": str(base / "spool"), "LOKY_MAX_CPU_COUNT": "1"})
    os.fsync = lambda _: None  # what is written need not reach the disk
    os.chdir(base)
    recipes = load_recipes()
    database = None
    if any("mlflow" in name for name, _ in job["runs"]):
        make_database(database := base / "empty.db")
    at = os.open(job["at"], os.O_CREAT | os.O_RDWR)
    trials = Trials(job["share"], at, only=job.get("only", ""), skip=set(job.get("skip", ())))
    # On top of what the libraries map when they are loaded, most of which is never touched.
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))
    signal.signal(signal.SIGALRM, _stop)
    try:
        for name, number in job["runs"]:
            tell({"begun": [name, number]})
            run(recipes[name], number, trials, base, database)
    finally:
        os.chdir("/")
        shutil.rmtree(base, ignore_errors=True)
    tell({"arguments": sorted(trials.arguments), "accepted": trials.accepted})


def complaints_of(runs: Sequence[tuple[str, int]], share: float, folder: Path) -> tuple[list[list[str]], list[str]]:
    """Run recipes in processes of their own; return the complaints, and the arguments for which values were tried.

    Parameters
    ----------
    runs : sequence of (str, int)
        Recipes and their numbers.
    share : float
        The share of the pairs of an argument and a value to try.
    folder : Path
        A folder for the job.
    """
    found, left, skip, at, path = [], [list(one) for one in runs], [], folder / "at", folder / "job.json"
    arguments: set[str] = set()
    while left:
        path.write_text(json.dumps({"runs": left, "share": share, "skip": skip, "at": str(at)}))
        command = [sys.executable, "-m", "fuzz.odd_calls", str(path)]
        environment = {
            **os.environ,
            "MALLOC_ARENA_MAX": "2",
            "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[1])]),
        }
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=environment)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        found += [line for line in lines if isinstance(line, list)]
        arguments.update(*(line["arguments"] for line in lines if "arguments" in line))
        if done.returncode == 0:
            break
        begun = [line["begun"] for line in lines if "begun" in line]
        if not begun:
            raise RuntimeError(done.stderr)
        # It died of the call that it was trying: of memory, of a crash of a library, or without an end.
        skip.append(at.read_text())
        found.append([str(begun[-1]), skip[-1], f"ended with {done.returncode}: {done.stderr[-500:]}"])
        left = left[left.index(begun[-1]) :]
    return found, sorted(arguments)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(json.loads(Path(sys.argv[1]).read_text()))
    else:
        recipe, number, label = sys.argv[1:]
        main({"runs": [[recipe, int(number)]], "share": 1, "only": label, "at": os.devnull})
