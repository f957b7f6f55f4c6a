"""In a real browser the page of queries runs nothing, text stays text, and two systems fit into any window."""

from __future__ import annotations

import gzip
from html import escape

import pytest
from report.test_queries_page import HOSTILE, collection

import rankeval as rk
from rankeval.report import report_for_queries

pytestmark = pytest.mark.browser

EVIL = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


def hostile_page() -> str:
    """Return a page whose names, ids, needs and texts are all hostile."""
    ids = [text for text in [EVIL, *HOSTILE] if text.strip() and "\ud800" not in text]
    truth = {f"{query} {place}": dict.fromkeys(ids, place % 2) for place, query in enumerate(ids)}
    runs = {
        EVIL: {query: {docid: float(at) for at, docid in enumerate(of)} for query, of in truth.items()},
        HOSTILE[1]: {query: {docid: -float(at) for at, docid in enumerate(of)} for query, of in truth.items()},
    }
    evaluations = {name: rk.evaluate(truth, run, measures="AP", name=name) for name, run in runs.items()}
    texts = {docid: f"{text} wing {text}" for docid, text in zip(ids, [EVIL, *HOSTILE], strict=False)}
    needs = {query: f"{query} wing" for query in truth}
    return report_for_queries(evaluations, runs, truth, texts=texts, needs=needs, queries=len(truth))


@pytest.mark.parametrize("width", [500, 1280])
def test_hostile_text_runs_nothing_and_widens_nothing(opened, width):
    """No script, image or handler comes of it, and only the attributes that the template has."""
    tab = opened(hostile_page(), width=width)
    tab.run("new Promise((done) => setTimeout(done, 100))")
    assert tab.run("document.title") == f"{HOSTILE[1]} against {EVIL}"
    assert tab.run("document.querySelectorAll('script, img, iframe, a, form, svg').length") == 0
    attributes = "[...document.body.querySelectorAll('*')].flatMap((each) => each.getAttributeNames())"
    assert set(tab.run(f"[...new Set({attributes})]")) == {"class", "dir", "for", "id", "type"}
    ids = tab.run("[...document.querySelectorAll('.id')].map((each) => each.textContent)")
    assert {EVIL, *HOSTILE[:4]} <= set(ids)
    marks = tab.run("[...new Set([...document.querySelectorAll('mark')].map((each) => each.textContent))]")
    assert "wing" in marks
    assert not any("<" in mark for mark in marks)
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")
    assert max(tab.run("[...document.querySelectorAll('.id')].map((each) => each.clientHeight)")) < 400
    assert tab.run("[...document.querySelectorAll('h2')].every((each) => each.scrollHeight <= each.clientHeight + 1)")


def test_two_systems_stand_side_by_side_or_below_each_other(opened):
    """As the window allows; each within it."""
    truth, run = collection(6)
    evaluation = rk.evaluate(truth, run, measures="AP")
    page = report_for_queries(dict.fromkeys("ab", evaluation), dict.fromkeys("ab", run), truth)
    places = (
        "[...document.querySelectorAll('.card:first-of-type .side')]"
        ".map((each) => { const { left, right, top } = each.getBoundingClientRect(); return [left, right, top]; })"
    )
    one, other = opened(page, width=1280).run(places)
    assert one[1] < other[0]
    assert one[2] == other[2]
    one, other = opened(page, width=500).run(places)
    assert one[0] == other[0]
    assert one[2] < other[2]
    assert max(one[1], other[1]) <= 500


@pytest.mark.parametrize("width", [500, 1280])
def test_a_query_of_the_overview_leads_to_its_card(opened, width):
    """By a click, and by the key that goes from query to query."""
    truth, run = collection(12)
    tab = opened(report_for_queries(rk.evaluate(truth, run, measures="AP"), run, truth), width=width)
    top = "document.querySelectorAll('.card')[{}].getBoundingClientRect().top"
    assert tab.run(top.format(6)) > 900
    tab.click(".contents label[for='query-7']")
    assert -1 <= tab.run(top.format(6)) < 450
    tab.press("Tab")
    assert -1 <= tab.run(top.format(7)) < 450


def test_a_query_of_the_overview_leads_to_its_card_in_a_closed_frame(opened):
    """MLflow shows artifacts in a sandbox of an origin of its own, where no link within a page is followed."""
    truth, run = collection(12)
    page = report_for_queries(rk.evaluate(truth, run, measures="AP"), run, truth)
    tab = opened(f'<iframe sandbox="allow-scripts" width="900" height="700" srcdoc="{escape(page)}"></iframe>')
    frame = tab.call("Page.getFrameTree")["frameTree"]["childFrames"][0]["frame"]["id"]
    world = tab.call("Page.createIsolatedWorld", frameId=frame)["executionContextId"]
    found = tab.call(
        "Runtime.evaluate",
        contextId=world,
        returnByValue=True,
        expression="document.querySelector(\"[for='query-7']\").click(), [origin, scrollY, "
        "document.querySelectorAll('.card')[6].getBoundingClientRect().top]",
    )
    origin, scrolled, top = found["result"]["value"]
    assert origin == "null"
    assert scrolled > 700
    assert -1 <= top < 350


@pytest.mark.shared
def test_ten_queries_of_cranfield_fit_into_any_window(opened, shared):
    """All two hundred ranked documents have a text, and the page is no wider than the window."""
    runs = {name: shared / f"cranfield/runs/{name}.run.gz" for name in ("bm25_k12_b75", "lsa120")}
    qrels = shared / "cranfield/qrels.graded.txt.gz"
    evaluations = {name: rk.evaluate(qrels, run, measures="AP") for name, run in runs.items()}
    with gzip.open(shared / "cranfield/queries.tsv.gz", "rt") as lines:
        needs = {line.split("\t")[0]: line.split("\t")[2] for line in lines}
    texts = rk.text.read_texts(shared / "cranfield/cran.all.1400.gz")
    page = report_for_queries(evaluations, runs, qrels, texts=texts, needs=needs)
    assert len(page) < 250_000
    for width in (500, 1280):
        tab = opened(page, width=width)
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")
        assert tab.run("document.querySelectorAll('.card').length") == 10
        assert tab.run("document.querySelectorAll('.side li').length") == 200
        texts_of = tab.run("[...document.querySelectorAll('.text')].map((each) => each.textContent.length)")
        assert 20 < min(texts_of) < max(texts_of) < 1_000
        assert tab.run("document.querySelectorAll('.text mark').length") > 200


def test_a_text_of_the_other_direction_turns_nothing_around_it(opened):
    """The id is at the left of its score, and a need in Hebrew begins at the right of its own line alone."""
    truth = {"\u05d0\u05d1 1": {"\u05d0\u05d1\u05d2 (5": 1}}
    run = {"\u05d0\u05d1 1": ["\u05d0\u05d1\u05d2 (5"]}
    evaluation = rk.evaluate(truth, run, measures="AP")
    tab = opened(report_for_queries(evaluation, run, truth, needs={"\u05d0\u05d1 1": "\u05d0\u05d1\u05d2 wing"}))
    assert tab.run("getComputedStyle(document.querySelector('.card h2')).direction") == "rtl"
    assert tab.run("getComputedStyle(document.querySelector('.id')).unicodeBidi") == "isolate"
    lefts = tab.run("['.rank', '.tag', '.id', '.score'].map((each) => "
        "document.querySelector(each).getBoundingClientRect().left)")  # fmt: skip
    assert lefts == sorted(lefts)
