"""The commands of the corpus, for properties that want real ones."""

import json
from pathlib import Path

ROWS = [
    json.loads(line)
    for path in sorted((Path(__file__).parent / "corpus").glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]
COMMANDS = [row["cmd"] for row in ROWS]
