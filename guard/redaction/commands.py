# ruff: noqa: E501 - one row of a table is one line
"""Secrets known by the command, file or log line they stand in: `mysql -p…`, `curl -u`, `ipsec.secrets`, `IDENTIFIED BY` …

Each row: gates (as in `tokens`, lower case; `·` is a blank), an expression whose groups are the secrets (the first that took part is
masked; `all` masks every group), applied to each line that holds a gate. Gaps are bounded, so a line costs linear time.
Sources: the programs' manual pages.
"""

from __future__ import annotations

from guard.redaction.arguments import ARGUMENTS
from guard.redaction.habits import GAP as _GAP
from guard.redaction.habits import VALUE as _V
from guard.redaction.habits import Habit
from guard.redaction.lazy import Pattern

_LOOKS = True

HABITS = (
    Habit(
        "mysql mysqldump mysqladmin mysqlimport mysqlcheck mysqlshow mysqlbinlog mysqlpump mariadb mycli xtrabackup mydumper",
        r"\b(?:mysql\w*|mariadb[\w-]*|mycli|xtrabackup|mydumper)\b" + _GAP + r"-p(?=[^\s])(?!ort|roto|ipe)" + _V,
        flags=0,
    ),
    Habit("sshpass", r"\bsshpass[ \t](?:-\w[ \t]{1,4})?-p[ \t]{0,4}" + _V, flags=0),
    Habit(
        "sentinel",
        r"\bsentinel[ \t]+(?:auth-pass|set[ \t]+\S+[ \t]+auth-pass)[ \t]+(?:\S+[ \t]+)??([^\s\"']{1,256})\"?$",
    ),
    Habit("redis keydb valkey", r"\b(?:redis|keydb|valkey)-cli\b" + _GAP + r"(?:-a|--pass)[ \t=]{1,4}" + _V, flags=0),
    Habit(
        "login",
        r"\b(?:docker|podman|nerdctl|helm|skopeo|buildah|oras|crane|az|oc|argocd|vault|doctl|cf|bw|gh)\b[^\n|;]{0,200}?\blogin\b"
        + r"[^\n|;]{0,300}?[ \t]-(?:p|t)[ \t=]{1,4}"
        + _V,
        flags=0,
    ),
    Habit("vault", r"\bvault login[ \t]{1,4}(?:-no-print[ \t])?(?!-)([^\s=\"']{8,})(?=\s|$)", flags=0),
    Habit("doctl", r"\bdoctl auth init[^\n]{0,80}[ \t](?:-t|--access-token)[ \t]{1,4}" + _V, flags=0),
    Habit("twine", r"\btwine\b" + _GAP + r"-p[ \t]{1,4}" + _V, flags=0),
    Habit(
        "curl https http xh",
        r"\b(?:curl|http|https|xh)\b(?:[^\n|;]{0,400}?[ \t])(?:-u|--user|--proxy-user|-U|-a|--auth)[ \t=]{0,4}[\"']?[^\s:\"'/]{0,128}:([^\s\"'|;]{1,256})",
        flags=0,
    ),
    Habit(
        "curl", r"\bcurl\b[^\n]{0,400}?[ \t](?:-b|--cookie)[ \t=]{0,4}[\"']?[\w.-]{1,64}=([^\s\"';]{4,2048})", flags=0
    ),
    Habit(
        "ldapsearch ldapmodify ldapadd ldapdelete ldapwhoami ldappasswd ldapcompare ldapmodrdn",
        r"\bldap(?:search|modify|add|delete|whoami|passwd|compare|modrdn)\b" + _GAP + r"-(?:w|s)[ \t]{0,4}" + _V,
        flags=0,
    ),
    Habit(
        "smbclient rpcclient smbmap winexe wmic cifs net",
        r"\b(?:smbclient|rpcclient|smbmap|net|winexe|wmic|mount\.cifs)\b"
        + _GAP
        + r"(?:-U|--user=?)[ \t]{0,4}[\"']?[^\s%\"']{1,128}%([^\s\"']{1,256})",
        flags=0,
    ),
    Habit("~pass:", r"\bpass:([^\s\"'|;,]{3,256})(?=[\s\"'|;,]|$)", _LOOKS, 0),
    Habit("~pass:", r"-(?:pass(?:in|out)?|k)[ \t=]{1,4}[\"']?pass:([^\s\"'|;,]{1,256})", flags=0),
    Habit("openssl", r"\bopenssl\b[^\n|;]{0,300}?[ \t]-k[ \t]{1,4}" + _V, flags=0),
    Habit("7z 7za rar unrar", r"\b(?:7z[ar]?|un?rar)\b" + _GAP + r"-h?p(?=[^\s-])" + _V, flags=0),
    Habit("zip unzip", r"\b(?:zip|unzip)\b" + _GAP + r"(?:-P|--password)[ \t=]{0,4}" + _V, flags=0),
    Habit(
        "htpasswd",
        r"\bhtpasswd[ \t](?:-[\w]*b[\w]*)(?:[ \t]-[\w]+){0,4}(?:[ \t]+[^\s-][^\s]*)??[ \t]+[^\s]+[ \t]+([^\s\"'|;]{1,256})(?=\s*$|\s*[|;&])",
        flags=0,
    ),
    Habit(
        "snmpwalk snmpget snmpgetnext snmpbulkwalk snmpbulkget snmpset snmptable snmpstatus snmptrap snmpinform snmpdf",
        r"\bsnmp(?:walk|get|getnext|bulkwalk|bulkget|set|table|status|trap|inform|df)\b"
        + _GAP
        + r"-(?:c|A|X)[ \t]{0,4}"
        + _V,
        flags=0,
    ),
    Habit(
        "snmpwalk snmpget snmpgetnext snmpbulkwalk snmpbulkget snmpset snmptable snmpstatus snmptrap snmpinform snmpdf",
        r"\bsnmp(?:walk|get|getnext|bulkwalk|bulkget|set|table|trap|inform)\b" + _GAP + r"-X[ \t]{0,4}" + _V,
        flags=0,
    ),
    Habit(
        "mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop",
        r"\bmongo(?:sh|dump|restore|export|import|stat|top)?\b" + _GAP + r"-p[ \t]{0,4}(?![\d]{2,5}(?:\s|$))" + _V,
        flags=0,
    ),
    Habit(
        "ipmitool ipmi bmc racadm",
        r"\b(?:ipmitool|ipmi-\w+|bmc-\w+|racadm)\b" + _GAP + r"-(?:P|p)[ \t]{1,4}" + _V,
        flags=0,
    ),
    Habit("sqlcmd bcp tsql isql osql", r"\b(?:sqlcmd|bcp|tsql|isql|osql)\b" + _GAP + r"-P[ \t]{0,4}" + _V, flags=0),
    Habit(
        "sqlplus expdp impdp rman sqlldr sqlcl",
        r"\b(?:sqlplus|expdp|impdp|rman|sqlldr|sqlcl)\b[^\n|;]{0,200}?[ \t=][\"']?[\w.$#-]{1,64}/([^\s/@\"']{1,128})(?=@|[ \t\"']|$)",
        flags=0,
    ),
    Habit("net", r"\bnet user[ \t]{1,4}[^\s/]{1,64}[ \t]{1,4}([^\s/*][^\s]{2,127})"),
    Habit("~/pass ~/p: ~/rp", r"[ \t]/(?:pass(?:word)?|p|rp):?[ \t]{0,4}(?<![\w])([^\s\"'/][^\s\"']{2,255})"),
    Habit("securestring", r"ConvertTo-SecureString[ \t]{1,8}(?:-String[ \t]{1,4})?[\"']?([^\s\"'$][^\s\"']{2,255})"),
    Habit(
        "passwd chpasswd",
        r"\becho[ \t]{1,4}(?:-\w+[ \t]{1,4})?[\"']?([^\s\"'|]{1,256})[\"']?[ \t]{0,4}\|[ \t]{0,4}(?:sudo[ \t]{1,4})?(?:-\w[ \t]{1,4})?(?:ch)?passwd\b",
        flags=0,
    ),
    Habit(
        "chpasswd",
        r"[\"' \t](?:[\w.-]{1,64}:)([^\s\"':|]{3,256})[\"']?[ \t]{0,4}\|[ \t]{0,4}(?:sudo[ \t]{1,4})?chpasswd\b",
        flags=0,
    ),
    Habit(
        "sudo",
        r"\becho[ \t]{1,4}[\"']?([^\s\"'|]{1,256})[\"']?[ \t]{0,4}\|[ \t]{0,4}sudo[ \t]{1,4}(?:-\w[ \t]{1,4}){0,3}-\w*S",
        flags=0,
    ),
    Habit(
        "stdin",
        r"\becho[ \t]{1,4}(?:-\w+[ \t]{1,4})?[\"']?([^\s\"'|$][^\s\"'|]{0,1023})[\"']?[ \t]{0,4}\|[^\n]{0,200}--password-stdin",
        flags=0,
    ),
    Habit("mysqladmin", r"\bmysqladmin\b[^\n|;]{0,200}?[ \t]password[ \t]{1,4}" + _V, flags=0),
    Habit("~wpa_passphrase", r"\bwpa_passphrase[ \t]{1,4}(?:\"[^\"\n]{1,64}\"|[^\s\"]{1,64})[ \t]{1,4}" + _V, flags=0),
    Habit(
        "nmcli",
        r"\bnmcli\b[^\n|;]{0,200}?[ \t](?:password|wifi-sec\.psk|802-1x\.password|[\w.-]+\.psk)[ \t]{1,4}" + _V,
        flags=0,
    ),
    Habit("lftp", r"\blftp\b[^\n|;]{0,200}?-u[ \t]{0,4}[\"']?[^\s,\"']{1,64},([^\s\"']{1,256})", flags=0),
    Habit("obscure", r"\brclone obscure[ \t]{1,4}" + _V, flags=0),
    Habit("kubeadm discovery bootstrap", r"(?<![\w.])([a-z0-9]{6}\.[a-z0-9]{16})(?![\w.])", flags=0),
    Habit("literal", r"--from-literal[ =][\"']?[\w.-]{1,128}=[\"']?([^\s\"']{1,1024})", flags=0),
    Habit(
        "identified",
        r"\bIDENTIFIED(?:[ \t]+WITH[ \t]+[\"'\w`]{1,64})?[ \t]+(?:BY|AS)(?:[ \t]+PASSWORD|[ \t]+VALUES)?[ \t]+" + _V,
    ),
    Habit("~password·' ~password·\\' ~password·e'", r"\b(?:ENCRYPTED[ \t]+)?PASSWORD[ \t]+E?\\?'([^'\n]{1,256})'"),
    Habit("~password(", r"\bPASSWORD\([ \t]*['\"]([^'\"\n]{1,256})['\"]"),
    Habit("~pgp_sym_", r"\bpgp_sym_(?:en|de)crypt\([^,\n]{1,300},[ \t]*'([^'\n]{1,256})'"),
    Habit(
        "pdo mysqli ~mysql_connect ~mysqli_",
        r"\b(?:new[ \t]+PDO|new[ \t]+mysqli|mysqli_connect|mysql_connect|mysqli_real_connect)\([ \t]*(?:\$\w+,[ \t]*)?[\"'][^\"'\n]{0,200}[\"'][ \t]*,[ \t]*[\"'][^\"'\n]{0,64}[\"'][ \t]*,[ \t]*[\"']([^\"'\n]{1,256})[\"']",
    ),
    Habit("login", r"\blogin[ \t\n]+\S{1,128}[ \t\n]+(?:account[ \t]+\S+[ \t]+)?password[ \t\n]+" + _V, flags=0),
    Habit("machine", r"\bmachine[ \t]+\S{1,200}[^\n]{0,200}?[ \t]password[ \t]+" + _V, flags=0),
    Habit(
        "community rocommunity rwcommunity rocommunity6 rwcommunity6 trapcommunity",
        r"(?:^|[ \t])(?:r[ow]community6?|snmp-server community|snmp-agent community (?:read|write)(?: cipher| simple)?|(?:set[ \t]+)?(?:snmp[ \t]+)?community(?=[ \t]+\S+[ \t]+(?:RO|RW|ro|rw|authorization))|trapcommunity)[ \t]+"
        + _V,
    ),
    Habit("com2sec com2sec6", r"\bcom2sec6?[ \t]+(?:-Cn[ \t]+\S+[ \t]+)?\S+[ \t]+\S+[ \t]+" + _V),
    Habit("trapsink trap2sink informsink", r"\b(?:trap2?sink|informsink)[ \t]+\S+[ \t]+([^\s\d][^\s]{2,127})"),
    Habit("createuser snmp", r"\b(?:createUser|snmp-server user)[ \t][^\n]{0,200}?\b(?:MD5|SHA(?:-?\d+)?)[ \t]+" + _V),
    Habit(
        "createuser snmp",
        r"\b(?:createUser|snmp-server user)[ \t][^\n]{0,300}?\b(?:AES|DES|3DES)(?:[ \t]+\d{3})?[ \t]+" + _V,
    ),
    Habit(
        "~secret· ~password· ~-key· ~·key· ~-string· ~md5·",
        r"(?:^|[ \t])(?:password|secret|key-string|pre-shared-key|server-key|authentication-key|md5|isakmp key|shared-secret|(?:tacacs|radius)(?:-server)?[^\n]{0,80}[ \t]key|psksecret|encrypted-password|simple-password)[ \t]+(?:(?:[05-9]|ascii-text|cipher|irreversible-cipher|ENC|hexadecimal|encrypted|0x)[ \t]+)"
        + _V,
    ),
    Habit(
        "radius tacacs isakmp",
        r"\b(?:(?:radius|tacacs)(?:-server)?\b[^\n]{0,80}[ \t]key|isakmp key)[ \t]+(?:\d[ \t]+)?" + _V,
    ),
    Habit("neighbor peer", r"\b(?:neighbor|peer)[ \t]+\S+[ \t]+password[ \t]+(?:\d[ \t]+)?(?:cipher[ \t]+)?" + _V),
    Habit(
        "digest ~authentication-key ~key-string",
        r"\b(?:message-digest-key[ \t]+\d+[ \t]+md5|authentication-key[ \t]+\d+[ \t]+md5|authentication md5 key-string)[ \t]+(?:\d[ \t]+)?"
        + _V,
    ),
    Habit("psk xauth eap ~:·ntlm ~:·pin", r":[ \t]*(?:PSK|XAUTH|EAP|NTLM|PIN)[ \t]+" + _V, flags=0),
    Habit(
        "~:·rsa ~:·ecdsa ~:·p12 ~:·pkcs8 ~:·private",
        r":[ \t]*(?:RSA|ECDSA|P12|PKCS8|PRIVATE)[ \t]+\S{1,200}[ \t]+\"([^\"\n]{1,256})\"",
        flags=0,
    ),
    Habit("insecure stats", r"(?:\binsecure-password[ \t]+|\bstats[ \t]+auth[ \t]+[^\s:]{1,64}:)" + _V),
    Habit("~user·", r"^[ \t]*user[ \t]+\S{1,64}[ \t]+password[ \t]+" + _V),
    Habit(
        "setuser ~·on·> ~·on·#",
        r"(?:\buser[ \t]+\S{1,64}[ \t]+on\b|\bACL[ \t]+SETUSER\b)[^\n]{0,200}?[ \t][>#]([^\s\"']{1,256})",
    ),
    Habit("auth", r"^[ \t]*\"?auth\"?[ \t]+\"?(?:default\"?[ \t]+\"?)?([^\s\"]{4,256})\"?[ \t]*$", _LOOKS),
    Habit('~"auth"', r"\"AUTH\"[ \t]+(?:\"[^\"\n]{1,64}\"[ \t]+)??\"([^\"\n]{1,256})\"[ \t]*(?:$|\"SETNAME)"),
    Habit("~hello·", r"\bHELLO[ \t]+[23][ \t]+AUTH[ \t]+\S{1,64}[ \t]+" + _V),
    Habit("temporary", r"temporary password[^\n:]{0,120}:[ \t]*([^\s]{4,256})"),
    Habit(
        "unseal ~recovery·key ~root·token",
        r"\b(?:unseal key|recovery key|initial root token|root token)(?:[ \t]+\d+)?[ \t]*[:=][ \t]*([^\s\"',]{8,256})",
    ),
    Habit(
        "~key·content ~network·key ~wpa·key ~security·key",
        r"\b(?:key content|network key|wpa key|security key)[ \t]*[:=][ \t]*([^\s]{4,256})",
    ),
    Habit(
        "~recovery·code ~backup·code ~scratch·code ~verification·code",
        r"\b(?:recovery|backup|scratch|verification) codes?[ \t]*(?:is|:|=)[ \t]*((?:[A-Za-z0-9-]{5,24}[, \t]{0,3}){1,16})",
        _LOOKS,
    ),
    Habit(
        "seed mnemonic ~recovery·phrase",
        r"\b(?:seed|recovery|mnemonic)(?: phrase)?[ \t]*(?:is|:|=)[ \t]*[\"']?((?:[a-z]{3,8}[ \t]+){11,23}[a-z]{3,8})",
    ),
    Habit(
        "~password·is ~passphrase·is ~password·for ~password·to ~pwd·is ~password·was ~password·set ~password·changed ~password·reset ~password·of",
        r"\b(?:password|passphrase|pwd|passwd)(?:[ \t]+(?:for|of)[ \t]+(?:user[ \t]+)?[^\s:]{1,64})?[ \t]*(?:is now|is|was|set to|changed to|reset to|to|:)[ \t]*[:=]?[ \t]*[\"'`]?([^\s\"'`]{4,256}?)[\"'`]?[.,;]?(?=\s|$)",
        _LOOKS,
    ),
    Habit("~cookie:", r"^[^\n]{0,80}?\bcookie:[ \t]*([^\n]{6,})"),
    Habit("~cookie· ~cookie\" ~cookie'", r"\b(?:set-)?cookie[\"']?[ \t]+[\"']([\w.-]{1,64}=[^\"'\n]{6,})[\"']"),
    Habit("rpcauth", r"\brpcauth=[^\s:]{1,64}:([^\s]{8,256})"),
    Habit("~auth-user-pass", r"\bauth-user-pass[ \t]+[^\s/.]{1,64}[ \t]+" + _V),
    Habit("~shared-secret", r"\bshared-secret[ \t]+" + _V),
    Habit('~secret·"', r"^[ \t]*secret[ \t]+\"([^\"\n]{1,512})\"[ \t]*;"),
    Habit("psk", r"^[ \t]*psk=[\"']?([^\s\"']{8,64})"),
    Habit("~wep_key", r"\bwep_key\d=([^\s]{5,64})"),
    Habit("rootpw", r"^[ \t]*rootpw[ \t]+(?:--(?:plaintext|iscrypted|allow-ssh)[ \t]+){0,3}([^\s-][^\s]{1,255})"),
    Habit("~passwd/", r"\bpasswd/(?:root|user)-password(?:-again|-crypted)?[ \t]+password[ \t]+([^\s]{1,256})"),
    Habit("debconf ~·password·", r"^[ \t]*\S+[ \t]+\S+/\S*(?:pass|password)\S*[ \t]+password[ \t]+([^\s]{1,256})"),
    Habit("~password_pbkdf2", r"\bpassword_pbkdf2[ \t]+\S+[ \t]+([^\s]{8,})"),
    Habit("x11vnc", r"\bx11vnc\b[^\n|;]{0,200}?-passwd[ \t]+" + _V, flags=0),
    *ARGUMENTS,
)

