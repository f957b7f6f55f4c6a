"""Every public function, method and command, and which of them the recipes call.

The names are walked, as a reader finds them: ``__all__`` of the public modules, public methods of
public classes, commands of the command line. The recipes are read as text, so no call is made: a
name counts as called if a recipe has it as a string, as `oracle.calls` asks. Properties need no
recipe, since the digest reads every property.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oracle.names import Names

MODULES = [
    "rankeval",
    "rankeval.analysis",
    "rankeval.analysis.curves",
    "rankeval.datasets",
    "rankeval.errors",
    "rankeval.io",
    "rankeval.judging",
    "rankeval.model_selection",
    "rankeval.online",
    "rankeval.testing",
    "rankeval.text",
    "rankeval.significance",
    "rankeval.report",
    "rankeval.guard",
    "rankeval.experiment",
    "rankeval.measures",
    "rankeval.streaming",
    "rankeval.tracking",
    "rankeval_mlflow",
    "rankeval_pytest",
]
"""Public modules, in the order in which a name that several offer gets its path."""

EXEMPT = {
    "rankeval.measures.Column": "a part of what kernels read; every measure of a column makes one",
    "rankeval.measures.Spelling": "a part of a declaration of a measure, which is code",
    "rankeval.significance.Correction": "a declaration, which is code; adjust and compare call all",
    "rankeval.significance.SignificanceTest": "a declaration, which is code; paired_test calls all",
    "rankeval.significance.Claim": "a declaration, which is code; compare makes every claim",
    "rankeval.tracking.observed": "a decorator of the library itself; autolog watches through it",
    "rankeval.experiment.ExperimentResult": "made of a run of an experiment",
    "rankeval.guard.Gate": "made by Guard.gate",
    "rankeval.guard.Decision": "made by Gate.decide",
    "rankeval.analysis.Anova": "made by anova",
    "rankeval.datasets.BeirData": "made by load_beir",
    "rankeval.model_selection.Study": "made by Study.of",
    "Study.record": "has the times of its trials",
    "Study.from_record": "has the times of its trials",
    "Study.to_latex": "has the times of its trials",
    "Study.to_markdown": "has the times of its trials",
    "rankeval.tracking.StoredRun": "made by the reader of a host, which needs a server",
    "rankeval.tracking.Tracker": "a protocol, which has no instances",
    "Tracker.log": "a protocol, which has no instances",
    "Column.of": "a part of what kernels read; every measure of a column makes one",
}
"""Names without a recipe, and the reason."""

NOT_OURS = {"with_traceback", "add_note"}


def public_names() -> list[str]:
    """Return paths of functions and classes, ``Class.method`` of methods, lines of commands."""
    return [*_functions(), *_methods(), *commands()]


def _functions() -> Iterator[str]:
    seen: set[int] = set()
    for path in MODULES:
        module = importlib.import_module(path)
        for name in sorted(getattr(module, "__all__", None) or _own_names(module)):
            thing = getattr(module, name)
            if (
                id(thing) not in seen
                and callable(thing)
                and not isinstance(thing, types.ModuleType)
            ):
                seen.add(id(thing))
                yield f"{path}.{name}"


def _own_names(module: types.ModuleType) -> list[str]:
    """Return the functions and classes that a module without ``__all__`` defines."""
    return [
        name
        for name, thing in vars(module).items()
        if name[0] != "_"
        and (inspect.isfunction(thing) or inspect.isclass(thing))
        and thing.__module__ == module.__name__
    ]


def public_classes() -> dict[str, type]:
    """Return public classes by name, errors apart."""
    found = {}
    for path in _functions():
        module, _, name = path.rpartition(".")
        thing = getattr(importlib.import_module(module), name)
        if isinstance(thing, type) and not issubclass(thing, BaseException):
            found[name] = thing
    return found


def _methods() -> Iterator[str]:
    for kind, thing in sorted(public_classes().items()):
        for name in sorted(_own_methods(thing)):
            yield f"{kind}.{name}"


def _own_methods(kind: type) -> set[str]:
    """Return the public methods that a class or a base of ours defines."""
    bases = [
        base for base in kind.__mro__ if base.__module__.partition(".")[0].startswith("rankeval")
    ]
    return {
        name
        for base in bases
        for name, thing in vars(base).items()
        if name[0] != "_"
        and isinstance(thing, (types.FunctionType, classmethod, staticmethod))
        and name not in NOT_OURS
    }


def commands() -> list[str]:
    """Return the commands of ``rankeval``, as they are typed."""
    import typer

    from rankeval.cli import app

    top = typer.main.get_command(app)
    found: list[str] = []

    def walk(command: Any, path: tuple[str, ...]) -> None:
        if not hasattr(command, "list_commands"):
            found.append(" ".join(("rankeval", *path)))
            return
        context = command.make_context(
            path[-1] if path else "rankeval", ["x"], resilient_parsing=True
        )
        for name in command.list_commands(context):
            walk(command.get_command(context, name), (*path, name))

    walk(top, ())
    return sorted(found)


def named_in_recipes(folder: Path = Path(__file__).parent) -> set[str]:
    """Return the strings of the recipes, and the commands that they run.

    Parameters
    ----------
    folder : Path
        The folder of the modules of recipes.
    """
    found: set[str] = set()
    for path in sorted(folder.glob("recipes_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "command":
                found.add(" ".join(("rankeval", *_leading_words(node))))
    return found


def _leading_words(node: ast.Call) -> Iterator[str]:
    """Yield the words of a command line up to the first that is drawn."""
    for argument in node.args:
        if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
            return
        yield argument.value


def missing() -> list[str]:
    """Return the public names that no recipe calls and that are not exempt."""
    named = named_in_recipes()
    named |= {new for old, new in Names.read().names.items() if old in named}
    lines = [name for name in named if name.startswith("rankeval ")]
    return [
        name
        for name in public_names()
        if name not in EXEMPT
        and not is_named(name, named)
        and not any(_begins(line, name) for line in lines)
    ]


def is_named(name: str, named: set[str]) -> bool:
    """Return whether a recipe names it; class methods are called by their whole path."""
    return name in named or any(each.endswith(f".{name}") for each in named)


def _begins(line: str, command: str) -> bool:
    return line == command or line.startswith(f"{command} ")
