"""Settings of macOS and of desktops: the first words say whether a tool looks or changes. Source: their man pages."""

from guard.judge.levels import R2, R3
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, reader, table, verbs
from guard.judge.tables import names

EXAMPLES = {
    "R0": ("defaults read com.apple.finder", "diskutil list", "launchctl list", "scutil --dns", "pmset -g batt",
        "networksetup -listallhardwareports", "tmutil status", "sw_vers", "plutil -p a.plist", "csrutil status",
        "dscl . -list /Users", "dscl . -read /Users/bob", "mdfind -name x", "gsettings get a b", "xrandr",
        "spctl --status", "softwareupdate -l", "nvram -p", "system_profiler SPUSBDataType"),
    "R2": ("defaults write a b c", "launchctl unload x", "scutil --set HostName x", "pmset sleep 0", "csrutil disable",
        "networksetup -setdnsservers Wi-Fi 1.1.1.1", "spctl --master-disable", "softwareupdate -i -a", "nvram x=1",
        "dscl . -create /Users/x", "plutil -convert xml1 a.plist", "gsettings set a b c", "xrandr --output x --off",
        "open x", "osascript -e 'do shell script \"id\"'", "security dump-keychain", "log stream"),
    "R3": ("diskutil eraseDisk JHFS+ x disk2", "tmutil delete /x", "dscl . -delete /Users/bob", "defaults delete a"),
}  # fmt: skip

_CHANGES = "changes the desktop or the system's settings"

_READS = {
    "defaults": names("read read-type domains find help"),
    "diskutil": names("list info information activity listfilesystems apfs_ cs_ verifyvolume_"),
    "launchctl": names("list print print-disabled blame hostinfo managerpid manageruid managername version help "
    "dumpstate"),
    "csrutil": names("status"),
    "tmutil": names("listbackups status destinationinfo latestbackup machinedirectory isexcluded listlocalsnapshots "
        "listlocalsnapshotdates version help"),
    "hdiutil": names("info imageinfo plugins"),
    "profiles": names("list status"),
    "gsettings": names("get list-schemas list-keys list-children list-recursively list-relocatable-schemas range "
    "describe "
        "writable monitor help"),
    "dconf": names("read list watch"),
    "xinput": names("list list-props --list query-state --version"),
    "xset": names("q -q"),
    "setxkbmap": names("-query -print -help -version"),
    "wmctrl": names("-l -m -d -lp -lG -lx -h"),
    "scutil": names("--dns --proxy --nwi --get -r --help"),
    "pmset": names("-g"),
    "spctl": names("--status -s --assess -a"),
    "softwareupdate": names("--list -l --history --help --schedule_"),
    "nvram": names("-p -x -xp -px"),
    "plutil": names("-p -lint -help -type"),
    "xcode-select": names("-p --print-path -v --version"),
    "fdesetup": names("status list isactive version"),
    "airport": names("-I -s --getinfo --scan"),
    "kextstat": frozenset(),
}  # fmt: skip
"""First words that only show something."""
_GONE = (
    "erase",
    "delete",
    "remove",
    "zero",
    "secureerase",
    "partitiondisk",
    "reformat",
    "-delete",
    "restore",
    "destroy",
)


def _setting(call: Call) -> None:
    """The first word decides; what erases or deletes cannot be undone."""
    values = [word.value or "?" for word in call.args]
    first = values[0] if values else ""
    known = _READS[call.name]
    if first in known or (first in ("--help", "--version") and len(values) == 1) or (not values and not known):
        if call.name == "scutil" and first == "--get" and len(values) > 2:
            call.note(R2, "desktop.scutil", _CHANGES)
        if call.name == "plutil" and any(value in ("-o", "-s_", "-convert", "-replace", "-insert") for value in values):
            call.note(R2, "desktop.plutil", _CHANGES)
        return
    gone = first.lower().startswith(_GONE) or (
        call.name == "diskutil" and any(v.lower().startswith("delete") for v in values)
    )
    call.note(R3 if gone else R2, f"desktop.{call.name}", "removes or erases something" if gone else _CHANGES)


def _networksetup(call: Call) -> None:
    first = (call.args[0].value or "?") if call.args else "-help"
    if not first.startswith(("-get", "-list", "-is", "-show", "-help", "-version", "-print")):
        call.note(R2, "desktop.networksetup", "changes the network")
    elif "password" in first.lower():
        call.note(R2, "desktop.secret", "shows a password", None, "law 4")


def _dscl(call: Call) -> None:
    values = [word.value or "?" for word in call.args]
    verbs_ = [value.lstrip("-") for value in values if value.lstrip("-") in _DSCL or value.lstrip("-") in _DSCL_READS]
    if verbs_ and verbs_[0] in _DSCL_READS and not any("shadow" in value.lower() or "password" in value.lower()
                                                       for value in values):  # fmt: skip
        return
    call.note(R3 if verbs_[:1] == ["delete"] else R2, "desktop.dscl", "changes or shows accounts")


_DSCL_READS = names("list read readall search diff readpl readpli")
_DSCL = names("create append merge delete change changei passwd mcxset mcxdelete auth authonly")


def _xrandr(call: Call) -> None:
    reads = names("--query -q --verbose --listmonitors --listactivemonitors --listproviders --current --props "
    "--properties "
        "--version -v --help --prop -d --display --screen")  # fmt: skip
    for word in call.args:
        if (word.value or "?").startswith("-") and word.value not in reads:
            call.note(R2, "desktop.xrandr", _CHANGES, word)
            return


PROGRAMS: dict[str, Program] = {
    **many(" ".join(_READS), custom(_setting)),
    "networksetup": custom(_networksetup),
    "dscl": custom(_dscl),
    "xrandr": custom(_xrandr),
    "xdg-open": table("", operands="data", level="R2", text="opens a file with whatever program is set for it"),
    **many("open gnome-open kde-open xdotool xclip xsel notify-send zenity pbcopy wl-copy systemsetup caffeinate "
    "ditto say "
        "dseditgroup kextload kextunload launchd sysadminctl pfctl", table("--version!ok --help!ok", operands="data",
            level="R2", text=_CHANGES)),
    "security": verbs("-h -q -v", "R0 list-keychains|default-keychain|login-keychain|help|error\nR3 delete-keychain|"
        "delete-generic-password|delete-internet-password|delete-certificate|delete-identity"),
    "log": verbs("", "R0 show|stats|help\nR3 erase"),
    "pbpaste": reader(""),
    "system_profiler": reader("single -listDataTypes -detailLevel: -xml -json -timeout: -usage -nospawn",
        operands="data",
        plain=False, unknown="R2"),
    "ioreg": reader("", operands="data", plain=False),
    "mdfind": reader("single -name: -onlyin: -count -live -literal -interpret -0 -attr: -s:", operands="data",
        plain=False, unknown="R2"),
    "mdls": reader("", operands="data", plain=False),
    **many("sw_vers vm_stat machine", reader("", operands="data")),
}  # fmt: skip
