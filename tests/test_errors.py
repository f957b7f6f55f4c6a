"""Errors say of themselves how to catch them."""

from __future__ import annotations

from contextlib import suppress

import pytest

from rankeval.errors import ConflictingQueryIds, GuardRefusal, MissingQueryIds, Refusal


@pytest.mark.parametrize("refusal", [Refusal, GuardRefusal, MissingQueryIds, ConflictingQueryIds])
def test_a_refusal_is_no_exception_and_its_help_says_so(refusal):
    """Whoever reads ``help(rk.errors.GuardRefusal)`` learns why ``except Exception`` does not catch it."""
    assert not issubclass(refusal, Exception)
    assert "BaseException" in refusal.__doc__
    assert refusal is Refusal or "`Refusal`" in refusal.__doc__
    with pytest.raises(refusal, match="test content"), suppress(Exception):
        raise refusal("test content")
