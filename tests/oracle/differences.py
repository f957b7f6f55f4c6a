"""Classes of differences between two trees of one call, from a missing name down to a word.

::

    tree, tree -> walk both -> leaves that differ, each with a path and a class -> the gravest class
    of the call

A text whose words agree and whose numbers differ is a difference of values, so a rounded number in
a table counts as one. Whatever differs below ``files`` is of the class files, unless only last bits
do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from oracle.digest import are_close, canonical, is_number, number_of

CLASSES = {
    "not reproducible": "the call differs with itself on one commit",
    "missing name": "one commit lacks a public name, and names.toml has no other",
    "died": "the process ended or hung on one commit",
    "only old raises": "the new commit answers where the old one raised",
    "only new raises": "the new commit raises where the old one answered",
    "error class": "both raise, errors of different classes",
    "error fields": "both raise the same class with other fields",
    "shape/type": "other types, shapes, columns or fields",
    "value": "numbers differ beyond their last bits",
    "files": "files differ, or what they contain",
    "last bits": "numbers differ by 1e-12 of themselves at most",
    "error message": "the same error says it in other words",
    "words": "other words or another order of words",
}
"""Classes, the gravest first."""

_NUMBER = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_ERROR_PARTS = {
    "error": "error class",
    "bases": "error class",
    "fields": "error fields",
    "message": "error message",
}
_NOTHING = object()


@dataclass(frozen=True)
class Leaf:
    """One place where two trees differ."""

    path: str
    kind: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.path}: {_short(self.old)} -> {_short(self.new)}"


def _short(value: Any, width: int = 70) -> str:
    text = "nothing" if value is _NOTHING else value if isinstance(value, str) else canonical(value)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def leaves(old: Any, new: Any, path: str = "", inside: str = "") -> Iterator[Leaf]:
    """Yield the places where two trees differ.

    Parameters
    ----------
    old, new : object
        Trees of `oracle.digest`.
    path : str
        Where they stand in the whole.
    inside : str
        The class that all below belongs to, as the part of an error.
    """
    if canonical(old) == canonical(new):
        return
    if is_number(old) and is_number(new):
        close = are_close(number_of(old), number_of(new))
        kind = (
            "last bits" if close and type(old) is type(new) else "shape/type" if close else "value"
        )
        yield Leaf(path, kind if kind == "last bits" else inside or kind, old, new)
    elif isinstance(old, dict) and isinstance(new, dict):
        yield from _of_mappings(old, new, path, inside)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _of_lists(old, new, path, inside)
    elif isinstance(old, str) and isinstance(new, str):
        yield _of_texts(old, new, path, inside)
    else:
        yield Leaf(path, inside or _of_kinds(old, new), old, new)


def _of_kinds(old: Any, new: Any) -> str:
    """Return the class of two trees of different forms."""
    raises = [isinstance(tree, dict) and "error" in tree for tree in (old, new)]
    if raises[0] != raises[1]:
        return "only old raises" if raises[0] else "only new raises"
    return "shape/type"


def _of_mappings(
    old: dict[str, Any], new: dict[str, Any], path: str, inside: str
) -> Iterator[Leaf]:
    if ("error" in old) != ("error" in new):
        yield Leaf(path, inside or _of_kinds(old, new), old, new)
        return
    is_error = "error" in old
    for name in sorted({*old, *new}):
        part = f"{path}.{name}" if path else name
        kind = inside or (_ERROR_PARTS.get(name, "") if is_error else "")
        if name in old and name in new:
            yield from leaves(old[name], new[name], part, kind)
        else:
            yield Leaf(part, kind or "shape/type", old.get(name, _NOTHING), new.get(name, _NOTHING))


def _of_lists(old: list[Any], new: list[Any], path: str, inside: str) -> Iterator[Leaf]:
    if len(old) != len(new):
        yield Leaf(f"{path} (length)", inside or "shape/type", len(old), len(new))
        return
    for place, (before, after) in enumerate(zip_longest(old, new)):
        yield from leaves(before, after, f"{path}[{place}]", inside)


def _of_texts(old: str, new: str, path: str, inside: str) -> Leaf:
    """Return the leaf of two texts, cut to where they first differ."""
    at = next(
        (place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    cut = max(at - 25, 0)
    shown = f"...{old[cut : cut + 90]}", f"...{new[cut : cut + 90]}"
    if inside:
        return Leaf(path, inside, *shown)
    if _NUMBER.sub("#", old) != _NUMBER.sub("#", new):
        return Leaf(path, "words", *shown)
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    close = all(
        before == after or are_close(_read(before), _read(after)) for before, after in pairs
    )
    return Leaf(path, "last bits" if close else "value", *shown)


def _read(number: str) -> float:
    return float(number.replace(",", "").rstrip(".") or 0)


def step_leaves(old: Any, new: Any) -> list[Leaf]:
    """Return the places where the trees of a call differ, the gravest first.

    Parameters
    ----------
    old, new : object
        Trees of `oracle.worker`: steps, warnings, what was printed, files.
    """
    if "died" in old or "died" in new:
        return [Leaf("process", "died", old.get("died", "an answer"), new.get("died", "an answer"))]
    found: list[Leaf] = []
    steps = list(zip_longest(old["steps"], new["steps"]))
    for place, (before, after) in enumerate(steps):
        found += _of_step(place, before, after)
        if found and found[-1].kind in ("only old raises", "only new raises", "missing name"):
            break  # what follows in one tree has nothing to stand beside
    found += [
        leaf for part in ("warnings", "printed") for leaf in _of_words(old[part], new[part], part)
    ]
    found += [
        leaf if leaf.kind == "last bits" else Leaf(leaf.path, "files", leaf.old, leaf.new)
        for leaf in leaves(old["files"], new["files"], "files")
    ]
    return sorted(found, key=lambda leaf: list(CLASSES).index(leaf.kind))


def _of_words(old: Any, new: Any, path: str) -> Iterator[Leaf]:
    """Yield where warnings or printed lines differ; one line more is a matter of words."""
    for leaf in leaves(old, new, path):
        yield Leaf(leaf.path, "words", leaf.old, leaf.new) if leaf.kind == "shape/type" else leaf


def _of_step(place: int, old: Any, new: Any) -> list[Leaf]:
    before, after = (("nothing", None) if step is None else tuple(step) for step in (old, new))
    path = f"step {place} {before[0] if before[0] != 'nothing' else after[0]}"
    if "missing" in (before[0], after[0]) and before != after:
        return [Leaf(path, "missing name", before[1], after[1])]
    fails = [step[0] == "raised" for step in (before, after)]
    if fails[0] != fails[1]:
        return [
            Leaf(path, "only old raises" if fails[0] else "only new raises", before[1], after[1])
        ]
    if before[0] != after[0]:
        return [Leaf(path, "shape/type", before[0], after[0])]
    return list(leaves(before[1], after[1], path))


def class_of(old: Any, new: Any) -> tuple[str, list[Leaf]]:
    """Return the gravest class of difference of a call, and the places.

    Parameters
    ----------
    old, new : object
        Trees of one call on two commits, whose digests differ.
    """
    found = step_leaves(old, new)
    return (found[0].kind, found) if found else ("words", [Leaf("tree", "words", "", "")])
