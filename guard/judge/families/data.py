"""Database clients. SQL is read far enough to tell a plain query from anything else. Source: each client's manual."""

from guard.judge.levels import R2, R3
from guard.judge.options import Grammar, Parsed
from guard.judge.paths import glob_match
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, perform, reader, table, verbs
from guard.judge.shell.syntax import Word
from guard.judge.sql import sql
from guard.judge.tables import names

EXAMPLES = {
    "R0": ("psql -c 'SELECT 1'", "psql -At -c 'select count(*) from t where x > 3'", "psql -l",
        "mysql -e 'show processlist'", "mysql -N -e 'SELECT * FROM t LIMIT 3'", "sqlite3 a.db 'select * from t'",
        "redis-cli info", "redis-cli -h h get k", "redis-cli ping", "psql -c '\\dt'", "sqlite3 a.db .tables",
        "mysqladmin status", "pg_isready", "mysql -e 'EXPLAIN SELECT 1'", "psql -c \"SELECT 'drop table x'\"",
        "redis-cli --latency", "pg_controldata"),
    "R2": ("psql", "psql -c 'update t set x=1 where y=2'", "psql -f x.sql", "mysql < x.sql", "psql -c '\\! id'",
        "sqlite3 a.db '.shell id'", "redis-cli set a b", "psql -c 'select pg_terminate_backend(1)'",
        "mysql -e 'create table x(a int)'", "redis-cli", "redis-cli config set a b", "sqlite3 a.db",
        "psql -c \"copy t to program 'id'\"", "mysql -e \"select 1 into outfile '/x'\"",
        "sqlite3 a.db \"select load_extension('x')\"", "psql -c \"$Q\"", "redis-cli eval 'x' 0",
        "psql -c \"select pg_read_file('/etc/passwd')\"", "mongosh --eval 'db.x.find()'",
        "mysql -e 'grant all on x to y'", "psql -c 'SELECT lo_export(1, $$/x$$)'",
        "psql -c 'create table x as select 1'", "redis-cli shutdown nosave", "psql -c 'select my_function()'"),
    "R3": ("psql -c 'drop table x'", "psql -c 'DELETE FROM t'", "mysql -e 'truncate table x'", "redis-cli flushall",
        "mysql -e 'drop database x'", "dropdb x", "redis-cli -n 1 FLUSHDB", "sqlite3 a.db 'delete from t'",
        "psql -c 'select 1; drop schema x cascade'", "mysqladmin drop x",
        "mysql -e 'select 1; /* x */ drop /* y */ table z'", "echo 'drop table x' | psql",
        "mongosh --eval 'db.dropDatabase()'", "psql -c 'alter table t drop column x'", "etcdctl del --prefix x",
        "sqlite3 a.db 'update t set x=1'", "mongo x --eval 'db.c.remove({})'"),
}  # fmt: skip


def _psql_text(call: Call, word: "Word | None") -> None:
    value = call.value(word) if word is not None else None
    if value is None:
        call.opaque("a text that is not told here", word, "sql.dynamic")
        if word is not None:
            sql(call, word.shape, word)
        return
    lines = value.strip()
    if lines.startswith("\\"):
        verb = lines.split()[0] if lines.split() else ""
        if (
            verb.startswith(
                ("\\d", "\\l", "\\z", "\\conninfo", "\\timing", "\\x", "\\sf", "\\sv", "\\encoding", "\\?", "\\h")
            )
            and verb not in ("\\lo_import", "\\lo_export", "\\lo_unlink")
            and "\n" not in lines
            and "|" not in lines
            and "`" not in lines
            and lines.count("\\") == 1
        ):
            return
        call.note(R2, "psql.meta", f"{verb} can run programs or write files", word, "psql(1)")
        return
    if "\\" in value:
        call.note(R2, "psql.meta", "a backslash command inside the text", word, "psql(1)")
    sql(call, value, word)


_PSQL = Grammar(
    "-c,--command: -d,--dbname: -f,--file:!R2 -l,--list -v,--set,--variable: -V,--version "
    "-X,--no-psqlrc -1,--single-transaction -?,--help? -a,--echo-all -b -e -E -L,--log-file:!write -n "
    "-o,--output: -q,--quiet -s -S -A,--no-align --csv "
    "-F,--field-separator: -H,--html -P,--pset: -R: -t,--tuples-only -T: -x,--expanded -z -0 "
    "-h,--host: -p,--port: -U,--username: -w,--no-password -W,--password!R2"
)  # fmt: skip


