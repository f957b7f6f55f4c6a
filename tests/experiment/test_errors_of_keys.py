"""The error of an experiment file names its key in the words of the reference of keys: no option, no class of ours."""

from __future__ import annotations

import datetime as dt
import inspect
import math
import re
from copy import deepcopy
from typing import Any

import pytest
import yaml
from tables import each_row

from rankeval.errors import ConfigError
from rankeval.experiment import check_config, load_config, schema
from rankeval.experiment.config import list_keys

RIDGE = "sklearn.linear_model.Ridge"
VALUES = [
    None, True, False, 5, -1, 2.5, math.nan, "out2", "", [], [1], ["x"], [None], [[]], [{}], {}, {"x": 1}, {1: 2},
    {"x": {}}, {"output": 1}, dt.date(2020, 1, 1), b"x", {1, 2},
]  # fmt: skip
OURS = [
    name
    for name, one in vars(schema).items()
    if inspect.isclass(one) and issubclass(one, schema.Section) and name != "Section"
]
FOREIGN = re.compile(rf"\b({'|'.join(OURS)})\b|instance of|pydantic|datetime\.|(?<!\w)--\w", re.IGNORECASE)


def with_value(path: str, value: Any) -> dict[str, Any]:
    """Return an experiment with one value at a path such as ``rankers.a.steps.0.name``."""
    ranker: dict[str, Any] = {"steps": [{"estimator": RIDGE}]} if ".steps." in path else {"estimator": RIDGE}
    ranker |= {"search": {"distributions": {"alpha": [1]}}} if ".search." in path else {}
    raw: dict[str, Any] = {"name": "e", "data": {"loader": "digits"}, "rankers": {"a": ranker}}
    raw |= {} if path.startswith("tracking") else {"tracking": "off"}
    place: Any = raw
    *above, last = path.split(".")
    for step in above:
        place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
    place[last] = value
    return deepcopy(raw)


def refused(raw: dict[str, Any]) -> ConfigError | None:
    try:
        check_config(raw, source="file.yaml")
    except ConfigError as error:
        return error
    return None


@each_row("key", list_keys(), ids=lambda row: row)
def test_a_wrong_value_is_an_error_of_its_key(key):
    """Whatever stands there, the value is taken, or the error names the key, the section above it or a key below it."""
    path = key.path.replace("NAME", "a").replace("[]", ".0")
    above = {path.rpartition(".")[0], ".".join(path.split(".")[:2]), None}
    for value in VALUES:
        error = refused(with_value(path, value))
        if error is None:
            continue
        assert error.argument in above or f"{error.argument}.".startswith(f"{path}."), (value, error)
        assert error.where == "file.yaml", value
        assert "\n" not in str(error), value
        assert not FOREIGN.search(str(error)), (value, error)


@each_row(
    ("setting", "key", "said"),
    [
        ("output=out2", "output", "expected a section with the keys directory, found 'out2'"),
        ("output=[out2]", "output", "expected a section with the keys directory, found ['out2']"),
        ("output.directory=3", "output.directory", "expected text, found 3"),
        ("cv=5", "cv", "expected a section with the keys n_splits, seed, by_time, found 5"),
        ("cv.n_splits=five", "cv.n_splits", "expected whole number at least 2, found 'five'"),
        ("check=3", "check", "unknown key 'check'"),
        ("keys=3", "keys", "unknown key 'keys'"),
        ("settings=3", "settings", "unknown key 'settings'"),
        ("verbose=true", "verbose", "unknown key 'verbose'"),
        ("split.test_from=[]", "split.test_from", "expected text or whole number or number, found []"),
        ("split.test_size=2020-01-01", "split.test_size", "found 2020-01-01"),
        ("rankers.ridge.grid=3", "rankers.ridge.grid", "expected mapping of lists, found 3"),
        ("rankers.ridge.steps=[[]]", "rankers.ridge.steps.0", "expected a section with the keys estimator, params, "),
        ("data.features=x", "data.features", "expected list of text, found 'x'"),
    ],
)
def test_the_command_names_the_key_and_no_option(setting, key, said, rankeval):
    """`rankeval run` has options called --format, --check and --set: they are no keys, although arguments are."""
    code, out, err = rankeval("run", "quickstart", "--set", setting)
    assert (code, out) == (2, "")
    assert f"quickstart.yaml: {key}: " in err
    assert said in err
    assert not FOREIGN.search(err), err


def test_the_setting_is_named_whose_value_is_wrong():
    """A password may stand in a setting: only its key is said."""
    with pytest.raises(ConfigError) as error:
        load_config("quickstart", ["seed=1", "output=secret", "cv.n_splits=3"])
    assert error.value.remedy == "correct the setting of output"
    with pytest.raises(ConfigError) as error:
        load_config("quickstart", ["cv={n_splits: x}"])
    assert (error.value.argument, error.value.remedy) == ("cv.n_splits", "correct the setting of cv")
    with pytest.raises(ConfigError) as error:
        check_config(with_value("output", 3))
    assert error.value.remedy is None


def test_a_ranker_whose_name_has_dots_has_keys():
    with pytest.raises(ConfigError, match=r"rankers\.a\.b\.gird: unknown key 'gird'; did you mean 'grid'"):
        check_config(with_value("rankers", {"a.b": {"estimator": RIDGE, "gird": {}}}))
    with pytest.raises(ConfigError, match=r"rankers\.a\.b\.grid: expected mapping of lists, found 3"):
        check_config(with_value("rankers", {"a.b": {"estimator": RIDGE, "grid": 3}}))


def test_a_run_that_reads_too_much_names_a_key(rankeval, tmp_path):
    """The remedy of a limit is a key too: `run` has no --limit."""
    raw = with_value("data", {"loader": "letor", "path": "rows.txt", "limits": {"line": 10}})
    (tmp_path / "rows.txt").write_text("1 qid:1 1:0.5 2:0.25 3:0.125\n")
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(raw))
    code, _, err = rankeval("run", "e.yaml", "--check", "--set", "tracking=off", "--set", "guard=off")
    assert (code, "data.limits.line in the experiment file" in err, "--limit" in err) == (2, True, False), err
