"""The data of an experiment: the roles of its columns, and how rows are loaded and split.

A loader is found and checked by `find_loader` without being called, so that nothing is read for a
file that cannot run.

`guess` says which column of a table holds what, and which columns are no features; `refuse_answers`
refuses features that look like answers. A column is the query or the relevance only if its name
*and* its content say so: ids that repeat, few small numbers. A wrong guess would make every number
of an experiment wrong, so of two candidates nobody but the user chooses. Any other column of
numbers is a feature, unless its name or its content says that no ranker may know it when it ranks.
The names stand in ``templates/columns.yaml``.

The trap is the order. A table is often sorted by the relevance, and tools write columns in any
order, so neither may decide.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import import_module
from importlib.resources import files
from inspect import Parameter, isfunction, ismethod, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from numpy.typing import NDArray

from rankeval._checks import count, refuse
from rankeval._registry import unknown
from rankeval._source import install
from rankeval.collection.data import RankingData, stack_rows
from rankeval.errors import ConfigError, InvalidInput
from rankeval.experiment.config import blaming
from rankeval.experiment.schema import CvConfig, DataConfig, ExperimentConfig
from rankeval.io.feature_tables import feature_numbers
from rankeval.io.letor import PART_OF
from rankeval.io.opening import DEFAULT, Limits, limits_of, reading
from rankeval.io.tables import open_table
from rankeval.tracking import LoggedData

if TYPE_CHECKING:
    from rankeval.model_selection.query_split import QuerySplit

_LONGEST = 300  # characters of the names of features in a note


@dataclass(frozen=True)
class Loaded:
    """The rows of an experiment as the loader returned them."""

    # Parts ``train``, ``vali`` and ``test``, or one data set that is not split yet.
    rows: RankingData | Mapping[str, RankingData]
    notes: tuple[str, ...] = ()
    slices: pd.DataFrame = field(default_factory=pd.DataFrame)  # By query id, a column each
    times: NDArray[Any] | None = None  # (n_rows,)
    beside: tuple[str, ...] = ()  # Columns of X that rank, and are no features


@dataclass(frozen=True)
class DataParts:
    """The parts of the data of an experiment, and their source."""

    dev: RankingData  # The rows to train and to tune on, and those to test on
    test: RankingData
    source: str  # The file, or the loader
    # The rows that early stopping watches. No ranker is trained on them.
    validation: RankingData | None = None
    notes: tuple[str, ...] = ()  # What a reader of the report should know of the data
    # (n_queries, n_slices): The values of all queries by id; the report shows the rankers for each
    # value.
    slices: pd.DataFrame = field(default_factory=pd.DataFrame)
    # (n_queries,): The times of all queries by id, if dev is cross-validated by time.
    times: pd.Series[Any] | None = None
    # The same parts for a ranker by column, with this column as X.
    by_column: Mapping[str | None, DataParts] = field(default_factory=dict)

    def with_features(self, features: Callable[[RankingData], pd.DataFrame]) -> DataParts:
        """Return the parts with other features."""
        changed = {}
        for role in ("dev", "test", "validation"):
            if (part := getattr(self, role)) is not None:
                X = features(part)
                changed[role] = replace(part, X=X, feature_names=tuple(X.columns))
        return replace(self, **changed)

    def folds(self, cv: CvConfig) -> QuerySplit:
        """Return the folds of dev."""
        from rankeval.model_selection.splitters import QueryKFold, QueryTimeSplit

        if self.times is not None:
            return QueryTimeSplit(cv.n_splits, times=self.times)
        return QueryKFold(cv.n_splits, shuffle=True, random_state=cv.seed)

    @cached_property
    def logged(self) -> tuple[LoggedData, ...]:
        """Dev, validation (if there is such a part), then test, as a tracker describes them."""
        described = []
        for role in ("dev", "validation", "test"):
            if (data := getattr(self, role)) is not None:
                name, digest = data.name or role, data_digest(data)
                sizes = len(data), data.n_queries
                described.append(LoggedData(name, digest, role, *sizes, self.source))
        return tuple(described)


def find_loader(config: ExperimentConfig) -> Callable[[], Loaded]:
    """Return the function that loads the data, with its arguments; it is not called."""
    from rankeval import datasets

    data = config.data
    if data.is_table:
        _check_file(data)
        return partial(_load_table, config)
    is_folder = data.path is not None and Path(data.path).is_dir()
    letor = datasets.load_letor_parts if is_folder else datasets.load_letor
    shipped: Mapping[str, Any] = {"letor": letor, "digits": datasets.load_digits_retrieval}
    load = _bound(shipped.get(data.loader) or _own_loader(data.loader), data)
    if data.loader == "letor":
        _check_file(data)
    return load


def imported(path: str, *, key: str) -> Any:
    """Import ``package.module.Name`` or ``module:name``."""
    module_path, _, name = path.rpartition(":") if ":" in path else path.rpartition(".")
    if not module_path:
        problem = f"{path!r} is not an import path; expected package.module.Name or module:name"
        raise ConfigError(problem, argument=key)
    if "" not in sys.path and "." not in sys.path:
        # A loader of the user's own is in the current directory, as with python -m.
        sys.path.append("")
    try:
        module = import_module(module_path)
    except ImportError as error:
        from rankeval.model_selection.boosters import BOOSTERS

        missing = (error.name or module_path).partition(".")[0]
        hint = f"install it: {install(missing)}" if missing in BOOSTERS else None
        raise ConfigError(f"cannot import {path!r}: {error}", argument=key, remedy=hint) from error
    if not hasattr(module, name):
        raise ConfigError(f"the module {module_path!r} has no {name!r}", argument=key)
    return getattr(module, name)


def _own_loader(path: str) -> Any:
    loader, fault = imported(path, key="data.loader"), ""
    if not (isfunction(loader) or ismethod(loader)):
        fault = f"is a {type(loader).__name__}"
    elif (loader.__module__ or "").partition(".")[0] in sys.stdlib_module_names:
        fault = "belongs to Python's own library"
    else:
        first = next(iter(signature(loader).parameters.values()), None)
        if first is not None and first.kind is Parameter.VAR_POSITIONAL:
            fault = "takes any arguments"
    if fault:
        example = "such as def load(path)"
        expected = f"a function of your own that returns rankeval.RankingData, {example}"
        raise ConfigError(f"{path!r} {fault}; expected {expected}", argument="data.loader")
    return loader


def split(config: ExperimentConfig, loaded: Loaded, *, watched: bool) -> DataParts:
    """Split loaded rows."""
    notes, validation, times = [*loaded.notes], None, None
    if isinstance(loaded.rows, RankingData):
        from rankeval.model_selection.holdout import dev_test_split
        from rankeval.model_selection.query_ids import encode
        from rankeval.model_selection.splitters import query_times

        rule: dict[str, Any] = {"test_size": config.split.test_size, "salt": config.split.salt}
        if loaded.times is not None:
            rule = {"times": loaded.times, "test_from": config.split.test_from}
            notes.append(f"the test part has the queries from {config.split.test_from} on")
            if config.cv.by_time:
                codes, queries = encode(loaded.rows.qid)
                times = pd.Series(query_times(loaded.times, None, None, codes, queries)[0], queries)
        with blaming("split"):
            halves = dev_test_split(loaded.rows, **rule)
        notes += [halves.earlier] if halves.earlier else []
        dev, test = halves.dev, halves.test
    else:
        parts = dict(loaded.rows)
        if "test" not in parts or len(parts) < 2:
            found = f"{config.data.path} has {' and '.join(parts) or 'no parts'}"
            expected = "expected test and at least one of train and vali"
            raise ConfigError(f"{found}; {expected}", argument="data.path")
        test = parts.pop("test")
        if len(parts) < 2:
            (dev,) = parts.values()
        elif watched and not config.split.join_validation:
            dev, validation = parts["train"], parts["vali"]
            notes.append(
                "early stopping watches the validation part, and no ranker is trained on it"
            )
        else:
            dev = _joined(list(parts.values()))
            notes.append("the dev part is the training and the validation part together")
    if watched and validation is None:
        notes.append(
            "early stopping watches queries held out of the rows that a ranker is fitted to"
        )
    if config.cv.n_splits > dev.n_queries:
        dev_queries = f"{count(dev.n_queries, 'query')} of the dev part"
        problem = f"found {config.cv.n_splits} folds for {dev_queries}"
        raise ConfigError(problem, argument="cv.n_splits")
    source = config.data.path or config.data.loader
    split_parts = DataParts(dev, test, source, validation, tuple(notes), loaded.slices, times)
    with blaming("cv", "the dev part cannot be split"):
        [*split_parts.folds(config.cv).split(dev.X, dev.y, qid=dev.qid)]
    by_column = _by_column(config, split_parts)
    if loaded.beside:
        split_parts = split_parts.with_features(lambda part: part.X.drop(columns=[*loaded.beside]))
    return replace(split_parts, by_column=by_column)


def _by_column(config: ExperimentConfig, parts: DataParts) -> dict[str | None, DataParts]:
    """Return the parts of the rankers by column; raise if a row has no value in it."""
    found: dict[str | None, DataParts] = {}
    for name, ranker in config.rankers.items():
        if ranker.column is not None:
            with blaming(f"rankers.{name}"):
                found[ranker.column] = parts.with_features(partial(_alone, ranker.column))
    return found


def _alone(column: str, part: RankingData) -> pd.DataFrame:
    from rankeval.model_selection.score_columns import score_column

    try:
        return pd.DataFrame({column: score_column(part.X, column, part.feature_names)})
    except InvalidInput as error:
        raise error.having(where=part.name) from None


def data_digest(data: RankingData) -> str:
    """Return the SHA-256 of features, labels, query and document ids, in the order of the rows."""
    digest = hashlib.sha256()
    for label, column in _columns(data):
        digest.update(f"{label}:{column.dtype}:{column.shape};".encode())
        if column.dtype.kind in "OUS":
            for value in column.ravel().tolist():
                text = str(value).encode()
                digest.update(f"{len(text)}:".encode() + text)
        else:
            digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()


def _columns(data: RankingData) -> list[tuple[str, NDArray[Any]]]:
    ids = [(name, getattr(data, name)) for name in ("y", "qid", "docid")]
    columns = [(name, column) for name, column in ids if column is not None]
    features = data.X
    if isinstance(features, pd.DataFrame):
        for name, column in features.items():
            categories = getattr(column, "cat", None)
            if categories is not None:
                columns.append((f"X.{name}.categories", categories.categories.to_numpy()))
                column = categories.codes  # noqa: PLW2901
            columns.append((f"X.{name}", column.to_numpy()))
    elif hasattr(features, "tocsr"):
        rows = features.tocsr()
        columns += [("X.data", rows.data), ("X.indices", rows.indices), ("X.indptr", rows.indptr)]
    else:
        columns.append(("X", np.asarray(features)))
    return columns


def _check_file(data: DataConfig) -> None:
    path = Path(data.path or "")
    where = "" if path.is_absolute() else f" in {str(Path.cwd())!r}"
    refuse(
        (data.path is None or not path.exists(), f"there is no file {data.path!r}{where}"),
        (data.is_table and path.is_dir(), f"{data.path!r} is a folder", "name a file"),
        kind=ConfigError,
        argument="data.path",
    )


def _limits(data: DataConfig) -> Limits:
    return limits_of(f"{name}={value}" for name, value in data.limits.items())


def _load_table(config: ExperimentConfig) -> Loaded:
    from rankeval.datasets.files import as_data, read_table, split_table
    from rankeval.model_selection.splitters import moments

    data, column, time = config.data, config.split.column, config.split.time
    path = Path(str(data.path))
    roles = {name: getattr(data, name) for name in ("qid", "label", "docid")}
    roles |= {"part": column, "time": time}
    ranking = [ranker.column for ranker in config.rankers.values() if ranker.column is not None]
    table, warnings = read_table(
        path,
        roles,
        data.features,
        categories=data.categories,
        slices=[*data.slices, *([time] if time else [])],
        rankers=ranking,
        format=data.loader,
        limits=_limits(data),
    )
    if data.features is None:
        features = table.features.items()
        unnamed = {name: cells for name, cells in features if name not in data.categories}
        refuse_answers(unnamed, table.label, str(path))
    names = textwrap.shorten(", ".join(table.features), _LONGEST, placeholder=" ...")
    notes = [*warnings, f"{count(len(table.features), 'feature')}: {names}"]
    unlike = tuple(name for name in dict.fromkeys(ranking) if name not in table.features)
    columns = {**table.features, **{name: table.beside[name] for name in unlike}}
    table = replace(table, features=columns)
    whole = as_data(table, path.name)
    slices, times = _by_query(table.beside, whole.qid, data.slices), None
    if time is not None:
        with blaming("split.time"):
            times = moments(table.beside[time], "times")
    if column is None:
        return Loaded(whole, tuple(notes), slices, times, unlike)
    rule, where = config.split, f"{path}, column {column}"
    words = {"train": rule.train, "vali": rule.validation, "test": rule.test}
    parts, more = split_table(table, words, others=rule.others, where=where, name=path.name)
    return Loaded(parts, (*notes, *more), slices, beside=unlike)


def _by_query(
    columns: Mapping[str, pd.Series[Any]], qid: NDArray[Any], names: list[str]
) -> pd.DataFrame:
    frame = pd.DataFrame({name: columns[name] for name in names}, index=range(len(qid)))
    rows = frame.groupby(qid, sort=False)
    for name, n_values in rows.nunique(dropna=False).items():
        if n_values.max() > 1:
            found = f"the column {name!r} has several values in query {n_values.idxmax()!r}"
            raise ConfigError(f"{found}; expected one value a query", argument="data.slices")
    return rows.first()


def _joined(parts: list[RankingData]) -> RankingData:
    columns = {name: [getattr(part, name) for part in parts] for name in ("y", "qid", "docid")}
    if any(ids is None for ids in columns["docid"]):
        del columns["docid"]
    joined: dict[str, Any] = {name: np.concatenate(values) for name, values in columns.items()}
    return RankingData(
        stack_rows([part.X for part in parts]),
        **joined,
        feature_names=parts[0].feature_names,
        name="+".join(part.name or "" for part in parts),
    )


def _bound(function: Any, data: DataConfig) -> Callable[[], Loaded]:
    positional = () if data.path is None else (data.path,)
    arguments = data.arguments | ({"limits": _limits(data)} if data.limits else {})
    try:
        signature(function).bind(*positional, **arguments)
    except TypeError as error:
        lacks_path = data.path is None and "path" in signature(function).parameters
        problem = f"the loader {data.loader!r} cannot be called like this: {error}"
        remedy = "set data.path" if lacks_path else None
        raise ConfigError(problem, argument="data", remedy=remedy) from error
    kinds = (RankingData, dict) if data.loader == "letor" else RankingData

    def load() -> Loaded:
        loaded = function(*positional, **arguments)
        if not isinstance(loaded, kinds):
            found = f"{data.loader} returned {type(loaded).__name__}"
            raise ConfigError(f"{found}, expected rankeval.RankingData", argument="data.loader")
        return Loaded(loaded)

    return load


Ask = Callable[[str, Sequence[str]], str]
"""Asks the user which of some columns has a role, and returns it."""

_TEMPLATE = files(__package__).joinpath("templates/columns.yaml")
NAMES = yaml.safe_load(_TEMPLATE.read_text(encoding="utf-8"))
_GRADES, _HIGHEST = 20, 100
EPOCHS = ((9e8, 4e9), (9e11, 4e12))  # seconds and milliseconds of the years 1998 to 2096
_SHOWN = 12  # columns in a message
_DECIDES = "its values decide the relevance"
_CORRELATES = "it correlates with the relevance above .95"
_ANSWERS = {*NAMES["answers"], _DECIDES, _CORRELATES}
_LATER = NAMES["no_feature"]["called like something known later"]
_HIGH = 0.95  # a correlation
_FEWEST, _MOST = 10, 20_000  # rows that show a correlation, and rows that are sampled


@dataclass(frozen=True)
class Guess:
    """The columns of a table."""

    format: str  # parquet, csv or tsv
    roles: dict[str, str]  # ``qid`` and ``relevance``, perhaps ``docid``, ``score`` and ``part``
    features: list[str]  # The columns that a ranker may know
    left_out: dict[str, str]  # The columns that are features only if the user names them, and why
    # The columns without lists: numbers, and others as they are
    cells: pd.DataFrame = field(repr=False)


def guess(
    path: Path,
    named: Mapping[str, str],
    features: Sequence[str] | None = None,
    ask: Ask | None = None,
) -> Guess:
    """Guess the columns of a table."""
    with reading(path, DEFAULT) as file:
        source = open_table(file, str(path), None, DEFAULT)
        reasons = {name: "lists" for name, kind in source.kinds.items() if pa.types.is_nested(kind)}
        cells = source.columns([name for name in source.kinds if name not in reasons])
    columns = {name: feature_numbers(cells.column(name), source) for name in cells.column_names}
    reasons |= {name: reason for name, reason in columns.items() if isinstance(reason, str)}
    texts = {name: cells.column(name).to_pandas() for name in columns if name in reasons}
    table = pd.DataFrame(columns | texts).replace("", None)
    wanted: list[str] = []
    for name in features or ():
        wanted += [name] if name in table else name.split(",")
    for role, name in [*named.items(), *(("features", name) for name in wanted)]:
        if name not in table:
            raise unknown("column", name, columns).having(argument=role, where=source.path)
    roles = dict(named)
    for role in [role for role in NAMES["roles"] if role not in named]:
        free = sorted(columns.keys() - {*roles.values(), *wanted})
        fit = [name for name in free if _fits(role, table[name], table, roles)]
        likely = _likely(role, fit, table)
        if len(likely) == 1:
            roles[role] = likely[0]
        elif role in ("qid", "relevance"):
            words = "|".join(NAMES["roles"][role])
            free.sort(key=lambda name: (not has_word(name, words), name not in fit))
            close = [name for name in free if name in fit or has_word(name, words)]
            may_be = likely or close or free
            if not may_be or ask is None:
                problem = "names and contents of the columns do not say which one it is"
                shown = ", ".join(map(repr, may_be[:_SHOWN])) or "none"
                remedy = f"name the column; these may be it: {shown}"
                raise InvalidInput(problem, argument=role, where=source.path, remedy=remedy)
            roles[role] = ask(role, may_be)
    kept = [name for name in columns if name in (wanted or columns) and name not in roles.values()]
    if not wanted:
        for name in kept:
            if name not in reasons:
                reasons[name] = reason_against(name, table[name], table[roles["relevance"]])
        kept = [name for name in kept if not reasons[name]]
    if kept and "score" in roles.keys() - named.keys():
        reasons[roles.pop("score")] = "called like the score of a ranker"
    left_out = {}
    if not wanted:
        others = sorted(reasons.keys() - roles.values())
        left_out = {name: reasons[name] for name in others if reasons[name]}
    kind = {"": "parquet", "\t": "tsv"}.get(source.delimiter, "csv")
    return Guess(kind, roles, kept, left_out, table)


def has_word(name: str, words: str) -> bool:
    """Return whether one of the words stands in the name of a column."""
    return re.search(rf"(?<![a-z])({words})(?![a-z])", _in_words(name)) is not None


def _in_words(name: str) -> str:
    return "_".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)).lower()


def _likely(role: str, fit: list[str], table: pd.DataFrame) -> list[str]:
    names = names_like(NAMES["roles"][role], fit)
    if role != "qid":
        return names
    # The text of the query beside its id groups the rows alike: the id is taken.
    names.sort(key=lambda name: has_word(name, "id|no|qid"))
    return [*{pd.factorize(table[name])[0].tobytes(): name for name in names}.values()]


def names_like(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names that the first pattern fits that fits any."""
    for pattern in patterns:
        if fit := [name for name in names if re.fullmatch(pattern, _in_words(name))]:
            return fit
    return []


