"""`opsx completions SHELL`: completion scripts made from the verbs' own declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.options import COMMON, Option, Verb
from cli.report import write
from guard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cli.options import Parsed


def main(parsed: Parsed) -> int:
    """Prints the script for one shell."""
    shells: dict[str, Callable[[Launcher, Launcher], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
    if len(parsed.words) != 1 or parsed.words[0] not in shells:
        raise UsageError("name one shell: bash, zsh or fish", hint='eval "$(opsx completions bash)"')
    write(shells[parsed.words[0]](*launchers()))
    return 0


class Launcher:
    """A program with its verbs, and the options that it takes without one."""

    def __init__(self, name: str, verbs: Iterable[Verb], options: Iterable[Option]) -> None:
        self.name = name
        self.verbs = tuple(verbs)
        self.options = tuple(options)


def launchers() -> tuple[Launcher, Launcher]:
    """opsx and opsagent."""
    from cli import opsagent, opsx

    version = Option("version", "print the version", short="V")
    return (
        Launcher("opsx", opsx.VERBS, (version, *COMMON)),
        Launcher("opsagent", opsagent.verbs(), (*opsagent.itself().options, *COMMON)),
    )


def _spellings(options: Iterable[Option]) -> list[str]:
    short = [f"-{option.short}" for option in options if option.short and option.value]
    return [*short, *(f"--{option.name}" for option in options if option.name)]


def _after(verb: Verb) -> list[str]:
    """What may follow a verb: the fixed words of its usage ("list | show ID"), then its options."""
    firsts = [choice.split()[0].strip("[]") for choice in verb.usage.split(" | ") if choice.strip()]
    fixed = [word for word in firsts if word.replace("-", "").isalpha() and word.islower() and word != "options"]
    return [*fixed, *_spellings((*verb.options, *COMMON))]


def bash(*programs: Launcher) -> str:
    """For bash(1)'s programmable completion; after `--` it completes the inner command's words as file names."""
    return "".join(_bash(program) for program in programs)


def _bash(program: Launcher) -> str:
    name = program.name
    cases = "\n".join(f"    {verb.name}) words='{' '.join(_after(verb))}' ;;" for verb in program.verbs)
    names = " ".join(verb.name for verb in program.verbs)
    options = " ".join(_spellings(program.options))
    return f"""\
_{name}() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" verb="${{COMP_WORDS[1]}}" words='{options}' i
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then COMPREPLY=($(compgen -f -- "$word")); return; fi
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{names} {options}' -- "$word")); return
  fi
  case $verb in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _{name} {name} ./{name}
"""


def zsh(*programs: Launcher) -> str:
    """For zsh's compsys."""
    head = f"#compdef {' '.join(program.name for program in programs)}\n"
    return head + "".join(_zsh(program) for program in programs)


def _zsh(program: Launcher) -> str:
    name = program.name
    names = "\n".join(f"    '{verb.name}:{_plain(verb.summary)}'" for verb in program.verbs)
    cases = "\n".join(f"    {verb.name}) compadd -- {' '.join(_after(verb))} ;;" for verb in program.verbs)
    options = " ".join(_spellings(program.options))
    return f"""\
_{name}() {{
  local -a verbs
  verbs=(
{names}
  )
  if ((CURRENT == 2)); then _describe verb verbs; compadd -- {options}; return; fi
  case $words[2] in
{cases}
    *) compadd -- {options} ;;
  esac
}}
compdef _{name} {name}
"""


def fish(*programs: Launcher) -> str:
    """For fish."""
    return "\n".join(line for program in programs for line in _fish(program)) + "\n"


def _fish(program: Launcher) -> list[str]:
    name = program.name
    lines = [_fish_option(name, "__fish_use_subcommand", option) for option in program.options]
    for verb in program.verbs:
        lines.append(f"complete -c {name} -f -n __fish_use_subcommand -a {verb.name} -d '{_plain(verb.summary)}'")
        seen = f"__fish_seen_subcommand_from {verb.name}"
        lines += [f"complete -c {name} -n '{seen}' -a {word}" for word in _after(verb) if not word.startswith("-")]
        lines += [_fish_option(name, f"'{seen}'", option) for option in (*verb.options, *COMMON)]
    return lines


def _fish_option(name: str, when: str, option: Option) -> str:
    short = f" -s {option.short}" if option.short else ""
    long = f" -l {option.name}" if option.name else ""
    takes = " -r" if option.value else ""
    return f"complete -c {name} -n {when}{short}{long}{takes} -d '{_plain(option.help)}'"


def _plain(text: str) -> str:
    """Help text that is safe inside single quotes and before a colon."""
    return text.replace("'", "").replace(":", " -").replace("…", "...")
