"""In a real browser the report is whole: no script, no error, no table that makes the page scroll sideways."""

from __future__ import annotations

import shutil
import subprocess

import pytest

import rankeval as rk
from rankeval.evaluation import evaluate
from rankeval.report import report_for_evaluation

pytestmark = pytest.mark.browser

SETTINGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=2000",
]
EVIL = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


def dumped(page: str, tmp_path, *, width: int = 1200) -> str:
    """Return the document as it stands after the browser has loaded it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    path = tmp_path / "page.html"
    path.write_text(page, encoding="utf-8")
    command = [chromium, *SETTINGS, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900"]
    done = subprocess.run(
        [*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def page() -> str:
    data = rk.datasets.make_ranking(30, 10)
    qid = [f"{EVIL}{query}" for query in data.qid]
    return report_for_evaluation(evaluate(data.y, data.X[:, 0], qid=qid, name=EVIL), role="dev")


def test_a_name_that_is_a_script_stays_text(page, tmp_path):
    document = dumped(page, tmp_path)
    assert "<title>taken</title>" not in document
    assert "<script" not in document
    assert "&lt;script&gt;document.title='taken'" in document


def test_the_browser_of_these_tests_would_have_run_it(tmp_path):
    """The counter-proof: the same name, not escaped, takes the page over."""
    assert "<title>taken</title>" in dumped(f"<title>calm</title><body>{EVIL}</body>", tmp_path)


@pytest.mark.parametrize("width", [500, 1200])
def test_wide_tables_scroll_within_themselves(page, tmp_path, width):
    """The page's own script policy is taken out here, so that the test can measure."""
    script = "document.title = document.documentElement.scrollWidth <= innerWidth ? 'fits' : 'overflows'"
    measured = page.replace('http-equiv="Content-Security-Policy"', 'name="policy"')
    measured = measured.replace("</body>", f"<script>{script}</script></body>")
    assert "<title>fits</title>" in dumped(measured, tmp_path, width=width)
