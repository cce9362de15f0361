# ruff: noqa: E501 - one row of a table is one line
"""Finds values by the label in front of them: `password=…`, `"token": "…"`, `--secret …`, `name: X / value: …`.

The text is searched for the stems of secret labels; at each one the whole label is read, judged, and only then is a
separator and a value looked for. Every look-ahead and look-behind is bounded, so the time is linear in the text.
"""

from __future__ import annotations

from guard.redaction.labels import LABEL_CHARS, MEDIUM, STEMS, STEMS_RARE, STRONG, strength_of
from guard.redaction.lazy import Pattern
from guard.redaction.values import MASK, is_secret

Spans = list[tuple[int, int]]

_REST = Pattern(r"[A-Za-z0-9_.\-]{0,64}")
_SEPARATOR = Pattern(
    r"(?:\\{0,4}[\"'`]|&quot;|%22|\\u0022)?\]?(?:[ \t]{0,64}|[ .]{2,64})(=>|->|:=|:-|={1,2}|:|：|＝|%3[dDaA]|\\u003[dD]|&gt;)[ \t　]{0,64}"
)
_OPEN = Pattern(
    r"(?:!!?\w{1,12}[ \t]{1,4})?[bBrRuUfFN@]{0,2}(\\{0,8}[\"'`]|&quot;|&#3[49];|%2[27]|\\u00(?:22|27)|[“‘「『«])"
)
_WORD = Pattern(r"[^\s\"'`\x00]{1,4096}")
_CUT = Pattern(
    r"[,;&|](?=[\w.\-\[\] ]{1,48}[=:]|$)|%26|[)\]}>]+[,;.)\]}>]*(?=$|[ ,;])|[，。；、！？（）」”’】]|\\[nrt](?=$|[\w#])|&(?:amp|quot);|</"
)
_REST_OF_LINE = Pattern(r"[ \t]+#.*$|[ \t]*[,;][ \t]*$")
_BLOCK_SCALAR = Pattern(r"(?:![\w-]{1,16}[ \t]+)?[|>][+-]?\d?[+-]?[ \t]*(?:#.*)?$")
_SCHEME = Pattern(
    r"(?i:bearer|basic|token|digest|negotiate|ntlm|apikey|api-key|aws4-hmac-sha256|jwt|key|plain|oauth)[ \t]{1,8}(?=\S)"
)
_FLAG_VALUE = Pattern(r"(?:[ \t]{1,3}(?:\\\n[ \t]{0,32})?|\\\n[ \t]{0,32})(?=[^\s-]|-[A-Za-z0-9_]*[A-Z0-9])")
_XML = Pattern(
    r"[\"']?(?:[ \t][^<>\n]{0,200})?>[ \t]*\n?[ \t]*(?:<[Vv]alue>|<string>|<!\[CDATA\[)?([^<>\n]{1,4096})(?=\s{0,64}<)"
)
_XML_KEY = Pattern(r"[\"']?</(?:[Nn]ame|[Kk]ey)>[ \t]*\n?[ \t]*<(?:[Vv]alue|string)>([^<>\n]{1,4096})")
_PAIR = Pattern(
    r"\\?[\"']?[ \t]{0,64},?[ \t]{0,16}(?:\n[ \t]{0,64}){0,2}(?:-[ \t])?\\?[\"']?"
    r"(?:[Vv]alue|VALUE|[Dd]efault(?:Value)?)\\?[\"']?[ \t]{0,64}[:=][ \t]{0,64}"
)
_PAIR_BEFORE = Pattern(
    r"(?:^|[\s{,<\"'(])\\?[\"']?(?:[Nn]ame|[Kk]ey|NAME|KEY|ParameterKey|Variable)\\?[\"']?[ \t]{0,16}[:=][ \t]{0,16}\\?[\"']?$"
)
_VALUE_FIRST = Pattern(
    r"[\"']?[Vv]alue[\"']?[ \t]{0,16}[:=][ \t]{0,16}(\"[^\"\n]{1,1024}\"|'[^'\n]{1,1024}'|[^\s\"',]{1,1024}),?\s{0,64}"
    r"[\"']?(?:[Nn]ame|[Kk]ey)[\"']?[ \t]{0,16}[:=][ \t]{0,16}[\"']?$"
)
_CALL = Pattern(r"\([ \t]{0,8}[\"']([^\"'\n\s]{1,512})[\"']")
_COMMA = Pattern(r"[\"'][ \t]{0,8},[ \t]{0,64}[\"']([^\"'\n]{1,512})[\"']")
_CELL = Pattern(r"[ \t]{0,128}[|│┃][ \t]{0,8}([^|│┃\n]{1,1024}?)[ \t]{0,1024}[|│┃\n]")
_REGISTRY = Pattern(r"[ \t]{1,64}REG_[A-Z_]{2,16}[ \t]{1,16}([^\n]{1,512})")
_REPLY = Pattern(r"\"?\n(?: {0,8}\d{1,4}\) )?(\"[^\"\n]{1,512}\"|[^\s\"]{1,512})(?=\n|$)")
_TYPED = Pattern(r"[ \t]{1,16}(?:[0-9] |ENC )[ \t]{0,8}([^\s\"';]{4,512})")
_DIRECTIVE = Pattern(r"[ \t]{1,64}(?:\"([^\"\n]{1,512})\"|'([^'\n]{1,512})'|([^\s\"';]{2,512}));?[ \t]*(?=\n|$)")
_SPEECH = Pattern(r"[ \t]{1,8}(?:is|was|=|为|是)[ \t:：]{1,8}[\"'“]?([^\s\"'”，。,;]{4,256})")
_NEXT_LINE = Pattern(r"\n([ \t]+)[\"']?([^\s:#\"'<{\[-][^\s:\"'{}]{3,1024})[\"']?,?[ \t]*(?=\n|$)")
_CLOSERS = {"“": "”", "‘": "’", "「": "」", "『": "』", "«": "»"}
_LINE_LEAD = frozenset(
    (
        "",
        "export",
        "set",
        "setenv",
        "-",
        "ENV",
        "ARG",
        "env",
        "#",
        ";",
        "//",
        "$",
        "@",
        ":",
        "<",
        ">",
        "+",
        "declare -x",
        "proxy_set_header",
        "fastcgi_param",
        "uwsgi_param",
        "RequestHeader set",
        "SetEnv",
        "add_header",
    )
)
_COMMANDS = frozenset(
    [
        "psql",
        "pg_dump",
        "pg_dumpall",
        "pg_restore",
        "mysql",
        "mysqldump",
        "mysqladmin",
        "mariadb",
        "mariadb-dump",
        "redis-cli",
        "mongo",
        "mongosh",
        "mongodump",
        "ssh",
        "sshpass",
        "rsync",
        "scp",
        "ansible",
        "ansible-playbook",
        "terraform",
        "kubectl",
        "helm",
        "docker",
        "curl",
        "wget",
        "python",
        "python3",
        "node",
        "npm",
        "restic",
        "borg",
        "rclone",
        "env",
        "sudo",
        "bash",
        "sh",
        "exec",
        "make",
        "java",
        "php",
        "ruby",
        "aws",
        "vault",
        "git",
        "nice",
        "nohup",
        "timeout",
    ]
)
_DIRECTIVES = frozenset(
    [
        "requirepass",
        "masterauth",
        "auth_pass",
        "auth-pass",
        "bindpw",
        "rootpw",
        "rootpwmoddn",
        "masterpass",
        "sentinelpass",
        "wpa_psk",
        "smtp_password",
        "password",
        "passwd",
        "secret",
        "psk",
        "enablepassword",
        "setpass",
        "keypass",
        "storepass",
        "insecure-password",
        "passphrase",
    ]
)


