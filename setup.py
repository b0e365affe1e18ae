"""Builds the kernels: every file of ``src/lancelet/kernels/source``, once for each kind of processor.

Metadata lives in pyproject.toml. On x86-64 each source becomes two extension modules,
``lancelet.kernels.x86_64.NAME`` and ``lancelet.kernels.x86_64_v3.NAME``; elsewhere one,
``lancelet.kernels.native.NAME``. Without a C compiler nothing is built and the package uses its NumPy twins;
with one, a kernel that does not compile is an error.
"""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, ExecError, LinkError, PlatformError

SOURCES = Path("src/lancelet/kernels/source")
# Variant (the package below lancelet.kernels) -> what it adds to the compiler's arguments.
X86_64 = {"x86_64": [], "x86_64_v3": ["-march=x86-64-v3"]}
NATIVE: dict[str, list[str]] = {"native": []}
# Strict aliasing is off because kernels read words out of byte buffers.
GCC_ARGUMENTS = ["-O3", "-g0", "-fno-strict-aliasing", "-fvisibility=hidden"]
DIRECTIVES = {"language_level": "3", "boundscheck": "False", "wraparound": "False", "cdivision": "True"}
JOBS = 2


def is_gcc_on_x86_64() -> bool:
    """Whether two variants can be built: the C compiler understands gcc's arguments and aims at x86-64."""
    return platform.machine().lower() in ("x86_64", "amd64") and sys.platform != "win32" and sys.maxsize > 2**32


def extensions() -> list[Extension]:
    """One extension for each variant and source file."""
    variants = X86_64 if is_gcc_on_x86_64() else NATIVE
    return [
        Extension(
            f"lancelet.kernels.{variant}.{source.stem}",
            [source.as_posix()],
            depends=[path.as_posix() for path in [source.with_suffix(".pxd"), *shared(source)] if path.exists()],
            extra_compile_args=arguments if sys.platform == "win32" else GCC_ARGUMENTS + arguments,
            extra_link_args=["-Wl,-s"] if sys.platform == "linux" else [],
        )
        for variant, arguments in variants.items()
        for source in sorted(SOURCES.glob("*.py"))
        if source.stem != "__init__"
    ]


class BuildKernels(build_ext):
    """Translates each source to C in the variant's own folder below ``build/`` and compiles it there."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or JOBS

    def run(self) -> None:
        self.failed: list[str] = []
        super().run()
        if self.failed:
            raise CompileError(f"these kernels do not compile: {', '.join(sorted(self.failed))}")

    def build_extensions(self) -> None:
        usable = {
            variant: self._compiles([extension for extension in self.extensions if variant_of(extension) == variant])
            for variant in {variant_of(extension) for extension in self.extensions}
        }
        for variant in sorted(variant for variant, works in usable.items() if not works):
            self.warn(
                f"lancelet: no C compiler that can build the '{variant}' kernels was found; "
                "the install goes on, and slower NumPy kernels are used where nothing faster was built"
            )
        self.extensions = [extension for extension in self.extensions if usable[variant_of(extension)]]
        super().build_extensions()
        # One broken kernel neither stops the others from being built nor goes unnoticed: run() raises in the end.
        self.extensions = [extension for extension in self.extensions if extension.name not in self.failed]

    def build_extension(self, ext: Extension) -> None:
        try:
            ext.sources = [self._translate(ext).as_posix()]
            super().build_extension(ext)
        except (CompileError, LinkError, ExecError):
            self.failed.append(ext.name)

    def _translate(self, ext: Extension) -> Path:
        """The C code of an extension, made anew where its source changed."""
        source = Path(next(iter(ext.sources)))
        # The copy sits in folders that spell its module's name, so that Cython finds a .pxd beside it.
        folder = Path("build", "kernels", *ext.name.split(".")[:-1])
        folder.mkdir(parents=True, exist_ok=True)
        for original in (source, source.with_suffix(".pxd")):
            if original.exists():
                copy_if_changed(original, folder / original.name)
        copy, code = folder / source.name, (folder / source.name).with_suffix(".c")
        if not code.exists() or code.stat().st_mtime <= newest(copy, copy.with_suffix(".pxd"), *shared(source)):
            code.unlink(missing_ok=True)
            options = [text for name, value in DIRECTIVES.items() for text in ("-X", f"{name}={value}")]
            command = [sys.executable, "-m", "cython", *options, "--module-name", ext.name]
            self.spawn([*command, "-I", "build/kernels", "-I", SOURCES.as_posix(), "-o", str(code), str(copy)])
        return code

    def copy_extensions_to_source(self) -> None:
        for variant in {variant_of(extension) for extension in self.extensions}:
            (SOURCES.parent / variant).mkdir(exist_ok=True)
        super().copy_extensions_to_source()

    def _compiles(self, extensions: list[Extension]) -> bool:
        """Whether a shared library can be made with the arguments of these extensions."""
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text("#include <Python.h>\nint lancelet_probe(void) { return PY_MAJOR_VERSION; }\n")
            arguments = extensions[0].extra_compile_args
            try:
                include = self.include_dirs
                objects = self.compiler.compile(
                    [str(probe)], output_dir=folder, include_dirs=include, extra_postargs=arguments
                )
                self.compiler.link_shared_object(objects, str(Path(folder, "probe.so")))
            except (CompileError, LinkError, ExecError, PlatformError):
                return False
        return True


def variant_of(extension: Extension) -> str:
    """``x86_64`` for ``lancelet.kernels.x86_64.bitpack``."""
    return extension.name.split(".")[-2]


def shared(source: Path) -> list[Path]:
    """The .pxd files that belong to no source alone, and that this one names."""
    words = source.read_text()
    return [path for path in SOURCES.glob("*.pxd") if path.stem in words and not path.with_suffix(".py").exists()]


def newest(*paths: Path) -> float:
    """The latest time of change of those paths that exist."""
    return max(path.stat().st_mtime for path in paths if path.exists())


def copy_if_changed(original: Path, copy: Path) -> None:
    """Copy, unless the copy has the same content already."""
    if not copy.exists() or copy.read_bytes() != original.read_bytes():
        shutil.copyfile(original, copy)


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
