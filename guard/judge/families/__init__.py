"""Which module knows which program. A module is loaded when one of its programs occurs.

`docs/judging.md` says how to add a family. The lists here are written out, not collected at start: the hot
path must not
import a family to learn what it holds. `tests/judge/test_families.py` checks that lists and modules agree.
"""

from guard.judge import paths
from guard.judge.shell.syntax import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from guard.judge.options import Parsed
    from guard.judge.program import Call, Program
    from guard.judge.rules import Table, Verbs

    _Check = Callable[[Call, str, list[Word], int], None]

_NAMES = {
    "archives": """
        7z 7za 7zr 7zz ar brotli bsdtar bunzip2 bzip2 compress cpio gtar gunzip gzip lz4 lzma lzop pbzip2 pigz
        pixz rar tar uncompress unlzma unrar unxz unzip unzstd xz zip zipinfo zstd
    """,
    "aws": """
        aws awslocal
    """,
    "batches": """
        parallel xargs
    """,
    "cloud": """
        aliyun az bq cf civo cloudflared copilot datadog doctl eb exo firebase fly flyctl gcloud govc hcloud
        heroku ibmcloud linode-cli netlify newrelic oci openstack ovhcloud pd railway render sam scw sentry-cli
        sfdx snyk tccli upctl vercel vultr-cli wrangler
    """,
    "containers": """
        crictl ctr docker docker-compose nerdctl podman podman-compose
    """,
    "data": """
        arangosh bcp clickhouse-client clusterdb couchbase-cli cqlsh createdb createuser cypher-shell dropdb
        dropuser duckdb etcdctl influx initdb isql kafka-console-consumer kafka-consumer-groups kafka-topics
        keydb-cli mariadb mariadb-admin mariadb-dump mongo mongod mongodump mongoexport mongoimport mongorestore
        mongosh mydumper myloader mysql mysql_secure_installation mysql_upgrade mysqladmin mysqlcheck mysqld
        mysqld_safe mysqldump mysqlimport mysqlpump mysqlshow mysqlslap neo4j nodetool pg_basebackup pg_config
        pg_controldata pg_createcluster pg_ctl pg_ctlcluster pg_dropcluster pg_dump pg_dumpall pg_isready
        pg_lsclusters pg_resetwal pg_restore pg_rewind pg_upgrade pg_waldump pgbackrest pgbench postgres psql
        rabbitmq-diagnostics rabbitmqctl redis-cli redis-dump redis-server reindexdb sqlcmd sqlite sqlite3
        sqlplus tsql usql vacuumdb valkey-cli
    """,
    "desktop": """
        airport caffeinate csrutil dconf defaults diskutil ditto dscl dseditgroup fdesetup gnome-open gsettings
        hdiutil ioreg kde-open kextload kextstat kextunload launchctl launchd log machine mdfind mdls
        networksetup notify-send nvram open pbcopy pbpaste pfctl plutil pmset profiles say scutil security
        setxkbmap softwareupdate spctl sw_vers sysadminctl system_profiler systemsetup tmutil vm_stat wl-copy
        wmctrl xclip xcode-select xdg-open xdotool xinput xrandr xsel xset zenity
    """,
    "files": """
        borg code cp dd duplicity ed emacs ex fallocate gcp gedit gio-trash gmv helix hx install joe kak link ln
        mcedit micro mkdir mkfifo mknod mmv mv nano ne nvim pico prename qmv rename restic rm rmdir rsnapshot
        rvim scrub semanage setsebool shred srm subl touch trash trash-empty trash-put truncate unlink vi vidir
        view vim vimdiff wipe
    """,
    "firewall": """
        fail2ban-client firewall-cmd firewall-offline-cmd ip6tables ip6tables-restore ip6tables-save ipset
        iptables iptables-legacy iptables-nft iptables-restore iptables-save netfilter-persistent nft ufw
    """,
    "forges": """
        bzr gh gitk glab hg lazygit svn tig
    """,
    "infrastructure": """
        ansible ansible-config ansible-console ansible-doc ansible-galaxy ansible-inventory ansible-lint
        ansible-playbook ansible-pull ansible-vault bolt capistrano cdk chalice chef chef-client fab knife mina
        packer pulumi puppet salt salt-call salt-key saltstack serverless sls supabase terraform terragrunt tofu
        vagrant
    """,
    "interpreters": """
        R Rscript airflow alertmanager amtool apache2ctl apachectl as bc biolatency black bmake bpftool bpftrace
        bpython c++ caddy cc celery clang clang++ clisp cmake coffee configure containerd convert coredns crash
        cron crond crystal cscript ctest cypress dart dbt dc delve deno django-admin dlv dmake dnsmasq dockerd
        doveadm doveconf dovecot dtrace elixir envoy erl esbuild eslint etcd eu-stack execsnoop exiftool exim
        ffmpeg ffprobe flake8 flask flutter ftrace g++ gas gcc gcore gdb gfortran ghci gjs gmake gnuplot
        golangci-lint grafana-server groovy grunt gs gst guile gulp gunicorn hadolint haproxy httpd hugo
        identify iex inkscape ipython ipython3 irb isort jar java javac jcmd jekyll jest jjs jmap jpegoptim jps
        jrunscript jshell jsonlint jstat julia jupyter just jython kotlin kube-apiserver kubelet latex ld
        libreoffice lldb lua luajit m4 magick mailq make mediainfo meson mkdocs mocha mogrify mono montage mypy
        named named-checkconf named-checkzone nasm newaliases next ng nginx ninja node node_exporter nodejs nox
        ntpd nuxt ocaml octave opensnoop opsagent opsagent-mcp opsx optipng osascript pandoc pdffonts pdfimages
        pdfinfo pdflatex pdftk pdftotext perf perl phantomjs php php-cli php-fpm phpunit playwright postalias
        postconf postfix postmap postqueue postsuper pre-commit prettier prometheus promtool pstack py-spy
        pylint pypy pypy3 pytest python python2 python3 python3. qpdf rails rake rbspy rlwrap rndc rollup rr
        rspec rsyslogd rubocop ruby ruff runghc runhaskell rustc sbcl scala scons shellcheck shfmt soffice sox
        sphinx-build sshd stap streamlit swift sysdig task tcc tclsh tcplife tex tox trace-cmd traefik ts-node
        tsc tsx uftrace unbound unbound-checkconf unbound-control uvicorn uwsgi valgrind varnishadm varnishd
        vite vue webpack wish wkhtmltopdf wscript xelatex yamllint
    """,
    "metadata": """
        chacl chattr chcon chgrp chmod chown restorecon setcap setfacl setfattr
    """,
    "monitors": """
        atop ausearch bmon btm btop cpupower ctop dmidecode dstat facter faillog fastfetch fuser glances htop
        hwinfo ifstat iftop inxi iotop iotop-c iotop-py ipmitool lastlog lnstat lshw lsof lspci lstopo
        lstopo-no-graphics neofetch nethogs nmon nstat nvidia-smi os-prober osqueryi pidstat powertop procinfo
        ps pv rocm-smi sar screenfetch sensors top
    """,
    "network": """
        arp arping arptables brctl bridge chronyc conntrack delv dhclient dhcpcd dig drill ebtables ethtool
        finger fping hciconfig host ifconfig ifdown ifenslave ifup ip ip-tunnel ipvsadm iwconfig kdig mii-tool
        mtr netplan netstat nmcli nmtui nslookup ntpq ntpstat ntptime ping ping6 rfkill route ss ssh-keyscan
        strongswan tc tcpdump tcptraceroute tracepath traceroute traceroute6 vconfig wg wg-quick whois
    """,
    "objectstores": """
        azcopy b2 gsutil mc rclone s3cmd s4cmd s5cmd
    """,
    "packages": """
        add-apt-repository ant apk apt apt-add-repository apt-cache apt-config apt-file apt-get apt-key
        apt-listchanges apt-mark aptitude asdf bazel brew buck bun bundle bundler bunx cabal cargo choco
        composer conan conda corepack cpan cpanm cs debconf-set-selections debconf-show deborphan debsums
        dlocate dnf dnf5 do-release-upgrade dotnet dpkg dpkg-deb dpkg-divert dpkg-query dpkg-reconfigure
        dpkg-statoverride dub emerge eopkg equery eselect flatpak fnm gem ghcup go gofmt gradle gradlew guix
        hatch helmfile lein leiningen lerna luarocks mamba mas microdnf micromamba mise mix mvn mvnw n
        needrestart nimble nix nix-build nix-channel nix-env nix-shell nix-store nixos-rebuild npm npx nuget nvm
        nx opam opkg pacman pants paru pdm pear pecl pip pip3 pipenv pipx pkg pkg_add pkg_delete pkgin pnpm pnpx
        poetry popularity-contest port ppa-purge pyenv qlist raco rbenv rebar3 rpm rush rustup rvm rye sbt scoop
        sdk slackpkg snap stack swupd tasksel tdnf tlmgr turbo unattended-upgrade uv uvx vcpkg virtualenv volta
        winget xbps-install xbps-query xbps-remove yarn yay yum zypper
    """,
    "remote": """
        abduco at atq atrm autossh batch byobu dtach expect minicom screen script slogin ssh ssh-agent sshpass
        tmux unbuffer zellij
    """,
    "scripts": """
        awk gawk gsed mawk nawk original-awk sed
    """,
    "search": """
        ack ack-grep ag bfs bzgrep egrep fd fdfind fgrep find gfind ggrep grep pt rg rgrep ug ugrep updatedb
        xzgrep zegrep zfgrep zgrep zstdgrep
    """,
    "shellbuiltins": """
        . : [ alias bg bind break builtin caller cd command compgen complete compopt continue coproc declare
        dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs let local
        logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend test
        times trap true type typeset ulimit umask unalias unset wait
    """,
    "storage": """
        addpart automount badblocks bindfs blkdiscard blkid blkzone blockdev btrfs btrfstune ceph cfdisk cgdisk
        cifsiostat cryptsetup debugfs debugreiserfs delpart dmsetup dosfsck dumpe2fs e2freefrag e2fsck e2label
        e4defrag edquota eject encfs exfatlabel exportfs fatlabel fdformat fdisk filefrag fsadm fsck fsck.
        fsfreeze fstrim fusermount fusermount3 gcsfuse gdisk gluster gocryptfs growpart hdparm iscsiadm kpartx
        losetup lsblk lsiscsi lvchange lvconvert lvcreate lvdisplay lvextend lvm lvmconfig lvmdiskscan lvmdump
        lvreduce lvremove lvrename lvresize lvs lvscan mdadm mkdosfs mke2fs mkfs mkfs. mkntfs mkswap mkudffs
        mount mount.cifs mount.nfs mountstats multipath newfs nfsiostat nfsstat ntfsfix ntfsresize nvme nwipe
        parted partprobe partx pmount pumount pvchange pvck pvcreate pvdisplay pvmove pvremove pvresize pvs
        pvscan quota quotacheck quotaoff quotaon rados rbd repquota resize2fs rpcinfo s3fs sdparm setquota
        sfdisk sg_inq sgdisk showmount smartctl smbstatus sshfs swaplabel tune2fs udisksctl umount veracrypt
        vgcfgbackup vgcfgrestore vgchange vgck vgcreate vgdisplay vgexport vgextend vgimport vgmerge vgreduce
        vgremove vgrename vgs vgscan vgsplit wipefs xfs_admin xfs_fsr xfs_growfs xfs_info xfs_repair zdb
        zerofree zfs zpool
    """,
    "system": """
        aa-complain aa-disable aa-enforce aa-status acpi addgroup adduser apparmor_parser arch auditctl
        augenrules aureport authselect biosdecode busctl chage chfn chgpasswd chkconfig chpasswd chsh
        coredumpctl cpu-checker cpuid crontab dbus-monitor dbus-send delgroup deluser depmod dmesg dracut free
        gdbus getcap getenforce getent getpcaps getsebool gpasswd groupadd groupdel groupmod groups grpconv
        grub-install grub-mkconfig grub2-mkconfig grubby halt hostid hostnamectl id init insmod iostat ipcs
        isainfo journalctl kexec kill killall killall5 kvm-ok last lastb ldconfig ldd loadavg locale localectl
        logger loginctl logrotate lsattr lsb_release lscpu lsdev lsinitramfs lsinitrd lsipc lsirq lslocks
        lslogins lsmem lsmod lsns lsscsi lsusb machinectl mcookie mesg mkinitcpio mkinitrd modinfo modprobe
        mpstat networkctl newgrp newusers numastat numfmt pam-auth-update passwd pct pgrep pidof pkill pmap
        poweroff pstree pvesh pveum pwconv pwdx qdbus qm rc-service rc-status rc-update realm reboot renice
        resolvectl rmmod runlevel semodule service sestatus setenforce sg shutdown skill slabtop slay smem snice
        supervisorctl swapoff swapon sync sysctl systemctl systemd-analyze systemd-cgls systemd-cgtop
        systemd-delta systemd-detect-virt systemd-escape systemd-id128 systemd-path systemd-resolve sysv-rc-conf
        telinit timedatectl tload tuned-adm uname update-alternatives update-grub update-initramfs update-rc.d
        uptime useradd userdel usermod users utmpdump uuidgen vigr vipw virsh virt-what visudo vmstat w wall who
        whoami write xe xkill xl zkill
    """,
    "text": """
        addr2line apropos b2sum b3sum base32 base64 basename basenc bat batcat bzcat c++filt cal cat ccze cheat
        cksum cloc cmp col colordiff colrm column comm cowsay cowthink crc32 csplit csvcut csvgrep csvjson
        csvlook csvsort csvstat cut datamash date df diff diff3 diffstat dir dirname dnsdomainname domainname
        dos2unix du envsubst exa expand expr eza factor figlet file findmnt fmt fold fx getconf getfacl getfattr
        getopt gron gzcat hd head hexdump hexyl highlight hostname iconv in2csv info infocmp jless join jq less
        locate logname lolcat look ls lsd lz4cat mac2unix man md5 md5sum mdcat mktemp mlr more most mountpoint
        namei ncal nisdomainname nl nm nproc objdump od paste patch pathchk pg plocate pr printenv pygmentize
        readelf readlink realpath recode rev rlog scc sdiff seq sha1sum sha224sum sha256sum sha384sum sha512sum
        shasum shuf size sleep sloccount sort split sponge stat strings sum tac tail tee tidy tldr toilet tokei
        tput tr tree tsort tty unexpand uniq unix2dos unvis usleep vdir vis wc wdiff whatis whereis which
        xmllint xsv xxd xxhsum xzcat yes ypdomainname yq zcat zcmp zdiff zless zmore zstdcat
    """,
    "transfer": """
        ab acme.sh aria2c axel certbot chisel chronyd curl curlftpfs frpc ftp gost gpg gpg2 gpgv grpcurl hey
        http https hydra iperf iperf3 k6 lftp links locust mail mailx masscan msmtp mutt nc nc.openbsd
        nc.traditional ncat ncftp netcat ngrep ngrok nikto nmap ntalk ntpdate openssl proxytunnel rcp rlogin
        rpcclient rsh rsync scp sendmail sftp siege smbclient sntp socat sqlmap ssh-add ssh-copy-id ssh-keygen
        swaks talk tcpflow telnet tftp tshark vegeta w3m websocat wget wireshark wrk xh youtube-dl yt-dlp zmap
    """,
    "gitkin": """
        git-lfs
    """,
    "kubernetes": """
        argocd cilium consul eksctl flux helm istioctl k k3d k9s kind kops kubeadm kubecolor kubectl kubectx
        kubens kustomize linkerd microk8s minikube nomad oc rancher skaffold stern tilt vault velero
    """,
    "vcs": """
        git
    """,
    "wrappers": """
        ash bash busybox bwrap capsh catchsegv cgexec choom chronic chroot chrt cpulimit csh dash
        dbus-run-session direnv doas dumb-init elvish entr env fakeroot faketime firejail fish flock gosu gtime
        gtimeout ionice ksh ksh93 linux32 linux64 ltrace mksh nice nohup nsenter nu numactl pkexec posh
        powershell prlimit proxychains pwsh rbash runuser rzsh setarch setpriv setsid sh softlimit stdbuf strace
        su su-exec sudo sudoedit systemd-inhibit systemd-run taskset tcsh time timeout tini torsocks toybox
        unshare viddy watch xonsh xvfb-run yash zsh
    """,
}

