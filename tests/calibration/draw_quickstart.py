"""Draw the picture of the README: the gain of each query, as the report of the quickstart has it.

python tests/calibration/draw_quickstart.py
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import rankeval as rk

ROOT = Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        done = rk.run_experiment(ROOT / "configs" / "quickstart.yaml")
        figure = done.comparison.plot(kind="queries", system="boosted-trees", baseline="ridge")
        figure.savefig(ROOT / "examples" / "guides" / "quickstart.png", dpi=80, bbox_inches="tight")
        os.chdir(ROOT)
