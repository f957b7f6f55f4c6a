"""The odd inputs: as trec_eval where it is right, an error or a better value where it is not, each with the reason."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import rankeval as rk
from rankeval.errors import FileFormatError, InvalidInput, UnknownName
from rankeval.trec_eval.output import trec_rules, trec_text

pytestmark = pytest.mark.shared

VERSIONS = {"9.0.8": "trec_eval-9.0.8", "10.0-rc3": "trec_eval-10"}
BOTH = tuple(VERSIONS)

REFUSED = {
    # Refused by trec_eval too; our message says what is wrong and where.
    "missing_topic": (("10.0-rc3",), InvalidInput, r"lacks 1 of 2 judged queries \('q2'\)"),  # it has it backwards
    "no_common_topic": (BOTH, InvalidInput, "no query in common"),
    "topic_leading_zero": (BOTH, InvalidInput, "the run has '1', the qrels have '01'"),
    "dup_doc_run": (BOTH, InvalidInput, "run: document 'd1' occurs twice in query 'q1'"),
    "dup_doc_qrels_same": (BOTH, InvalidInput, "qrels: document 'd1' occurs twice in query 'q1'"),
    "empty_run": (BOTH, FileFormatError, "is empty"),
    "empty_qrels": (BOTH, FileFormatError, "is empty"),
    "missing_run_file": (BOTH, InvalidInput, "there is no file"),
    "missing_qrels_file": (BOTH, InvalidInput, "there is no file"),
    "qrels_3_fields": (BOTH, FileFormatError, "line 1: expected 4 columns"),
    "qrels_5_fields": (BOTH, FileFormatError, "line 1: expected 4 columns"),
    "unknown_measure": (BOTH, UnknownName, "unknown measure of trec_eval 'nosuch'"),
    # trec_eval goes on with a number that nobody wrote: not a number is in no order, and text is not 0.
    "nan_score": (BOTH, FileFormatError, "line 2, column score: expected a finite number"),
    "inf_score": (BOTH, FileFormatError, "line 1, column score: expected a finite number"),
    "score_not_number": (BOTH, FileFormatError, "line 1, column score: .*'abc'"),
    "qrels_label_text": (BOTH, FileFormatError, "line 1, column relevance: .*'abc'"),
}
"""Case: versions in which it is refused here, the error, what it says."""

BETTER = {
    "blank_line_qrels": "a blank line says nothing; trec_eval skips it in runs and stops at it in qrels",
    "comment_run": "comments are read, as by 10.0; 9.0.8 stops",
    "comment_qrels": "comments are read, as by 10.0; 9.0.8 stops",
    "bom_run": "a byte-order mark is no part of the first topic's id, so that its first document is not lost",
    "qrels_label_float": "a label of 1.9 gains 1.9, it is not cut to 1",
    "run_5_fields": "a run without tags is read, and noted; trec_eval refuses it",
    "mixed_tags": "the run is named by its first line, not by its last",
}
"""Case: why our output is another one."""


def options_of(given: list[str]) -> tuple[list[str], dict]:
    """Turn trec_eval's options into ours."""
    measures, rules, rest = [], {}, iter(given)
    for option in rest:
        if option == "-m":
            measures.append(next(rest))
        elif option == "-c":
            rules["complete"] = True
        elif option == "-J":
            rules["judged_only"] = True
        elif option[:2] in ("-l", "-M"):
            rules["level" if option[1] == "l" else "depth"] = int(option[2:])
    return measures or ["all_trec"], rules


def ours(folder: Path, version: str, given: list[str]) -> str:
    measures, rules = options_of(given)
    qrels, run = rk.Qrels.read(folder / "qrels"), rk.Run.read(folder / "run")
    return trec_text(
        qrels, run, measures=measures, convention=trec_rules(VERSIONS[version], **rules), per_query="-q" in given
    )


def test_every_odd_input_behaves_as_the_table_says(shared: Path):
    """Of 53 cases under two versions each is the same to the byte, refused, or better for a reason."""
    cases = json.loads((shared / "golden" / "edge_cases.json").read_text())
    seen = Counter()
    for case, recorded in cases.items():
        for version in VERSIONS:
            folder, given = shared / "edge_inputs" / case, recorded["options"]
            if version in REFUSED.get(case, ((),))[0]:
                with pytest.raises(REFUSED[case][1], match=REFUSED[case][2]):
                    ours(folder, version, given)
                seen["refused"] += 1
                continue
            same = ours(folder, version, given) == recorded["results"][version]["stdout"]
            # 10.0 reads comments as we do.
            expected = case not in BETTER or (case.startswith("comment_") and version == "10.0-rc3")
            assert same == expected, (case, version)
            seen["same" if same else "better"] += 1
    assert seen == {"same": 63, "refused": 31, "better": 12}


def test_what_is_better_is_right(shared: Path):
    """The values where our output is another one."""
    folder = shared / "edge_inputs"
    control = ours(folder / "baseline", "10.0-rc3", ["-q"])
    for case in ("blank_line_qrels", "comment_run", "comment_qrels", "bom_run", "mixed_tags"):
        assert ours(folder / case, "10.0-rc3", ["-q"]) == control
    best = 1.9 + 0.5 / np.log2(3)
    line = f"ndcg                  \tq1\t{(0.5 + 1.9 / 2) / best:.4f}\n"
    assert line in ours(folder / "qrels_label_float", "10.0-rc3", ["-q"])