def _is_id(column: pd.Series[Any]) -> bool:
    if pd.api.types.is_numeric_dtype(column):
        return bool((np.floor(column) == column).all())
    return all(isinstance(value, str) for value in column.unique())


def _fits(role: str, column: pd.Series[Any], table: pd.DataFrame, roles: Mapping[str, str]) -> bool:
    n_values = column.nunique()
    is_full = pd.api.types.is_numeric_dtype(column) and n_values > 1 and not column.isna().any()
    if role == "qid":
        return _is_id(column) and 2 <= n_values <= len(column) / 2
    if role == "relevance":
        return is_full and n_values <= _GRADES and column.min() >= 0 and column.max() <= _HIGHEST
    if role == "score":
        return is_full
    query = table[roles["qid"]]
    n_pairs = len(pd.DataFrame({"query": query, "column": column}).drop_duplicates())
    if role == "docid":
        return _is_id(column) and n_pairs == len(column)
    parts = {PART_OF.get(str(value).strip().casefold()) for value in column.unique()}
    return "test" in parts and None not in parts and len(parts) > 1 and n_pairs == query.nunique()


def refuse_answers(columns: Mapping[str, Any], relevance: NDArray[Any], where: str) -> None:
    """Raise if a column looks like an answer, and list the columns that a ranker may know."""
    # A random sample, since every tenth row may be the best of its query.
    sample = np.random.default_rng(0).permutation(len(relevance))[:_MOST]
    truth = pd.Series(relevance).iloc[sample]
    reasons = {
        name: reason_against(name, pd.Series(column).iloc[sample], truth)
        for name, column in columns.items()
    }
    answers = [f"{name!r} ({reason})" for name, reason in reasons.items() if reason in _ANSWERS]
    if answers:
        features = [name for name, reason in reasons.items() if not reason]
        clean = json.dumps(features, ensure_ascii=False)
        raise ConfigError(
            f"the key is missing, and columns look like answers: {', '.join(answers)}",
            argument="data.features",
            where=where,
            remedy=f"name the columns that a ranker may know, perhaps features: {clean}",
        )


