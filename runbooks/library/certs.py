"""When the certificates in the usual folders end."""

import calendar

from guard.lines import lines_of
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import not_checked, says_permission, why_not
from runbooks.space import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Answer, Answers, Where

ID = "certs"
TITLE = Words("Certificates", "证书")
ABOUT = Words("when the certificates in the usual folders end", "常用目录下证书的到期时间")

ENDS = Threshold(
    21, 7, "days", below=True, source="certbot renews 30 days before the end: at 21 it has failed for a week"
)
FOLDERS = (
    "/etc/letsencrypt/live",
    "/etc/nginx",
    "/etc/apache2",
    "/etc/httpd",
    "/etc/haproxy",
    "/etc/postfix",
    "/etc/dovecot",
    "/etc/pki/tls/certs",
    "/etc/kubernetes/pki",
    "/var/lib/caddy",
)
FIND = (
    "find",
    *FOLDERS,
    "-maxdepth",
    "4",
    "-name",
    "*.pem",
    "-size",
    "-64k",
    "-o",
    "-maxdepth",
    "4",
    "-name",
    "*.crt",
    "-size",
    "-64k",
)
MOST = 24
SHOWN = 5
_NO_CERTIFICATES = (
    "privkey",
    "-key.",
    ".key",
    "_key",
    "dhparam",
    "ca-bundle",
    "ca-certificates",
    "chain.pem",
    "ssl-cert-snakeoil",
)
"""Parts of names of files that hold keys, parameters or bundles. `fullchain.pem` is taken by its `cert.pem`."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def commands(have: "Answers", where: "Where") -> "list[Command]":
    """The files, then the end of each."""
    if "find" not in have:
        return [Command("find", FIND, 5.0)]
    return [
        Command(f"x509:{path}", ("openssl", "x509", "-noout", "-enddate", "-subject", "-in", path), 3.0)
        for path in _files(have)[:MOST]
        if f"x509:{path}" not in have
    ]


def read(have: "Answers", where: "Where") -> "list[Finding]":
    """Those that end soon, worst first, and the next end of the others."""
    found, listing = _files(have), have.get("find")
    denied = listing is not None and says_permission(listing.stderr)
    soon, findings, fine = [], [], []
    for path in found[:MOST]:
        answer = have.get(f"x509:{path}")
        end = _end(answer)
        if end is not None:
            days, name = (end - where.now_s) / 86_400, _name(answer, path)
            if ENDS.severity(days) == Severity.OK:
                fine.append((days, name, path, answer))
            else:
                soon.append((days, _soon(days, name, path, answer)))
        elif not _is_no_certificate(answer):
            why = why_not(answer, "openssl", empty_is_fine=False) or Words("openssl does not tell", "openssl 没有给出")
            findings.append(not_checked(ID, Words(path, path), why, answer))
    findings = [finding for _, finding in sorted(soon, key=lambda one: one[0])] + findings
    if fine:
        days, name, path, answer = min(fine, key=lambda one: one[:3])
        count_en = "1 certificate is" if len(fine) == 1 else f"{len(fine)} certificates are"
        findings.append(
            Finding(
                "certs.ends",
                Severity.OK,
                Words(
                    f"{count_en} good for 3 weeks and more; the first to end is {name}, in {days:.0f} days.",
                    f"{len(fine)} 个证书三周内不会到期；最先到期的是 {name}，还有 {days:.0f} 天。",
                ),
                subject=path,
                number=round(days, 1),
                unit="days",
                threshold=ENDS,
                answer=answer,
            )
        )
    if denied:
        why = Words("some folders may not be read", "部分目录无权读取")
        findings.append(not_checked(ID, Words("all certificates", "全部证书"), why, listing, needs_root=True))
    if len(found) > MOST:
        why = Words(f"only the first {MOST} of {len(found)} were read", f"共 {len(found)} 个，只读取了前 {MOST} 个")
        findings.append(not_checked(ID, Words("all certificates", "全部证书"), why, listing))
    if not findings:
        # find ends with 1 when a folder is missing; that is the usual case and its output still counts.
        why_or_none = why_not(listing, "find") if listing is None or not listing.ended or listing.interference else None
        why = why_or_none or Words(
            "none in the usual folders (/etc/letsencrypt, /etc/nginx …)",
            "常用目录（/etc/letsencrypt、/etc/nginx 等）中没有",
        )
        findings.append(not_checked(ID, TITLE, why, listing))
    return findings


def _files(have: "Answers") -> "list[str]":
    """Files that may be certificates; of a certbot folder's four only `cert.pem`."""
    answer = have.get("find")
    if answer is None or not answer.ended:
        return []
    lines = [line for line in lines_of(answer.stdout) if line.startswith("/")]
    return [
        line for line in dict.fromkeys(lines) if not any(part in line.rpartition("/")[2] for part in _NO_CERTIFICATES)
    ]


def _end(answer: "Answer | None") -> "float | None":
    """Unix time of `notAfter=Dec 31 09:37:37 2030 GMT`."""
    for line in lines_of(answer.stdout) if answer is not None and answer.ended and not answer.exit_code else ():
        name, _, value = line.partition("=")
        fields = value.split()
        if name == "notAfter" and len(fields) >= 4 and fields[0] in _MONTHS and fields[2].count(":") == 2:
            try:
                hour, minute, second = (int(part) for part in fields[2].split(":"))

                date = (int(fields[3]), _MONTHS.index(fields[0]) + 1, int(fields[1]), hour, minute, second)
                return float(calendar.timegm((*date, 0, 0, 0)))
            except (ValueError, OverflowError):
                return None
    return None


def _name(answer: "Answer | None", path: str) -> str:
    """The common name, else the file."""
    for line in lines_of(answer.stdout) if answer is not None else ():
        if line.startswith("subject"):
            for part in line.partition("=")[2].replace("/", ",").split(","):
                key, _, value = part.partition("=")
                if key.strip() == "CN" and value.strip():
                    return value.strip()
    return path


def _soon(days: float, name: str, path: str, answer: "Answer | None") -> Finding:
    severity = ENDS.severity(days)
    word_en, word_zh = ("warning", "警告") if severity == Severity.WARN else ("critical", "严重")
    limit = f"{ENDS.crossed(severity):g}"
    where_en, where_zh = ("", "") if name == path else (f" ({path})", f"（{path}）")
    if days < 0:
        text = Words(f"{name}{where_en} ended {-days:.0f} days ago.", f"{name}{where_zh or ' '}已过期 {-days:.0f} 天。")
    else:
        text = Words(
            f"{name}{where_en} ends in {days:.0f} days ({word_en} below {limit}).",
            f"{name}{where_zh or ' '}还有 {days:.0f} 天到期（少于 {limit} 天{word_zh}）。",
        )
    return Finding(
        "certs.ends",
        severity,
        text,
        subject=path,
        number=round(days, 1),
        unit="days",
        threshold=ENDS,
        next=f"openssl x509 -noout -text -in {quoted(path)}",
        answer=answer,
    )


def _is_no_certificate(answer: "Answer | None") -> bool:
    """openssl read the file and found no certificate in it."""
    if answer is None or not answer.ended:
        return False
    said = answer.stderr.lower()
    return answer.exit_code == 1 and (
        "no start line" in said or "could not find certificate" in said or "could not read certificate" in said
    )
