"""A case measured in fresh processes: caches of the libraries cold, memory untouched, huge pages as asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from bench.harness import Case, Measured, State, Times, check, forget_peak, once, peak_memory

__all__ = ["PAGES", "child", "measure_fresh"]

# NumPy asks for huge pages itself, the C library only when told to.
PAGES = {
    "default": {},
    "huge": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "NUMPY_MADVISE_HUGEPAGE": "1"},
    "small": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0", "NUMPY_MADVISE_HUGEPAGE": "0"},
}


def measure_fresh(family: str, case: Case[State], *, pages: str = "default", repetitions: int = 5) -> Measured:
    """Time each contender in processes of its own, the contenders in turn."""
    weights = check(case)
    runs: dict[str, list[tuple[float, float, int]]] = {name: [] for name in case.contenders}
    for repetition in range(1, repetitions + 1):
        for name, found in runs.items():
            command = [sys.executable, "-m", "bench", "--child", family, case.name, name, str(repetition)]
            done = subprocess.run(command, env=os.environ | PAGES[pages], capture_output=True, text=True, check=True)
            wall, cpu, peak = json.loads(done.stdout.splitlines()[-1])
            found.append((wall, cpu, peak))
    times = {}
    for name, found in runs.items():
        wall, cpu, peak = zip(*found, strict=True)
        times[name] = Times(wall, cpu, peak, weights.get(name, 0))
    return Measured(family, f"{case.name} [{pages} pages]", case.baseline, case.size, times, goal=case.goal)


def child(case: Case[State], contender: str, repetition: int) -> None:
    """What the fresh process does: one run, its figures as JSON on the last line."""
    case.prepare.get(contender, lambda: None)()
    case.fresh(repetition)
    forget_peak()
    before = peak_memory()
    wall, cpu, _ = once(case, contender, repetition)
    print(json.dumps([wall, cpu, peak_memory() - before]))
