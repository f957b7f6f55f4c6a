"""Public objects can be saved by pickle, cloudpickle and skops, and another process loads them.

MLflow, Ray, Dask and Spark use cloudpickle, which saves the code of every function that it does not find again by its
module and name. A classmethod in ``__reduce__`` is such a function, and a file with such code could not be loaded.
"""

from __future__ import annotations

import pickle
import subprocess
import sys

import cloudpickle
import pytest
from lightgbm import LGBMRanker
from sklearn.linear_model import Ridge

import rankeval as rk
from rankeval.collection.convention import PRESETS
from rankeval.measures import family
from rankeval.measures.family import FAMILIES

CHANGED = {"ties": "stable", "depth": 10, "bind": {"nDCG": {"gain": "exp"}, "RBP": {"p": 0.9}}}


def two_hits(judged, *, rel: float = 1):
    """Return the number of relevant documents at ranks 1 and 2: 0 to 2, higher is better; 0 without any."""
    return judged.hits(rel, 2).astype(float)


@pytest.fixture(scope="module")
def own():
    """Return a measure whose module no other process can import, as in a notebook."""
    family("TwoHits", title="first two", formula="hits(2)", source="a test", linear=True, bounds=(0, 2))(two_hits)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield rk.measure("TwoHits(rel=2)")
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    FAMILIES.pop("TwoHits")


@pytest.fixture(scope="module")
def objects():
    """Return objects by name: all that pickle takes of the public ones."""
    data = rk.datasets.make_ranking(20, 5, rng=0)
    qrels, run = {"1": {"a": 1, "b": 0}, "2": {"a": 2}}, {"1": {"a": 0.5, "b": 0.1}, "2": {"b": 3.0, "a": 1.0}}
    first = rk.evaluate(qrels, run, measures=["AP", "nDCG@10"], convention="trec_eval-10", name="first")
    second = rk.evaluate(qrels, {**run, "1": {"b": 1.0}}, measures=["AP", "nDCG@10"], convention="trec_eval-10")
    folds = rk.cross_validate({"a": Ridge(), "b": Ridge(alpha=9.0)}, data, cv=2)
    booster = LGBMRanker(n_estimators=3, n_jobs=1, verbose=-1)
    return {
        **{f"preset {name}": preset for name, preset in PRESETS.items()},
        "changed convention": rk.Convention("mine", **CHANGED),
        "unnamed convention": rk.Convention(ties="worst"),
        "measure": rk.measure("nDCG(gain='exp')@10"),
        "measure with gains": rk.measure("nDCG(gain={1: 1, 2: 3})@5"),
        "scorer": rk.make_scorer("nDCG@10"),
        "scorer of many": rk.make_scorer(["nDCG@10", rk.measure("ARP")], convention="lightgbm", name="many"),
        "scorer with a rule": rk.make_scorer("AP", ties="worst"),
        "scorer with ids": rk.make_scorer("AP", qid=data.qid, y=data.y),
        "lightgbm_feval": rk.lightgbm_feval("AP"),
        "xgboost_metric": rk.xgboost_metric("AP", convention="xgboost"),
        "evaluation": first,
        "comparison": rk.compare({"first": first, "second": second}),
        "cross-validations": folds,
        "learning curve": rk.learning_curve(Ridge(), data, sizes=[5], cv=2),
        "qrels": rk.Qrels.from_dict(qrels),
        "run": rk.Run.from_dict(run),
        "ranking data": data,
        "limits": rk.io.Limits(),
        "contingency table": rk.analysis.contingency_table([1, 0, 1], [0.3, 0.2, 0.1], qid=[1, 1, 2], cutoff=1),
        "explanation": rk.explain_difference([1, 0], [0.3, 0.3], qid=[1, 1], measure="P@1", values=(0.5, 1.0)),
        "QueryKFold": rk.QueryKFold(3, shuffle=True, random_state=0),
        "QueryShuffleSplit": rk.QueryShuffleSplit(3, test_size=0.2, random_state=0),
        "QueryTimeSplit": rk.QueryTimeSplit(3),
        "RepeatedQueryKFold": rk.RepeatedQueryKFold(n_splits=3, random_state=0),
        "StratifiedQueryKFold": rk.StratifiedQueryKFold(3),
        "PredefinedFolds": rk.PredefinedFolds([(["a"], ["b"]), (["b"], ["a"])]),
        "unfitted ranker": rk.QueryRanker(booster, eval_measure=rk.measure("AP"), eval_convention=rk.Convention()),
        "fitted ranker": rk.QueryRanker(
            booster, early_stopping_rounds=2, eval_measure=rk.measure("AP"), eval_convention=rk.Convention(**CHANGED)
        ).fit(data.X, data.y, qid=data.qid),
    }


LOAD = """
import pathlib, pickle, sys
failed = {}
for path, printed in pickle.loads(pathlib.Path("files").read_bytes()):
    try:
        again = repr(pickle.loads(pathlib.Path(path).read_bytes()))
    except Exception as error:
        again = repr(error)
    if again != printed:
        failed[path] = again
sys.exit(str(failed) if failed else 0)
"""


@pytest.mark.parametrize("package", [pickle, cloudpickle])
def test_another_process_loads_all(package, objects, own, tmp_path):
    """It prints the same there. A measure of a notebook travels with its function, by cloudpickle alone."""
    if package is cloudpickle:
        evaluation = rk.evaluate([1, 2], [0.5, 0.1], qid=[1, 1], measures=own)
        objects = {**objects, "own": own, "own scorer": rk.make_scorer("TwoHits"), "own evaluation": evaluation}
    for name, one in objects.items():
        (tmp_path / name).write_bytes(package.dumps(one))
    (tmp_path / "files").write_bytes(pickle.dumps([(name, repr(one)) for name, one in objects.items()]))
    done = subprocess.run([sys.executable, "-c", LOAD], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_cloudpickle_saves_names_and_no_code(objects):
    """It finds every class and function of this package again by its name."""
    with_code = [name for name, one in objects.items() if b"cloudpickle" in cloudpickle.dumps(one)]
    assert with_code == []


@pytest.mark.needs("skops")
@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("changed convention", {"rankeval.collection.convention.Convention"}),
        ("measure", {"rankeval.measures.family.Measure"}),
        (
            "scorer with a rule",
            {
                "rankeval.collection.convention.Convention",
                "rankeval.contamination.refusal.ContaminationCheck",
                "rankeval.measures.family.Measure",
                "rankeval.model_selection.scorers.QueryScorer",
            },
        ),
    ],
)
def test_skops_asks_for_the_class_alone(name, types, objects):
    """Neither the frozen mapping of a convention nor the function of a measure is in the file."""
    import skops.io

    packed = skops.io.dumps(objects[name])
    assert set(skops.io.get_untrusted_types(data=packed)) == types
    again = skops.io.loads(packed, trusted=sorted(types))
    assert (type(again), repr(again)) == (type(objects[name]), repr(objects[name]))  # scorers are no values
