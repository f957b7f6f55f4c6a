"""An experiment file as pydantic models, and its YAML.

The models are the only list of keys: defaults, checks, the reference of keys and near misses in
errors (both in `config`) come from them. So below each field stands its meaning, and each section
has a docstring that a user reads.

YAML is read as an experiment file means it: 1e-3 is a number, and a repeated key is refused. The
trap: YAML reads a bare ``off`` as false, so ``guard: off`` arrives as a boolean (`_off`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    field_validator,
    model_validator,
)

from rankeval._checks import refuse, require
from rankeval._registry import unknown
from rankeval._secrets import masked
from rankeval.collection.convention import get_convention
from rankeval.errors import InvalidInput
from rankeval.io.opening import limits_of
from rankeval.io.tables import TABLES
from rankeval.measures import measure
from rankeval.tracking import host

# A name becomes a file name and the name of an MLflow run: no slash, and nothing that MLflow
# refuses.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]*$")]

LOADERS = (*TABLES, "letor", "digits")
"""Loaders with a name; others are functions of the user's own."""

MeasureName = Annotated[str, AfterValidator(lambda name: str(measure(name)))]
"""A measure; the model stores its canonical name."""

Address = Annotated[
    str | None,
    Field(repr=False),
    PlainSerializer(lambda place: place and masked(place), when_used="json"),
]
"""An address that may have a password, which reports, artifacts and tags show masked."""

Seed = Annotated[int, Field(strict=True, ge=0, le=2**32 - 1)]
"""A seed that scikit-learn accepts. The type is strict, because pydantic reads true as 1."""

_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
_BOUND = 2**62
RANGES = {"int": -_BOUND, "float": -_BOUND, "log_float": 0}
"""Whole numbers, numbers, and numbers whose logarithm is uniform; each with a bound below."""


class Loader(yaml.SafeLoader):
    """The safe loader. It reads 1e-3 as a number, as YAML 1.2 does, and refuses a repeated key."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping, as PyYAML's loaders do."""
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                problem, mark = f"the key {key!r} is repeated", key_node.start_mark
                raise yaml.constructor.ConstructorError(None, None, problem, mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


class _Dumper(yaml.SafeDumper):
    """The safe dumper. It quotes the text 1e3, which `Loader` would read as a number."""


for _class in (Loader, _Dumper):
    _class.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, [*"-+0123456789"])


