"""The whole text of a result: a session shows as much of it as a terminal has room for."""

from rankeval._display import view_of


def whole(result):
    """Return all sentences, rows and notes of a result, each on a line of its own."""
    return view_of(result).to_text(width=None, lines=None)
