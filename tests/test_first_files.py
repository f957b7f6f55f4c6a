"""`rankeval init`: what it writes passes as it stands, opens no test part, and overwrites nothing."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import forking
import numpy as np
import pandas as pd
import pytest
import yaml
from experiment.test_proposing import shop_log
from hypothesis import given
from hypothesis import strategies as st

import rankeval as rk
from rankeval import first_files
from rankeval.contamination import refusal
from rankeval.experiment import load_config, load_parts
from rankeval.experiment.config import parse_yaml
from rankeval.guard.journal import SERVICES

ROOT = Path(__file__).resolve().parents[1]
FILES = ("experiment.yaml", "tests/test_relevance.py", "tests/rankeval_baselines/ranker.parquet")
WORKFLOW = ".github/workflows/relevance.yml"
HOSTILE = [
    "yes",
    "1e3",
    "null",
    'it\'s "{{ x }}" # no\nnew',
    "a: b, [c]",
    "\u2028\x85é😀",
    "{% raw %}",
    "- *x",
    "C:\\dir\\",
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def rows(n_queries: int = 40) -> pd.DataFrame:
    """Make rows whose relevance two of three features tell."""
    made = rk.datasets.make_ranking(n_queries, 8, 3, noise=0.5, rng=0)
    table = pd.DataFrame(made.X, columns=["bm25", "length", "freshness"])
    return table.assign(search_id=made.qid, product=made.docid, grade=made.y, position=np.arange(len(made)) % 8 + 1)


def tree() -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in Path().rglob("*") if one.is_file() and ".git/" not in f"{one}"}


@pytest.fixture
def own_ledger(monkeypatch):
    """Let the ledger be that of the project in the working directory."""
    monkeypatch.delenv("RANKEVAL_LEDGER")
    for variable in " ".join(SERVICES).split():  # there a ledger in the checkout is thrown away: the check refuses it
        monkeypatch.delenv(variable, raising=False)
    Path(".git").mkdir()
    refusal.forget()
    yield Path("rankeval-ledger")
    refusal.forget()


def lightgbm_table(shared: Path) -> list[str]:
    """Write LightGBM's example as a Parquet table under names of a shop."""
    data = rk.datasets.load_letor(shared / "ltr_lightgbm" / "rank.train.gz", sparse=False)
    used = np.flatnonzero((data.X != 0).mean(axis=0) > 0.2)[:12]
    table = pd.DataFrame(data.X[:, used], columns=[f"signal {number}" for number in used])
    table = table.assign(SearchID=data.qid, Relevance=data.y, Position=np.arange(len(data)) % 10)
    table.sample(frac=1, random_state=0).to_parquet("shop.parquet")
    return ["shop.parquet"]


def cranfield_table(shared: Path) -> list[str]:
    """Write the rows of Cranfield as a CSV whose columns have no usual names."""
    data = rk.datasets.load_letor(shared / "letor_cranfield" / "Fold1" / "test.txt.gz", sparse=False)
    table = pd.DataFrame(data.X, columns=list(data.feature_names)).assign(aufgabe=data.qid, güte=data.y)
    table.to_csv("cranfield.csv.gz", index=False)
    return ["cranfield.csv.gz", "--qid", "aufgabe", "--relevance", "güte"]


def letor_folder(shared: Path) -> list[str]:
    shutil.copytree(shared / "letor_cranfield" / "Fold1", "Fold1")
    return ["Fold1"]


def letor_file(shared: Path) -> list[str]:
    for name in ("rank.test.gz", "rank.test.query.gz", "rank.test.query"):
        if (shared / "ltr_lightgbm" / name).exists():
            shutil.copy(shared / "ltr_lightgbm" / name, name)
    return ["rank.test.gz"]


def trec_files(shared: Path) -> list[str]:
    shutil.copy(shared / "trec_covid_r5" / "qrels.residual.txt.gz", "covid qrels.gz")
    shutil.copy(shared / "trec_covid_r5" / "runs" / "bm25_bl_run5.gz", "bm25.gz")
    return ["covid qrels.gz", "bm25.gz"]