PROGRAMS: dict[str, str] = {name: module for module, names in _NAMES.items() for name in names.split()}
PREFIXES: tuple[tuple[str, str], ...] = (("mkfs.", "storage"), ("fsck.", "storage"), ("python3.", "interpreters"))
"""Programs named by a family of suffixes: `mkfs.ext4`, `python3.12`."""

_MODULES: "dict[str, dict[str, Program]]" = {}


_NOTHING = ("", 0, "")
_PATTERNS = (
    "inc", "exc", "ignore", "iglob", "glob", "regex", "pattern", "hide", "no-", "skip", "prune", "match", "filter",
    "type", "name", "label", "format", "color", "colour", "sort", "sep", "delim", "theme", "style", "lang", "user",
    "group", "host", "tls", "ca-", "cacert", "cafile", "capath", "certificate", "client", "key", "ident", "config",
    "kubeconfig", "port", "grep", "unit", "title", "template", "output-f", "jsonpath", "field", "selector",
)  # fmt: skip
"""How option names begin whose value is a pattern, a name, or what the program logs in with: no file is shown."""


def _shown(word: "Word") -> "Word | None":
    """The value inside an option word that no grammar lists (`--from-file=F`, `-XF`)."""
    text = word.value
    if text is None or len(text) < 4:
        return None
    if text.startswith("--"):
        name, _, value = text[2:].partition("=")
        if not value or name.startswith(_PATTERNS):
            return None
    else:
        value = text[2:]
    return Word(word.span, value, (), True)


