"""Explains the error of another library by the argument that does not fit its annotation.

NumPy, pandas and Python refuse what they cannot use, but in their own words, which name no argument
of ours. So public functions and classes are `explained`: if a call fails with an error that is not
ours, its arguments are compared with their annotations, and the first that does not fit is refused.
If all fit, the error goes on as it is: it is the estimator's, say, or a defect of ours. An argument
that was taken out is answered by the new one, as `GONE` has it.

The trap: this checks nothing beforehand. An argument that does not fit its annotation and works
nevertheless goes on working. So a value that would go on in silence, or for ever, needs a check of
its own where it is used.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from numbers import Real
from os import PathLike, fspath
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from rankeval._checks import is_text, shown, whole_number
from rankeval.errors import InvalidInput, RankevalError

T = TypeVar("T")
Test = Callable[[Any], bool]

GONE = {
    rule: ("convention", f"convention=rk.Convention.with_rules({rule}=...)")
    for rule in ("ties", "missing", "no_relevant", "judgments")
} | {
    "unit": ("groups", "groups="),
    "test": ("collection", "collection="),
    "level": ("confidence_level", "confidence_level="),
    "alternative": ("claim", 'claim="better"'),
}
"""Argument that was taken out -> the argument of now, and how to write it.

It is the answer of each call that has the argument of now, and not the old one.
"""


def explained(thing: T) -> T:
    """Let a function, or the public methods of a class, refuse an argument that fits no annotation if a call fails."""
    if isinstance(thing, type):
        for name, member in list(vars(thing).items()):
            if name == "__init__" or name[0] != "_":
                _explain_method(thing, name, member)
        return thing
    function: Callable[..., Any] = thing  # type: ignore[assignment] # what is no class is a function here

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        try:
            return function(*args, **options)
        except Exception as error:
            # The arguments of an inner call have other names: the outermost call explains its own.
            is_said = isinstance(error, RankevalError) and not hasattr(error, "is_misfit")
            if not is_said and (misfit := _misfit(function, args, options)):
                raise misfit from error
            raise

    return call  # type: ignore[return-value] # it has the signature of the function


def _explain_method(kind: type, name: str, member: Any) -> None:
    if isinstance(member, types.FunctionType):
        setattr(kind, name, explained(member))
    elif isinstance(member, (classmethod, staticmethod)):
        setattr(kind, name, type(member)(explained(member.__func__)))


def _misfit(
    function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> InvalidInput | None:
    """Return the refusal of the first argument that does not fit its annotation, or None."""
    if answer := gone(options, inspect.signature(function).parameters):
        return answer
    for argument, value, annotation in _given(inspect.signature(function), args, options):
        fits, words = _kind(_hint(annotation, function))
        if not fits(value):
            is_odd_text = isinstance(value, str) and not is_text(value)
            expected = "text that UTF-8 can write, without NUL" if is_odd_text else words
            refusal = InvalidInput(argument=argument, found=shown(value), expected=expected)
            vars(refusal)["is_misfit"] = True
            return refusal
    return None


def gone(arguments: Iterable[str], known: Collection[str]) -> InvalidInput | None:
    """Return the answer to the first argument that a call no longer knows, or None."""
    for old in arguments:
        new, written = GONE.get(old, ("", ""))
        if old not in known and new in known:
            return InvalidInput("this argument is gone", argument=old, remedy=f"use {written}")
    return None


def _given(
    signature: inspect.Signature, args: tuple[Any, ...], options: dict[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, value and annotation of each argument that has one; nothing for a call that cannot be."""
    try:
        bound = signature.bind(*args, **options).arguments
    except TypeError:
        return
    for name, value in bound.items():
        parameter = signature.parameters[name]
        if parameter.annotation is parameter.empty or value is parameter.default:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            yield from ((key, item, parameter.annotation) for key, item in value.items())
        elif parameter.kind is parameter.VAR_POSITIONAL:
            yield from ((name, item, parameter.annotation) for item in value)
        else:
            yield name, value, parameter.annotation


