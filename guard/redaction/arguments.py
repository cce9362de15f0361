# ruff: noqa: E501 - one row of a table is one line
"""Passwords that stand as plain words of a command line: `useradd -p …`, `rabbitmqctl add_user a …`, `sudo -S … <<< …`.

Rows as in `commands`, by the programs' manual pages.
"""

from __future__ import annotations

from guard.redaction.habits import GAP as _GAP
from guard.redaction.habits import VALUE as _V
from guard.redaction.habits import Habit

_LABEL = r"(?:[\w.:/-]{0,128}(?:pass(?:word|wd|phrase)?|secret|token|credential|auth|(?:api|access|secret|private|encryption|license|account|auth)[_-]?key(?:_id)?)[\w-]{0,32})"
_B = r"[ \t]{1,8}"
_O = r"(?:[ \t]{1,8}-[\w-]{1,32}(?:[ \t=]{1,4}[^\s-][^\s]{0,127})?){0,4}"
"""Options with or without a value, before the words that count."""

ARGUMENTS = (
    Habit(
        "useradd usermod adduser newusers",
        r"\b(?:useradd|usermod)\b" + _GAP + r"(?:-\w{0,8}p|--password)[ \t=]{1,4}" + _V,
        flags=0,
    ),
    Habit("groupadd groupmod", r"\bgroup(?:add|mod)\b" + _GAP + r"(?:-\w{0,8}p|--password)[ \t=]{1,4}" + _V, flags=0),
    Habit(
        "ncftp ncftpput ncftpget ncftpls rdesktop sshpass smbget nikto hydra xfreerdp",
        r"\b(?:ncftp(?:put|get|ls)?|rdesktop|smbget)\b" + _GAP + r"-p[ \t]{0,4}" + _V,
        flags=0,
    ),
    Habit(
        "mosquitto_pub mosquitto_sub mosquitto_rr mosquitto_ctrl mosquitto",
        r"\bmosquitto_(?:pub|sub|rr|ctrl)\b" + _GAP + r"(?:-P|--pw)[ \t=]{1,4}" + _V,
        flags=0,
    ),
    Habit(
        "mosquitto passwd",
        r"\bmosquitto_passwd\b" + _GAP + r"-\w{0,4}b\w{0,4}(?:" + _B + r"\S{1,256}){2}" + _B + _V,
        flags=0,
    ),
    Habit(
        "lftp",
        r"\blftp\b[^\n]{0,200}?\b(?:open|user)\b[^\n]{0,120}?(?:-u[ \t]{0,4}[\"']?[^\s,\"']{1,64},|user[ \t]{1,4}\S{1,64}[ \t]{1,4})([^\s\"',;]{1,256})",
        flags=0,
    ),
    Habit("aws", r"\baws\b[^\n|;]{0,80}?\bconfigure" + _B + r"set" + _O + _B + _LABEL + _B + _V),
    Habit(
        "config set",
        r"\b(?:npm|pnpm|yarn|pip3?|poetry|gcloud|git|composer|bundle|gem|cargo|az|oc|kubectl|redis-cli|conda|heroku|nerdctl|helm|pulumi|rclone|gh|glab|snap)\b[^\n|;]{0,120}?\b(?:config|set|config-set|set-credentials)\b[^\n|;]{0,120}?[ \t][\"']?"
        + _LABEL
        + r"[\"']?(?:[ \t=]{1,4}(?!=))(?!-)"
        + _V,
        guess=True,
    ),
    Habit(
        "rclone",
        r"\brclone\b[^\n|;]{0,80}?\bconfig"
        + _B
        + r"(?:create|update|password)\b[^\n|;]{0,300}?[ \t]"
        + _LABEL
        + r"[ \t=]{1,4}"
        + _V,
    ),
    Habit(
        "rclone",
        r"\brclone\b[^\n|;]{0,80}?\bconfig"
        + _B
        + r"(?:create|update)\b[^\n|;]{0,300}?[ \t](?:pass2?|key|sas_url)[ \t=]{1,4}"
        + _V,
        flags=0,
    ),
    Habit("keygen", r"\bssh-keygen\b[^\n|;]{0,300}?[ \t]-\w{0,6}N[ \t]{0,4}" + _V, flags=0),
    Habit("keygen", r"\bssh-keygen\b[^\n|;]{0,300}?[ \t]-\w{0,6}P[ \t]{0,4}" + _V, flags=0),
    Habit(
        "printf",
        r"\bprintf\b[^\n|;]{0,200}?(?:'[^'\n]{0,200}?"
        + _LABEL
        + r"[ \t]{0,2}[:=][ \t]{0,2}%[^'\n]{0,64}'|\"[^\"\n]{0,200}?"
        + _LABEL
        + r"[ \t]{0,2}[:=][ \t]{0,2}%[^\"\n]{0,64}\")(?:[ \t]{1,8}[^\s|;&<>]{1,256}){0,4}?[ \t]{1,8}"
        + _V
        + r"[ \t]{0,4}(?=$|[|;&<>\n)])",
    ),
    Habit(
        "rabbitmqctl",
        r"\brabbitmqctl\b"
        + _O
        + _B
        + r"(?:add_user|change_password|authenticate_user)"
        + _B
        + r"[^\s-]\S{0,127}"
        + _B
        + _V,
        flags=0,
    ),
    Habit(
        "~<<<",
        r"(?:\bsudo\b[^\n|;]{0,80}?[ \t]-\w{0,8}S\b|--password-stdin\b|\b(?:su|passwd|chpasswd|cryptsetup|kinit|ssh-add|smbpasswd|fscrypt)\b)[^\n|;]{0,300}?<<<[ \t]{0,4}"
        + _V,
        flags=0,
    ),
    Habit(
        "sudo",
        r"\bprintf"
        + _B
        + r"(?:'%s(?:\\n)?'|\"%s(?:\\n)?\"|%s(?:\\\\n)?)?[ \t]{0,4}"
        + _V
        + r"[ \t]{0,4}\|[ \t]{0,4}sudo[ \t]{1,4}(?:-\w[ \t]{1,4}){0,3}-\w*S",
        flags=0,
    ),
    Habit(
        "gh secret", r"\bgh" + _B + r"secret" + _B + r"set\b[^\n|;]{0,120}?[ \t](?:-b|--body)[ \t=]{1,4}" + _V, flags=0
    ),
    Habit(
        "redis keydb valkey",
        r"\b(?:redis|keydb|valkey)-cli\b[^\n|;]{0,200}?[ \t]AUTH"
        + _B
        + r"(?:[^\s-]\S{0,63}"
        + _B
        + r"(?=\S+[ \t]*(?:$|[|;&])))?"
        + _V,
    ),
    Habit(
        "redis keydb valkey requirepass masterauth",
        r"\bconfig" + _B + r"set" + _B + r"(?:requirepass|masterauth|masteruser)" + _B + _V,
    ),
    Habit(
        "~alias·set",
        r"\b(?:mc|mcli|minio-client)\b[^\n|;]{0,80}?\balias"
        + _B
        + r"set(?:"
        + _B
        + r"\S{1,256}){2}"
        + _B
        + r"\S{1,128}"
        + _B
        + _V,
        flags=0,
    ),
    Habit(
        "samba",
        r"\bsamba-tool"
        + _B
        + r"(?:user"
        + _B
        + r"(?:create|add)|domain"
        + _B
        + r"passwordsettings)"
        + _B
        + r"[^\s-]\S{0,127}"
        + _B
        + r"(?!-)"
        + _V,
        flags=0,
    ),
)
