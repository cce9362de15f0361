"""What people say when they mean a runbook, in English and Chinese, with weights. Data only.

One table for all runbooks, so that choosing one does not import twenty modules. How it is written:

- `[id]`, then lines that begin with a weight: 3 decides alone and outweighs, 2 decides alone, 1 needs a second phrase,
  0 counts only where nothing else decided (a "slow" that stands alone is about CPU, memory and disk; "DNS is slow" is
  about DNS). Phrases end with `;`; a line that is indented goes on with the one before.
- English: words, matched one by one and without their plural `s`; `a|b` either; `word*` a beginning; `..` up to six
  words between; `<path>` a path and `<n>` a number in the text.
- Chinese (any phrase with a Han character): a part of the text; `…` up to twelve characters between, `a|b` either.
- `@unit` is any name in UNITS, `@person` any word in PERSONS. A line may break after `|` or `;`.
- After ` !` stand false friends: where one of them is in the text, its words are not seen by this phrase.
"""

STRONG, LAST = 3, 0
ENOUGH = 2
"""A runbook is chosen from this score on."""

PERSONS = (
    "who|anyone|anybody|someone|somebody|nobody|people|user|root|admin|administrator|i|we|you|they|he|she|stranger|"
    "attacker|hacker|can|could|cannot|cant|may|to|not|didnt|did|does|ever|still"
)
"""What stands before "log in" and "logged on" where they are about people: logs in a folder are files."""

UNITS = (
    "nginx|apache|apache2|httpd|mysql|mysqld|mariadb|postgres|postgresql|redis|mongo|mongod|mongodb|rabbitmq|kafka|"
    "elasticsearch|haproxy|sshd|php|tomcat|caddy|memcached|prometheus|grafana|jenkins|gitlab"
)
"""Services that people call by name alone."""

