"""Read an experiment file into a pydantic model that knows every key.

The model is the only list of keys: defaults, checks and near misses in errors come from it. `load_config` reads YAML,
applies ``--set key.sub=value``, and lets `ExperimentConfig` check the result. The trap: YAML reads a bare ``off`` as
false, so ``guard: off`` arrives as a boolean (`_off`).

Trust a file as you would a script: it names code that is imported and called (see `loading`).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from inspect import isclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from rankeval.collection.convention import get_convention
from rankeval.errors import ConfigError, FileFormatError
from rankeval.io.limits import limits_of
from rankeval.io.opening import read_text
from rankeval.measures import measure
from rankeval.tracking import find_tracker


class _Section(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)


class DataConfig(_Section):
    """The source of the rows."""

    loader: str = Field(description='"digits", "letor", or a function of your own as "module:function": it is called')
    path: str | None = Field(default=None, description="file or folder that the loader reads")
    arguments: dict[str, Any] = Field(default_factory=dict, description="further keyword arguments of the loader")
    limits: dict[str, int] = Field(default_factory=dict, description="limits to raise for letor: feature, line, ...")

    @field_validator("limits")
    @classmethod
    def _exist(cls, limits: dict[str, int]) -> dict[str, int]:
        limits_of(f"{name}={value}" for name, value in limits.items())
        return limits


class SplitConfig(_Section):
    """The share of queries in the test part. A folder with parts of its own (LETOR) is not split again."""

    test_size: Annotated[float, Field(gt=0, lt=1)] = 0.3
    salt: str = ""


class RankerConfig(_Section):
    """One candidate: the import path of a class with fit and predict, its fixed parameters, and the grid to search."""

    estimator: str
    params: dict[str, Any] = Field(default_factory=dict)
    grid: dict[str, list[Any]] = Field(default_factory=dict)

    @field_validator("grid")
    @classmethod
    def _holds_values(cls, grid: dict[str, list[Any]]) -> dict[str, list[Any]]:
        for name, values in grid.items():
            if not values:
                raise ValueError(f"{name} has no value to try")
        return grid


class CvConfig(_Section):
    """Cross-validation on the dev part, in folds of whole queries."""

    n_splits: Annotated[int, Field(ge=2)] = 5
    seed: int = 0


class GuardConfig(_Section):
    """The project of the guard, and the ledger that counts its looks at the test part."""

    project: str | None = Field(default=None, description="the experiment's name if not given")
    ledger: str | None = Field(default=None, description="SQLAlchemy URL; found from the project's root if not given")
    baseline: str | None = Field(
        default=None, description="the ranker that the others are compared with; the first one if not given"
    )


class ComparisonConfig(_Section):
    """The significance test.

    The guard's plans freeze the default: sign flips, corrected jointly over all systems. Another test needs
    ``guard: off``.
    """

    test: str = "randomization"
    correction: str = "max_t"
    confidence_level: Annotated[float, Field(gt=0, lt=1)] = 0.95

    @property
    def as_frozen(self) -> bool:
        """Whether a plan can freeze this test."""
        return (self.test, self.correction) == ("randomization", "max_t")


class TrackingConfig(_Section):
    """The host that logs the runs."""

    host: str = "mlflow"
    uri: str | None = Field(
        default=None, description="the host's own default if left out; null: as the host itself is set up"
    )
    experiment: str | None = Field(default=None, description="the experiment's name if not given")

    @model_validator(mode="before")
    @classmethod
    def _find_host(cls, given: Any) -> Any:
        """Find the host now: a misspelt name must not be noticed after the test part was opened."""
        if not isinstance(given, Mapping):
            return given
        name = given.get("host", cls.model_fields["host"].default)
        if not isinstance(name, str):
            return given
        _, default_uri = find_tracker(name)
        return {"uri": default_uri, **given}


class OutputConfig(_Section):
    """The folder for predictions, report and cached results."""

    directory: str | None = Field(default=None, description="rankeval-out/<name> if not given")


_MOST_VALUES = 100_000
# A name becomes a file name and the name of an MLflow run: no slash, and nothing that MLflow refuses.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.+-]*")


class ExperimentConfig(_Section):
    """A whole experiment: data, split, candidates, measures, guard, comparison, tracking.

    Sections are described by their own classes; `load_config` makes one of these from a YAML file.
    """

    name: str
    data: DataConfig
    split: SplitConfig = SplitConfig()
    rankers: dict[str, RankerConfig]
    measures: Annotated[list[str], Field(min_length=1)] = ["nDCG@10", "AP", "RR"]
    primary: str | None = None
    convention: str = "rankeval"
    cv: CvConfig = CvConfig()
    guard: GuardConfig | None = Field(default=GuardConfig(), description="off: the test part is not guarded")
    comparison: ComparisonConfig = ComparisonConfig()
    tracking: TrackingConfig | None = Field(
        default_factory=lambda: TrackingConfig.model_validate({}), description="off: nothing is logged"
    )
    output: OutputConfig = OutputConfig()
    seed: int = 0
    n_jobs: int = 1

    @field_validator("measures", "primary")
    @classmethod
    def _canonical(cls, named: Any) -> Any:
        """Replace the spellings of other tools by ours."""
        return [str(measure(one)) for one in named] if isinstance(named, list) else named and str(measure(named))

    @field_validator("convention")
    @classmethod
    def _known(cls, name: str) -> str:
        return get_convention(name).name

    @field_validator("guard", "tracking", mode="before")
    @classmethod
    def _off(cls, value: Any) -> Any:
        return None if value == "off" or value is False else value  # YAML itself reads a bare `off` as false

    @field_validator("rankers", mode="before")
    @classmethod
    def _without_removed(cls, rankers: Any) -> Any:
        """Drop rankers that are null: `--set rankers.catboost=null` leaves one out."""
        return {k: v for k, v in rankers.items() if v is not None} if isinstance(rankers, Mapping) else rankers

    @model_validator(mode="after")
    def _names_fit(self) -> ExperimentConfig:
        for name in (self.name, *self.rankers):
            if not _NAME.fullmatch(name):
                raise ValueError(f"the name {name!r} should be letters, digits, space or _.+-, as it names files too")
        if len(self.rankers) < 2:
            raise ValueError(f"rankers holds {len(self.rankers)}: a comparison needs at least two")
        if self.baseline not in self.rankers:
            raise ValueError(f"guard.baseline {self.baseline!r} is none of the rankers: {', '.join(self.rankers)}")
        if len(set(self.measures)) < len(self.measures):
            raise ValueError("measures names one measure twice")
        return self

    @property
    def baseline(self) -> str:
        """The ranker that the others are compared with."""
        chosen = self.guard.baseline if self.guard else None
        return chosen or next(iter(self.rankers))

    @property
    def all_measures(self) -> list[str]:
        """The measures, the primary one first."""
        first = self.primary or self.measures[0]
        return [first, *(each for each in self.measures if each != first)]

    @property
    def directory(self) -> Path:
        """The folder for the files of this experiment."""
        return Path(self.output.directory or Path("rankeval-out") / self.name)

    def to_yaml(self) -> str:
        """Return the whole experiment, defaults included, as YAML."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


