"""What bash evaluates although it looks like data: each construct, in each place, held against a real bash."""

from itertools import product

import pytest

from guard.judge.classify import check
from guard.types import Actor, Enforcement, Level, Policy, Verdict
from tests.judge_texts import Recorder

STRICT = Enforcement(("local", "net", "bus", "observe", "netadm", "block"), "strict", 4, True)


@pytest.fixture
def recorder(tmp_path):
    return Recorder(tmp_path)


def runs(recorder: Recorder, text: str) -> bool:
    """Whether a real bash runs the command `kk` that the text hides."""
    return any(argv[0] == "kk" for argv in recorder.run(text)[0])


def missed(recorder: Recorder, texts: "list[str]", most_run: float = 0.6) -> "list[str]":
    """Texts that run the hidden command and are taken for a read. The rest of them must be few, or nothing is shown."""
    ran = [text for text in texts if runs(recorder, text)]
    assert len(ran) >= most_run * len(texts)
    return [text for text in ran if check(text).level < Level.R2]


OPERANDS = (
    "${x:-'$(kk)'}", "${x-'$(kk)'}", "${x:='$(kk)'}", "${1:-'$(kk)'}", "${@:-'$(kk)'}", "${b[9]:-'$(kk)'}",
    "${PATH:+'$(kk)'}", "${PATH+'$(kk)'}", "${x:-it's $(kk) it's}", "${x:-${z:-'$(kk)'}}", "${x:-'`kk`'}",
    "${x:-'$(kk 'a')'}", "${x:-'${z:-$(kk)}'}", "${x:-'$((a[$(kk)]))'}",
    "${x:-$'\\x24(kk)'}", "${x:-$'\\044(kk)'}", "${x:-$'\\\\\\$(kk)'}", "${x:-$'\\140kk\\140'}",
    "${x:-a'b$(kk)'c}", "${x:-'}$(kk)'}", "${x:-'a'b'$(kk)'}",
)  # fmt: skip
"""Quotes mean nothing in these when double quotes are around them."""
QUOTED_PLACES = (
    'echo "{}"', 'y="{}"', 'declare y="{}"', 'export y="{}"', '[[ -n "{}" ]]', '[ -n "{}" ]', "cat <<E\n{}\nE",
    "cat <<-E\n\t{}\n\tE", 'cat <<< "{}"', 'for i in "{}"; do :; done', 'a=("{}")', 'case "{}" in a) ;; esac',
    'ls > "{}"', 'f() {{ echo "{}"; }}; f', 'echo "$(echo "{}")"', 'echo {{a,"{}"}}', 'eval \'echo "{}"\' || :',
    ': $(( {} ))', '(( {} ))', "echo ${{q:-\"{}\"}}", 'y="a{}b"', 'if [[ "{}" == a ]]; then :; fi',
)  # fmt: skip


@pytest.mark.parametrize("place", QUOTED_PLACES)
def test_quotes_inside_a_quoted_expansion_hide_nothing(place, recorder):
    texts = [place.format(operand) for operand in OPERANDS]
    if place.startswith("eval"):
        texts = [text for text in texts if text.count("'") == 2] or ['eval "echo \\"\\${x:-\'\\$(kk)\'}\\""']
    assert missed(recorder, texts) == []


DECLARERS = ("declare -a", "typeset -a", "readonly -a", "export -a", "declare -A", "declare -ga", "declare -ax",
    "declare -x -a", "builtin declare -a", "command declare -a", "\\declare -a", "'declare' -a", "declare -ra",
    "LC_ALL=C declare -a", "declare -ar --", "b=(1); declare", "declare -a b; declare", "b[0]=1; declare",
    "read -a b <<< x; declare", "mapfile b <<< x; declare", "read -ab <<< x; declare", ": ${b[0]:=1}; declare",
    "declare -a b; builtin declare", "b=(1); typeset -x",
    "eval 'declare -a b'; declare")  # fmt: skip
LIST_VALUES = ("b='($(kk))'", "b='([$(kk)]=1)'", "b='(`kk`)'", 'b="(\\$(kk))"', "'b=($(kk))'", "b='(\"$(kk)\")'",
    "b+='($(kk))'", "b=$'(\\x24(kk))'", "b='('\"$(echo)\"'$(kk))'", "b=\\('$(kk)'\\)")  # fmt: skip


