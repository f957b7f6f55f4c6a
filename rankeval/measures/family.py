"""What a measure is: a family, declared once as a decorated function, and its parameters.

From the declaration come the name and its grammar, the parameters with their defaults (the function's keyword-only
arguments), the documentation, the scorer and the MLflow key. A kernel sees a chunk of judged queries and returns one
value a query; where a value is 0/0 it returns nan, and the convention says what that counts as.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankeval._registry import unknown
from rankeval.collection.convention import PRESETS
from rankeval.errors import InvalidInput
from rankeval.join.judged import Judged
from rankeval.measures import printing
from rankeval.measures.orders import EXACT_TO, over_orders
from rankeval.measures.parameters import checked, kinds
from rankeval.measures.printing import Parameters

Kernel = Callable[..., NDArray[np.float64]]


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> float:
    """Return the mean, added up one after the other as trec_eval does: by pairs the last digit printed may differ."""
    if weights is not None:
        return float(np.average(values, weights=weights))
    return float(np.add.accumulate(values)[-1] / len(values))


AGGREGATES: dict[str, Callable[[NDArray[np.float64], NDArray[np.float64] | None], float]] = {
    "mean": _mean,
    "sum": lambda values, weights: float(values.sum() if weights is None else (values * weights).sum()),
    "gmean": lambda values, weights: float(np.exp(_mean(values, weights))),
}
"""How the values of queries become one number; the values of a geometric mean are logarithms already."""

CHOICES = {
    "needs": ("grades", "aspects", "groups"),
    "monotone": ("", "order", "grade"),
    "expected": ("orders", "orders of hits"),  # or a kernel
}
"""What a declaration may say."""


class Spelling(NamedTuple):
    """Another tool's name for a measure, with what it leaves unsaid.

    Parameters
    ----------
    text : str
        The name; ``{parameter}`` stands for a value, ``{parameter:squared}`` for its square,
        ``{parameter:decimals}`` for what is behind its decimal point.
    fixed : mapping of str to value
        Parameters that the tool sets without saying so in the name.
    """

    text: str
    fixed: Mapping[str, Any] = {}

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, eq=False)
class Family:
    """A declared measure, with its parameters open.

    Parameters
    ----------
    name : str
        The field's name for it.
    kernel : callable
        ``kernel(judged, *, parameters) -> ndarray of shape (n_queries,)``.
    title : str
        What it is, in a few words.
    formula : str
        How it is computed.
    source : str
        Author and year.
    doi : str
        Digital object identifier of the source, or "".
    bounds : tuple of float
        Lowest and highest value of a query.
    aggregate : {"mean", "sum", "gmean"}
        How the values of queries become one number.
    linear : bool
        Whether the value is linear in the gains of ranks, so that tied rows may each take the mean of their group.
    expected : callable, "orders" or "orders of hits", optional
        For the others: the kernel that gives the mean over the orders of tied rows; "orders" where there is no formula
        (see `rankeval.measures.orders`), "orders of hits" if all that the kernel sees of rows is which are relevant
        at level ``rel``.
    exact_to : str
        Up to where that mean is exact, in words; "" if always, or if ``expected`` is a word. Beyond, orders are drawn:
        a formula hands queries that are too much for it to ``over_orders(kernel, judged, parameters, only=...)``.
    spellings : mapping of str to tuple of str or Spelling
        Tool -> its names for it; ``{cutoff}`` and other parameters in braces.
    needs : {"grades", "aspects", "groups"}
        What of the judgments it reads: a grade a document; a grade for each aspect (subtopic) of the query, or for
        each group of judges if there are several.
    monotone : {"", "order", "grade"}
        "order": never worse when a better document changes places with a worse one below it; "grade": also never
        worse when a document's grade rises. Bounds over tied and over unjudged rows are given for these only.
    greater_is_better : bool
        Whether a better ranking has the greater value.
    ascending : bool
        Whether rows tied under ``ties="docid"`` stand by ascending ids, against the rule, as the program that it comes
        from has it.
    """

    name: str
    kernel: Kernel
    title: str
    formula: str
    source: str
    doi: str = ""
    bounds: tuple[float, float] = (0.0, 1.0)
    aggregate: str = "mean"
    linear: bool = False
    expected: Kernel | str | None = None
    exact_to: str = ""
    spellings: Mapping[str, tuple[str | Spelling, ...]] = field(default_factory=dict)
    needs: str = "grades"
    monotone: str = ""
    greater_is_better: bool = True
    ascending: bool = False

    @property
    def ties(self) -> str:
        """What the mean over orders of tied rows is: exact, or up to where."""
        return f"exact up to {self.exact_to}, else drawn with its standard error" if self.exact_to else "exact"

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Parameters and their defaults, ``inspect.Parameter.empty`` where one must be given."""
        parameters = list(inspect.signature(self.kernel).parameters.values())[1:]
        return {parameter.name: parameter.default for parameter in parameters}

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of value of each parameter, by the kernel's annotations."""
        return kinds(self.kernel)

    def with_parameters(self, **given: Any) -> Measure:
        """Return the measure with these parameters.

        Parameters
        ----------
        **given
            Parameters by name; those left out take their defaults.

        Raises
        ------
        UnknownName
            For a parameter that the family does not have.
        InvalidInput
            When one is missing, or has a value that it cannot have.
        """
        for name in given:
            if name not in self.defaults:
                raise unknown(f"parameter of {self.name}", name, self.defaults)
        for name, default in self.defaults.items():
            if default is inspect.Parameter.empty and name not in given and name not in _bound_somewhere(self.name):
                form = f"{self.name}@10" if name == "cutoff" else f"{self.name}({name}=...)"
                raise InvalidInput(f"{self.name} needs {name}: write {form!r}, say")
        kept = {name: checked(self.name, name, self.kinds[name], value) for name, value in given.items()}
        return Measure(
            self,
            tuple(
                sorted((name, value) for name, value in kept.items() if not self._is_default(name, value)),
            ),
        )

    def _is_default(self, name: str, value: Any) -> bool:
        # A parameter that some preset binds stays, even at its default: "gain='linear'" then says more than nothing.
        return name not in _bound_somewhere(self.name) and _same(self.defaults[name], value)


