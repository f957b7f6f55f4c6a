"""Click logs: a row per impression, and a row per shown item.

An *impression* is one list that was shown once. Items stand in order of impression and position, so that the items of
an impression are a slice of the columns. Ids are codes: a log has few queries and documents and many rows.

::

    impressions   qid  user  session  time  arm  count        items   impression  position  docid  clicked  propensity
    i1            q1   u7    s1       ...   A    1                    0           1         d4     False
    i2            q1   u8    s2       ...   B    1                    0           2         d9     True
                                                                      1           1         d9     False
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rankeval._checks import require

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClickLog:
    """What was shown to users, and what they clicked.

    Attributes
    ----------
    impressions : DataFrame
        A row per impression, with its id as the index ``impression``. Column ``qid`` always (categorical); ``user``,
        ``session``, ``time`` (in UTC), ``arm`` and ``count`` if the log has them. A row with ``count`` n stands for n
        impressions of the same list with the same clicks.
    items : DataFrame
        A row per shown item, in order of impression and position. Columns: impression, the row in ``impressions``;
        position, from 1; docid (categorical); clicked; and ``propensity`` if the log has it, the probability with which
        the policy that was logged showed this item here.
    complete : bool
        Whether each impression has all its positions, 1 to n. In the log of a policy that records one item at a time it
        has not: models that follow a user down the list refuse such a log.
    excluded : mapping of str to int
        What was left out in reading, and how often.
    """

    impressions: pd.DataFrame
    items: pd.DataFrame
    complete: bool = True
    excluded: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_frame(cls, frame: Any) -> ClickLog:
        """Return the log of a frame with a row per shown item: impression, qid, position, docid, clicked, and others.

        Parameters
        ----------
        frame : DataFrame
            Columns impression, position, docid and clicked; of the impression, as far as known, qid, user, session,
            time, arm and count; of the item, propensity.
        """
        needed = ["impression", "position", "docid", "clicked"]
        require(set(needed) <= {*frame}, "frame", [*frame], f"a frame with the columns {needed}")
        codes, ids = pd.factorize(frame["impression"])
        order = np.lexsort((frame["position"].to_numpy(), codes))
        frame, codes = frame.iloc[order].reset_index(drop=True), codes[order]
        firsts = frame.groupby(codes, sort=False).head(1).set_index(pd.Index(ids, name="impression"))
        beside = [name for name in ("qid", "user", "session", "time", "arm", "count") if name in frame]
        impressions = firsts[beside].assign(qid=firsts.get("qid", pd.Series("", firsts.index)).astype("category"))
        own = [name for name in ("position", "docid", "clicked", "propensity") if name in frame]
        items = frame[own].assign(impression=codes, docid=frame["docid"].astype("category"))
        items = items.astype({"position": np.int64, "clicked": bool})[["impression", *own]]
        place = np.arange(len(items)) - np.flatnonzero(np.diff(codes, prepend=-1))[codes] + 1
        return cls(impressions, items, bool((items["position"].to_numpy() == place).all()))

    @property
    def counts(self) -> Ints:
        """How many impressions each row stands for, of shape (n_impressions,): ones without a column ``count``."""
        if "count" in self.impressions:
            return self.impressions["count"].to_numpy(np.int64)
        return np.ones(len(self.impressions), dtype=np.int64)

    def __repr__(self) -> str:
        shown, clicks = len(self.items), int(self.items["clicked"].sum())
        return f"ClickLog({len(self.impressions):,} impressions, {shown:,} items, {clicks:,} clicks)"
