"""Links in the documentation lead to files and headings that exist, also from the page of a package index."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = "https://github.com/rankeval-mlflow/rankeval-mlflow/"
PAGES = sorted(
    path
    for folder, pattern in ((ROOT, "*.md"), (ROOT / ".github", "*.md"), (ROOT / "examples" / "guides", "*.md"))
    for path in folder.glob(pattern)
)


def links(text: str) -> list[str]:
    """Return the targets of inline links and of link definitions, outside of code."""
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"(?<!\\)\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", prose, re.MULTILINE)


def anchors(path: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(page: Path, target: str) -> bool:
    """Return whether a link of a page leads out of the checkout, or to a file and a heading in it."""
    if re.match(rf"{HOME}(blob|raw|tree)/main/", target):
        target = "/" + re.sub(r"^(blob|raw|tree)/main/", "", target.removeprefix(HOME))
    elif re.match(r"[a-z]+:", target):
        return True
    name, _, anchor = target.partition("#")
    found = (ROOT / name[1:] if name.startswith("/") else page.parent / name) if name else page
    return found.exists() and (not anchor or anchor in anchors(found))


def test_each_link_into_the_checkout_exists():
    found = [(page, one) for page in PAGES for pair in links(page.read_text(encoding="utf-8")) for one in pair if one]
    assert [f"{page.name}: {target}" for page, target in found if not leads_somewhere(page, target)] == []


def test_the_readme_has_absolute_links_only():
    """It is the page of a package index, where relative links lead nowhere."""
    for inline, defined in links((ROOT / "README.md").read_text(encoding="utf-8")):
        assert re.match(r"https://", inline or defined)
