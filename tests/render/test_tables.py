"""Tables: every value formatted once, everything escaped, emphasis where it belongs."""

from __future__ import annotations

import itertools
import math
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from circles import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from rankeval._visible import visible
from rankeval.render import tables
from rankeval.render.tables import rows_to_text

FRAME = pd.DataFrame({"system": ["bm25", "a_b & 5%"], "AP": [0.25, -0.125], "n": [3, 12]})


class Texts(HTMLParser):
    """Collects the text of each cell."""

    def __init__(self):
        super().__init__()
        self.cells, self.tags, self.inside = [], [], False

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag in ("td", "th", "caption", "li"):
            self.cells.append("")
            self.inside = True

    def handle_endtag(self, tag):
        if tag in ("td", "th", "caption", "li"):
            self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.cells[-1] += data


def test_text_lines_up():
    """Names to the left, numbers to the right, notes below."""
    lines = tables.Table(FRAME, caption="Two systems", notes=["read me"]).to_text().splitlines()
    assert lines[0] == "Two systems"
    assert lines[1].split() == ["system", "AP", "n"]
    assert lines[3].split() == ["bm25", "0.2500", "3"]
    assert lines[4].endswith("-0.1250   12")
    assert len(lines[3]) == len(lines[4])
    assert lines[5] == "* read me"


def test_markdown_is_a_table_with_escapes():
    assert tables.Table(FRAME).to_markdown().splitlines() == [
        "| system | AP | n |",
        "| --- | ---: | ---: |",
        "| bm25 | 0.2500 | 3 |",
        r"| a\_b & 5% | -0.1250 | 12 |",
    ]


def test_latex_is_booktabs_with_escapes():
    assert tables.Table(FRAME).to_latex().splitlines() == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"system & AP & n \\",
        r"\midrule",
        r"bm25 & 0.2500 & 3 \\",
        r"a\_b \& 5\% & $-$0.1250 & 12 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    floating = tables.Table(FRAME, caption="100 % of AP_50", notes=["seed 1"]).to_latex(label="tab:x")
    assert r"\caption{100 \% of AP\_50. Seed 1.}" in floating
    assert r"\label{tab:x}" in floating


@given(st.text(max_size=20))
def test_html_shows_any_text_as_text(text):
    """No name, header, caption or note can put a tag into the page."""
    plain = tables.Table(pd.DataFrame({"system": ["x"]}), caption="c", notes=["n"]).to_html()
    page = tables.Table(pd.DataFrame({text: [text]}), caption=f"c{text}", notes=[text]).to_html()
    parsed, expected = Texts(), Texts()
    parsed.feed(page)
    expected.feed(plain)
    assert parsed.tags == expected.tags
    shown = visible(text, keep="\n")
    if tables.with_minus(shown) == shown:  # else it looks like a negative number, whose hyphen is set as a minus
        assert parsed.cells[1:] == [shown, shown, shown]


@given(st.text(max_size=20))
def test_latex_leaves_no_active_character(text):
    """Outside our own commands no character has a meaning to TeX, and a row stays one line."""
    row = tables.Table(pd.DataFrame({"system": [text.replace("\n", " ")]})).to_latex().split("\\midrule\n")[1]
    body = row.split(" \\\\\n\\bottomrule")[0].removeprefix("{}")
    for command in (
        r"\textbackslash{}",
        r"\textasciitilde{}",
        r"\textasciicircum{}",
        r"\textless{}",
        r"\textgreater{}",
    ):
        body = body.replace(command, "")
    for command in (
        r"\textbar{}",
        r"$-$",
        r"$\pm$",
        r"$\infty$",
        r"$\dagger$",
        r"$\downarrow$",
        r"$\le$",
        r"\&",
        r"\%",
        r"\$",
        r"\#",
        r"\_",
        r"\{",
        r"\}",
    ):
        body = body.replace(command, "")
    assert not set(body) & set(r"\&%$#_{}~^")


def test_emphasis_marks_and_rests_in_every_markup():
    """Only the value is emphasised; marks are set high; the numbers of a column stay below each other."""
    frame = pd.DataFrame({"AP": [0.5, 0.7]})
    table = tables.Table(
        frame,
        emphasis=pd.DataFrame({"AP": ["second", "best"]}),
        marks=pd.DataFrame({"AP": ["", "**"]}),
        tails=pd.DataFrame({"AP": [" (-1.0 %)", " (+12.0 %)"]}),
    )
    latex = table.to_latex().splitlines()
    assert latex[4] == r"\underline{0.5000}\phantom{\textsuperscript{**}} ($-$1.0 \%)\phantom{0} \\"
    assert latex[5] == r"\textbf{0.7000}\textsuperscript{**} (+12.0 \%) \\"
    assert table.to_markdown().splitlines()[2:] == [
        "| <u>0.5000</u> (-1.0 %) |", r"| **0.7000**<sup>\*\*</sup> (+12.0 %) |",
    ]  # fmt: skip
    html = table.to_html()
    assert '<span class="best">0.7000</span><sup style="min-width:2ch">**</sup>' in html
    assert '<span class="tail" style="min-width:10ch"> (\u22121.0 %)</span></td>' in html
    first, second = table.to_text().splitlines()[2:]
    assert (first, second) == ("0.5000   (-1.0 %)", "0.7000** (+12.0 %)")