@pytest.mark.parametrize("declarer", DECLARERS)
def test_a_list_in_a_string_is_read_again(declarer, recorder):
    assert missed(recorder, [f"{declarer} {value}" for value in LIST_VALUES]) == []
    fed = [f"v='($(kk))'; {declarer} b=\"$v\"", f"read v <<< '($(kk))'; {declarer} b=$v"]
    assert missed(recorder, fed) == []


def test_a_list_in_a_string_is_read_again_in_a_function(recorder):
    assert missed(recorder, [f"f() {{ local -a {value}; }}; f" for value in LIST_VALUES]) == []


SOURCES = (
    "x='a[$(kk)]'", "x='a[`kk`]'", "read x <<< 'a[$(kk)]'", "read -r z x <<< '1 a[$(kk)]'", "x=a; x+='[$(kk)]'",
    "printf -v x %s 'a[$(kk)]'", "mapfile -t x <<< 'a[$(kk)]'", ": ${x:='a[$(kk)]'}", "y='a[$(kk)]'; x=y",
    "export x='a[$(kk)]'", "declare x='a[$(kk)]'", "x=('a[$(kk)]')", "eval \"x='a[\\$(kk)]'\"",
    "x=$(echo 'a[$(kk)]')", "x=$'a[\\x24(kk)]'", "for x in 'a[$(kk)]'; do :; done", "set -- 'a[$(kk)]'; x=$1",
)  # fmt: skip
EVALUATORS = (
    "[[ x -eq 1 ]]", "[[ 1 -ne x ]]", "[[ $x -lt 1 ]]", '[[ "$x" -le 1 ]]', "[[ x+1 -gt 1 ]]", "[[ ! x -ge 1 ]]",
    "[[ ( x -ge 1 ) ]]", "[[ -n x && x -ge 1 ]]", "[[ x -lt $((1)) ]]", "[[ 'x' -eq 1 ]]", "let x", "let y=x",
    'let "y = x + 1"', "let y=1 w=x", "builtin let y=x", "command let x", "'let' y=x", "LC_ALL=C let y=x", "((x))",
    "((y = x))", ": $((x))", ": $[x]", "for ((x; 0; )); do :; done", "y=aaa; : ${y:x}", "y=aaa; : ${y:0:x}",
    "d=(1); : ${d[x]}", "d[x]=1", "d=([x]=1)", "test -v 'd[x]' || d=(1); test -v 'd[x]'", "d=(1); [ -v 'd[x]' ]",
    "d=(1); [ ! -v 'd[x]' ]", "d=(1); [[ -v d[x] ]]", 'test -v "$x"', '[ -v "$x" ]', '[[ -v $x ]]', ": ${!x}",
    "declare -i y; y=x", "declare -i y=x", "declare -ri y=x", "builtin declare -i y=x", "command typeset -i y; y=x",
    "f() { local -i y=x; }; f", "declare -i y; read y <<< x", "declare -i y; : ${y:=x}", "RANDOM=x", "OPTIND=x",
    "HISTCMD=x", "export RANDOM=$x", "read -r RANDOM <<< x", "for RANDOM in x; do :; done",
    "printf -v 'd[x]' 1",
    "read 'd[x]' <<< 1", "declare 'd[x]=1'", "declare d[x]=1", "declare -n r=x; [[ r -eq 1 ]]",
    ": $(( ${x:-1} ))", "(( ${x-1} + 2 ))", ": $(( ${x//z/} ))", ": $[${x:-1}]",
    ": $(( \"$x\" ))", "for (( i=${x:-1}; 0; )); do :; done",
    "if let y=x; then :; fi", "d=([ x ]=1)", "declare -A d; unset d; d=([x]=1)", "(declare -A d); d=([x]=1)",
    "coproc let x; wait",
    "until [[ x -ne 7 ]]; do break; done", "y=$(let z=x)", "(let x)", "let x | cat", "f() { [[ x -eq 1 ]]; }; f",
    "printf -v RANDOM %s x", "d=(1); unset 'd[x]'", "declare -a d=([x]=1)", "[[ x -eq 1 || -n y ]]",
)  # fmt: skip


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_data_that_becomes_arithmetic_is_no_read(evaluator, recorder):
    assert missed(recorder, [f"{source}; {evaluator}" for source in SOURCES]) == []


