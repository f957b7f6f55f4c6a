"""Links in the documentation lead to files and headings that exist, in the checkout that somebody has."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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
    if re.match(r"[a-z]+:", target):
        return True
    name, _, anchor = target.partition("#")
    found = (ROOT / name[1:] if name.startswith("/") else page.parent / name) if name else page
    return found.exists() and (not anchor or anchor in anchors(found))


def test_each_link_into_the_checkout_exists():
    found = [(page, one) for page in PAGES for pair in links(page.read_text(encoding="utf-8")) for one in pair if one]
    assert [f"{page.name}: {target}" for page, target in found if not leads_somewhere(page, target)] == []


def test_the_readme_links_to_files_beside_it():
    """No address is ours, so its links are relative."""
    for inline, defined in links((ROOT / "README.md").read_text(encoding="utf-8")):
        assert not re.match(r"[a-z]+:|/|\.\.", inline or defined)
