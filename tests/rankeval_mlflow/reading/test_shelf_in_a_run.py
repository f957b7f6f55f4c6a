"""Every kind of result is logged, holds what a folder of it holds, and is loaded from the run as it was."""

from __future__ import annotations

from pathlib import Path

import mlflow
import pytest
from shelf.every_kind import evaluation, results
from sklearn.base import BaseEstimator

import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.errors import InvalidInput
from rankeval.shelf.kinds import KINDS
from rankeval.tracking import LoggedData

CANARY = "canary5f3a"
FURTHER = sorted(results().keys() - KINDS.keys())


def files_of(folder: Path, *left_out: str) -> dict[str, bytes]:
    """Return the files of a folder by path, without views and some folders."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    kept = {name: path for name, path in found.items() if not name.startswith(left_out) and path.name != "README.md"}
    return {name: path.read_bytes() for name, path in kept.items()}


def downloaded(run_id: str, folder: Path) -> Path:
    folder.mkdir()
    return Path(mlflow.artifacts.download_artifacts(run_id=run_id, artifact_path="rankeval", dst_path=str(folder)))


@pytest.mark.parametrize("title", [*KINDS, *(pytest.param(one, marks=pytest.mark.rest) for one in FURTHER)])
def test_a_run_holds_what_a_folder_holds_and_gives_the_result_back(title, tmp_path):
    result, options = results()[title]
    logged = {name: value for name, value in options.items() if name not in ("note", "predictions")}
    saved = {name: value for name, value in options.items() if name != "note"}
    is_folds = title.startswith("cross-validation")
    if is_folds:
        saved["predictions"] = False  # a score per row is not sent
    seal = rk.save(result, tmp_path / "saved", **saved)
    run = rkm.log(result, report=False, **logged)
    back = rkm.load(run)
    assert type(back) is type(result)
    assert rk.save(back, tmp_path / "again", **saved) == seal
    assert files_of(tmp_path / "again") == files_of(tmp_path / "saved")
    ours = files_of(tmp_path / "saved", "children/", *(["parts/"] if is_folds else []))
    labels = {path.parent for path in downloaded(run.run_id, tmp_path / "run").rglob("record.json")}
    held = [{name: content for name, content in files_of(label).items() if name in ours} for label in labels]
    assert ours in held, [str(label) for label in labels]


def test_the_evaluation_of_a_cross_validation_is_a_piece_of_its_own(tmp_path):
    """And the folds stand in a folder beside it."""
    result, options = results()["cross-validation"]
    rk.save(result, tmp_path / "saved", **options)
    folder = downloaded(rkm.log(result, report=False, **options).run_id, tmp_path / "run") / "dev"
    assert files_of(folder / "cross-validation").keys() == {
        "record.json",
        "tables/diagnosis.parquet",
        "tables/folds.parquet",
    }
    own = files_of(tmp_path / "saved" / "parts" / "dev")
    assert {name: content for name, content in files_of(folder).items() if name in own} == own


def metrics_of(client, run_id: str) -> dict[str, list[tuple[int, float]]]:
    keys = client.get_run(run_id).data.metrics
    return {key: [(one.step, one.value) for one in client.get_metric_history(run_id, key)] for key in keys}


@pytest.mark.parametrize("title", ["evaluation", "comparison", "cross-validation", "agreement", "ab_test"])
def test_the_same_result_twice_is_one_point_and_another_is_refused(title, client, tmp_path):
    """Nothing of the run is changed by what is refused."""
    result, options = results()[title]
    run = rkm.log(result, report=False, **options)
    first = metrics_of(client, run.run_id)
    assert rkm.log(result, run.run_id, report=False, **options).run_id == run.run_id
    assert metrics_of(client, run.run_id) == first
    data = rk.datasets.make_ranking(24, 6, rng=4)
    others = {
        "evaluation": lambda: evaluation(seed=5),
        "comparison": lambda: rk.compare({"old": evaluation(seed=5), "new": evaluation(seed=6)}),
        "cross-validation": lambda: rk.cross_validate(Remote(), data, measures=["nDCG@10", "AP"], cv=3),
        "agreement": lambda: results()["agreement of grades"][0],
        "ab_test": lambda: results()["ab_test of three arms"][0],
    }
    before = files_of(downloaded(run.run_id, tmp_path / "before")), client.get_run(run.run_id).data.to_dictionary()
    with pytest.raises(InvalidInput):
        rkm.log(others[title](), run.run_id, report=False, **options)
    assert files_of(downloaded(run.run_id, tmp_path / "after")) == before[0]
    assert client.get_run(run.run_id).data.to_dictionary() == before[1]
    assert metrics_of(client, run.run_id) == first


def test_a_run_of_several_results_gives_each_by_its_name():
    run_id = None
    titles = ["comparison", "agreement", "ab_test", "evaluation", "profile without a name"]
    for title in titles:
        run_id = rkm.log(results()[title][0], run_id, report=False).run_id
    for label, title in {"comparison": "comparison", "agreement": "agreement", "dev": "evaluation"}.items():
        assert str(rkm.load(run_id, label)) == str(results()[title][0])
    with pytest.raises(InvalidInput, match=r"holds 5 results.*give label=, one of 'ab_test'"):
        rkm.load(run_id)
    with pytest.raises(InvalidInput):
        rkm.load(run_id, "nothing")


def test_a_ranker_whose_run_was_deleted_is_named_and_the_others_keep_their_order(client):
    """The order is that of the result, not of the runs: a slow ranker's began earlier."""
    several = results()["cross-validations"][0]
    run = rkm.log(several, report=False)
    assert list(rkm.load(run)) == list(several)
    client.delete_run(run.children[0].run_id)
    with pytest.raises(InvalidInput, match="has no child run of 'ridge': it was deleted or has another name"):
        rkm.load(run)


class Remote(BaseEstimator):
    """An estimator that asks a service."""

    def __init__(self, api_key=None, url=None):
        self.api_key, self.url = api_key, url

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0]


def test_no_secret_reaches_a_run_and_ids_stand_in_few_files(client, tmp_path):
    """Of an estimator, of the address of the data; ids in Parquet files, pages and the table of queries alone."""
    source = f"https://me:{CANARY}@host/data?token={CANARY}"
    ids = [f"topic9x{place}" for place in range(20) for _ in range(8)]
    one, other = (evaluation(name, seed=seed, qid=ids) for seed, name in enumerate(("old", "new")))
    data = LoggedData("letor", one.judgments_digest, "dev", 160, 20, source)
    run_id = rkm.log(one, data=data).run_id
    rkm.log(rk.compare({"old": one, "new": other}, baseline="old"), run_id, data=data, role="dev")
    made = rk.datasets.make_ranking(20, 8, rng=0)
    service = Remote(CANARY, f"https://me:{CANARY}@host/v1?token={CANARY}")
    cv = rk.cross_validate(service, made.X, made.y, qid=ids, cv=2, measures="AP")
    runs = [run_id, rkm.log(cv, folds=True).run_id]
    told = [client.get_run(each).to_dictionary() for each in runs]
    assert CANARY not in str(told)
    assert "topic9x" not in str(told)
    for number, each in enumerate(runs):
        for name, content in files_of(downloaded(each, tmp_path / f"{number}")).items():
            assert CANARY.encode() not in content, name
            readable = b"topic9x" in content
            assert not readable or name.endswith((".parquet", ".html", "queries.json")), name
    database = Path(tmp_path, "mlflow.db").read_bytes()
    assert CANARY.encode() not in database
