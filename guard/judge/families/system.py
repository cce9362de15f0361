"""The machine itself: processes, memory, kernel, services of systemd, users. Source: the man page of each program."""

from guard.judge.levels import R1, R2, R3
from guard.judge.options import Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, reader, table, verbs
from guard.judge.shell.syntax import Word
from guard.judge.tables import names, starts
from guard.judge.touches import INCOMPLETE
from guard.judge.units import begins, is_pattern, over_the_bus, starts_what

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = {
    "R0": ("free -m", "df -h", "du -sh /var", "uptime", "vmstat 1 3", "iostat -x 1 2", "lscpu", "lsmem", "lsusb",
        "dmesg | tail", "dmesg -T", "uname -a", "id bob", "who -a", "w", "last -n 5", "pgrep -a nginx",
        "pidof sshd", "sysctl net.ipv4.ip_forward", "sysctl -a", "sysctl -n kernel.hostname",
        "systemctl status nginx", "systemctl list-units --failed", "systemctl --failed", "systemctl is-active ssh",
        "systemctl cat nginx", "systemctl show -p MainPID nginx", "journalctl -u nginx -n 50", "journalctl -f",
        "journalctl --disk-usage", "loginctl", "loginctl list-sessions", "timedatectl", "timedatectl status",
        "hostnamectl", "crontab -l", "kill -l", "kill -0 1", "systemd-analyze blame", "lsmod", "modinfo ext4",
        "getent passwd", "systemctl --user list-timers", "ulimit -n", "pstree -p", "nproc", "env", "printenv PATH",
        "groups", "whoami", "swapon --show", "localectl status", "resolvectl status",),
    "R1": ("systemctl start nginx", "systemctl reload nginx", "systemctl restart nginx", "renice -n 5 -p 10",
        "service nginx restart", "systemctl try-restart app.service",),
    "R2": ("systemctl stop nginx", "systemctl disable nginx", "systemctl restart sshd", "systemctl daemon-reexec",
        "systemctl mask x", "systemctl reboot", "reboot", "shutdown -r now", "kill 1234", "kill -9 1234",
        "pkill nginx", "killall -9 x", "sysctl -w a=1", "sysctl a=1", "sysctl -p", "dmesg -C", "dmesg -c",
        "journalctl --rotate", "modprobe x", "useradd bob", "usermod -aG sudo bob", "passwd bob", "crontab f",
        "crontab -e", "timedatectl set-time x", "hostnamectl set-hostname x", "systemctl edit nginx", "swapoff -a",
        "visudo", "chsh -s /bin/sh bob", "systemctl foo x", "systemctl restart postgresql docker",
        "service ssh stop", "init 6", "setenforce 0", "loginctl terminate-user bob",
        "systemctl isolate rescue.target", "groupdel x", "sysctl --system", "systemctl start reboot.target",
        "systemctl start suspend", "systemctl start srv.mount", "systemctl try-restart '*'", "systemctl restart 'ss?'",
        "service '*.service' restart", "loginctl reboot", "reboot -f", "shutdown -k now",),
    "R3": ("shutdown now", "poweroff", "halt", "systemctl poweroff", "userdel bob", "userdel -r bob", "crontab -r",
        "shutdown -h now", "init 0", "telinit 0", "systemctl halt", "kill -9 -1", "journalctl --vacuum-time=1d",
        "systemctl start poweroff.target", "systemctl --no-block start systemd-poweroff", "systemctl isolate runlevel0",
        "systemctl restart '*'", "systemctl enable --now halt.target", "loginctl poweroff", "reboot -fp",
        "shutdown -r -h now", "telinit -t 5 0", "service halt start",
        "qm destroy 100",),
}  # fmt: skip

