"""Which module knows which program. A module is loaded when one of its programs occurs.

`docs/judging.md` says how to add a family. The lists here are written out, not collected at start: the hot path must not
import a family to learn what it holds. `tests/judge/test_families.py` checks that lists and modules agree.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Program

_NAMES = {
    "shellbuiltins": """: true false cd pushd popd dirs echo printf test [ exit return break continue shift read set shopt eval
        exec source . type hash alias unalias let getopts wait jobs fg bg disown trap umask ulimit pwd history mapfile readarray
        enable bind complete compgen compopt caller suspend logout times fc coproc local export declare typeset readonly unset
        builtin command help""",
}

PROGRAMS: dict[str, str] = {name: module for module, names in _NAMES.items() for name in names.split()}
PREFIXES: tuple[tuple[str, str], ...] = (("mkfs.", "storage"), ("fsck.", "storage"), ("python3.", "interpreters"))
"""Programs named by a family of suffixes: `mkfs.ext4`, `python3.12`."""

DEVICE_READERS = frozenset(
    """fdisk sfdisk blkid smartctl nvme lsof ss fuser iptables ip6tables nft iptables-save ip6tables-save hdparm parted sgdisk
    mdadm pvs vgs lvs pvdisplay vgdisplay lvdisplay dumpe2fs tune2fs xfs_info cryptsetup blockdev ethtool""".split()
)
"""Programs whose reads need a profile with one right more (`observe`, `netadm`, `block`)."""

_MODULES: "dict[str, dict[str, Program]]" = {}


def load(module: str) -> "dict[str, Program]":
    """The programs of one family."""
    found = _MODULES.get(module)
    if found is None:
        name = f"guard.judge.{module}" if module == "wrappers" else f"guard.judge.families.{module}"
        found = _MODULES[module] = __import__(name, fromlist=["PROGRAMS"]).PROGRAMS
    return found
