"""The examples of the guide to streams, run one after another as a reader would."""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

GUIDE = Path(__file__).parents[2] / "docs" / "spark-streaming.md"


def test_the_examples_of_the_guide_do_what_they_say(spark: SparkSession, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    for attempt in range(3):
        names: dict[str, object] = {"spark": spark, "place": tmp_path / str(attempt)}
        try:
            for block in blocks:
                exec(compile(block, str(GUIDE), "exec"), names)
        except StreamingQueryException as error:
            # Spark waits ten seconds for a process of its own, which a loaded machine may not keep.
            if attempt == 2 or "Python worker failed to connect back" not in str(error):
                raise
            continue
        return
