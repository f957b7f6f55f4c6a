"""What can be no loader or estimator is refused before it is called; a config is as trusted as a script."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tables import each_row

from rankeval.errors import ConfigError
from rankeval.experiment import run_experiment
from rankeval.experiment.config import check_config, load_config

CONFIG = {
    "name": "small",
    "data": {"loader": "digits", "arguments": {"n_queries": 60, "n_candidates": 15}},
    "rankers": {
        "ridge": {"estimator": "sklearn.linear_model.Ridge"},
        "tree": {"estimator": "sklearn.tree.DecisionTreeRegressor"},
    },
    "guard": "off",
    "tracking": "off",
}


@each_row(
    "loader", ["os:system", "os.popen", "subprocess:run", "subprocess:Popen", "shutil:rmtree", "os:remove", "mine:any"]
)
def test_what_is_no_loader_is_never_called(tmp_path: Path, monkeypatch, loader):
    """Neither a builtin, nor a function of Python's own library, nor one that would take anything."""
    Path("mine.py").write_text("def any(*args, **kwargs):\n    open('made', 'w')\n")
    (tmp_path / "victim").mkdir()
    path = str(tmp_path / "victim") if loader in {"shutil:rmtree", "os:remove"} else "touch made"
    config = {**CONFIG, "data": {"loader": loader, "path": path}}
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    with pytest.raises(ConfigError, match=rf"data.loader: '{loader}'"):
        run_experiment(check_config(config))
    assert not Path("made").exists()
    assert (tmp_path / "victim").is_dir()


@each_row(
    ("estimator", "params"),
    [
        ("subprocess.Popen", {"args": ["touch", "made"]}),
        ("os.system", {"command": "touch made"}),
        ("sklearn.preprocessing.StandardScaler", {}),
        ("mine.Sly", {}),
    ],
)
def test_what_is_no_estimator_is_never_called(monkeypatch, estimator, params):
    """Nor is data loaded for it."""
    Path("mine.py").write_text("class Sly:\n    def __init__(self):\n        open('made', 'w')\n    fit = None\n")
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    Path("loads.py").write_text("def load():\n    open('made', 'w')\n")
    rankers = {**CONFIG["rankers"], "bad": {"estimator": estimator, "params": params}}
    with pytest.raises(ConfigError, match=rf"rankers.bad.estimator: .*'{estimator}'"):
        run_experiment(check_config({**CONFIG, "rankers": rankers, "data": {"loader": "loads:load"}}))
    assert not Path("made").exists()


def test_the_help_says_how_far_a_config_is_trusted(rankeval):
    said = rankeval("run", "--help")[1]
    assert "trust it as you would trust a script" in " ".join(said.replace("│", " ").split())


def test_limits_of_the_loader_are_set_in_the_config(tmp_path: Path):
    for part in ("train", "test"):
        rows = [f"{row % 2} qid:{part == 'test'}{row // 4} 1:{row % 3} 2000000:1" for row in range(40)]
        (tmp_path / f"{part}.txt").write_text("\n".join(rows).replace("True", "1").replace("False", "2"))
    data = {"loader": "letor", "path": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"data.limits: unknown limit 'features'; did you mean 'feature'"):
        check_config({**CONFIG, "data": {**data, "limits": {"features": 3}}})
    from experiment.loaded import load_parts

    from rankeval.errors import LimitExceeded

    with pytest.raises(LimitExceeded, match="feature 2000000"):
        load_parts(check_config({**CONFIG, "data": data}))
    parts = load_parts(check_config({**CONFIG, "data": {**data, "limits": {"feature": 2_000_000}}}))
    assert parts.test.X.shape[1] == 2_000_000


def test_aliases_do_not_multiply(tmp_path: Path):
    """Ten lines of YAML would otherwise stand for a billion values."""
    levels = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    (tmp_path / "x.yaml").write_text("\n".join(levels))
    with pytest.raises(ConfigError, match=r"x.yaml: aliases \(\*\) make more than 100,000 values of it"):
        load_config(tmp_path / "x.yaml")
