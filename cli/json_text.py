"""JSON text from plain objects, through the C encoder alone: `json` itself costs more to import than to use here."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    import _json
except ImportError:  # another Python implementation
    _json = None  # type: ignore[assignment]


def _refuse(value: object) -> "Any":
    raise TypeError(f"{type(value).__name__} has no JSON form")


def json_line(value: "Any") -> str:
    """One line of strict JSON, without its newline. Lone surrogates become U+FFFD, non-finite numbers an error."""
    if _json is None:
        import json

        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    else:
        encode = _json.make_encoder({}, _refuse, _json.encode_basestring, None, ": ", ", ", False, False, False)
        text = "".join(encode(value, 0))
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