def credentials(call: "Call", words: "Sequence[Word]") -> None:
    """Folders that are read with all that is in them: one that holds credentials counts as its files."""
    for word in words:
        value = call.value(word)
        if value is not None and paths.secret(paths.normal(value) + "/-"):
            call.effect("secret-read", value)
            call.note(2, "path.secret", f"reads a folder of credentials ({value})", word, "law 4")


def _values(call: "Call", parsed: "Parsed", table: "dict[str, tuple[str, int, str]] | None" = None) -> None:
    """A reader's option values that name a file of credentials: what is given as a file is read, listed or not."""
    for option in parsed.options:
        word = option.value
        if word is None or option.action or word.value is None or not option.name.startswith("--"):
            continue
        if not option.name[2:].startswith(_PATTERNS) and paths.secret(paths.normal(word.value)):
            call.reads(word)
    for word in parsed.unknown:
        text = word.value or ""
        if table and text[:1] == "-" and text[1:2].isalpha():
            # A letter that no grammar lists ends the reading of a bundle; one that acts can stand behind it.
            for letter in text[2:]:
                if table.get("-" + letter, _NOTHING)[2] not in _HARMLESS:
                    call.note(
                        2, f"{call.name}.bundle", f"-{letter} may act, in a bundle that is not read", word, "law 2"
                    )
                    break
        inner = _shown(word)
        if inner is not None and inner.value is not None and paths.secret(paths.normal(inner.value)):
            call.reads(inner)


