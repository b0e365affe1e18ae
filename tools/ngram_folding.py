"""Measure how NGRAM indexes of pylance fold characters, and write ``src/lancelet/index/scalar/ngram/folding.py``.

Every character is indexed between known letters; which trigrams come of it tells what it was made into. Takes about a
minute. ``--check`` says whether the file would change.
"""

from __future__ import annotations

import argparse
import string
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import lance
import pyarrow as pa
from pyroaring import BitMap64

from lancelet.file import LanceFileReader

TARGET = Path(__file__).resolve().parents[1] / "src/lancelet/index/scalar/ngram/folding.py"
LETTERS = string.digits + string.ascii_lowercase + string.ascii_uppercase
FRAMES = (("qq", ""), ("", "qq"), ("q", "q"))
LONGEST = 6

HEAD = '''"""What characters beyond ASCII are made into before text becomes trigrams, by ``tools/ngram_folding.py``.

A space stands for a character that is no letter or digit. Characters that are not listed are made into none.
"""

from __future__ import annotations

__all__ = ["FOLDED"]

#: Characters by what they are made into.
FOLDED: dict[str, str] = {
'''


def number(trigram: str) -> int:
    """The number that an index has for three letters or digits; that of capitals is what wraps around a byte."""
    found = 0
    for place, letter in enumerate(trigram):
        code = ord(letter)
        position = ((code - 48 if code <= 57 else ((code - 97) & 0xFF) + 10) + 1) & 0xFF
        found += position * 37 ** (2 - place)
    return found


def numbers(text: str) -> set[int]:
    """The numbers of all trigrams of letters and digits."""
    return {
        number(text[at : at + 3]) for at in range(len(text) - 2) if all(one in LETTERS for one in text[at : at + 3])
    }


def measure(characters: list[str], folder: Path) -> dict[str, list[set[int]]]:
    """The numbers that each character gives within each frame."""
    found: dict[str, list[set[int]]] = defaultdict(lambda: [set(), set(), set()])
    for place, (before, after) in enumerate(FRAMES):
        path = folder / str(place)
        texts = pa.table({"text": [before + one + after for one in characters]})
        dataset = lance.write_dataset(texts, path, max_rows_per_file=2**22)
        dataset.create_scalar_index("text", "NGRAM")
        (segment,) = dataset.describe_indices()[0].segments
        file = LanceFileReader(path / "_indices" / segment.uuid / "ngram_postings.lance")
        table = file.read_all().to_table()
        for token, rows in zip(table["tokens"].to_pylist(), table["posting_list"].to_pylist(), strict=True):
            for row in BitMap64.deserialize(rows):
                found[characters[row]][place].add(token)
    return found


def folded(seen: list[set[int]]) -> str:
    """The text that gives these numbers within the frames: the shortest there is."""
    waiting = [one for one in LETTERS if number("qq" + one) in seen[0]] + [" "]
    while waiting:
        text = waiting.pop(0)
        if [numbers(before + text + after) for before, after in FRAMES] == seen:
            return text
        if len(text) < LONGEST:
            for one in LETTERS + " ":
                end = ("qq" + text + one)[-3:]
                if (" " in end or number(end) in seen[0]) and (text + one).count(" ") < 3:
                    waiting.append(text + one)
    raise SystemExit("a character is made into what this tool cannot tell")


def generate() -> str:
    """The text of the module."""
    characters = [chr(code) for code in range(0x80, 0x110000) if not 0xD800 <= code < 0xE000]
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(characters, Path(folder))
    groups: dict[str, str] = defaultdict(str)
    for one in sorted(measured):
        groups[folded(measured[one])] += one
    lines = []
    for text, members in sorted(groups.items()):
        pieces = [members[at : at + 60] for at in range(0, len(members), 60)]
        if len(pieces) == 1:
            lines.append(f'    "{text}": "{pieces[0]}",\n')
        else:
            lines += [f'    "{text}": (\n', *(f'        "{piece}"\n' for piece in pieces), "    ),\n"]
    command = [Path(sys.executable).parent / "ruff", "format", "-", "--line-length", "120"]
    made = HEAD + "".join(lines) + "}\n"
    return subprocess.run(command, input=made, capture_output=True, text=True, check=True).stdout


def main() -> int:
    """Write the file, or with ``--check`` return 1 if it would change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the file would change")
    arguments = parser.parse_args()
    text = generate()
    same = TARGET.exists() and TARGET.read_text() == text
    if not arguments.check:
        TARGET.write_text(text)
    sys.stdout.write(f"{'same' if same else 'differs' if arguments.check else 'wrote'}: {TARGET.name}\n")
    return int(arguments.check and not same)


if __name__ == "__main__":
    sys.exit(main())