def _bound_somewhere(name: str) -> set[str]:
    return {parameter for preset in PRESETS.values() for parameter in preset.bind.get(name, ())}


def _same(default: Any, value: Any) -> bool:
    return type(default) is not bool and type(value) is not bool and bool(default == value)


@dataclass(frozen=True)
class Measure:
    """A measure with its parameters: a frozen value that knows nothing of joins.

    Parameters
    ----------
    family : Family
        What is computed.
    parameters : tuple of (str, value)
        The parameters that were given and differ from the defaults, sorted by name.
    """

    family: Family
    parameters: Parameters = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measure):
            return NotImplemented
        return self.family.name == other.family.name and self.parameters == other.parameters

    def __hash__(self) -> int:
        return hash((self.family.name, self.parameters))

    def __str__(self) -> str:
        return printing.spell(self.family.name, self.parameters)

    def __repr__(self) -> str:
        return f"measure({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if FAMILIES.get(self.family.name) is self.family and self.family.kernel.__module__.startswith("rankeval."):
            return _restore, (self.family.name, self.parameters)
        # A measure that a notebook declared is not known elsewhere: its function travels along.
        return Measure, (self.family, self.parameters)

    @property
    def cutoff(self) -> int | None:
        """Deepest rank that counts, None for all."""
        cutoff: int | None = dict(self.parameters).get("cutoff", self.family.defaults.get("cutoff"))
        return cutoff

    @property
    def key(self) -> str:
        """A name that MLflow takes, from which `measure_from_key` gives the measure back."""
        return printing.key(self.family.name, self.parameters)

    @property
    def monotone(self) -> str:
        """As of the family, but for parameters with which a better order may have a lower value."""
        given = dict(self.parameters)
        mapped = isinstance(given.get("gain"), tuple)  # a map from grades need not rise with them
        if given.get("gain") == "scaled" and self.family.monotone:  # by the query's greatest grade, which may rise too
            return "order"
        return "" if mapped or given.get("normalizer") == "hits" else self.family.monotone

    def refuse_bounds(self, ties: str, unjudged: str) -> None:
        """Refuse the best or worst case where the measure is not monotone, so that it would be no bound.

        Parameters
        ----------
        ties, unjudged : str
            Rules of a convention.

        Raises
        ------
        InvalidInput
            When a rule asks for a bound that the measure does not have.
        """
        if ties in ("best", "worst") and not self.monotone:
            raise InvalidInput(f"ties={ties!r}: {self} is not monotone in the order of rows, so that is no bound of it")
        if unjudged in ("lowest", "highest") and self.monotone != "grade":
            raise InvalidInput(
                f"unjudged={unjudged!r}: {self} may fall when a document's grade rises (what it is divided by rises "
                "too), so that is no bound of it; P, RR, DCG and ERR have such bounds"
            )

    def bound(self, bind: Mapping[str, Mapping[str, Any]]) -> Measure:
        """Return the measure with the parameters of a convention where its own name leaves them open."""
        bound = bind.get(self.family.name, {})
        given = dict(self.parameters)
        for name, default in self.family.defaults.items():
            if default is inspect.Parameter.empty and name not in given and name not in bound:
                raise InvalidInput(
                    f"{self} needs {name}, which is not guessed: write '{self.family.name}({name}=...)', or choose a "
                    "convention that gives it"
                )
        return self.family.with_parameters(**{**bound, **given}) if set(bound) - set(given) else self

    def values(self, judged: Judged) -> NDArray[np.float64]:
        """Return the value of each query of a chunk, nan where it is 0/0.

        Parameters
        ----------
        judged : Judged
            The chunk.

        Returns
        -------
        ndarray of shape (n_queries,)
        """
        if self.family.needs == "aspects" and judged.aspects is None:
            raise InvalidInput(
                f"{self} needs judgments by aspect (subtopic); these have one grade a document: read a file of them by "
                "Qrels.read(path, format='ndeval'), or give Qrels(..., aspect=...)"
            )
        kernel, expected, parameters = self.family.kernel, self.family.expected, dict(self.parameters)
        if expected is None or not judged.has_open_ties:
            return kernel(judged, **parameters)
        if isinstance(expected, str):
            hits = {"rel": self.family.defaults["rel"], **parameters}["rel"] if expected == "orders of hits" else None
            return over_orders(kernel, judged, parameters, rel=hits)
        return expected(judged, **parameters)


