"""Provenance: what a result was computed with, as a hash.

Results are stored under it. It covers the code of the modules that a result comes from and of all
that they import, the versions beneath them, and the content of data files. Code is hashed as its
syntax tree without positions and docstrings: a comment, a docstring or a blank line changes nothing
and runs nothing again; an operator, a constant or a default does.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from unbounded.experiments.plugins import ForeignError, find, origin_of
from unbounded.jit.key import VERSIONS, nested_code

_PACKAGE = Path(__file__).resolve().parents[1]


class Source(NamedTuple):
    """What counts of a module's source."""

    digest: bytes  # of its syntax tree, without positions and docstrings
    imports: tuple[str, ...]  # the modules that its import statements may mean


@cache
def parsed(source: bytes, package: str) -> Source:
    """Parse the source of a module in a package.

    Examples
    --------
    >>> from unbounded.experiments.provenance import parsed
    >>> one, other = (parsed(text, "") for text in (b"x = 1  # one", b"x = 1"))
    >>> one.digest == other.digest
    True
    """
    tree = _Run().visit(ast.parse(source))
    names: list[str] = []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [one for one in body if not _is_docstring(one)]  # type: ignore[attr-defined] # seen
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) - node.level + 1] if node.level else []
            base = ".".join([*above, node.module] if node.module else above)
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    digest = hashlib.sha256(ast.dump(tree).encode(errors="surrogatepass")).digest()
    return Source(digest, tuple(name for name in names if name))


class _Run(ast.NodeTransformer):
    """Leave out what only type checkers read."""

    def visit_If(self, node: ast.If) -> Any:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            return [self.visit(one) for one in node.orelse]
        return self.generic_visit(node)


def _is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is only a string: that of a definition, or below an attribute."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


# ------------------------------------------------------------------ this package


@cache
def package_hash(*modules: str) -> str:
    """Hash modules of this package, with all that they import from it."""
    digest = hashlib.sha256(repr(VERSIONS).encode())
    for name in sorted(set().union(*map(_imported_modules, modules))):
        digest.update(name.encode() + module_digest(name))
    return digest.hexdigest()[:16]


@cache
def fingerprint() -> str:
    """Hash the bytes of this package: parses nothing, and equal only if every `package_hash` is."""
    digest = hashlib.sha256(repr(VERSIONS).encode())
    for file in sorted(_PACKAGE.rglob("*.py")):
        digest.update(file.relative_to(_PACKAGE).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def module_digest(module: str) -> bytes:
    """Hash one module of this package, without what it imports."""
    return _parsed_own(module).digest


def _imported_modules(module: str) -> set[str]:
    found: set[str] = set()
    waiting = {module}
    while waiting:
        name = waiting.pop()
        if name not in found and _own_file(name).is_file():
            found.add(name)
            waiting |= {one for one in _parsed_own(name).imports if one.startswith("unbounded")}
    return found


@cache
def _parsed_own(module: str) -> Source:
    return parsed(_own_file(module).read_bytes(), "")  # imports of this package are absolute


@cache
def _own_file(module: str) -> Path:
    path = _PACKAGE.parent.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


# ------------------------------------------------------------------ files of data


def named_file(settings: Mapping[str, Any]) -> str:
    """Return the file that is named as ``path`` among settings; empty if there is none."""
    path = settings.get("path")
    return path if isinstance(path, str) and os.path.isfile(path) else ""


def content_hash(path: str) -> str:
    """Hash what is in a file."""
    status = Path(path).stat()
    return _content_hash(path, status.st_size, status.st_mtime_ns, status.st_ino)


@cache
def _content_hash(path: str, *_: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


# ------------------------------------------------------------------ plugins


class Sources(NamedTuple):
    """What the results of a plugin depend on."""

    digest: str  # of its own sources
    ours: tuple[str, ...]  # modules of this package that they import


_first_seen: dict[str, str] = {}  # the digest of a module's sources when it was first used here


def sources_of(module: str) -> Sources:
    """A digest of a module, of what it imports of its own package and of the current directory,
    and the names of what it imports of this one.

    The code in memory must be that of the files: results are stored under the digest.
    """
    digest, ours = hashlib.sha256(), set()
    for name in sorted(_own_modules(module)):
        file = origin_of(name)
        digest.update(f"{name} ".encode())
        if file.is_file():
            source = _parsed_plugin(name)
            digest.update(source.digest if source else file.read_bytes())
            ours |= {one for one in _imports(name) if one.partition(".")[0] == "unbounded"}
        if not _as_written(name):
            raise _edited(name)
    text = digest.hexdigest()[:16]
    if _first_seen.setdefault(module, text) != text:
        raise _edited(module)
    return Sources(text, tuple(sorted(ours)))


def _edited(module: str) -> ForeignError:
    return ForeignError(
        f"{origin_of(module)} was edited after it was imported: start Python (or the workers) again"
    )


def _own_modules(module: str) -> set[str]:
    """Return the module, the packages that it is in, and what they import from beside them."""
    top = module.partition(".")[0]
    here = origin_of(top).parent == Path(os.getcwd())  # then what lies beside it counts as well
    found: set[str] = set()
    waiting = {module}
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        root = name.partition(".")[0]
        try:
            beside = here and origin_of(root).parent in (Path(os.getcwd()), Path(os.getcwd(), root))
            if root != top and not beside:
                continue
            find(name)
        except ForeignError:  # of a `from` import: not a module
            continue
        found.add(name)
        waiting |= {name.rpartition(".")[0]} - {""}
        waiting |= _imports(name)
    return found


def _imports(module: str) -> set[str]:
    source = _parsed_plugin(module)
    return set(source.imports) if source else set()


def _parsed_plugin(module: str) -> Source | None:
    file = origin_of(module)
    if file.suffix != ".py" or not file.is_file():
        return None
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return parsed(file.read_bytes(), package)


def _as_written(module: str) -> bool:
    """Return whether the functions in memory are those that the file has now."""
    there, file = sys.modules.get(module), origin_of(module)
    if there is None or file.suffix != ".py":
        return True
    written = _written(file.read_bytes(), str(file))
    return all(code in written for code in _in_memory(there) if Path(code.co_filename) == file)


@cache
def _written(source: bytes, file: str) -> frozenset[CodeType]:
    return frozenset(nested_code(compile(source, file, "exec", dont_inherit=True)))


def _in_memory(module: Any) -> Iterator[CodeType]:
    values = list(vars(module).values())
    for value in values:
        if inspect.isclass(value) and value.__module__ == module.__name__:
            values += vars(value).values()
        function = inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))
        function = getattr(function, "py_func", function)
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            yield function.__code__
