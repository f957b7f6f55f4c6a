"""An experiment file is checked key by key, and what does not fit is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tables import each_row

from rankeval.errors import ConfigError
from rankeval.experiment import check_config, load_config, shipped_configs

RANKERS = {"a": {"estimator": "sklearn.linear_model.Ridge"}, "b": {"estimator": "sklearn.linear_model.Lasso"}}
MINIMAL = {"name": "small", "data": {"loader": "digits"}, "rankers": RANKERS}


@each_row("name", ["quickstart", "letor"])
def test_a_shipped_experiment_is_found_by_its_bare_name_and_by_its_path(name):
    assert load_config(name) == load_config(shipped_configs()[name])


def test_defaults_are_written_out_and_read_back_as_the_same_experiment(tmp_path: Path):
    config = check_config(MINIMAL)
    (tmp_path / "full.yaml").write_text(config.to_yaml())
    assert load_config(tmp_path / "full.yaml") == config


def test_the_first_ranker_is_the_baseline_and_the_first_measure_the_primary_one():
    config = check_config({**MINIMAL, "measures": ["AP", "RR"]})
    assert (config.baseline, config.all_measures) == ("a", ["AP", "RR"])
    config = check_config({**MINIMAL, "measures": ["AP", "RR"], "primary": "RR", "guard": {"baseline": "b"}})
    assert (config.baseline, config.all_measures) == ("b", ["RR", "AP"])


def test_settings_replace_values_at_any_depth_and_make_the_sections_they_need():
    settings = [
        "rankers.ridge.grid.alpha=[1e-3, 2]",
        "data.path=some/where",
        "tracking=off",
        "rankers.ridge.params.fit_intercept=false",
    ]
    config = load_config("quickstart", settings)
    assert config.rankers["ridge"].grid == {"alpha": [0.001, 2]}
    assert config.rankers["ridge"].params == {"fit_intercept": False}
    assert config.data.path == "some/where"
    assert config.tracking is None
    assert load_config("quickstart", ["tracking=off", "tracking.uri=sqlite:///x.db"]).tracking.uri == "sqlite:///x.db"


def test_a_ranker_set_to_null_is_left_out():
    assert list(load_config("letor", ["rankers.catboost=null"]).rankers) == ["ridge", "lambdarank", "xgboost"]


@each_row(
    ("settings", "key"),
    [
        ("cv.n_split=3", "cv.n_split"),
        ("rankers.ridge.gird={}", "rankers.ridge.gird"),
        ("trakcing=off", "trakcing"),
        ("guard.projct=x", "guard.projct"),
        ("split.test_size=2", "split.test_size"),
        ("rankers={}", "rankers"),
        ("rankers.ridge.grid.alpha=[]", "rankers.ridge.grid.alpha"),
        ("name=../elsewhere", "name"),
        ("rankers.a/b={estimator: x}", "rankers.a/b.[key]"),
        ("data={}", "data.loader"),
        ("seed=-1", "seed"),
        ("seed=true", "seed"),
        ("cv.seed=-1", "cv.seed"),
        ("n_jobs=true", "n_jobs"),
    ],
)
def test_what_does_not_fit_is_one_line_with_the_key(settings, key):
    with pytest.raises(ConfigError) as error:
        load_config("quickstart", [settings])
    assert error.value.argument == key
    assert "\n" not in str(error.value)


@each_row(
    ("settings", "said"),
    [
        (["cv.n_split=3"], "quickstart.yaml: cv.n_split: unknown key 'n_split'; did you mean 'n_splits'"),
        (["seed=-1"], "seed: input should be greater than or equal to 0, found -1"),
        (["rankers.ridge=null"], "guard.baseline 'ridge' is none of the rankers: boosted-trees"),
        (["guard.baseline=none-such"], "guard.baseline 'none-such' is none of the rankers: ridge, boosted-trees"),
        (["measures=[AP, AP]"], "one measure twice"),
        (["name.x=3"], "'name' has a value and no keys"),
        (["cv"], "expected key.sub=value"),
        (["cv.n_splits=["], "line 1, column 2"),
        (["n_jobs=0"], "n_jobs: "),
    ],
)
def test_what_does_not_fit_is_said_with_a_way_out(settings, said):
    with pytest.raises(ConfigError, match=said):
        load_config("quickstart", settings)


@each_row(
    ("text", "said"),
    [
        ("- a\n- b\n", "a mapping of sections, found list"),
        ("name: a\nname: b\n", "line 2, column 1: the key 'name' is repeated"),
        ("name: [\n", "line 2, column 1"),
        ("name: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
        ("name: !!timestamp odd\n", "bad.yaml: "),
        ("seed: !!bool odd\n", "bad.yaml: "),
    ],
)
def test_a_file_that_is_no_experiment_says_where(tmp_path: Path, text, said):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=said) as error:
        load_config(path)
    assert str(path) in str(error.value)


def test_a_missing_file_is_answered_with_the_nearest_shipped_name():
    with pytest.raises(ConfigError, match="unknown file or shipped experiment 'quikstart'; did you mean 'quickstart'"):
        load_config("quikstart")
    with pytest.raises(ConfigError, match="known are: letor, quickstart"):
        load_config("no/such/file.yaml")


def test_a_name_too_long_for_a_file_is_no_experiment():
    with pytest.raises(ConfigError, match=r"there is no experiment file .*: File name too long$"):
        load_config("x" * 100_000)
