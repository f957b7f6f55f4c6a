"""In a real browser the report is whole: its one script runs, nothing else does, and no table widens the page."""

from __future__ import annotations

import re
from html import escape

import numpy as np
import pandas as pd
import pytest

import rankeval as rk
from rankeval.evaluation import evaluate
from rankeval.report import queries, report_for_evaluation, report_for_judging

pytestmark = pytest.mark.browser

EVIL = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
HOSTILE = [
    EVIL,
    "</script><script>document.title='taken'</script>",
    "<!--<script>",
    '"],["',
    "\\u003cb\\u003e",
    "a\u2028b\nc\x00d",
    "查询",
    "'; document.title='taken'; '",
    "{{ 7 * 7 }}",
    "__proto__",
]


def evaluation(names, **options):
    data = rk.datasets.make_ranking(len(names), 20, rng=0)
    qid = np.array(names, dtype=object)[np.unique(data.qid, return_inverse=True)[1]]
    return evaluate(data.y, data.X[:, 0].round(1), qid=qid, **{"measures": ["nDCG@10", "AP", "ARP"], **options})


def column(tab, at):
    """Return the text of a column of the table of queries, as a reader sees it."""
    return tab.run(f"[...document.querySelectorAll('#queries-table tbody tr')].map((row) => row.cells[{at}].innerText)")


def worst(ev, name="nDCG@10"):
    """Return the queries as the page orders them: by the four digits that it shows, equal ones by id."""
    frame = ev.per_query.map(lambda value: round(value, 4))
    return frame.sort_values(name, ascending=name != "ARP", kind="stable").index.tolist()


def numbers(tab, at):
    return [float(text.replace("\N{MINUS SIGN}", "-")) for text in column(tab, at)]


def sorted_by(tab):
    return tab.run(
        "[...document.querySelectorAll('th[aria-sort]')]"
        ".map((each) => [each.innerText, each.getAttribute('aria-sort')])"
    )


def status(tab):
    return tab.run("document.querySelector('[role=status]').innerText")


@pytest.fixture(scope="module")
def many():
    return evaluation([f"q{place}" for place in range(160)])


def test_a_name_that_is_a_script_stays_text(opened):
    """In the title, in the rows without script, in the data of the script, and after sorting and searching."""
    names = [*HOSTILE, *(f"{name} again" for name in HOSTILE)]
    ev = evaluation(names, name=EVIL)
    tab = opened(report_for_evaluation(ev, role=EVIL))
    assert tab.run("document.title") == EVIL
    assert tab.run("document.querySelectorAll('script').length") == 2
    assert tab.run("document.images.length") == 1
    tab.click("#queries-table th:first-child button")
    assert tab.run("[...document.querySelectorAll('#queries-table tbody th')].map((each) => each.textContent)") == [
        str(query) for query in ev.queries
    ]
    tab.click("#queries-search")
    tab.type("</SCRIPT><s")
    assert tab.run("document.querySelectorAll('#queries-table tbody tr').length") == 2
    assert tab.run("document.title") == EVIL


def test_the_policy_stops_every_other_script(tab, tmp_path):
    """The counter-proof: the same name, not escaped, takes a page over without the policy, and not with it."""
    page = report_for_evaluation(evaluation(["a", "b"], name="calm")).replace("<body>", f"<body>{EVIL}")
    for text, title in ((page, "calm"), (re.sub(r"<meta http-equiv.*?>", "", page), "taken")):
        (tmp_path / "page.html").write_text(text, encoding="utf-8")
        tab.open(tmp_path / "page.html")
        tab.run("new Promise((done) => setTimeout(done, 200))")
        assert tab.run("document.title") == title
        assert len(column(tab, 0)) == 2
    assert any("Content Security Policy" in said for said in tab.said)
    tab.said.clear()


def test_all_queries_are_there_the_worst_first(opened, many):
    tab = opened(report_for_evaluation(many))
    assert status(tab) == "25 of 160 queries shown."
    assert sorted_by(tab) == [["nDCG@10", "ascending"]]
    assert numbers(tab, 1) == pytest.approx(many.worst(25)["nDCG@10"].tolist(), abs=5.1e-5)
    assert column(tab, 0) == worst(many)[:25]
    tab.click("#queries-more")
    assert status(tab) == "125 of 160 queries shown."
    tab.click("#queries-more")
    assert column(tab, 0) == worst(many)
    assert not tab.run("document.querySelector('#queries-more').checkVisibility()")
    for at, name in enumerate(["nDCG@10", "AP", "ARP", *many.facts.query_counts], start=1):
        wanted = many.per_query.assign(**many.facts.query_counts).loc[column(tab, 0), name]
        assert numbers(tab, at) == pytest.approx(wanted.tolist(), abs=5.1e-5)


