"""What watches the machine and lists its hardware. Source: the man page of each program."""

from guard.judge.levels import R1, R2
from guard.judge.options import Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, reader, table, verbs
from guard.judge.tables import names

EXAMPLES = {
    "R0": ("ps aux", "ps -ef --sort=-%cpu", "top -bn1", "lspci -v", "lsof -i :80", "fuser -v 80/tcp",
        "htop --version",),
    "R2": ("fuser -k 80/tcp", "top -d 1 -foo",),
}  # fmt: skip


def _ps(call: Call, parsed: Parsed) -> None:
    """`ps e` (the old style, without a dash) and the column `environ` show the environment of other processes."""
    for at, word in enumerate(call.args):
        value = word.value or ""
        if (
            (not value.startswith("-") and value.isalpha() and "e" in value and len(value) < 8 and at == 0)
            or (not value.startswith("-") and value in ("e", "eww", "ewww", "ew") and at)
            or "environ" in value
        ) and "--" not in value:
            if value.startswith("-") and "environ" not in value:
                continue
            call.effect("secret-read", "/proc/*/environ")
            call.note(R2, "path.secret", "shows the environment of other processes", word, "law 4")
            return


def _nvidia(call: Call) -> None:
    """nvidia-smi has options of several letters after one dash, so each word is looked up whole."""
    skip = False
    for word in call.args:
        value = word.value or "?"
        name = value.partition("=")[0]
        if skip:
            skip = False
        elif name in _NVIDIA_VALUES:
            skip = name == value
            if name in ("-f", "--filename"):
                call.note(R1, "nvidia.file", "writes what it shows to a file", word)
        elif not (name in _NVIDIA_READS or name.startswith(("--query-", "--help-query-"))):
            call.note(R2, "nvidia.change", "changes how the graphics card runs, or is not known", word)


_NVIDIA_VALUES = names("-i --id -l --loop -lms --loop-ms -d --display --format -f --filename -s -c --count -o -m")


_NVIDIA_READS = names("""
-q --query -L --list-gpus -x --xml-format -h --help -v --version -B --list-excluded-gpus -u --unit --dtd topo dmon pmon
-p2p -lgip -lgi -lgipp -lcip -lci --list-gpu-instances --list-compute-instances -e -q -a
""")


def _inventory(call: Call) -> None:
    """Tools that list hardware or facts and have ways to change it: only their plain listings are known."""
    words = [word.value or "?" for word in call.args]
    plain = {
        "hwinfo": ("--short", "--cpu", "--disk", "--memory", "--netcard", "--network", "--pci", "--usb", "--gfxcard",
                   "--sound", "--all", "--help", "--version", "--bios", "--partition", "--monitor", "--listmd"),
        "os-prober": (), "facter": ("-j", "--json", "-y", "--yaml", "--version", "--help", "-p"),
        "rocm-smi": ("-a", "-i", "-t", "-u", "-P", "-f", "-g", "--showallinfo", "--showid", "--showtemp", "--showuse",
                     "--showpower", "--showmeminfo", "--showproductname", "--showdriverversion", "--json", "--help",
                     "vram", "all", "gtt"),
        "osqueryi": ("--version", "--help", "--json", "--csv", "--line", "--list"),
        "ipmitool": ("sdr", "sensor", "sel", "fru", "chassis", "status", "list", "elist", "info", "print", "lan", "mc",
                     "-V", "-h", "power", "bmc", "type", "Temperature", "Fan", "1", "user_"),
    }[call.name]  # fmt: skip
    for at, word in enumerate(words):
        if word not in plain and not (call.name == "facter" and not word.startswith("-")):
            call.note(R2, f"{call.name}.unread", f"{word} is not a known listing of {call.name}", call.args[at])
            return
    call.need("block")