def test_columns_of_text_stand_at_the_right_if_they_are_numbers():
    frame = pd.DataFrame({"a": ["1.0", "10.0"], "b": ["x", "y"]})
    assert tables.Table(frame, numeric=["a"]).to_latex().startswith(r"\begin{tabular}{rl}")


@pytest.mark.parametrize(
    ("errors", "digits"),
    [
        ([0.041], 3), ([0.0996], 2), ([0.0042], 4), ([0.003, 0.041], 3), ([35.0], 0), ([1e-12], 6), ([0.0], 4),
        ([math.nan, 0.02], 3), ([math.inf], 4), ([], 4),
    ],
)  # fmt: skip
def test_decimals_follow_from_the_largest_standard_error(errors, digits):
    """It has two digits at most; without one there are four decimals."""
    assert tables.digits_for(errors) == digits
    known = [error for error in errors if 1e-5 < error < 10]
    for error in known:
        assert len(f"{error:.{digits}f}".lstrip("0.").rstrip()) <= 2


@pytest.mark.parametrize(
    ("value", "plain", "signed"),
    [
        (0.12345, "0.1235", "+0.1235"),
        (-0.5, "-0.5000", "-0.5000"),
        (-0.00001, "0.0000", "0.0000"),
        (0.0, "0.0000", "0.0000"),
        (math.nan, "–", "–"),  # noqa: RUF001
        (math.inf, "∞", "∞"),
        (-math.inf, "-∞", "-∞"),
    ],
)
def test_numbers(value, plain, signed):
    """Four decimals, no negative zero, no nan and no inf."""
    assert tables.number(value) == plain
    assert tables.signed(value) == signed


def test_p_values_are_never_shown_as_zero():
    assert [tables.p_value(p) for p in (1e-300, 0.00009, 0.0001, 0.05, 1.0)] == [
        "< 0.0001", "< 0.0001", "0.0001", "0.0500", "1.0000",
    ]  # fmt: skip
    assert tables.p_value(math.nan) == tables.DASH


def test_formats_by_column():
    """A specification or a function; a column without one is left as it is."""
    text = tables.Table(FRAME, formats={"AP": ".1%", "n": lambda n: f"{n} rows"}).to_markdown()
    assert "| bm25 | 25.0% | 3 rows |" in text


@pytest.mark.parametrize("name", ["[x]", "*x"])
def test_latex_does_not_take_a_name_for_an_argument_of_the_line_above(name):
    r"""LaTeX reads ``\\`` over a line end and ``[x]`` as a command with a length, and ``\\*`` likewise."""
    text = tables.Table(pd.DataFrame({name: [name, name]})).to_latex()
    assert [line.split(" \\")[0] for line in text.splitlines() if name in line] == [f"{{}}{name}"] * 3


HOW = ("to_text", "to_markdown", "to_html", "to_latex")
PLACES = ("cell", "column", "caption", "note", "formatted")


def test_control_characters_are_escaped():
    """An escape sequence would steer the terminal, and a mark of direction make one name look like another."""
    bad, failures = "\x1b[31mred\u202eevil", []
    for how, place in itertools.product(HOW, PLACES):
        frame = pd.DataFrame({bad if place == "column" else "system": [bad if place == "cell" else "bm25"]})
        table = tables.Table(
            frame,
            {"system": lambda value, place=place: bad if place == "formatted" else str(value)},
            caption=bad if place == "caption" else "Systems",
            notes=(bad if place == "note" else "all",),
        )
        written = getattr(table, how)()
        if "\x1b" in written or "\u202e" in written or "x1b" not in written or "u202e" not in written:
            failures.append((how, place))
    assert failures == []


NAMES = st.text(alphabet="ab 漢é\n[:", min_size=1, max_size=8).filter(str.strip)


@given(names=st.lists(NAMES, min_size=1, max_size=4), data=st.data())
def test_text_looks_as_rich_draws_it(names, data):
    """Numbers to the right, also below wide letters, and cells of several lines."""
    kinds = [data.draw(st.sampled_from([NAMES, st.integers()])) for _ in names]
    rows = data.draw(st.lists(st.tuples(*kinds), min_size=1, max_size=4))
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name, value in zip(names, rows[0], strict=True):
        grid.add_column(Text(name), justify="right" if isinstance(value, int) else "left", no_wrap=True)
    for row in rows:
        grid.add_row(*(Text(str(value)) for value in row))
    out = StringIO()
    Console(file=out, width=10_000, color_system=None).print(grid)
    expected = [line.rstrip() for line in out.getvalue().rstrip("\n").splitlines()]
    assert rows_to_text(names, rows).split("\n") == expected


@given(st.integers(12, 100), st.integers(1, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(25), deadline=None)
def test_a_number_is_never_broken_and_no_column_is_lost(width, n_columns, seed):
    """In a width all numbers stand whole, in blocks below each other if need be; without one, in one block."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        rng.normal(scale=1e3, size=(3, n_columns)), columns=[f"of a measure {n}" for n in range(n_columns)]
    )
    frame.insert(0, "system", ["a", "a system of many words", "x" * 60])
    words = tables.Table(frame).to_text(width=width).split()
    for value in frame.iloc[:, 1:].to_numpy().ravel():
        assert f"{value:.4f}" in words
