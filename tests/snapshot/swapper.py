"""The attacker of test_snapshot_race: swaps everything in a folder of its own as fast as it can, until it is killed.

Arguments: its folder, a folder of root's that it would like to see changed. Uses the standard library alone.
"""

import contextlib
import os
import random
import sys
import time


def main(theirs, outside):
    file, sub, gone = (os.path.join(theirs, name) for name in ("file", "sub", "gone"))
    swaps = (
        lambda: replace_by(file, lambda to: os.symlink(os.path.join(outside, "file"), to)),
        lambda: replace_by(file, lambda to: os.link(os.path.join(outside, "file"), to)),
        lambda: replace_by(file, lambda to: os.link(os.path.join(outside, "private"), to)),
        lambda: swap_folder(sub, os.path.join(outside, "folder")),
        lambda: replace_by(gone, lambda to: os.symlink(os.path.join(outside, "private"), to)),
        lambda: os.unlink(gone),
        lambda: steal_temporary(theirs, outside),
        lambda: steal_temporary(sub, outside),
        lambda: write_own(file),
        lambda: os.unlink(os.path.join(theirs, "made")),
    )
    print("swapping", flush=True)
    while True:
        for swap in swaps:
            with contextlib.suppress(OSError):
                swap()
            if random.random() < 0.5:
                time.sleep(random.random() * 0.004)  # so that root gets to its steps between two swaps, too


def replace_by(path, make):
    temporary = path + ".swap"
    with contextlib.suppress(OSError):
        os.unlink(temporary)
    make(temporary)
    os.rename(temporary, path)


def swap_folder(sub, outside):
    os.rename(sub, sub + ".away")
    try:
        os.symlink(outside, sub)
        os.unlink(sub)
    finally:
        os.rename(sub + ".away", sub)


def steal_temporary(folder, outside):
    for name in os.listdir(folder):
        if name.startswith(".opsx-"):
            path = os.path.join(folder, name)
            os.unlink(path)
            os.symlink(os.path.join(outside, "file"), path)


def write_own(file):
    temporary = file + ".own"
    with open(temporary, "w") as own:
        own.write("theirs\n")
    os.rename(temporary, file)


main(*sys.argv[1:])
