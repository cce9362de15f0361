"""What a finding is called in a sentence, by its id. Data; `{}` is its subject.

Only where a subject tells more than the id (a mount, a unit, a network card) does the name hold it.
"""

from runbooks.model import Words

NAMES = {
    "bigfiles.files": Words("large files below {}", "{} 下的大文件"),
    "bigfiles.folders": Words("the folders in {}", "{} 中的目录"),
    "certs.ends": Words("the certificate {}", "证书 {}"),
    "containers.broken": Words("broken containers ({})", "异常的容器（{}）"),
    "containers.ended": Words("ended containers ({})", "已退出的容器（{}）"),
    "containers.running": Words("running containers", "运行中的容器"),
    "containers.space": Words("the space that containers take", "容器占用的空间"),
    "cpu.busy": Words("CPU use", "CPU 使用率"),
    "cpu.load": Words("the load", "负载"),
    "cpu.quota": Words("the CPU limit of {}", "{} 的 CPU 限额"),
    "cpu.steal": Words("CPU time taken by the hypervisor", "被宿主机占用的 CPU 时间"),
    "disk.hung": Words("answers from {}", "{} 的响应"),
    "disk.inodes": Words("inodes of {}", "{} 的 inode"),
    "disk.memory": Words("space in memory file systems", "内存文件系统的空间"),
    "disk.path": Words("space at {}", "{} 处的空间"),
    "disk.read-only": Words("writing to {}", "{} 的写入"),
    "disk.space": Words("space on {}", "{} 的空间"),
    "dns.own-name": Words("the machine's own name", "本机名的解析"),
    "dns.servers": Words("name servers", "DNS 服务器"),
    "dns.too-many": Words("the number of name servers", "DNS 服务器的数量"),
    "io.busy": Words("the disk {}", "磁盘 {}"),
    "io.pressure": Words("waiting for disks", "等待磁盘"),
    "io.wait": Words("CPU time spent waiting for disks", "等待磁盘的 CPU 时间"),
    "logins.failed": Words("failed logins", "失败的登录"),
    "logins.now": Words("who is logged in", "在线用户"),
    "logins.root": Words("logins of root", "root 的登录"),
    "logs.errors": Words("errors in the log", "日志中的错误"),
    "memory.available": Words("available memory", "可用内存"),
    "memory.limit": Words("the memory limit of {}", "{} 的内存限额"),
    "memory.pressure": Words("waiting for memory", "等待内存"),
    "memory.swap": Words("swap", "交换空间"),
    "net.conntrack": Words("the connection table", "连接跟踪表"),
    "net.drops": Words("dropped packets on {}", "{} 的丢包"),
    "net.errors": Words("damaged packets on {}", "{} 的错误包"),
    "net.link": Words("the link {}", "网卡 {}"),
    "net.listen-overflows": Words("refused connections", "被拒的连接"),
    "net.resent": Words("TCP segments sent again", "TCP 重传"),
    "net.route": Words("the default route", "默认路由"),
    "oom.killed": Words("processes killed for memory", "因内存被杀的进程"),
    "ports.asked": Words("port {}", "端口 {}"),
    "ports.exposed": Words("port {} on every address", "对所有地址开放的端口 {}"),
    "ports.listening": Words("listening ports", "监听的端口"),
    "processes.files": Words("open files", "打开的文件"),
    "processes.stuck": Words("stuck processes", "卡住的进程"),
    "processes.tasks": Words("tasks", "任务数"),
    "processes.zombies": Words("zombies", "僵尸进程"),
    "reboot.count": Words("the number of starts", "启动次数"),
    "reboot.started": Words("the last start", "最近一次启动"),
    "services.failed": Words("failed services ({})", "失败的服务（{}）"),
    "services.named": Words("the service {}", "服务 {}"),
    "services.restarting": Words("restarting services ({})", "反复重启的服务（{}）"),
    "services.state": Words("the state of systemd", "systemd 的状态"),
    "time.offset": Words("the clock's offset", "时钟偏差"),
    "time.sync": Words("the clock's synchronisation", "时钟同步"),
    "time.zone": Words("the time zone", "时区"),
    "timers.cron": Words("cron jobs", "cron 任务"),
    "timers.failed": Words("failed timers ({})", "失败的定时任务（{}）"),
    "timers.list": Words("timers", "定时任务"),
    "timers.no-cron": Words("the cron daemon", "cron 服务"),
    "updates.kernel": Words("the running kernel", "运行中的内核"),
    "updates.lists": Words("the age of the package lists", "软件包列表的时间"),
    "updates.pending": Words("pending updates", "待装的更新"),
    "updates.restart": Words("a restart that is due", "待重启"),
}


def name_of(id: str, subject: str, title: "Words | None" = None) -> Words:
    """The finding's name; for a user's runbook its title and the subject, else the id in words."""
    words = NAMES.get(id)
    if words is not None:
        return Words(words.en.replace("{}", subject), words.zh.replace("{}", subject))
    what = id.partition(".")[2].replace("-", " ").replace("_", " ")
    title = title or Words(id.partition(".")[0], id.partition(".")[0])
    tail = f" ({', '.join(one for one in (what if what != 'value' else '', subject) if one)})"
    tail = "" if tail == " ()" else tail
    return Words(title.en + tail, title.zh + tail)
