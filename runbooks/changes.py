"""Sees whether a question asks for a change, and which command that would be where that is obvious. Pure.

The hard part is telling "restart nginx" from "why did nginx restart" and 重启 from 重启过: a verb counts where a
request would put it (first, after "please", after "and"), never in the past tense, and not after "do not".
"""

from guard.types import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.words import Question


def _words(text: str) -> "tuple[str, ...]":
    return tuple(text.split())


class Change(Value):
    """A change that somebody asked for."""

    __slots__ = ("verb", "command")
    verb: str
    """The word that asks for it, as written."""
    command: str
    """The command that a person could approve, or "" when the words do not say one exactly."""

    def __init__(self, verb: str, command: str = "") -> None:
        self.verb = verb
        self.command = command


VERBS = frozenset(
    _words(
        "restart reload start stop kill delete remove clean purge clear free install uninstall upgrade patch "
        "fix repair change set enable disable reboot shutdown poweroff halt rotate vacuum prune mount unmount "
        "umount format resize extend expand grow renew rename move create add drop truncate wipe ban block "
        "unblock open close configure flush reset terminate update rm apply deploy rollback tune"
    )
)
_PHRASAL = {
    "bring": ("up", "back", "down", "online"),
    "take": ("down", "offline"),
    "turn": ("on", "off"),
    "switch": ("on", "off"),
    "spin": ("up", "down"),
    "shut": ("down",),
    "roll": ("back",),
    "get": ("rid",),
    "make": ("room", "space"),
    "put": ("back",),
}
"""A verb that is a request only with its particle, which stands up to three words later: "bring nginx back up"."""
_STARTS, _STOPS = ("up", "back", "on", "online"), ("down", "off", "offline")
_LEADING = frozenset(
    _words(
        "please kindly can could would will you we i to and then also now just go ahead lets let us me must "
        "need want wanna gonna have help try hey ok okay opsagent automatically immediately quickly"
    )
)
"""Words that may stand between the start of a clause and the verb of a request."""
_NOT_AFTER = {
    "open": {"port", "file", "socket", "connection", "session"},
    "update": {"available", "pending", "status", ".", ""},
    "patch": {"available", "pending", "status", ".", "", "level"},
    "upgrade": {"available", "pending", "."},
    "start": {"time", "date"},
    "free": {"h", "m", "g", "b", "memory", "space", "ram", "disk", "inode", "swap", ".", "", "<n>"},
    "mount": {"point", ".", "", "option"},
    "set": {"of"},
    "block": {"device", "size"},
    "clean": {"shutdown"},
    "reboot": {"required", "history", "time"},
    "shutdown": {"history", "time"},
    "restart": {"count", "loop", "history", "time"},
    "format": {".", ""},
    "kill": {"."},
}
"""A verb before one of these is a noun or an adjective: "open ports", "updates available"."""
_QUESTIONS = frozenset(_words("do does did is are will would"))
_NEGATIONS = frozenset(_words("not dont never without cannot cant wont no avoid"))

VERBS_ZH = _words(
    "重启 重新启动 重载 启动 停止 停掉 停一下 停 关掉 关闭 杀掉 杀死 干掉 删除 删掉 删了 清理 清空 清除 "
    "释放 安装 装上 装一下 卸载 升级 修复 修一下 修好 修改 改成 设置 设成 启用 禁用 开启 打开 扩容 扩大 "
    "续期 续签 轮转 挂载上 卸掉 格式化 封禁 封掉 解封 迁移 回滚 部署 配置一下 优化一下 拉起 更新一下 "
    "更新到 打上 打补丁 关机 腾点 腾出 腾一 清一下 清掉 扩一下 恢复一下 解决一下 处理一下 搞定 弄好 起一下 更新下"
)
_TAILS_ZH = _words(
    "过 了吗 了没 了多少 时间 记录 原因 次数 历史 失败 不了 不起来 后 的时候 日志 吗 文件 的文件 端口 的端口"
)
"""What follows a verb that is told about, not asked for: 重启过, 启动时间, 启动失败."""
_HEADS_ZH = _words(
    "不要 别 不用 无需 先别 不必 禁止 没有 被 上次 最近 什么时候 为什么 为何 怎么又 自动 已经 已 昨晚 "
    "昨天 无法 不能 没法 需要 要不要 是否 是不是 正在 刚 频繁 反复 一直 老是 总是 谁 没 可以 哪些 哪个 "
    "有没有 能不能 需不需要 该不该"
)
"""What stands before a verb that is told about, forbidden or asked after."""