SOURCE = """
[overview]
2: something .. wrong|broken|off; how is|are .. doing|feeling;
   health !health check of; healthy; overview; overall; check up; checkup; triage; sanity check
2: what is|was .. wrong; whats wrong; anything .. wrong|odd|strange|unusual; any|some problem|issue|trouble;
   everything .. ok|fine|good|alright; anything .. know|watch|worry|attention; ready for .. weekend|holiday|night
2: check|inspect|examine|diagnose .. machine|server|host|box|system|vm|node;
   look at .. machine|server|host|box|system
2: state|status|condition of .. machine|server|host|box|system;
   how is|are .. machine|server|host|box|system .. doing|feeling
1: machine; server !web server !dns server !name server !ntp server !mail server; host; box; system
0: status; check; health
2: 毛病; 看一遍; 查一遍; 过一遍; 需要注意; 要注意; 体检 !整体检; 健康; 概况; 巡检; 总体; 整体; 总览; 什么问题;
   哪里不对; 哪儿不对; 出什么事;
   怎么回事; 有没有异常; 有没有问题; 有问题吗
2: 机器|服务器|主机|系统|本机…状态|情况|正常|怎么样|还好;
   看一下|看看|检查…机器|服务器|主机|本机|系统
0: 状态; 检查; 正常吗

[disk]
2: gb|gib|gig|tb|megabyte|gigabyte .. left|free|available; room|space|enough .. gig|gb|gib|tb|dump|backup|image;
   room left|for; gb|gib|gig|tb|upload|dump|backup|image|file .. fit|fits; fit on|onto .. disk|machine|box|server;
   enough room|space; free up .. space|room; make|more room|space;
   <path> .. percentage|percent|usage|used|capacity;
   run|running|ran out of room;
   disk !disk io !disk latency !disk .. bottleneck; disc; storage; partition; filesystem; file system; free space;
   space left; df;
   volume full; inode; inodes; enospc; mount; mounts; mounted; nfs
3: no space left; out of space; disk full; run|ran|running out of inodes|space; <path> .. full|filling
2: <path> .. space; space .. <path>; low on space|disk; disk usage; how much space;
   read only .. file system|filesystem|mount|disk; file system|filesystem|mount .. hung|hang|stuck|read only
1: space !user space !name space !kernel space; full; gb; capacity; drive
2: 磁盘 !磁盘io !磁盘 io !磁盘读写 !等磁盘 !磁盘慢 !磁盘延迟 !磁盘是不是瓶颈 !磁盘瓶颈;
   硬盘 !硬盘是不是瓶颈 !硬盘瓶颈; 分区 !交换分区;
   存储; 盘满; 文件系统; 索引节点; 空间不足; 剩余空间; 放得下; 放下; 装得下; 装下; 存得下; 根目录; 挂载; 系统盘;
   数据盘; 空间
3: 空间不够; 空间满; 磁盘满; 盘快满; inode; <path>…满
1: 满了; 快满; 容量
0: <path>

[bigfiles]
3: take|takes|taking|took up .. <path>;
   占地方; taking|takes|take up .. room|space;
   log|file|directory|directories|folder .. huge|grew|grown|growing|ballooned|bloated;
   large|larger|largest|big|bigger|biggest|huge|heaviest file|directory|directories|folder|dir|log|thing
3: what|who|which .. eat|eats|eating|using|use|uses|fill|fills|filling|taking|takes|hog|hogging|consuming|
   consumes|ate .. space|disk|storage|gb !uses .. memory
2: delete|remove|clean|clear|purge|prune|rm|truncate|wipe|empty|compress|archive|rotate .. <path>;
   old|older|stale|rotated log|file|backup|dump|archive
3: where .. space|disk|gb go|gone|went; space .. go|gone|went;
   file|directories|directory|folder .. largest|biggest|big|huge; du; disk hog
1: biggest; largest; directory; directories; folder
3: 大文件; 大目录; 哪个目录|文件夹|文件…大; 哪些文件|目录|文件夹…大; 目录|文件|文件夹…最大|占用|占的;
   最大的|最大…目录|文件|文件夹;
   谁|什么|哪些|哪个…占…空间|磁盘|硬盘; 占用空间最; 占空间; 占…空间…多;
   空间…哪里去|去哪|哪去; 什么东西这么大; 东西…这么大; 空间…谁|什么…吃|占
0: <path>

[memory]
2: free h|m|g|b;
   memory !out of memory !memory killed; mem; ram; swap; swapping; swapped; meminfo; memory leak; page cache;
   cached memory
3: memory usage; low on memory; swap usage; uses|using|eating .. memory|ram
2: 内存 !内存溢出 !爆内存; 交换分区; 换页; 虚拟内存; swap; 缓存占
3: 内存不足; 吃内存; 内存占用; 占内存; 内存泄漏
0: slow|slower|slowly|sluggish|lag|laggy|lagging|hang|hanging|freezes|unresponsive|performance|crawl|crawls|crawling|
   snail;
   慢; 卡; 性能

[oom]
3: vanished|disappeared|died .. kernel; kernel .. take|took .. out|down; vanished|disappeared|died suddenly;
   suddenly vanished|disappeared|died|gone; exit code|status 137; code 137; sigkill; signal 9; kill 9; oom;
   oomkill*; out of memory; oom killer;
   killed .. memory; memory .. killed; kernel .. killed|kill;
   was|were|got|gets|getting|been killed; was|were|is|are .. killed; who|what killed
3: 突然没了; 突然消失; 莫名消失; 无故消失; 内核干的; 退出码 137; 退出码137; 137 退出; 信号 9; 被杀; 被系统杀;
   被 kill; 被kill; 被 oom; 内存溢出; 爆内存; 内存耗尽; 被内核杀;
   杀掉了; 谁杀

[cpu]
2: core !core dump; cpu; load !load balancer !load balancing !load module !page load !download; load average;
   processor; steal;
   stealing; hypervisor; throttled; throttling; core .. busy
3: high load; cpu usage; load high; load average; hogging .. cpu|processor; cpu hog
2: cpu; 核心; 个核; 处理器; 负载 !负载均衡; 限流; 算力
3: 负载高; cpu占用; cpu 占用; 占 cpu; 占cpu; 使用率高; cpu 使用率; cpu使用率
0: slow|slower|slowly|sluggish|lag|laggy|lagging|unresponsive|performance|crawl|crawls|crawling|snail|freezes; 慢; 卡;
   性能; 占用高; 占用率

[io]
3: iowait; io wait; wait|waiting|waits .. disk|io|storage;
   disk|io|storage|drive .. slow|latency|busy|saturated|throughput; slow|busy|overloaded disk|io|storage;
   disk io; io usage|load|pressure|throughput|latency|bottleneck|stat|high; iostat; iops; high io;
   read|write|commit|fsync|flush .. slow|forever|ages; storage|disk .. lagging|laggy|lag; slow read|write;
   disk|drive|storage|ssd|nvme .. bottleneck|slow|overloaded;
   bottleneck .. disk|drive|storage|ssd|nvme
2: io !github io; throughput; iotop
3: 磁盘|硬盘|存储…瓶颈|慢|卡; 慢…存储|磁盘|硬盘; 提交|落盘|刷盘…慢; 写入|读取|读写…慢; 磁盘io; 磁盘 io;
   磁盘…慢|延迟|忙; 读写; 等磁盘; 等待磁盘; iowait; io 等待;
   io等待; 硬盘…慢; io 高; io高
2: io高; io 很; io很; 吞吐
0: slow|slower|slowly|sluggish|lag|laggy|lagging|crawl|crawls|crawling|snail; 慢; 卡

[services]
2: @unit keep|keeps restarting|crashing|dying|failing; @unit run|runs|respond|responding|reachable;
   does|is|did|has|are .. @unit .. run|work|running|respond|answer;
   service; systemd; systemctl; unit; daemon; daemons
3: failed service|unit|daemon;
   service|unit|daemon .. failed|fail|down|dead|crash|crashed|running|active|broken|loop;
   service|unit|daemon .. up; which .. failed !failed login !failed password
2: @unit .. come|came|comes|coming back; bring @unit back|up; turn|switch|take|shut|spin|bring .. @unit;
   @unit .. running|up|down|failed|fail|fails|start|starts|started|crash|crashes|crashing|crashed|alive|
   dead|restart|restarts|restarted|status|work|working|broken|ok|healthy|stopped|stop|flapping
2: restart|start|stop|reload|enable|disable .. @unit|ssh|cron|crond
1: failed !failed login !failed password !failed ssh; broken; crashing; start; restart; wont start; status of
2: 服务 !服务器 !dns服务 !服务对外; 单元; 守护进程; systemd; 起不来; 启动失败;
   启动不了; 拉不起来; 挂了
2: @unit…在跑|跑着|还在|活着|挂|启动|起来|停|重启|运行|状态|正常|崩|死
2: 重启|停掉|停止|启动|停|关掉|拉起…@unit
3: 哪些服务; 服务挂; 服务失败; 服务…失败|挂|正常|异常|起不来|运行

[logs]
2: log !@person log in|into|on|out !log out; journal; journalctl; syslog; dmesg; stack trace; warning
2: error|warning|message|event|exception logged|log;
   error|warning|message|event|exception|what|anything|something|nothing|everything .. logged in|on|to|at;
   recent error; error; errors lately; kernel error|warning|message|complain*
3: log .. error|say|show|fill; error .. log|journal|syslog; journal .. say|show; log file
1: lately; recent; exception
2: 堆栈; 日志 !日志文件…大 !日志文件特别大 !日志文件很大; 报错; 错误; journal; 告警; 内核…异常|报|告警
3: 错误日志; 日志…错|异常|报错

[ports]
2: bound to|on; port; ports; listen; listening; listener; socket; bind; exposed; netstat
3: address already in use; open port; listening on; port <n>; port .. in use|open|used|taken;
   exposed to .. everyone|world|internet|public; reachable from .. outside|internet
2: 端口; 绑定; 绑在; 监听; 对外; 暴露
3: 端口…占; 占用…端口; 哪些端口; 端口…监听

[net]
2: reach .. outside|world|internet|out; outside world; network; net; interface; nic; eth0|ens3|enp0s3|wlan0|bond0;
   packet; gateway; routing; route; ip address;
   connectivity; internet !exposed .. internet !from .. internet; link down; bandwidth; ping
3: conntrack; connection tracking|table; nf conntrack; packet loss; drop|dropping|dropped|lost packet;
   packet .. drop|dropped|loss|lost; default route|gateway;
   network .. down|slow|ok|unreachable; cant|cannot reach|connect|ping; no network|internet|connectivity
2: 网络; 网卡; 丢包; 网关; 路由; 连不上; 不通; 断网; 上不了网; 上不了外网; 外网; 外部网络; 内网; 连不了网; 带宽;
   网速; 连接跟踪; conntrack; ip地址;
   ip 地址
3: 网络不通; 网卡…丢; 默认网关; 网络慢

[dns]
3: dns; nameserver; name server; resolver; resolv conf; name resolution; resolve|resolves|resolving;
   domain name; host|hostname|name lookup|lookups; lookup .. fail|fails|failing; nslookup
3: dns; 域名; 解析 !无法解析日志; 主机名解析

[time]
3: clock; ntp; ntpd; chrony; chronyd; timezone; time zone; timesync; timesyncd; time sync; time drift;
   clock skew; time .. right|wrong|correct|synchronised|synchronized|synced|accurate|off; system time;
   timedatectl
2: sync|synced|synchronised|synchronized .. ntp|time; what time|date
3: 时钟; 时区; ntp; 对时; 时间同步; 校时; 系统时间; 时间…准|对|偏|差|慢|快; chrony

[reboot]
3: machine|server|host|box|system .. restarted|rebooted;
   reboot !need|needs|require|requires|required .. reboot !reboot required; rebooted; rebooting; uptime;
   last boot; booted; been up; been running; boot time; power loss; power cut|outage|failure;
   unclean shutdown; shut down; shutdown
3: last restart|start|startup; machine|server|host|box|system .. last restart; power .. cut|outage|blackout|lost;
   machine|server|host|box|system .. crash|crashed|restart|restarted|went down|panic; kernel panic;
   crash .. night; when .. boot; poweroff; power off
1: crash; crashed
3: 重启过; 上次重启; 重启时间; 重启记录; 什么时候重启; 最近重启; 宕机; 死机; 开机; 启动时间;
   运行了多久; 运行多久; 运行了多少; 运行多少; 运行…几天|多少天; 断电; 断过电; 停电; 掉电; 电源…断; 关机; 内核崩溃;
   机器|服务器|主机|系统|本机…重启;
   重启…机器|服务器|主机|系统|本机

[logins]
3: ssh in|into|from; sshed in|into; who is on; who .. on .. machine|server|host|box;
   login; logins; @person logged|log in|into|on;
   logged in|on !logged in|on <path> !logged in|on the|this|last|past !what|which was|were|is|has|got logged in|on
   !error|warning|failure|message|event|exception|line|anything|everything|something|nothing logged in|on
   !what|which|error|warning|failure|message|event|exception .. logged in|on;
   log in|into from|with|as|via|over|by|through|attempt|failure|history; who is on; sign in; signed in;
   brute forc*; bruteforc*;
   failed password|login|ssh; ssh attack|login|attempt; intruder; intrusion; hacked; hacking;
   break in; breaking in; session .. user; who .. online; attacker; compromised
2: w; lastb; user .. on|online
3: ssh…上来|进来|登|连上|连进; 密码…错|失败|试; 登录; 登陆; 谁在; 暴力破解; 爆破; 谁连; 在线用户; 入侵; 被黑; 撞库;
   扫 ssh; 扫ssh

[timers]
3: on schedule; run|runs|ran .. on time; logrotate; cron; crontab; cronjob; cron job; timer; timers; scheduled;
   schedule; nightly job|backup; at job; anacron;
   periodic job
2: backup .. run|ran|fail|failed
3: 按时; 准时; logrotate; 定时; 计划任务; cron; crontab; 定期任务; 备份任务; 周期任务

[updates]
3: update !update the dns !update dns; updates; upgrade; upgrades; upgradable; upgradeable; patch; patches;
   patched; outdated; up to date; security fix; kernel version; apt; dnf; yum; unpatched; cve; cves;
   vulnerabilit*; reboot required; need|needs|require|requires .. reboot
2: package; packages; new|newer version|kernel
3: 补丁; 更新; 升级; 内核版本; 软件包; 最新的; 最新版; 漏洞; 内核…新; 需要重启; 要重启吗;
   要不要重启

[certs]
3: cert; certs; certificate; tls; ssl; x509; letsencrypt; lets encrypt;
   expire|expires|expiry|expiring|expired|expiration !password .. expire; https .. expire|valid|invalid|break|ok
3: https…失效|有效|过期|到期|问题; 证书; 过期 !密码过期; tls; ssl; 到期

[containers]
3: docker; container; podman; containerd; compose; pod; docker image; dangling image
3: 容器; docker; 镜像; podman

[processes]
3: zombie; defunct; d state; uninterruptible; too many open files; file handle; file descriptor; open file;
   stuck|hung|frozen process|processes|task|tasks;
   process|processes|task|tasks .. stuck|hung|frozen|hang|blocked; emfile; ulimit; pid limit; cannot fork;
   fork failed; fork .. unavailable|cannot|failed|error; resource temporarily unavailable; nofile; hung task
2: process !which process !what process;
   processes !which processes .. memory|cpu !processes waiting !waiting processes; thread count;
   how many process|thread
3: 僵尸; 卡死; 句柄; 文件描述符; 打开文件; 进程…卡|挂起|僵; d 状态; d状态; 进程数;
   进程太多; 无法 fork; 打开的文件
2: 进程 !哪个进程 !什么进程 !哪些进程 !守护进程 !的进程"""


def table_of(source: str) -> "dict[str, list[tuple[int, str]]]":
    """Weight and phrases by runbook. Raises ValueError for a line that is not in the notation."""
    tables: dict[str, list[tuple[int, str]]] = {}
    rows: list[tuple[int, str]] = []
    for line in source.replace("@unit", UNITS).replace("@person", PERSONS).splitlines():
        if not line.strip():
            continue
        if line.startswith("["):
            rows = tables.setdefault(line.strip("[]"), [])
        elif line[1:3] == ": " and line[0] in "0123":
            rows.append((int(line[0]), line[3:]))
        elif line.startswith("   ") and rows:
            weight, phrases = rows[-1]
            rows[-1] = weight, phrases + ("" if phrases.endswith("|") else " ") + line.strip()
        else:
            raise ValueError(f"not a line of phrases: {line[:60]!r}")
    return tables


PHRASES = table_of(SOURCE)