class _Names(dict[str, Any]):
    """Names in the annotations of a module: a class of that name for each that it imports for type checkers alone."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        super().__init__(ArrayLike=type("ArrayLike", (), {}))
        self.known = known

    def __missing__(self, name: str) -> type:
        if name in self.known or hasattr(builtins, name):
            raise KeyError(name)
        return type(name, (), {})


def _hint(annotation: Any, function: Callable[..., Any]) -> Any:
    """Return an annotation as an object; one that only type checkers understand is `Any`."""
    known = inspect.unwrap(function).__globals__
    try:
        return eval(annotation, known, _Names(known)) if isinstance(annotation, str) else annotation  # noqa: S307
    except Exception:  # noqa: BLE001 - such as an attribute of a module that is not imported
        return Any


def _is_list(value: Any) -> bool:
    is_one = (
        isinstance(value, (str, bytes))
        or hasattr(type(value), "columns")
        or getattr(value, "ndim", 1) == 0
    )
    return isinstance(value, Iterable) and not is_one


def _is_array(value: Any) -> bool:
    import numpy as np

    is_one = isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__len__")
    if is_one:
        return False
    try:
        return np.ndim(value) > 0 and np.asarray(value).dtype.kind != "V"
    except ValueError:  # a list of lists of different lengths
        return False


def _is_path(value: Any) -> bool:
    return isinstance(value, PathLike) and is_text(fspath(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, Fraction))


_KINDS: dict[str, tuple[Test, str]] = {
    "Any": (lambda _: True, ""),
    "int": (lambda value: whole_number(value) is not None, "a whole number"),
    "float": (_is_number, "a number"),
    "str": (is_text, "text"),
    "PathLike": (_is_path, "a path"),
    "Path": (_is_path, "a path"),
    "bool": (lambda value: type(value).__name__ in {"bool", "bool_"}, "True or False"),
    "NoneType": (lambda value: value is None, "None"),
    "Callable": (callable, "a function"),
    "ArrayLike": (_is_array, "an array"),
    "ndarray": (_is_array, "an array"),
    "tuple": (lambda value: isinstance(value, (tuple, list)), "a tuple"),
}
_MAPPINGS = ("Mapping", "dict")
_KINDS |= dict.fromkeys(_MAPPINGS, (lambda value: isinstance(value, Mapping), "a mapping"))
_LISTS = ("Iterable", "Sequence", "Collection", "list", "Set", "frozenset")


def _kind(hint: Any) -> tuple[Test, str]:
    """Return the test of a kind of values, and the kind in words."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    name = getattr(kind, "__name__", "")
    if kind in (Union, types.UnionType):
        tests, words_of_kinds = zip(*map(_kind, inner), strict=True)
        words = " or ".join(words_of_kinds)
        return lambda value: any(fits(value) for fits in tests), words
    if kind is Literal:
        words = " or ".join(map(repr, inner))
        return lambda value: isinstance(value, str) and value in inner, words
    if name in _LISTS and inner:
        fits, words = _kind(inner[0])
        may_be_read_once, each = name == "Iterable", f" (each {words})" if words else ""
        return (
            lambda value: _is_list(value) and _all_fit(value, fits, may_be_read_once),
            f"a list{each}",
        )
    if name in _MAPPINGS and inner:
        return _mapping(*map(_kind, inner))
    if name == "tuple" and inner:
        return _tuple(inner)
    if name in _KINDS or not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return _KINDS.get(name, _KINDS["Any"])
    return (
        lambda value: (
            isinstance(value, kind) or name in {base.__name__ for base in type(value).__mro__}
        ),
        name,
    )


def _mapping(keys: tuple[Test, str], values: tuple[Test, str]) -> tuple[Test, str]:
    def fits(value: Any) -> bool:
        return (
            isinstance(value, Mapping)
            and all(map(keys[0], value))
            and all(map(values[0], value.values()))
        )

    each = f" (each {keys[1]} to {values[1]})" if keys[1] and values[1] else ""
    return fits, f"a mapping{each}"


def _tuple(inner: tuple[Any, ...]) -> tuple[Test, str]:
    """Return the test of a tuple of these parts; with an ellipsis, of any number of equal ones."""
    if inner[-1] is ...:
        return _kind(list[inner[0]])  # type: ignore[valid-type]
    kinds = [_kind(part) for part in inner]

    def fits(value: Any) -> bool:
        is_one = isinstance(value, (tuple, list)) and len(value) == len(kinds)
        return is_one and all(fits(part) for part, (fits, _) in zip(value, kinds, strict=True))

    return fits, f"a tuple of {' and '.join(words for _, words in kinds)}"


def _all_fit(values: Iterable[Any], fits: Test, may_be_read_once: bool) -> bool:
    """Return whether all values fit; those of an iterator have been read already."""
    return may_be_read_once if isinstance(values, Iterator) else all(map(fits, values))
