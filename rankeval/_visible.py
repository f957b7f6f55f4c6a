"""Text that steers nothing: control characters as escapes.

Names of systems, ids, paths, answers of servers and damaged bytes come from strangers. A terminal obeys an escape
sequence in them, and a mark of the writing direction makes one name look like another. So each edge at which text
leaves for people passes it through `visible`: messages of errors and warnings, reprs, sentences, tables and pages. Data
stays as it is: ids in frames, JSON and CSV, and the fields of an error.
"""

from __future__ import annotations

import re

# C0 and C1 controls (an escape sequence begins with one), separators of lines and paragraphs, marks of the writing
# direction, marks and tags that no screen shows, and halves of characters, which no encoding can print.
_STEERING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str, *, keep: str = "") -> str:
    r"""Return a text with its control characters as Python escapes.

    Parameters
    ----------
    text : str
        Any text, with names and ids from files.
    keep : str
        Characters to keep, such as our own line ends.

    Examples
    --------
    >>> print(visible("a\x1b]0;b"))
    a\x1b]0;b
    """
    return _STEERING.sub(lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], text)
