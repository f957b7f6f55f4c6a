"""One local session of Spark for all smoke tests of a process: its JVM takes seconds to start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def running(master: str, folder: Path, **settings: Any) -> Iterator[Any]:
    """Yield a session on loopback, and end it with its JVM."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master(master)
    fixed = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "OFF",
    }
    for name, value in (fixed | {name.replace("_", "."): value for name, value in settings.items()}).items():
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


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Return a session with two worker threads."""
    settings = {"spark.sql.shuffle.partitions": "6", "spark.driver.memory": "1g"}
    with running("local[2]", tmp_path_factory.mktemp("spark"), **settings) as session:
        yield session
