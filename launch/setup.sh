#!/bin/sh
# setup.sh PROGRAM [ARG...]: finds a Python 3.11 or newer and lets bootstrap.py make the environment, then start PROGRAM.
# PROGRAM "test-environment" makes the environment of the test suite and prints its Python instead.
set -u
here=${0%/*}
nl='
'
# A host waits for its hook's answer, and a set-up takes minutes: the call is stopped instead (exit code 2).
case "$1 ${2-}" in
'opsx hook')
	printf '%s\n' "opsagent hook: the environment of this checkout is missing or does not fit its lock. Nothing was run; a person sets it up with: ${here%/*}/opsx --version" >&2
	exit 2
	;;
esac
# 0: good; 3: new enough, but cannot make environments; anything else: too old or not a Python at all.
probe='
import sys
if sys.version_info < (3, 11):
    sys.exit(4)
from importlib.util import find_spec
print(sys.executable)
sys.exit(0 if find_spec("venv") and find_spec("ensurepip") else 3)
'
good=''
bare=''
old=''
for name in python3.14 python3.13 python3.12 python3.11 python3; do
	command -v "$name" >/dev/null 2>&1 || continue
	# From /: some version managers read a file of the current folder to choose what "python3" is.
	found=$(cd / && "$name" -I -c "$probe" 2>/dev/null)
	case $? in
	0)
		good=$found
		break
		;;
	3) [ -n "$bare" ] || bare=$found ;;
	4) old=$name ;;
	esac
done

uv=''
for name in uv "${HOME-}/.local/bin/uv" "${HOME-}/.cargo/bin/uv"; do
	if command -v "$name" >/dev/null 2>&1; then
		uv=$(command -v "$name")
		break
	fi
done

if [ -z "$good" ]; then
	good=$bare
fi
if [ -z "$good" ] && [ -n "$uv" ]; then
	good=$(cd / && "$uv" python find --no-python-downloads '>=3.11' 2>/dev/null) || good=''
	if [ -z "$good" ]; then
		printf '%s\n' 'opsagent: no Python 3.11 or newer here; asking uv for one' >&2
		(cd / && "$uv" python install 3.13 >&2) && good=$(cd / && "$uv" python find --no-python-downloads '>=3.11' 2>/dev/null)
	fi
fi
if [ -z "$good" ]; then
	what='no Python was found'
	[ -z "$old" ] || what="$old is older than 3.11 and there is no newer one"
	like=''
	if [ -r /etc/os-release ]; then
		like=$(. /etc/os-release && printf ' %s %s ' "${ID-}" "${ID_LIKE-}")
	fi
	case $like in
	*' debian '* | *' ubuntu '*) hint='apt-get install python3 python3-venv   (if that is older than 3.11: install uv)' ;;
	*' fedora '* | *' rhel '* | *' centos '*) hint='dnf install python3.12' ;;
	*' suse '* | *' opensuse '*) hint='zypper install python312' ;;
	*' alpine '*) hint='apk add python3' ;;
	*' arch '*) hint='pacman -S python' ;;
	*) hint='install Python 3.11 or newer, or uv (macOS: brew install python@3.13)' ;;
	esac
	printf '%s\n' "error[setup.python]: opsagent needs Python 3.11 or newer: $what${nl}nothing was run${nl}hint: $hint" >&2
	exit 7
fi
exec "$good" -I -X utf8 "$here/bootstrap.py" "$uv" "$@"
