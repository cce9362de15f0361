"""Attempts to change something, as data. Each works without a sandbox, in a scratch, and must not work inside.

An attempt has had an effect when it prints DONE, or when the scratch is different or the victim dead after it.
The current folder is the scratch. The environment has VICTIM (a process with f.txt as descriptor 7, the key as
8 and the FIFO as 9), PTS, STATE, KEY, SOCK (a stream socket), DGRAM, PORT and UDP (loopback listeners), SHM,
SEM, MSG (ids), OURS (the process that runs it).
"""

from __future__ import annotations

from dataclasses import dataclass

NAMES = "import ctypes as c,errno,fcntl,mmap,os,signal,socket as s,struct,time;E=os.environ;V=int(E['VICTIM']);"
LIBC = "l=c.CDLL(None,use_errno=True);l.syscall.restype=c.c_long\n"
LIBC += "k=lambda *a:l.syscall(*[c.c_long(x) if isinstance(x,int) else x for x in a]);"
DONE = "print('DONE')"


@dataclass(frozen=True)
class Attempt:
    name: str
    code: str
    python: bool = False
    root: bool = False
    """Has an effect only for uid 0."""
    user: bool = False
    """Has an effect only for others."""
    profile: str = "local"
    unproven: bool = False
    """Not tried outside the sandbox: it would reach beyond the scratch."""


def shell(name: str, code: str, **more: object) -> Attempt:
    return Attempt(name, code, **more)  # type: ignore[arg-type]


def python(name: str, code: str, **more: object) -> Attempt:
    return Attempt(name, NAMES + LIBC + "\n" + code, python=True, **more)  # type: ignore[arg-type]


