"""What a text that was piped in beside a question says: its lines of trouble, grouped, and what they are about. Pure.

The text is data: it can choose which built-in runbooks look, and nothing else. Only lines that speak of trouble are
shown, redacted with what stood before them, so that a line out of a key's middle is still seen as part of a key.
"""

import re

from runbooks.model import Finding, Severity, Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ID = "piped"
SHOWN = 5
MOST_BYTES = 4 * 1024 * 1024
"""So much of the end of a text is read: the newest lines of a log stand last."""
MOST_LINE = 4000
"""So many characters of a line are looked at."""
SHOWN_CHARACTERS = 160
CONTEXT_LINES = 250
"""Lines before a shown one that the redactor sees: a 16,384 bit RSA key in PEM form has about 210."""

ABOUT = (
    ("disk", "no space left|disk quota exceeded|read-only file system|structure needs cleaning"),
    ("oom", "out of memory|oom-kill|oom killer|oomkilled|invoked oom"),
    ("memory", "cannot allocate memory|memoryerror|memory exhausted"),
    ("io", "i/o error|blk_update_request|buffer i/o|hung_task|blocked for more than"),
    ("processes", "too many open files|resource temporarily unavailable|cannot fork|fork failed|pids limit"),
    ("ports", "address already in use|bind() to|cannot bind|failed to bind"),
    ("dns", "name resolution|could not resolve|no such host|name or service not known|host not found in upstream"),
    ("certs", "certificate has expired|certificate verify failed|x509:|certificate is not yet valid|sslcertverif"),
    (
        "net",
        "network is unreachable|no route to host|connection timed out|nf_conntrack: table full|link is down",
    ),
    ("time", "clock skew|time jumped|clock is not synchron|not yet valid"),
    ("logins", "failed password|authentication failure|invalid user"),
    ("services", "start request repeated too quickly|main process exited|failed with result|failed to start"),
)
"""What a line of trouble is about, by words that system calls, the kernel and common programs use (strerror(3))."""
TROUBLE = re.compile(
    r"(?<![a-z])(?:errors?|err|fail(?:s|ed|ing|ure|ures)?|fatal|panic(?:ked)?|crit(?:ical)?|emerg(?:ency)?|alert|"
    r"segfault|segmentation fault|core dumped|denied|refused|rejected|timed ?out|timeouts?|unreachable|killed|oom|"
    r"out of memory|no space left|corrupt(?:ed|ion)?|unable to|cannot|can't|could ?n[o']t|unavailable|aborted|"
    r"too many open files|no such (?:file|host|device)|expired|not permitted)(?![a-z])"
    r"|[a-z_]+(?:error|exception)\b"
    r'|" 5\d\d (?:\d+|-)(?= |$)'  # an access log's answer: "GET / HTTP/1.1" 502 157
    rf"|{'|'.join(re.escape(word) for _, words in ABOUT for word in words.split('|'))}"
    r"|错误|失败|异常|超时|拒绝|无法|崩溃",
    re.IGNORECASE,
)
NO_TROUBLE = re.compile(
    r"\b(?:0|no|zero|without(?: any)?)\s+(?:errors?|fail(?:ed|ures?)|timeouts?)\b"
    r"|\b(?:errors?|fail(?:ed|ures?)|timeouts?|err|error_count)[\"']?\s*[=:]\s*[\"']?(?:0|null|none|nil|false|\"\"|'')(?![\w.])"
    r"|traceback \(most recent call last\)|没有(?:错误|异常|失败)|无(?:错误|异常)",
    re.IGNORECASE,
)
"""Words of trouble that say there is none, or that the line after them will say it."""
CALM = re.compile(
    r"\b(?:TRACE|DEBUG|INFO|NOTICE)\b"
    r"|\[(?:trace|debug|info|notice)\]"
    r"|\b(?:level|severity|lvl)[\"']?\s*[=:]\s*[\"']?(?:trace|debug|info|notice)\b"
)
"""A line whose writer gave it a low level is taken at its word."""
ALARM = re.compile(r"\b(?:ERROR|ERR|FATAL|CRITICAL|CRIT|ALERT|EMERG)\b|\[(?:error|crit|alert|emerg)\]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_HEADS = (
    re.compile(r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ "),  # syslog: Dec  1 04:50:12 web-1 nginx[7]: …
    re.compile(r"^\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?\]?:? "),
)
_SYSLOG_HOST = re.compile(r"^[A-Za-z][\w.-]* (?=[\w./@-]+(?:\[\d+\])?: )")  # after an ISO time: web-1 nginx[7]: …
_WRITER = re.compile(r"^[\w./@-]+(?:\[\d+\])?: ")
_TIME = re.compile(r"(?<!\d)\d\d:\d\d:\d\d(?!\d)")
_VARYING = (
    re.compile(r'"[^"]*"'),
    re.compile(r"\b0x[0-9a-f]+\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b", re.I),
    re.compile(r"\d+(?:[.:]\d+)*"),
)


class Piped:
    """A text that was piped in, looked at once.

    Args:
        text: the text, or the end of it.
        cut: how the text is not whole, as a clause; None when it is.
    """

    __slots__ = ("lines", "count", "groups", "cut")

    def __init__(self, text: str, *, cut: "Words | None" = None) -> None:
        self.lines = [_COLOUR.sub("", line) for line in text.split("\n")]
        if self.lines[-1] == "":
            self.lines.pop()
        self.cut = cut
        by_key: dict[str, list[int]] = {}
        for number, line in enumerate(self.lines):
            if is_trouble(line[:MOST_LINE]):
                by_key.setdefault(key_of(line[:MOST_LINE]), []).append(number)
        self.groups = sorted(by_key.values(), key=len, reverse=True)
        """Line numbers of the same trouble, the most frequent first."""
        self.count = sum(map(len, self.groups))

    def about(self) -> "list[tuple[str, str]]":
        """Runbooks that the trouble calls for and the words that say so, most lines first."""
        found: dict[str, tuple[int, str]] = {}
        for group in self.groups:
            lower = self.lines[group[-1]][:MOST_LINE].lower()
            for id, words in ABOUT:
                hit = next((word for word in words.split("|") if word in lower), None)
                if hit is not None:
                    count, first = found.get(id, (0, hit))
                    found[id] = count + len(group), first
        return [(id, word) for id, (_, word) in sorted(found.items(), key=lambda pair: -pair[1][0])]

    def findings(self, redact: "Callable[[str], str]", at: str) -> "list[Finding]":
        """How many lines speak of trouble, then the most frequent kinds with their last line, redacted.

        Args:
            redact: takes secrets out of a text (`guard.redact.Redactor.text`).
            at: when the text was read (RFC 3339).
        """
        total = len(self.lines)
        lines_en = "1 line" if total == 1 else f"{total:,} lines"
        cut_en, cut_zh = (f" ({self.cut.en})", f"（{self.cut.zh}）") if self.cut else ("", "")
        first = Words(
            f"The piped text{cut_en} has {lines_en}; {_speak(self.count)} of errors.",
            f"管道输入{cut_zh}共 {total:,} 行，其中 {self.count:,} 行提到错误。",
        )
        severity = Severity.NOTE if self.count else Severity.OK
        found = [Finding("piped.errors", severity, first, runbook=ID, subject="", number=self.count, at=at)]
        for group in self.groups[:SHOWN]:
            found.append(self._group(group, redact, at))
        more = len(self.groups) - SHOWN
        if more > 0:
            rest = sum(map(len, self.groups[SHOWN:]))
            kinds = "1 more kind" if more == 1 else f"{more:,} more kinds"
            text = Words(
                f"{kinds} of such lines, {rest:,} in all, not shown.", f"另有 {more:,} 类，共 {rest:,} 行，未列出。"
            )
            found.append(Finding("piped.more", Severity.NOTE, text, runbook=ID, number=rest, at=at))
        return found

    def _group(self, group: "list[int]", redact: "Callable[[str], str]", at: str) -> Finding:
        last = group[-1]
        before = self.lines[max(0, last - CONTEXT_LINES) : last]
        shown = redact("\n".join([*before, self.lines[last]])).rpartition("\n")[2]
        shown = " ".join(without_head(shown).split())
        if len(shown) > SHOWN_CHARACTERS:
            shown = shown[: SHOWN_CHARACTERS - 1] + "…"
        begun, ended = _time_in(self.lines[group[0]]), _time_in(self.lines[last])
        when_en = when_zh = ""
        if begun and ended:
            when_en, when_zh = f" ({begun} to {ended})", f"（{begun} 至 {ended}）"
            if begun == ended:
                when_en, when_zh = f" ({ended})", f"（{ended}）"
        count = len(group)
        text = Words(f"{count:,} ×{when_en}: {shown}", f"{count:,} 次{when_zh}：{shown}")
        return Finding(
            "piped.group", Severity.NOTE, text, runbook=ID, subject=shown[:60], number=count, unit="lines", at=at
        )


def is_trouble(line: str) -> bool:
    """The line speaks of an error, and neither says that there is none nor carries a low level."""
    if TROUBLE.search(line) is None or (CALM.search(line) and not ALARM.search(line)):
        return False
    return TROUBLE.search(NO_TROUBLE.sub(" ", line)) is not None


def key_of(line: str) -> str:
    """What lines of the same trouble have in common: the text without time, host, numbers and quoted parts."""
    kept = without_head(line)
    for varying in _VARYING:
        kept = varying.sub("#", kept)
    return " ".join(kept.split())[:200]


def without_head(line: str) -> str:
    """The line without the time and host that a log puts first."""
    rest = _without_time(line)
    if rest == line:
        return line
    rest = _SYSLOG_HOST.sub("", rest, count=1)
    writer = _WRITER.match(rest)
    if writer is None:
        return rest
    return writer.group() + _without_time(rest[writer.end() :])  # syslog's time, then the program's own


def _without_time(line: str) -> str:
    for head in _HEADS:
        rest = head.sub("", line, count=1)
        if rest != line:
            return rest
    return line


def _time_in(line: str) -> str:
    found = _TIME.search(line[:80])
    return found.group() if found else ""


def _speak(count: int) -> str:
    return "none speaks" if count == 0 else "1 speaks" if count == 1 else f"{count:,} speak"
