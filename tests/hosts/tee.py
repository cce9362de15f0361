"""Between a host and our MCP server: passes every line on, and keeps both directions in a file.

    python tee.py LOG PROGRAM WORDS…

Standard library only: hosts start it as the server.
"""

import json
import subprocess
import sys
import threading


def copy(source, target, log, direction, lock):
    """Until the source ends; then the target is closed."""
    for line in source:
        with lock, open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps({"dir": direction, "line": line.decode("utf-8", "replace")}) + "\n")
        try:
            target.write(line)
            target.flush()
        except (BrokenPipeError, ValueError):
            break
    try:
        target.close()
    except BrokenPipeError:
        pass


def main(log, argv):
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    lock = threading.Lock()
    inward = threading.Thread(target=copy, args=(sys.stdin.buffer, child.stdin, log, ">", lock), daemon=True)
    inward.start()
    copy(child.stdout, sys.stdout.buffer, log, "<", lock)
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
