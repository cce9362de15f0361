"""The parts of the official `mcp` package that a stdio server uses, loaded without the rest of it.

HTTP transports, the client and the high-level server are more than half of its start-up. For the time of one import
they are empty stand-ins, and message types are built at their first use. Where that fails, everything is loaded, and
that is said.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOT_NEEDED = (
    "starlette",
    "uvicorn",
    "sse_starlette",
    "httpx2",
    "jwt",
    "mcp.client",
    "mcp.server.auth",
    "mcp.server.mcpserver",
    "mcp.server.request_state",
    "mcp.server.sse",
    "mcp.server.streamable_http",
    "mcp.server.streamable_http_manager",
    "mcp.server.transport_security",
)
"""HTTP transports, client and the high-level server: half of the SDK's start-up, and no code path of ours."""


class _StandIn(ModuleType):
    """A module whose every name is an empty class: good for annotations and base classes, and for nothing else."""

    __path__: list[str] = []  # noqa: RUF012 - the import system wants a list on the module itself

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {"__class_getitem__": classmethod(lambda cls, _: cls)})
        setattr(self, name, made)
        return made


class _StandIns:
    """Finds a stand-in for every module of NOT_NEEDED; a finder and loader for the time of one import."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if any(name == one or name.startswith(f"{one}.") for one in NOT_NEEDED):
            return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self.made.append(spec.name)
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""


@contextlib.contextmanager
def _light_imports() -> Iterator[None]:
    """While it lasts, modules of NOT_NEEDED come as stand-ins and pydantic models are built at their first use.

    Afterwards whoever imports such a module gets the real one.
    """
    import pydantic
    from pydantic import BaseModel, TypeAdapter

    finder = _StandIns()
    already = {name for name in sys.modules if finder.find_spec(name)}
    adapter_init = TypeAdapter.__init__

    def late_init(self: Any, type: Any, **options: Any) -> None:
        # One more frame between the adapter and its maker, whose namespace it may need.
        depth = options.pop("_parent_depth", 2) + 1
        try:
            adapter_init(self, type, **{"config": {"defer_build": True}, **options}, _parent_depth=depth)
        except pydantic.errors.PydanticUserError:  # a model has its own configuration
            adapter_init(self, type, **options, _parent_depth=depth)

    if not already:
        sys.meta_path.insert(0, finder)
    config = cast("dict[str, Any]", BaseModel.model_config)
    before = dict(config)
    config["defer_build"] = True
    TypeAdapter.__init__ = late_init  # type: ignore[method-assign]
    try:
        yield
    finally:
        TypeAdapter.__init__ = adapter_init  # type: ignore[method-assign]
        config.clear()
        config.update(before)
        if not already:
            sys.meta_path.remove(finder)
        for name in finder.made:
            sys.modules.pop(name, None)


def _import_sdk() -> SimpleNamespace:
    import anyio
    import mcp_types
    from mcp.server.lowlevel.server import Server
    from mcp.shared.exceptions import MCPError
    from mcp.shared.message import SessionMessage

    return SimpleNamespace(
        anyio=anyio, types=mcp_types, Server=Server, MCPError=MCPError, SessionMessage=SessionMessage
    )


def load_sdk(light: Callable[[], contextlib.AbstractContextManager[None]] = _light_imports) -> SimpleNamespace:
    """The parts of the SDK that are used here. When the light way fails with this SDK, the whole of it is loaded."""
    before = set(sys.modules)
    # Thousands of classes are made here and none goes away again: collecting on the way takes a sixth of the time.
    gc.disable()
    try:
        with light():
            sdk = _import_sdk()
        sdk.light = True
        return sdk
    except Exception as error:
        sys.stderr.write(f"opsagent: the MCP package is loaded whole, which takes longer: {type(error).__name__}\n")
    finally:
        gc.enable()
        gc.freeze()
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in ("mcp", "mcp_types"):
            del sys.modules[name]
    sdk = _import_sdk()
    sdk.light = False
    return sdk
