"""SQL, read far enough to tell a plain query from anything else: what removes is R3, what is not a known read is R2."""

from guard.judge.levels import R2, R3
from guard.judge.program import Call
from guard.judge.shell.syntax import Word
from guard.judge.tables import names

_READ_WORDS = names("""
    select show explain describe desc with values table use help pragma analyze_ begin commit rollback end start
    set_
""")


_GONE_WORDS = frozenset(("drop", "truncate"))


_ACTING = (
    "into outfile", "into dumpfile", "load_file", "load_extension", "readfile(", "writefile(", "edit(",
    "fts3_tokenizer", "pg_read_", "pg_write", "pg_ls_", "pg_stat_file", "lo_import", "lo_export", "lo_", "dblink",
    "pg_terminate_backend", "pg_cancel_backend", "pg_reload_conf", "pg_rotate", "pg_switch", "nextval", "setval",
    "set_config", "pg_advisory", "pg_notify", "pg_promote", "pg_create", "pg_drop", "pg_sleep", "sleep(",
    "benchmark(", "get_lock", "sys_exec", "sys_eval", "xp_", "query_to_xml", "database_to_xml", "cursor_to_xml",
    "pg_execute", "pg_start", "pg_stop", "pg_backup", "pg_logical", "pg_replication", "pg_wal_replay",
    "txid_current", "pg_file", "pg_import", "pg_export", "master_", "copy ", " into ", "for update", "for share",
    "pg_authid", "pg_shadow",
    "rolpassword", "authentication_string", "passwd", "pg_user_mapping", "shell(", "system(", "exec ", "execute ",
    "call ", "do ", "writable_schema", "attach ", "detach ", "vacuum into", "release_", "uuid_short", "get_raw",
    "wsrep", "utl_", "dbms_", "url(", "file(", "s3(", "remote(", "install ", "load ",
)  # fmt: skip


def strip_sql(text: str) -> "tuple[list[str], bool]":
    """Statements in lower case without comments and string contents; False when it could not be read."""
    out: list[str] = []
    current: list[str] = []
    at, end, good = 0, len(text), True
    while at < end:
        two = text[at : at + 2]
        char = text[at]
        if two == "--" or (char == "#" and (at == 0 or text[at - 1] in " \n\t;")):
            stop = text.find("\n", at)
            at = end if stop < 0 else stop
            current.append(" ")
        elif two == "/*":
            if text[at + 2 : at + 3] in ("!", "+", "M"):
                good = False
            stop = text.find("*/", at + 2)
            if stop < 0:
                good = False
                break
            at = stop + 2
            current.append(" ")
        elif char in "'\"`":
            stop = at + 1
            while stop < end:
                if text[stop] == "\\" and char != "`":
                    # A backslash escapes in one dialect and not in the other: not readable for sure.
                    good = False
                    stop += 2
                    continue
                if text[stop] == char:
                    if text[stop + 1 : stop + 2] == char:
                        stop += 2
                        continue
                    break
                stop += 1
            if stop >= end:
                good = False
            current.append(char + ("x" if char == "'" else text[at + 1 : stop].lower()) + char)
            at = stop + 1
        elif (
            char == "$"
            and text.find("$", at + 1) > at
            and text[at + 1 : text.find("$", at + 1)].replace("_", "").isalnum() | (two == "$$")
        ):
            tag = text[at : text.find("$", at + 1) + 1]
            stop = text.find(tag, at + len(tag))
            if stop < 0:
                good = False
                break
            current.append("'x'")
            at = stop + len(tag)
        elif char == ";":
            out.append(" ".join("".join(current).split()))
            current = []
            at += 1
        else:
            current.append(char.lower())
            at += 1
    out.append(" ".join("".join(current).split()))
    return [statement for statement in out if statement], good


