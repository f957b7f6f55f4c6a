"""Judging: which documents are judged, how far judges agree, and what their disagreement does to systems.

::

    runs -> pool -> write_sheets ... read_sheets -> Qrels with judges -> agreement, consensus -> Qrels
                                                          |
                                   disagreement, reusability (the order of systems), calibrate (a machine judge)

A label by a judge is a row of `rankeval.Qrels` with the judge as its aspect.
"""

from __future__ import annotations

from rankeval.judging.agreeing import Agreement, agreement
from rankeval.judging.labels import Consensus, consensus
from rankeval.judging.machine import Calibration, Plan, calibrate, draw, plan
from rankeval.judging.pools import Pool, pool, read_sheets, write_sheets
from rankeval.judging.systems import Disagreement, Reusability, disagreement, reusability

__all__ = [
    "Agreement", "Calibration", "Consensus", "Disagreement", "Plan", "Pool", "Reusability", "agreement", "calibrate",
    "consensus", "disagreement", "draw", "plan", "pool", "read_sheets", "reusability", "write_sheets",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