ELSEWHERE = ("read x", "x=$(cat f)", "read -r x < f", "x=$1", "mapfile -t x < f", "x=$(< f)")


@pytest.mark.parametrize("evaluator", [e for e in EVALUATORS if "r=x" not in e])
@pytest.mark.parametrize("source", ELSEWHERE)
def test_data_from_elsewhere_is_evaluated_only_where_the_sandbox_holds(source, evaluator):
    text = f"{source}; {evaluator}"
    alone = check(text)
    assert alone.level >= Level.R2 or "evaluates" in alone.flags
    assert alone.decision.verdict != Verdict.RUN
    for beside in ("docker ps", "systemctl status", "curl -s http://localhost/x", "lsof -i", "smartctl -a /dev/sda"):
        for whole in (f"{beside}; {text}", f"{text}; {beside}"):
            assert check(whole, enforcement=STRICT).decision.verdict != Verdict.RUN
    remote = check(f'ssh web1 {"{}"}'.format("'" + text.replace("'", "'\"'\"'") + "'"), enforcement=STRICT,
                   policy=Policy(peers=["web1"]))  # fmt: skip
    assert remote.decision.verdict != Verdict.RUN


def test_a_list_from_elsewhere_is_evaluated_only_where_the_sandbox_holds():
    for source, declarer in product(ELSEWHERE, DECLARERS):
        assessment = check(f'docker ps; {source}; {declarer} b="$x"', enforcement=STRICT)
        assert assessment.decision.verdict != Verdict.RUN, (source, declarer)


HIDING = ("echo \"${x:-'CODE'}\"", "cat <<E\n${x:-'CODE'}\nE", "declare -a b='(CODE)'", "b=(1); declare b='(CODE)'",
    "x='a[CODE]'; let x", "x='a[CODE]'; [[ x -eq 1 ]]", "x='a[CODE]'; ((x))", "test -v 'a[CODE]'", "[ -v 'a[CODE]' ]",
    "compgen -bC 'rm -r /srv' a", "compgen -W 'CODE'", "read x <<< 'a[CODE]'; let x",
    "printf -v 'a[CODE]' x")  # fmt: skip


@pytest.mark.parametrize("shape", HIDING)
def test_what_is_hidden_in_data_counts_with_its_own_level(shape):
    assert check(shape.replace("CODE", "$(rm -r /srv)")).level == Level.R3


@pytest.mark.parametrize(
    "text",
    [
        "i=0; while [[ $i -lt 3 ]]; do ls; i=$((i + 1)); done", "[[ $# -eq 0 ]] && ls", "[[ $? -ne 0 ]] || ls",
        "for i in 1 2 3; do [[ $i -eq 2 ]] && ls; done", "let i=1", "i=0; let i++; echo $i",
        "for ((i=0; i<3; i++)); do ls; done",
        "x=5; [[ x -eq 5 ]]", "declare -a a=(1 2 3)", "declare -A m=([a]=1 [b]=2); ls", "echo \"${x#'$(kk)'}\"",
        "echo ${x:-'$(kk)'}", "y=${x:-'$(kk)'}", "[ 1 -eq 2 ]",
        "[ -v x ] && ls", "declare x='(a)'", "export X='(a)'", "RANDOM=3; echo $RANDOM", "OPTIND=1", "a=([0]=x [1]=y)",
        "x='$(kk)'; echo \"$x\"", "[[ a == b ]]", "shopt -u history", "echo \"${a[@]/%/$'\\n'}\"", "shopt -s nullglob",
        "compgen -c ls", "compgen -A function",
        "a=(1 2); echo ${a[0]} ${a[@]}", "declare -a a; a=(1)", "test -v x", "set -o pipefail", "set -euo pipefail",
    ],
)  # fmt: skip
def test_what_bash_does_not_evaluate_stays_a_read(text):
    assessment = check(text)
    assert assessment.level == Level.R0
    assert "evaluates" not in assessment.flags