def reason_against(name: str, column: pd.Series[Any], relevance: pd.Series[Any]) -> str:
    """Return why no ranker may know a column of numbers or categories; an empty text if it may."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.cat.codes
    is_past = has_word(name, NAMES["past"]) and not has_word(name, _LATER)
    for reason, words in NAMES["no_feature"].items():
        if has_word(name, words) and not (is_past and reason in NAMES["lifted"]):
            return str(reason)
    if np.isinf(column).any():
        return "infinite numbers"
    n_values = column.nunique()
    if n_values < 2:
        return "one value in all rows"
    if _is_id(column):
        if n_values == len(column):
            return "another whole number in each row, as ids have"
        if any(low <= column.min() and column.max() <= high for low, high in EPOCHS):
            return "numbers like times"
    has_few_values = n_values <= min(_GRADES, len(column) / 2)
    if has_few_values and relevance.groupby(column).nunique().max() == 1:
        return _DECIDES
    return _CORRELATES if _is_close(column, relevance) else ""


def _is_close(column: pd.Series[Any], relevance: pd.Series[Any]) -> bool:
    """Return whether a column correlates with the relevance, itself or by its ranks.

    Equal labels limit the correlation of ranks, so it is a share of the highest one that their
    number allows. For two labels this is 2 AUC - 1.
    """
    if not pd.api.types.is_numeric_dtype(relevance):
        return False
    known = np.isfinite(column)
    x, y = column[known], relevance[known]
    if len(x) < _FEWEST or min(x.nunique(), y.nunique()) < 2:
        return False
    ranks = y.rank()
    linear = np.corrcoef(x, y)[0, 1]
    by_rank = np.cov(x.rank(), ranks)[0, 1] / np.cov(np.arange(len(x)), np.sort(ranks))[0, 1]
    return bool(max(abs(linear), abs(by_rank)) > _HIGH)
