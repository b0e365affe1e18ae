"""Which kernels are used, what is said about it, and that stub, twins and sources name the same modules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lancelet import kernels
from lancelet.errors import InvalidInput, Unsupported

ROOM = Path(kernels.__file__).parent
SHOW = """
from lancelet.events import subscribe
seen = []
with subscribe(seen.append):
    from lancelet import kernels
print(kernels.active, "|", kernels.why, "|", kernels.bitpack.__name__, "|", [(e.name, e.facts["why"]) for e in seen])
"""


def python(program, **environment):
    """Standard output and error of a fresh process."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)
    return done.stdout.strip(), done.stderr


def names_in(folder):
    return {path.stem for path in (ROOM / folder).glob("*.py")} - {"__init__"}


def test_the_best_variant_is_used_unasked():
    best = kernels.variants()[0]
    assert python(SHOW)[0].split(" | ")[0] == best


@pytest.mark.parametrize("variant", kernels.variants())
def test_the_environment_can_ask_for_a_variant(variant):
    active, why, module, events = python(SHOW, LANCELET_KERNELS=variant)[0].split(" | ")
    assert (active, why) == (variant, f"LANCELET_KERNELS={variant}")
    assert module == f"lancelet.kernels.{variant.replace('-', '_')}.bitpack"
    assert events == (f"[('kernels.reference', '{why}')]" if variant == "reference" else "[]")


def test_an_unknown_variant_in_the_environment_is_refused_with_the_choices():
    _, error = python(SHOW, LANCELET_KERNELS="fastest")
    assert f"InvalidInput: unknown kernels 'fastest', expected one of: {', '.join(kernels.variants())}" in error


def test_loading_what_is_unknown_or_not_here_is_refused():
    with pytest.raises(InvalidInput, match="unknown kernels 'x'"):
        kernels.load("x")
    missing = [variant for variant in ("x86-64", "x86-64-v3", "native") if variant not in kernels.variants()]
    for variant in missing:
        with pytest.raises(Unsupported, match=f"kernels '{variant}' are not available here, choose from: .*reference"):
            kernels.load(variant)


def test_every_variant_has_every_module_compiled():
    for variant in kernels.variants():
        package = f"lancelet.kernels.{variant.replace('-', '_')}"
        assert {module.__name__ for module in kernels.load(variant).values()} == {
            f"{package}.{name}" for name in names_in("reference")
        }


def test_stub_twins_and_sources_name_the_same_modules():
    stub = re.findall(
        r"^from lancelet.kernels.reference import (\w+) as \1$", (ROOM / "__init__.pyi").read_text(), re.MULTILINE
    )
    assert set(stub) == names_in("reference") == names_in("source") - {"cpu"}


def test_the_chosen_modules_offer_what_their_twins_do():
    for name, twin in kernels.load("reference").items():
        for variant in kernels.variants():
            missing = [public for public in twin.__all__ if not hasattr(kernels.load(variant)[name], public)]
            assert not missing, f"{variant} {name} lacks {missing}"
