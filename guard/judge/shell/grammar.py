"""The parser of the shell grammar, loaded the short way.

`import tree_sitter, tree_sitter_bash` costs about 50 ms, nearly all of it for `typing` and
`importlib.resources`, which their `__init__` files pull in and the parser never needs. So the two extension
modules are loaded by path; the ordinary import is the fall back, so that an unusual layout costs time only.
"""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSIONS = "tree-sitter 0.26.1, tree-sitter-bash 0.25.1"
"""What this judgement was tested with; part of the policy version, so that a new grammar is a new policy."""

_parser: "Any" = None


def _extension(package: str) -> "Any":
    """The package's `_binding` extension module, without running the package's `__init__`."""
    name = f"{package}._binding"
    found = sys.modules.get(name)
    if found is None:
        found = _load(package, name)
    return found if found is not None else __import__(name, fromlist=["_binding"])


def _load(package: str, name: str) -> "Any":
    """Loads the extension by its path; None when that does not work.

    While it loads, the binding asks for `re.compile` (for queries) and `enum.IntEnum` (for its log),
        neither of which is
    is used here and which cost 15 ms together; unless they are loaded already, it gets stand-ins.
    """
    from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, PathFinder

    spec = PathFinder.find_spec(package)
    borrowed = [module for module in ("re", "enum") if module not in sys.modules]
    for module in borrowed:
        stand_in: Any = type(sys)(module)
        stand_in.compile = _compile_late
        stand_in.IntEnum = _numbers
        sys.modules[module] = stand_in
    try:
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for suffix in EXTENSION_SUFFIXES:
                path = f"{folder}/_binding{suffix}"
                loader = ExtensionFileLoader(name, path)
                try:
                    made = loader.create_module(ModuleSpec(name, loader, origin=path))
                    loader.exec_module(made)
                except (ImportError, OSError):
                    continue
                return made
    finally:
        for module in borrowed:
            del sys.modules[module]
    return None


def _compile_late(*args: "Any") -> "Any":
    # Only a query's predicates come here, and we use none; then the real module is worth its time.
    return __import__("re").compile(*args)


def _numbers(name: str, *_: "Any") -> type:
    return type(name, (int,), {})


def parser() -> "Any":
    """The one parser of this process. Raises ImportError when the grammar is not installed."""
    global _parser
    if _parser is None:
        core, bash = _extension("tree_sitter"), _extension("tree_sitter_bash")
        _parser = core.Parser(core.Language(bash.language()))
    return _parser


COMPOUNDS = {
    "if_statement": "if",
    "while_statement": "while",
    "for_statement": "for",
    "c_style_for_statement": "for",
    "case_statement": "case",
    "subshell": "subshell",
    "compound_statement": "braces",
}
"""Node types of the grammar for compound commands, and what this program calls them."""
STATEMENTS = frozenset(
    (
        "command", "pipeline", "list", "redirected_statement", "function_definition", "negated_command",
        "test_command", "declaration_command", "unset_command", "variable_assignment", "variable_assignments",
        "ERROR", *COMPOUNDS,
    )
)  # fmt: skip
"""Node types that are statements."""