def git(*arguments: str, cwd: Path | None = None) -> None:
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    subprocess.run(["git", *who, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.mark.shared
@pytest.mark.worth("the workflow that is written must pass where a user runs it: in a clone, by bash")
@pytest.mark.parametrize(
    "source",
    [
        trec_files,
        *(
            pytest.param(each, marks=getattr(pytest.mark, circle))
            for each, circle in (
                (lightgbm_table, "further"),
                (letor_folder, "further"),
                (cranfield_table, "rest"),
                (letor_file, "rest"),
            )
        ),
    ],
)
def test_what_is_written_passes_in_a_clone(rankeval, shared, source, tmp_path, installed_plugin):
    """The workflow's steps run in a fresh clone; `rankeval run --check` passes, and makes no ledger and no folder."""
    git("init")
    code, out, err = rankeval("init", *source(shared))
    assert (code, err) == (0, ""), out
    has_config = source is not trec_files
    assert Path("experiment.yaml").exists() is has_config
    assert ("no experiment file" in out) is not has_config
    if has_config:
        before = tree()
        code, out, err = rankeval("run", "--check", "experiment.yaml", "--set", "tracking=off")
        assert (code, err) == (0, "")
        assert [line.partition(":")[0] for line in out.splitlines()] == ["dev", "test"]
        assert tree() == before
    git("add", ".")
    git("commit", "--message", "start")
    git("clone", "--quiet", ".", str(tmp_path / "clone"))
    printed = run_workflow(tmp_path / "clone", installed_plugin)
    assert re.search(
        r"^tests/test_relevance.py::test_no_regression +nDCG@10 .* no loss of more than 0.005 is shown$",
        printed,
        re.MULTILINE,
    )
    assert "1 passed" in printed


def run_workflow(clone: Path, installed_plugin: Path) -> str:
    """Run the steps of the workflow as a runner does, by bash in the clone, and return what they printed.

    There is no network. So the actions of GitHub are taken for done, and `pip install` too: a program in place of
    `python` notes it, and runs all else by this Python. The API of GitHub is a port where nobody answers.
    """
    workflow = yaml.safe_load((clone / WORKFLOW).read_text(encoding="utf-8"))
    programs = clone.parent / "programs"
    programs.mkdir()
    (programs / "python").write_text(
        f'#!/bin/sh\ncase "$*" in "-m pip install "*) echo "$*" >> "{programs}/installed";;\n'
        f'*) exec "{sys.executable}" "$@";; esac\n'
    )
    (programs / "python").chmod(0o755)
    search = os.pathsep.join([str(installed_plugin), str(ROOT), str(ROOT / "integrations")])
    environment = {**os.environ, "PYTHONPATH": search, "COLUMNS": "200", "CI": "true", "GITHUB_REPOSITORY": "o/r"}
    environment |= {"GITHUB_API_URL": "http://127.0.0.1:9", "GITHUB_STEP_SUMMARY": str(programs / "summary.md")}
    environment["PATH"] = os.pathsep.join([str(programs), os.environ["PATH"]])
    printed = ""
    for step in workflow["jobs"]["relevance"]["steps"]:
        assert ("uses" in step) != ("run" in step)
        if "run" in step:
            given = environment | {
                name: re.sub(r"\$\{\{.*\}\}", "7", value) for name, value in step.get("env", {}).items()
            }
            done = subprocess.run(
                ["bash", "-e", "-c", step["run"]], cwd=clone, env=given, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            printed += done.stdout
    assert "rankeval-mlflow" in (programs / "installed").read_text().split()
    assert "test_no_regression" in (programs / "summary.md").read_text(encoding="utf-8").replace("\\", "")
    assert "::notice title=No comment on the pull request::" in printed
    return printed


def test_the_workflow_is_that_of_the_guide(rankeval):
    """But for the path of the test."""
    rows().to_csv("shop.csv", index=False)
    assert rankeval("init", "shop.csv")[0] == 0
    guide = (ROOT / "examples" / "guides" / "relevance_tests.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```yaml relevance.yml\n(.*?)```", guide, re.DOTALL)
    assert Path(WORKFLOW).read_text(encoding="utf-8").replace("tests/test_relevance.py", "test_relevance.py") == shown


@pytest.mark.parametrize(
    "there", [FILES[0], *(pytest.param(one, marks=pytest.mark.rest) for one in (*FILES[1:], WORKFLOW))]
)
def test_nothing_is_overwritten_and_then_nothing_is_written(rankeval, there):
    """Also a link that leads nowhere is there."""
    rows().to_csv("shop.csv", index=False)
    Path(there).parent.mkdir(parents=True, exist_ok=True)
    Path(there).symlink_to("nowhere")
    code, out, err = rankeval("init", "shop.csv")
    assert (code, out) == (2, "")
    assert "--into" in err
    assert there in err
    assert [*tree()] == ["shop.csv"]
    assert Path(there).is_symlink()
    assert rankeval("init", "shop.csv", "--into", "elsewhere")[0] == 0
    assert load_config("elsewhere/experiment.yaml").data.path == "../shop.csv"


def test_a_test_that_cannot_rank_leaves_nothing_behind(rankeval):
    """Two queries are too few for three folds: the files that were written before are taken back."""
    rows(2).to_csv("shop.csv", index=False)
    code, _, err = rankeval("init", "shop.csv", "--into", "new")
    assert code == 2
    assert "quer" in err
    assert [str(one) for one in Path().rglob("*")] == ["shop.csv"]


@pytest.mark.parametrize("came", [WORKFLOW, FILES[-1]])
def test_a_file_that_comes_meanwhile_stays(rankeval, monkeypatch, came):
    """Somebody writes it after the first look for such files."""
    rows().to_csv("shop.csv", index=False)
    rendered = first_files._rendered

    def slowly(template, facts):
        if template.startswith("relevance.yml"):
            Path(came).parent.mkdir(parents=True, exist_ok=True)
            Path(came).write_text("theirs")
        return rendered(template, facts)

    monkeypatch.setattr(first_files, "_rendered", slowly)
    code, _, err = rankeval("init", "shop.csv")
    assert (code, came in err) == (2, True)
    assert {name: content for name, content in tree().items() if name != "shop.csv"} == {came: b"theirs"}


def test_registered_content_is_refused(rankeval, own_ledger):
    """Somebody registered all of these rows as a test part: a relevance test on them would look at it."""
    table = rows()
    rk.Guard("shop").register("all", table[["bm25", "length", "freshness"]], table["grade"], qid=table["search_id"])
    table.to_parquet("shop.parquet")
    before = tree()
    code, out, err = rankeval("init", "shop.parquet")
    assert (code, out) == (1, "")
    assert err.startswith("refused:")
    assert tree() == before
    assert own_ledger.is_dir()


def test_the_honest_path(rankeval, own_ledger):
    """The test part is registered and opened by the run alone; the relevance test sees no query of it."""
    rows(80).to_parquet("shop.parquet")
    assert rankeval("init", "shop.parquet")[0] == 0
    config = load_config("experiment.yaml", ["tracking=off"])
    assert config.data.features == ["bm25", "length", "freshness"]
    assert not own_ledger.exists()
    assert rankeval("run", "--check", "experiment.yaml", "--set", "tracking=off")[0] == 0
    assert not own_ledger.exists()
    parts = load_parts(config)
    baseline = rk.Evaluation.load("tests/rankeval_baselines/ranker.parquet")
    assert set(baseline.queries.tolist()) == set(parts.dev.qid.tolist())
    assert set(parts.dev.qid.tolist()).isdisjoint(parts.test.qid.tolist())
    result = rk.run_experiment(config)
    assert (result.looks_added, result.guard.looks) == (1, 1)
    assert own_ledger.is_dir()
    assert "confirmatory" in result.comparison.notes[0] or any("confirmatory" in one for one in result.comparison.notes)
    with pytest.raises(rk.errors.GuardRefusal):
        rk.evaluate(parts.test.y, parts.test.X["bm25"], qid=parts.test.qid)
    assert first_files.runpy.run_path("tests/test_relevance.py")["rank"]().n_queries == baseline.n_queries
    assert rankeval("run", "--check", "experiment.yaml", "--set", "tracking=off")[0] == 0
    # The rows of the test part again, under other ids, as data to train on: the check says so before the run.
    copied = rows(80).assign(search_id=lambda table: table["search_id"] + 1000)
    copied.to_parquet("shop.parquet")
    code, _, err = rankeval("run", "--check", "experiment.yaml", "--set", "tracking=off")
    assert (code, err.startswith("refused:")) == (1, True)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_scores_without_features_make_a_relevance_test_only(rankeval, suffix):
    table = rows()[["search_id", "grade", "position"]].assign(model_score=rows()["bm25"])
    table["search_id"] = [f"0{one}" for one in table["search_id"]]
    path = f"scored.{suffix}"
    table.to_parquet(path) if suffix == "parquet" else table.to_csv(
        path, index=False, sep="\t" if suffix == "tsv" else ","
    )
    code, out, _ = rankeval("init", path)
    assert code == 0
    assert "no experiment file" in out
    assert not Path("experiment.yaml").exists()
    expected = rk.evaluate(table, qid="search_id", relevance="grade", score="model_score", measures="nDCG@10")
    baseline = rk.Evaluation.load("tests/rankeval_baselines/ranker.parquet")
    assert baseline.per_query.equals(expected.per_query)


def test_a_score_that_is_named_makes_a_relevance_test_though_there_are_features(rankeval):
    rows().to_parquet("shop.parquet")
    assert rankeval("init", "shop.parquet", "--score", "bm25")[0] == 0
    assert not Path("experiment.yaml").exists()
    assert rankeval("init", "shop.parquet", "--score", "bm25", "--features", "length", "--into", "other")[0] == 0
    assert load_config("other/experiment.yaml").data.features == ["length"]


def test_a_table_with_neither_features_nor_scores_is_refused(rankeval):
    rows()[["search_id", "grade", "position"]].to_csv("shop.csv", index=False)
    code, _, err = rankeval("init", "shop.csv")
    assert code == 2
    assert "--feature" in err
    assert "position" in err
    assert [*tree()] == ["shop.csv"]


def test_an_open_guess_names_the_option_and_a_terminal_is_asked(rankeval, monkeypatch):
    """By number, because a name may hold anything."""
    rows().rename(columns={"grade": "[bold]clicked"}).to_csv("shop.csv", index=False)
    code, _, err = rankeval("init", "shop.csv")
    assert code == 2
    assert "--relevance" in err
    assert "[bold]clicked" in err
    monkeypatch.setattr(sys, "stdin", Terminal("77\n1\n"))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    code, out, _ = rankeval("init", "shop.csv")
    assert code == 0, out
    assert load_config("experiment.yaml").data.label == "[bold]clicked"


class Terminal:
    """Keys that a user types."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines(keepends=True)

    def isatty(self) -> bool:
        return True

    def readline(self, *_: object) -> str:
        return self.lines.pop(0)

    def fileno(self) -> int:
        raise OSError


@given(TEXTS | st.sampled_from(HOSTILE) | st.from_regex(r"[-+]?[0-9.]{1,3}([eE][-+]?[0-9])?|[yYnN~:#&*!|>%@`]{1,3}"))
def test_any_text_is_one_line_of_yaml_and_of_python(text):
    written = first_files._quoted(text)
    assert len(written.splitlines()) == 1
    assert parse_yaml(f"{{key: {written}, list: [{written}]}}  # {written}", "") == {"key": text, "list": [text]}
    assert parse_yaml(f"key: {written}\nlist:\n  - {written}\n  # {written}\n", "") == {"key": text, "list": [text]}
    assert ast.literal_eval(written) == text


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_hostile_names_stay_names(rankeval, suffix):
    """In the experiment, in its comments and in the test: quotes, braces, line breaks, words of YAML."""
    names = dict(zip(["search_id", "grade", "position", "bm25", "length", "freshness"], HOSTILE, strict=False))
    table = rows().drop(columns="product").rename(columns=names)
    path = f"a 'b' {{{{c}}}} #.{suffix}"
    table.to_parquet(path) if suffix == "parquet" else table.to_csv(path, index=False)
    features = [names["bm25"], names["length"]]
    code, out, err = rankeval(
        "init", path, "--qid", "yes", "--relevance", "1e3", *[one for name in features for one in ("--features", name)]
    )
    assert (code, err) == (0, ""), out
    data = load_config("experiment.yaml").data
    assert (data.path, data.qid, data.label, data.features) == (path, "yes", "1e3", features)
    # The whole experiment, as it is kept beside the report, reads back too.
    config = load_config("experiment.yaml")
    assert parse_yaml(config.to_yaml(), "")["data"]["label"] == "1e3"


def test_the_part_that_the_table_names_is_the_test_part(rankeval):
    table = rows()
    table["split"] = np.where(table["search_id"] <= 25, "train", np.where(table["search_id"] <= 30, "dev", "test"))
    table.to_parquet("shop.parquet")
    assert rankeval("init", "shop.parquet")[0] == 0
    parts = load_parts("experiment.yaml")
    assert (parts.dev.n_queries, parts.test.n_queries) == (30, 10)


def test_a_log_gives_slices_times_and_a_baseline(rankeval, monkeypatch):
    """The experiment passes its check; a market that loses fails the test, which names it."""
    table = shop_log().rename(columns={"grade": "relevance"})
    table.to_csv("shop.csv", index=False)
    code, out, _ = rankeval("init", "shop.csv")
    assert code == 0, out
    config = load_config("experiment.yaml", ["tracking=off"])
    assert (config.data.categories, config.data.slices) == (["brand"], ["market", "device"])
    assert (config.split.time, config.baseline) == ("timestamp", "now")
    assert config.rankers["now"].column == "first_stage_score"
    text = Path("experiment.yaml").read_text()
    parts = load_parts(config)
    assert f"# the newest {parts.test.n_queries} queries, {len(parts.test)} rows" in text
    assert '"ctr_30d"  # of the past' in text
    assert "  # test_size: 0.3" in text
    code, out, err = rankeval("run", "--check", "experiment.yaml", "--set", "tracking=off")
    assert (code, err, "rating: " in out) == (0, "", True)
    module = first_files.runpy.run_path("tests/test_relevance.py")
    market = parts.slices["market"].loc[module["rank"]().queries]
    baseline = rk.Evaluation.load("tests/rankeval_baselines/ranker.parquet")
    test = module["test_no_regression"]
    test(lambda *_, **__: baseline, "market")
    broken = replace(baseline, scores=baseline.scores * np.where(market == "fr", 0.5, 1.0)[:, None])
    monkeypatch.setitem(test.__globals__, "rank", lambda: broken)
    with pytest.raises(
        rk.errors.CheckFailed, match=r"^nDCG@10, market fr: -0.\d{4}, a loss of more than 0.005 is shown"
    ):
        test(lambda *_, **__: baseline, "market")


def test_scores_with_a_market_are_tested_by_market(rankeval):
    table = shop_log()[["search_id", "grade", "market", "first_stage_score"]]
    table.rename(columns={"first_stage_score": "score"}).to_csv("scored.csv", index=False)
    assert rankeval("init", "scored.csv")[0] == 0
    module = first_files.runpy.run_path("tests/test_relevance.py")
    module["test_no_regression"](lambda candidate, **_: candidate, "market")
    assert rk.testing.CHECKS[-2]["measure"].startswith("nDCG@10, market ")


@pytest.mark.parametrize(
    "files", [["no.csv"], ["shop.csv", "no.run"], ["shop.csv", "shop.csv", "shop.csv"], ["q", "r", "--qid", "a"]]
)
def test_what_cannot_be_started_is_said_in_one_line(rankeval, files):
    rows().to_csv("shop.csv", index=False)
    Path("q").write_text("1 0 a 1\n")
    Path("r").write_text("1 Q0 a 1 2 x\n")
    before = tree()
    code, out, err = rankeval("init", *files)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert tree() == before


def test_the_help_says_what_is_written():
    done = forking.run("from rankeval.cli import main; main()", "init", "--help")
    assert done.returncode == 0
    for word in (
        "TABLE|QRELS RUN",
        "--qid",
        "--relevance",
        "--score",
        "--features",
        "--into",
        "Nothing is overwritten",
    ):
        assert word in done.stdout


def test_what_runs_leave_behind_is_ignored(rankeval):
    """The names stand in a new .gitignore; a file that is there stays as it is, and the names are printed."""
    rows().to_csv("shop.csv", index=False)
    code, out, _ = rankeval("init", "shop.csv", "--into", "new")
    assert code == 0
    assert Path("new/.gitignore").read_text().splitlines() == ["rankeval-out/", "mlflow.db", "mlruns/", "__pycache__/"]
    assert "ranker.parquet, .gitignore" in " ".join(out.split())
    Path("old").mkdir()
    Path("old/.gitignore").write_text("theirs")
    _, out, _ = rankeval("init", "shop.csv", "--into", "old")
    assert Path("old/.gitignore").read_text() == "theirs"
    assert "to be named in .gitignore: rankeval-out/, mlflow.db, mlruns/, __pycache__/" in " ".join(out.split())
