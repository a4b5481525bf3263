"""The parameters of a tool that exists as a JSON Schema only, checked by a validator without catastrophic patterns.

Needs the extra `mcp` (jsonschema-rs). References to other documents are not followed.
"""

# ruff: noqa: D102 - what the methods promise is said once, in `Shape`

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import field, frozen

from agent.tools.errors import ToolError
from agent.tools.shapes import Schema

__all__ = ["ForeignShape", "plain"]

_MOST_NAMED = 10  # problems that a message lists


@frozen(eq=False)
class ForeignShape:
    """A shape that somebody else wrote down. Raises ToolError for what is no JSON Schema of an object."""

    written: Mapping[str, Any]
    validator: Any = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "validator", _validator(dict(self.written)))

    def schema(self) -> Schema:
        return dict(self.written)

    def problems(self, value: object, path: str) -> Iterator[str]:
        for number, error in enumerate(self.validator.iter_errors(plain(value))):
            if number == _MOST_NAMED:
                yield "and more"
                return
            where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path)
            yield f"{(path + where).lstrip('.') or 'arguments'}: {error.message[:300]}"

    def build(self, value: Any) -> Any:
        return plain(value)


def plain(value: Any) -> Any:
    """Return a value with plain dicts and lists in it: calls carry frozen ones."""
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def _validator(schema: dict[str, Any]) -> Any:
    try:
        import jsonschema_rs
    except ImportError as error:
        raise ToolError("tools that exist as a schema only need the extra 'mcp': pip install 'bpagent[mcp]'") from error
    if schema.get("type") != "object":
        raise ToolError("the parameters of a tool are an object; its schema says something else")
    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse)
    except ValueError as error:
        raise ToolError(f"no JSON Schema that can be used: {str(error)[:300]}") from error


def _refuse(address: str) -> Any:
    raise ValueError(f"the reference {address!r} leads to another document, which is not followed")