FILES = (
    shell("redirect", "echo x > f.txt"),
    shell("append", "echo x >> f.txt"),
    shell("new file", ": > new.txt"),
    shell("sed -i", "sed -i s/a/b/ f.txt"),
    shell("rm", "rm -f f.txt"),
    shell("rm -rf", "rm -rf d"),
    shell("mv", "mv f.txt g.txt"),
    shell("cp over", "cp /etc/hostname f.txt"),
    shell("touch", "touch -d 2001-01-01 f.txt"),
    shell("mkdir", "mkdir nd"),
    shell("rmdir", "rmdir emptyd"),
    shell("chmod", "chmod 600 f.txt"),
    shell("chown", "chown 12:12 f.txt", root=True),
    shell("setfattr", "setfattr -n user.x -v 1 f.txt"),
    shell("chattr", "chattr +d f.txt && echo DONE", root=True, unproven=True),
    shell("truncate", "truncate -s 0 f.txt"),
    shell("fallocate", "fallocate -l 4096 f.txt"),
    shell("mkfifo", "mkfifo ff"),
    shell("mknod", "mknod dn c 1 3", root=True),
    shell("hard link", "ln f.txt hl"),
    shell("symbolic link", "ln -s f.txt sl"),
    shell("tee", "echo z | tee f.txt"),
    shell("dd", "dd if=/dev/zero of=f.txt bs=1 count=1 conv=notrunc"),
    shell("tar", "tar -xf a.tar"),
    shell("git commit", "git -C repo -c user.name=a -c user.email=b commit -qam x"),
    shell("daemonised write", "(setsid env -i bash -c 'sleep 0.3; echo late > f.txt' >/dev/null 2>&1 &); sleep 0.7"),
    shell("write left behind", "(setsid env -i bash -c 'sleep 0.2; echo late > f.txt' >/dev/null 2>&1 &); exit"),
    shell("fifo write", "timeout 2 bash -c 'echo q > ctl.fifo' && echo DONE"),
    shell("write through a root", 'echo x > "/proc/$VICTIM/root$PWD/f.txt"', root=True),
    shell("write through a cwd", "echo x > /proc/$VICTIM/cwd/f.txt"),
    shell("write through a descriptor", "echo x > /proc/$VICTIM/fd/7"),
    shell("oom score of another", "echo 500 > /proc/$VICTIM/oom_score_adj && echo DONE"),
    shell("kernel setting", "echo 1 > /proc/sys/net/ipv4/ip_forward && echo DONE", root=True),
    shell("our own programs", 'echo x > "$TMPDIR/../../bin/sudo" && echo DONE', unproven=True),
    shell("shared memory file", "echo x > /dev/shm/opsagent-attempt && echo DONE; rm -f /dev/shm/opsagent-attempt"),
    shell("terminal of another", 'echo x > "$PTS" && echo DONE'),
    python("open without a write mode that empties", "os.open('f.txt',os.O_RDONLY|os.O_TRUNC)"),
    python("creat", "assert k(85,c.c_char_p(b'f.txt'),0o600)>=0"),
    python("openat2",
           "h=struct.pack('QQQ',os.O_WRONLY|os.O_TRUNC,0,0);assert k(437,-100,c.c_char_p(b'f.txt'),h,24)>=0"),
    python("exchange", "assert k(316,-100,c.c_char_p(b'f.txt'),-100,c.c_char_p(b'other.txt'),2)==0"),
    python("nameless file that gets a name", "f=os.open('.',os.O_TMPFILE|os.O_RDWR)\n"
           "assert k(265,-100,c.c_char_p(b'/proc/self/fd/%d'%f),-100,c.c_char_p(b'named'),0x400)==0"),
    python("reopened for writing",
           "a=os.open('f.txt',0);b=os.open(f'/proc/self/fd/{a}',os.O_WRONLY);os.write(b,b'XX')"),
    python("shared mapping", "f=os.open('f.txt',os.O_RDWR);m=mmap.mmap(f,1);m[0:1]=b'Z'"),
    python("fchmod on a read descriptor", "os.fchmod(os.open('f.txt',0),0o600)"),
    python("fchmodat2", "assert k(452,-100,c.c_char_p(b'f.txt'),0o600,0)==0"),
    python("futimens on a read descriptor", "os.utime(os.open('f.txt',0),(1,1))"),
    python("remove an attribute", "os.removexattr('f.txt','user.kept')"),
    python("lease", "fcntl.fcntl(os.open('own.txt',0),1024,0);" + DONE),
    python("raw handle", "b=c.create_string_buffer(struct.pack('II',128,0)+bytes(128));m=c.c_int()\n"
           "assert k(303,-100,c.c_char_p(b'f.txt'),b,c.byref(m),0)==0\n"
           "f=k(304,os.open('.',0),b,os.O_RDWR);assert f>=0;os.write(f,b'ZZ')", root=True),
)  # fmt: skip