def test_the_script_writes_numbers_as_the_rows_without_it(opened, many):
    """The same rows, read without and with the script, have the same text."""
    page = report_for_evaluation(many)
    first = opened(page, scripts=False)
    plain = [column(first, at) for at in range(8)]
    assert len(plain[0]) == queries.N_FIRST
    assert "10 queries shown" in status(first)
    assert not first.run("document.querySelector('#queries-search').checkVisibility()")
    tab = opened(page)
    assert [column(tab, at)[:10] for at in range(8)] == plain


def test_a_click_on_a_header_sorts_and_another_turns_the_order(opened, many):
    """Numbers as numbers, ids in the order of the library; equal values stand by id."""
    tab = opened(report_for_evaluation(many))
    tab.click("#queries-more")
    tab.click("#queries-more")
    tab.click("#queries-table th:nth-child(4) button")
    assert sorted_by(tab) == [["ARP", "ascending"]]
    tab.click("#queries-table th:nth-child(4) button")
    assert sorted_by(tab) == [["ARP", "descending"]]
    tab.click("#queries-more")
    tab.click("#queries-more")
    assert column(tab, 0) == worst(many, "ARP")
    tab.click("#queries-table th:nth-child(5) button")
    tab.click("#queries-more")
    tab.click("#queries-more")
    relevant = numbers(tab, 4)
    assert relevant == sorted(relevant)
    assert max(relevant) >= 10 > min(relevant)
    tab.click("#queries-table th:first-child button")
    assert sorted_by(tab) == [["Query", "ascending"]]
    assert column(tab, 0) == many.queries[:25].tolist()
    tab.click("#queries-table th:first-child button")
    assert column(tab, 0) == many.queries[::-1][:25].tolist()


def test_ids_that_are_numbers_are_in_the_order_of_numbers(opened):
    tab = opened(report_for_evaluation(evaluation([9, 10, 100, 2])))
    tab.click("#queries-table th:first-child button")
    assert column(tab, 0) == ["2", "9", "10", "100"]


def test_a_search_finds_ids_by_a_part_in_any_case(opened, many):
    """What is found stays in the order chosen, is counted, and comes back when the field is emptied."""
    tab = opened(report_for_evaluation(many))
    tab.click("label[for=queries-search]")
    tab.type("Q15")
    found = [query for query in worst(many) if "q15" in query]
    assert column(tab, 0) == found
    assert status(tab) == "11 of 11 found among 160 queries shown."
    tab.type("x")
    assert column(tab, 0) == []
    assert status(tab) == "0 of 0 found among 160 queries shown."
    for _ in range(4):
        tab.press("Backspace")
    assert status(tab) == "25 of 160 queries shown."


def test_everything_can_be_done_with_the_keyboard(opened, many):
    """From the search field the next stops are the table, its headers and the button below it."""
    tab = opened(report_for_evaluation(many), width=480)
    tab.click("#queries-search")
    tab.press("Tab")
    assert tab.run("document.activeElement.getAttribute('aria-label')") == "Scores of the queries"
    for _ in range(3):
        tab.press("Tab")
    assert tab.run("document.activeElement.innerText") == "AP"
    tab.press("Enter")
    assert sorted_by(tab) == [["AP", "ascending"]]
    tab.press(" ")
    assert sorted_by(tab) == [["AP", "descending"]]
    assert tab.run("document.activeElement.innerText") == "AP"
    for _ in range(6):
        tab.press("Tab")
    assert tab.run("document.activeElement.innerText") == "Show more"
    tab.press("Enter")
    assert status(tab) == "125 of 160 queries shown."


