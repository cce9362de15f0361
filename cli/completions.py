"""`opsx completions SHELL`: completion scripts made from the verbs' own declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.options import HELP, Verb
from cli.report import write
from guard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cli.options import Parsed

AFTER_OPSAGENT = ("-p", "--json", "--output", "--nagios", "--read-only", "--lang", "--help", "--version")


def main(parsed: Parsed) -> int:
    """Prints the script for one shell."""
    from cli.opsx import VERBS

    shells: dict[str, Callable[[Iterable[Verb]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
    if len(parsed.words) != 1 or parsed.words[0] not in shells:
        raise UsageError("name one shell: bash, zsh or fish", hint='eval "$(opsx completions bash)"')
    write(shells[parsed.words[0]](VERBS))
    return 0


def _options(verb: Verb) -> list[str]:
    return [f"--{option.name}" for option in (*verb.options, HELP) if option.name]


def bash(verbs: Iterable[Verb]) -> str:
    """For bash(1)'s programmable completion; after `--` it completes the inner command's words as file names."""
    verbs = list(verbs)
    cases = "\n".join(f"    {verb.name}) words='{' '.join(_options(verb))}' ;;" for verb in verbs)
    names = " ".join(verb.name for verb in verbs)
    return f"""\
_opsx() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" verb="${{COMP_WORDS[1]}}" words='' i
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then COMPREPLY=($(compgen -f -- "$word")); return; fi
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{names} --help --version' -- "$word")); return
  fi
  case $verb in
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _opsx opsx ./opsx
complete -o default -W '{" ".join(AFTER_OPSAGENT)}' opsagent ./opsagent
"""


def zsh(verbs: Iterable[Verb]) -> str:
    """For zsh's compsys."""
    verbs = list(verbs)
    names = "\n".join(f"    '{verb.name}:{_plain(verb.summary)}'" for verb in verbs)
    cases = "\n".join(f"    {verb.name}) compadd -- {' '.join(_options(verb))} ;;" for verb in verbs)
    return f"""\
#compdef opsx opsagent
_opsx() {{
  local -a verbs
  verbs=(
{names}
  )
  if [[ $service == opsagent ]]; then compadd -- {" ".join(AFTER_OPSAGENT)}; return; fi
  if ((CURRENT == 2)); then _describe verb verbs; return; fi
  case $words[2] in
{cases}
  esac
}}
compdef _opsx opsx opsagent
"""


def fish(verbs: Iterable[Verb]) -> str:
    """For fish."""
    lines = ["complete -c opsx -f"]
    for verb in verbs:
        lines.append(f"complete -c opsx -n __fish_use_subcommand -a {verb.name} -d '{_plain(verb.summary)}'")
        for option in (*verb.options, HELP):
            takes = " -r" if option.value else ""
            lines.append(
                f"complete -c opsx -n '__fish_seen_subcommand_from {verb.name}' -l {option.name}{takes} "
                f"-d '{_plain(option.help)}'"
            )
    lines += [f"complete -c opsagent -a '{option}'" for option in AFTER_OPSAGENT]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Help text that is safe inside single quotes and before a colon."""
    return text.replace("'", "").replace(":", " -").replace("…", "...")
