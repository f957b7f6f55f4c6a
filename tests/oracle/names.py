"""Names of today for names of another commit: recipes use one vocabulary.

An entry has an effect only on a commit that has the new name and not the old. So the table may be
written before the rename, and stays right for the commits before it. Fields and errors are
described under the old name, so that a mere rename leaves the digest as it was.
"""

from __future__ import annotations

import importlib
import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("names.toml")
_NOTHING = object()


class MissingNameError(LookupError):
    """A commit has a public name neither under today's name nor under a new one."""


def found(path: str) -> Any:
    """Return what a dotted path names: a module, or what is in one.

    Parameters
    ----------
    path : str
        Such as ``rankeval.online.ClickLog.read``.
    """
    parts = path.split(".")
    home, thing = _deepest_module(path), None
    for start in (importlib.import_module(parts[0]), importlib.import_module(home)):
        thing = start
        for name in parts[len(start.__name__.split(".")) :]:
            thing = getattr(thing, name, _NOTHING)
        if thing is not _NOTHING:
            return thing
    raise MissingNameError(path)


@cache
def _deepest_module(path: str) -> str:
    """Return the module in which a path is looked up, if a package does not offer it by itself."""
    parts = path.split(".")
    for size in range(len(parts), 1, -1):
        try:
            return importlib.import_module(".".join(parts[:size])).__name__
        except ModuleNotFoundError:
            continue
    return parts[0]


@dataclass(frozen=True)
class Names:
    """The table of names, as a commit needs it.

    Parameters
    ----------
    names : dict of str to str
        Functions, classes and modules by their old path, and the new path.
    methods : dict of str to str
        Methods as ``Class.method``, and the new name of the method.
    arguments : dict of str to dict
        Of a function, or of all (``"*"``): old arguments, and a new name or ``{to = name, values =
        {old = new}}``. The new name ``"convention"`` with ``rule = true`` puts a rule into the
        convention.
    fields : dict of str to dict
        Of a class, or of all (``"*"``): old fields and new names.
    classes : dict of str to str
        Classes of results and errors by their old name, and the new name.
    commands, options : dict of str to str
        Commands and options of the command line.
    words : dict of str to str
        Old words of messages, and the new words.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fields: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path = TABLE) -> Names:
        """Return the table of a file.

        Parameters
        ----------
        path : Path
            A file as ``names.toml``.
        """
        return cls(**tomllib.loads(path.read_text("utf-8")))

    def find(self, path: str) -> Any:
        """Return what has a name today, under its new name if it has lost the old.

        Parameters
        ----------
        path : str
            A dotted path of today.

        Raises
        ------
        MissingNameError
            If the commit has neither.
        """
        return found(self.now(path))

    def now(self, path: str) -> str:
        """Return the path by which this commit has what has a name today."""
        try:
            found(path)
        except (MissingNameError, ImportError):
            if path not in self.names:
                raise MissingNameError(path) from None
            return self.names[path]
        return path

    def method(self, thing: Any, name: str) -> Any:
        """Return the method of an object that is ``Class.method`` today."""
        plain = name.rpartition(".")[2]
        if not hasattr(thing, plain) and hasattr(thing, self.methods.get(name, plain)):
            plain = self.methods.get(name, plain)
        if not hasattr(thing, plain):
            raise MissingNameError(name)
        return getattr(thing, plain)

    def translated(
        self, name: str, function: Callable[..., Any], options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return keyword arguments under the names that a function has in this commit.

        Parameters
        ----------
        name : str
            The path of the function today.
        function : callable
            The function in this commit.
        options : mapping of str to object
            Keyword arguments of today.
        """
        entries = {**self.arguments.get("*", {}), **self.arguments.get(name, {})}
        if not entries or not set(entries) & set(options):
            return dict(options)
        try:
            known = set(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            return dict(options)
        changed: dict[str, Any] = {}
        rules: dict[str, Any] = {}
        for argument, value in options.items():
            entry = entries.get(argument, argument)
            new = entry["to"] if isinstance(entry, Mapping) else entry
            if argument in known or new not in known:
                changed[argument] = value
            elif isinstance(entry, Mapping) and entry.get("rule"):
                rules |= {} if value is None else {argument: value}
            else:
                values = entry.get("values", {}) if isinstance(entry, Mapping) else {}
                changed[new] = values.get(value, value) if isinstance(value, str) else value
        if rules:
            base = changed.get("convention", "rankeval")
            changed["convention"] = found("rankeval.Convention").with_rules(base, **rules)
        return changed

    def old_class(self, name: str) -> str:
        """Return the name that a class has in the table's left column."""
        return next((old for old, new in self.classes.items() if new == name), name)

    def old_field(self, kind: str, name: str, own: Mapping[str, Any]) -> str:
        """Return the old name of a field, if the object does not have a field of that name too."""
        entries = {**self.fields.get("*", {}), **self.fields.get(self.old_class(kind), {})}
        return next((old for old, new in entries.items() if new == name and old not in own), name)

    def command_line(self, words: tuple[str, ...]) -> list[str]:
        """Return a command line with new names of commands and options."""
        line = list(words)
        for old, new in self.commands.items():
            size = len(old.split())
            if line[:size] == old.split():
                line[:size] = new.split()
        return [self.options.get(word, word) for word in line]