_CAREFUL_UNITS = starts("""
    ssh sshd network networking systemd- dbus docker containerd crio kubelet podman mysql mariadb postgres redis
    mongod rabbitmq kafka elasticsearch opensearch etcd cassandra memcached zookeeper nats firewalld ufw nftables
    iptables NetworkManager wpa_supplicant libvirtd polkit gdm lightdm display-manager user@ getty serial-getty
    multipathd iscsid lvm2 nfs rpcbind haproxy_ keepalived wg-quick openvpn ceph glusterd clickhouse influxdb
    activemq mosquitto consul vault k3s rke2 patroni pgbouncer
""")  # fmt: skip
"""Units whose restart can lock people out or lose data."""


def _careful(name: str) -> bool:
    return name.startswith(_CAREFUL_UNITS) or name.endswith(
        (".target", ".mount", ".swap", ".slice", ".socket", ".device")
    )


def unit_change(call: Call, verb: str, words: "list[Word]") -> None:
    """start, restart, reload of units: R1, or R2 for those that others stand on."""
    units = [word for word in words if not (word.value or "x").startswith("-")]
    if not units:
        call.note(R2, "systemd.no-unit", f"{verb} without a unit")
    for word in units:
        value = call.value(word)
        if value is None or word.globs:
            call.note(R2, "systemd.dynamic-unit", "a unit that the text does not name", word)
            continue
        call.effect("service", value)
        if is_pattern(value):
            text = f"{verb} of every unit that {value} names for systemd, which the text does not tell"
            call.note(R2, "systemd.pattern", text, word, "systemctl(1)")
            call.judge.flags.add(INCOMPLETE)
            continue
        call.judge.plan.append(("service", value))
        if (_careful(value) or value.startswith("/")) and verb != "start":
            call.note(
                R2, "systemd.careful-unit", f"{verb} of {value} can lock people out or lose work", word, "systemctl(1)"
            )


def _started(call: Call, verb: str, words: "list[Word]") -> None:
    """Units whose start is the end of something: `start poweroff.target` switches off as `poweroff` does."""
    for word in words:
        value = call.value(word)
        if value is None or value.startswith("-"):
            continue
        level = starts_what(value)
        if level == R3:
            text = f"{verb} of {value} can switch the machine off; nobody may be able to switch it on again"
            call.note(R3, "power.off", text, word, "systemd.special(7)")
        elif level and not is_pattern(value):
            text = f"{verb} of {value} changes what the whole machine is doing"
            call.note(R2, "systemd.whole-machine", text, word, "systemd.special(7)")


_CHANGES_UNITS = names("""
    start restart reload try-restart reload-or-restart try-reload-or-restart condrestart force-reload
""")


def _systemctl(call: Call, verb: str, rest: "list[Word]", level: int) -> None:
    if verb in _CHANGES_UNITS:
        unit_change(call, verb, rest)
    elif level:
        for word in rest:
            if word.value is not None and not word.value.startswith("-"):
                call.effect("service", word.value)
    if begins(verb, now=any(word.value == "--now" for word in call.args)):
        _started(call, verb, rest)


_SYSTEMCTL_OPTIONS = (
    "-t,--type: --state: -p,--property: -P: -a,--all -r,--recursive --reverse --with-dependencies "
    "--job-mode: -T,--show-transaction --fail "
    "-q,--quiet --no-block --wait --no-wall --no-reload --no-legend --legend: --no-pager "
    "--no-ask-password --system --user --global --runtime "
    "-f,--force!R2 -s,--signal: --kill-whom,--kill-who: --what: -n,--lines: -o,--output: -l,--full "
    "--plain --failed --root:!R2 --image:!R2 --now "
    "-M,--machine: -H,--host:!R2 --show-types --value -i,--ignore-inhibitors --check-inhibitors: "
    "--dry-run --preset-mode: --timestamp: "
    "--before --after --firmware-setup!R2 --boot-loader-menu: --read-only --mkdir --marked -h,--help "
    "--version -6 --message: --drop-in: --when: -v,--verbose -C,--capsule:"
)  # fmt: skip
SYSTEMCTL = verbs(
    _SYSTEMCTL_OPTIONS,
    """R0 status|show|cat|is-active|is-enabled|is-failed|is-system-running|list-units|list-unit-files|list-timers|
        list-sockets|list-jobs|list-dependencies|list-machines|list-paths|list-automounts|help|get-default|
        show-environment|whoami
    R1 start|restart|reload|try-restart|reload-or-restart|try-reload-or-restart|condrestart|force-reload|
        reset-failed|daemon-reload
    R2 stop|disable|enable|mask|unmask|edit|kill|isolate|set-default|daemon-reexec|reenable|preset|preset-all|link|
        revert|set-property|set-environment|unset-environment|import-environment|reboot|kexec|soft-reboot|suspend|
        hibernate|hybrid-sleep|rescue|emergency|default|freeze|thaw|bind|mount-image|cancel|clean|switch-root|
        log-level|log-target|service-log-level|service-watchdogs|sleep|add-wants|add-requires
    R3 poweroff|halt|exit""",
    check=_systemctl, need="bus", plain=True, danger="-H,--host:!R2 --root:!R2 --image:!R2",
)  # fmt: skip


