# Sourced by ./opsagent and ./opsx with $program, $root and the caller's arguments.
#
# A warm start spawns nothing: tests and reads are the shell's own, then one exec. What Python can check faster
# (does the environment hold what the lock says, may root use this checkout) is checked by start.py.

nl='
'
venv=$root/.venv
if ! { [ -f "$venv/.ready" ] && [ -x "$venv/bin/python" ]; } && [ -r "$root/requirements.lock" ]; then
	# A read-only checkout has its environment in the cache folder, named by the digest in the lock's first line.
	read -r _ _ _ _ key <"$root/requirements.lock"
	case ${XDG_CACHE_HOME-} in
	/*) venv=$XDG_CACHE_HOME/opsagent/$key/venv ;;
	*) venv=${HOME-}/.cache/opsagent/$key/venv ;;
	esac
fi

# -O asks "does it belong to whom I run as"; root owns /, so this is how a shell knows root without a spawn.
# Root must not run even one file of somebody else. Modes and parent folders are start.py's and bootstrap.py's part.
if [ -O / ]; then
	for part in "$root" "$root/launch" "$root/launch/start.py" "$root/launch/setup.sh" "$venv" "$venv/bin/python"; do
		if [ -e "$part" ] && ! [ -O "$part" ]; then
			printf '%s\n' "error[setup.foreign]: you are root and $part belongs to another user, who could change what root runs${nl}nothing was run${nl}hint: use a checkout of root's own, for example under /opt, or run as that user" >&2
			exit 4
		fi
	done
fi

if [ -f "$venv/.ready" ] && [ -x "$venv/bin/python" ]; then
	exec "$venv/bin/python" -I -S -X utf8 "$root/launch/start.py" "$program" "$venv" "$@"
fi
exec /bin/sh "$root/launch/setup.sh" "$program" "$@"