class _Loader(yaml.SafeLoader):
    """The safe loader. It reads 1e-3 as a number, as YAML 1.2 does, and refuses a repeated key."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is repeated", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, [*"-+0123456789"])


def load_config(path_or_name: str | Path, overrides: Iterable[str] = ()) -> ExperimentConfig:
    """Read an experiment file, or a shipped one by its bare name.

    Parameters
    ----------
    path_or_name : str or Path
        A YAML file, or the name of a shipped experiment such as ``"quickstart"``.
    overrides : iterable of str
        ``"key.sub=value"``, the value in YAML; each replaces a value of the file.

    Returns
    -------
    ExperimentConfig
        The checked experiment.

    Raises
    ------
    ConfigError
        If the file does not exist or is no YAML, or a key or value is wrong. The message is one line.
    """
    path = _locate(path_or_name)
    raw = _parse(_text(path), str(path))
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: an experiment file is a mapping of sections, found {type(raw).__name__}")
    for override in overrides:
        _set(raw, override)
    return check_config(raw, source=str(path))


def check_config(raw: Mapping[str, Any], *, source: str = "config") -> ExperimentConfig:
    """Check plain values as an experiment.

    Parameters
    ----------
    raw : mapping
        The content of an experiment file.
    source : str
        The name of the source in errors.

    Raises
    ------
    ConfigError
        If a key or value is wrong. One line names the first one and the number of others.
    """
    try:
        return ExperimentConfig.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(f"{source}: {_one_line(error)}") from None


def shipped_configs() -> dict[str, Path]:
    """Return the experiment files that come with the library, by name."""
    package = Path(str(files("rankeval")))
    # A wheel holds them inside the package, a checkout (editable install) beside it.
    for folder in (package / "configs", package.parent / "configs"):
        found = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
        if found:
            return found
    return {}


def _locate(path_or_name: str | Path) -> Path:
    path = Path(path_or_name)
    if path.is_file():
        return path
    shipped = shipped_configs()
    if str(path_or_name) in shipped:
        return shipped[str(path_or_name)]
    near = difflib.get_close_matches(str(path_or_name), shipped, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"shipped by name are: {', '.join(shipped)}"
    found = "is a folder" if path.is_dir() else "does not exist"
    raise ConfigError(f"the experiment file {str(path_or_name)!r} {found}; {hint}")


def _text(path: Path) -> str:
    try:
        return read_text(path).decode()
    except FileFormatError as error:
        raise ConfigError(str(error)) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: expected UTF-8 text, found {error.object[error.start : error.end]!r}") from error


def _parse(text: str, source: str) -> Any:
    try:
        raw = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader, see above
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{source}{where}: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{source}: no YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise ConfigError(f"{source}: nested too deep for an experiment file") from None
    except (ValueError, TypeError) as error:  # a date of no calendar, a number of thousands of digits, a list as a key
        raise ConfigError(f"{source}: {' '.join(str(error).split())}") from None
    if _n_values(raw, {}) > _MOST_VALUES:
        raise ConfigError(f"{source}: aliases (*) make more than {_MOST_VALUES:,} values of it")
    return raw


def _n_values(value: Any, known: dict[int, float]) -> float:
    """Count the values, aliases expanded; infinite if an alias contains itself."""
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = math.inf
        inside = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_n_values(one, known) for one in inside)
    return known[id(value)]


def _set(raw: dict[str, Any], override: str) -> None:
    """Set one ``key.sub=value``; the model checks later if the key exists."""
    key, equals, text = override.partition("=")
    steps = key.strip().split(".")
    if not equals or not all(steps):
        raise ConfigError(f"--set {override!r}: expected key.sub=value")
    place: Any = raw
    for step in steps[:-1]:
        below = place.get(step)
        if below in (None, False, "off"):
            below = place[step] = {}
        if not isinstance(below, dict):
            raise ConfigError(f"--set {override!r}: {step!r} holds a value and no keys")
        place = below
    place[steps[-1]] = _parse(text, f"--set {override!r}")


def _one_line(error: ValidationError) -> str:
    problems = error.errors(include_url=False)
    # Show an unknown key first: the key that it was meant to be is then missing too.
    first = min(problems, key=lambda problem: problem["type"] != "extra_forbidden")
    steps = [str(step) for step in first["loc"]]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if first["type"] == "extra_forbidden":
        known = _fields_at(steps[:-1])
        near = difflib.get_close_matches(steps[-1], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"
        return f"unknown key {'.'.join(steps)!r}; {hint}{more}"
    if first["type"] == "missing":
        return f"the key {'.'.join(steps)!r} is missing{more}"
    message = first["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    found = "" if first["type"] == "value_error" else f", found {first['input']!r}"
    return f"{'.'.join(steps) + ': ' if steps else ''}{message}{found}{more}"


def _fields_at(steps: list[str]) -> list[str]:
    """Return the keys of the section at this place."""
    if not steps:
        return list(ExperimentConfig.model_fields)
    annotation = ExperimentConfig.model_fields[steps[0]].annotation
    sections = (one for one in (annotation, *get_args(annotation)) if isclass(one) and issubclass(one, BaseModel))
    return list(next(sections).model_fields)