class Section(BaseModel):
    """A mapping of an experiment file, with these keys and no others."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True
    )


class DataConfig(Section):
    """The source of the rows.

    The keys from qid to slices belong to the loaders parquet, csv and tsv.
    """

    loader: str
    """a table with named columns: "parquet", "csv" or "tsv"; a file or a folder of learning-to-rank
    rows: "letor"; images of scikit-learn: "digits"; or a function of your own as "module:function",
    which is called and returns rankeval.RankingData"""
    path: str | None = None
    """file or folder that the loader reads"""
    qid: str | None = None
    """column of the query; a table needs it"""
    label: str | None = None
    """column of the relevance; a table needs it"""
    docid: str | None = None
    """column of the document"""
    features: list[str] | None = Field(default=None, min_length=1)
    """columns of the features; if not given, all other columns of numbers and of Parquet's
    categories that are not called like an id or a label; must be given if a column looks like an
    answer"""
    categories: list[str] = []
    """columns of text or numbers that are features too, as categories"""
    slices: list[str] = []
    """columns with one value for each query; the report shows the rankers for each value. They are
    features only if `features` or `categories` names them"""
    arguments: dict[str, Any] = {}
    """further keyword arguments of the loader"""
    limits: dict[str, int] = {}
    """limits to raise for large files: expansion, stream, line, feature"""

    @property
    def is_table(self) -> bool:
        """Whether the loader reads a table with named columns."""
        return self.loader in TABLES

    @field_validator("loader")
    @classmethod
    def _known(cls, loader: str) -> str:
        if loader not in LOADERS and ":" not in loader and "." not in loader:
            own = 'One of your own is written "module:function"'
            raise ValueError(f"{unknown('loader', loader, LOADERS)} {own}")
        return loader

    @field_validator("limits")
    @classmethod
    def _exist(cls, limits: dict[str, int]) -> dict[str, int]:
        limits_of(f"{name}={value}" for name, value in limits.items())
        return limits

    @model_validator(mode="after")
    def _columns_fit(self) -> DataConfig:
        keys = "qid", "label", "docid", "features", "categories", "slices"
        of_table = [name for name in keys if getattr(self, name) not in (None, [])]
        missing = [name for name in ("path", "qid", "label") if getattr(self, name) is None]
        no_slice = [name for name in self.slices if name in (self.qid, self.label, self.docid)]
        loader = f"the loader {self.loader!r}"
        columns = f"{', '.join(of_table)} name columns of a table ({', '.join(TABLES)})"
        named = f"slices has {no_slice}, which qid, label or docid name: leave it out of slices"
        others = f"{loader} takes path, qid, label, ..., and no arguments"
        refuse(
            (of_table and not self.is_table, f"{columns}, and {loader} reads none"),
            (self.is_table and missing, f"{loader} needs {' and '.join(missing)}"),
            (no_slice, named),
            (self.is_table and self.arguments, others),
        )
        return self


class SplitConfig(Section):
    """The test part: by a column of the table, by time, or a share of the queries.

    A folder of LETOR has parts of its own.
    """

    test_size: Annotated[float, Field(gt=0, lt=1)] = 0.3
    """share of the queries in the test part, chosen by a hash of their ids"""
    salt: str = ""
    """another text gives another test part"""
    column: str | None = None
    """column of the table with the part of each row"""
    train: list[str] | None = None
    """value of that column for the training part, or list of values; if not given: train"""
    validation: list[str] | None = None
    """the same for the validation part; if not given: vali, valid, validation, val, dev"""
    test: list[str] | None = None
    """the same for the test part; if not given: test"""
    others: Literal["error", "drop"] = "error"
    """rows with another or an empty value: error refuses the table, drop leaves them out with a
    note"""
    time: str | None = None
    """column of the table with the time of each row: numbers, dates or times"""
    test_from: str | int | float | None = None
    """time at which the test part begins: all queries with a row of this time or later"""
    join_validation: bool = False
    """true: the validation part always belongs to the training rows. false: if a ranker stops
    early, it watches the validation part, and no ranker is trained on it"""

    @field_validator("train", "validation", "test", mode="before")
    @classmethod
    def _as_text(cls, part: Any) -> Any:
        # The values of a column are compared as texts.
        if part is None:
            return None
        values = part if isinstance(part, list) else [part]
        if not values or any(isinstance(value, (Mapping, list, type(None))) for value in values):
            raise ValueError(f"expected a value of the column or a list of values, found {part!r}")
        return [*map(str, values)]

    @field_validator("test_from", mode="before")
    @classmethod
    def _as_iso(cls, moment: Any) -> Any:
        # YAML reads 2026-05-01 as a date.
        return moment.isoformat() if isinstance(moment, date) else moment

    @model_validator(mode="after")
    def _one_way(self) -> SplitConfig:
        keys_of = {
            "column": ("column", "train", "validation", "test", "others"),
            "time": ("time", "test_from"),
            "share": ("test_size", "salt"),
        }
        source, words = "share", "a share of the queries, because column and time name none"
        for key in ("time", "column"):
            if getattr(self, key) is not None:
                source = words = key
        unread = [name for key, names in keys_of.items() if key != source for name in names]
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        set_keys = [name for name in unread if getattr(self, name) != defaults[name]]
        if set_keys:
            raise InvalidInput(f"leave {' and '.join(set_keys)} out: the parts come from {words}")
        if source == "time" and self.test_from is None:
            raise InvalidInput("time needs test_from, the time at which the test part begins")
        return self


class CvConfig(Section):
    """Cross-validation on the training rows, in folds of whole queries."""

    n_splits: Annotated[int, Field(ge=2)] = 5
    """number of folds"""
    seed: Seed = 0
    """seed of the shuffle of queries"""
    by_time: bool = False
    """true: train on the queries that are earlier than a fold, by the column split.time"""


class GuardConfig(Section):
    """The guard, whose ledger counts the looks at the test part. `guard: off` switches it off."""

    project: str | None = None
    """project of the guard; if not given, the experiment's name"""
    ledger: Address = None
    """folder, file or SQLAlchemy URL; if not given, found from the project's root"""
    baseline: str | None = None
    """the ranker that the others are compared with; if not given, the first one"""
    supersedes: str | None = None
    """the registered test part that this one replaces, if it has other queries"""
    fresh: bool = False
    """true: test on the queries that nobody has looked at yet"""
    commits_ledger: bool = False
    """true: this run, in continuous integration, commits the ledger of the checkout"""


