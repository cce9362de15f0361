"""Users and groups: names, numbers, members, homes, shells, locks and ages. Source: passwd(5), group(5), passwd(1).

Password hashes are never read, so a password that was changed, or that went with its account, does not come back.
"""

from __future__ import annotations

from collections.abc import Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted

_NO_SUBORDINATES = "-K SUB_UID_COUNT=0 -K SUB_GID_COUNT=0"
_FROM_NIS = ("+", "-")
"""A line that begins so stands for accounts that are kept elsewhere (nsswitch.conf(5), compat); no account's does."""
_AGES = (("min", "-m"), ("max", "-M"), ("warn", "-W"), ("inactive", "-I"))


def _reads(key: str) -> tuple[Read, ...]:
    return (
        Read("users", "getent -s files passwd"),
        Read("groups", "getent -s files group"),
        Read("passwords", "passwd -S -a", unmasked=True),
    )


def _parse(key: str, said: Mapping[str, Said]) -> State:
    users: dict[str, dict[str, object]] = {}
    groups: dict[str, dict[str, object]] = {}
    compat: list[str] = []
    try:
        for line in said["users"].lines():
            if line.startswith(_FROM_NIS):
                compat.append(line)
                continue
            name, _, uid, gid, comment, home, shell = line.split(":")
            users[name] = {"uid": int(uid), "gid": int(gid), "comment": comment, "home": home, "shell": shell}
        for line in said["groups"].lines():
            if line.startswith(_FROM_NIS):
                compat.append(line)
                continue
            name, _, gid, members = line.split(":")
            groups[name] = {"gid": int(gid), "members": sorted(filter(None, members.split(",")))}
        for line in said["passwords"].lines():
            name, status, *ages = line.split(" ")
            if name in users:
                users[name]["password"] = {"L": "locked", "P": "set", "NP": "none"}.get(status, status)
                # An account that /etc/shadow does not have has no ages.
                if ages:
                    _, low, high, warn, inactive = ages
                    users[name].update(min=low, max=high, warn=warn, inactive=inactive)
    except ValueError:
        raise Unreadable("a line of the list of users is not one") from None
    return {"users": users, "groups": groups, **({"compat": compat} if compat else {})}


def _way_back(key: str, before: State, now: State) -> WayBack:
    commands: list[str] = []
    lost: list[str] = []
    old, new = before["users"], now["users"]
    old_groups, new_groups = before["groups"], now["groups"]
    removed = [name for name in new if name not in old]
    commands += [f"userdel -- {quoted(name)}" for name in removed]
    # The group of an account's own name goes with the account (userdel(8), USERGROUPS_ENAB).
    gone = {name for name in removed if _own_group(name, new, new_groups)}
    commands += [f"groupdel -- {quoted(name)}" for name in new_groups if name not in old_groups and name not in gone]
    for name, group in old_groups.items():
        if name not in new_groups:
            commands.append(f"groupadd -g {group['gid']} -- {quoted(name)}")
        elif group["gid"] != new_groups[name]["gid"]:
            commands.append(f"groupmod -g {group['gid']} -- {quoted(name)}")
    for name, user in old.items():
        if name not in new:
            fields = f"-u {user['uid']} -g {user['gid']} {_fields(user)}"
            commands.append(f"useradd -M -N {_NO_SUBORDINATES} {fields} -- {quoted(name)}")
            commands += _ages(name, user, {})
            if user.get("password") == "set":
                lost.append(f"the password of {name}: set a new one")
            continue
        is_now = new[name]
        changed = [
            option
            for field, option in (
                ("uid", f"-u {user['uid']}"),
                ("gid", f"-g {user['gid']}"),
                ("comment", f"-c {quoted(user['comment'])}"),
                ("home", f"-d {quoted(user['home'])}"),
                ("shell", f"-s {quoted(user['shell'])}"),
            )
            if user[field] != is_now[field]
        ]
        if changed:
            commands.append(f"usermod {' '.join(changed)} -- {quoted(name)}")
        if user.get("password") != is_now.get("password"):
            if (user.get("password"), is_now.get("password")) == ("set", "locked"):
                commands.append(f"usermod -U -- {quoted(name)}")
            elif (user.get("password"), is_now.get("password")) == ("locked", "set"):
                commands.append(f"usermod -L -- {quoted(name)}")
            else:
                lost.append(f"the password of {name}: it was {user.get('password')}, it is {is_now.get('password')}")
        commands += _ages(name, user, is_now)
    for name, group in old_groups.items():
        has = set(new_groups.get(name, {}).get("members", ())) - set(removed)
        has &= set(new)
        commands += [f"gpasswd -d {quoted(one)} {quoted(name)}" for one in sorted(has - set(group["members"]))]
        commands += [f"gpasswd -a {quoted(one)} {quoted(name)}" for one in group["members"] if one not in has]
    if before.get("compat") != now.get("compat"):
        lost.append("lines for accounts that are kept elsewhere are other ones, and no command puts one back")
    return WayBack(tuple(Inverse(command) for command in commands), tuple(lost))


def _own_group(name: str, users: dict[str, dict[str, object]], groups: dict[str, dict[str, object]]) -> bool:
    group = groups.get(name)
    if group is None or group["members"] or group["gid"] != users[name]["gid"]:
        return False
    return not any(other != name and user["gid"] == group["gid"] for other, user in users.items())


def _fields(user: dict[str, object]) -> str:
    comment, home, shell = (quoted(str(user[field])) for field in ("comment", "home", "shell"))
    return f"-c {comment} -d {home} -s {shell}"


def _ages(name: str, wanted: dict[str, str], now: dict[str, str]) -> list[str]:
    changed = [
        f"{option} {wanted[field]}"
        for field, option in _AGES
        if field in wanted and wanted[field] != now.get(field) and wanted[field].lstrip("-").isdigit()
    ]
    return [f"chage {' '.join(changed)} -- {quoted(name)}"] if changed else []


FAMILY = Family("accounts", "getent", _reads, _parse, _way_back, stays="passwords: their hashes are never read")
