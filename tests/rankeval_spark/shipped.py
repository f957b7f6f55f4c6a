"""A program whose executor has the dependencies of this package but not the package, which comes as its wheel.

python shipped.py FOLDER
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pyarrow as pa
from sessions import running

import rankeval as rk
import rankeval_spark
from rankeval.evaluation import to_bytes


def bare_python(folder: Path) -> Path:
    """Return a Python that imports what this one does, but neither `rankeval` nor `rankeval_spark`."""
    links = folder / "dependencies"
    links.mkdir()
    for place in Path(np.__file__).parents[1].iterdir():
        if not place.name.startswith(("rankeval", "__editable__", "_editable")) and place.suffix != ".pth":
            (links / place.name).symlink_to(place)
    venv.create(folder / "bare", symlinks=True)
    site = next((folder / "bare" / "lib").glob("python*/site-packages"))
    (site / "dependencies.pth").write_text(f"{links}\n")
    return folder / "bare" / "bin" / "python"


def archive(folder: Path) -> Path:
    """Return the wheel of this project, under a name that Spark puts on the path."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder / "dist", root]
    subprocess.run(command, check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel.rename(folder / "rankeval_mlflow.zip")


def main(folder: Path) -> None:
    """Evaluate before and after the archive is sent, and print what came out."""
    rng = np.random.default_rng(5)
    table = pa.table({"q": np.repeat(np.arange(50), 20), "y": rng.integers(0, 3, 1000), "s": rng.normal(size=1000)})
    whole = rk.evaluate(table["y"], table["s"], qid=table["q"])
    os.environ.pop("PYTHONPATH", None)
    python = bare_python(folder)
    with running("local-cluster[1,1,1024]", folder, {"spark.executor.memory": "1g"}) as session:
        session.sparkContext.pythonExec = str(python)
        df, columns = session.createDataFrame(table), {"qid": "q", "relevance": "y", "score": "s"}
        try:
            rankeval_spark.evaluate(df, **columns)
            without = "worked"
        except Exception as error:  # noqa: BLE001 - the test reads it
            without = str(error)
        session.sparkContext.addPyFile(str(archive(folder)))
        with rankeval_spark.evaluate(df, **columns) as result:
            same = to_bytes(result.evaluation) == to_bytes(whole)
            scores = result.scores.count()
    print(json.dumps({"without": without, "same bytes": same, "n_scores": scores}))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main(Path(sys.argv[1]))
