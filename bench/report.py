"""What measurements are shown as: a table on the terminal, JSON to keep, a chart of ratios."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from contextlib import suppress
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.harness import Measured, Times
from lancelet import kernels

__all__ = ["IMAGES", "RESULTS", "chart", "save", "table"]

# Of lancelet, and of what stands beside it.
COLOURS = ("#3b6ea5", "#b9c4cf", "#8a9a5b")
RESULTS = Path(__file__).parent / "results"
IMAGES = Path(__file__).parent.parent / "docs" / "images"
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


def save(name: str, results: Sequence[Measured]) -> Path:
    """Write figures to ``bench/results/NAME.json``, with the machine and the versions that they were measured with."""
    RESULTS.mkdir(exist_ok=True)
    cases = [
        {
            "case": measured.case,
            "baseline": measured.baseline,
            "bytes": measured.size,
            "goal": measured.goal,
            "ratios": {other: [measured.ratio(other), measured.cpu_ratio(other)] for other in measured.times},
            "times": {
                other: {"wall": times.wall, "cpu": times.cpu, "peak": times.peak, "weight": times.weight}
                for other, times in measured.times.items()
            },
        }
        for measured in results
    ]
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps({**_circumstances(), "cases": cases}, indent=1))
    return path


def _circumstances() -> dict[str, object]:
    versions = {}
    for package in ("lancelet", "pylance", "pyarrow", "numpy"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return {
        "date": date.today().isoformat(),
        "machine": _machine(),
        "load": os.getloadavg(),
        "kernels": kernels.active,
        "python": platform.python_version(),
        "versions": versions,
    }


def _machine() -> str:
    """The processor by its name, where the system tells it, and how many there are."""
    name = platform.processor() or platform.machine()
    told = Path("/proc/cpuinfo")
    if told.exists():
        models = [
            line.split(":", 1)[1].strip() for line in told.read_text().splitlines() if line.startswith("model name")
        ]
        name = models[0] if models else name
    return f"{os.cpu_count()} x {name}"


def chart(name: str, results: Sequence[Measured], *, path: Path | None = None) -> Path:
    """Draw how many times as fast as the baseline the others are, to ``bench/results/NAME.png`` or another place.

    On a machine that others keep busy, wall time tells how busy: then the ratios are those of CPU time, and say so.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    others = list(
        dict.fromkeys(
            other
            for measured in results
            for other in measured.times
            if other != measured.baseline and other not in measured.limits
        )
    )
    busy = os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1)
    height = 0.8 / max(len(others), 1)
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + (0.16 * len(others) + 0.1) * len(results)))
    for number, other in enumerate(others):
        drawn = [
            (at, measured.cpu_ratio(other) if busy else measured.ratio(other))
            for at, measured in enumerate(results)
            if other in measured.times
        ]
        places = [at + height * (number - (len(others) - 1) / 2) for at, _ in drawn]
        colour = COLOURS[number % len(COLOURS)]
        bars = axes.barh(places, [ratio for _, ratio in drawn], height, color=colour, label=other)
        axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=7)
    for at, measured in enumerate(results):
        if measured.goal:
            axes.plot([measured.goal] * 2, [at - 0.4, at + 0.4], color="#c0392b", linewidth=1)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(results)), [measured.case for measured in results], fontsize=8)
    axes.invert_yaxis()
    axes.margins(y=0.01)
    axes.legend(fontsize=8)
    baselines = ", ".join(sorted({measured.baseline for measured in results}))
    axes.set_xlabel(
        f"times as fast as {baselines} (least {'CPU' if busy else 'wall'} time, log scale; red: aim)", fontsize=8
    )
    axes.set_title(f"{name}: {date.today().isoformat()}, {_machine()}, load {os.getloadavg()[0]:.0f}", fontsize=9)
    path = path or RESULTS / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, bbox_inches="tight")
    pyplot.close(figure)
    return path
