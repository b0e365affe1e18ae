"""What measurements are shown as: a table on the terminal, JSON to keep, a chart of ratios."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

from bench.harness import Measured, Times
from lancelet import kernels

__all__ = ["RESULTS", "chart", "save", "table"]

RESULTS = Path(__file__).parent / "results"
COLUMNS = ("contender", "min ms", "median", "cpu", "GB/s", "peak MB", "file MB", "x baseline", "x cpu")


def table(measured: Measured) -> str:
    """One case as lines of text."""
    lines = [f"{measured.family}: {measured.case}", " " * 2 + "".join(f"{name:>12}" for name in COLUMNS)]
    lines[1] = f"  {COLUMNS[0]:<18}" + "".join(f"{name:>12}" for name in COLUMNS[1:])
    for name, times in measured.times.items():
        lines.append(f"  {name:<18}" + "".join(f"{cell:>12}" for cell in _cells(measured, name, times)))
    return "\n".join(lines)


def _cells(measured: Measured, name: str, times: Times) -> Sequence[str]:
    rate = f"{measured.size / times.least / 1e9:.2f}" if measured.size else ""
    peak = f"{max(times.peak) / 1e6:.0f}" if times.peak else ""
    weight = f"{times.weight / 1e6:.2f}" if times.weight else ""
    ratio = "(limit)" if name in measured.limits else f"{measured.ratio(name):.2f}"
    if name == "lancelet" and measured.goal:
        ratio += f" ({measured.goal:g})"
    by_cpu = "" if name in measured.limits else f"{measured.cpu_ratio(name):.2f}"
    figures = (f"{seconds * 1e3:.3f}" for seconds in (times.least, times.median, times.least_cpu))
    return *figures, rate, peak, weight, ratio, by_cpu


def save(family: str, results: Sequence[Measured]) -> Path:
    """Write a family's figures to ``bench/results/FAMILY.json``."""
    RESULTS.mkdir(exist_ok=True)
    machine = {
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
        "kernels": kernels.active,
    }
    cases = [
        {
            "case": measured.case,
            "baseline": measured.baseline,
            "bytes": measured.size,
            "times": {
                name: {"wall": times.wall, "cpu": times.cpu, "peak": times.peak}
                for name, times in measured.times.items()
            },
        }
        for measured in results
    ]
    path = RESULTS / f"{family}.json"
    path.write_text(json.dumps({"python": platform.python_version(), **machine, "cases": cases}, indent=1))
    return path


def chart(family: str, results: Sequence[Measured]) -> Path:
    """Draw how many times as fast as the baseline each contender is to ``bench/results/FAMILY.png``."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    bars = [
        (f"{measured.case}: {name}", measured.ratio(name), measured.baseline)
        for measured in results
        for name in measured.times
        if name != measured.baseline and name not in measured.limits
    ][::-1]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.3 * len(bars)))
    drawn = axes.barh([bar[0] for bar in bars], [bar[1] for bar in bars], color="#3b6ea5")
    axes.bar_label(drawn, fmt="%.1f", padding=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlabel(f"times as fast as {', '.join(sorted({bar[2] for bar in bars}))} (least wall time, log scale)")
    axes.set_title(family)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{family}.png"
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)
    return path