def _psql(call: Call) -> None:
    parsed = _PSQL.parse(call.args)
    perform(call, parsed)
    for word in parsed.unknown:
        call.note(R2, "psql.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    call.flag("helper")
    call.env("PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSFILE", "PGSSLMODE")
    _database(call, parsed.value("-h"), 5432, "postgres")
    for word in [*parsed.operands[:1], *(o.value for o in parsed.options if o.name == "-d" and o.value is not None)]:
        _connection(call, word)
    out = parsed.value("-o")
    if out is not None:
        if (out.value or "|").startswith("|"):
            call.note(R2, "psql.output", "pipes the output into a program", out)
        else:
            call.writes(out)
    texts = [option.value for option in parsed.options if option.name == "-c"]
    for given in texts:
        _psql_text(call, given)
    if not texts and not any(option.name in ("-l", "-V", "-?", "-f") for option in parsed.options):
        if call.stdin:
            _psql_text(call, Word(call.span, call.stdin, (), True))
        else:
            call.opaque("SQL that is not told by the text", None, "sql.stdin")


def _database(call: Call, host: "Word | None", port: int, protocol: str) -> None:
    value = call.value(host) if host is not None else ""
    if value is None:
        call.note(R2, "network.dynamic", "the peer is not told by the text", host, "law 10")
        return
    call.peer(value if value and not value.startswith("/") else "", port if value else 0, protocol)


def _connection(call: Call, word: Word) -> None:
    """psql's database may be an address (`postgresql://host/db`) or settings (`host=h dbname=d`)."""
    text = call.value(word)
    if text is None:
        if "://" in word.shape or "=" in word.shape:
            call.note(R2, "network.dynamic", "the peer is not told by the text", word, "law 10")
        return
    if "://" in text:
        place = text.partition("://")[2].partition("/")[0].partition("?")[0]
        if ":" in place.rpartition("@")[0]:
            call.note(R2, "network.credentials", "sends a password in the address", word, "law 4")
        host = place.rpartition("@")[2].partition(":")[0]
        call.peer(host, 5432 if host else 0, "postgres")
    elif "=" in text:
        for piece in text.split():
            name, _, value = piece.partition("=")
            if name in ("host", "hostaddr"):
                call.peer(value if not value.startswith("/") else "", 5432, "postgres")
            elif name == "password":
                call.note(R2, "network.credentials", "sends a password", word, "law 4")


_MYSQL = Grammar(
    "-e,--execute: -u,--user: -p,--password? -h,--host: -P,--port: -D,--database: -S,--socket: "
    "-N,--skip-column-names -B,--batch -s,--silent -t,--table -E,--vertical -A,--no-auto-rehash "
    "-r,--raw -v,--verbose -H,--html -X,--xml -f,--force -q,--quick -c,--comments -C -n -b -w,--wait "
    "-V,--version -?,--help --tee:!write --pager?!R2 "
    "--defaults-file:!config --defaults-extra-file:!config --defaults-group-suffix: --login-path: "
    "--no-defaults --ssl --ssl-mode: --ssl-ca: --ssl-cert: --ssl-key: --protocol: --connect-timeout: "
    "--column-names --init-command:!R2 --local-infile?!R2 --safe-updates --default-character-set: "
    "--plugin-dir:!R2 --default-auth: --delimiter: --show-warnings --line-numbers --skip-ssl "
    "--skip-line-numbers --skip-pager --unbuffered --skip-table"
)  # fmt: skip


def _mysql(call: Call) -> None:
    parsed = _MYSQL.parse(call.args)
    perform(call, parsed)
    for word in parsed.unknown:
        call.note(R2, "mysql.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    call.flag("helper")
    _database(call, parsed.value("-h"), 3306, "mysql")
    texts = [option.value for option in parsed.options if option.name == "-e"]
    if not texts and not any(option.name in ("-V", "-?") for option in parsed.options):
        if call.stdin:
            texts = [Word(call.span, call.stdin, (), True)]
        else:
            call.opaque("SQL that is not told by the text", None, "sql.stdin")
    for given in texts:
        value = call.value(given) if given is not None else None
        if value is None:
            call.opaque("a text that is not told here", given, "sql.dynamic")
            if given is not None:
                sql(call, given.shape, given)
            continue
        stripped = value.strip().lower()
        if (
            "\\!" in value
            or stripped.startswith(("system", "source", "\\", "tee", "pager", "edit", "delimiter"))
            or any(
                part.strip().lower().startswith(("system ", "source ", "tee ", "pager ", "edit", "delimiter"))
                for part in value.replace("\n", ";").split(";")
            )
        ):
            call.note(R2, "mysql.client", "a client command that can run programs or write files", given, "mysql(1)")
        sql(call, value.replace("\\G", ";").replace("\\g", ";"), given)


def _sqlite(call: Call) -> None:
    parsed = Grammar(
        "single -A:!R2 -append -ascii -bail -batch -box -column -csv -cmd: -echo -header,-headers "
        "-noheader -help,--help -html -init:!R2 -interactive!R2 -json -line -list -markdown -mmap: "
        "-newline: -nofollow -nullvalue: -quote -readonly -ro -safe -separator: "
        "-stats -table -tabs -version,--version -vfs: -zip -deserialize -escape: -unsafe-testing!R2"
    ).parse(call.args)  # fmt: skip
    perform(call, parsed)
    for word in parsed.unknown:
        call.note(R2, "sqlite.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    operands = parsed.operands
    if operands and operands[0].value != ":memory:":
        call.reads(operands[0])
    texts: list[Word | None] = [*operands[1:], *(option.value for option in parsed.options if option.name == "-cmd")]
    if not texts and not any(option.name in ("-help", "-version") for option in parsed.options):
        if call.stdin:
            texts = [Word(call.span, call.stdin, (), True)]
        else:
            call.opaque("SQL that is not told by the text", None, "sql.stdin")
    for given in texts:
        value = call.value(given) if given is not None else None
        if value is None:
            call.opaque("a text that is not told here", given, "sql.dynamic")
            if given is not None:
                sql(call, given.shape, given)
            continue
        rest: list[str] = []
        for line in value.split("\n"):
            if line.strip().startswith("."):
                verb = line.strip().split()[0]
                if (
                    verb
                    not in (
                        ".tables",
                        ".schema",
                        ".databases",
                        ".indexes",
                        ".indices",
                        ".mode",
                        ".headers",
                        ".header",
                        ".help",
                        ".show",
                        ".stats",
                        ".width",
                        ".dbinfo",
                        ".fullschema",
                        ".version",
                        ".timer",
                        ".nullvalue",
                        ".separator",
                        ".quit",
                        ".exit",
                        ".print",
                        ".eqp",
                        ".lint",
                        ".dump",
                    )
                    or "|" in line
                ):
                    call.note(R2, "sqlite.dot", f"{verb} can run programs or write files", given, "sqlite3(1)")
            else:
                rest.append(line)
        sql(call, "\n".join(rest), given)


_REDIS_READ = names("""
    ping info get mget exists ttl pttl type strlen llen lrange lindex scard smembers sismember hget hgetall hkeys
    hvals hlen hmget hexists zcard zrange zrangebyscore zscore zrank zcount dbsize keys scan sscan hscan zscan time
    role lastsave echo getrange substr randomkey bitcount bitpos getbit object memory slowlog client config cluster
    latency command module xlen xrange xinfo xpending pubsub acl sinter sunion sdiff zrevrange zrevrangebyscore
    srandmember dump touch_ geopos geodist hstrlen lolwut xread hrandfield zmscore smismember expiretime pexpiretime
    lcs lpos debug_ quit select auth_
""")
_REDIS_SECOND = {
    "config": ("get", "help"), "client": ("list", "info", "id", "getname", "help", "no-evict_", "tracking_"),
    "cluster": ("info", "nodes", "slots", "shards", "links", "myid", "keyslot", "countkeysinslot", "help",
        "count-failure-reports"), "slowlog": ("get", "len", "help"),
    "latency": ("latest", "history", "graph", "doctor", "histogram", "help"), "memory": ("usage", "stats", "doctor",
        "malloc-stats", "help"), "module": ("list", "help"), "acl": ("list_", "whoami", "users", "cat", "log",
        "help"), "pubsub": ("channels", "numsub", "numpat", "help"), "object": ("encoding", "idletime", "freq",
        "refcount", "help"), "xinfo": ("stream", "groups", "consumers", "help"), "command": ("count", "docs", "info",
        "list", "getkeys", "help", ""),
}  # fmt: skip


def _redis(call: Call) -> None:
    parsed = Grammar(
        "posix -h: -p: -s: -a:!secret -u:!R2 -n: -r: -i: -x!R2 -X:!R2 -d: -D: -c -e --tls --sni: "
        "--cacert: --cacertdir: --cert: --key: --raw --no-raw --csv --json --quoted-input --user: "
        "--pass:!secret --askpass --stat --latency --latency-history --latency-dist --bigkeys --memkeys "
        "--hotkeys --scan --pattern: --count: --quoted-pattern: "
        "--no-auth-warning --version,-v --help -2 -3 --insecure --show-pushes: --memkeys-samples: "
        "--intrinsic-latency: --functions-rdb:!write --rdb:!write --pipe!R2 --eval:!R2 --ldb!R2 "
        "--cluster:!R2 --lru-test:!R2 --replica!R2 --verbose -t:"
    ).parse(call.args)  # fmt: skip
    perform(call, parsed)
    for word in parsed.unknown:
        call.note(R2, "redis.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    _database(call, parsed.value("-h"), 6379, "redis")
    words = list(call.args[parsed.rest :])
    lines: list[list[str | None]] = []
    if words:
        lines = [[call.value(word) for word in words]]
        first = lines[0][0]
        if first is not None and len(words) == 1 and " " in first:
            lines = [list(first.split())]
    elif call.stdin:
        lines = [list(line.split()) for line in call.stdin.split("\n") if line.strip()]
    elif not any(
        parsed.has(name)
        for name in (
            "--stat",
            "--latency",
            "--latency-history",
            "--latency-dist",
            "--bigkeys",
            "--memkeys",
            "--hotkeys",
            "--scan",
            "--version",
            "--help",
            "--intrinsic-latency",
        )
    ):
        call.opaque("commands that are not told by the text", None, "redis.stdin")
    for line in lines:
        verb = ((line[0] if line else "") or "?").lower()
        second = (line[1] or "?").lower() if len(line) > 1 else ""
        if verb in ("flushall", "flushdb") or (verb == "cluster" and second in ("reset", "forget", "flushslots")):
            call.note(R3, "redis.flush", "removes everything in the database", None, "redis.io/commands")
        elif verb in ("eval", "evalsha", "fcall") and any("flush" in (item or "").lower() for item in line):
            call.note(R3, "redis.flush", "a script that removes everything in the database", None, "redis.io/commands")
        elif verb not in _REDIS_READ or (verb in _REDIS_SECOND and second not in _REDIS_SECOND[verb]):
            call.note(
                R2,
                "redis.change",
                f"{verb} {second}".strip() + " changes the database or is not known",
                None,
                "redis.io/commands",
            )
        elif verb == "acl" and second == "log" and len(line) > 2 and not (line[2] or "reset").isdigit():
            call.note(R2, "redis.change", "clears the log of refused accesses", None, "redis.io/commands")
        elif verb == "config" and any(
            item is None
            or any(glob_match(item.lower(), name) for name in ("requirepass", "masterauth", "tls-key-file-pass"))
            for item in line[2:]
        ):
            call.note(R2, "redis.secret", "shows the password", None, "law 4")


def _mongo(call: Call) -> None:
    call.opaque("code in a language that is not read here", None, "mongo.code")
    text = " ".join(word.shape for word in call.args) + (call.stdin or "")
    if any(item in text for item in ("dropDatabase", ".drop(", "deleteMany(", ".remove({})", "remove({ })")):
        call.note(R3, "mongo.drop", "removes collections or what is in them", None, "mongodb.com")


_ADMIN_READS = names("status extended-status processlist ping variables version proc")


def _admin(call: Call, verb: str, rest: "list[Word]", level: int) -> None:
    """mysqladmin takes several commands in a row."""
    skip = False
    for word in rest:
        value = word.value or "?"
        if skip:
            skip = False
        elif value in (
            "-u",
            "-h",
            "-P",
            "-S",
            "-i",
            "-c",
            "--user",
            "--host",
            "--port",
            "--sleep",
            "--count",
            "--socket",
        ):
            skip = True
        elif not value.startswith("-") and value not in _ADMIN_READS and verb in _ADMIN_READS:
            call.note(
                R3 if value == "drop" else R2, f"mysqladmin.{value}", f"mysqladmin {value} changes the server", word
            )


def _etcd_get(call: Call, verb: str, rest: "list[Word]") -> None:
    if not any(word.value == "--keys-only" for word in rest):
        call.note(R2, "etcd.get", "shows values, which can be secrets", None, "law 4")


def _topics(call: Call, parsed: Parsed) -> None:
    """Kafka's tools: --list and --describe read, the other actions do not."""
    if not (parsed.has("--list") or parsed.has("--describe")):
        call.note(R2, f"{call.name}.change", "changes topics or groups")


PROGRAMS: dict[str, Program] = {
    "psql": custom(_psql),
    **many("mysql mariadb", custom(_mysql)),
    **many("sqlite3 sqlite", custom(_sqlite)),
    **many("redis-cli valkey-cli keydb-cli", custom(_redis)),
    **many("mongosh mongo", custom(_mongo)),
    **many("mysqladmin mariadb-admin", verbs(
            "-u,--user: -p,--password? -h,--host: -P,--port: -S,--socket: -i,--sleep: -c,--count: -r -v -s "
            "--defaults-file:!config --defaults-extra-file:!config --connect-timeout:",
            """R0 status|extended-status|processlist|ping|variables|version|proc
        R2 create|kill|password|shutdown|reload|refresh|flush-hosts|flush-logs|flush-privileges|flush-status|
        flush-tables|flush-threads|start-slave|stop-slave
        R3 drop""", flags=("helper",), protocol="mysql", check=_admin)),
    **many("pg_isready pg_controldata pg_config pg_lsclusters mysqlshow pg_waldump", reader("-h: -p: -U: -d: -t: -q",
            operands="data", plain=False)),
    **many(
        "pg_dump pg_dumpall mysqldump mariadb-dump mongodump mongoexport redis-dump pg_basebackup mysqlpump mydumper",
        table("", operands="data", level="R2", text="reads out a whole database")),
    **many("pg_restore mongorestore mongoimport mysqlimport pg_ctl pg_ctlcluster pg_upgrade initdb createdb "
        "createuser vacuumdb reindexdb clusterdb pgbench mysqlslap mysql_secure_installation "
        "mysql_upgrade mysqlcheck myloader pg_rewind pg_createcluster mysqld mongod redis-server postgres "
        "mysqld_safe cqlsh clickhouse-client influx duckdb usql sqlcmd sqlplus isql bcp tsql "
        "couchbase-cli arangosh neo4j cypher-shell kafka-console-consumer",
        table("", operands="data", level="R2", text="changes a database or runs a program in its language")),
    **many("kafka-topics kafka-consumer-groups", table("single --list --describe --bootstrap-server: --topic: --group: "
            "--all-groups --all-topics --state --members --offsets --verbose --version --help --command-config:!config "
            "--under-replicated-partitions --unavailable-partitions --timeout: --delete!R3 --create!R2 --alter!R2 "
            "--reset-offsets!R3 --execute!R2 --partitions: --replication-factor:", operands="none", unknown="R2",
            check=_topics)),
    **many("dropdb dropuser pg_dropcluster pg_resetwal", table("", operands="data", level="R3",
            text="removes a database or user")),
    "etcdctl": verbs("--endpoints: --cacert: --cert: --key: --user:!secret -w,--write-out: --command-timeout: "
        "--dial-timeout: -h --version --insecure-skip-tls-verify --insecure-transport --debug --hex",
        """R0 endpoint health|endpoint status|endpoint hashkv|member list|version|alarm list|user list|
            role list|auth status|
        lease list
        R0 get
        R2 put|watch|snapshot save|snapshot status|member add|lock|elect|txn|compaction|defrag
        R3 del|member remove|snapshot restore|role delete|user delete|lease revoke|alarm disarm""",
        protocol="etcd", details={"get": _etcd_get}),
    **many("rabbitmqctl rabbitmq-diagnostics", verbs(
            "-n,--node: -q,--quiet -s,--silent -p,--vhost: -t,--timeout: -l",
            """R0 status|list_queues|list_exchanges|list_bindings|list_connections|list_channels|list_consumers|
                list_users|
        list_vhosts|list_permissions|cluster_status|ping|version|list_policies|list_parameters|node_health_check|
        check_running|check_local_alarms|alarms|memory_breakdown|listeners|list_topic_permissions|list_feature_flags|
        list_global_parameters|list_user_permissions|help|check_port_connectivity|check_virtual_hosts
        R3 reset|force_reset|delete_queue|purge_queue|delete_user|delete_vhost|forget_cluster_node""")),
    "nodetool": verbs("-h,--host: -p,--port: -u: -pw:!secret -pwf:!read",
        """R0 status|info|ring|describecluster|netstats|tpstats|tablestats|cfstats|compactionstats|gossipinfo|version|
        getendpoints|listsnapshots|proxyhistograms|tablehistograms|describering|getlogginglevels|statusgossip|
        statusbinary|statusbackup|statushandoff|help|gcstats|toppartitions
        R3 decommission|removenode|assassinate|clearsnapshot"""),
    "pgbackrest": verbs("--stanza: --config:!config --log-level-console:",
        "R0 info|version|help|verify|repo-ls\nR3 expire|stanza-delete|restore"),
}  # fmt: skip