def labelled(t: str, low: str, spans: Spans) -> tuple[int, int] | None:
    """Adds the span of every labelled secret; returns (indent, 0) of a YAML block scalar that is open at the end."""
    hits: list[int] = []
    for stem in STEMS:
        at = low.find(stem)
        while at >= 0:
            hits.append(at)
            at = low.find(stem, at + len(stem))
    for stem in STEMS_RARE:
        if stem in low:
            at = low.find(stem)
            while at >= 0:
                hits.append(at)
                at = low.find(stem, at + len(stem))
    hits.sort()
    rest = _REST.re
    done = line_start = 0
    eol = -1
    open_block: tuple[int, int] | None = None
    for hit in hits:
        if hit < done:
            continue
        left = t[max(0, hit - 64) : hit]
        start = hit - len(left) + len(left.rstrip(LABEL_CHARS))
        end = rest.match(t, hit).end()  # type: ignore[union-attr]
        done = end
        label = t[start:end]
        bare = label.strip("-.")
        strength = strength_of(bare)
        if not strength:
            continue
        if hit >= eol:
            line_start = t.rfind("\n", max(0, eol), hit) + 1 or max(0, eol)
            eol = t.find("\n", hit)
            if eol < 0:
                eol = len(t)
        end -= len(label) - len(label.rstrip("-."))
        found = _after(t, start, end, bare, strength, line_start, eol)
        if found is None:
            continue
        a, b = found
        if a < 0:
            indent = -a - 1
            b, still_open = _scalar_body(t, eol, indent, spans)
            open_block = (indent, 0) if still_open else None
            done = max(done, b)
            continue
        spans.append((a, b))
        done = max(done, b)
    return open_block


