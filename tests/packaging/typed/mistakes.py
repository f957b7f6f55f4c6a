"""Mistakes of a user, which type checkers must report: each line that ends in a comment `wrong`."""

from __future__ import annotations

import rankeval as rk
import rankeval_mlflow as rkm

rk.evaluate([1], [0.5], measurs=["AP"])  # wrong
number: int = rk.evaluate([1], [0.5])  # wrong
rk.evaluat([1], [0.5])  # wrong
rk.measure(10)  # wrong
rk.compare({}, baselin="a")  # wrong
rk.Guard()  # wrong
name: str = rk.cross_validate({}, [[0.0]], [1])  # wrong
rkm.log({}, "run", "dev")  # wrong
lost = rkm.log_evaluatoin  # wrong