def _service(call: Call) -> None:
    words = [word for word in call.args if word.value not in ("--full-restart",)]
    if not words or words[0].value in ("--status-all", "--help", "--version", "-h"):
        return
    name = words[0].value
    if name is None or words[0].globs or "/" in name or name.startswith("."):
        call.note(R2, "service.path", "runs a program by a path that leaves the folder of services", words[0], "law 2")
        if name is not None and len(words) > 1:
            call.effect("exec", name)
    verb = words[1].value if len(words) > 1 else None
    if verb == "status":
        return
    if verb in ("start", "restart", "reload", "force-reload", "try-restart"):
        call.note(R1, f"service.{verb}", f"service {words[0].shape} {verb}")
        unit_change(call, verb, [words[0]])
        if begins(verb, now=False):
            _started(call, verb, words[:1])
        return
    call.note(R2, "service.change", f"service {words[0].shape} {verb or ''}".strip())


def _kill(call: Call) -> None:
    args = list(call.args)
    values = [word.value for word in args]
    if (
        values
        and values[0] in ("-l", "-L", "--list", "--table")
        and not any((value or "-").startswith("-") for value in values[1:])
    ):
        return
    if len(values) >= 2 and (
        values[0] in ("-0", "-s0") or (values[0] in ("-s", "-n", "--signal") and values[1] in ("0", "EXIT"))
    ):
        # A later option would name another signal, so only process numbers may follow.
        targets = args[1 if values[0] in ("-0", "-s0") else 2 :]
        if not any((word.value or word.prefix).startswith("-") for word in targets):
            if any(word.value is None and not word.prefix and not word.quoted for word in targets):
                call.flag("options-from-expansion")
            return
    if any(value == "-1" for value in values[1:]) or (values and values[0] == "--" and "-1" in values):
        call.note(R3, "process.kill-all", "signals every process", None, "kill(2)")
        return
    if "1" in values and any(_ends_machine(value or "") for value in values):
        call.note(R3, "power.off", "tells the first process to switch the machine off", None, "systemd(1)")
        return
    call.effect("process", " ".join(value or "?" for value in values))
    call.note(R2, "process.kill", "ends or signals processes", None, "kill(1)")


_OFF_SIGNALS = names("rtmin+3 rtmin+4 rtmin+13 rtmin+14 37 38 47 48 rtmax-27 rtmax-26 rtmax-17 rtmax-16")
"""By which systemd as the first process halts and powers off, at once or in order; busybox's init takes others."""


def _ends_machine(value: str) -> bool:
    return value.lower().lstrip("-").removeprefix("s").removeprefix("ig") in _OFF_SIGNALS


def _kill_by_name(call: Call, parsed: Parsed) -> None:
    if parsed.has("-l") and len(call.args) == 1:
        return
    everything = call.name == "pkill" and any(word.value in ("", ".", ".*", "^") for word in parsed.operands)
    if call.name == "killall5" or everything:
        call.note(R3, "process.kill-all", "signals every process", None, f"{call.name}(1)")
    call.note(R2, "process.kill", "ends or signals processes by name")