OTHERS = (
    shell("kill", "kill -9 $VICTIM && echo DONE"),
    shell("thread of ours", "for t in $(ls /proc/$OURS/task); do kill -0 $t && echo DONE; done"),
    python("thread of ours by group", "P=int(E['OURS'])\n"
           "for t in os.listdir(f'/proc/{P}/task'): print('DONE') if k(234,P,int(t),0)==0 else 0"),
    python("thread of ours by queue", "b=struct.pack('iii',34,0,-1)+bytes(116);P=int(E['OURS'])\n"
           "for t in os.listdir(f'/proc/{P}/task'): print('DONE') if k(297,P,int(t),0,b)==0 else 0", unproven=True),
    python("thread of ours by descriptor", "P=int(E['OURS'])\n"
           "for t in os.listdir(f'/proc/{P}/task'):\n"
           " for f in (k(434,int(t),0),k(434,int(t),os.O_EXCL),os.open(f'/proc/{t}',os.O_DIRECTORY)):\n"
           "  if f>=0 and k(424,f,0,0,0)==0: print('DONE')"),
    python("thread of ours by owner", "r,w=os.pipe()\n"
           "for t in os.listdir('/proc/'+E['OURS']+'/task'):\n"
           " fcntl.fcntl(r,15,struct.pack('ii',0,int(t)));print('DONE')"),
    shell("environment of ours", "grep -qz . /proc/$OURS/task/*/environ && echo DONE", unproven=True),
    shell("memory of ours", "for t in /proc/$OURS/task/*; do : < $t/mem && echo DONE; done", unproven=True),
    shell("descriptors of ours", "readlink /proc/$OURS/task/*/fd/* | grep . && echo DONE", unproven=True),
    shell("kill probe", "kill -0 $VICTIM && echo DONE"),
    shell("kill the group", "kill -9 -- -$VICTIM && echo DONE"),
    python("kill all", "os.kill(-1,signal.SIGUSR1)", unproven=True),
    python("tgkill", "assert k(234,V,V,0)==0;" + DONE),
    python("pidfd signal", "signal.pidfd_send_signal(os.pidfd_open(V),0);" + DONE),
    python("queued signal", "b=struct.pack('iii',34,0,-1)+bytes(116);assert k(129,V,34,b)==0;" + DONE),
    python("attach", "assert k(101,16,V,0,0)==0;" + DONE),
    python("seize", "assert k(101,0x4206,V,0,0)==0;" + DONE),
    python("memory of another", "os.open(f'/proc/{V}/mem',os.O_RDWR);" + DONE),
    python("write into another", "b=c.create_string_buffer(8);i=struct.pack('PN',c.addressof(b),0)\n"
           "assert k(311,V,i,1,i,1,0)==0;" + DONE),
    python("descriptor of another", "assert k(438,os.pidfd_open(V),7,0)>=0;" + DONE),
    shell("environment of another", "grep -qz . /proc/$VICTIM/environ && echo DONE"),
    shell("nice of another", "renice -n 19 -p $VICTIM && echo DONE"),
    python("nice of all of mine", "os.setpriority(os.PRIO_USER,0,19);" + DONE),
    python("io priority of all of mine", "assert k(251,3,0,3<<13)==0;" + DONE, root=True),
    shell("processor of another", "taskset -p 1 $VICTIM && echo DONE"),
    shell("limits of another", "prlimit --pid $VICTIM --nofile=100:100 && echo DONE"),
    python("scheduler of another", "os.sched_setscheduler(V,os.SCHED_BATCH,os.sched_param(0));" + DONE),
)  # fmt: skip

MACHINE = (
    shell("host name", "hostname opsagent-attempt && echo DONE", root=True),
    shell("clock", 'date -s "$(date)" >/dev/null && echo DONE', root=True, unproven=True),
    shell("mount", "mount -t tmpfs none emptyd && echo DONE && umount emptyd", root=True),
    shell("remount", "mount -o remount,rw .. && echo DONE", root=True),
    shell("mount namespace", "unshare -m true && echo DONE", root=True),
    shell("user namespace", "unshare -U true && echo DONE"),
    shell("namespace of another", "nsenter -t $VICTIM -m true && echo DONE", root=True),
    shell("chroot", "chroot / true && echo DONE", root=True),
    python("clone into a user namespace", "p=k(56,0x10000000|17,0,0,0,0)\nif p==0: os._exit(0)\nassert p>0;" + DONE),
    python("clone3 into a user namespace", "a=struct.pack('8Q',0x10000000,0,0,0,17,0,0,0);p=k(435,a,64)\n"
           "if p==0: os._exit(0)\nassert p>0;" + DONE),
    python("new mount api", "assert k(430,c.c_char_p(b'tmpfs'),0)>=0;" + DONE, root=True),
    python("io_uring", "b=c.create_string_buffer(200);assert k(425,4,b)>=0;" + DONE),
    python("bpf", "a=struct.pack('5I',2,4,4,1,0)+bytes(60);assert k(321,0,a,len(a))>=0;" + DONE, root=True),
    python("perf", "a=struct.pack('IIQ',1,128,0)+bytes(112);f=k(298,a,0,-1,-1,0);assert f>=0;" + DONE, root=True),
    python("user faults", "assert k(323,1)>=0;" + DONE),
    python("fanotify", "assert k(300,0,0)>=0;" + DONE, root=True),
    python("kernel key", "assert k(248,c.c_char_p(b'user'),c.c_char_p(b'opsagent'),c.c_char_p(b'v'),1,-2)>=0;" + DONE),
    python("message queue", "assert k(240,c.c_char_p(b'opsagent'),os.O_CREAT|os.O_RDWR,0o600,0)>=0;" + DONE),
    python("system v segment", "i=k(29,0,4096,0o1600);assert i>=0;k(31,i,0,0);" + DONE),
    python("system v segment of another", "assert k(30,int(E['SHM']),0,0)!=-1;" + DONE),
    python("system v semaphore of another", "assert k(65,int(E['SEM']),struct.pack('Hhh',0,1,0),1)==0;" + DONE),
    python("system v semaphore set", "assert k(66,int(E['SEM']),0,16,1)==0;" + DONE),
    python("system v message of another",
           "b=c.create_string_buffer(64);assert k(70,int(E['MSG']),b,16,0,0o4000)>0;" + DONE),
    python("system v removal", "assert k(31,int(E['SHM']),0,0)==0;" + DONE),
    python("typed into a terminal", "m,t=os.openpty();fcntl.ioctl(t,0x5412,b'x');" + DONE, root=True),
    python("32-bit call", "m=mmap.mmap(-1,4096,prot=7);m.write(bytes.fromhex('b814000000cd80c3'))\n"
           "f=c.CFUNCTYPE(c.c_int)(c.addressof(c.c_char.from_buffer(m)));assert f()==os.getpid();" + DONE),
    python("unknown call", "l.syscall(600);print('DONE') if c.get_errno()!=38 else 0", unproven=True),
    shell("network device", "ip link set lo mtu 9000 && echo DONE; ip link set lo mtu 65536", root=True),
    shell("address", "ip addr add 127.0.0.9/32 dev lo && echo DONE; ip addr del 127.0.0.9/32 dev lo", root=True),
    shell("setuid program", "[ \"$(./suidid -u)\" = 0 ] && echo DONE", user=True),
)  # fmt: skip

