"""Take the picture of the README: the first screen of the report of the quickstart, in Chromium.

python tests/calibration/draw_quickstart.py
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 1000, 840

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["rankeval", "run", ROOT / "configs" / "quickstart.yaml"], cwd=folder, check=True)
        report = next(Path(folder).rglob("report.html"))
        picture = Path(folder) / "report.png"
        subprocess.run(
            ["chromium", "--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}",
             f"--screenshot={picture}", report.as_uri()],
            check=True,
        )  # fmt: skip
        few_colours = Image.open(picture).convert("RGB").quantize(128)  # a third of the bytes
        few_colours.save(ROOT / "examples" / "guides" / "quickstart.png", optimize=True)
