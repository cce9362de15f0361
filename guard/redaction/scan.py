# ruff: noqa: E501 - one expression is one line
"""One pass over a text: where its secrets are, and the text with them replaced. Pure and linear."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from guard.redaction.blocks import CLOSED, GATES, Cuts, State, blocks
from guard.redaction.commands import COMPACT, HABITS, SPACED
from guard.redaction.habits import Habit
from guard.redaction.labelled import Spans, labelled
from guard.redaction.labels import STRONG
from guard.redaction.lazy import Pattern, Runs
from guard.redaction.tokens import SHAPES, Shape
from guard.redaction.values import MASK, is_secret

_HIDDEN = Pattern(
    r"\x1b\[[0-9;:?<=>]{0,64}[ -/]{0,4}[@-~]|\x1b\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|\x1b[=>A-Z\\^_]"
    r"|[^\n\x08]\x08|[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_HIDDEN_MARKS = (
    "\x1b\x08\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
)
_JOINED = Pattern(r"(?<=[\w+/.~$!@#%^&*-])(?:\"\"|''|\"'|'\"|\\\n)(?=[\w+/.~$!@#%^&*-])")
_FOREIGN = Pattern(
    r"(?:密码|密碼|口令|密钥|密鑰|金鑰|密匙|令牌|权杖|權杖|私钥|私鑰|凭证|凭据|憑證|授权码|授權碼|验证码|驗證碼|动态码|パスワード|暗証番号|비밀번호|암호|пароль|Пароль"
    r"|contraseña|Contraseña|mot de passe|Mot de passe|parola|пароля)(?:[ \t]{0,4}(?:是|为|為|=|:|：|＝|→|-->|->|は|は、|이|está|est)){1,3}[ \t]{0,4}[\"'“‘「『`]?"
    r"([^\s\"'”’」』`，。；,;（(）)]{3,512})"
)
_FOREIGN_SPACE = Pattern(r"(?:密码|密碼|口令|密钥|密鑰|令牌|パスワード)[ \t]{1,4}[\"'“‘「]?([!-~]{6,256})")
_EXTENSION = Pattern(r"\.(?:c|h|cc|cpp|go|py|js|ts|rs|java|rb|php|sh|log|conf|yml|yaml|md|txt|html)$")
_PORT_FIRST = Pattern(r"\d{1,5}(?:[/?#]|$)")
_COOKIE_ATTRIBUTES = frozenset(
    [
        "path",
        "domain",
        "expires",
        "max-age",
        "samesite",
        "secure",
        "httponly",
        "priority",
        "partitioned",
        "version",
        "comment",
    ]
)
_COOKIE = Pattern(r"(?:^|[;\s])[ \t]{0,4}([\w.$-]{1,128})=\"?([^;\s\"']{6,4096})")


_NEAR_LINES = 6
"""No rule but blocks looks further than this many lines around a label or value."""


def redacted(t: str, begin: int, state: State, known: tuple[str, ...]) -> tuple[Cuts, str, State]:
    """What was cut from `t[begin:]`, `t` with it replaced, and the block that is open at its end.

    `t[:begin]` is context: already written, only looked at.
    """
    cuts, state = cuts_of(t, begin, state, known)
    return cuts, replaced(t, cuts), state


def replaced(t: str, cuts: Cuts) -> str:
    """`t` with sorted, separate cuts made."""
    if not cuts:
        return t
    out: list[str] = []
    at = 0
    for a, b, mask in cuts:
        out += (t[at:a], mask)
        at = b
    out.append(t[at:])
    return "".join(out)


def settled_near(out: str, cuts: Cuts, known: tuple[str, ...]) -> bool:
    """Whether another pass over the surroundings of these cuts, made in what is now `out`, would change nothing."""
    if any(gate in out for gate in GATES):
        return False
    shift = done = 0
    for a, b, mask in cuts:
        at = a + shift
        shift += len(mask) - (b - a)
        if at < done:
            continue
        first = at
        for _ in range(_NEAR_LINES):
            first = out.rfind("\n", max(0, first - 2048), max(0, first))
            if first < 0:
                first = max(0, at - 2048)
                break
        last = at
        for _ in range(2 * _NEAR_LINES):
            last = out.find("\n", last + 1)
            if last < 0:
                last = len(out)
                break
        near = out[first:last]
        if len(near) > 16_384 or cuts_of(near, 0, CLOSED, known)[0]:
            return False
        done = last - 1024
    return True


def cuts_of(t: str, begin: int, state: State, known: tuple[str, ...]) -> tuple[Cuts, State]:
    """Sorted, separate cuts in `t[begin:]`, and the block that is open at the end."""
    cuts: Cuts = []
    for form in known:
        at = t.find(form)
        while at >= 0:
            cuts.append((at, at + len(form), MASK))
            at = t.find(form, at + len(form))
    if any(mark in t for mark in _HIDDEN_MARKS) and (view := _View(t, _HIDDEN.re)).removed:
        seen: Cuts = []
        for form in known:
            at = view.text.find(form)
            while at >= 0:
                seen.append((at, at + len(form), MASK))
                at = view.text.find(form, at + len(form))
        state = _rules(view.text, view.forward(begin), state, seen)
        cuts += (view.back(a, b, mask) for a, b, mask in seen)
    else:
        state = _rules(t, begin, state, cuts)
    if ('""' in t or "''" in t or "\"'" in t or "'\"" in t or "\\\n" in t) and _JOINED.re.search(t):
        view = _View(t, _JOINED.re)
        seen = []
        spans: Spans = []
        _lines(view.text, spans)
        seen += ((a, b, MASK) for a, b in spans)
        for form in known:
            at = view.text.find(form)
            while at >= 0:
                seen.append((at, at + len(form), MASK))
                at = view.text.find(form, at + len(form))
        for a, b, mask in seen:
            if bisect_right(view.at, a) != bisect_left(view.at, b):
                cuts.append(view.back(a, b, mask))
    return _merged(t, begin, cuts), state


def _rules(t: str, begin: int, state: State, cuts: Cuts) -> State:
    spans: Spans = []
    open_scalar = _lines(t, spans)
    cuts += ((a, b, MASK) for a, b in spans)
    state = blocks(t, begin, state, cuts) if state[0] or any(gate in t for gate in GATES) else CLOSED
    if open_scalar is not None and not state[0]:
        state = ("yaml", False, open_scalar[0])
    return state


def _lines(t: str, spans: Spans) -> tuple[int, int] | None:
    """Everything but blocks."""
    low = t.lower()
    if len(low) != len(t):
        low = "".join(char.lower() if len(char.lower()) == 1 else char for char in t)
    runs = Runs(t, low)
    for shape in SHAPES:
        if shape.gates.hold(runs):
            _shape(t, shape, spans)
    open_scalar = labelled(t, low, spans)
    for habit in HABITS:
        for gate in habit.gates.found(runs):
            for a, b in _lines_with(low, gate):
                _habit(t, a, b, habit, spans)
    _whole_lines(t, spans)
    if not t.isascii() or "mot de passe" in low or "parola" in low:
        for rule in (_FOREIGN, _FOREIGN_SPACE):
            for match in rule.re.finditer(t):
                readable = any(char.isascii() and char.isalnum() for char in match[1]) and is_secret(match[1], STRONG)
                if readable and (rule is _FOREIGN or _mixed(match[1])):
                    spans.append(match.span(1))
    return open_scalar


def _shape(t: str, shape: Shape, spans: Spans) -> None:
    group, edge = shape.group, shape.edge
    for match in shape.pattern.re.finditer(t):
        value = match[group]
        if edge is not None and match.start():
            before = t[match.start() - 1]
            if before in edge or (before.isascii() and before.isalnum()):
                continue
        if shape.random and not _mixed(value):
            continue
        if group and (not is_secret(value, STRONG) or (_PORT_FIRST.re.match(value) and "/" in value)):
            continue
        spans.append(match.span(group))


def _whole_lines(t: str, spans: Spans) -> None:
    """Lines of credential files, which have no labels."""
    at = 0
    for line in t.split("\n"):
        if 8 < len(line) < 700:
            rules: tuple[Pattern, ...] = ()
            if ":" in line and " " not in line:
                rules = COMPACT
            if line[0] == "[" or "@" in line or line[-1] == "*" or "=\t" in line or "*" in line[:80]:
                rules = (*rules, *SPACED)
            for rule in rules:
                match = rule.re.match(line.rstrip("\r"))
                if match and is_secret(match[1], STRONG) and not _EXTENSION.re.search(line.partition(":")[0]):
                    spans.append((at + match.start(1), at + match.end(1)))
        at += len(line) + 1


def _lines_with(low: str, gate: str) -> list[tuple[int, int]]:
    lines = []
    at = low.find(gate)
    while at >= 0:
        a = low.rfind("\n", 0, at) + 1
        b = low.find("\n", at)
        b = len(low) if b < 0 else b
        if gate == "login":
            b = min(len(low), b + 400)  # a .netrc entry may go on in the next lines
        lines.append((a, b))
        at = low.find(gate, b)
    return lines


def _habit(t: str, a: int, b: int, habit: Habit, spans: Spans) -> None:
    pattern, guess = habit.pattern.re, habit.guess
    line = t[a:b]
    for match in pattern.finditer(line):
        for group in range(1, pattern.groups + 1):
            value = match[group]
            if value is None:
                continue
            if habit.cookies:
                for pair in _COOKIE.re.finditer(value):
                    if pair[1].lower() not in _COOKIE_ATTRIBUTES and is_secret(pair[2], STRONG):
                        spans.append((a + match.start(group) + pair.start(2), a + match.start(group) + pair.end(2)))
            elif is_secret(value, STRONG) and (not guess or _unlike_words(value)):
                spans.append((a + match.start(group), a + match.end(group)))
            break


def _unlike_words(value: str) -> bool:
    """True unless this could be an ordinary word of a sentence."""
    bare = value.strip(".,;:!?()[]'\"")
    return any(c.isdigit() or c in "!@#$%^&*+=~" for c in bare) or not (
        bare[1:].islower() or bare.isupper() or len(bare) < 2
    )


def _mixed(value: str) -> bool:
    """Digits among letters, or both cases in plenty: what a machine made."""
    digits = sum(char.isdigit() for char in value)
    letters = sum(char.isalpha() for char in value)
    if digits and letters and (digits >= 2 or any(c.isupper() for c in value)):
        return True
    return len(value) >= 24 and any(c.isupper() for c in value) and any(c.islower() for c in value) and "-" not in value


def _merged(t: str, begin: int, cuts: Cuts) -> Cuts:
    """Sorted and separate; nothing before `begin`, nothing that only names a mask, no mask cut in half."""
    out: Cuts = []
    marked = MASK in t
    size = len(MASK)
    for a, b, mask in sorted(cuts):
        if marked:
            i = t.rfind("[", max(0, a - size + 1), a)
            if i >= 0 and t.startswith(MASK, i) and a < i + size:
                a = i
            i = t.rfind("[", max(0, b - size + 1), b)
            if i >= 0 and t.startswith(MASK, i) and b < i + size:
                b = i + size
            if mask and not t[a:b].replace(MASK, "").strip(" \t\"'\\,;.:)]}"):
                continue
        a = max(a, begin)
        if a >= b:
            continue
        if out and a < out[-1][1]:
            last = out[-1]
            out[-1] = (last[0], max(last[1], b), last[2] or mask)
        else:
            out.append((a, b, mask))
    return out


class _View:
    """A text with some parts removed, and the way back to the places in the original."""

    __slots__ = ("text", "at", "shift", "removed")

    def __init__(self, original: str, pattern: object) -> None:
        pieces = []
        self.at: list[int] = []
        self.shift: list[int] = []
        last = removed = 0
        for match in pattern.finditer(original):  # type: ignore[attr-defined]
            pieces.append(original[last : match.start()])
            removed += match.end() - match.start()
            self.at.append(match.end() - removed)
            self.shift.append(removed)
            last = match.end()
        pieces.append(original[last:])
        self.text = "".join(pieces)
        self.removed = removed

    def _original(self, position: int) -> int:
        index = bisect_right(self.at, position) - 1
        return position + (self.shift[index] if index >= 0 else 0)

    def back(self, a: int, b: int, mask: str) -> tuple[int, int, str]:
        return self._original(a), (self._original(b - 1) + 1 if b > a else self._original(b)), mask

    def forward(self, position: int) -> int:
        """Where the original's `position` is in the view."""
        low, high = 0, len(self.text)
        while low < high:
            middle = (low + high) // 2
            if self._original(middle) < position:
                low = middle + 1
            else:
                high = middle
        return low