def _given(words: "Sequence[Word]") -> "tuple[set[str], list[str]]":
    """Letters and long names of the options given; a word that the text does not tell has none."""
    values = [word.value or "" for word in words]
    letters = {letter for value in values if value[:1] == "-" and value[1:2] != "-" for letter in value[1:]}
    return letters, [value for value in values if value.startswith("--")]


def _is_long(given: "list[str]", *options: str) -> bool:
    """Whether one of these was given, or the beginning of one that getopt_long(3) takes for it."""
    return any(len(value) > 3 and option.startswith(value) for value in given for option in options)


def _shutdown(call: Call) -> None:
    letters, given = _given(call.args)
    off = bool(letters & set("hHP")) or _is_long(given, "--halt", "--poweroff")
    if "--help" in given or (not off and ("--show" in given)):
        return
    if "c" in letters and not off:
        call.note(R1, "power.cancel", "cancels a shutdown")
        return
    # Of several the last one counts for some versions, the first for others.
    if (not off and ("r" in letters or _is_long(given, "--reboot"))) or "k" in letters:
        call.note(R2, "power.reboot", "restarts the machine")
        return
    call.note(R3, "power.off", "switches the machine off; nobody may be able to switch it on again")


def _init(call: Call) -> None:
    levels = [word.value for word in call.args]
    if "0" in levels:
        call.note(R3, "power.off", "switches the machine off")
    elif levels and levels[0] not in ("--version", "--help"):
        call.note(R2, "power.runlevel", "changes the run level")


def _reboot(call: Call) -> None:
    letters, given = _given(call.args)
    if "--help" in given:
        return
    if [word.value for word in call.args] in (["-w"], ["--wtmp-only"]):
        call.note(R1, "power.wtmp", "writes a record of a shutdown")
        return
    by_name = call.name in ("poweroff", "halt") and not _is_long(given, "--reboot")
    if by_name or "p" in letters or _is_long(given, "--poweroff", "--halt"):
        call.note(R3, "power.off", "switches the machine off; nobody may be able to switch it on again")
    else:
        call.note(R2, "power.reboot", "restarts the machine")


def _bus_call(call: Call, verb: str = "call", rest: "Sequence[Word]" = (), level: int = R2) -> None:
    """What a call over the bus switches off or starts."""
    if level and over_the_bus([word.value or word.shape for word in rest or call.args]) == R3:
        call.note(R3, "power.off", "asks over the bus for the machine to be switched off", None, "systemd.special(7)")


def _sysctl(call: Call, parsed: Parsed) -> None:
    for word in parsed.operands:
        value = word.value
        if (value is not None and "=" in value) or (value is None and "=" in word.shape):
            call.note(R2, "kernel.sysctl", "sets a kernel parameter", word)


def _crontab(call: Call, parsed: Parsed) -> None:
    if parsed.has("-r"):
        call.note(R3, "cron.remove", "removes the whole table of jobs", None, "crontab(1)")
    elif parsed.has("-l") or parsed.has("-V") or parsed.has("-T"):
        return
    else:
        call.note(R2, "cron.change", "changes the jobs that run by time", None, "crontab(1)")


def _bare_interactive(call: Call) -> None:
    values = [word.value or "" for word in call.args]
    if call.name == "passwd" and values and values[0] in ("-S", "--status", "--help"):
        return
    if call.name == "chage" and values and values[0] in ("-l", "--list"):
        return
    if values and values[0] in ("--help", "--version"):
        return
    if call.name == "visudo" and values and all(value in ("-c", "-q", "-cq", "--check", "--quiet") for value in values):
        call.flag("helper")
        return
    call.effect("privilege", call.name)
    call.note(R2, f"users.{call.name}", "changes accounts or passwords")


