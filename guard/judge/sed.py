"""sed's language, read far enough to know whether a script writes a file or runs a program. Source: sed(1)."""

from guard.judge.levels import R2
from guard.judge.shell.syntax import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.program import Call

_BETWEEN = " \t\n;{}"
_ALONE = "{}=dDgGhHnNpPxzF"
"""Commands without anything behind them."""


def read_sed(call: "Call", text: str, word: "Word | None") -> None:
    """Notes what a script reads, writes and runs beyond its input; a script that is not understood is opaque.

    Args:
        text: the whole script, its pieces joined by newlines.
        word: the word that it stands in, for the place of a reason.
    """
    if not _Script(call, text, word).read():
        call.opaque("a sed script that could not be read", word, "sed.unread")


class _Script:
    """A script that is being read; `at` is the place of the next character, -1 behind something that does not end."""

    __slots__ = ("call", "text", "word", "span", "at", "end")

    def __init__(self, call: "Call", text: str, word: "Word | None") -> None:
        self.call = call
        self.text = text
        self.word = word
        self.span = word.span if word is not None else call.span
        self.at = 0
        self.end = len(text)

    def read(self) -> bool:
        """Reads all of it; False when it is not understood."""
        while True:
            self.pass_over(_BETWEEN)
            if self.at >= self.end:
                return True
            if not self.addresses():
                return False
            if self.at >= self.end:
                return True
            if not self.command():
                return False

    def pass_over(self, chars: str) -> None:
        at, end, text = self.at, self.end, self.text
        while at < end and text[at] in chars:
            at += 1
        self.at = at

    def addresses(self) -> bool:
        text = self.text
        while self.at < self.end:
            at, char = self.at, text[self.at]
            if char.isdigit() or char in "$,~+! \t":
                self.at = at + 1
            elif char == "/":
                self.at = self.behind_regex(at + 1, "/")
            elif char == "\\" and at + 1 < self.end:
                self.at = self.behind_regex(at + 2, text[at + 1])
            elif char in "IM" and at > 0 and text[at - 1] not in _BETWEEN:
                self.at = at + 1
            else:
                break
            if self.at < 0:
                return False
        return True

    def command(self) -> bool:
        char = self.text[self.at]
        self.at += 1
        if char in _ALONE:
            return True
        if char in "#v":
            self.rest_of_line()
        elif char in "qQlL":
            self.pass_over(" \t0123456789")
        elif char in "aic":
            self.shown_text()
        elif char in ":bBtT":
            while self.at < self.end and self.text[self.at] not in "\n;}":
                self.at += 1
        elif char in "rR":
            self.call.reads(self.named(self.rest_of_line()))
        elif char in "wW":
            self.call.writes(self.named(self.rest_of_line()))
        elif char == "e":
            command = self.rest_of_line()
            self.call.note(R2, "sed.execute", "the script runs a command", self.word, "sed(1)")
            if command:
                self.call.judge.text(command, self.span)
        elif char == "y" and self.at < self.end:
            mark = self.text[self.at]
            self.at = self.behind_plain(self.behind_plain(self.at + 1, mark), mark)
        elif char == "s" and self.at < self.end:
            return self.substitution()
        else:
            return False
        return self.at >= 0

    def substitution(self) -> bool:
        """`s/a/b/FLAGS`, from its first mark on."""
        mark = self.text[self.at]
        self.at = self.behind_plain(self.behind_regex(self.at + 1, mark), mark)
        while 0 < self.at < self.end and self.text[self.at] not in "\n;}# \t":
            flag = self.text[self.at]
            self.at += 1
            if flag == "e":
                self.call.note(R2, "sed.execute", "the script runs what it makes of the line", self.word, "sed(1)")
            elif flag == "w":
                self.call.writes(self.named(self.rest_of_line()))
            elif flag not in "gpiImM0123456789":
                return False
        return self.at >= 0

    def shown_text(self) -> None:
        """What `a`, `i` and `c` print, in one line or the classic form: up to a newline without a backslash."""
        while self.at < self.end and self.text[self.at] != "\n":
            self.at += 2 if self.text[self.at] == "\\" else 1

    def rest_of_line(self) -> str:
        stop = self.text.find("\n", self.at)
        stop = self.end if stop < 0 else stop
        rest = self.text[self.at : stop].strip()
        self.at = stop
        return rest

    def named(self, name: str) -> Word:
        return Word(self.span, name, (), True)

    def behind_regex(self, at: int, mark: str) -> int:
        """The place behind the closing mark of a regular expression, in which brackets hide it; -1 without one."""
        text, end = self.text, self.end
        inside = False
        while at < end:
            char = text[at]
            if char == "\\":
                at += 2
                continue
            if char == "[" and not inside:
                inside = True
                at += 1
                if text[at : at + 1] == "^":
                    at += 1
                if text[at : at + 1] == "]":
                    at += 1
                continue
            if char == "[" and text[at : at + 2] in ("[:", "[.", "[="):
                close = text.find(text[at + 1] + "]", at + 2)
                at = close + 2 if close > 0 else at + 1
                continue
            if char == "]" and inside:
                inside = False
            elif char == mark and not inside:
                return at + 1
            at += 1
        return -1

    def behind_plain(self, at: int, mark: str) -> int:
        """The place behind the closing mark of a text; -1 without one, and when there was no opening one (-1)."""
        text, end = self.text, self.end
        while 0 <= at < end:
            if text[at] == "\\":
                at += 2
                continue
            if text[at] == mark:
                return at + 1
            at += 1
        return -1
