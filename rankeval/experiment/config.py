"""An experiment file as a pydantic model that knows every key, and reading it.

`load_config` reads YAML as an experiment file means it: 1e-3 is a number, a repeated key is refused, aliases do not
multiply. It applies ``--set key.sub=value``, and lets `ExperimentConfig` check the result; what pydantic found wrong is
said in one line, in our words.

The trap: YAML reads a bare ``off`` as false, so ``guard: off`` arrives as a boolean (`_off`).

Trust a file as you would a script: it names code that is imported and called (see `estimators` and `loading`).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from inspect import isclass
from pathlib import Path
from typing import Annotated, Any, get_args

import yaml
from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from rankeval._checks import refuse, said, shown
from rankeval.collection.convention import get_convention
from rankeval.errors import ConfigError, RankevalError
from rankeval.experiment.sections import (
    ComparisonConfig,
    CvConfig,
    DataConfig,
    GuardConfig,
    OutputConfig,
    RankerConfig,
    Section,
    Seed,
    SplitConfig,
    TrackingConfig,
)
from rankeval.io.opening import read_text
from rankeval.measures import measure

_MOST_VALUES = 100_000

_EXPONENT = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
# A name becomes a file name and the name of an MLflow run: no slash, and nothing that MLflow refuses.
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]*$")]


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


class _Dumper(yaml.SafeDumper):
    """The safe dumper. It quotes the text 1e3, which `_Loader` would read as a number."""


for _class in (_Loader, _Dumper):
    _class.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, [*"-+0123456789"])


def parse_yaml(text: str, source: str) -> Any:
    """Return the plain values of a text.

    Parameters
    ----------
    text : str
        The text.
    source : str
        Its name in messages.

    Raises
    ------
    ConfigError
        If it is no YAML, repeats a key, or aliases make too many values of it.
    """
    try:
        raw = yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader, see above
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{source}, line {mark.line + 1}, column {mark.column + 1}" if mark else source
        raise ConfigError(f"{error.problem}", where=place) from None
    # PyYAML lets the errors of its constructors out: a date of no calendar, a list as a key, `!!timestamp` of a word.
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ConfigError(f"no YAML for an experiment file: {said(error)}", where=source) from None
    if _n_values(raw, {}) > _MOST_VALUES:
        raise ConfigError(f"aliases (*) make more than {_MOST_VALUES:,} values of it", where=source)
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


@contextmanager
def blaming(key: str, problem: str = "") -> Iterator[None]:
    """Raise an error of a library as one of a key of the experiment file.

    Parameters
    ----------
    key : str
        The key; an argument that the error names is a key below it.
    problem : str
        What is wrong if another library raises anything; without it, only errors of this one are taken.
    """
    try:
        yield
    except RankevalError as error:
        below = ".".join(filter(None, (key, error.argument)))
        raise ConfigError(**error.fields | {"argument": below or None}) from error
    except Exception as error:
        if not problem:
            raise
        raise ConfigError(f"{problem}: {type(error).__name__}: {said(error)}", argument=key) from error


def set_key(raw: dict[str, Any], override: str) -> None:
    """Set one ``key.sub=value``; the model checks later if the key exists.

    Parameters
    ----------
    raw : dict
        The content of an experiment file.
    override : str
        The key and its value, in YAML.

    Raises
    ------
    ConfigError
        If this is no ``key.sub=value``, or a key above holds a value.
    """
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
    place[steps[-1]] = parse_yaml(text, f"--set {override!r}")


def refusal(error: ValidationError, model: type[BaseModel], source: str) -> ConfigError:
    """Return the error for the first problem that pydantic found; it counts the others.

    Parameters
    ----------
    error : ValidationError
        What pydantic raised.
    model : type
        The model of the whole file, whose keys are the near misses.
    source : str
        The name of the file.
    """
    problems = error.errors(include_url=False)
    # Show an unknown key first: the key that it was meant to be is then missing too.
    first = min(problems, key=lambda problem: problem["type"] != "extra_forbidden")
    steps = [str(step) for step in first["loc"]]
    path, raised = ".".join(steps), first.get("ctx", {}).get("error")
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if first["type"] == "extra_forbidden":
        known = _keys_at(model, steps[:-1])
        near = difflib.get_close_matches(steps[-1], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(known)}"
        return ConfigError("unknown key", argument=path, where=source, remedy=f"{hint}{more}")
    if first["type"] == "missing":
        return ConfigError(f"the key is missing{more}", argument=path, where=source)
    # Pydantic begins each sentence with a capital, and does not say the value; ours are errors of a validator.
    problem = f"{raised}" if raised else f"{first['msg'][:1].lower()}{first['msg'][1:]}, found {shown(first['input'])}"
    return ConfigError(f"{problem}{more}", argument=path or None, where=source)


def _keys_at(model: type[BaseModel], steps: list[str]) -> list[str]:
    """Return the keys of the section at this place; names of rankers and numbers of steps are no keys."""
    for step in steps:
        field = model.model_fields.get(step)
        inner = next(sections_in(field.annotation), None) if field is not None else None
        model = inner or model
    return list(model.model_fields)


def sections_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation, such as that of ``dict[str, Model]`` or ``Model | None``.

    Parameters
    ----------
    annotation : type
        The annotation of a field.
    """
    if isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from sections_in(part)


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
    measures: list[str] = Field(default=["nDCG@10", "AP", "RR"], min_length=1)
    """measures of the report; `rankeval measures` lists all"""
    primary: str | None = None
    """the measure that decides, the only one with a confirmatory test; if not given, the first one"""
    convention: str = "rankeval"
    """the rules by which rankings are scored"""
    cv: CvConfig = CvConfig()
    """cross-validation on the dev part"""
    guard: GuardConfig | None = GuardConfig()
    """off: the test part is not guarded"""
    comparison: ComparisonConfig = ComparisonConfig()
    """the significance test"""
    tracking: TrackingConfig | None = Field(default_factory=lambda: TrackingConfig.model_validate({}))
    """off: nothing is logged"""
    output: OutputConfig = OutputConfig()
    """the folder of the results"""
    seed: Seed = 0
    """seed of estimators without one, of random searches and of resamples"""
    n_jobs: Annotated[int, Field(strict=True)] = 1
    """number of fits at once, as for joblib; -1: one for each core"""

    @field_validator("measures", "primary")
    @classmethod
    def _canonical(cls, named: Any) -> Any:
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
        # `--set rankers.catboost=null` leaves one out.
        return {k: v for k, v in rankers.items() if v is not None} if isinstance(rankers, Mapping) else rankers

    @model_validator(mode="after")
    def _names_fit(self) -> ExperimentConfig:
        standard, split = self.guard and self.guard.baseline, self.split
        names = ", ".join(self.rankers)
        refuse(
            (standard not in (None, *self.rankers), f"guard.baseline {standard!r} is none of the rankers: {names}"),
            (self.n_jobs == 0, "n_jobs: found 0, expected the number of fits at once, or -1"),
            (len(set(self.measures)) < len(self.measures), "measures names one measure twice"),
            (
                not self.data.is_table and (split.column or split.time) is not None,
                f"split.column and split.time name columns of a table, and the loader is {self.data.loader!r}",
            ),
            (self.cv.by_time and split.time is None, "cv.by_time needs split.time, the column of the times"),
        )
        return self

    @property
    def baseline(self) -> str | None:
        """The ranker that the others are compared with; None if there are no others."""
        if len(self.rankers) == 1:
            return None
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
        return yaml.dump(self.model_dump(mode="json"), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


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
    with blaming("", f"{path}: no UTF-8 text"):
        text = read_text(path).decode()
    raw = parse_yaml(text, str(path))
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: an experiment file is a mapping of sections, found {type(raw).__name__}")
    for override in overrides:
        set_key(raw, override)
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
        raise refusal(error, ExperimentConfig, source) from None


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