def _logs(call: Call, parsed: Parsed) -> None:
    """Programs that take another file in place of their own log or device."""
    if call.name in ("last", "lastb", "who", "users", "lsusb", "aureport"):
        for word in parsed.operands:
            if word.value is not None and ("/" in word.value or "." in word.value):
                call.reads(word)


def _getent(call: Call) -> None:
    words = [word for word in call.args if not (word.value or "x").startswith("-")]
    if not words:
        return
    base = call.value(words[0])
    if base is None or any(word.value in ("shadow", "gshadow") for word in words[:2]):
        call.note(R2, "path.secret", "shows password hashes", words[0], "law 4")
        call.effect("secret-read", "/etc/shadow")
    elif base.startswith(("hosts", "ahosts")) and len(words) > 1:
        _resolve(call, base, words[1:])


def _zfs_like(call: Call, verb: str, rest: "list[Word]", level: int) -> None:
    """`xl dmesg -c` clears what it shows."""
    if verb == "dmesg" and any((word.value or "-c").startswith("-c") for word in rest):
        call.note(R2, "xen.clear", "clears the hypervisor's messages")


def _hostname_verb(call: Call, verb: str, rest: "list[Word]") -> None:
    """`hostnamectl hostname` shows, with a name it sets."""
    if any(not (word.value or "x").startswith("-") for word in rest):
        call.note(R2, f"hostnamectl.{verb}", f"sets the {verb}")


def _resolve(call: Call, verb: str, rest: "list[Word]") -> None:
    for word in rest:
        if call.value(word) is None:
            call.note(
                R2,
                "network.dynamic",
                "the name that is asked for is not told by the text, so it can carry data out",
                word,
                "law 10",
            )
    call.judge.peers.append(("", 53, "dns"))


_CTL = (
    "--no-pager --no-legend -l,--full -a,--all -p,--property: --value -n,--lines: -o,--output: "
    "-q,--quiet -M,--machine: -H,--host:!R2 --no-ask-password -h,--help --version --json: -j "
    "--adjust-system-clock --monitor --static --transient --pretty --kill-whom: -s,--signal: "
    "--no-convert --user --system"
)