class ComparisonConfig(Section):
    """The significance test.

    With the guard, test and correction have these defaults; other values need `guard: off`.
    """

    test: str = "randomization"
    """a test, such as t; `rankeval compare --help` lists them"""
    correction: str = "max_t"
    """a correction for many comparisons, such as holm"""
    alpha: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    """level of the test"""
    claim: str = "difference"
    """what to show: difference, better, not_worse or equivalent"""
    margin: Annotated[float, Field(ge=0)] = 0.0
    """margin of the claim, in units of the measure"""


class TrackingConfig(Section):
    """The host that logs the runs. `tracking: off` logs nothing."""

    host: str = "mlflow"
    """an installed host; `rankeval doctor` lists them"""
    uri: Address = None
    """its address; if not given, the host's own default; null: the address that the host is set
    to"""
    experiment: str | None = None
    """if not given, the experiment's name"""

    @model_validator(mode="before")
    @classmethod
    def _find_host(cls, section: Any) -> Any:
        # A misspelt host must not be noticed after the test part was opened.
        if not isinstance(section, Mapping):
            return section
        name = section.get("host", cls.model_fields["host"].default)
        if not isinstance(name, str):
            return section
        try:
            destination = host(name)
        except InvalidInput:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise ValueError(f"the host {name!r} cannot be loaded: {reason}") from error
        if destination.tracker is None:
            raise InvalidInput(f"the host {name!r} logs no runs")
        return {"uri": destination.default_uri, **section}


class OutputConfig(Section):
    """The folder for predictions, report and cached results."""

    directory: str | None = None
    """if not given, rankeval-out/ and the experiment's name"""


class StepConfig(Section):
    """One step of a Pipeline. A step may also be written as its import path alone."""

    estimator: str
    """import path of a class; the last step has fit and predict, others transform"""
    params: dict[str, Any] = {}
    """fixed parameters"""
    columns: list[str] | None = None
    """columns that this step transforms, such as categories, by a ColumnTransformer; the others
    pass through behind them, and all columns lose their names"""
    name: str | None = None
    """if not given, the name of the class in small letters, as make_pipeline names it"""

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, step: Any) -> Any:
        return {"estimator": step} if isinstance(step, str) else step


class SearchConfig(Section):
    """A random search, instead of grid: draws combinations with the seed of the experiment."""

    n_iter: Annotated[int, Field(ge=1)] = 10
    """number of combinations to draw"""
    distributions: dict[str, Any] = Field(min_length=1)
    """by parameter: a list of values; {int: [low, high]}, both included; {float: [low, high]}; or
    {log_float: [low, high]}, uniform in its logarithm"""

    @field_validator("distributions")
    @classmethod
    def _are_lists_or_ranges(cls, distributions: dict[str, Any]) -> dict[str, Any]:
        kinds = ", ".join(f"{{{kind}: [low, high]}}" for kind in RANGES)
        bounds = (
            "with whole numbers for int, below 2^62, low below high, and above 0 for a logarithm"
        )
        expected = f"a list of values, or one of {kinds}, {bounds}"
        for name, values in distributions.items():
            require(_is_distribution(values), name, values, expected)
        return distributions