_HARMLESS = ("", "ok", "R0", "read", "helper", "config")
"""What an option may do without being more than a read by itself."""


def _bundled(call: "Call", word: "Word", *tables: "dict[str, tuple[str, int, str]]") -> None:
    """A letter that acts, behind others in a word: found unless one before it takes the rest as its value."""
    for letter in (word.value or "")[1:]:
        _, kind, action = next((table["-" + letter] for table in tables if "-" + letter in table), _NOTHING)
        if action not in _HARMLESS:
            call.note(2, f"{call.name}.bundle", f"-{letter} may act, in a bundle that is not read", word, "law 2")
        if kind or action or not letter.isalpha():
            return


def _verb_options(program: "Verbs", check: "Callable[[Call, str, list[Word], int], None] | None") -> "_Check":
    """Options behind a verb that reads: bundles with a letter that acts, and values that name credentials."""

    def judge(call: "Call", verb: str, rest: "list[Word]", level: int) -> None:
        if check is not None:
            check(call, verb, rest, level)
        if level or not rest or verb.endswith(("exec", "run")):
            return
        danger = program.danger.table or {}
        known = program.grammar.table or {}
        for word in rest:
            text = word.value
            if text == "--":
                return
            if text is None or text[:1] != "-" or len(text) < 3:
                continue
            if text[1] != "-":
                if danger and not program.danger.single and text[:2] not in danger:
                    _bundled(call, word, danger, known)
            elif text.partition("=")[0] not in known and text.partition("=")[0] not in danger:
                inner = _shown(word)
                if inner is not None and "/" in (inner.value or "") and paths.secret(paths.normal(inner.value or "")):
                    call.reads(inner)

    return judge


def _guard(programs: "dict[str, Program]") -> None:
    """Every reading table, and every verb that reads, looks at option values too, beside what its own check does."""
    from guard.judge.rules import Table, Verbs

    done: set[int] = set()
    for program in programs.values():
        if isinstance(program, Table) and not program.level and id(program) not in done:
            done.add(id(program))
            program.check = _both(program, program.check)
        elif isinstance(program, Verbs) and id(program) not in done:
            done.add(id(program))
            program.check = _verb_options(program, program.check)


def _both(program: "Table", check: "Callable[[Call, Parsed], None] | None") -> "Callable[[Call, Parsed], None]":
    grammar = program.grammar

    def judge(call: "Call", parsed: "Parsed") -> None:
        if check is not None:
            check(call, parsed)
        if parsed.options or parsed.unknown:
            _values(call, parsed, grammar.table if grammar.dangerous and not grammar.single else None)

    return judge


def load(module: str) -> "dict[str, Program]":
    """The programs of one family."""
    found = _MODULES.get(module)
    if found is None:
        name = f"guard.judge.{module}" if module == "wrappers" else f"guard.judge.families.{module}"
        found = _MODULES[module] = __import__(name, fromlist=["PROGRAMS"]).PROGRAMS
        _guard(found)
    return found