PROGRAMS: dict[str, Program] = {
    **many("free uptime vmstat mpstat iostat lscpu lsmem lsusb lsmod modinfo uname id who w "
        "users groups whoami pgrep pidof pstree pmap pwdx "
        "lastb last slabtop tload runlevel cpuid biosdecode numastat acpi lsipc "
        "lslocks lsns  "
        "lsirq ipcs lsinitramfs lsinitrd lsscsi "
        "lsdev systemd-cgtop systemd-cgls systemd-detect-virt "
        "systemd-delta systemd-path systemd-escape systemd-id128 sestatus getenforce getsebool aa-status "
        "loadavg locale cpu-checker kvm-ok virt-what "
        "getcap getpcaps lsattr numfmt isainfo uuidgen mcookie lsb_release hostid "
        "smem aureport", reader("", operands="data", check=lambda call, parsed: _logs(call, parsed)),),
    "arch": reader("", operands="none"),
    "utmpdump": reader("-f -r,--reverse!ok -o,--output:!write -h -V", unknown="R2"),
    "dmesg": reader("-C,--clear!R2 -c,--read-clear!R2 -D,--console-off!R2 -d,--show-delta -E,--console-on!R2 "
        "-e,--reltime -F,--file:!read -f,--facility: -H,--human -k,--kernel -L,--color? "
        "-l,--level: -n,--console-level:!R2 -P,--nopager --noescape -p,--force-prefix -r,--raw "
        "-S,--syslog -s,--buffer-size: -T,--ctime -t,--notime --time-format: -u,--userspace "
        "-W,--follow-new -w,--follow -x,--decode --since: --until: -J,--json -h,--help -V,--version -K:",
        operands="none", unknown="R2"),
    "systemctl": SYSTEMCTL,
    "journalctl": reader("-u,--unit: --user-unit: -n,--lines? -f,--follow -r,--reverse -o,--output: -p,--priority: "
        "-S,--since: -U,--until: -b,--boot? -k,--dmesg -x,--catalog -e,--pager-end -a,--all -q,--quiet "
        "-g,--grep: --case-sensitive? -m,--merge --no-pager --no-hostname --no-full -l,--full --utc "
        "-D,--directory: --file: --root: --image: -t,--identifier: --facility: -F,--field: -N,--fields "
        "--list-boots --disk-usage "
        "--header --verify --verify-key:!secret --system --user -M,--machine: --output-fields: --cursor: "
        "--after-cursor: --show-cursor --cursor-file:!write --list-catalog --dump-catalog --namespace: "
        "--truncate-newline --no-tail -T: --exclude-identifier: "
        "--rotate!R2 --vacuum-size:!R3 --vacuum-time:!R3 --vacuum-files:!R3 -[0-9] --flush!R2 --sync!R2 "
        "--relinquish-var!R2 --smart-relinquish-var!R2 --update-catalog!R2 --setup-keys!R2 --interval: "
        "--force -h,--help --version -c: -i: --list-invocations --invocation: -I", operands="data", need="bus",
        unknown="R2"),
    "loginctl": verbs(_CTL,
        """R0 list-sessions|session-status|show-session|list-users|user-status|show-user|list-seats|seat-status|
            show-seat
        R1 lock-session|unlock-session|lock-sessions|unlock-sessions|activate
        R2 terminate-session|terminate-user|terminate-seat|kill-session|kill-user|enable-linger|disable-linger|
        attach|flush-devices|reboot|suspend|hibernate|hybrid-sleep|suspend-then-hibernate|sleep
        R3 poweroff|halt""", anywhere=True, need="bus", plain=True),
    "timedatectl": verbs(_CTL,
        """R0 status|show|list-timezones|timesync-status|show-timesync
        R2 set-time|set-timezone|set-ntp|set-local-rtc|ntp-servers|revert""", anywhere=True, need="bus", plain=True),
    "hostnamectl": verbs(
        _CTL,
        "R0 status|show|hostname|icon-name|chassis|deployment|location\nR2 set-hostname|set-icon-name|set-chassis|"
        "set-deployment|set-location", anywhere=True, need="bus", plain=True, details=dict.fromkeys(("hostname",
            "icon-name",
                "chassis", "deployment", "location"), _hostname_verb)),
    "localectl": verbs(_CTL,
        """R0 status|list-locales|list-keymaps|list-x11-keymap-models|list-x11-keymap-layouts|list-x11-keymap-variants|
        list-x11-keymap-options
        R2 set-locale|set-keymap|set-x11-keymap""", anywhere=True, need="bus", plain=True),
    **many("resolvectl systemd-resolve", verbs(
            _CTL + " -4 -6 -i,--interface: -t,--type: -c,--class: --legend: --cache: --search: --raw --statistics "
            "--status",
            """R0 status|statistics|query|service|openpgp|tlsa|dns|domain|default-route|llmnr|mdns|dnsovertls|
                dnssec|nta|
        show-cache|show-server-state|monitor
        R2 flush-caches|reset-statistics|reset-server-features|revert|log-level""", need="bus", anywhere=True, details={
                "query": _resolve, "service": _resolve, "openpgp": _resolve, "tlsa": _resolve}, check=lambda call,
            verb, rest, level: call.note(R2, "resolved.set", "sets a link's name servers") if verb in ("dns",
                "domain", "default-route", "llmnr", "mdns", "dnsovertls", "dnssec",
                    "nta") and len([w for w in rest if not (
                        w.value or "").startswith("-")]) > 1 else None)),
    "networkctl": verbs(_CTL + " -s,--stats",
        """R0 list|status|lldp|label|cat
        R2 up|down|renew|forcerenew|reconfigure|reload|delete|edit|mask|unmask""",
        anywhere=True, need="bus", plain=True),
    "machinectl": verbs(_CTL,
        """R0 list|status|show|list-images|image-status|show-image
        R2 start|login|shell|enable|disable|poweroff|reboot|terminate|kill|copy-to|copy-from|bind|clone|rename|
        read-only|pull-tar|pull-raw|import-tar
        R3 remove|clean|set-limit""", need="bus", anywhere=True),
    "coredumpctl": verbs(_CTL + " -1 -S: -U: -r -F: -D: --file: --directory:", "R0 list|info\nR2 dump|debug|gdb",
        need="bus", anywhere=True),
    "busctl": verbs(_CTL + " --address:!R2 --show-machine --unique --acquired --activatable --match: --size: --list "
        "--expect-reply: --auto-start: --allow-interactive-authorization: --timeout: --verbose -N",
        "R0 list|status|tree|introspect|get-property\nR2 call|set-property|emit|monitor|capture", need="bus",
            anywhere=True, check=_bus_call),
    **many("dbus-send gdbus qdbus dbus-monitor", table("", operands="data", level="R2",
            text="talks to other programs over the bus", check=lambda call, parsed: _bus_call(call))),
    "systemd-analyze": verbs(
        _CTL + " --order --require --from-pattern: --to-pattern: --fuzz: --man: --iterations: --base-time: "
        "--threshold: --security-policy: --offline: --root: --image:",
        """R0 time|blame|critical-chain|plot|dot|dump|cat-config|unit-paths|calendar|timestamp|timespan|security|verify|
        condition|exit-status|capability|syscall-filter|filesystems|inspect-elf|unit-files|fdstore|architectures|
        has-tpm2|pcrs|srk
        R2 log-level|log-target|service-watchdogs|set-log-level""", need="bus", anywhere=True),
    "service": custom(_service),
    "rc-service": custom(_service),
    **many("rc-status", reader("", operands="data")),
    "rc-update": verbs("-a -s -v -q -h -V", "R0 show\nR2 add|del|delete"),
    **many("chkconfig update-rc.d sysv-rc-conf update-alternatives", table(
            "--list,-l!ok --display!ok --query!ok --get-selections!ok --help --version", operands="data",
            check=lambda call, parsed: None if any(parsed.has(n) for n in ("--list", "--display", "--query",
                    "--get-selections")) else call.note(R2, f"system.{call.name}",
                "changes what starts or which program a name means"), unknown="R2")),
    "supervisorctl": verbs("-c,--configuration:!config -s,--serverurl: -u: -p: -i",
        """R0 status|avail|pid|tail|version|maintail|help
        R1 start|restart
        R2 stop|reload|reread|update|shutdown|clear|add|remove|signal|fg|open""", flags=("helper",)),
    **many("kill", custom(_kill)),
    **many("pkill killall skill snice slay xkill killall5 zkill", table("-l,--list!ok", operands="data",
            check=_kill_by_name)),
    "renice": table("", operands="data", level="R1"),
    **many("shutdown", custom(_shutdown)),
    **many("reboot poweroff halt", custom(_reboot)),
    **many("init telinit", custom(_init)),
    "sysctl": reader("-a,-A,-X,--all -n,--values -N,--names -e,--ignore -q,--quiet -w,--write!R2 -p,--load?!R2 "
        "--system!R2 -b,--binary -r,--pattern: --deprecated --dry-run -d -f?!R2 -h,--help -V,--version",
        operands="data", check=_sysctl, unknown="R2"),
    **many("modprobe rmmod insmod depmod update-initramfs dracut mkinitcpio mkinitrd kexec grub-install "
        "grub-mkconfig update-grub grub2-mkconfig grubby", table(
            "-n,--dry-run!ok --show-depends,-D!ok -c,--showconfig!ok", operands="data", level="R2",
            text="changes the kernel or how the machine starts")),
    **many("useradd adduser usermod groupadd addgroup groupmod gpasswd passwd chpasswd newusers chsh chfn "
        "chage vipw vigr visudo pwconv grpconv newgrp sg pam-auth-update authselect realm chgpasswd", custom(
            _bare_interactive)),
    **many("userdel deluser groupdel delgroup", custom(lambda call: call.note(R3 if call.name in ("userdel",
                    "deluser") else R2, f"users.{call.name}", "removes an account or group"))),
    "crontab": table("-u: -l!ok -r!R3 -e!R2 -i -s -V -T:!ok -n -c", operands="data", check=_crontab),
    **many("swapoff swapon", table("-s,--summary!ok --show?!ok -v --noheadings --raw --bytes --version --help",
            operands="data", check=lambda call, parsed: None if parsed.has("-s") or parsed.has("--show") or not (
                parsed.options or parsed.operands) else call.note(R2, "system.swap", "changes swap"), unknown="R2")),
    **many("setenforce semodule aa-enforce aa-complain aa-disable apparmor_parser auditctl augenrules", table(
            "-l,--list!ok -s!ok --list-modules", operands="data", check=lambda call, parsed: None if (parsed.has(
                    "-l") or parsed.has("-s")) and call.name in ("auditctl", "semodule") else call.note(R2,
                f"security.{call.name}", "changes the security policy"), unknown="R2")),
    **many("logger wall write mesg", table("", operands="data", level="R1", text="writes to logs or terminals")),
    "logrotate": table("-d,--debug!ok -v -s:!write -f,--force", operands="data",
        check=lambda call, parsed: None if parsed.has(
            "-d") else call.note(R2, "logs.rotate", "rotates logs and runs their scripts"), unknown="R2"),
    **many("lslogins", reader("", operands="data")),
    "ldd": table("", operands="data", level="R2", text="ldd can run the program that it looks at",
        rule="program.ldd"),
    "ldconfig": table("-p,--print-cache!ok -v -V --version --help -N -X", operands="data", check=lambda call,
        parsed: None if parsed.has("-p") or parsed.has("-V") else call.note(R2, "system.ldconfig",
            "rebuilds the linker cache"), unknown="R2"),
    **many("tuned-adm", verbs("", "R0 active|list|recommend|verify|profile_info\nR2 profile|off|auto_profile")),
    "getent": custom(_getent, plain=True),
    **many("qm pct pvesh pveum xe xl", verbs("-h",
            """R0 list|config|status|showcmd|pending|listsnapshot|get|ls|version|info|vm-list|host-list|sr-list|
                top|uptime|
        vcpu-list|dmesg
        R1 start|resume
        R3 destroy|delete|delsnapshot|rollback|vm-destroy|vm-uninstall|sr-destroy|snapshot-destroy""",
            check=_zfs_like)),
    "virsh": verbs("-c,--connect: -r,--readonly -q -t -v -V -k: -K: -d: -h,--help --version -l: -e:",
        """R0 list|dominfo|domstate|dumpxml|nodeinfo|net-list|net-info|net-dumpxml|pool-list|pool-info|
            pool-dumpxml|vol-list|
        vol-info|vol-dumpxml|snapshot-list|snapshot-info|snapshot-dumpxml|domiflist|domblklist|domblkinfo|domblkstat|
        domifaddr|domifstat|domstats|dommemstat|vcpuinfo|vcpucount|capabilities|version|uri|hostname|sysinfo|
        iface-list|iface-dumpxml|nodedev-list|nodedev-dumpxml|nwfilter-list|secret-list|domid|domname|domuuid|
        cpu-stats|nodememstats|nodecpustats|help|net-dhcp-leases|freecell
        R1 start|resume|net-start|pool-start|pool-refresh
        R3 destroy|undefine|vol-delete|pool-delete|pool-destroy|snapshot-delete|snapshot-revert|net-destroy|
        net-undefine|vol-wipe|managedsave-remove|pool-undefine|checkpoint-delete|iface-undefine|secret-undefine""",
        flags=("helper",), danger="--security-info!secret --file:!write"),
    "sync": table("", operands="data", level="R1"),
}  # fmt: skip
