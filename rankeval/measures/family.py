"""A measure is a family, declared once as a decorated function, and its parameters.

Everything else is read from the declaration::

    @family("P", title=..., formula=..., source=..., linear=True, spellings={...: ("P_{cutoff}",)})
    def precision(judged, *, rel: float = 1, cutoff: int | None = None):
        '''Share of the first k rows that are relevant. ...'''

    "P", keyword-only arguments   P(rel=2)@5, its key P__rel.2_at_5, checks of values, near misses
    spellings                     measure("P_5") == measure("P@5"); columns of tools in tables
    title, formula, source, doi   rk.list_measures(), `rankeval measures`, the guide
    the function                  precision(judged, rel=2, cutoff=5): a value a query, nan for 0/0
    aggregate                     the one number of all queries
    linear or expected            the value under ties="expected"
    needs, monotone,              refusals, bounds over ties,
    greater_is_better             the sign of scorers
    arguments of type `Column`    columns of rows: Gain(column='price')@5 gets the prices
    all of these, and bounds      the laws of tests/laws, which take their cases from FAMILIES

The trap: a decorator that replaces the function breaks pickling, so the decorator gives the
function back. The measures of this package pickle by name; a measure that a notebook declares
travels with its function.

A function is pickled by the name of its module, which the other process imports. A module that is
on no path, such as a test module of pytest's importlib mode, cannot be imported there, so the code
of the function travels. cloudpickle does so for a script and a notebook by itself.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib.machinery import ModuleSpec
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankeval._arguments import explained
from rankeval._checks import few
from rankeval._registry import chosen
from rankeval.collection.convention import PRESETS
from rankeval.errors import InvalidInput
from rankeval.join.judged import Judged
from rankeval.measures import grammar
from rankeval.measures.grammar import Spelling
from rankeval.measures.tie_enumeration import EXACT_TO, over_orders

Kernel = Callable[..., NDArray[np.float64]]

GainMap = tuple[tuple[float, float], ...]
"""Pairs of grade and gain: gains of some grades; another grade is its own gain, as in trec_eval."""


def mapped_gains(grades: NDArray[Any], gain: GainMap) -> NDArray[np.float64]:
    """Return the gain of each grade; a grade below 0 has none."""
    named = dict(gain)
    gains = [named.get(grade, grade) if grade >= 0 else 0.0 for grade in grades.tolist()]
    return np.array(gains, dtype=np.float64)


def are_unnamed(grades: NDArray[Any], gain: GainMap) -> NDArray[np.bool_]:
    """Say which grades above 0 a map does not name."""
    return (grades > 0) & ~np.isin(grades, [grade for grade, _ in gain])


def first_fall(grades: NDArray[Any], gain: GainMap) -> str:
    """Describe the first fall of gains as grades rise, those of the map among them; "" if none."""
    ordered = np.unique(np.append(grades, [grade for grade, _ in gain]).astype(np.float64))
    gains = mapped_gains(ordered, gain)
    falls = np.flatnonzero(np.diff(gains) < 0)
    if not len(falls):
        return ""
    pair = (falls[0], falls[0] + 1)
    return " and ".join(f"grade {ordered[place]:g} has gain {gains[place]:g}" for place in pair)


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    if weights is not None:
        return float(np.average(values, weights=weights))
    # Added up one after the other, as trec_eval does: NumPy adds up by pairs, and the last digit
    # printed may differ.
    return float(np.add.accumulate(values)[-1] / len(values))


def _sum(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    return float(values.sum() if weights is None else (values * weights).sum())


def _geometric_mean(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    # The values are logarithms already.
    return float(np.exp(_mean(values, weights)))


AGGREGATES: dict[str, Callable[[NDArray[np.float64], NDArray[np.float64] | None], float]] = {
    "mean": _mean,
    "sum": _sum,
    "gmean": _geometric_mean,
}
"""How the values of queries become one number, by name."""

CHOICES: dict[str, Collection[str]] = {
    "aggregate": AGGREGATES,
    "needs": ("grades", "aspects", "groups", "columns"),
    "counts": ("relevant", "pairs", "rows"),
    "monotone": ("", "order", "grade"),
    "expected": ("kernel", "orders", "orders of hits"),  # or a function
}
"""The words that a declaration knows."""


FAMILIES: dict[str, Family] = {}  # every declared family by name


@dataclass(frozen=True)
class _Code:
    """A function by its code."""

    content: bytes


def _packed(value: Any) -> Any:
    """Return a value, or `_Code` if it is a function whose module no other process can import."""
    module = sys.modules.get(value.__module__) if isinstance(value, FunctionType) else None
    if module is None or value.__module__ == "__main__" or _is_importable(value.__module__, module):
        return value
    return _Code(_code_of(value, module))


def hash_of_code(function: Callable[..., Any]) -> str:
    """Return a SHA-256 of a function's code and of what it refers to in its module."""
    return sha256(_code_of(function, sys.modules[function.__module__])).hexdigest()


