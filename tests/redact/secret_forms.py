# ruff: noqa: E501 - one row of a table is one line
"""Texts that hold a planted secret, as operators meet them. Every value here is made up by a seeded generator."""

from __future__ import annotations

import base64
import json
import random
import string
from urllib.parse import quote

_rng = random.Random(7_301)
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
B32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def some(count: int, alphabet: str = ALNUM) -> str:
    """Random characters, with a digit and both cases where the alphabet has them."""
    while True:
        text = "".join(_rng.choice(alphabet) for _ in range(count))
        if count < 8 or (any(c.isdigit() for c in text) and any(c.isalpha() for c in text)):
            return text


def blob(size: int) -> str:
    return base64.b64encode(_rng.randbytes(size)).decode()


def folded(size: int) -> str:
    body = blob(size)
    return "\n".join(body[i : i + 64] for i in range(0, len(body), 64))


FORMS: list[tuple[str, str, str]] = []
"""(name, text, secret)"""


def form(name: str, template: str, secret: str) -> None:
    assert "§" in template
    FORMS.append((name, template.replace("§", secret), secret))


# --- files that operators print -------------------------------------------------------------------------------------
form(
    "docker_inspect_env",
    '            "Env": [\n                "PATH=/usr/bin",\n                "DB_PASSWORD=§",\n                "TZ=UTC"\n            ]',
    some(18),
)
form("docker_inspect_env_spaces", '"Env": ["SMTP_PASSWORD=§", "A=b"]', "two words and 7 more")
form("pod_env_yaml", "    env:\n    - name: DB_PASSWORD\n      value: §\n    - name: TZ\n      value: UTC", "changeme")
form("pod_env_yaml_quoted", '        - name: API_TOKEN\n          value: "§"', some(24))
form("ecs_task_json", '{"environment": [{"name": "DB_PASSWORD", "value": "§"}]}', some(12))
form("ecs_task_json_lines", '      {\n        "name": "SESSION_SECRET",\n        "value": "§"\n      }', some(20))
form("ecs_task_value_first", '{"value": "§", "name": "DB_PASSWORD"}', some(14))
form(
    "k8s_secret_data",
    "apiVersion: v1\ndata:\n  blob: §\nkind: Secret",
    base64.b64encode(b"moonlight-77 sonata").decode(),
)
form("k8s_secret_string_data", "kind: Secret\nstringData:\n  who: §\ntype: Opaque", "plainword")
form("k8s_secret_json", '    "data": {\n        "whatever": "§"\n    },', base64.b64encode(b"river9stone").decode())
form("dotenv", "APP_ENV=production\nAPP_KEY=base64:§\n", blob(32))
form("dotenv_unquoted_spaces", "LOG=info\nADMIN_PASSWORD=§\nPORT=80\n", "my own phrase")
form("dotenv_symbols", "MAIL_PASSWORD=§\n", "a&b;c,d|e(f)g")
form("my_cnf", "[client]\nuser=root\npassword=§\n", "p4ss#word")
form("my_cnf_spaced", "[mysqldump]\npassword     = §\n", "hunter two")
form("wp_config", "define( 'DB_PASSWORD', '§' );", "s7v,!kQ(z")
form("wp_salt", "define('AUTH_KEY',         '§');", "Q|x9 +[~z8}$k2#m;Lw0")
form("php_array", "'connections' => ['password' => '§', 'host' => 'x']", "Ev3ning!")
form("php_pdo", "$db = new PDO('mysql:host=h;dbname=d', 'app', '§');", "kw82ns0a")
form("php_mysqli", '$c = mysqli_connect("localhost", "app", "§", "shop");', "kw82nsAa")
form("php_dsn", "mysql://shop:§@10.1.2.3:3306/shop?charset=utf8", "q1/w2+e3==")
form("php_fpm_env", "env[DB_PASSWORD] = §", some(12))
form("rails_database_yml", "production:\n  adapter: postgresql\n  password: §\n", "rosebud")
form("rails_secret_key_base", "  secret_key_base: §", some(128, HEX))
form("rails_master_key", "RAILS_MASTER_KEY=§", some(32, HEX))
form("spring_properties", "spring.datasource.password=§", "winter is here")
form("spring_yaml", "spring:\n  mail:\n    password: '§'", "autumn#1")
form("hibernate_xml", '<property name="hibernate.connection.password">§</property>', "xmlpw77")
form("tomcat_users", '<user username="admin" password="§" roles="manager-gui"/>', "tomc4t")
form("maven_settings", "<server><id>nexus</id>\n<password>§</password></server>", "nexus123")
form(
    "unattend_xml", "<AdministratorPassword>\n  <Value>§</Value>\n</AdministratorPassword>", "UABhAHMAcwB3ADAAcgBkAA=="
)
form("jenkins_credentials", "<password>{§}</password>", blob(32))
form("web_config", '<add name="Db" connectionString="Server=s;Database=d;User Id=u;Password=§;" />', "n3tP@ss")
form("web_config_machine_key", '<machineKey validationKey="§" decryption="AES" />', some(64, "0123456789ABCDEF"))
form("app_settings_xml", '<add key="ApiToken" value="§"/>', some(32))
form("appsettings_json", '{"Jwt": {"SigningKey": "§", "Issuer": "x"}}', some(40))
form("redis_conf", "# comment\nrequirepass §\nport 6379", "foobared")
form("redis_masterauth", "masterauth §", "foobarrd")
form("redis_config_get", '1) "requirepass"\n2) "§"', "foobared2")
form("redis_acl", "user worker on >§ ~jobs:* +@all", "jobspw12")
form("redis_monitor", '1700000000.1 [0 10.0.0.1:1] "AUTH" "§"', "redispw!")
form("redis_sentinel", "sentinel auth-pass mymaster §", "sent1nel")
form(
    "nginx_proxy_header",
    'proxy_set_header Authorization "Basic §";',
    base64.b64encode(b"admin:" + some(9).encode()).decode(),
)
form("nginx_header_key", "proxy_set_header X-Api-Key §;", some(32))
form("haproxy_userlist", "userlist u\n  user admin insecure-password §", "haprox")
form("haproxy_stats", "stats auth admin:§", "st4tspw")
form("ansible_vault", "$ANSIBLE_VAULT;1.1;AES256\n§\n3562\n", some(80, HEX))
form("ansible_vault_inline", "db_pw: !vault |\n  $ANSIBLE_VAULT;1.2;AES256;prod\n  §\n", some(80, HEX))
form("ansible_inventory", "web1 ansible_host=10.0.0.1 ansible_password=§ ansible_user=root", "ans1ble")
form("ansible_become", "ansible_become_pass: §", "b3 root now")
form("htpasswd_apr1", "alice:$apr1$§", some(8) + "$" + some(22))
form("htpasswd_sha", "alice:{SHA}§", blob(20))
form("htpasswd_des", "alice:§", "xY7abCdEfGh1k")
form("htdigest", "alice:realm:§", some(32, HEX))
form("shadow_yescrypt", "bob:$y$j9T$§:19700:0:99999:7:::", some(22) + "$" + some(43))
form("shadow_in_log", "usermod: changed hash to $5$rounds=5000$§ now", some(16) + "$" + some(43))
form("totp_uri", "otpauth://totp/Acme:bob?secret=§&issuer=Acme", some(32, B32))
form("totp_file", '§\n" RATE_LIMIT 3 30\n', some(26, B32))
form("wireguard_private", "[Interface]\nPrivateKey = §\n", blob(32))
form("wireguard_preshared", "[Peer]\nPresharedKey=§", blob(32))
form("wireguard_dump", f"wg0\t§\t{blob(32)}\t51820\toff", blob(32))
form("ipsec_psk", '%any 10.0.0.1 : PSK "§"', "ips3c psk")
form("ipsec_xauth", "bob : XAUTH §", "xauthpw")
form("ipsec_rsa_phrase", ': RSA server.key "§"', "keyphrase")
form(
    "openvpn_static",
    "-----BEGIN OpenVPN Static key V1-----\n§\n-----END OpenVPN Static key V1-----",
    some(32, HEX) + "\n" + some(32, HEX),
)
form("openvpn_inline_login", "<auth-user-pass>\nbob\n§\n</auth-user-pass>", "vpnword")
form("jdbc_url", "jdbc:postgresql://db:5432/app?user=app&password=§&ssl=true", "jd8cpw")
form("jdbc_sqlserver", "jdbc:sqlserver://h:1433;databaseName=x;user=sa;password=§;encrypt=true", "jd9cpw!")
form("sasl_passwd", "[smtp.mail.test]:587 relay:§", "relaypw")
form("sasl_passwd_mail", "smtp.mail.test bob@mail.test:§", "relaypw2")
form("chap_secrets", "client * §  *", "chapsecret1")
form("snmpd_conf", "rocommunity § 10.0.0.0/8", "publik")
form("snmpd_user", "createUser monitor SHA §authpass AES otherpass", "Snmp")
form("snmpd_com2sec", "com2sec readonly default §", "zebra7xing")
form("keepalived", "    authentication {\n        auth_type PASS\n        auth_pass §\n    }", "k33palive")
form("ldap_conf", "bindpw §", "ldapbind")
form("ldap_rootpw", "rootpw {SSHA}§", blob(24))
form("smb_credentials", "username=bob\npassword=§\ndomain=X", "smb credentials")
form("fstab_cifs", "//srv/share /mnt cifs username=bob,password=§,uid=1000 0 0", "fst4b")
form("wpa_supplicant", 'network={\n  ssid="x"\n  psk="§"\n}', "coffee shop")
form("network_manager", "[wifi-security]\nkey-mgmt=wpa-psk\npsk=§", "wifi12345")
form("kickstart", "rootpw --plaintext §", "kickpw")
form("preseed", "d-i passwd/root-password password §", "pr3seed")
form("cloud_init", "chpasswd:\n  expire: false\npassword: §", "cl0ud init")
form("grub", "password_pbkdf2 root grub.pbkdf2.sha512.10000.§", some(64, "0123456789ABCDEF"))
form("debconf", "mysql-server mysql-server/root_password password §", "debpw")
form("npmrc", "//npm.corp.test/:_authToken=§", some(36))
form("npmrc_basic", "_auth=§", base64.b64encode(b"user:" + some(10).encode()).decode())
form("pypirc", "[pypi]\nusername = __token__\npassword = §", "pypi word")
form("composer_auth", '{"http-basic": {"repo.test": {"username": "a", "password": "§"}}}', "c0mp")
form("git_credentials", "https://bob:§@git.test", "gitpw%21x")
form("netrc_lines", "machine git.test\n  login bob\n  password §\n", "netword")
form("pgpass_star", "*:*:*:app:§", "pgword")
form("terraform_tfvars", 'db_password = "§"', "terra form")
form("terraform_state", '            "master_password": "§",', "tfst@te")
form("hcl_heredoc_token", 'token = "§"', some(20))
form("compose_default", "POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:-§}", "fallbackpw")
form("systemd_environment", 'Environment="SECRET_TOKEN=§" A=b', some(20))
form("systemctl_show", "Environment=LANG=C DB_PASSWORD=§ PORT=80", "sysd1pw")
form("proc_environ", "PATH=/bin\0DB_PASSWORD=§\0HOME=/root\0", "env1ron")
form("rabbitmq_cookie", "RABBITMQ_ERLANG_COOKIE=§", some(20, string.ascii_uppercase + string.digits))
form("kafka_jaas", 'sasl.jaas.config=org.x.PlainLoginModule required username="u" password="§";', "kafk@pw")
form("java_keystore", "ssl.keystore.password=§", "ks1pw")
form("grafana_ini", ";admin_password = §", "grafpw 2")
form("elastic_yaml", 'xpack.security.authc.realms.ldap.bind_password: "§"', "el4stic")
form("aws_secret_string", '{"Name": "x", "SecretString": "§"}', "raw sekret")
form(
    "aws_secret_nested",
    json.dumps(
        {"SecretString": json.dumps({"username": "u", "password": "§"}, ensure_ascii=False)}, ensure_ascii=False
    ),
    "n3sted",
)
form("azure_sas", "https://a.blob.core.windows.net/c?sv=2022&sig=§&se=2030", quote(blob(32), safe=""))
form("s3_presigned", "https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=§", some(64, HEX))
form("vault_unseal", "Unseal Key 1: §", blob(33))
form("vault_root", "Initial Root Token: s.§", some(24))
form(
    "swarm_token",
    "docker swarm join --token SWMTKN-1-§ 10.0.0.1:2377",
    some(50, ALNUM.lower()) + "-" + some(25, ALNUM.lower()),
)
form(
    "kubeadm_join",
    "kubeadm join 10.0.0.1:6443 --token § --discovery-token-ca-cert-hash sha256:aa",
    "ab12cd.0123456789abcdef",
)
form("tailscale", "tailscale up --authkey=tskey-auth-§", some(12) + "-" + some(32))
form("putty_key", "Private-Lines: 2\n§\nPrivate-MAC: 00", blob(48) + "\n" + blob(30))
form(
    "pem_in_journal",
    "Dec 01 10:00:00 h app[1]: -----BEGIN RSA PRIVATE KEY-----\nDec 01 10:00:00 h app[1]: §\nDec 01 10:00:00 h app[1]: -----END RSA PRIVATE KEY-----",
    blob(48),
)
form(
    "pem_yaml_block",
    "tls_key: |\n  -----BEGIN EC PRIVATE KEY-----\n  §\n  -----END EC PRIVATE KEY-----\nnext: 1",
    blob(48),
)
form("pem_truncated", "-----BEGIN OPENSSH PRIVATE KEY-----\n§\n", folded(200))
form("pem_escaped", '{"key": "-----BEGIN PRIVATE KEY-----\\n§\\n-----END PRIVATE KEY-----\\n"}', blob(100))
form("pem_base64", "tls.key: §", base64.b64encode(b"-----BEGIN RSA PRIVATE KEY-----\n" + blob(60).encode()).decode())
form("yaml_block_scalar", "password: |-\n  §\nuser: bob", "line one of it")
form("yaml_flow", "{user: bob, password: §, port: 1}", "fl0wpw")
form("go_map", "config: map[password:§ user:bob]", "g0mappw")
form("python_dict", "{'user': 'bob', 'password': '§'}", "it is secret")
form("json_in_json", '{"msg": "{\\"password\\":\\"§\\",\\"a\\":1}"}', "deep3r")
form("json_pretty_next_line", '"password":\n    "§"', "n3xtline")
form("url_encoded_form", "POST /login user%3Dbob%26password%3D§%26x%3D1", "f0rmpw")
form("url_in_url", "redirect=https%3A%2F%2Fbob%3A§%40host", "inn3rpw")
form("sql_identified", "CREATE USER 'app'@'%' IDENTIFIED BY '§';", "sqlpw 1")
form("sql_identified_with", "ALTER USER 'a'@'b' IDENTIFIED WITH mysql_native_password BY '§'", "sqlpw2")
form("sql_native_hash", "GRANT USAGE ON *.* TO 'a' IDENTIFIED BY PASSWORD '*§'", some(40, "0123456789ABCDEF"))
form("sql_alter_role", "ALTER ROLE app WITH LOGIN PASSWORD '§';", "r0le pw")
form("sql_scram", "rolpassword | SCRAM-SHA-256$4096:§", blob(16) + "$" + blob(32) + ":" + blob(32))
form("mysql_temporary", "[Note] A temporary password is generated for root@localhost: §", "kd8!wPq;3sL")
form("table_row", "| admin_password | § |", "tabl3pw")
form("windows_net_user", "net user bob § /add", "W1nd0ws!")
form("windows_autologon", "    DefaultPassword    REG_SZ    §", "Aut0logon")
form("windows_netsh", "    Key Content            : §", "netsh wifi1".replace(" ", ""))
form("windows_secure_string", '$s = ConvertTo-SecureString "§" -AsPlainText -Force', "P0wersh3ll")
form("windows_cmdkey", "cmdkey /add:srv /user:bob /pass:§", "cmdk3y")
form("windows_sam", "Administrator:500:aad3b435b51404eeaad3b435b51404ee:§:::", some(32, HEX))
form("windows_gpp", 'cpassword="§"', blob(24))
form("bitlocker", "Numerical Password BitLocker: §", "-".join(str(_rng.randrange(100000, 999999)) for _ in range(8)))
form("cisco_enable", "enable secret 5 $1$§", some(4) + "$" + some(22))
form("cisco_type7", "username bob password 7 §", "0822455D0A16")
form("cisco_isakmp", "crypto isakmp key § address 0.0.0.0", "vpnp33r")
form("cisco_tacacs", "tacacs-server host 10.0.0.1 key §", "tacpw1")
form("cisco_bgp", "neighbor 10.0.0.2 password §", "bgppw1")
form("fortinet", "set psksecret ENC §", blob(30))
form("juniper", 'encrypted-password "$9$§"; ## SECRET-DATA', some(24))
form("cookie_header", "Cookie: theme=dark12; sid=§", some(26))
form("set_cookie", "Set-Cookie: PHPSESSID=§; path=/; HttpOnly", some(26, HEX))
form("curl_cookie", "curl -b 'session=§' http://h/", some(30))
form("digest_auth", 'Authorization: Digest username="bob", response="§"', some(32, HEX))
form("aws_sigv4", "Authorization: AWS4-HMAC-SHA256 Credential=AKIAX/20260101/us, Signature=§", some(64, HEX))
form("bearer_in_log", "sending Bearer § to upstream", some(40))
form("jwt_in_query", "GET /x?access_token=eyJhbGciOiJIUzI1NiJ9.§ HTTP/1.1", some(40) + "." + some(43))
form("sentry_dsn", "https://§@o1.ingest.sentry.io/2", some(32, HEX))
form("discord_hook", "https://discord.com/api/webhooks/123456789012345678/§", some(68))
form("feishu_hook", "https://open.feishu.cn/open-apis/bot/v2/hook/§", "0a1b2c3d-4e5f-6789-abcd-ef0123456789")
# --- command lines, as `ps` shows them -------------------------------------------------------------------------------
form("ps_mysqldump", "root 1 0.0 mysqldump --single-transaction -uroot -p§ shop", "dumppw1")
form("ps_flag_equals", "java -jar a.jar --db.password=§ --port=80", "jarpw 1".replace(" ", ""))
form("ps_java_property", "java -Djavax.net.ssl.keyStorePassword=§ -jar x", "changeit")
form("ps_token_flag", "runner --url https://x --token § --name y", some(20))
form("ps_curl_user", "curl -s -o /dev/null --user bob:§ https://x/", "curlpw")
form("ps_curl_short", "curl -ubob:§ https://x/", "curlpw2")
form("ps_wget", "wget --http-user=a --http-password=§ http://x", "wg3tpw")
form("ps_sshpass", "sshpass -p '§' ssh a@b", "ssh pass")
form("ps_ldapsearch", "ldapsearch -x -D cn=admin -w § -b dc=x", "ldappw1")
form("ps_smbclient", "smbclient //srv/s -U bob%§", "smbpw1")
form("ps_openssl", "openssl rsa -in k.pem -passin pass:§ -out o", "kx82wortpw")
form("ps_7z", "7z a -p§ out.7z in", "z1ppw")
form("ps_zip", "zip -r -P § out.zip in", "z2ppw")
form("ps_snmpwalk", "snmpwalk -v2c -c § 10.0.0.1", "commstr")
form("ps_snmpv3", "snmpget -v3 -l authPriv -u u -A § -x AES 10.0.0.1", "authphrase")
form("ps_ipmitool", "ipmitool -I lanplus -H h -U root -P § power status", "ipm1pw")
form("ps_sqlplus", "sqlplus -s scott/§@orcl", "t1ger")
form("ps_sqlcmd", "sqlcmd -S h -U sa -P § -Q 'select 1'", "Sq1cmd!")
form("ps_mongo", "mongosh -u admin -p § --authenticationDatabase admin", "m0ngo")
form("ps_htpasswd", "htpasswd -bc /etc/nginx/.htpasswd bob §", "htpw1")
form("ps_chpasswd", "echo 'bob:§' | chpasswd", "chp4ss")
form("ps_passwd_stdin", "echo § | passwd --stdin bob", "stdinpw")
form("ps_password_stdin", "echo § | docker login -u a --password-stdin", "stdin2pw")
form("ps_sudo_stdin", "echo § | sudo -S reboot", "sudopw")
form("ps_kubectl_literal", "kubectl create secret generic x --from-literal=k=§", "lit3ral")
form("ps_nmcli", "nmcli dev wifi connect home password §", "wifipw1")
form("ps_rclone", "rclone obscure §", "rcl0ne")
form("ps_restic_env", "RESTIC_PASSWORD=§ restic snapshots", "rest1c")
form("ps_continued", "tool --user a \\\n  --password \\\n  § --host b", "c0ntinued")
form("ps_xfreerdp", "xfreerdp /v:h /u:bob /p:§", "rdppw1")
# --- words -----------------------------------------------------------------------------------------------------------
form("english_is", "the password is § by the way", "moon7light")
form("english_for", "password for user bob is §", "moon8light")
form("chinese_is", "新的登录密码为§，请尽快修改", "Zz99-moon")
form("chinese_colon", "数据库口令：§", "口令abc-123")
form("chinese_space", "密码 §", "Moon12!x")
form("chinese_auth_code", "授权码: §", "qwertyuiopas12")
form("japanese", "パスワード：§", "Sakura12")
form("german", "Passwort: §", "Kuchen 12")
form("french", "mot de passe : §", "fromage12")
# --- disguises -------------------------------------------------------------------------------------------------------
form("coloured_label", "\x1b[1;32mpassword\x1b[0m\x1b[37m:\x1b[0m §", "c0lour")
form("zero_width_label", "pass\u200bword: §", "z3rowidth")
form("overstruck", "p\bpa\bas\bss\bsw\bwo\bor\brd\bd: §", "b4ckspace")
form("full_width_colon", "password：§", "fullw1dth")
form("assigned_in_code", 'os.environ["DB_PASSWORD"] = "§"', "c0de pw")
form("setter", 'ds.setPassword("§");', "setterpw")
form("ruby_hash", ':password => "§"', "ruby pw")
form("lisp_arrow", "password -> §", "arr0w")
form("csharp_verbatim", 'var password = @"§";', "verb@tim")
form("twilio", "SID SK§", some(32, HEX))
form("age_key", "# public key: age1x\nAGE-SECRET-KEY-1§", some(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"))
form("gitlab_job_token", "CI_JOB_TOKEN=§", "64_" + some(20))
form("datadog", "DD_API_KEY: §", some(32, HEX))
form("consul_token", "SecretID:         §", "0a1b2c3d-4e5f-6789-abcd-ef0123456789")
form("laravel_pusher", "PUSHER_APP_SECRET=§", some(20, HEX))
form("stripe_webhook", "whsec_§", some(32))
form("azure_ad_secret", "value abc8Q~§ created", some(34))
form("gcp_refresh", "refresh 1//0§", some(60))
form("mailgun", "using key-§", some(32, HEX))
form("linear", "lin_api_§", some(40))
form("new_relic", "NRAK-§", some(27, string.ascii_uppercase + string.digits))
form("doppler", "dp.pt.§", some(43))
form("pulumi", "pul-§", some(40, HEX))
form("sonar", "sqp_§", some(40, HEX))
form("square", "sq0csp-§", some(43))
form("atlassian", "ATATT3§", some(180))

# --- passwords as words of a command ----------------------------------------------------------------------------------
for _name, _line in {
    "ftp_url": "ftp ftp://a:§@h/x",
    "lftp_user": "lftp -u u,§ ftp.example.org",
    "lftp_open": "lftp -e 'open -u bob,§ host'",
    "smbclient": "smbclient //h/share -U u%§",
    "ncftp": "ncftp -u u -p § ftp.example.org",
    "ncftpput": "ncftpput -u bob -p § host /d f",
    "useradd": "useradd -m -p § bob",
    "usermod": "usermod --password § bob",
    "usermod_p": "usermod -p § bob",
    "aws_configure": "aws configure set aws_secret_access_key §",
    "aws_configure_profile": "aws configure set profile.x.aws_session_token §",
    "rclone_config": "rclone config create r s3 provider AWS secret_access_key §",
    "rclone_pass": "rclone config update r pass §",
    "npm_token": "npm config set //registry.example.org/:_authToken §",
    "npm_token_equals": "npm config set //registry.example.org/:_authToken=§",
    "npm_password": "npm set //r/:_password §",
    "keygen_new": "ssh-keygen -t ed25519 -N § -f k",
    "keygen_new_quoted": "ssh-keygen -p -N '§' -f k",
    "keygen_old": "ssh-keygen -p -P § -N x1 -f k",
    "printf_label": "printf 'token: %s' §",
    "printf_label_double": 'printf "password=%s\\n" §',
    "printf_label_second": "printf 'user=%s password=%s' bob §",
    "rabbitmq": "rabbitmqctl add_user a §",
    "rabbitmq_change": "rabbitmqctl change_password a §",
    "rabbitmq_node": "rabbitmqctl -n rabbit@h add_user a §",
    "sudo_here_string": "sudo -S ls <<< §",
    "sudo_here_string_quoted": 'sudo -S apt update <<< "§"',
    "sudo_printf": "printf '%s\\n' § | sudo -S ls",
    "su_here_string": "su - bob <<< §",
    "passwd_here_string": "passwd --stdin bob <<< §",
    "cryptsetup_here_string": "cryptsetup luksOpen /dev/x y <<< §",
    "pip_config": "pip config set global.password §",
    "git_config": "git config --global github.token §",
    "gcloud_config": "gcloud config set auth/access_token §",
    "gh_secret": "gh secret set NAME --body §",
    "kafka_user": "mosquitto_pub -u bob -P § -t t -m x",
    "mosquitto_passwd": "mosquitto_passwd -b f bob §",
    "xfreerdp": "rdesktop -u bob -p § host",
    "createuser_vault": "vault kv put secret/x password=§",
    "redis_auth": "redis-cli AUTH §",
    "redis_config": "redis-cli config set requirepass §",
    "consul": "minio-client alias set m http://h AKEY §",
    "mc_alias": "mc alias set m http://h:9000 admin §",
    "net_user": "samba-tool user create bob §",
    "smbpasswd": "samba-tool user setpassword bob --newpassword=§",
    "sops_gpg": "gpg --batch --passphrase § -d f",
    "wg_set": "psql 'host=h user=u password=§'",
}.items():
    form(f"command_{_name}", _line, some(14))
