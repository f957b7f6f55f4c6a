"""A tab of Chromium for the tests of a file, and a way to open a page that must have no fault."""

import pytest
from browser.chromium import browser


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def opened(tab, tmp_path):
    """Return a function that opens a page and checks, at the end, that the browser found no fault in it."""

    def open_page(page: str, **settings):
        path = tmp_path / "page.html"
        path.write_text(page, encoding="utf-8")
        tab.said.clear()
        tab.open(path, **settings)
        return tab

    yield open_page
    assert not tab.said
