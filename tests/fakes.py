"""Fakes of the ports; where a real one exists, both pass the same tests."""

from __future__ import annotations

from dataclasses import dataclass, field

from guard.types import Captured, Enforcement, Interference, Profile

STRICT = Enforcement((Profile.LOCAL, Profile.NET, Profile.BUS), "strict", 7, True)


@dataclass
class FakeResult:
    """What FakeTarget's runs end with."""

    exit_code: int | None = 0
    timed_out: bool = False
    cancelled: bool = False
    stdout: Captured = field(default_factory=Captured)
    stderr: Captured = field(default_factory=Captured)
    duration_ms: int = 1
    profile: str = Profile.LOCAL
    enforced: str = "strict"
    interference: tuple[Interference, ...] | None = ()
    unlimited: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class FakeTarget:
    """A target that runs nothing: it remembers what it was asked and gives prepared answers, in order."""

    name = "local"

    def __init__(self, *results: FakeResult, enforcement: Enforcement = STRICT) -> None:
        self.results = list(results)
        self.asked: list[tuple[str, dict[str, object]]] = []
        self._enforcement = enforcement

    def enforcement(self) -> Enforcement:
        return self._enforcement

    def run(self, command, *, on_output=None, **options):
        self.asked.append((command, options))
        result = self.results.pop(0) if self.results else FakeResult()
        if isinstance(result, BaseException):
            raise result
        if on_output:
            for name in ("stdout", "stderr"):
                text = getattr(result, name).text
                if text:
                    on_output(name, text.encode())
        return result


class FixedClock:
    """A clock that moves only when told."""

    def __init__(self, utc_s: float = 1_800_000_000.0, boot_s: float = 1000.0) -> None:
        self.utc_s, self.boot = utc_s, boot_s

    def utc(self) -> str:
        from guard.clock import utc_text

        return utc_text(int(self.utc_s * 1000))

    def boot_s(self) -> float:
        return self.boot

    def pass_s(self, seconds: float) -> None:
        self.utc_s += seconds
        self.boot += seconds