_AFTER_LATIN = ("一下", "掉", "下 ")
_BEFORE_LATIN = ("帮我", "请", "麻烦", "给我", "帮忙")

NEAR = 4

UNITS = {
    "nginx": "nginx",
    "apache": "apache2",
    "apache2": "apache2",
    "httpd": "httpd",
    "mysql": "mysql",
    "mysqld": "mysqld",
    "mariadb": "mariadb",
    "postgres": "postgresql",
    "postgresql": "postgresql",
    "redis": "redis",
    "docker": "docker",
    "haproxy": "haproxy",
    "rabbitmq": "rabbitmq-server",
    "elasticsearch": "elasticsearch",
    "mongod": "mongod",
    "mongodb": "mongod",
    "ssh": "ssh",
    "sshd": "sshd",
    "cron": "cron",
    "crond": "crond",
    "tomcat": "tomcat",
    "prometheus": "prometheus",
    "grafana": "grafana-server",
}
"""What people call a service, and the unit's usual name."""
_SYSTEMCTL = {
    "restart": "restart 重启 重新启动",
    "reload": "reload 重载",
    "start": "start 启动 拉起",
    "stop": "stop 停止 停掉 停一下 停 关掉 关闭",
    "enable --now": "enable 启用",
    "disable --now": "disable 禁用",
}
_UNIT_VERBS = {word: verb for verb, words in _SYSTEMCTL.items() for word in _words(words)}
_MACHINE = frozenset(_words("machine server host box system vm computer node"))
_MACHINE_ZH = ("机器", "服务器", "主机", "系统", "本机", "电脑")


def change_in(question: "Question") -> "Change | None":
    """The first change that the question asks for, or None for a question that only wants to know."""
    return _english(question) or (_chinese(question) if question.lang == "zh" else None)


def _english(question: "Question") -> "Change | None":
    words, shown = question.words, question.shown
    for at, word in enumerate(words):
        phrasal = _PHRASAL.get(word)
        if phrasal is not None and shown[at] == word:
            particle = next((one for one in _clause(words, at + 1)[:4] if one in phrasal), None)
            if particle and question.lang == "en" and _asks(words, at) and not _negated(words, at):
                return Change(f"{word} {particle}", _phrasal_command(word, particle, shown[at + 1 : at + 5]))
        if word not in VERBS or shown[at] not in (word, word + "s") or shown[at] == word + "s":
            continue
        after = words[at + 1] if at + 1 < len(words) else ""
        if after in _NOT_AFTER.get(word, ()) and not (word == "free" and after == "up"):
            continue
        if question.lang == "zh":
            continue  # Latin words in a Chinese text are names; its verbs are Chinese
        if _asks(words, at) and not _negated(words, at):
            return Change(shown[at], _command(word, words, shown, at))
    return None


def _clause(words: "list[str]", at: int) -> "list[str]":
    """The words from `at` to the end of the clause."""
    end = words.index(".", at) if "." in words[at:] else len(words)
    return words[at:end]


def _phrasal_command(verb: str, particle: str, names: "list[str]") -> str:
    if verb in ("roll", "put"):
        return ""
    verb = "start" if particle in _STARTS else "stop" if particle in _STOPS else ""
    unit = next((UNITS[name] for name in names if name in UNITS), "")
    return f"systemctl {verb} {unit}" if verb and unit else ""


