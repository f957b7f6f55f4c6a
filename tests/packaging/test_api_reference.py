"""The documentation is built from the guides and the docstrings, and no link in it is broken."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest
import typer

import rankeval
import rankeval_mlflow
import rankeval_spark
from rankeval import cli

pytestmark = [pytest.mark.docs, pytest.mark.needs("sphinx", "myst_parser", "numpydoc", "furo", "sphinx_copybutton")]

ROOT = Path(__file__).resolve().parents[2]


BUILD = """
import socket, sys
from sphinx.cmd.build import main
socket.socket.connect = None  # the build needs no network
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the documentation once, and return its folder."""
    target = tmp_path_factory.mktemp("documentation")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, "-W", "-n", "-q", "-b", "html", ROOT / "examples" / "guides", target],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, str]:
    """Return the HTML of each page by its path."""
    return {str(path.relative_to(site)): path.read_text(encoding="utf-8") for path in site.rglob("*.html")}


def test_every_public_name_has_a_page(pages):
    """It is listed in the reference, and its page has its signature."""
    names = [f"rankeval.{name}" for name in rankeval.__all__ if not isinstance(getattr(rankeval, name), ModuleType)]
    names += [f"rankeval_mlflow.{name}" for name in rankeval_mlflow.__all__]
    names += ["rankeval.analysis.curves.roc", "rankeval.datasets.load_letor", "rankeval.errors.GuardRefusal"]
    names += ["rankeval.analysis.anova", "rankeval.io.Limits", "rankeval.model_selection.LearningCurve"]
    names += ["rankeval.testing.assert_not_worse", "rankeval.text.Profile"]
    for name in names:
        assert f'href="reference/{name}.html' in pages["reference.html"]
        assert f'id="{name}"' in pages[f"reference/{name}.html"]


def test_the_reference_opens_with_what_is_inside(pages):
    """A table of what one has, calls and gets; then the tables of names."""
    text = pages["reference.html"]
    assert text.index("labels, scores, query ids") < text.index('href="reference/rankeval.evaluate.html')


def test_every_name_that_the_table_says_to_call_exists():
    """In the packages, among the methods of the guard, or among the commands."""
    text = (ROOT / "examples" / "guides" / "reference.md").read_text("utf-8")
    calls = [row.split(" | ")[1] for row in re.findall(r"^\| (?!you have)(?!---).*", text, re.MULTILINE)]
    homes = {"rk": rankeval, "rkm": rankeval_mlflow, "guard": rankeval.Guard, "rankeval_spark": rankeval_spark}
    found = [re.findall(r"\b(rk|rkm|guard|rankeval_spark)((?:\.\w+)+)|\brankeval ([a-z-]+)", one) for one in calls]
    assert all(found)
    shell = typer.main.get_command(cli.app)
    commands = shell.list_commands(typer.Context(shell))
    for home, names, of_shell in (name for of_row in found for name in of_row):
        assert of_shell in commands if of_shell else attrgetter(names[1:])(homes[home])


def test_docstrings_are_read_as_numpydoc(pages):
    """The parameters of a function are a list, and its example is one."""
    text = pages["reference/rankeval.topics_needed.html"]
    assert re.search(r"Parameters<span.*<strong>difference</strong>.*Raises<span", text, re.DOTALL)
    assert "Examples</p>" in text


def test_no_measure_is_taken_for_an_address_of_mail(pages):
    """In reStructuredText a bare nDCG@10 is a link to send mail, so that docstrings write it as a literal."""
    assert not [path for path, text in pages.items() if "mailto:" in text]


def test_the_readme_and_the_guides_are_pages(pages):
    """The README is the first page, and its menu has every other one."""
    guides = {path.stem for path in (ROOT / "examples" / "guides").glob("*.md")} - {"README"}
    for name in (*guides, "reference", "contributing", "security", "changelog"):
        assert f'href="{name}.html"' in pages["index.html"]
    assert "rankeval run configs/quickstart.yaml" in re.sub("<.*?>", "", pages["index.html"])


def test_the_menu_has_four_captions_and_a_page_for_each_group(pages):
    """They are the headings of the list of guides."""
    text = (ROOT / "examples" / "guides" / "README.md").read_text(encoding="utf-8")
    menu = pages["guides.html"].partition('class="sidebar-tree"')[2].partition('class="article-container"')[0]
    captions = re.findall(r'class="caption-text">(.*?)<', menu)
    assert captions == re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Learn", "How-to", "Explain", "Look up"]
    groups = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert groups
    assert groups == re.findall(r'href="howto-[\w-]+\.html">(.*?)<', menu)


def test_no_page_loads_anything_from_elsewhere(pages):
    """No script, style, font or picture: the site works without a network, and tells nobody who reads it."""
    foreign = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:https?:)?//[^>]*>")
    assert {path: foreign.findall(text) for path, text in pages.items() if foreign.search(text)} == {}


def test_each_link_within_the_site_resolves(site, pages):
    """To a page and to a heading in it, from the menu, the text and the tables."""
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    broken = set()
    for path, text in pages.items():
        for link in re.findall(r'<a\b[^>]*\bhref="([^":]+)"', text):
            name, _, anchor = unquote(unescape(link)).partition("#")
            target = (site / path).parent / name if name else site / path
            page = os.path.relpath(target, site)
            if not target.exists() or (anchor and page in anchors and anchor not in anchors[page]):
                broken.add((path, link))
    assert broken == set()


def test_programs_have_a_button_to_copy_and_outputs_have_none(site, pages):
    """The script that adds the buttons takes programs, commands and examples of docstrings, and no prompt."""
    assert "copybutton.js" in pages["index.html"]
    script = (site / "_static" / "copybutton.js").read_text(encoding="utf-8")
    assert all(f"div.{name} pre" in script for name in ("highlight-python", "highlight-bash", "doctest"))
    assert "div.highlight-text" not in script
    assert ".linenos, .go" in script
    assert 'class="highlight-text' in pages["index.html"]


def test_nothing_is_written_beside_the_sources(pages):
    """Pages that are made from docstrings stay in the build folder."""
    assert pages
    found = {path.name for path in (ROOT / "examples" / "guides").iterdir()} - {"__pycache__"}
    pages_of_ours = [ROOT / "README.md", *(ROOT / "examples" / "guides").glob("*.md")]
    texts = "".join(path.read_text("utf-8") for path in pages_of_ours)
    linked = {name for name in found if f"]({name})" in texts or f"examples/guides/{name})" in texts}
    assert {name for name in found - linked if not name.endswith(".md")} == {"conf.py", "site.css"}
