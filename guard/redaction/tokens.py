"""Secrets that show what they are by their own form: vendor tokens, hashes, credentials in URLs.

Each row: gates of which one must hold before the expression is compiled and tried, the expression, and the group to
mask. A gate is a whole run of letters and digits (`ghp`), the first four characters of a long one (`AKIA*`), or any
literal (`~://`); the first two cost nothing, because the runs of a text are listed once. `edge` says what may not stand
before a match (a look-behind in the expression would cost five times as much). `random` rows are masked only if the
match mixes digits and letters, which names rarely do.
Sources: the vendors' own token documentation, crypt(5), RFC 7617, RFC 3986, RFC 7519.
"""

from __future__ import annotations

from guard.redaction.lazy import Gates, Pattern

WORD, ALNUM, DASH = "_", "", "_-"
"""Values of `edge`: besides letters and digits, these characters may not stand before a match. None: anything may."""


class Shape:
    """One row of the table."""

    __slots__ = ("gates", "pattern", "group", "random", "edge")

    def __init__(
        self, gates: str, source: str, group: int = 0, *, edge: str | None = None, random: bool = False, flags: int = 0
    ) -> None:
        self.gates = Gates(gates)
        self.pattern = Pattern(source, flags)
        self.group = group
        self.random = random
        self.edge = edge


