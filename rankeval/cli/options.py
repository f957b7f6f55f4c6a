"""Translate keywords of Python into options of the shell."""

from __future__ import annotations

import re
import sys
from typing import Any

from typer.core import TyperCommand, TyperOption

_RULES = re.compile(r"\b(ties|missing|no_relevant|score_dtype)='([^']+)'")
_LIMIT = re.compile(r"limits=Limits\((\w+)=\.\.\.\)")
_COMMANDS = {"evaluate", "compare", "guard"}
_SETTINGS = {"n_resamples": "--resamples", "alpha": "--alpha", "rng is": "--seed is"}
_SETTING = re.compile(rf"\b({'|'.join(_SETTINGS)})(=?)")


class FormatsInHelp(TyperCommand):
    """A command whose help lists the formats of files; they are imported only for that."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Put the declared formats into the help, and print it."""
        from rankeval.io.formats import format_list

        for param in self.params:
            if isinstance(param, TyperOption) and param.help:
                param.help = param.help.replace("{formats}", format_list("relevance"))
        super().format_help(ctx, formatter)


def as_options(message: str) -> str:
    """Replace the keywords in a message by options of the command line.

    Parameters
    ----------
    message : str
        The message of an error, or notes on a result.
    """
    if sys.argv[1:2] == ["run"]:
        return _LIMIT.sub(r"data.limits.\1 in the experiment file", message)
    if not _COMMANDS & set(sys.argv[1:2]):
        return message
    message = _LIMIT.sub(r"--limit \1=...", message)
    message = _SETTING.sub(lambda found: _SETTINGS[found[1]] + " " * len(found[2]), message)
    message = _RULES.sub(lambda found: f"--{found[1].replace('_', '-')} {found[2]}", message)
    return f"{message}; or give the size by -N" if "needs collection_size" in message else message


def sized(spec: str, collection_size: int | None) -> str:
    """Add the size of the collection to a measure that needs one.

    Parameters
    ----------
    spec : str
        A measure as given by ``-m``.
    collection_size : int, optional
        The size as given by ``-N``.
    """
    from inspect import Parameter

    from rankeval.measures.family import FAMILIES

    written = re.fullmatch(r"\s*(?P<head>\w+)\s*(?:\((?P<inside>.*)\))?\s*(?P<at>@[0-9]+)?\s*", spec)
    if collection_size is None or written is None or "collection_size" in spec:
        return spec
    for name, family in FAMILIES.items():
        if name.lower() == written["head"].lower() and family.defaults.get("collection_size") is Parameter.empty:
            inside = ", ".join(filter(None, (written["inside"], f"collection_size={collection_size}")))
            return f"{name}({inside}){written['at'] or ''}"
    return spec