def _code_of(function: Any, module: Any) -> bytes:
    import cloudpickle

    with _by_value(module):
        return bytes(cloudpickle.dumps(function))


@contextmanager
def _by_value(module: Any) -> Iterator[None]:
    import cloudpickle

    if module.__name__ in cloudpickle.list_registry_pickle_by_value():  # by the user, who keeps it
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _unpacked(value: Any) -> Any:
    """Return the value that `_packed` was given."""
    if not isinstance(value, _Code):
        return value
    import cloudpickle

    return cloudpickle.loads(value.content)


def _is_importable(name: str, module: Any) -> bool:
    """Say whether an import by this name, on the same paths, gives this module."""
    spec: ModuleSpec | None = None
    steps = name.split(".")
    for number in range(len(steps)):
        path = None if spec is None else spec.submodule_search_locations
        if number and path is None:
            return False
        package = ".".join(steps[: number + 1])
        specs = (finder.find_spec(package, path) for finder in sys.meta_path)
        spec = next(filter(None, specs), None)
        if spec is None:
            return False
    return spec is not None and spec.origin == getattr(module, "__file__", None)


@explained
@dataclass(frozen=True, eq=False)
class Family:
    """A measure, with its parameters open: a decorator of the kernel that computes it.

    Parameters
    ----------
    name, title : str
        The field's name for it, and the same in a few words.
    formula : str
        How it is computed.
    source, doi : str
        Author and year, and the digital object identifier or "".
    bounds : tuple of float
        Lowest and highest value of a query.
    aggregate : {"mean", "sum", "gmean"}
        How the values of queries become one number.
    linear : bool
        Whether the value is linear in the gains of ranks, so that tied rows may each take the mean
        of their group.
    expected : callable, "kernel", "orders" or "orders of hits", optional
        For the others: the function that gives the mean over the orders of tied rows; "kernel" if
        the kernel itself does; "orders" if there is no formula (see
        ``rankeval.measures.tie_enumeration``), "orders of hits" if the kernel only sees which rows
        are relevant at ``rel``.
    exact_to : str
        Up to where that mean is exact, in words; "" if always, or if ``expected`` asks for orders.
    spellings : mapping of str to tuple of str or Spelling
        Tool -> its names for it; ``{cutoff}`` and other parameters in braces (see
        ``rankeval.measures.names``).
    known_as : mapping of str to tuple of str or Spelling
        Words -> names that are not read, because tools mean several things by them, but lead here
        in errors: in any case, with any separators and any cut-off behind them.
    needs : {"grades", "aspects", "groups", "columns"}
        The judgments that it reads: a grade a document, a grade for each aspect (subtopic) of the
        query, or a grade for each group of judges if there are several. "columns" follows from
        arguments of the kernel that are annotated ``rankeval.measures.Column``: it reads columns of
        the rows beside their grades.
    counts : {"relevant", "pairs", "rows"}
        What a query must have for a value that says something: a relevant document, a pair of
        documents of which one is better, or rows of any grade. Queries without it are those of the
        convention's rule ``no_relevant``.
    monotone : {"", "order", "grade"}
        "order": never worse when a better document changes places with a worse one below it;
        "grade": also never worse when a document's grade rises. Bounds over tied and over unjudged
        rows are given for these only.
    greater_is_better : bool
        Whether a better ranking has the greater value.
    ascending : bool
        Whether ``ties="docid"`` ranks tied rows by ascending ids, as the program does that it comes
        from; other measures rank them by descending ids.
    semantics : int
        The number of the definition. Raise it if values change under the same name: an evaluation
        that was saved under another number is then not compared with new ones.

    Raises
    ------
    InvalidInput
        If a word is unknown; if the measure is neither linear nor has an expected form; if another
        function has already declared the name.

    Examples
    --------
    >>> from rankeval.measures import family, measure
    >>> @family(
    ...     "FirstHit", title="first is relevant", formula="rel_1 >= 1", source="me", linear=True
    ... )
    ... def first_hit(judged, *, rel=1):
    ...     '''Whether the best-ranked document is relevant: 0 or 1, higher is better.'''
    ...     return judged.hits(rel, 1)
    >>> str(measure("FirstHit(rel=2)"))
    'FirstHit(rel=2)'
    """

    name: str
    _: KW_ONLY
    title: str
    formula: str
    source: str
    doi: str = ""
    bounds: tuple[float, float] = (0.0, 1.0)
    aggregate: str = "mean"
    linear: bool = False
    expected: Kernel | str | None = None
    exact_to: str = ""
    spellings: Mapping[str, Sequence[str | Spelling]] = field(default_factory=dict)
    known_as: Mapping[str, Sequence[str | Spelling]] = field(default_factory=dict)
    needs: str = "grades"
    counts: str = "relevant"
    monotone: str = ""
    greater_is_better: bool = True
    ascending: bool = False
    semantics: int = 1
    kernel: Kernel = field(init=False)

    def __post_init__(self) -> None:
        if not self.linear and self.expected is None:
            raise InvalidInput(
                f"{self.name}: declare linear=True (tied rows may each take their group's mean) or "
                "give expected=, the kernel that averages over the orders of tied rows, or "
                "expected='orders' if there is no formula"
            )
        for tool, templates in {**self.spellings, **self.known_as}.items():
            if isinstance(templates, str):  # each letter of it would be a name
                raise InvalidInput(
                    f"{self.name}: the spellings of {tool} are a tuple, such as "
                    "('ndcg_cut_{cutoff}',)"
                )
        for rule, known in CHOICES.items():
            if isinstance(value := getattr(self, rule), str):
                chosen(f"value of {rule}", value, known)
        if self.expected in ("orders", "orders of hits"):
            object.__setattr__(self, "exact_to", EXACT_TO)

    def __call__(self, kernel: Kernel) -> Kernel:
        """Declare the measure with its kernel, and return that unchanged, so that it pickles."""
        known = FAMILIES[self.name].kernel if self.name in FAMILIES else kernel
        # The same function may declare it again: a cell of a notebook is run twice.
        if (known.__module__, known.__qualname__) != (kernel.__module__, kernel.__qualname__):
            raise InvalidInput(
                f"a measure {self.name!r} is already declared, in {known.__module__}"
            )
        object.__setattr__(self, "kernel", kernel)
        if "Column" in self.kinds.values():
            object.__setattr__(self, "needs", "columns")
        FAMILIES[self.name] = self
        return kernel

    def __getstate__(self) -> dict[str, Any]:
        return {name: _packed(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: _unpacked(value) for name, value in state.items()})

    @property
    def is_known_everywhere(self) -> bool:
        """Whether every process that imports this package knows the measure by its name."""
        return FAMILIES.get(self.name) is self and self.kernel.__module__.startswith("rankeval.")

    @property
    def ties(self) -> str:
        """Up to where the mean over orders of tied rows is exact."""
        if not self.exact_to:
            return "exact"
        return f"exact up to {self.exact_to}, else drawn with its standard error"

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Parameters and their defaults, ``inspect.Parameter.empty`` for one that must be given."""
        _, *parameters = inspect.signature(self.kernel).parameters.values()
        return {parameter.name: parameter.default for parameter in parameters}

    @cached_property
    def required(self) -> list[str]:
        """Parameters without a default."""
        empty = inspect.Parameter.empty
        return [name for name, default in self.defaults.items() if default is empty]

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of value of each parameter, by the kernel's annotations."""
        return grammar.kinds(self.kernel)

    @cached_property
    def _bound(self) -> set[str]:
        """Parameters that some preset gives, so that a name may leave them open."""
        return {name for preset in PRESETS.values() for name in preset.bind.get(self.name, ())}

    def with_parameters(self, **parameters: Any) -> Measure:
        """Return the measure with these parameters, defaults for the others; check the values."""
        for name in parameters:
            chosen(f"parameter of {self.name}", name, self.defaults)
        for name in self.required:
            if name not in parameters and name not in self._bound:
                form = f"{self.name}@10" if name == "cutoff" else f"{self.name}({name}=...)"
                raise InvalidInput(
                    f"{self.name} needs {name}", argument=name, remedy=f"write it as in {form!r}"
                )
        kept = []
        for name, value in parameters.items():
            form = grammar.canonical_value(self.name, name, self.kinds[name], value)
            if not self._is_default(name, form):
                kept.append((name, form))
        return Measure(self, tuple(sorted(kept)), self.semantics)

    def _is_default(self, name: str, value: Any) -> bool:
        # A parameter that some preset gives stays, even at its default: gain='linear' then holds
        # under the preset too.
        if name in self._bound or isinstance(value, bool) != isinstance(self.defaults[name], bool):
            return False
        return bool(self.defaults[name] == value)