def _restore(name: str, parameters: Parameters) -> Measure:
    # The package has declared its measures by the time that this module is found.
    return Measure(FAMILIES[name], parameters)


FAMILIES: dict[str, Family] = {}
"""Every declared family by name."""


def family(
    name: str,
    *,
    title: str,
    formula: str,
    source: str,
    doi: str = "",
    bounds: tuple[float, float] = (0.0, 1.0),
    aggregate: str = "mean",
    linear: bool = False,
    expected: Kernel | str | None = None,
    exact_to: str = "",
    spellings: Mapping[str, tuple[str | Spelling, ...]] | None = None,
    needs: str = "grades",
    monotone: str = "",
    greater_is_better: bool = True,
    ascending: bool = False,
) -> Callable[[Kernel], Kernel]:
    """Declare a measure: everything about it stands here and in the kernel below.

    Parameters
    ----------
    name, title, formula, source, doi, bounds, aggregate, linear, expected, exact_to, spellings, needs, monotone
        As of `Family`.
    greater_is_better, ascending
        As of `Family`.

    Returns
    -------
    callable
        A decorator that registers the kernel and gives it back as it is, so that it still pickles by its name.

    Raises
    ------
    InvalidInput
        When the aggregate is unknown, or the measure is neither linear nor has an expected form nor says that ties
        do not matter to it.

    Examples
    --------
    >>> from rankeval.measures import family, measure
    >>> @family("FirstHit", title="first row relevant", formula="rel_1 >= 1", source="example", linear=True)
    ... def first_hit(judged, *, rel=1):
    ...     '''Whether the best-ranked document is relevant: 0 or 1, higher is better.'''
    ...     return judged.hits(rel, 1)
    >>> str(measure("FirstHit(rel=2)"))
    'FirstHit(rel=2)'
    """
    if aggregate not in AGGREGATES:
        raise unknown("aggregate", aggregate, AGGREGATES)
    if not linear and expected is None:
        raise InvalidInput(
            f"{name}: declare linear=True (tied rows may each take their group's mean) or give expected=, the kernel "
            "that averages over the orders of tied rows, or expected='orders' if there is no formula"
        )
    words = {"needs": needs, "monotone": monotone} | ({"expected": expected} if isinstance(expected, str) else {})
    for rule, value in words.items():
        if value not in CHOICES[rule]:
            raise unknown(f"value of {rule}", value, CHOICES[rule])

    def declare(kernel: Kernel) -> Kernel:
        known = FAMILIES.get(name)
        if known is not None and (known.kernel.__module__, known.kernel.__qualname__) != (
            kernel.__module__,
            kernel.__qualname__,
        ):
            raise InvalidInput(f"a measure {name!r} is declared already, in {known.kernel.__module__}")
        FAMILIES[name] = Family(
            name,
            kernel,
            title,
            formula,
            source,
            doi,
            bounds,
            aggregate,
            linear,
            expected,
            EXACT_TO if isinstance(expected, str) else exact_to,
            dict(spellings or {}),
            needs,
            monotone,
            greater_is_better,
            ascending,
        )
        return kernel

    return declare
