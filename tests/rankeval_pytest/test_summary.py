"""The Markdown of the summary: nothing in a name is markup, the failed checks come first, and a comment holds it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rankeval_pytest.summary import table_of, to_markdown

COLUMNS = ("test", "measure", "queries", "gain", "interval", "verdict", "failure")
HOSTILE = "a|b\n`c` <script>alert(1)</script> **d** [e](http://f) </pre></details> \\ # <!-- g -->"
TEXTS = st.text(
    st.sampled_from("a1|`<>*_[]()\\#!&\n\r\t\x1b\u2028-~ ") | st.characters(exclude_categories=["Cs"]), max_size=40
)


def row(test="test_a", verdict="no loss is shown", failure="", **others):
    return {**dict.fromkeys(COLUMNS, ""), "test": test, "verdict": verdict, "failure": failure, **others}


class Page(HTMLParser):
    """The elements of a page, the text of each cell and of each block that is preformatted."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.cells, self.blocks, self._into = [], [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._into = {"td": self.cells, "pre": self.blocks}.get(tag, self._into)
        if tag in ("td", "pre"):
            self._into.append("")

    def handle_endtag(self, tag):
        if tag in ("td", "pre"):
            self._into = None

    def handle_data(self, data):
        if self._into is not None:
            self._into[-1] += data


def page(text):
    return Page(MarkdownIt("commonmark").enable("table").render(text))


OURS = {
    *("h3", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"),
    *("details", "summary", "pre", "ul", "li"),
}


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_no_name_is_markup(test, measure, verdict, failure):
    """Rendered, the page has our elements alone, one cell a column, and in the block what was said."""
    rows = [row(test, verdict, f"x{failure}", measure=measure), row("test_b")]
    found = page(to_markdown(rows, [test], 1))
    assert set(found.tags) <= OURS
    assert len(found.cells) == 2 * 6
    assert found.cells[6:] == ["test_b", "", "", "", "", "no loss is shown"]
    assert len(found.blocks) == 1


def test_a_hostile_name_is_shown_as_it_is():
    found = page(to_markdown([row(HOSTILE, HOSTILE, HOSTILE)], [], 1))
    shown = HOSTILE.replace("\n", " ")
    assert (found.cells[0], found.cells[5]) == (shown, shown)
    assert found.blocks == [f"\n{HOSTILE}\n"]
    assert "script" not in found.tags


def test_failed_checks_come_first_and_what_does_not_fit_is_counted():
    """With thousands of rows, failures and notes, long ones too: a comment holds it, and the counts add up."""
    rows = [row(f"test_{k}", failure="" if k % 3 else f"by AP query {k} lost <most>" * 20) for k in range(3000)]
    text = to_markdown(rows, [f"note {k}" for k in range(4000)], 1000)
    assert len(text) < 65_000
    assert text.startswith("### rankeval\n\n**1,000 of 3,000 checks failed**; pytest: 1,000 tests failed.\n")
    found = re.findall(r"^([\d,]+) more (\w+?)s? left out$", text, re.MULTILINE)
    left = {what: int(n.replace(",", "")) for n, what in found}
    shown = {"row": text.count("\n| test"), "failure": text.count("<details>"), "note": text.count("\n* note")}
    shown["row"] -= 1  # the header
    assert {what: shown[what] + left[what] for what in left} == {"row": 3000, "failure": 1000, "note": 4000}
    assert min(shown.values()) > 10
    assert text.count("<details>") == text.count("</details>") == text.count("</pre>")
    tests = re.findall(r"^\| test\\_(\d+) ", text, re.MULTILINE)
    assert all(int(k) % 3 == 0 for k in tests)
    assert len(page(text).cells) == 6 * shown["row"]


def test_one_row_too_long_for_a_comment_is_counted():
    text = to_markdown([row("x" * 100_000, failure="y" * 100_000)], [], 1)
    assert len(text) < 1_000
    assert "1 more row left out" in text
    assert "1 more failure left out" in text


def test_the_terminal_has_the_verdict_without_marks():
    lines = table_of([row(verdict="a loss is shown", failure="AP: 3 of 4")]).to_text().splitlines()
    assert lines[0].split() == ["test", "measure", "queries", "gain", "interval", "verdict"]
    assert lines[-1].endswith("a loss is shown")
    assert "*" not in lines[-1]
