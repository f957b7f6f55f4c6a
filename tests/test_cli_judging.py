"""``rankeval judging``: from rankings to sheets, to agreement, to a calibrated machine judge, all of them files."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import each_row, in_full

import rankeval as rk


@pytest.fixture
def collection() -> dict[str, dict[str, int]]:
    """Write two runs, people's judgments of 12 of 30 queries, a machine's of all, and the texts of both."""
    rng = np.random.default_rng(28)
    grades = {f"q{n:02}": {f"d{m}": int(rng.random() < 0.4) for m in range(12)} for n in range(30)}
    guesses = {
        q: {d: grade if rng.random() < 0.85 else 1 - grade for d, grade in labels.items()}
        for q, labels in grades.items()
    }
    rk.Qrels.from_dict({q: labels for q, labels in grades.items() if q < "q12"}).write("human.qrels")
    rk.Qrels.from_dict(guesses).write("machine.qrels")
    for name, weight in (("bm25", 0.5), ("v2", 2.0)):
        rk.Run.from_dict(
            {q: {d: weight * grade + rng.normal() for d, grade in labels.items()} for q, labels in grades.items()}
        ).write(f"{name}.run")
    Path("topics.tsv").write_text("".join(f"{q}\thow to find {q}\n" for q in grades))
    documents = [json.dumps({"_id": f"d{m}", "title": "t", "text": f"=text of d{m}"}) for m in range(12)]
    Path("corpus.jsonl").write_text("\n".join(documents))
    return grades


@pytest.mark.usefixtures("collection")
def test_a_pool_is_printed_with_what_each_run_adds_and_the_time_it_takes(rankeval):
    code, out, err = rankeval("judging", "pool", "bm25.run", "v2.run", "--depth", "3", "--minutes", "2")
    made = rk.judging.pool({"bm25.run": "bm25.run", "v2.run": "v2.run"}, depth=3)
    assert (code, out) == (0, in_full(made))
    hours = made.cost(minutes=2).loc["all", "hours"]
    assert err == f"to judge: {len(made.table)} documents, {hours:.1f} hours if one takes 2 minutes\n"


@pytest.mark.usefixtures("collection")
def test_a_pool_as_csv_and_json_has_the_documents_in_the_order_to_judge_them(rankeval):
    """Judged documents are left out, and the names of the runs that found a document are one text."""
    call = ("judging", "pool", "bm25.run", "v2.run", "--depth", "3", "--judged", "human.qrels")
    made = rk.judging.pool({"bm25.run": "bm25.run", "v2.run": "v2.run"}, depth=3)
    for order in ("depth", "move_to_front", "random"):
        code, out, err = rankeval(*call, "--order", order, "--seed", "4", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(out)))
        waiting = made.order(order, judged="human.qrels", rng=4)
        assert code == 0
        assert [(row["qid"], row["docid"]) for row in rows] == list(zip(waiting["qid"], waiting["docid"], strict=True))
        assert {row["found_by"] for row in rows} == {"bm25.run", "v2.run", "bm25.run v2.run"}
        assert err.startswith(f"to judge: {len(waiting)} documents")
    code, out, _ = rankeval(*call, "--format", "json")
    assert json.loads(out)[0]["qid"] == "q12"


@pytest.mark.usefixtures("collection")
def test_sheets_are_written_filled_and_read(rankeval, collection):
    """Two judges who fill their sheets alike agree wholly; the labels are those of the sheets."""
    call = ("judging", "sheets", "work", "bm25.run", "v2.run", "--judge", "ann", "--judge", "bo", "--overlap", "0.5")
    code, out, _ = rankeval(*call, "--topics", "topics.tsv", "--documents", "corpus.jsonl", "--depth", "5")
    assert code == 0
    assert "ann" in out
    assert "bo" in out
    for path in Path("work").glob("*.csv"):
        sheet = pd.read_csv(path, dtype=str, keep_default_na=False)
        assert set(sheet["query"]) <= {f"how to find {q}" for q in collection}
        assert sheet["text"].str.contains("text of d").all()
        sheet["relevance"] = [collection[q][d] for q, d in zip(sheet["qid"], sheet["docid"], strict=True)]
        sheet.to_csv(path, index=False)
    code, out, err = rankeval("judging", "agreement", "work", "--format", "csv")
    assert code == 0
    rows = {row["coefficient"]: row for row in csv.DictReader(io.StringIO(out))}
    assert {float(row["value"]) for row in rows.values() if row["value"]} == {1.0}
    assert err.startswith("note: ")
    code, _, err = rankeval(*call)
    assert code == 2
    assert err.count("\n") == 1


@pytest.mark.usefixtures("collection")
def test_agreement_is_that_of_two_files_or_of_one_with_judges(rankeval):
    code, table, _ = rankeval("judging", "agreement", "human.qrels", "machine.qrels", "--grades", "ordinal")
    people, machine = rk.Qrels.read("human.qrels"), rk.Qrels.read("machine.qrels")
    assert (code, table) == (
        0,
        in_full(rk.judging.agreement({"human.qrels": people, "machine.qrels": machine}, level="ordinal")),
    )
    both = [one.to_frame().assign(aspect=name) for name, one in (("h", people), ("m", machine))]
    rk.Qrels.from_frame(pd.concat(both)).write("both.qrels")
    one, two = (
        rankeval("judging", "agreement", *files, "--format", "json")
        for files in (["both.qrels"], ["human.qrels", "machine.qrels"])
    )
    assert (one[0], json.loads(one[1])) == (0, json.loads(two[1]))


@pytest.mark.usefixtures("collection")
def test_a_machine_is_calibrated_by_people(rankeval):
    """The estimates are those of Python, for the evaluations of the same files."""
    call = ("judging", "calibrate", "bm25.run", "v2.run", "--human", "human.qrels", "--machine", "machine.qrels")
    people, machine = (
        {name: rk.evaluate(judged, name, measures="AP") for name in ("bm25.run", "v2.run")}
        for judged in ("human.qrels", "machine.qrels")
    )
    found = rk.judging.calibrate(people, machine, baseline="bm25.run", alpha=0.1)
    options = ("--baseline", "bm25.run", "-m", "AP", "--alpha", "0.1")
    code, out, _ = rankeval(*call, *options)
    assert (code, out) == (0, in_full(found))
    code, out, err = rankeval(*call, *options, "--format", "json")
    (row,) = json.loads(out)
    assert code == 0
    assert row["estimate"] == pytest.approx(found.table["estimate"].item(), abs=1e-15)
    assert f"note: {found.caption}" in err


@pytest.mark.usefixtures("collection")
@each_row(
    "call",
    [
        ["pool", "nothing.run"],
        ["pool", "bm25.run", "--order", "length"],
        ["pool", "bm25.run", "--depth", "0"],
        ["sheets", "work", "bm25.run", "--judge", "ann", "--topics", "bm25.run"],
        ["agreement", "nothing"],
        ["agreement", "human.qrels", "machine.qrels", "--grades", "big"],
        ["calibrate", "bm25.run", "v2.run", "--human", "human.qrels", "--machine", "nothing.qrels"],
        ["calibrate", "bm25.run", "v2.run", "--human", "machine.qrels", "--machine", "human.qrels"],
        [
            "calibrate",
            "bm25.run",
            "v2.run",
            "--human",
            "human.qrels",
            "--machine",
            "machine.qrels",
            "--correction",
            "x",
        ],
    ],
)
def test_bad_input_is_one_line_and_the_exit_code_2(rankeval, call):
    code, out, err = rankeval("judging", *call)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")