def _after(
    t: str, start: int, end: int, label: str, strength: int, line_start: int, eol: int
) -> tuple[int, int] | None:
    before = t[start - 1] if start else "\n"
    match = _SEPARATOR.re.match(t, end)
    if match:
        found = _separated(t, start, match.end(), match[1], label, strength, line_start, eol)
        if found:
            return found
    flag = t.startswith(("-", "/"), start)
    if flag and strength >= MEDIUM:
        match = _FLAG_VALUE.re.match(t, end)
        if match:
            found = _word(t, match.end(), t.find("\n", match.end()) if "\n" in match[0] else eol)
            if found and is_secret(t[found[0] : found[1]], strength, label):
                return found
    if before in "<\"'" or t.startswith((">", "</"), end):
        if (
            match := _XML.re.match(t, end) if before == "<" or "=" in t[max(0, start - 2) : start] else None
        ) and is_secret(match[1].strip() or "-", strength, label):
            return match.span(1)
        if (match := _XML_KEY.re.match(t, end)) and is_secret(match[1], strength, label):
            return match.span(1)
    lead = t[max(0, start - 48) : start]
    opening = _lead(t, line_start, start).strip()
    if (match := _PAIR.re.match(t, end)) and _PAIR_BEFORE.re.search(lead):
        close = t.find("\n", match.end())
        found = _plain(t, match.end(), len(t) if close < 0 else close, to_end=True)
        if found and is_secret(t[found[0] : found[1]], strength, label):
            return found
    if strength >= MEDIUM and "alue" in t[max(0, start - 1200) : start]:
        window = t[max(0, start - 1200) : start]
        at = window.rfind("alue")
        if (
            at > 0
            and (match := _VALUE_FIRST.re.search(window, max(0, at - 2)))
            and is_secret(match[1].strip("\"'"), strength, label)
        ):
            base = start - len(window)
            return base + match.start(1), base + match.end(1)
    for rule in (_CALL, _COMMA):
        if rule is _COMMA and "(" not in t[max(0, start - 4) : start] and "[" not in t[max(0, start - 2) : start]:
            continue
        if (match := rule.re.match(t, end)) and is_secret(match[1], strength, label):
            return match.span(1)
    for rule in (_REGISTRY, _CELL, _TYPED):
        if (match := rule.re.match(t, end)) and is_secret(match[1], max(strength, MEDIUM), label):
            if rule is _CELL and opening not in ("", "|", "│", "┃"):
                continue
            return match.span(1)
    lowered = label.lower()
    if (match := _REPLY.re.match(t, end)) and lowered in ("requirepass", "masterauth", "masteruser"):
        return match.span(1) if is_secret(match[1].strip('"'), strength, label) else None
    if strength >= MEDIUM and opening in _LINE_LEAD and (match := _DIRECTIVE.re.match(t, end)):
        value = match[match.lastindex or 1]
        if opening == "" and value[-1] in ".,:" and value[:-1].isalpha() and value[:-1].islower():
            return None  # the end of a sentence
        known = lowered in _DIRECTIVES and lowered not in ("password", "passwd", "secret", "psk", "passphrase")
        if (known or (not (value.isalpha() and value.islower()) and "/" not in value[:6])) and is_secret(
            value, strength, label, prose=not known
        ):
            return match.span(match.lastindex or 1)
    if strength == STRONG and (match := _SPEECH.re.match(t, end)):
        value = match[1].rstrip(".,;:!?)")
        if any(c.isdigit() for c in value) and is_secret(value, strength, label):
            return match.start(1), match.start(1) + len(value)
    return None


def _lead(t: str, line_start: int, start: int) -> str:
    """What stands before the label on its line; a stand-in when that is long, so that long lines cost nothing."""
    return t[line_start:start] if start - line_start <= 160 else "…"