def _is_distribution(values: Any) -> bool:
    if not isinstance(values, dict) or len(values) != 1:
        return isinstance(values, list) and values != []
    match next(iter(values.items())):
        case kind, [int() | float() as low, int() | float() as high] if kind in RANGES:
            # Without bool, which is an int to Python. The comparison is false for nan.
            types = {int} if kind == "int" else {int, float}
            return {type(low), type(high)} <= types and RANGES[kind] < low < high < _BOUND
    return False


class RankerConfig(Section):
    """One candidate: an estimator or the steps of a Pipeline, with values to search; or a column.

    In a Pipeline, the parameters of a step have the names of scikit-learn: `step__parameter`.
    """

    estimator: str | None = None
    """import path of a class with fit and predict"""
    steps: list[StepConfig] | None = Field(default=None, min_length=1)
    """the steps of a Pipeline, instead of estimator"""
    column: str | None = None
    """column of the data whose values rank the rows, instead of estimator, such as the score of the
    ranking in production; nothing is trained, and it need not be a feature"""
    ascending: bool = False
    """true: the lowest value of the column ranks first, as for ranks and prices"""
    params: dict[str, Any] = {}
    """fixed parameters"""
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    """values to try by parameter; all combinations are tried"""
    search: SearchConfig | None = None
    """a random search, instead of grid"""
    early_stopping_rounds: Annotated[int, Field(ge=1)] | None = None
    """LightGBM, XGBoost, CatBoost: stop after so many iterations without a better score on the
    validation part, or, without this part, on queries held out of the training rows"""
    validation_fraction: Annotated[float, Field(gt=0, lt=1)] | None = None
    """share of the queries to hold out for early stopping; if not given, 0.1"""
    eval_measure: MeasureName | None = None
    """measure that early stopping watches; if not given, the primary one"""

    @property
    def searched(self) -> dict[str, Any]:
        """The values or ranges that are searched, by parameter."""
        return self.grid if self.search is None else self.search.distributions

    @property
    def paths(self) -> list[str]:
        """Import paths of the estimator, or of the steps in their order."""
        if self.estimator is not None:
            return [self.estimator]
        return [step.estimator for step in self.steps or ()]

    @property
    def title(self) -> str:
        """The estimator in words: its import path, those of the steps, or the column."""
        order = ", ascending" if self.ascending else ""
        return " > ".join(self.paths) or f"column {self.column}{order}"

    @model_validator(mode="after")
    def _one_of_each(self) -> RankerConfig:
        sources = "estimator", "steps", "column"
        named_sources = [name for name in sources if getattr(self, name) is not None]
        found = " and ".join(named_sources) or "none of them"
        by_column = self.column is not None
        settings = self.params or self.searched
        has_both = self.search is not None and self.grid
        fixed = sorted(self.searched.keys() & self.params.keys())
        named = [step.columns is not None for step in self.steps or ()]
        of_last = "columns are for steps that transform them, and the last one predicts"
        again = "columns lose their names in the first step with columns"
        both = "a ranker has either grid or search, found both"
        twice = f"{', '.join(fixed)} is fixed in params and searched"
        refuse(
            (named and named[-1], f"{of_last}: leave columns out"),
            (sum(named) > 1, f"{again}: name all of them there"),
            (len(named_sources) != 1, f"a ranker has estimator, steps or column, found {found}"),
            (by_column and settings, "a column is not trained: leave params, grid and search out"),
            (self.ascending and not by_column, "ascending belongs to column: leave it out"),
            (has_both, f"{both}: a list of values is a distribution too"),
            (fixed, f"{twice}: leave it out of one of them"),
        )
        return self