PROGRAMS: dict[str, Program] = {
    "ps": reader("", operands="data", check=_ps),
    "lspci": reader("-q!net -Q!net -M!R2 -H!R2 -A: -O: -p:!read -i:!read -s: -d: -F:!read -v -vv -vvv -n -nn -k -x -t "
        "-m -mm -D -P -PP -b --version -g", operands="data", unknown="R2"),
    "lshw": reader("single -dump:!write -class,-C,-c: -disable: -enable: -short -businfo -sanitize -numeric -quiet "
        "-notime -json -xml -html -version -help -X!R2 -log:!write", operands="data", unknown="R2"),
    **many("nstat ifstat lnstat", reader("-d:!R2 -r,--reset!R1 -s,--noupdate -z,--zeros -a,--ignore -j,--json "
    "-p,--pretty "
            "-t: -n -e -h -V -i: -S -l -T -v -b -w -q -A -I", operands="data", unknown="R2")),
    "ausearch": reader("--checkpoint:!write -a,--event: --arch: -c,--comm: --debug -e,--exit: --escape: "
        "--extra-keys --extra-labels --extra-obj2 --extra-time -f,--file: --format: -ga,--gid-all: "
        "-ge,--gid-effective: "
        "-gi,--gid: -h,--help -hn,--host: -i,--interpret -if,--input:!read --input-logs --just-one -k,--key: "
        "-l,--line-buffered -m,--message: -n,--node: -o,--object: -p,--pid: -pp,--ppid: -r,--raw -sc,--syscall: "
        "-se,--context: --session: -su,--subject: -sv,--success: -te,--end: -ts,--start: -tm,--terminal: "
        "-ua,--uid-all: "
        "-ue,--uid-effective: -ui,--uid: -ul,--loginuid: -uu,--uuid: -v,--version -vm,--vm-name: -w,--word "
        "-x,--executable: --eoe-timeout:", operands="data"),
    "procinfo": reader("-f -n: -m -a -d -D -b -i -s -v -h -r", operands="data", unknown="R2"),
    **many("hwinfo os-prober rocm-smi ipmitool osqueryi facter", custom(lambda call: _inventory(call))),
    "cpupower": verbs("-c,--cpu: -h,--help -v,--version", "R0 "
    "frequency-info|idle-info|info|monitor|powercap-info|help"),
    "lastlog": reader("-C,--clear!R2 -S,--set!R2 -b,--before: -t,--time: -u,--user: -R,--root:!R2 -h,--help",
        operands="data", unknown="R2"),
    "faillog": reader("-a -u: -t: -l:!R2 -m:!R2 -r!R2 -R:!R2 -h", operands="data", unknown="R2"),
    "dmidecode": reader(
        "--dump-bin:!write --from-dump:!read -s: -t: -q -u -d:!R2 -H: --no-sysfs -V -h --string: --type: "
        "--dump --oem-string:", operands="data", unknown="R2"),
    "sensors": reader("-s,--set!R2 -c:!read --bus-list -u -A -f -j -v -h", operands="data", unknown="R2"),
    "inxi": reader("-A -B -b -C -c: -D -d -E -e -F -f -G -I -J -j -L -l -M -m -N -n -o -P -p -R -r -S -s -t: -u -v: "
    "-x -xx "
        "-xxx -y: -Z -z --filter --no-host --max-wrap: --full --basic --cpu --memory --disk --graphics --network "
        "--audio "
        "--partition --system --machine --sensors --slots --usb --processes: --raid --repos --help -h --version -V "
        "--recommends --color: --tty --no-sudo -a --admin -Y: -i!net -w!net -W!net -U!R2", operands="data",
        unknown="R2", plain=False),
    **many("lstopo lstopo-no-graphics", reader("--of,--output-format: --only: --no-io --physical --logical -v -s -c "
    "-p -l "
            "--whole-system --merge --no-legend --version --help", operands="write", plain=False, unknown="R2")),
    "pv": reader("-o,--output:!write -P,--pidfile:!write -R,--remote:!R2 -d,--watchfd: "
        "-U,--store-and-forward:!write -S --stop-at-size -s: -L: -i: -w: -H: -N: -F: -D: -B: -p -t -e -r "
        "-a -b -n -q -W -l -0 -f -c -E -Z: -C -Y -K -X -v -h -V -I -T -A: -m: -x: -g -k -8 -u:", unknown="R2"),
    "neofetch": table("--version --help", operands="data", level="R1", text="writes a configuration when it has none"),
    **many("screenfetch fastfetch", reader("-n -N -v -V -E -w -A: -D: -L -s!R2 -S:!exec -c:!exec -l:,--logo: "
    "--version --help "
            "-h --structure: --format: --json --show-errors --pipe", operands="data", plain=False, unknown="R2",
            check=lambda call, parsed: call.flag("helper"))),
    "pidstat": reader("-e:!exec -T: -C: -G: -p: -U? -d -D -h -H -I -l -r -R -s -t -u -v -V -w --dec: --human -[0-9]",
        operands="data", unknown="R2"),
    "sar": reader("-o:!write -f: -A -b -B -C -d -F -h -H -I: -m: -n: -p -P: -q -r -R -S -t -u -v -V -w -W -y -z -s? "
        "-e? -i: -[0-9] -D -j: -x --dec: --dev: --fs: --help --human --iface: --int: --pretty --sadc -Z",
            operands="data"),
    "dstat": reader("--output:!write -c,--cpu -C: -d,--disk -D: -g,--page -i,--int -I: -l,--load -m,--mem -n,--net -N: "
        "-p,--proc -r,--io -s,--swap -S: -t,--time -T,--epoch -y,--sys --aio --fs,--filesystem --ipc --lock --raw "
        "--socket --tcp --udp --unix --vm --list -a,--all -f,--full -v,--vmstat -h,--help -V,--version --bits --bw "
        "--blackonwhite --color --nocolor --float --integer --noheaders --noupdate --nomissing --profile --debug "
        "--top-cpu --top-cpu-adv --top-mem --top-io --top-io-adv --top-bio --top-bio-adv --top-latency --top-oom "
        "--top-int --top-cputime --proc-count --disk-util --disk-tps --net-packets --cpu24 --cpu-use --freq --thermal "
        "--battery --nfs3 --nfsd3 --vmstat", operands="data"),
    "top": reader("-b,--batch -n,--iterations: -d,--delay: -p,--pid: -u: -U: -H -i -c -o: -s -S -w? -1 -e: -E: -h "
        "-v -O -l: -F -R -stats: -A", operands="data", unknown="R2"),
    **many("htop btop ctop btm", reader("-d,--delay: -u,--user: -s,--sort-key: -p,--pid: -t,--tree -C,--no-color -M "
    "-H? "
            "-F,--filter: -h,--help -V,-v,--version -n,--max-iterations: --readonly -a -f -i -r -lc -p: --preset: "
            "-b --basic -R,--rate: -T", operands="data", plain=False, unknown="R2")),
    "atop": reader("-w:!write -r: -P: -b: -e: -L: -a -A -C -M -D -N -g -m -d -n -u -p -s -c -v -o -y -R -1 -f -F -G "
    "-l -i -V "
        "-x -S -t:", operands="data", plain=False, unknown="R2"),
    "glances": reader("-1 -2 -3 -4 -t,--time: -q,--quiet -h,--help -V,--version --stdout: --stdout-csv: --stdout-json: "
        "--stop-after: --percpu -f,--process-filter: -b,--byte --fahrenheit --disable-plugin: --disable-process "
        "--tree --process-short-name --sort-processes:", operands="data", plain=False, unknown="R2"),
    "nmon": reader("-h -s: -c: -f!R1 -F:!write -x!R1 -X!R1 -r: -t -T -d -l: -g: -N -V -b -B -m:!R1", operands="data",
        plain=False, unknown="R2"),
    **many("iotop iotop-c iotop-py", reader("-o,--only -b,--batch -n,--iter: -d,--delay: -p,--pid: -u,--user: "
    "-P,--processes "
            "-a,--accumulated -k,--kilobytes -t,--time -q,--quiet -h,--help --version", operands="data", unknown="R2",
            plain=False)),
    **many("iftop nethogs bmon", reader("-i: -n -N -p -b -B -P -t -s: -L: -f: -F: -m: -d: -v: -c: -a -C -l -x -h -V "
    "-r: -o: "
            "-R: -U", operands="data", unknown="R2", plain=False)),
    "powertop": reader("-r,--html?!R1 -C,--csv?!R1 -w,--workload:!exec -c,--calibrate!R2 -a,--auto-tune!R2 "
    "-i,--iteration: "
        "-t,--time: -q,--quiet -s: --debug -V,--version -h,--help -x,--extech:!R2 -Z,--auto-tune-dump", operands="data",
        unknown="R2", plain=False),
    "nvidia-smi": custom(_nvidia),
    "lsof": reader("", operands="data", need="observe", plain=False, check=lambda call, parsed: [call.note(R1,
                "lsof.cache", "writes a cache or map file", word) for word in call.args
            if (word.value or "").startswith(("-D", "+m"))] and None),
    "fuser": reader("-a,--all -c -f -i -k,--kill!R2 -l,--list-signals -M -m,--mount -n,--namespace: -s -u,--user "
        "-v,--verbose -w -V -4 -6 --inode -I", operands="data", need="observe", plain=False, unknown="R2"),
}  # fmt: skip