COMPACT = (
    Pattern(r"[^\s:]{1,64}:\d{1,10}:([0-9a-fA-F]{32}:[0-9a-fA-F]{32}):::"),
    Pattern(r"[\w.*-]{1,128}:(?:\d{4,5}|\*):[^\s:]{1,64}:[^\s:/]{1,64}:(\S{1,256})$"),
    Pattern(r"[\w.@-]{1,64}:((?=[./A-Za-z]*[0-9])(?=[./0-9a-z]*[A-Z])(?=[./0-9A-Z]*[a-z])[./0-9A-Za-z]{13})(?=:|$)"),
    Pattern(r"[\w.@-]{1,64}:[\w.@-]{1,64}:([0-9a-f]{32})$"),
)
"""Whole lines without a blank. Sources: pwdump, .pgpass (libpq), crypt(5) in .htpasswd, htdigest(1)."""
SPACED = (
    Pattern(r"\[[\w.-]{1,128}\](?::\d{1,5})?[ \t]{1,32}[^\s:]{1,128}:(\S{1,256})$"),
    Pattern(r"[\w.-]{1,128}\.[a-z]{2,24}(?::\d{1,5})?[ \t]{1,32}[\w.+-]{1,64}@[\w.-]{1,128}:(\S{1,256})$"),
    Pattern(
        r"\"?[\w@.\\-]{1,64}\"?[ \t]{1,32}(?:\*|pptpd|l2tpd|pppd|xl2tpd)[ \t]{1,32}\"?([^\s\"*]{1,128})\"?[ \t]{1,32}(?:\*|[\d./]+)[ \t]*$"
    ),
    Pattern(r"(?:[\w.-]{1,32}\t)?([A-Za-z0-9+/]{43}=)\t[A-Za-z0-9+/]{43}=\t\d"),
    Pattern(r"(?:[\w.-]{1,32}\t)?[A-Za-z0-9+/]{43}=\t([A-Za-z0-9+/]{43}=)\t"),
)
"""Whole lines of two to four fields. Sources: Postfix sasl_passwd, pppd chap-secrets, wg(8) dump."""