SHAPES = (
    Shape("AKIA* ASIA* AROA* AIDA* ABIA* ACCA*", r"A(?:KIA|SIA|ROA|IDA|BIA|CCA)[A-Z0-9]{16}(?![A-Z0-9])", edge=ALNUM),
    Shape("AIza*", r"AIza[\w-]{30,}"),
    Shape("ya29", r"ya29\.[\w.-]{20,}"),
    Shape("GOCSPX", r"GOCSPX-[\w-]{20,}"),
    Shape("~1//0", r"1//0[\w-]{30,}", edge=ALNUM),
    Shape("ghp gho ghs ghu ghr", r"gh[posur]_[A-Za-z0-9]{30,}"),
    Shape("github", r"github_pat_\w{30,}"),
    Shape(
        "glpat glrt gldt glptt glcbt glsoat glagent gloas glft glimt",
        r"gl(?:pat|rt|dt|ptt|cbt|soat|agent|oas|ft|imt)-[\w.-]{18,}",
    ),
    Shape("GR13*", r"GR1348941[\w-]{18,}"),
    Shape("~xox", r"xox[abcdeoprs]-[\w.-]{10,}"),
    Shape("xapp", r"xapp-\d-[\w-]{20,}"),
    Shape("slack", r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/]{20,})", 1),
    Shape("webhooks", r"discord(?:app)?\.com/api/webhooks/\d+/([\w-]{20,})", 1),
    Shape("webhookb2", r"webhook\.office\.com/webhookb2/([\w@/-]{30,})", 1),
    Shape("hook", r"/open-apis/bot/(?:v2/)?hook/([\w-]{16,})", 1),
    Shape("webhook robot", r"(?:webhook/send\?key=|robot/send\?access_token=)([\w-]{16,})", 1),
    Shape("~_live_ ~_test_", r"(?:sk|rk|pk|sk_org)_(?:live|test)_\w{10,}", edge=WORD),
    Shape("whsec", r"whsec_[\w+/=]{20,}", edge=WORD),
    Shape("sk", r"sk-[\w-]{20,}", edge=DASH, random=True),
    Shape("hf r8 gsk fal jina", r"(?:hf|r8|gsk|fal|jina)_[\w-]{28,}", edge=WORD, random=True),
    Shape("xai pplx nvapi tvly csk", r"(?:xai|pplx|nvapi|tvly|csk)-[\w-]{28,}", edge=WORD, random=True),
    Shape("npm", r"npm_[A-Za-z0-9]{36,}", edge=WORD),
    Shape("rubygems", r"rubygems_[0-9a-f]{40,}", edge=WORD),
    Shape(
        "oy2a* oy2b* oy2c* oy2d* oy2e* oy2f* oy2g* oy2h* oy2i* oy2j* oy2k* oy2l* oy2m* oy2n* oy2o* oy2p*",
        r"oy2[a-p][a-z0-9]{42}",
        edge=WORD,
    ),
    Shape("nuget crates cargo", r"cio[A-Za-z0-9]{32}", edge=WORD, random=True),
    Shape("pypi", r"pypi-[\w-]{40,}", edge=WORD, random=True),
    Shape("v1", r"do[opr]_v1_[0-9a-f]{50,}"),
    Shape("hvs hvb hvr", r"hv[sbr]\.[\w-]{20,}"),
    Shape("s", r"s\.[A-Za-z0-9]{24}(?![\w.-])", edge="_./-", random=True),
    Shape("atlasv1", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{50,}"),
    Shape("SG", r"SG\.[\w-]{16,}\.[\w-]{20,}", edge=WORD),
    Shape("~SK", r"SK[0-9a-f]{32}(?![0-9a-f])", edge=ALNUM),
    Shape("key", r"key-[0-9a-f]{32}(?![0-9a-f])", edge=ALNUM),
    Shape(" ".join(f"us{n}" for n in range(1, 23)), r"[0-9a-f]{32}-us\d{1,2}(?!\d)", edge=ALNUM),
    Shape("~:AA", r"(?<!\d)\d{8,10}:AA[\w-]{30,}"),
    Shape(
        "~LTAI ~AKID ~AKLT ~AKTP", r"(?:LTAI[A-Za-z0-9]{12,}|AKID[A-Za-z0-9]{28,}|AK(?:LT|TP)[\w-]{20,})", edge=ALNUM
    ),
    Shape("glsa glc", r"gl(?:sa|c)_[\w=+/-]{30,}"),
    Shape("dckr", r"dckr_(?:pat|oat)_[\w-]{20,}"),
    Shape("shpat shpca shppa shpss shpua", r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{30,}"),
    Shape("tskey", r"tskey-[a-z]+-[\w-]{16,}"),
    Shape("SWMTKN", r"SWMTKN-1-[\w-]{40,}"),
    Shape("dp", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}", edge=ALNUM),
    Shape("dt0c01 dt0s01 dt0s02 dt0s16", r"dt0[cs]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{60,}"),
    Shape("NRAK NRII NRJS NRAA NRAL", r"NR(?:AK|II|JS|AA|AL)-[\w-]{19,}", edge=ALNUM),
    Shape("sntrys sntryu", r"sntry[su]_[\w+/=-]{40,}", edge=WORD),
    Shape("phx lin ntn figd", r"(?:phx_[A-Za-z0-9]{30,}|lin_api_\w{30,}|ntn_\w{40,}|figd_[\w-]{30,})", edge=WORD),
    Shape("PMAK", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", edge=WORD),
    Shape("ATAT* ATCT* ATBB*", r"AT(?:(?:ATT|CTT)3[\w=+/-]{50,}|BB[A-Za-z0-9]{24,})", edge=WORD),
    Shape(
        "pul sbp napi pscale",
        r"(?:pul-[0-9a-f]{40}|sbp_[0-9a-f]{40}|napi_[a-z0-9]{50,}|pscale_(?:tkn|pw|oauth)_[\w.=-]{32,})",
        edge=WORD,
    ),
    Shape("~dapi", r"dapi[0-9a-f]{32}(?:-\d)?", edge=WORD),
    Shape("fm1 fm1a fm2 fo1", r"f(?:m1a?|m2|o1)_[\w+/=-]{30,}", edge=WORD),
    Shape("~EZAK ~EZTK", r"EZ[AT]K[A-Za-z0-9]{54}", edge=WORD),
    Shape(
        "CCIPAT CFPAT HRKU pnu essu hcaik",
        r"(?:CCIPAT_\w{30,}|CFPAT-[\w-]{40,}|HRKU-[\w-]{36,}|(?:pnu|essu|hcaik)_\w{30,})",
        edge=WORD,
    ),
    Shape("bkua bkct sqp squ sqa", r"(?:bk(?:ua|ct)|sq[pua])_[0-9a-f]{40}", edge=WORD),
    Shape("AKCp* AKC5* AKC8*", r"AKC[a-zA-Z0-9]{60,}", edge=WORD),
    Shape("cmVm*", r"cmVmdGtu[A-Za-z0-9+/=]{40,}", edge=WORD),
    Shape("ops", r"ops_eyJ[\w=-]{60,}", edge=WORD),
    Shape("lsv2", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", edge=WORD),
    Shape("sq0csp sq0atp sq0idp", r"sq0(?:csp|atp|idp)-[\w-]{22,}", edge=ALNUM),
    Shape("EAAA*", r"EAAA[\w-]{56,}", edge=ALNUM),
    Shape("~8Q~ ~7Q~", r"[\w~.-]{3}[78]Q~[\w~.-]{31,34}"),
    Shape("~K10", r"K10[0-9a-f]{48,}::\w{1,32}:[\w.-]{16,}", edge=ALNUM),
    Shape("~eyJ", r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}", edge=DASH),
    Shape("AGE", r"AGE-(?:SECRET-KEY|PLUGIN-[A-Z0-9]{1,16})-1[A-Z0-9]{20,}"),
    Shape("A3", r"A3-[A-Z0-9]{6}-[A-Z0-9]{6,11}(?:-[A-Z0-9]{5}){3,4}", edge=ALNUM),
    Shape(
        "~$",
        r"\$(?:(?:[1567y]|gy|apr1|2[abxy]|sha1|argon2(?:id?|d)|pbkdf2(?:-sha\d+)?|scrypt)\$[\w./$=,+*-]{16,}|[89PHS]\$[\w./$=,+*-]{8,})",
    ),
    Shape(
        "~pbkdf2_sha ~bcrypt$ ~bcrypt_sha ~argon2$ ~scrypt$",
        r"(?:pbkdf2_sha\d+|bcrypt_sha256|bcrypt|argon2|scrypt)\$[\w./$=,+-]{20,}",
    ),
    Shape(
        "~{SHA ~{SSHA ~{SMD5 ~{MD5} ~{CRYPT ~{PBKDF2 ~{BLF",
        r"\{S?(?:SHA|MD5|CRYPT|PBKDF2|BLF-CRYPT|RAM-MD5|CRAM-MD5)[\w-]*\}([\w./$=,+-]{8,})",
        1,
    ),
    Shape("SCRAM", r"SCRAM-SHA-\d+\$\d+:[\w+/=:$]{20,}"),
    Shape("~md5", r"md5[0-9a-f]{32}(?![0-9a-f])", edge=ALNUM),
    Shape("~*", r"\*[0-9A-F]{40}(?![0-9A-Za-z])", edge="_*"),
    Shape("~$ANSIBLE_VAULT", r"\$ANSIBLE_VAULT;[^\\\n]{1,80}\\n([0-9a-f\\n]{20,})", 1),
    Shape("~ENC[", r"ENC\[AES256_GCM,data:[^\]\n]{1,4096}\]|ENC\[PKCS7,[^\]\n]{20,}\]"),
    Shape("LS0t*", r"LS0tLS1CRUdJTiB(?!DRVJUSUZJQ0FUR|QVUJMSUM)[A-Za-z0-9+/=]{20,}"),
    Shape(
        "sig Signature signature Security",
        r"[?&;](?:sig|[Ss]ignature|X-(?:Amz|Goog)-(?:Signature|Security-Token|Credential)|AWSAccessKeyId)=([^\s&\"'<>]{12,})",
        1,
    ),
    Shape("~Signature=", r"Signature=([0-9a-fA-F]{40,}|[A-Za-z0-9+/=]{28,})", 1),
    Shape(
        "~key= ~token= ~code= ~secret=",
        r"[?&](?:api_?|access_?|auth_?)?(?:key|token|secret|code)=([^\s&\"'<>#;,]{12,})",
        1,
        random=True,
    ),
    Shape(
        "Bearer bearer BEARER",
        r"[Bb](?:earer|EARER)[ \t:]{1,4}[\"']?([A-Za-z0-9_.~+/=-]{16,})",
        1,
        random=True,
        edge=WORD,
    ),
    Shape(
        "~Basic· ~basic·",
        r"[Bb]asic[ \t]{1,4}([A-Za-z0-9+/]{8,}={1,2}|[A-Za-z0-9+/]{16,})(?![\w./-])",
        1,
        random=True,
        edge=DASH,
    ),
    Shape("~response= ~nonce= ~opaque=", r"(?:response|c?nonce|opaque)=\"?([0-9a-f]{32,})", 1, edge=DASH),
    Shape("NTLM Negotiate", r"(?:NTLM|Negotiate)[ \t]{1,4}([A-Za-z0-9+/=]{20,})", 1, edge=WORD),
    Shape("BitLocker bitlocker Numerical RecoveryPassword RecoveryKey", r"(?<![\d-])(?:\d{6}-){7}\d{6}(?![\d-])"),
    Shape("otpauth", r"otpauth://[^\s\"'?]{1,256}\?(?:[^\s\"'&]{1,128}&){0,16}secret=([A-Za-z2-7=]{8,})", 1),
    Shape("migration", r"otpauth-migration://offline\?data=([\w%+/=-]{20,})", 1),
    Shape(
        "~://", r"://[^\s/@:\"'<>]{0,256}:([^\s\"'<>@]{1,256}(?:@[^\s\"'<>@/:?]{0,128}(?=@)){0,4})@(?=[\w\[.$%{(-])", 1
    ),
    Shape("~://", r"://([A-Za-z0-9_-]{20,128})@(?=[\w\[.-])", 1, random=True),
    Shape("~%3A%2F%2F ~%3a%2f%2f", r"%3[Aa]%2[Ff]%2[Ff][\w.-]{0,64}%3[Aa]([\w.!~*-]{3,256})%40", 1),
    Shape("AWS4", r"AWS4-HMAC-SHA256[ \t]{1,4}Credential=([^\s,/]{8,})", 1),
    Shape(
        "discord Discord bot Bot",
        r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
        edge=WORD,
        random=True,
    ),
    Shape("LIMIT", r"^([A-Z2-7]{16,52})(?=\n\" RATE_LIMIT)", 1, flags=8),
    Shape("TOTP", r"^\" TOTP_AUTH\n((?:\d{8}(?:\n|$)){1,10})", 1, flags=8),
    Shape("sentry", r"://([0-9a-f]{32})(?=[@:])", 1),
)
