"""Builds the kernels: every file of ``src/lancelet/kernels/source``, once for each kind of processor.

Metadata lives in pyproject.toml. On x86-64 each source becomes two extension modules,
``lancelet.kernels.x86_64.NAME`` and ``lancelet.kernels.x86_64_v3.NAME``; elsewhere one,
``lancelet.kernels.native.NAME``. What Cython adds for memory views is in one more module, ``memory_views`` of the
first variant, because a copy of it would otherwise outweigh every kernel. Without a C compiler nothing is built and
the package uses its NumPy twins; with one, a kernel that does not compile is an error.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, ExecError, LinkError, PlatformError

SOURCES = Path("src/lancelet/kernels/source")
# What is made from the sources on the way to the modules, in folders that spell the modules' names.
WORKSHOP = Path("build/kernels")
# Variant (the package below lancelet.kernels) -> what it adds to the compiler's arguments.
X86_64 = {"x86_64": [], "x86_64_v3": ["-march=x86-64-v3"]}
NATIVE: dict[str, list[str]] = {"native": []}
# Strict aliasing is off because kernels read words out of byte buffers. Looking for what to warn of in code that
# Cython wrote takes a third of the time. Exceptions do not pass through C, and how fast Python's methods are called
# does not matter to a kernel: leaving out what both need makes the modules a tenth smaller.
GCC_ARGUMENTS = ["-O3", "-g0", "-w", "-fno-strict-aliasing", "-fvisibility=hidden", "-fno-asynchronous-unwind-tables"]
GCC_ARGUMENTS += ["-DCYTHON_UNPACK_METHODS=0"]
# No symbols, and no padding that would keep code and constants in memory pages of their own.
LINUX_LINK_ARGUMENTS = ["-Wl,-s", "-Wl,-z,noseparate-code"]
DIRECTIVES = {"boundscheck": False, "wraparound": False, "cdivision": True, "emit_code_comments": False}
JOBS = 2


def variants() -> dict[str, list[str]]:
    """Two variants where the C compiler understands gcc's arguments and aims at x86-64; the first runs everywhere."""
    gcc = platform.machine().lower() in ("x86_64", "amd64") and sys.platform != "win32" and sys.maxsize > 2**32
    return X86_64 if gcc else NATIVE


FIRST = next(iter(variants()))
MEMORY_VIEWS = f"lancelet.kernels.{FIRST}.memory_views"


def extensions() -> list[Extension]:
    """The module for memory views, then one extension for each variant and source file."""
    sources = [source for source in sorted(SOURCES.glob("*.py")) if source.stem != "__init__"]
    # Loops of kernels need -O3; making a view of an array has none.
    smaller = [] if sys.platform == "win32" else ["-Os"]
    return [extension_for(MEMORY_VIEWS, variants()[FIRST] + smaller)] + [
        extension_for(f"lancelet.kernels.{variant}.{source.stem}", arguments, source)
        for variant, arguments in variants().items()
        for source in sources
    ]


def extension_for(name: str, arguments: list[str], source: Path | None = None) -> Extension:
    """One module; without a source, Cython has all of its code."""
    return Extension(
        name,
        [source.as_posix()] if source else [],
        depends=[path.as_posix() for path in declarations(source)] if source else [],
        extra_compile_args=arguments if sys.platform == "win32" else GCC_ARGUMENTS + arguments,
        extra_link_args=LINUX_LINK_ARGUMENTS if sys.platform == "linux" else [],
    )


def declarations(source: Path) -> list[Path]:
    """The .pxd file of a source, and those that belong to no source alone and that it names."""
    words = source.read_text()
    own = source.with_suffix(".pxd")
    others = [path for path in sorted(SOURCES.glob("*.pxd")) if not path.with_suffix(".py").exists()]
    return [own] * own.exists() + [path for path in others if path.stem in words]