family = Family
"""`Family` as a decorator: ``@family("P", ...)``."""


@explained
@dataclass(frozen=True)
class Measure:
    """A measure with its parameters, as a frozen value: hashable, picklable, equal by value.

    Make one with `rankeval.measure`.

    Parameters
    ----------
    family : Family
        The measure without its parameters.
    parameters : tuple of (str, value)
        The given parameters that differ from the defaults, sorted by name.
    semantics : int
        The number of the definition by which values were made: the family's, or that of a saved
        evaluation.

    Examples
    --------
    >>> import rankeval as rk
    >>> measure = rk.measure("P(rel=2)@5")
    >>> measure.parameters, measure.cutoff, measure.key
    ((('cutoff', 5), ('rel', 2)), 5, 'P__rel.2_at_5')
    """

    family: Family
    parameters: grammar.Parameters = ()
    semantics: int = 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measure):
            return NotImplemented
        same = self.family.name == other.family.name and self.parameters == other.parameters
        return same and self.semantics == other.semantics

    def __hash__(self) -> int:
        return hash((self.family.name, self.parameters))

    def __str__(self) -> str:
        return grammar.spell(self.family.name, self.parameters)

    def __repr__(self) -> str:
        return f"measure({str(self)!r})"

    # A measure of this package is saved as its name. Another process does not know one that a
    # notebook declared, so its function travels along.
    def __getstate__(self) -> dict[str, Any]:
        known = self.family.is_known_everywhere
        family = self.family.name if known else self.family
        return {"family": family, "parameters": self.parameters, "semantics": self.semantics}

    def __setstate__(self, state: dict[str, Any]) -> None:
        saved = state["family"]
        vars(self).update(state, family=FAMILIES[saved] if isinstance(saved, str) else saved)

    @property
    def cutoff(self) -> int | None:
        """Deepest rank that counts, None for all."""
        cutoff: int | None = self._settings.get("cutoff")
        return cutoff

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the rows that it reads: argument of the kernel -> name of the column."""
        if self.family.needs != "columns":
            return {}
        settings = self._settings
        return {
            name: settings[name] for name, kind in self.family.kinds.items() if kind == "Column"
        }

    @property
    def _settings(self) -> dict[str, Any]:
        return {**self.family.defaults, **dict(self.parameters)}

    @property
    def level(self) -> float:
        """The lowest grade that counts, by ``rel`` or ``min_rel`` (0); -inf if all rows count."""
        if isinstance(rel := self._settings.get("rel"), int | float):
            return float(rel)
        if self.columns or self.family.counts == "rows":
            return -np.inf
        return float(np.nextafter(self._settings.get("min_rel", 0.0), np.inf))

    @property
    def level_in_words(self) -> tuple[str, str]:
        """The parameter that says from which grade a document counts, and that grade."""
        if "rel" in self._settings:
            return "rel", f"{self.level:g} or more"
        return "min_rel", f"more than {self._settings.get('min_rel', 0):g}"

    @property
    def is_binary(self) -> bool:
        """Whether it sees no more of a grade than if the document is relevant."""
        return "rel" in self._settings and self._settings.get("gain", "binary") == "binary"

    def refuse_lacking(self, known: Collection[str]) -> None:
        """Raise InvalidInput if a column that the measure reads is missing."""
        for name in self.columns.values():
            if name not in known:
                raise InvalidInput(
                    argument="columns",
                    found=few(list(known)) if known else "empty",
                    expected=f"the column {name!r}",
                    where=str(self),
                    remedy=f"give columns={{{name!r}: ...}} to rankeval.evaluate, a scorer or "
                    "cross_validate, with a number for each row or the name of a frame's column; "
                    "judgments and a run, experiment files, plans of a guard and gates have none",
                )

    @property
    def key(self) -> str:
        """A name that MLflow takes, from which `measure_from_key` gives the measure back."""
        return grammar.key(self.family.name, self.parameters)

    @property
    def monotone(self) -> str:
        """The family's, or less with parameters that give a better order a lower value."""
        parameters = dict(self.parameters)
        falls = self.gain_map and first_fall(np.array([0]), self.gain_map)
        if falls or parameters.get("normalizer") == "hits":
            return ""
        # Scaled gains are shares of the query's greatest grade, which may rise too; a map may name
        # some grades only.
        mapped = self.gain_map or parameters.get("gain") == "scaled"
        return "order" if mapped and self.family.monotone else self.family.monotone

    @property
    def gain_map(self) -> GainMap:
        """The gains by grade if ``gain`` is a map, or ()."""
        gain = dict(self.parameters).get("gain")
        return gain if isinstance(gain, tuple) else ()

    def refuse_bounds(self, ties: str, unjudged: str) -> None:
        """Refuse a convention that asks for the best or worst case if the measure has no bound."""
        self.refuse_falling_gains(ties, np.array([0]))
        if unjudged in ("lowest", "highest") and self.monotone != "grade":
            why = "a map of gains" if self.gain_map else "the value that it is divided by rises too"
            raise InvalidInput(
                f"unjudged={unjudged!r}: {self} may fall when a document's grade rises ({why}), so "
                "that is not a bound of it; P, RR, DCG and ERR have such bounds"
            )

    def refuse_falling_gains(self, ties: str, grades: NDArray[Any]) -> None:
        """Refuse the best or worst case if a better order may lower the value with these grades."""
        if ties not in ("best", "worst"):
            return
        fall = first_fall(grades, self.gain_map)
        if fall or not self.monotone:
            why = f" ({fall})" if fall else ""
            raise InvalidInput(
                f"ties={ties!r}: {self} is not monotone in the order of rows{why}, so that is not "
                "a bound of it"
            )

    def bound(self, bind: Mapping[str, Mapping[str, Any]]) -> Measure:
        """Return the measure with a convention's values of parameters that its name leaves open."""
        parameters = dict(self.parameters)
        bound = {**bind.get(self.family.name, {}), **parameters}
        for name in self.family.required:
            if name not in bound:
                form = f"{self.family.name}({name}=...)"
                raise InvalidInput(
                    f"{self} needs {name}, which is not guessed",
                    argument=name,
                    remedy=f"write '{form}', or choose a convention that gives it",
                )
        new = bound != parameters or self.semantics != self.family.semantics
        return self.family.with_parameters(**bound) if new else self

    def values(self, judged: Judged) -> NDArray[np.float64]:
        """Return the value of each query of a chunk, shape (n_queries,), nan where it is 0/0."""
        if self.family.needs == "aspects" and judged.aspects is None:
            raise InvalidInput(
                f"{self} needs judgments by aspect (subtopic); these have one grade a document: "
                "read a file of them by Qrels.read(path, format='ndeval'), or give "
                "Qrels(..., aspect=...)"
            )
        expected, parameters, columns = self.family.expected, dict(self.parameters), self.columns
        kernel = _reading(self.family.kernel, columns)
        is_open = judged.has_open_ties or (columns and len(judged.ties.start))
        if expected in (None, "kernel") or not is_open:
            return kernel(judged, **parameters)
        if isinstance(expected, str):
            rel = self._settings["rel"] if expected == "orders of hits" else None
            return over_orders(kernel, judged, parameters, rel=rel, columns=columns.values())
        return _reading(expected, columns)(judged, **parameters)


def _reading(kernel: Kernel, columns: Mapping[str, str]) -> Kernel:
    # Orders of tied rows are chunks of their own, with columns of their own.
    def read(judged: Judged, **parameters: Any) -> NDArray[np.float64]:
        values = {argument: judged.columns[name] for argument, name in columns.items()}
        return kernel(judged, **parameters | values)

    return read if columns else kernel
