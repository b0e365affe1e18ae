"""The command line: what is asked, carried out by the facade, and what became of it as an exit status.

0  done          1  it could not be carried out          2  wrong usage, or a wrong declaration
3  not found     4  another writer stood in the way: the same may work when it is tried again
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from lancelet.errors import Conflict, InvalidInput, LanceletError, NotFound

__all__ = ["main"]

_DONE, _FAILED, _USAGE, _MISSING, _CONFLICT, _INTERRUPTED = 0, 1, 2, 3, 4, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command, and return its exit status.

    >>> main(["count", "memory://nowhere/there"])
    3
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        # Commands live beside this file, and are imported when they are called.
        place, name = given.command
        carry_out: Callable[[argparse.Namespace], int | None] = getattr(import_module(f"lancelet.cli.{place}"), name)
        status = carry_out(given) or _DONE
        sys.stdout.flush()
    except LanceletError as error:
        sys.stderr.write(f"lancelet: {error}\n")
        return _status(error)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read has enough; nothing is to be written at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _DONE
    return status


def _status(error: LanceletError) -> int:
    if isinstance(error, Conflict):
        return _CONFLICT
    if isinstance(error, NotFound):
        return _MISSING
    return _USAGE if isinstance(error, InvalidInput) else _FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lancelet", description="Lance tables: pipelines on Spark, and a look inside."
    )
    commands = parser.add_subparsers(metavar="command", required=True)
    _add_run(commands)
    for name, text, arguments in (
        ("versions", "the versions that there are, newest last", ()),
        ("schema", "the columns and their types", ()),
        ("files", "fragments, their files, rows and bytes", ()),
        ("pages", "the pages of a data file, or of a fragment's files", (_fragment,)),
        ("count", "how many rows there are, or meet a condition", (_filter,)),
        ("head", "the first rows, or the first that meet a condition", (_filter, _rows)),
        ("cleanup", "remove old versions and what only they need", (_age, _dry_run)),
        ("compact", "put small fragments together and drop deleted rows", (_compact,)),
    ):
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        command.set_defaults(command=("tables", name))
        command.add_argument("uri", help="where the table is: a path, s3://, gs://, az://")
        _add_version(command, changes=name in ("cleanup", "compact"))
        for add in arguments:
            add(command)
    doctor = commands.add_parser("doctor", help="what is installed, and what a table needs")
    doctor.add_argument("uri", nargs="?", help="a table to look at, too")
    _add_version(doctor, changes=True)
    doctor.set_defaults(command=("doctor", "doctor"))
    return parser


def _add_run(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = commands.add_parser("run", help="run a pipeline on Spark", description="Run a pipeline that YAML declares.")
    run.add_argument("pipeline", help="the file that declares the pipeline")
    where = run.add_mutually_exclusive_group()
    where.add_argument("--master", help="Spark's master (local[*])")
    where.add_argument("--remote", help="a Spark Connect server: sc://host:15002")
    run.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark; repeatable")
    run.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    run.add_argument("--quiet", action="store_true", help="tell nothing while it runs")
    run.set_defaults(command=("pipelines", "run"))


def _add_version(command: argparse.ArgumentParser, *, changes: bool) -> None:
    if not changes:
        command.add_argument("--version", help="a version's number, or a tag; the newest version otherwise")
    command.add_argument(
        "--storage-option", action="append", default=[], metavar="NAME=VALUE", help="an option of the store; repeatable"
    )


def _filter(command: argparse.ArgumentParser) -> None:
    command.add_argument("--filter", help="a condition in SQL")


def _rows(command: argparse.ArgumentParser) -> None:
    command.add_argument("-n", "--rows", type=int, default=10, help="how many (10)")
    command.add_argument("--columns", help="names between commas; all otherwise")


def _fragment(command: argparse.ArgumentParser) -> None:
    command.add_argument("--fragment", type=int, help="of which fragment; the first otherwise")


def _age(command: argparse.ArgumentParser) -> None:
    command.add_argument("--older-than-hours", type=float, help="two weeks unless something is said")
    command.add_argument("--retain-versions", type=int, help="keep the newest so many")
    command.add_argument("--delete-unverified", action="store_true", help="young unused files, too: if nobody writes")


def _dry_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")


def _compact(command: argparse.ArgumentParser) -> None:
    command.add_argument("--target-rows", type=int, help="rows to a fragment")