class BuildKernels(build_ext):
    """Translates each source to C in the variant's own folder below ``build/`` and compiles it there."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or JOBS

    def run(self) -> None:
        self.failed: list[str] = []
        names = {extension.name for extension in self.extensions}
        remove_orphans(Path(self.build_lib), names)
        if self.inplace:
            remove_orphans(Path("src"), names)
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
        if self.extensions:
            forget_what_was_made_otherwise()
        # Starting Cython takes longer than translating most sources: one process for all of a variant.
        with ThreadPoolExecutor(self.parallel) as pool:
            list(pool.map(self._translate, sorted({variant_of(extension) for extension in self.extensions})))
        super().build_extensions()
        # One broken kernel neither stops the others from being built nor goes unnoticed: run() raises in the end.
        self.extensions = [extension for extension in self.extensions if extension.name not in self.failed]

    def _translate(self, variant: str) -> None:
        """The C code of a variant's extensions, made anew where the source changed."""
        folder = WORKSHOP / "lancelet" / "kernels" / variant
        folder.mkdir(parents=True, exist_ok=True)
        # Cython names a module after the packages around its source, and finds a .pxd beside it.
        for package in (folder, folder.parent, folder.parent.parent):
            (package / "__init__.py").touch()
        stale = [ext for ext in self.extensions if variant_of(ext) == variant and is_stale(ext)]
        sources = [str(code_of(ext).with_suffix(".py")) for ext in stale if ext.sources]
        shared = [ext.name for ext in stale if not ext.sources]
        options = ["-3", *(text for name, value in DIRECTIVES.items() for text in ("-X", f"{name}={value}"))]
        with tempfile.TemporaryDirectory(dir=WORKSHOP) as fresh:
            for name in shared:
                self._cython("--generate-shared", f"{fresh}/{name.split('.')[-1]}.c", "--module-name", name)
            if sources:
                folders = ["-I", str(WORKSHOP), "-I", str(folder)]
                self._cython(*options, "--shared", MEMORY_VIEWS, *folders, "-o", fresh, *sources)
            for code in sorted(Path(fresh).glob("*.c")):
                # Code of a source that Cython refused says so first; without code build_extension reports the kernel.
                if not code.read_bytes().startswith(b"#error"):
                    code.replace(folder / code.name)

    def _cython(self, *arguments: str) -> None:
        try:
            self.spawn([sys.executable, "-m", "cython", *arguments])
        except ExecError as error:
            self.warn(str(error))

    def build_extension(self, ext: Extension) -> None:
        code, module = code_of(ext), Path(self.get_ext_fullpath(ext.name))
        unfinished = code.with_suffix(".unfinished")
        # There after a build that was stopped, maybe while it wrote the module.
        if unfinished.exists():
            module.unlink(missing_ok=True)
        try:
            if not code.exists():
                raise CompileError(f"{ext.name}: Cython does not translate its source")
            unfinished.touch()
            ext.sources = [code.as_posix()]
            super().build_extension(ext)
            unfinished.unlink()
        except (CompileError, LinkError, ExecError):
            self.failed.append(ext.name)

    def copy_extensions_to_source(self) -> None:
        for variant in {variant_of(extension) for extension in self.extensions}:
            (SOURCES.parent / variant).mkdir(exist_ok=True)
        super().copy_extensions_to_source()

    def _compiles(self, extensions: list[Extension]) -> bool:
        """Whether a shared library can be made with the arguments of these extensions."""
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder, "probe.c")
            probe.write_text("#include <Python.h>\nint lancelet_probe(void) { return PY_MAJOR_VERSION; }\n")
            arguments, link = extensions[0].extra_compile_args, extensions[0].extra_link_args
            try:
                include = self.include_dirs
                objects = self.compiler.compile(
                    [str(probe)], output_dir=folder, include_dirs=include, extra_postargs=arguments
                )
                self.compiler.link_shared_object(objects, str(Path(folder, "probe.so")), extra_postargs=link)
            except (CompileError, LinkError, ExecError, PlatformError):
                return False
        return True


def variant_of(extension: Extension) -> str:
    """``x86_64`` for ``lancelet.kernels.x86_64.bitpack``."""
    return extension.name.split(".")[-2]


def code_of(extension: Extension) -> Path:
    """The file with the C code of an extension."""
    return WORKSHOP.joinpath(*extension.name.split(".")).with_suffix(".c")


def is_stale(extension: Extension) -> bool:
    """Whether the C code is missing or older than its source, which is brought to the folder of the code."""
    code = code_of(extension)
    copies = [copy_if_changed(Path(original), code.parent) for original in extension.sources + extension.depends]
    stale = not code.exists() or any(code.stat().st_mtime <= copy.stat().st_mtime for copy in copies)
    if stale:
        code.unlink(missing_ok=True)
    return stale


def copy_if_changed(original: Path, folder: Path) -> Path:
    """The copy in the folder; if its content is the same already it keeps its time of change."""
    copy = folder / original.name
    if not copy.exists() or copy.read_bytes() != original.read_bytes():
        shutil.copyfile(original, copy)
    return copy


def forget_what_was_made_otherwise() -> None:
    """Remove all C code, and so have all compiled anew, after a change of Cython or of this file."""
    from Cython import __version__

    maker = f"Cython {__version__}, setup.py {hashlib.sha256(Path(__file__).read_bytes()).hexdigest()}\n"
    made_by = WORKSHOP / "made-by"
    if not made_by.exists() or made_by.read_text() != maker:
        shutil.rmtree(WORKSHOP, ignore_errors=True)
        WORKSHOP.mkdir(parents=True)
        made_by.write_text(maker)


def remove_orphans(root: Path, names: set[str]) -> None:
    """Remove compiled modules of sources that are no more: they would go on to be found and packed."""
    for variant in X86_64 | NATIVE:
        for module in (root / "lancelet" / "kernels" / variant).glob("*.*"):
            name = f"lancelet.kernels.{variant}.{module.name.split('.')[0]}"
            if module.suffix in (".so", ".pyd") and name not in names:
                module.unlink()


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