def _asks(words: "list[str]", at: int) -> bool:
    """Only words of politeness stand between the start of the clause (or an "and") and the verb."""
    if words[0] in _QUESTIONS and words[max(0, at - 2) : at] == ["need", "to"]:
        return False  # "do we need to patch anything": a question
    if words[max(0, at - 2) : at] in (["can", "i"], ["could", "i"], ["can", "we"], ["could", "we"]):
        return False
    for before in range(at - 1, -1, -1):
        if words[before] == "." or words[before] in ("and", "then", "to", "please"):
            # "how to restart", "need to restart it?" and "fails to start" end here too: only a request does not fail.
            return words[before] != "to" or not any(
                word
                in (
                    "fail",
                    "failed",
                    "failing",
                    "refuse",
                    "able",
                    "trying",
                    "tried",
                    "unable",
                    "due",
                    "when",
                    "going",
                    "safe",
                )
                for word in words[max(0, before - 2) : before]
            )
        if words[before] not in _LEADING:
            return False
    return True


def _negated(words: "list[str]", at: int) -> bool:
    start = at
    while start > 0 and words[start - 1] != ".":
        start -= 1
    return any(word in _NEGATIONS for word in words[max(start, at - 4) : at])


def _command(verb: str, words: "list[str]", shown: "list[str]", at: int) -> str:
    rest = words[at + 1 : at + 6]
    if verb in ("reboot",) or (verb == "restart" and any(word in _MACHINE for word in rest)):
        return "systemctl reboot"
    if verb in _UNIT_VERBS:
        for word in shown[at + 1 : at + 6]:
            if word in UNITS:
                return f"systemctl {_UNIT_VERBS[verb]} {UNITS[word]}"
    if verb in ("clean", "purge", "rotate", "vacuum", "delete", "remove", "clear") and "journal" in rest:
        return "journalctl --vacuum-time=14d"
    return ""


def _chinese(question: "Question") -> "Change | None":
    text = question.text
    best: tuple[int, str] | None = None
    for verb in VERBS_ZH:
        at = text.find(verb)
        while at >= 0:
            if _asks_zh(text, at, verb) and (best is None or (at, -len(verb)) < (best[0], -len(best[1]))):
                best = at, verb
            at = text.find(verb, at + len(verb))
    if best is None:
        return _mixed(question)
    return Change(best[1], _command_zh(best[1], text))


def _mixed(question: "Question") -> "Change | None":
    """A Latin verb in a Chinese request: 帮我 restart 一下 nginx. Alone it is a name: restart 是什么意思."""
    text = question.text
    for word in question.names:
        at = text.find(word)
        if word not in VERBS or at < 0:
            continue
        asked = text[at + len(word) :].lstrip().startswith(_AFTER_LATIN) or text[:at].rstrip().endswith(_BEFORE_LATIN)
        if asked and _asks_zh(text, at, word):
            return Change(word, _command_zh(word, text))
    return None


def _asks_zh(text: str, at: int, verb: str) -> bool:
    head, tail = text[:at], text[at + len(verb) :]
    for stop in "，。；！？,;!?":
        head = head.rpartition(stop)[2]
    if tail.startswith(_TAILS_ZH):
        return False
    # A single character is part of many words, so it counts only close by; "为什么" counts in the whole clause.
    return not any(word in (head if len(word) > 1 else head[-NEAR:]) for word in _HEADS_ZH)


def _command_zh(verb: str, text: str) -> str:
    if verb in _UNIT_VERBS:
        words = "".join(character if character.isascii() and character.isalnum() else " " for character in text).split()
        for word in words:
            if word in UNITS:
                return f"systemctl {_UNIT_VERBS[verb]} {UNITS[word]}"
    if verb in ("重启", "重新启动") and any(word in text for word in _MACHINE_ZH):
        return "systemctl reboot"
    if verb in ("清理", "清空", "清除", "删除", "删掉", "轮转") and "journal" in text:
        return "journalctl --vacuum-time=14d"
    return ""