TALK = (
    python("daemon socket", "x=s.socket(s.AF_UNIX);x.connect(E['SOCK']);" + DONE),
    python("datagram socket", "s.socket(s.AF_UNIX,s.SOCK_DGRAM).sendto(b'x',E['DGRAM']);" + DONE),
    python("datagram through a pair", "s.socketpair(s.AF_UNIX,s.SOCK_DGRAM)[0].sendto(b'x',E['DGRAM']);" + DONE),
    python("abstract socket", "x=s.socket(s.AF_UNIX);x.connect('\\0opsagent-attempt');" + DONE),
    python("own socket", "x=s.socket(s.AF_UNIX);x.bind('own.sock');" + DONE),
    python("own abstract socket", "x=s.socket(s.AF_UNIX);x.bind('\\0opsagent-own');x.listen();" + DONE),
    python("short abstract socket", "x=s.socket(s.AF_UNIX);x.bind('\\0ninechars');x.listen();" + DONE),
    python("tcp connection", "s.create_connection(('127.0.0.1',int(E['PORT'])),2);" + DONE),
    python("tcp listener", "x=s.socket();x.bind(('127.0.0.1',0));x.listen();" + DONE),
    python("udp", "s.socket(2,2).sendto(b'x',('127.0.0.1',int(E['UDP'])));" + DONE),
    python("netlink to other programs", "s.socket(16,3,2).bind((0,0));" + DONE),
    python("raw packets", "s.socket(17,3,0);" + DONE, root=True),
    python("kernel crypto", "s.socket(38,5,0);" + DONE, unproven=True),
)

