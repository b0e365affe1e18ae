"""A Spark session for the tests of this folder, on the kind of Spark that LANCELET_TEST_SPARK names.

Without it Spark runs on two local cores. ``connect`` speaks to a Connect server on this machine; anything else is a
master: ``local-cluster[2,1,1024]``, ``spark://…``. Then only tests that use the session are run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.cloudpickle import register_pickle_by_value
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from lancelet.spark.java import use_java
from lancelet.spark.python import use_python
from lancelet.testing.spark_kinds import stopped

KIND = os.environ.get("LANCELET_TEST_SPARK", "")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a kind that is named, only what depends on it."""
    if KIND:
        chosen = [item for item in items if "spark" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
        for module in {item.module for item in chosen if isinstance(item, pytest.Function)}:
            # Executors have no tests to import functions from.
            register_pickle_by_value(module)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    use_java()
    use_python()
    scratch: Path = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.appName("lancelet tests")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }.items():
        builder = builder.config(name, value)
    if KIND == "connect":
        # Each server takes a port that is free, so that several may run beside each other.
        os.environ["SPARK_TESTING"] = "1"
        session = builder.remote("local[2]").getOrCreate()
        yield session
        session.stop()
        return
    session = builder.master(KIND or "local[2]").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    stopped(session)


@pytest.fixture(scope="session")
def finish() -> Callable[[Callable[[], StreamingQuery]], StreamingQuery]:
    """Starts a query that ends by itself, and waits for it.

    Spark gives the process that plans a stream ten seconds to come up, which a loaded machine may not keep; then the
    query is started again, as anybody would.
    """

    def run(start: Callable[[], StreamingQuery], attempts: int = 4) -> StreamingQuery:
        query = start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if attempts == 1 or "Python worker failed to connect back" not in str(error):
                raise
            return run(start, attempts - 1)
        return query

    return run
