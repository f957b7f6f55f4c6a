"""In a real browser a site sorts its tables, asks for nothing, and fits into any window."""

from __future__ import annotations

import pytest
from projects import evaluated, promotion, run_page, write

import rankeval as rk
from rankeval.site import write_site

pytestmark = pytest.mark.browser

EVIL = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
FIRST_CELLS = "[...document.querySelectorAll('table.sortable tbody tr')].map((row) => row.cells[0].textContent.trim())"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Write the site of a project with hostile names."""
    home, public = (tmp_path_factory.mktemp("site") / name for name in ("saved", "public"))
    for place, name in enumerate(("a", "b", "c", EVIL, "w" * 300)):
        rk.save(evaluated(name, 0.5 + place / 4), home / f"{place}", role="test", data=EVIL)
    write(home, "promotion", promotion(1, "b"))
    return write_site(home, public, queries=True).index


@pytest.fixture
def visited(tab, site):
    """Return a function that opens a page and checks, at the end, that nothing was requested or refused."""

    def visit(path=site, **settings):
        tab.said.clear()
        tab.open(path, **settings)
        return tab

    yield visit
    assert tab.run("performance.getEntriesByType('resource').length") == 0
    assert not tab.said


def test_a_click_on_a_header_sorts_the_table(visited):
    """The first click on a score puts the best first."""
    tab = visited()
    before = tab.run(FIRST_CELLS)[:5]
    assert before[0] == "a"
    tab.click("table.sortable th:nth-child(1) button")
    assert tab.run(FIRST_CELLS)[1:4] == ["a", "bchampion", "c"]
    tab.click("table.sortable th:nth-child(2) button")
    assert tab.run(FIRST_CELLS)[:5] == before
    assert tab.run("document.querySelector('th[aria-sort]').getAttribute('aria-sort')") == "descending"
    tab.click("table.sortable th:nth-child(2) button")
    assert tab.run(FIRST_CELLS)[:5] == before[::-1]
    tab.click("table.sortable th:nth-child(7) button")
    assert tab.run(FIRST_CELLS)[0] == before[0]


def test_a_row_without_a_value_is_last_in_both_directions(visited):
    tab = visited()
    for _ in range(2):
        tab.click("table.sortable th:nth-child(5) button")
        assert tab.run(FIRST_CELLS)[4] == "bchampion"


def test_the_answer_is_seen_first_on_a_phone(visited):
    """Mean and interval stand in the window without scrolling, and no cell scrolls by itself."""
    tab = visited(width=500)
    window = "document.querySelector('div.wide').getBoundingClientRect().right"
    right = (
        "document.querySelector('table.sortable tbody tr:nth-child(3) td:nth-child({})').getBoundingClientRect().right"
    )
    assert all(tab.run(right.format(place)) <= tab.run(window) + 1 for place in (2, 3))
    cells = "[...document.querySelectorAll('tbody th *')].filter((cell) => cell.scrollHeight > cell.clientHeight + 1"
    assert tab.run(f"{cells} && getComputedStyle(cell).overflowY !== 'visible').length") == 0


@pytest.mark.parametrize("width", [500, 1280])
def test_hostile_names_run_nothing_and_widen_nothing(visited, site, width):
    for path in (site, run_page(site.parent, "a"), run_page(site.parent, "w" * 300)):
        tab = visited(path, width=width)
        tab.run("new Promise((done) => setTimeout(done, 100))")
        assert "taken" not in tab.run("document.title") or EVIL in tab.run("document.title")
        assert tab.run("document.querySelectorAll('img, iframe, form').length") == 0
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")


def test_without_scripts_the_page_has_all_rows(visited):
    tab = visited(scripts=False)
    assert len(tab.run(FIRST_CELLS)) >= 5
    visited()


def test_a_link_leads_to_the_page_of_a_run_and_back(visited):
    tab = visited()
    tab.click("table.sortable tbody a")
    tab.wait("document.querySelector('h1')?.textContent === 'a'")
    tab.click("nav a")
    tab.wait("document.querySelector('table.sortable')")
