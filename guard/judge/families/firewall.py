"""What looks at and changes the firewall. Source: iptables(8), nft(8), ufw(8), firewall-cmd(1), ipset(8)."""

from guard.judge.levels import R2, R3
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, reader, table
from guard.judge.tables import names, starts

EXAMPLES = {
    "R0": ("iptables -L -n -v", "iptables -S", "iptables -t nat -L", "iptables-save", "nft list ruleset",
        "ufw status verbose", "firewall-cmd --list-all", "ipset list", "fail2ban-client status",),
    "R2": ("iptables -A INPUT -j DROP", "iptables -P INPUT DROP", "nft add rule x", "ufw allow 22", "ufw enable",
        "firewall-cmd --reload", "ipset add x 1.1.1.1", "fail2ban-client unban x",),
    "R3": ("iptables -F", "iptables -X", "nft flush ruleset", "ufw reset", "ipset destroy x", "iptables -t nat -F",),
}  # fmt: skip

_LISTS = names("-L --list -S --list-rules -V --version -h --help -C --check")
_CHANGES = names("""
    -A -I -D -R -P -N -E -Z --append --insert --delete --replace --policy --new-chain --rename-chain --zero ?
""")
_FIREWALLD_READS = starts("--list --get --query --info --state --zone= --permanent --version --help --policy=")


def _iptables(call: Call) -> None:
    values = [word.value or "?" for word in call.args]
    call.need("netadm")
    level = -1
    for value in values:
        if value.startswith(("--mo", "-M")):
            level = max(level, R2)
        if value in ("-F", "--flush", "-X", "--delete-chain") or (
            value[:1] == "-" and value[:2] != "--" and len(value) < 6 and set("FX") & set(value) and value[1:].isalpha()
        ):
            level = R3
            break
        head = value.partition("=")[0]
        if head in _LISTS or (
            value.startswith("-")
            and not value.startswith("--")
            and ("L" in value or "S" in value)
            and set(value[1:]) <= set("LSnvxw46t")
        ):
            level = max(level, 0)
        elif head in _CHANGES:
            level = max(level, R2)
    # Zeroing goes along with a list, in a bundle or as the beginning of the long name too.
    if any(value.startswith("--z") or (value[:1] == "-" and value[1:2] != "-" and "Z" in value) for value in values):
        level = max(level, R2)
    if level == R3:
        call.note(R3, "firewall.flush", "removes the firewall's rules", None, "iptables(8)")
    elif level != 0:
        call.note(R2, "firewall.change", "changes the firewall", None, "iptables(8)")


def _feeds_nft(value: str) -> bool:
    """Whether the option makes nft take commands from a file or from standard input; bundled and begun names too."""
    if value.startswith("--"):
        return value.startswith(("--f", "--int")) or value in ("--i", "--in")
    return value[:1] == "-" and bool(set("fi") & set(value))


def _nft(call: Call) -> None:
    call.need("netadm")
    words = [word.value if word.value and word.value.strip() else "?" for word in call.args]
    rest = [value for value in words if not value.startswith("-")]
    text = " ".join(words)
    if any(piece.split()[:1] == ["flush"] for piece in text.replace("\n", ";").split(";")):
        call.note(R3, "firewall.flush", "removes the firewall's rules", None, "nft(8)")
    if any(_feeds_nft(value) for value in words):
        call.note(R2, "firewall.file", "applies a file of rules", None, "nft(8)")
    elif (";" in text or "\n" in text) and not (rest and rest[0].startswith("list")):
        call.note(R3 if "flush" in text else R2, "firewall.change", "changes the firewall", None, "nft(8)")
    elif not rest or rest[0].split()[0] in ("list", "monitor", "describe"):
        # One command a line; everything that follows a `;` is another.
        pieces = [piece.split()[:1] for piece in text.replace("\n", ";").split(";")]
        options = [piece for piece in words if piece.startswith("-")]
        heads = [head[0] for head in pieces[1 if options else 0 :] if head]
        if any(head not in ("list", "monitor", "describe") and not head.startswith("-") for head in heads) or any(
            option.startswith(("-I", "-D", "--in", "--de", "-f", "-i", "-o", "--op")) for option in options
        ):
            call.note(R2, "firewall.change", "changes the firewall", None, "nft(8)")
    elif rest[0].split()[0] in ("flush",) or "flush" in rest[0]:
        call.note(R3, "firewall.flush", "removes the firewall's rules", None, "nft(8)")
    else:
        call.note(R2, "firewall.change", "changes the firewall", None, "nft(8)")


def _ufw(call: Call) -> None:
    values = [word.value or "?" for word in call.args if word.value != "--dry-run"]
    if (
        not values
        or values[0] in ("status", "version", "--version", "--help", "show")
        or values[:2] in (["app", "list"], ["app", "info"])
    ):
        return
    if "reset" in values:
        call.note(R3, "firewall.reset", "removes the firewall's rules", None, "ufw(8)")
    else:
        call.note(R2, "firewall.change", "changes the firewall", None, "ufw(8)")


def _firewalld(call: Call) -> None:
    values = [word.value or "?" for word in call.args]
    values = [value for at, value in enumerate(values) if not (at and values[at - 1] in ("--zone", "--policy"))]
    values = [value for value in values if value not in ("--zone", "--policy")]
    if values and all(value.startswith(_FIREWALLD_READS) and not value.startswith("--set") for value in values):
        return
    call.note(R2, "firewall.change", "changes the firewall", None, "firewall-cmd(1)")


_SET_ACTIONS = names("-f -file destroy flush create add del swap rename restore -X -F -N -A -D -W -E -R -!")


PROGRAMS: dict[str, Program] = {
    **many("iptables ip6tables iptables-legacy iptables-nft", custom(_iptables)),
    **many("iptables-save ip6tables-save", reader("-c -t: -M:!exec --modprobe:!exec -f,--file:!write",
            operands="data", need="netadm", plain=False, unknown="R2")),
    **many("iptables-restore ip6tables-restore netfilter-persistent", table("-t,--test!ok", operands="data",
            level="R3", text="replaces the firewall's rules")),
    "nft": custom(_nft),
    "ipset": custom(lambda call: None if call.args and call.args[0].value in ("list", "-L", "save", "test",
            "version", "help", "-o") and not any(word.value in _SET_ACTIONS for word in call.args) else call.note(
            R3 if any(word.value in ("destroy", "flush", "-F", "-X") for word in call.args) else R2,
            "firewall.ipset", "changes sets of addresses")),
    "ufw": custom(_ufw),
    **many("firewall-cmd firewall-offline-cmd", custom(_firewalld)),
    "fail2ban-client": custom(lambda call: None if call.args and call.args[0].value in ("status", "ping", "version",
            "banned", "get", "-V", "-d") else call.note(R2, "firewall.fail2ban", "changes who is banned")),
}  # fmt: skip
