"""One local session of Spark for all smoke tests of a process: its JVM takes seconds to start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from sessions import running


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a session with two worker threads, and see its JVM end."""
    settings = {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "1g"}
    # A short session gains nothing from the better compiler, nor from collectors in threads of their own.
    settings["spark.driver.extraJavaOptions"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    with running("local[2]", tmp_path_factory.mktemp("spark"), settings) as session:
        process = session.sparkContext._gateway.proc.pid
        yield session
    assert not os.path.exists(f"/proc/{process}")  # noqa: PTH110
