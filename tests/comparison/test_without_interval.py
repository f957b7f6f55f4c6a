"""A difference that has no interval says why: nothing that people read has an interval from -∞ to ∞."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from tables import each_row

import rankeval as rk
from rankeval.comparison import compare
from rankeval.significance import TESTS

N = 20
BASE = pd.DataFrame({"nDCG@10": np.linspace(0.1, 0.8, N), "AP": np.linspace(0.2, 0.6, N)})
OTHERS = {
    "equal": BASE,
    "equal but for rounding": BASE * (1 + 1e-16) + 1e-18,
    "shifted": BASE + 0.125,
    "one differs": BASE.assign(**{"nDCG@10": BASE["nDCG@10"].where(BASE.index != 3, 0.9)}),
}
UNBOUNDED = re.compile(r"(-|\N{MINUS SIGN}|\$-\$\$)(∞|\\infty)|∞\]|to ∞")  # an effect size may be infinite
EQUAL = "No difference was shown: other and base are equal on every query."


def outputs(compared) -> dict[str, str]:
    """Return all that people read of a comparison."""
    return {
        "headline": compared.headline,
        "findings": " ".join(compared.findings),
        "text": str(compared),
        "markdown": compared.to_markdown(),
        "html": compared._repr_html_(),
        "latex": compared.to_latex(),
        "systems": compared.to_markdown(layout="systems"),
    }


@pytest.mark.further
@each_row("test", [name for name, one in TESTS.items() if not getattr(one, "needs", ())])
def test_no_output_has_an_interval_without_bounds(test):
    for name in OTHERS if test == "t" else ("equal", "one differs"):
        compared = compare({"base": BASE, "other": OTHERS[name]}, baseline="base", test=test, n_resamples=99)
        for kind, text in outputs(compared).items():
            assert not UNBOUNDED.search(text), (name, kind, text)


@each_row(
    ("other", "options", "headline"),
    [
        (BASE, {}, EQUAL),
        (BASE, {"test": "randomization"}, EQUAL),
        (BASE, {"claim": "better"}, EQUAL.replace("difference", "gain")),
        (BASE * 0, {}, "No difference was shown: other and base have nDCG@10 0 on every query, so nothing is compared"),
    ],
)
def test_equal_systems_are_called_equal_and_no_more(other, options, headline):
    base = other.copy()
    compared = compare({"base": base, "other": other}, baseline="base", measures="nDCG@10", **options)
    assert "∞" not in compared.headline
    assert "on every query" in compared.headline
    assert compared.headline.count("every query") == 1
    assert compared.headline.startswith(headline)
    assert "p = " not in compared.headline
    assert compared.table.filter(like="ci_").isna().all(axis=None), "no interval belongs to equal systems"
    assert rk.Comparison.from_json(compared.to_json()).headline == compared.headline


@each_row("claim", ["not_worse", "equivalent"])
def test_a_claim_of_no_harm_counts_one_query_that_lost_all(claim):
    """So equal systems have an interval there, which is told."""
    said = compare(
        {"base": BASE, "other": BASE.copy()}, baseline="base", measures="AP", claim=claim, margin=0.05
    ).headline
    assert "% interval -" in said
    assert "∞" not in said.replace(" to ∞]", "")


@each_row(
    ("n", "options", "reason"),
    [
        (3, {"test": "randomization"}, "no 95% interval with so few queries]"),
        (4, {"test": "randomization", "alpha": 0.01}, "no 99% interval with so few queries]"),
        (N, {"test": "randomization", "n_resamples": 9}, "no 95% interval with so few resamples (9)]"),
    ],
)
def test_a_difference_without_an_interval_says_why(n, options, reason):
    other = BASE + np.linspace(0.01, 0.1, N)[:, None]
    compared = compare({"base": BASE[:n], "other": other[:n]}, baseline="base", measures="nDCG@10", **options)
    assert reason in compared.headline


def test_queries_that_do_not_differ_leave_no_interval():
    """Most resamples of the studentised bootstrap draw no query that differs."""
    compared = compare({"base": BASE, "other": OTHERS["one differs"]}, baseline="base", measures="nDCG@10",
                       test="bootstrap")  # fmt: skip
    assert "[no 95% interval with so few queries that differ]" in compared.headline


def test_equal_slices_and_pairs_have_no_interval_either():
    groups = pd.Series(["a", "b"] * (N // 2), index=BASE.index)
    compared = compare({"base": BASE, "other": BASE.copy()}, baseline="base", by=groups)
    assert not any("∞" in text for text in outputs(compared).values())
    pairs = compare({"x": BASE, "y": BASE.copy(), "z": BASE.copy()})
    assert not any("∞" in text for text in outputs(pairs).values())
    assert " are equal on every query" in pairs.headline


def test_the_command_prints_no_infinity(rankeval, tmp_path):
    (tmp_path / "qrels").write_text("q1 0 a 1\nq2 0 a 1\nq2 0 b 0\n")
    run = "q1 Q0 a 1 9 x\nq2 Q0 b 1 9 x\nq2 Q0 a 2 8 x\n"
    (tmp_path / "one").write_text(run)
    (tmp_path / "two").write_text(run)
    code, out, err = rankeval("compare", "qrels", "one", "two", "-m", "RR")
    assert code == 0
    assert "two and one are equal on every query." in " ".join(out.split())
    assert "∞" not in out + err
    code, out, _ = rankeval("compare", "qrels", "one", "two", "-m", "RR", "--format", "json")
    assert (code, json.loads(out)["headline"].count("∞")) == (0, 0)


@pytest.mark.parametrize("drop", ["ci_low", None])
def test_a_figure_draws_no_line_for_what_has_no_interval(drop):
    compared = compare({"base": BASE, "other": BASE.copy()}, baseline="base")
    axes = compared.plot().axes[0]
    assert not [line for line in axes.lines if line.get_marker() in ("<", ">")], drop
