"""The rankers of an experiment file, as pydantic models: an estimator or a Pipeline, and the search for parameters."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from rankeval.experiment.sections import Section
from rankeval.measures import measure

_BOUND = 2**62
RANGES = ("int", "float", "log_float")
"""Names of distributions: whole numbers, numbers, and numbers whose logarithm is uniform."""


class StepConfig(Section):
    """One step of a Pipeline. A step may also be written as its import path alone."""

    estimator: str = Field(description="import path of a class; the last step has fit and predict, others transform")
    params: dict[str, Any] = Field(default_factory=dict, description="fixed parameters")
    name: str | None = Field(
        default=None, description="if not given, the name of the class in small letters, as of make_pipeline"
    )


class SearchConfig(Section):
    """A random search, instead of grid: draws combinations with the seed of the experiment."""

    n_iter: Annotated[int, Field(ge=1)] = Field(default=10, description="number of combinations to draw")
    distributions: dict[str, Any] = Field(
        description="by parameter: a list of values; {int: [low, high]}, both included; {float: [low, high]}; or "
        "{log_float: [low, high]}, uniform in its logarithm"
    )

    @field_validator("distributions", mode="before")
    @classmethod
    def _are_lists_or_ranges(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or not given:
            raise ValueError(f"expected parameters with a list or a range each, found {given!r}")
        for name, one in given.items():
            _check_distribution(str(name), one)
        return given


def _check_distribution(name: str, given: Any) -> None:
    """Raise unless this is a list of values, or one range with bounds that fit."""
    if isinstance(given, list):
        if not given:
            raise ValueError(f"{name} has no value to try")
        return
    kinds = ", ".join(f"{{{kind}: [low, high]}}" for kind in RANGES)
    if not isinstance(given, Mapping) or len(given) != 1 or next(iter(given)) not in RANGES:
        raise ValueError(f"{name} is {given!r}: expected a list of values, or one of {kinds}")
    (kind, bounds), *_ = given.items()
    number = int if kind == "int" else Real
    if not (isinstance(bounds, list) and len(bounds) == 2 and all(_is(number, bound) for bound in bounds)):
        raise ValueError(
            f"{name} is {given!r}: expected two {'whole numbers' if kind == 'int' else 'numbers'} below 2^62"
        )
    low, high = bounds
    if not low < high:
        raise ValueError(f"{name} is {given!r}: the first number must be below the second")
    if kind == "log_float" and low <= 0:
        raise ValueError(f"{name} is {given!r}: a logarithm needs numbers above 0")


def _is(kind: type, value: Any) -> bool:
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    return is_number and -_BOUND < value < _BOUND  # false for nan and infinity: a range needs two ends


class RankerConfig(Section):
    """One candidate: an estimator or the steps of a Pipeline, its parameters, and what to search.

    In a Pipeline, the parameters of a step have the names of scikit-learn: `step__parameter`.
    """

    estimator: str | None = Field(default=None, description="import path of a class with fit and predict")
    steps: list[StepConfig] | None = Field(
        default=None, min_length=1, description="the steps of a Pipeline, instead of estimator"
    )
    params: dict[str, Any] = Field(default_factory=dict, description="fixed parameters")
    grid: dict[str, list[Any]] = Field(
        default_factory=dict, description="values to try by parameter; all combinations are tried"
    )
    search: SearchConfig | None = Field(default=None, description="a random search, instead of grid")
    early_stopping_rounds: Annotated[int, Field(ge=1)] | None = Field(
        default=None,
        description="LightGBM, XGBoost, CatBoost: stop after so many iterations without a better score on the "
        "validation part; if there is none, on queries held out of the training rows",
    )
    validation_fraction: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None, description="share of the queries to hold out for early stopping; if not given, 0.1"
    )
    eval_measure: str | None = Field(
        default=None, description="measure that early stopping watches; if not given, the primary one"
    )

    @property
    def paths(self) -> list[str]:
        """Import paths of the estimator, or of the steps in their order."""
        return [self.estimator] if self.estimator is not None else [step.estimator for step in self.steps or ()]

    @property
    def title(self) -> str:
        """The estimator in words: its import path, or those of the steps."""
        return " > ".join(self.paths)

    @field_validator("steps", mode="before")
    @classmethod
    def _paths_alone(cls, steps: Any) -> Any:
        """Take an import path as a step."""
        return (
            [{"estimator": one} if isinstance(one, str) else one for one in steps] if isinstance(steps, list) else steps
        )

    @field_validator("grid")
    @classmethod
    def _holds_values(cls, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for name, values in grid.items():
            if not values:
                raise ValueError(f"{name} has no value to try")
        return grid

    @field_validator("eval_measure")
    @classmethod
    def _canonical(cls, named: str | None) -> str | None:
        return named and str(measure(named))

    @model_validator(mode="after")
    def _one_of_each(self) -> RankerConfig:
        if (self.estimator is None) == (self.steps is None):
            found = "both" if self.steps is not None else "none of them"
            raise ValueError(f"a ranker has either estimator or steps, found {found}")
        if self.search is not None and self.grid:
            raise ValueError("a ranker has either grid or search, found both: a list of values is a distribution too")
        searched = self.search.distributions if self.search is not None else self.grid
        if fixed := sorted(searched.keys() & self.params.keys()):
            raise ValueError(f"{', '.join(fixed)} is fixed in params and searched: leave it out of one of them")
        return self