@pytest.mark.parametrize(
    "text",
    [
        "set -k; ls LD_PRELOAD=/tmp/x.so", "set -o keyword", "set -ek", "set -euk -o pipefail", "bash -k -c ls",
        "bash -o keyword -c ls", "set -H", "set -o histexpand", "set -o history", "set $X -k", "bash -H -c ls",
        "bash -ck ls", "sh -o histexpand -c ls", "bash -O extdebug -c ls", "shopt -so keyword", "shopt -s extdebug",
        "shopt -o -s histexpand", "builtin set -k", "command set -k", "set -k -- a", "set +e -k",
    ],
)  # fmt: skip
def test_modes_that_give_words_another_meaning_are_not_read(text):
    assert check(text).level >= Level.R2


def test_history_expansion_makes_another_text(recorder):
    assert missed(recorder, ["set -o history -o histexpand\necho kk\n!!:1", "set -Ho history\necho kk\n!!:1"]) == []
    assert check("set -o history -o histexpand\necho ls\n!!:1").level >= Level.R2


@pytest.mark.parametrize(
    "text",
    [
        "compgen -bC kk a", "compgen -cC kk", "compgen -abcC kk", "compgen -C kk", "compgen -W '$(kk)'",
        "compgen -aW '$(kk)'", "compgen -o default -C kk", "compgen -CW kk a", "compgen -A file -C kk",
    ],
)  # fmt: skip
def test_completions_that_run_something_are_no_read(text, recorder):
    assert not runs(recorder, text) or check(text).level >= Level.R2
    assert check(text.replace("kk", "ls")).level >= Level.R2 or "C" not in text


@pytest.mark.parametrize("value", ["'$(kk)'"])
def test_a_dangerous_name_is_dangerous_however_it_gets_its_value(value, recorder):
    ways = [f"read PS4 <<< {value}", f"for PS4 in {value}; do :; done", f"printf -v PS4 %s {value}",
        f"unset PS4; : ${{PS4:={value}}}", f"PS4={value}", f"PS4+={value}", f"export PS4={value}",
        f"unset PS4; : ${{PS4={value}}}", f"declare PS4={value}", f"read -r a PS4 <<< 'x '{value}",
        f"builtin export PS4={value}", f"f() {{ local PS4={value}; set -x; ls; }}; f"]  # fmt: skip
    assert missed(recorder, [f"{way}; set -x; ls" for way in ways]) == []
    for name in ("PATH", "LD_PRELOAD", "BASH_ENV", "IFS", "PS4"):
        for way in (f"for {name} in /tmp/x; do ls; done", f": ${{{name}:=/tmp/x}}", f"read {name}",
                    f"printf -v {name} /tmp/x", f"printf -v{name} /tmp/x", f"mapfile {name} < f",
                    f"select {name} in /tmp/x; do ls; done", f"getopts a {name}"):  # fmt: skip
            assert check(way).level >= Level.R2, way


@pytest.mark.parametrize(
    "text",
    ["printf -vPATH", "printf -v", "printf", "printf -vx", "printf -v PATH", "let", "read", "test -v", "[ -v ]",
        "compgen -C", "set -o", "mapfile -C", "declare -a", "wait -p", "getopts", "bash -o"],
)  # fmt: skip
def test_a_builtin_without_its_argument_is_judged(text):
    assert check(text).level in (Level.R0, Level.R1, Level.R2, Level.R3)


@pytest.mark.parametrize(
    "text",
    [
        "find /etc -name shadow -exec head -c 20 {} +", "find /etc -name shadow -exec cat {} \\;",
        "echo /etc/shadow | xargs head -c 20", "echo /etc/shadow | xargs -I% cat %", "xargs -a list cat",
        "wc --files0-from=list", "wc --files0-from list", "sort --files0-from=list", "du --files0-from=list",
        "grep -r root /etc", "grep -R x .", "cat /etc/*", "diff -r a b", "head -n 1 *",
        "wc --files0-fr=list", "find . -type f -print0 | xargs -0 grep -l x", "cat $(ls)", "cat \"$x\"",
    ],
)  # fmt: skip
def test_names_from_data_are_read_only_where_the_mask_holds(text):
    assert check(text).decision.verdict != Verdict.RUN


