"""Redirections: what they read and write, and what standard input is behind them. Source: bash(1), REDIRECTION."""

from guard.judge.shell.syntax import Expansion, Redirect
from guard.judge.shellwords import WRITES
from guard.judge.touches import read_path, write_path
from guard.judge.values import literal_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Judge


def redirected(judge: "Judge", redirect: Redirect, stdin: "str | None") -> "str | None":
    """Judges a redirection; returns what stdin is afterwards."""
    op = redirect.op
    if redirect.body is not None or op in ("<<", "<<-", "<<<"):
        body = redirect.body
        if body is None:
            return "" if op != "<<<" else stdin
        judge.expansions(body)
        known = literal_of(judge, body)
        if redirect.fd not in ("", "0"):
            return stdin
        return known if known is not None else ""
    target = redirect.target
    if target is None:
        return stdin
    judge.expansions(target)
    value = literal_of(judge, target)
    if value is None:
        judge.lists.append(target)
    if op in (">&", "<&") and (value is None or value.rstrip("-").isdigit() or value == "-"):
        if value is None:
            judge.opaque("shell.dynamic-fd", "a descriptor that the text does not tell", redirect.span)
        return "" if op == "<&" else stdin
    if any(isinstance(part, Expansion) and part.kind == "process" for part in target.parts):
        return "" if op == "<" else stdin
    if op in WRITES or op == ">&":
        write_path(judge, target, redirect.span, "redirection", appends=op in (">>", "&>>"))
        return stdin
    read_path(judge, target, redirect.span)
    if value is not None and value != "/dev/null" and not judge.away:
        judge.fed.extend(judge.places(value))
    if redirect.fd not in ("", "0"):
        return stdin
    return None if value == "/dev/null" else ""
