"""The example of a paper's tables and figures, on the real runs: 16 of TREC-COVID, and those of three collections."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "08_paper_tables.py"


def run(folder, cwd):
    return subprocess.run([sys.executable, EXAMPLE, folder], capture_output=True, text=True, cwd=cwd, check=True).stdout


@pytest.mark.shared
@pytest.mark.docs
def test_all_tables_and_figures_come_out_of_it(shared, tmp_path):
    """The systems' table has a row for each run; feedback is compared on each collection and on all."""
    said = run(shared, tmp_path)
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 60
    table = (tmp_path / "covid.tex").read_text(encoding="utf-8")
    assert table.count(r"\\" + "\n") == 17
    assert r"\textbf{0.850}\textsuperscript{abceghijklmnop}" in table  # UPrrf93-wt-r5: .8496 by NIST's leaderboard
    assert "feedback beats likelihood by +0.0269 nDCG@10" in said
    forest = (tmp_path / "feedback.tex").read_text(encoding="utf-8")
    assert r"system & web2012: nDCG@10 & web2012: AP & cranfield: nDCG@10" in forest
    for name in ("covid_matrix", "covid_ranks", "feedback"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_without_the_collections_it_says_what_to_give(tmp_path):
    assert "give a folder with trec_covid_r5, web2012, cranfield, cisi" in run(tmp_path / "none", tmp_path)