def test_a_plain_reader_of_a_named_file_runs_anywhere():
    for text in ("cat /srv/a", "head -n 3 /srv/a /srv/b", "wc -l a", "grep x a", "diff a b", "ls | xargs echo"):
        assert check(text).decision.verdict == Verdict.RUN, text


@pytest.mark.parametrize(
    "text",
    ["diff --from-file=/etc/shadow /dev/null", "diff --to-file=/etc/shadow /dev/null", "wc --files0-from=/etc/shadow",
        "grep --file=/etc/shadow x", "grep -f /etc/shadow x", "diff --from-file /etc/shadow /dev/null",
        "sort --files0-from=.env", "date --file=/etc/shadow", "diff --from=/etc/shadow /dev/null"],
)  # fmt: skip
def test_an_option_that_reads_a_secret_is_a_secret_read(text):
    assert check(text).level >= Level.R2


def test_flock_makes_its_file():
    assert check("flock /srv/new ls").level == Level.R1
    assert check("flock -n /etc/passwd.lock ls").level >= Level.R1
    assert check("flock 9").level == Level.R0
    assert check("flock -n 9 -c ls").level >= Level.R0


OWN = Policy(own_paths=["/opt/opsagent"])


@pytest.mark.parametrize(
    "text",
    [
        "curl -X POST localhost/x", "curl -X POST http://localhost/x", "curl -d a=b example.com/a/b",
        "python3 -c \"open('x', 'w').write('y')\"", "python3 -c 'import os; os.system(\"ls /tmp/x\")'",
        "ssh web1 systemctl restart x/y", "docker restart web/x", "kubectl delete pod/x", "git push origin a/b",
        "npm install @scope/x", "curl -X DELETE localhost:8080/index", "systemctl restart dev-sda1.device",
    ],
)  # fmt: skip
def test_urls_code_and_names_of_other_things_are_no_files_of_ours(text):
    assessment = check(text, cwd="/opt/opsagent", actor=Actor.AGENT, policy=OWN)
    assert assessment.decision.code != "law-6"


@pytest.mark.parametrize(
    "text",
    [
        "rm guard/x.py", "echo x > guard/y", "sed -i s/a/b/ guard/x.py", "touch ./new", "mv a /opt/opsagent/b",
        "python3 -c \"open('/opt/opsagent/x', 'w')\"", "cp /tmp/x guard/judge/y.py", "git checkout -- .", "tee guard/a",
        "curl -o guard/x http://localhost/x", "chmod 777 guard/x", "ln -sf /tmp/x guard/x", "patch guard/x < p",
        "rsync -a /tmp/x guard/", "scp web1:x guard/y", "wget -O guard/x http://localhost/x",
        "docker cp web:/x guard/y",
        "git rm guard/x", "git restore -- guard/x", "dd if=/tmp/x of=guard/x", "tar -xf /tmp/x.tar -C guard",
        "unzip -d guard/x /tmp/x.zip", "sqlite3 guard/x.db 'drop table a'", "kubectl get pods -o yaml > guard/x",
    ],
)  # fmt: skip
def test_our_own_files_are_still_refused(text):
    assert check(text, cwd="/opt/opsagent", actor=Actor.AGENT, policy=OWN).decision.code == "law-6"


def test_what_ends_the_machine_is_said_before_whose_files_are_in_it():
    decision = check("rm -rf /", policy=OWN).decision
    assert decision.verdict == Verdict.REFUSE
    assert not decision.forceable
    assert decision.text.startswith("it cannot be undone")


@pytest.mark.parametrize(
    "text",
    [
        "cat ./.e*",
        "cat .en?",
        "head .[e]nv",
        "cat /srv/.e*",
        'for f in .e*; do cat "$f"; done',
        "cat .pgp*",
        'a=(.e*); cat "${a[@]}"',
    ],
)
def test_a_pattern_that_is_after_a_credential_is_one(text):
    assert check(text).level >= Level.R2


@pytest.mark.parametrize(
    "text", ["cat *.log", "ls .*", "cat *.[ch]", "find . -name '*.[!r]*' -exec grep -l x {} +", "ls -d .b*"]
)
def test_a_pattern_of_ordinary_names_is_a_read(text):
    assert check(text).level == Level.R0