def _separated(
    t: str, start: int, at: int, separator: str, label: str, strength: int, line_start: int, eol: int
) -> tuple[int, int] | None:
    eol = max(eol, at)
    opening = _lead(t, line_start, start)
    if at >= eol:
        if separator == ":" and (match := _NEXT_LINE.re.match(t, at)):
            indent = len(opening) - len(opening.lstrip())
            if len(match[1]) > indent and is_secret(match[2], strength, label, prose=True):
                return match.span(2)
        return None
    if separator == ":" and _BLOCK_SCALAR.re.match(t, at, eol):
        indent = len(opening) - len(opening.lstrip(" -"))
        return -indent - 1, 0
    spaced = t[at - 1] in " \t"
    lead = opening.strip(" \t\"'")
    line_form = strength == STRONG and lead in _LINE_LEAD
    forced = False
    if spaced and start and t[start - 1] in "\"'" and t[at] == t[start - 1] not in t[start:at]:
        return None  # a prompt: 'Password: '
    if match := _SCHEME.re.match(t, at):
        at, forced = match.end(), True
    quote = t[start - 1] if start and t[start - 1] in "\"'" and t[at - 1] != " " else ""
    found = _plain(t, at, eol, quote=quote, to_end=line_form, spaced=spaced)
    if not found:
        return None
    a, b = found
    value = t[a:b]
    if value.startswith("-----BEGIN"):
        return None
    if forced and b - a >= 4 and not is_secret(value, STRONG, label, prose=True):
        return None
    if label == "PASS" and spaced:
        return None
    prose = spaced and separator == ":" and a == at and not line_form
    if prose and not (b < eol and t[b] in " \t" and t[b + 1 : b + 2].islower()):
        prose = False
    if forced or is_secret(value, strength, label, prose=prose):
        return a, b
    return None


def _plain(
    t: str, at: int, eol: int, *, quote: str = "", to_end: bool = False, spaced: bool = True
) -> tuple[int, int] | None:
    """The span of the value that begins here: quoted, up to the surrounding quote, a word, or the rest of the line."""
    match = _OPEN.re.match(t, at)
    if match and match.end() <= eol:
        opener = match[1]
        a = match.end()
        closer = _CLOSERS.get(opener, opener)
        b = t.find(closer, a, eol)
        if len(closer) == 1 and closer in "\"'`":
            while b > a and t[b - 1] == "\\" and (len(t[a:b]) - len(t[a:b].rstrip("\\"))) % 2 == 1:
                b = t.find(closer, b + 1, eol)
        if b < 0:
            b = eol
        return (a, b) if b > a else None
    if quote:
        b = t.find(quote, at, eol)
        if b > at:
            return at, b
    word = _word(t, at, eol)
    if word is None or not to_end:
        return word
    b = eol
    if (nul := t.find("\0", at, eol)) >= 0:
        b = nul
    if b - at <= 1024:
        line = t[at:b]
        if cut := _REST_OF_LINE.re.search(line):
            line = line[: cut.start()]
        more = line[word[1] - at :].split()
        if not spaced and more:
            stops = more[0] in _COMMANDS or any(w[0] in "-/|&;<>~." or "=" in w for w in more)
            if stops:
                return word
        b = at + len(line.rstrip())
    else:
        b = word[1]
    return (at, b) if b > at else None


def _word(t: str, at: int, eol: int) -> tuple[int, int] | None:
    if eol < 0:
        eol = len(t)
    match = _OPEN.re.match(t, at)
    if match and match[1] in "\"'":
        b = t.find(match[1], match.end(), eol)
        b = eol if b < 0 else b
        return (match.end(), b) if b > match.end() else None
    match = _WORD.re.match(t, at, eol)
    if not match:
        return None
    b = match.end()
    if b - at == 4096:
        while further := _WORD.re.match(t, b, eol):
            b = further.end()
        return at, b
    value = match[0]
    if cut := _CUT.re.search(value, len(MASK) if value.startswith(MASK) else 1):
        b = at + cut.start()
    value = t[at:b].rstrip(",;")
    return (at, at + len(value)) if value else None


def _scalar_body(t: str, eol: int, indent: int, spans: Spans) -> tuple[int, bool]:
    """Masks the lines of a YAML block scalar, which are indented deeper than its key; says whether it is still open."""
    at = eol + 1
    while at <= len(t):
        if at == len(t):
            return at, True
        end = t.find("\n", at)
        end = len(t) if end < 0 else end
        line = t[at:end]
        body = line.strip()
        if body:
            if len(line) - len(line.lstrip()) <= indent:
                return at, False
            if body.startswith(("-----BEGIN", "$ANSIBLE_VAULT")):
                return at, False
            if body != MASK:
                first = at + len(line) - len(line.lstrip())
                spans.append((first, first + len(body)))
        at = end + 1
    return len(t), True