def test_a_frame_of_a_tracking_server_runs_it(opened, many):
    """MLflow shows artifacts in a sandbox of an origin of its own, without storage."""
    page = report_for_evaluation(many)
    tab = opened(f'<iframe sandbox="allow-scripts" width="900" height="700" srcdoc="{escape(page)}"></iframe>')
    frame = tab.call("Page.getFrameTree")["frameTree"]["childFrames"][0]["frame"]["id"]
    world = tab.call("Page.createIsolatedWorld", frameId=frame)["executionContextId"]
    found = tab.call(
        "Runtime.evaluate",
        contextId=world,
        returnByValue=True,
        expression="[document.querySelector('[role=status]').innerText, origin]",
    )
    assert found["result"]["value"] == ["25 of 160 queries shown.", "null"]


@pytest.mark.parametrize("width", [480, 1280])
def test_wide_tables_scroll_within_themselves(opened, width):
    names = [*HOSTILE, "an-id-without-a-blank-" * 20]
    tab = opened(report_for_evaluation(evaluation(names, name=EVIL)), width=width)
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scripts", [False, True])
def test_one_id_of_ten_thousand_characters_leaves_the_others_in_sight(opened, scripts):
    """Its scores stand beside it within the window, and the next query below it."""
    long = "x" * 10_000
    tab = opened(report_for_evaluation(evaluation([long, "a", "b", "c"], name=long)), scripts=scripts)
    place = (
        "[...document.querySelectorAll('#queries-table tbody tr')]"
        ".map((row) => [row.cells[0].textContent.length, row.clientHeight, row.cells[1].getBoundingClientRect().right])"
    )
    rows = tab.run(place)
    assert max(length for length, _, _ in rows) == len(long)
    assert max(height for _, height, _ in rows) < 200
    assert max(right for _, _, right in rows) < 1200
    assert tab.run("document.querySelector('h1').clientHeight") < 300
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")


def test_ten_thousand_queries_open_at_once(opened):
    """Under 2 MB, and drawn well within a second."""
    page = report_for_evaluation(evaluation([f"query-number-{place:07}" for place in range(10_000)]))
    assert len(page.encode()) < 2e6
    tab = opened(page)
    assert status(tab) == "25 of 10,000 queries shown."
    took = tab.run(
        "(() => { const from = performance.now(); document.querySelector('#queries-table th button').click();"
        " document.body.offsetHeight; return performance.now() - from; })()"
    )
    assert took < 2000


def test_the_caption_of_a_wide_table_is_read_whole_on_a_narrow_screen(opened):
    """The table of an A/B test scrolls; its headline, the caption, wraps within the page."""
    users = pd.DataFrame({"user": range(60), "arm": ["A", "B"] * 30, "orders": np.arange(60) % 7})
    page = report_for_judging([rk.online.ab_test(users, metrics={"orders": "orders"})], title="June")
    tab = opened(page, width=500)
    right = "document.querySelector('{}').getBoundingClientRect().right"
    assert tab.run(right.format("table")) > 500
    assert tab.run(right.format("caption")) <= 500


@pytest.mark.parametrize("width", [1200, 500])
def test_the_contents_lead_to_their_parts_and_a_phone_gets_its_own_picture(opened, many, width):
    tab = opened(report_for_evaluation(many), width=width, height=700)
    picture = "document.querySelector('picture img')"
    assert tab.run(f"{picture}.currentSrc === {picture}.src") == (width > 640)
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")
    for place, title in enumerate(tab.run("[...document.querySelectorAll('nav label')].map((each) => each.innerText)")):
        tab.run("scrollTo(0, 0)")
        tab.click(f"nav label:nth-child({place + 1})")
        heading = f"document.querySelectorAll('section.part > h2')[{place}]"
        assert tab.run(f"{heading}.innerText") == title
        top = tab.run(f"{heading}.getBoundingClientRect().top")
        assert -5 < top < 700, title


def test_a_query_is_found_by_a_word_of_its_text(opened, many):
    needs = {query: f"a flow <b>about</b> wing {query}9" for query in many.queries}
    tab = opened(report_for_evaluation(many, needs=needs))
    assert tab.run("document.querySelector('#queries-table .need').textContent").startswith(
        "a flow <b>about</b> wing q"
    )
    tab.click("#queries-search")
    tab.type("WING Q1509")
    assert tab.run("document.querySelectorAll('#queries-table tbody tr').length") == 1
    assert tab.run("document.querySelector('#queries-table tbody th').innerText").split() == [
        "q150", *needs["q150"].split()
    ]  # fmt: skip
