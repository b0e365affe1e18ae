"""``python -m bench [NAME] [--quick] [--fresh] [--pages huge|small]``: measures all families or those of that name."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from bench import fresh, report
from bench.harness import Case, measure


def families() -> Iterator[tuple[str, list[Case[object]]]]:
    """The modules of this package that offer cases."""
    for found in iter_modules([str(Path(__file__).parent)]):
        if found.name != "__main__":
            cases = getattr(import_module(f"bench.{found.name}"), "cases", None)
            if cases is not None:
                yield found.name, list(cases())


def main() -> None:
    """Measure, print, save and draw."""
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("only", nargs="?", default="", help="part of the name of a family, or of FAMILY/CASE")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each case")
    parser.add_argument("--fresh", action="store_true", help="each run in a process of its own")
    parser.add_argument("--pages", choices=sorted(fresh.PAGES), default="default", help="memory pages, with --fresh")
    parser.add_argument(
        "--child", nargs=4, metavar=("FAMILY", "CASE", "CONTENDER", "REPETITION"), help=argparse.SUPPRESS
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, for development")
    parser.add_argument("--publish", action="store_true", help="draw the chart that the README shows, too")
    options = parser.parse_args()
    if options.quick:
        os.environ["BENCH_SCALE"] = "0.1"
    if options.child:
        family, name, contender, repetition = options.child
        case = next(case for case in import_module(f"bench.{family}").cases() if case.name == name)
        fresh.child(case, contender, int(repetition))
        return
    for family, cases in families():
        results = []
        for case in cases:
            if options.only in f"{family}/{case.name}":
                if options.fresh:
                    results.append(fresh.measure_fresh(family, case, pages=options.pages))
                else:
                    results.append(measure(family, case, seconds=options.seconds))
                print(report.table(results[-1]), end="\n\n", flush=True)
        if results:
            name = f"{family}-fresh-{options.pages}" if options.fresh else family
            print(f"saved {report.save(name, results)} and {report.chart(name, results)}\n")
            if options.publish:
                print(f"drew {report.chart(name, results, path=report.IMAGES / f'{name}.png')}\n")


if __name__ == "__main__":
    main()