def test_a_helper_of_a_repository_gets_no_network_beside_a_program_that_has_it():
    for text in (
        "git log; curl -s http://localhost/x",
        "curl -s http://localhost/x; git status | head",
        "git log && ping -c1 localhost",
    ):
        assert check(text, enforcement=STRICT).decision.verdict != Verdict.RUN, text
    for text in ("git log | head", "curl -s http://localhost/x | jq .a", "ping -c 1 localhost | tail -1"):
        assert check(text, enforcement=STRICT).decision.verdict == Verdict.RUN, text


@pytest.mark.parametrize(
    "end",
    [
        "E; x='$(kk)'",
        "E|echo '$(kk)'",
        "E x '$(kk)'",
        " E\n'$(kk)'\nE",
        "E&&: '$(kk)'",
        "E)'$(kk)'",
        "E#'$(kk)'",
        "E \n'$(kk)'",
        "Efoo'$(kk)'",
    ],
)
@pytest.mark.parametrize("body", ["foo", "$x", "${x:-'a'}", "$(ls)", "\\$x", "'"])
def test_a_line_that_only_begins_like_the_end_of_a_document_is_part_of_it(body, end, recorder):
    for start in ("cat <<E", "cat <<E | head", "cat <<-E"):
        text = f"{start}\n{body}\n{end}"
        assert not runs(recorder, text) or check(text).level >= Level.R2, text


def test_what_is_found_after_quotes_are_taken_away_is_no_read(recorder):
    places = ('echo "{}"', 'y="{}"', "cat <<E\n{}\nE", ": $(( {} ))", '[[ "{}" ]]')
    operands = ("${x:-a\"'$\\(kk)'\"b}", '${x:-"$\\(kk)"}', "$${x:-\"'$(kk)'\"}", "${x:-'$\"(kk)'}")
    texts = [place.format(operand) for place in places for operand in operands]
    assert missed(recorder, texts, 0.4) == []


CARRIERS = (
    "{data}; eval '{inner}'",
    '{data}; eval "{escaped}"',
    "export {data}; bash -c '{inner}'",
    "{data} bash -c '{inner}'",
    "env {data} bash -c '{inner}'",
    "{data}; export x; timeout 5 bash -c '{inner}'",
    "{data}; f() {{ eval '{inner}'; }}; f",
    "eval \"x='a[\\$(kk)]'\"; {inner}",
    "eval \"x='a[\\$(kk)]'\"; eval '{inner}'",
    "{data}; eval 'y=$x'; eval '{inner}'",
    "bash -c 'x=$1; {inner}' _ 'a[$(kk)]'",
    "bash <<'E'\nx='a[$(kk)]'\neval '{inner}'\nE",
    "export {data}; bash <<< '{inner}'",
    "export {data}; echo '{inner}' | bash",
)
EVALUATORS = (
    "echo $((x))",
    "(( x ))",
    "[[ x -eq 1 ]]",
    "let y=x",
    "b=(1); echo ${b[x]}",
    "z=abc; echo ${z:x}",
    "declare -i y=x",
    'test -v "$x"',
    "for ((i = x; i < 1; i++)); do :; done",
)


@pytest.mark.parametrize("carrier", CARRIERS)
def test_data_of_one_text_that_another_evaluates_is_no_read(carrier, tmp_path):
    recorder = Recorder(tmp_path, real=("bash", "env", "timeout"))
    texts = [
        carrier.format(data="x='a[$(kk)]'", inner=inner, escaped=inner.replace("$", "\\$").replace('"', '\\"'))
        for inner in EVALUATORS
    ]
    assert missed(recorder, texts) == []


@pytest.mark.parametrize(
    "text",
    [
        "bash -c 'x=$(date +%s); y=$(cat f); echo $((x - y))'",
        "bash -c 'for f in *; do n=$((n + $(wc -l < $f))); done; echo $n'",
        "eval 'echo $((x))'; awk '{print $1}' f",
        "sh -c 'i=0; while [ $i -lt 3 ]; do i=$((i+1)); done'; grep '[a-z]' f",
        "eval 'x=$(ls)'; echo '$HOME'",
    ],
)
def test_arithmetic_in_a_text_that_is_carried_stays_a_read(text):
    assert check(text, enforcement=STRICT).level == Level.R0
