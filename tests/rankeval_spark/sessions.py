"""Sessions of Spark on loopback that leave no process behind, for tests and benchmarks."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def running(master: str, folder: Path, settings: dict[str, str] | None = None) -> Iterator[Any]:
    """Yield a session on loopback; end it, its executors and its JVM."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    fixed = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master(master)
    for name, value in (fixed | (settings or {})).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    gateway = SparkContext._gateway
    try:
        yield session
    finally:
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends with it
        gateway.proc.wait(60)
        SparkContext._gateway = SparkContext._jvm = None
