"""Redirections and here-documents, with the words that the grammar hangs behind them in the wrong place."""

from guard.judge.shell.assigning import AssignmentReader
from guard.judge.shell.grammar import STATEMENTS
from guard.judge.shell.scanning import BLANKS
from guard.judge.shell.syntax import (
    Expansion,
    Group,
    Node,
    Opaque,
    Pipeline,
    Redirect,
    Simple,
    Word,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_AFTER_WORD = (b" ", b"\t", b"\n", b";", b"&", b"|", b"<", b">", b"(", b")")
"""What ends an unquoted word in bash (bash(1), metacharacter)."""


def _plain_tag(tag: str) -> bool:
    """Whether a here-document's end is a name, perhaps quoted as a whole: `E`, `'E'`, `"E"`, `\\E`."""
    if tag[:1] in ("'", '"') and tag[-1:] == tag[0] and len(tag) > 2:
        tag = tag[1:-1]
    elif tag[:1] == "\\":
        tag = tag[1:]
    return tag.isascii() and tag.replace("_", "a").replace("-", "a").replace(".", "a").isalnum()


class RedirectReader(AssignmentReader):
    """Reads what stands in front of and behind redirections."""

    __slots__ = ()

    def redirected(self, node: "Any") -> Node:
        body: Node | None = None
        redirects: list[Redirect] = []
        more: list[Word] = []
        after: list[tuple[str, Any]] = []
        for child in node.children:
            kind = child.type
            if kind == "file_redirect" or kind == "herestring_redirect":
                redirect, words = self.redirect(child)
                redirects.append(redirect)
                more.extend(words)
            elif kind == "heredoc_redirect":
                redirects.extend(self._heredoc(child, more, after))
            elif body is None and kind in STATEMENTS and kind != "ERROR":
                body = self.statement(child, kind)
            else:
                after.append(("", child))
        span = (node.start_byte, node.end_byte)
        extra = self.between(node)
        if body is None:
            body = Simple(span, (), tuple(more), tuple(redirects))
        else:
            target: Node = body
            # `a && b > f`: the grammar hangs the redirection on the list, bash on the last command; for judging
            # it is enough that it is not lost. Extra operands belong to the last simple command.
            if isinstance(body, Simple):
                body.words += tuple(more)
                more = []
            target.redirects = (*target.redirects, *redirects)
        items: list[Node] = [body]
        if more:
            items.append(Opaque(span, "shell.unread", "words after a redirection of a compound command"))
        if extra:
            items.append(extra)
        stages: list[Node] = []
        for how, child in after:
            if how == "|":
                stages.extend(self.statements(child.children, child.start_byte, child.end_byte))
            elif child.type in STATEMENTS:
                items.append(self.statement(child, child.type))
            elif child.is_named:
                items.append(Opaque((child.start_byte, child.end_byte), "shell.unread", "not understood here"))
        if stages:
            items[0] = Pipeline(span, (items[0], *stages))
        return items[0] if len(items) == 1 else Group(span, "list", tuple(items))

    def _heredoc(self, node: "Any", more: "list[Word]", after: "list[tuple[str, Any]]") -> "list[Redirect]":
        literal, fd, op = False, "", "<<"
        body: Word | None = None
        redirects: list[Redirect] = []
        end = node.start_byte
        for child in node.children:
            kind = child.type
            first = child.start_byte
            if first > end and self.source[end:first].translate(None, BLANKS):
                gap: list[Node] = []
                self._gap(end, first, gap)
                if gap and kind not in ("heredoc_body", "heredoc_end"):
                    body = Word((end, first), None, (Expansion("opaque", "", True, tuple(gap)),))
            end = child.end_byte
            if kind == "file_descriptor":
                fd = self._text(child)
            elif kind in ("<<", "<<-"):
                op = kind
            elif kind == "heredoc_start":
                tag = self._text(child)
                following = self.source[end : end + 1]
                if not _plain_tag(tag) or (following and following not in _AFTER_WORD):
                    # The grammar takes only the beginning of such a name, or cannot tell two of them apart, so it does
                    # not know where the document ends: what it takes for data may be commands.
                    self.strange_heredoc = True
                literal = any(char in tag for char in "'\"\\")
            elif kind == "heredoc_body":
                body = self._heredoc_body(child, literal)
            elif kind in ("file_redirect", "herestring_redirect"):
                redirect, words = self.redirect(child)
                redirects.append(redirect)
                more.extend(words)
            elif kind == "heredoc_redirect":
                redirects.extend(self._heredoc(child, more, after))
            elif kind == "pipeline":
                after.append(("|", child))
            elif kind in STATEMENTS:
                after.append(("", child))
            elif kind == "heredoc_end":
                # The grammar takes `E; x` for the end of the document, which for bash is one more line of it.
                if self.source[end : end + 1] not in (b"", b"\n"):
                    self.strange_heredoc = True
            elif kind in ("&&", "||", "\n"):
                continue
            elif child.is_named:
                more.extend(self.words([child]))
        redirects.insert(0, Redirect((node.start_byte, end), op, fd, None, body, literal))
        return redirects

    def _heredoc_body(self, node: "Any", literal: bool) -> Word:
        span = (node.start_byte, node.end_byte)
        if literal:
            text = self.source[span[0] : span[1]].decode("utf-8", "replace")
            if "$(" in text or "`" in text:
                self.code.append(text)
            return Word(span, text, (), quoted=True)
        return self._scan(span[0], span[1], self._expansion_nodes(node), heredoc=True)[0]

    # -- commands ---------------------------------------------------------------------------------------------

    def redirect(self, node: "Any") -> "tuple[Redirect, list[Word]]":
        """One redirection, and the words that the grammar wrongly hangs behind it."""
        op, fd = "", ""
        targets: list[list[Any]] = []
        bad: list[Node] = []
        last = -1
        span = (node.start_byte, node.end_byte)
        for child in node.children:
            kind = child.type
            if kind == "file_descriptor":
                fd = self._text(child)
            elif kind == "ERROR":
                bad.append(Opaque((child.start_byte, child.end_byte), "shell.syntax", "an error in a redirection"))
            elif not child.is_named and not op:
                op = kind
            elif last == child.start_byte and targets:
                targets[-1].append(child)
                last = child.end_byte
            else:
                targets.append([child])
                last = child.end_byte
        extra = self.between(node)
        if extra:
            bad.append(extra)
        words: list[Word] = []
        for group in targets:
            words.extend(self.words(group))
        target = words[0] if words else None
        if bad:
            runs = (*bad, *(run for part in (target.parts if target else ()) if not isinstance(part, str)
                            for run in part.runs))  # fmt: skip
            target = Word(span, None, (Expansion("opaque", "", True, runs),))
        if op == "<<<":
            return Redirect(span, op, fd, None, target, False), words[1:]
        return Redirect(span, op, fd, target), words[1:]

    def statement(self, node: "Any", kind: str) -> Node:
        raise NotImplementedError