class ExperimentConfig(Section):
    """A whole experiment: data, split, rankers, measures, guard, comparison, tracking."""

    name: Name
    """names the experiment, its folder and its runs"""
    data: DataConfig
    """the source of the rows"""
    split: SplitConfig = SplitConfig()
    """the test part"""
    rankers: dict[Name, RankerConfig] = Field(min_length=1)
    """the candidates by name; null leaves one out; a single one gets its mean with an interval"""
    measures: list[MeasureName] = Field(default=["nDCG@10", "AP", "RR"], min_length=1)
    """measures of the report; `rankeval measures` lists all"""
    primary: MeasureName | None = None
    """the measure that decides, the only one with a confirmatory test; if not given, the first
    one"""
    convention: Annotated[str, AfterValidator(lambda name: get_convention(name).name)] = "rankeval"
    """the rules by which rankings are scored"""
    cv: CvConfig = CvConfig()
    """cross-validation on the dev part"""
    guard: GuardConfig | None = GuardConfig()
    """off: the test part is not guarded"""
    comparison: ComparisonConfig = ComparisonConfig()
    """the significance test"""
    tracking: TrackingConfig | None = Field(
        default_factory=lambda: TrackingConfig.model_validate({})
    )
    """off: nothing is logged"""
    output: OutputConfig = OutputConfig()
    """the folder of the results"""
    seed: Seed = 0
    """seed of estimators without one, of random searches and of resamples"""
    n_jobs: Annotated[int, Field(strict=True)] = 1
    """number of fits at once, as for joblib; -1: one for each core"""

    @field_validator("guard", "tracking", mode="before")
    @classmethod
    def _off(cls, value: Any) -> Any:
        # YAML reads a bare `off` as false.
        return None if value == "off" or value is False else value

    @field_validator("rankers", mode="before")
    @classmethod
    def _without_removed(cls, rankers: Any) -> Any:
        # `--set rankers.catboost=null` leaves one out.
        if not isinstance(rankers, Mapping):
            return rankers
        return {name: ranker for name, ranker in rankers.items() if ranker is not None}

    @model_validator(mode="after")
    def _names_fit(self) -> ExperimentConfig:
        standard, split = self.guard and self.guard.baseline, self.split
        key, column = ("time", split.time) if split.column is None else ("column", split.column)
        of_table = f"split.{key} names a column of a table, and the loader is {self.data.loader!r}"
        is_unknown = standard not in (None, *self.rankers)
        rankers = f"guard.baseline {standard!r} is none of the rankers: {', '.join(self.rankers)}"
        is_repeated = len(set(self.measures)) < len(self.measures)
        no_time = "cv.by_time needs split.time, the column of the times"
        roles = self.data.qid, self.data.label, self.data.docid, split.column
        no_score = [
            f"rankers.{name}.column: {ranker.column!r} has no scores, since another key names it"
            for name, ranker in self.rankers.items()
            if ranker.column is not None and ranker.column in roles
        ]
        refuse(
            (is_unknown, rankers),
            (self.n_jobs == 0, "n_jobs: found 0, expected the number of fits at once, or -1"),
            (is_repeated, "measures names one measure twice"),
            (column is not None and not self.data.is_table, of_table),
            (self.cv.by_time and split.time is None, no_time),
            (no_score, "; ".join(no_score)),
        )
        return self

    @property
    def baseline(self) -> str | None:
        """The ranker that the others are compared with; None if there are no others."""
        standard = (self.guard and self.guard.baseline) or next(iter(self.rankers))
        return standard if len(self.rankers) > 1 else None

    @property
    def all_measures(self) -> list[str]:
        """The measures, the primary one first."""
        first = self.primary or self.measures[0]
        return [first, *(name for name in self.measures if name != first)]

    @property
    def directory(self) -> Path:
        """The folder for the files of this experiment."""
        return Path(self.output.directory or Path("rankeval-out") / self.name)

    def to_yaml(self) -> str:
        """Return the whole experiment, defaults included, as YAML."""
        values = self.model_dump(mode="json")
        return yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True)