_PURE = names("""
    count sum avg min max now version length char_length lower upper trim ltrim rtrim substr substring replace
    coalesce nullif ifnull isnull if greatest least abs round ceil ceiling floor mod power sqrt random rand concat
    concat_ws group_concat string_agg array_agg json_agg jsonb_agg json_object jsonb_build_object json_build_object
    json_extract row_number rank dense_rank lag lead first_value last_value ntile extract date_trunc date_part
    to_char to_date to_timestamp to_number age date time timestamp datetime strftime julianday unixepoch
    current_date current_time current_timestamp current_user session_user user database schema current_database
    current_schema current_schemas current_setting date_format date_add date_sub datediff timestampdiff
    unix_timestamp from_unixtime year month day hour minute second cast convert hex md5 sha1 sha2 typeof total
    printf format instr position locate left right lpad rpad reverse repeat ascii char chr unnest generate_series
    array_length array_to_string string_to_array split_part regexp_replace regexp_matches regexp_match regexp_substr
    regexp_like initcap translate pg_size_pretty pg_database_size pg_relation_size pg_total_relation_size
    pg_table_size pg_indexes_size pg_tablespace_size pg_is_in_recovery pg_postmaster_start_time pg_conf_load_time
    pg_current_wal_lsn pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_wal_lsn_diff
    pg_blocking_pids pg_backend_pid pg_get_viewdef pg_get_functiondef pg_get_indexdef pg_get_constraintdef
    pg_get_expr pg_get_userbyid has_table_privilege has_database_privilege obj_description col_description
    to_regclass inet_server_addr inet_server_port inet_client_addr txid_current_snapshot connection_id
    last_insert_id row_count found_rows json_each json_tree json_array json_type jsonb_each jsonb_pretty
    json_array_elements jsonb_array_elements percentile_cont percentile_disc stddev variance bool_and bool_or every
    any_value bit_and bit_or width_bucket sign exp ln log log10 pi sin cos tan trunc truncate_ substring_index
    find_in_set field elt makedate last_day week weekday dayofweek quarter sec_to_time time_to_sec curdate curtime
    utc_timestamp sysdate_ changes_ sqlite_version last_insert_rowid_ quote unicode zeroblob glob like likely
    unlikely iif in exists any all some values as over filter and or not on using when then else case from join
    where by having select within between is union except intersect distinct with recursive partition array row
    interval numeric decimal varchar bit int integer bigint text limit offset lateral rollup cube grouping sets set
    materialized index key check default primary references unique pragma_table_info pragma_index_list
""")


def _unknown_function(statement: str) -> str:
    """The first function in a statement that is not known to be without effects, "" when there is none."""
    at = statement.find("(")
    while at >= 0:
        end = at
        while end > 0 and statement[end - 1] == " ":
            end -= 1
        start = end
        while start > 0 and (statement[start - 1].isalnum() or statement[start - 1] in '_."`'):
            start -= 1
        name = statement[start:end].replace('"', "").replace("`", "").rpartition(".")[2]
        if name and name not in _PURE and not name.isdigit():
            before = statement[:start].rstrip()
            if not (
                before.endswith((" as", " with", ",", "with"))
                and statement[at : at + 9].startswith(("(select", "( select"))
            ) and not before.endswith(("insert into",)):
                return name
        at = statement.find("(", at + 1)
    return ""


_PRAGMAS = names("""
table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list foreign_key_check integrity_check
quick_check database_list collation_list compile_options function_list module_list pragma_list
""")


_PRAGMAS_ACTING = names("optimize wal_checkpoint incremental_vacuum shrink_memory vacuum data_version_ hard_heap_limit")


def _pragma_reads(statement: str) -> bool:
    """SQLite sets a pragma by `=` and by `( )` alike; only look-ups take an argument in parentheses."""
    name = statement[6:].strip().partition("(")[0].strip().rpartition(".")[2]
    if "=" in statement or name in _PRAGMAS_ACTING:
        return False
    return "(" not in statement or name in _PRAGMAS


def sql(call: Call, text: str, word: "Word | None") -> None:
    """A SQL text: plain queries are R0, what removes is R3, everything else R2."""
    statements, good = strip_sql(text)
    if not good:
        call.opaque("SQL that could not be read for sure", word, "sql.unread")
    for statement in statements:
        words = statement.replace("(", " ").split()
        first = words[0] if words else ""
        tokens = set(statement.replace("(", " ").replace(")", " ").replace(",", " ").split())
        if first in _GONE_WORDS or (first == "alter" and "drop" in tokens):
            call.note(R3, "sql.drop", "removes tables or what is in them", word, "SQL")
        elif (
            first in ("delete", "update") or (first == "with" and tokens & {"delete", "update"})
        ) and "where" not in tokens:
            call.note(R3, "sql.delete-all", "changes or removes every row", word, "SQL")
        elif first not in _READ_WORDS or (first == "pragma" and not _pragma_reads(statement)):
            call.note(R2, "sql.change", "changes the database", word, "SQL")
        elif tokens & {
            "delete",
            "update",
            "insert",
            "into",
            "drop",
            "truncate",
            "merge",
            "alter",
            "create",
            "grant",
            "lock",
            "call",
            "execute",
        } and first in ("with", "explain", "select", "table", "values", "begin", "start"):
            call.note(
                R3 if tokens & {"drop", "truncate"} and first in ("begin", "start") else R2,
                "sql.change",
                "a query that changes or locks something",
                word,
                "SQL",
            )
        elif first in ("select", "with", "values", "explain", "table") and (call_name := _unknown_function(statement)):
            call.note(R2, "sql.function", f"the function {call_name} is not known to only read", word, "SQL")
        elif any(item in f" {statement} " for item in _ACTING) or ("mysql.user" in statement and "*" in statement):
            call.note(R2, "sql.acting", "a query whose functions act outside of it or show credentials", word, "SQL")
