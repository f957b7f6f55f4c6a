"""What a recipe may do: call a public function, a method of a result, or a command.

::

    @recipe("evaluation", weight=400)
    def arrays(draw, call):
        rows = draw.rows()
        ev = call("rankeval.evaluate", rows["y"], rows["score"], qid=rows["qid"])
        call.of(ev, "Evaluation.worst", draw.integer(0, 5))

A recipe names what it calls by today's name, as text: `oracle.names` finds it in another commit,
and the test of coverage reads the names without running anything. A weight is a share: of 20,000
calls, a recipe gets about 0.7 times its weight. In a fifth of the calls one argument of one step is
wrong; which step, and how, follows from the seed as all else does.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import pkgutil
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from oracle.digest import Describer
from oracle.drawing import Draw
from oracle.names import MissingNameError, Names
from oracle.spoiling import spoiled_call, spoiled_line


@dataclass(frozen=True)
class Recipe:
    """A recipe of calls: its room, how often it is drawn, and which wide masks its results need."""

    name: str
    room: str
    weight: float
    function: Callable[[Draw, Call], None]
    hashes: bool = False
    timed: bool = False


RECIPES: dict[str, Recipe] = {}


def recipe(
    room: str, weight: float, *, hashes: bool = False, timed: bool = False
) -> Callable[[Callable[[Draw, Call], None]], Callable[[Draw, Call], None]]:
    """Declare a function as a recipe.

    Parameters
    ----------
    room : str
        The chapter that it belongs to.
    weight : float
        How often it is called, beside the weights of the others.
    hashes, timed : bool
        Whether results contain hashes over times, and durations.
    """

    def declare(function: Callable[[Draw, Call], None]) -> Callable[[Draw, Call], None]:
        name = f"{room}.{function.__name__}"
        RECIPES[name] = Recipe(name, room, weight, function, hashes, timed)
        return function

    return declare


def load_recipes() -> dict[str, Recipe]:
    """Import all modules of recipes; return the recipes by name."""
    folder = Path(__file__).parent
    for module in sorted(found.name for found in pkgutil.iter_modules([str(folder)])):
        if module.startswith("recipes_"):
            importlib.import_module(f"oracle.{module}")
    return dict(sorted(RECIPES.items()))


def recipe_of(seed: int, number: int, recipes: dict[str, Recipe]) -> Recipe:
    """Return the recipe of a call, which follows from the seed and its number alone.

    Parameters
    ----------
    seed, number : int
        The seed of the run, and the number of the call.
    recipes : dict of str to Recipe
        All recipes.
    """
    place = random.Random(f"recipe {seed} {number}")  # noqa: S311 - no secret
    return place.choices(list(recipes.values()), cum_weights=_bounds(recipes))[0]


_BOUNDS: dict[int, Sequence[float]] = {}


def _bounds(recipes: dict[str, Recipe]) -> Sequence[float]:
    return _BOUNDS.setdefault(
        len(recipes), list(accumulate(each.weight for each in recipes.values()))
    )


class Call:
    """One call: what its recipe does is recorded, step by step.

    Parameters
    ----------
    draw : Draw
        The choices of the call.
    names : Names
        The names of this commit.
    describer : Describer
        What describes the results.
    """

    def __init__(self, draw: Draw, names: Names, describer: Describer) -> None:
        self.draw, self.names, self.describer = draw, names, describer
        self.steps: list[Any] = []
        self.called: list[str] = []
        self.empty_database: Path | None = None
        self._wrong = draw.wrong

    def __call__(self, name: str, /, *args: Any, **options: Any) -> Any:
        """Call a public function and record its result. An error ends the recipe."""
        value = self.make(name, *args, **options)
        self.keep(name, value)
        return value

    def make(self, name: str, /, *args: Any, **options: Any) -> Any:
        """Call a public function without recording its result."""
        self.called.append(name)
        function = self.names.find(name)
        args, options = self._perhaps_wrong(args, options)
        return function(*args, **self.names.translated(name, function, options))

    def of(self, thing: Any, name: str, /, *args: Any, **options: Any) -> Any:
        """Call a method, named ``Class.method``; record its result or error, and go on."""
        self.called.append(name)
        try:
            method = self.names.method(thing, name)
            args, options = self._perhaps_wrong(args, options)
            value = method(*args, **self.names.translated(name, method, options))
            if isinstance(value, Iterator):
                value = list(value)
        except (Exception, self.refusal) as error:  # noqa: BLE001 - errors are results
            self.keep(name, error)
            return None
        self.keep(name, value)
        return value

    def tried(self, name: str, /, *args: Any, **options: Any) -> Any:
        """Call a public function; record its result or error, and go on after an error."""
        try:
            return self(name, *args, **options)
        except (Exception, self.refusal) as error:  # noqa: BLE001 - errors are results
            self.keep(name, error)
            return None

    def plain(self, thing: Any, *names: str) -> None:
        """Call methods of a result that need no arguments."""
        for name in names:
            self.of(thing, name)

    def keep(self, name: str, value: Any) -> None:
        """Record a value."""
        self.steps.append([name, self.describer.of(value)])

    @property
    def refusal(self) -> type[BaseException]:
        """The base of the errors that do not derive from Exception."""
        return self.names.find("rankeval.errors.Refusal")

    def _perhaps_wrong(
        self, args: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not self._wrong or self.draw.mischief.random() < 0.4:
            return args, options
        self._wrong = False
        return spoiled_call(args, options, self.draw.mischief)

    def command(self, *words: object) -> dict[str, Any]:
        """Run a command of ``rankeval`` in this process; record its exit code and what it prints.

        Parameters
        ----------
        *words : object
            The command and its arguments.
        """
        line = [str(word) for word in words]
        self.called.append(f"rankeval {' '.join(line)}")
        if self._wrong and self.draw.mischief.random() < 0.7:
            self._wrong = False
            line = spoiled_line(line, self.draw.mischief)
        printed = _run_command(
            self.names.find("rankeval.cli.main"), self.names.command_line(tuple(line))
        )
        described = {part: self.describer.of(value) for part, value in printed.items()}
        self.steps.append(["command", {"words": self.describer.masks.lines(line), **described}])
        return printed


def _run_command(main: Callable[[], None], line: list[str]) -> dict[str, Any]:
    """Run the command line with these words; return exit code, stdout and stderr."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    show = warnings.showwarning
    sys.argv = ["rankeval", *line]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code
    finally:
        sys.argv, warnings.showwarning = before, show
    return {"exit": code or 0, "stdout": out.getvalue(), "stderr": err.getvalue()}


def performed(chosen: Recipe, call: Call) -> None:
    """Run a recipe; an error that ends it is its last step."""
    try:
        chosen.function(call.draw, call)
    except MissingNameError as error:
        call.steps.append(["missing", str(error)])
    except (Exception, call.refusal) as error:  # noqa: BLE001 - errors are results
        call.steps.append(["raised", call.describer.error(error)])
