"""What a stage of a pipeline is known to print, for the stage behind it that may be a shell."""

from guard.judge.shell.syntax import Group, Simple
from guard.judge.values import literal_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from guard.judge.engine import Judge
    from guard.judge.shell.syntax import Node, Word


def _decoded(words: "Sequence[Word]", feed: "str | None") -> str:
    """What `base64 -d` and `rev` make of a known input; "" when it is not known."""
    name, options = words[0].value, [word.value for word in words[1:]]
    if not feed or len(feed) > 65_536:
        return ""
    if name == "rev" and not options:
        return "\n".join(line[::-1] for line in feed.split("\n"))
    if name in ("base64", "base32", "xxd"):
        from binascii import Error, a2b_base64, unhexlify

        try:
            if name == "base64" and options in (["-d"], ["--decode"], ["-D"], ["-di"], ["-d", "-i"], ["--d"]):
                return a2b_base64(feed.encode()).decode("utf-8", "replace")
            if name == "xxd" and options in (["-r", "-p"], ["-p", "-r"], ["-rp"], ["-pr"], ["-r", "-ps"]):
                return unhexlify("".join(feed.split())).decode("utf-8", "replace")
        except (Error, ValueError):
            return ""
    return ""


def printed_by(node: "Node", judge: "Judge", feed: "str | None") -> str:
    """What a pipeline stage is known to print: echo, printf of literals, cat of a here-document; else ""."""
    while isinstance(node, Group) and len(node.items) == 1 and not node.redirects:
        node = node.items[0]
    if not isinstance(node, Simple) or not node.words:
        return ""
    name = node.words[0].value
    if name in ("cat", "tee") and len(node.words) == 1:
        for redirect in node.redirects:
            if redirect.body is not None:
                return literal_of(judge, redirect.body) or ""
        return "" if node.redirects else feed or ""
    if name in ("base64", "rev", "xxd"):
        for redirect in node.redirects:
            if redirect.body is not None:
                return _decoded(node.words, literal_of(judge, redirect.body))
        return _decoded(node.words, feed)
    if name not in ("echo", "printf") or node.redirects:
        return ""
    words = [literal_of(judge, word) for word in node.words[1:]]
    shown = [word if word is not None else "*" for word in words]
    if any(word is None for word in words):
        return ""
    if name == "echo":
        while shown and shown[0] in ("-n", "-e", "-E", "-ne", "-en"):
            shown.pop(0)
        text = " ".join(shown)
        return text + "\n" if "\\" not in text else ""
    if not shown:
        return ""
    if shown[0] in ("%s", "%s\\n", "%s\n"):
        return "\n".join(shown[1:])
    return shown[0].replace("\\n", "\n") if "%" not in shown[0] and "\\" not in shown[0].replace("\\n", "") else ""