SECRETS = (
    shell("state", 'cat "$STATE/log" >/dev/null && echo DONE'),
    shell("state through root", 'cat "/proc/self/root$STATE/log" >/dev/null && echo DONE'),
    shell("state listed and searched", 'grep -rq . "$STATE" && echo DONE'),
    shell("lock of the state", 'flock -n "$STATE/lock" true && echo DONE'),
    shell("key", 'cat "$KEY" >/dev/null && echo DONE'),
    shell("key through a link", 'cat keylink >/dev/null && echo DONE'),
    shell("key through a cwd", 'cd "$(dirname "$KEY")" && cat ./id_test >/dev/null && echo DONE'),
    shell("key through a descriptor of another", "cat /proc/$VICTIM/fd/8 >/dev/null && echo DONE"),
    shell("key through a root of another", 'cat "/proc/$VICTIM/root$KEY" >/dev/null && echo DONE', root=True),
    shell("cloud credentials", 'cat "$HOME/.aws/credentials" >/dev/null && echo DONE'),
    python("key through O_PATH", "a=os.open(E['KEY'],os.O_PATH);os.read(os.open(f'/proc/self/fd/{a}',0),9);" + DONE),
    python("key through a handle", "b=c.create_string_buffer(struct.pack('II',128,0)+bytes(128));m=c.c_int()\n"
           "assert k(303,-100,c.c_char_p(E['KEY'].encode()),b,c.byref(m),0)==0\n"
           "f=k(304,os.open('.',0),b,0);assert f>=0 and os.read(f,9);" + DONE, root=True),
    shell("shadow", "cat /etc/shadow >/dev/null && echo DONE", root=True),
    shell("key by a new name", 'ln "$KEY" "${TMPDIR:-.}/k" && cat "${TMPDIR:-.}/k" && echo DONE'),
    shell("file by a new name", 'ln f.txt "${TMPDIR:-.}/k" && echo x > "${TMPDIR:-.}/k"'),
    shell("key moved", 'mv -n "$KEY" "${TMPDIR:-.}/k" && mv "${TMPDIR:-.}/k" "$KEY" && echo DONE'),
    shell("kernel memory", "head -c1 /proc/kcore >/dev/null && echo DONE", root=True, unproven=True),
    shell("kernel log, consumed", "timeout 1 dd if=/proc/kmsg bs=1 count=1 && echo DONE", root=True, unproven=True),
    shell("terminal read", 'head -c0 "$PTS" && echo DONE'),
)  # fmt: skip

NETWORK = (
    python("another port", "s.create_connection(('127.0.0.1',int(E['PORT'])),2);" + DONE, profile="net"),
    python("post to another port", "x=s.create_connection(('127.0.0.1',int(E['PORT'])),2)\n"
           "x.sendall(b'POST / HTTP/1.0\\r\\n\\r\\n');" + DONE, profile="net"),
    python("another port by fast open",
           "x=s.socket();x.sendto(b'x',0x20000000,('127.0.0.1',int(E['PORT'])));" + DONE, profile="net"),
    python("another port by fast open message", "x=s.socket()\n"
           "x.sendmsg([b'x'],[],0x20000000,('127.0.0.1',int(E['PORT'])));" + DONE, profile="net"),
    python("another port by mptcp",
           "x=s.socket(2,1,262);x.connect(('127.0.0.1',int(E['PORT'])));" + DONE, profile="net"),
    python("listener", "x=s.socket();x.bind(('127.0.0.1',0));x.listen();" + DONE, profile="net"),
    python("listener without an address", "x=s.socket();x.listen();" + DONE, profile="net"),
    python("daemon", "x=s.socket(s.AF_UNIX);x.connect(E['SOCK']);" + DONE, profile="net"),
    shell("file", "echo x > f.txt", profile="net"),
    python("tcp from bus", "s.create_connection(('127.0.0.1',int(E['PORT'])),2);" + DONE, profile="bus"),
    python("datagram from bus",
           "s.socketpair(s.AF_UNIX,s.SOCK_DGRAM)[0].sendto(b'x',E['DGRAM']);" + DONE, profile="bus"),
    python("abstract socket from bus", "x=s.socket(s.AF_UNIX);x.connect('\\0opsagent-attempt');" + DONE, profile="bus"),
    python("listener from bus", "x=s.socket(s.AF_UNIX);x.bind('\\0opsagent-own');x.listen();" + DONE, profile="bus"),
    shell("file from bus", "rm -f f.txt", profile="bus"),
)  # fmt: skip

ATTEMPTS = FILES + OTHERS + MACHINE + TALK + SECRETS + NETWORK
