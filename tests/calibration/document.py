"""Write the measured rates where people read them: into docstrings and the guide.

    python tests/calibration/document.py

The paragraph of a docstring that begins with `OPENING` is replaced; a new function needs these words alone. The
calibration run calls this at its end. `tests/significance/test_rates.py` fails where it was forgotten.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

from calibration.guide import significance_markdown

from rankeval.significance import CORRECTIONS, TESTS
from rankeval.significance import catalogue as rates
from rankeval.significance.declarations import all_tests

ROOT = Path(__file__).parents[2]
OPENING = "Measured false claims"
LEVEL = "where 5 % were asked"


def paragraphs():
    """Return the paragraph of each function that is measured."""
    written = {}
    for one in (*all_tests().values(), *CORRECTIONS.values()):
        measured = rates.rates_of(one.words)
        if len(measured):
            written[one.function] = (_of_pairs if one in TESTS.values() else _of_families)(measured)
    return written


def _of_pairs(measured):
    two, one = (rates.of_one_pair(measured, one_sided=one_sided) for one_sided in (False, True))
    return f"{OPENING} {LEVEL}, two-sided: {two}. One-sided, the worse side: {one}."


def _of_families(measured):
    two, one = (rates.of_families(measured, one_sided=one_sided) for one_sided in (False, True))
    sentence = f"{OPENING} {LEVEL}, one or more in a family, two-sided: {two}."
    return f"{sentence} One-sided, the worse side: {one}." if one else sentence


def main() -> None:
    for function, paragraph in paragraphs().items():
        source = Path(inspect.getsourcefile(function))
        text = source.read_text("utf-8")
        start = text.index(f"def {function.__name__}(")
        found = re.compile(rf"^    {OPENING}.*?(?=\n\n|\n    \"\"\"|\"\"\")", re.DOTALL | re.MULTILINE).search(
            text, start
        )
        if found is None or "\ndef " in text[start : found.start()]:
            raise SystemExit(f"{source}: the docstring of {function.__name__} has no paragraph that begins {OPENING!r}")
        source.write_text(text[: found.start()] + _wrapped(paragraph) + text[found.end() :], "utf-8")
    (ROOT / "examples" / "guides" / "significance.md").write_text(significance_markdown(), "utf-8")


def _wrapped(paragraph: str) -> str:
    """Break a paragraph into lines of a docstring, but never between a number and its sign."""
    glued = paragraph.replace(" %", "~%")
    wrapped = textwrap.fill(glued, 100, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    return wrapped.replace("~%", " %")


if __name__ == "__main__":
    main()
