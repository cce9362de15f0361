"""`opsx sandbox doctor`: what the sandbox of reads really holds here, tried now, and what is missing for more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cli.report import line, safe, write
from guard.errors import UsageError
from guard.hands import sandbox
from guard.hands.sandbox.canaries import Canary, try_canaries
from guard.hands.sandbox.missing import Missing, missing_pieces

if TYPE_CHECKING:
    from cli.options import Parsed
    from guard.types import Enforcement


def main(parsed: Parsed) -> int:
    """Tries every attempt in every profile that holds, and prints what held."""
    if parsed.words != ["doctor"]:
        raise UsageError("say what: doctor", hint=parsed.help_line())
    shared = sandbox.shared()
    measured = shared.measure()
    canaries = list(try_canaries(shared, [name for name in sandbox.PROFILES if name in measured.profiles]))
    missing = missing_pieces(shared)
    if parsed.flag("json"):
        line(_as_object(shared, measured, canaries, missing))
    else:
        _tell(shared.kernel, measured, canaries, missing)
    held = bool(measured.profiles) and all(canary.passed for canary in canaries)
    return 0 if held else 1


def _as_object(
    shared: sandbox.Sandbox, measured: Enforcement, canaries: list[Canary], missing: list[Missing]
) -> dict[str, object]:
    kernel, space, sums = shared.kernel, shared.space(), shared.groups.controls
    return {
        "format": 1,
        "enforced": measured.mechanism,
        "profiles": [
            {"name": name, "holds": name in measured.profiles, "because": sandbox.missing_for(kernel, profile)}
            for name, profile in sandbox.PROFILES.items()
        ],
        "canaries": [
            {
                "name": canary.words,
                "profile": canary.profile,
                "expected": canary.expected,
                "seen": canary.seen,
                "passed": canary.passed,
            }
            for canary in canaries
        ],
        "kernel": {
            "release": os.uname().release,
            "machine": kernel.machine,
            "landlock_abi": kernel.landlock_abi,
            "seccomp": kernel.seccomp,
            "notify": kernel.notify,
            "namespaces": space,
        },
        "in_sum": {
            "memory": "memory" in sums,
            "processes": "pids" in sums,
        },
        "missing": [one._asdict() for one in missing],
    }


def _tell(kernel: sandbox.Kernel, measured: Enforcement, canaries: list[Canary], missing: list[Missing]) -> None:
    how = {
        "strict": f"Landlock (ABI {kernel.landlock_abi}) and seccomp",
        "userns": "seccomp with a supervisor that answers for each write, and a namespace where a whole tree is read",
        "seccomp": "seccomp alone, with a supervisor that answers for each write",
    }.get(measured.mechanism, "nothing: reads beyond the plainest need approval")
    write(f"reads are held by {how}  [Linux {safe(os.uname().release)}, {kernel.machine or 'unknown machine'}]\n\n")
    tried = list(dict.fromkeys(canary.profile for canary in canaries))
    width = max(len(name) for name in (*sandbox.PROFILES, *tried))
    for name in tried:
        passed = [canary.passed for canary in canaries if canary.profile == name]
        mark = "ok    " if all(passed) else "FAILED"
        write(f"{mark}  {name:{width}}  {sum(passed)} of {len(passed)} attempts ended as they must\n")
    for name, profile in sandbox.PROFILES.items():
        if name not in tried:
            why = sandbox.missing_for(kernel, profile) or "it was tried, and did not hold"
            write(f"{'absent':6}  {name:{width}}  {why}\n")
    for canary in canaries:
        if not canary.passed:
            write(f"\nFAILED  {safe(canary.words)}: {safe(canary.seen)}")
    if any(not canary.passed for canary in canaries):
        write("\n\nDo not rely on reads being reads here; `opsx freeze` does not stop them. Please report this.\n")
    for one in missing:
        write(f"\nmissing: {one.piece}\n    {one.meaning}\n    → {one.mend}\n")
