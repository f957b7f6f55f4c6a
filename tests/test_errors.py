"""Errors say of themselves how to catch them."""

from __future__ import annotations

from contextlib import suppress

import pytest

from rankeval import errors
from rankeval.errors import ConflictingQueryIdsRefusal, GuardRefusal, MissingQueryIdsRefusal, Refusal


@pytest.mark.parametrize("refusal", [Refusal, GuardRefusal, MissingQueryIdsRefusal, ConflictingQueryIdsRefusal])
def test_a_refusal_is_no_exception_and_its_help_says_so(refusal):
    """Whoever reads ``help(rk.errors.GuardRefusal)`` learns why ``except Exception`` does not catch it."""
    assert not issubclass(refusal, Exception)
    assert "BaseException" in refusal.__doc__
    assert refusal is Refusal or "`Refusal`" in refusal.__doc__
    with pytest.raises(refusal, match="test content"), suppress(Exception):
        raise refusal("test content")


def test_the_tree_that_opens_the_module_is_that_of_its_classes():
    """Each class stands below its base of ours, and has beside it the built-in class that it derives from too."""
    lines = errors.__doc__.partition("::\n\n")[2].partition("\n\n")[0].splitlines()
    written, above = {}, {}
    for line in lines:
        (name, *beside), depth = line.split(), line.index(line.split()[0])
        above[depth] = name
        written[name] = [*([above[depth - 4]] if depth > 4 else []), *beside]
    classes = [getattr(errors, name) for name in dir(errors)]
    bases = {kind.__name__: [base.__name__ for base in kind.__bases__ if base.__name__[0] != "_"] for kind in classes}
    bases["Refusal"] = ["BaseException"]  # by the private base of all
    assert written == bases


def test_only_a_class_that_no_except_exception_catches_is_called_refusal():
    assert all(name.endswith("Refusal") != issubclass(getattr(errors, name), Exception) for name in dir(errors))
