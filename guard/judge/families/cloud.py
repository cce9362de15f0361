"""Cloud command lines by the grammar of their verbs: describe, list and get read; delete removes. Source:
each CLI's reference."""

from guard.judge.levels import R1, R2, R3
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, verbs
from guard.judge.shell.syntax import Word
from guard.judge.suspicion import suspicious
from guard.judge.tables import names, starts
from guard.pointers import add_pointer

EXAMPLES = {
    "R0": ("aws ec2 describe-instances", "aws s3 ls s3://b", "aws sts get-caller-identity",
        "aws --profile p --region r ec2 describe-vpcs --output json", "aws s3api list-buckets", "aws logs tail g",
        "gcloud compute instances list", "gcloud config list", "gcloud projects describe p", "az vm list -o table",
        "az account show", "doctl compute droplet list", "aws configure list", "aws help", "gsutil ls gs://b",
        "aws cloudformation describe-stacks",),
    "R2": ("aws ec2 start-instances --instance-ids i", "aws s3 cp a s3://b",
        "aws secretsmanager get-secret-value --secret-id x", "aws ssm get-parameter --with-decryption --name x",
        "aws iam create-user --user-name x", "gcloud compute instances create x", "az vm start -n x",
        "aws configure set a b", "gcloud auth print-access-token", "az account get-access-token", "aws foo bar",
        "aws sts get-session-token", "aws --endpoint-url http://x s3 ls", "aws s3 mv a s3://b",
        "gcloud secrets versions access latest --secret=x", "aws ecr get-login-password",
        "az keyvault secret show -n x", "gcloud compute instances create list", "gcloud compute ssh list",
        "aws kms decrypt --x y", "aws lambda invoke --function-name x out",),
    "R3": ("aws ec2 terminate-instances --instance-ids i", "aws s3 rm s3://b/k", "aws s3 rb s3://b --force",
        "aws rds delete-db-instance --x y", "gcloud compute instances delete x", "gcloud projects delete p",
        "az group delete -n x", "az vm delete -n x", "aws s3 sync a s3://b --delete", "gsutil rm -r gs://b",
        "doctl compute droplet delete 1", "aws --region r ec2 delete-vpc --vpc-id x",
        "aws cloudformation delete-stack --stack-name x", "gcloud sql instances delete x",),
}  # fmt: skip

_AWS_READ = starts("""
    describe- list- get- head- batch-get- lookup- search- filter- scan query tail wait check-domain check-dns "
    "check-if check-document check-schema validate- estimate-
    simulate- preview- view- detect-stack-drift_ test-dns-answer test-event-pattern
""")
_AWS_SECRET = starts("""
    get-secret-value get-password-data get-session-token get-federation-token get-authorization-token
    get-login-password get-login get-credential-report get-role-credentials get-credentials-for-identity
    get-access-key-info_ get-cluster-credentials get-token get-id get-object get-random-password
    batch-get-secret-value get-open-id-token get-public-key_ get-instance-access-details get-key-pair
    get-bucket-access-key get-relational-database-master-user-password get-workload-access-token
    get-connection-token get-export get-personalized_ get-data-key get-credentials get-object-torrent get-job-output
    get-sdk get-media get-clip get-thing-shadow get-snapshot-block get-raw-message-content
    get-media-for-fragment-list get-images get-layer-version-by-arn_
""")
_AWS_GONE = starts("""
    delete- terminate- destroy- purge- remove- deregister- batch-delete- revoke- release- detach- disable- cancel-
    schedule-key-deletion empty- reset- abort- drop- force- stop-db reboot-db_ wipe-
""")


_AWS_FILES = names("""
get-package-version-asset get-tile get-map-tile get-map-glyphs get-map-sprites get-map-style-descriptor get-read-set
get-reference get-object-attributes_ get-retained-message_ get-static-map get-sprites get-glyphs get-style-descriptor
get-export get-sdk get-template-step-group_ get-bucket-object get-voices_
""")
"""Reads whose last operand is a file that they write (AWS CLI reference, `outfile`)."""


def _aws(call: Call) -> None:
    call.flag("helper")
    call.env("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
    words = list(call.args)
    path: list[str] = []
    at = 0
    values = {
        "--profile",
        "--region",
        "--output",
        "--query",
        "--endpoint-url",
        "--color",
        "--ca-bundle",
        "--cli-read-timeout",
        "--cli-connect-timeout",
        "--cli-binary-format",
    }
    tail: list[Word] = []
    while at < len(words):
        value = words[at].value
        if value is None:
            tail.append(words[at])
            if len(path) < 2:
                call.opaque("a service or action that the text does not tell", words[at])
                return
        elif value.startswith("-"):
            name = value.partition("=")[0]
            if name == "--endpoint-url":
                call.note(
                    R2, "cloud.endpoint", "sends the credentials' signature to another address", words[at], "law 10"
                )
            if name == "--profile" and at + 1 < len(words):
                add_pointer(call.judge.ambient, "aws context", call.value(words[at + 1]) or "?")
            tail.append(words[at])
            if len(path) < 2 and name in values and "=" not in value:
                at += 1
        elif len(path) < 2:
            path.append(value)
        else:
            tail.append(words[at])
        at += 1
    for word in tail:
        if word.value is not None and "file://" in word.value:
            call.reads(Word(word.span, word.value.partition("file://")[2], (), True))
    call.peer("", 443, "aws")
    if not path or path[0] == "help" or (len(path) > 1 and path[1] == "help"):
        return
    service = path[0]
    verb = path[1] if len(path) > 1 else ""
    flags = {(word.value or "?").partition("=")[0] for word in tail}
    if service == "configure":
        if verb in ("list", "list-profiles"):
            return
        call.note(R2, "cloud.configure", "changes or shows the credentials' configuration")
        return
    if service == "s3":
        if verb in ("ls",):
            return
        gone = verb in ("rm", "rb") or (verb == "sync" and "--delete" in flags)
        dry = "--dryrun" in flags
        if dry:
            return
        call.note(R3 if gone else R2, f"cloud.s3.{verb or 'none'}", "removes objects" if gone else "copies objects")
        return
    if service in ("sso", "ec2-instance-connect", "ssm") and verb in ("login", "start-session", "ssh"):
        call.note(R2, "cloud.session", "opens a session")
        return
    if verb in _AWS_SECRET or (service == "ssm" and verb.startswith("get-parameter") and "--with-decryption" in flags):
        call.note(R2, "cloud.secret", "shows or fetches a credential or stored content", None, "law 4")
        call.effect("secret-read", f"{service} {verb}")
        return
    if verb.startswith(("get-", "list-", "describe-", "batch-get-")) and (
        any(item in verb for item in ("credential", "auth-token", "access-token", "embed-url", "signed-url",
            "data-access",
            "api-keys", "private-key", "session-token", "bearer-token", "secret-value"))
        or "--include-values" in flags or "--include-value" in flags
    ):  # fmt: skip
        call.note(R2, "cloud.secret", "shows or fetches a credential", None, "law 4")
        call.effect("secret-read", f"{service} {verb}")
        return
    if verb.startswith(("get-", "describe-", "list-")) and (
        (tail and not (tail[0].value or "-").startswith("-")) or verb in _AWS_FILES
    ):
        call.note(R2, "cloud.outfile", "writes what it fetches to a file")
        return
    if verb.startswith(_AWS_READ) and not verb.startswith(("get-or-create",)):
        if "--generate-cli-skeleton" not in flags and service == "s3api" and verb == "select-object-content":
            call.note(R2, "cloud.write", "writes a file")
        return
    if "--dry-run" in flags and service == "ec2" and not any(flag.startswith("--no-d") for flag in flags):
        return
    if verb.startswith(_AWS_GONE):
        call.note(R3, "cloud.delete", f"aws {service} {verb} removes something", None, "aws reference")
        return
    call.note(R2, "cloud.change", f"aws {service} {verb}".rstrip() + " changes something or is not known")


_READ_VERBS = names("""
    list describe show ls get get-iam-policy list-grantable-roles get-ancestors get-server-config list-tags read
    tail search info version list-skus list-sizes list-locations list-usage exists list-instances get-health
    list-projects check-name check-health list-versions browse_ list-ip-addresses list-vm-resize-options
    get-instance-view list-defaults stat du cat_ status query test-iam-permissions get-effective-address
    get-operation get-value list-accounts usage help history
""")
_SECRET_VERBS = names("""
    print-access-token print-identity-token print-settings access get-credentials get-access-token list-keys
    show-connection-string list-credentials credential show-keys decrypt get-key reset-windows-password
    application-default print-refresh-token list-connection-strings get-upgrades_ list-publishing-profiles
    list-publishing-credentials
""")
_GONE_VERBS = names("""
    delete remove destroy purge rm terminate delete-access-config remove-iam-policy-binding delete-tags undelete_
    delete-batch reset wipe rb recreate-instances delete-instances delete-signed-url-key deallocate_ revoke clear
    failover
""")


_CHANGE_VERBS = names("""
    create update start stop ssh scp set add deploy enable disable patch import export run submit call execute
    resize move attach detach restart reboot suspend resume apply replace rollback promote publish push pull upload
    download copy cp mv sync clone migrate upgrade scale rename invoke send login logout auth init configure
    activate revoke-all approve reject cancel rotate restore backup assign unassign link unlink connect disconnect
    open tunnel exec shell console proxy build release register deregister subscribe unsubscribe tag untag lock
    unlock grant bind unbind swap simulate-maintenance-event sign encrypt generate-ssh-key install uninstall capture
    convert generalize redeploy reimage sos-report edit add-iam-policy-binding set-iam-policy addons config:set
    ps:scale pg:psql wait-until up power-on power-off power-cycle shutdown
""")


_SECRET_THINGS = names("""
kubeconfig apikey apikeys api-key api-keys admin-key query-key connection docker-config get-access-token
kubeconfig-view printenv env:list config:get credentials:show
""")
_GROUPED = names("gcloud az oci aliyun tccli doctl ibmcloud openstack exo scw civo hcloud ovhcloud upctl")
"""CLIs whose first word names a service, never an action."""


def _cloud(call: Call) -> None:
    """gcloud, az, doctl and their kin: the verb is the last word before the options or the first that is a verb."""
    call.flag("helper")
    call.peer("", 443, call.name)
    words = [word.value for word in call.args]
    rest: list[str] = []
    for index, value in enumerate(words):
        if value is None:
            if not rest or (
                rest[-1] not in _READ_VERBS | _GONE_VERBS and index and not (words[index - 1] or "").startswith("-")
            ):
                call.opaque("what it does is not told by the text", call.args[index])
            continue
        if value.startswith("-"):
            name = value.partition("=")[0]
            if name in (
                "--flags-file",
                "--impersonate-service-account",
                "--access-token-file",
                "--log-http",
                "--configuration_",
            ) or (name == "--debug" and call.name == "az"):
                call.note(R2, "cloud.option", f"{name} changes who asks or shows credentials", call.args[index])
            continue
        if (
            index
            and (words[index - 1] or "").startswith("--")
            and "=" not in (words[index - 1] or "")
            and words[index - 1] not in ("--quiet", "--help", "--debug", "--verbose", "--no-trunc", "--all")
        ):
            continue
        if index and (words[index - 1] or "") in (
            "-n",
            "-g",
            "-o",
            "-q",
            "-p",
            "-z",
            "-f",
            "-r",
            "-t",
            "-l",
            "-c",
            "-s",
        ):
            continue
        rest.append(value)
    if not rest and not any(value in ("--version", "--help", "-h", "-v", "-V") for value in words):
        call.note(R2, "cloud.bare", f"{call.name} without a verb can act (some deploy)")
        return
    if not rest or rest[0] in ("version", "help", "info") or "--help" in words or "-h" in words:
        return
    if (
        rest[0] == "config"
        and len(rest) > 1
        and rest[1] in ("list", "get-value", "get", "configurations")
        and "create" not in rest
        and "activate" not in rest
        and "delete" not in rest
    ):
        return
    if any(item in _SECRET_VERBS for item in rest[:5]) or (
        any(item in ("secret", "secrets", "keyvault", "key", "keys") for item in rest[:3])
        and any(item in ("show", "access", "download", "list-keys") for item in rest)
    ):
        call.note(R2, "cloud.secret", "shows or fetches a credential", None, "law 4")
        call.effect("secret-read", call.name)
        return
    if any(item in _SECRET_THINGS for item in rest[:6]) or (
        any(item in ("secret", "secrets") for item in rest[:4])
        and not any(item in ("list", "ls", "describe", "versions", "get-iam-policy") for item in rest)
    ) or (call.name == "az" and any(item in ("key", "keys", "appsettings",
        "connection-string") for item in rest)):  # fmt: skip
        gone = any(item in _GONE_VERBS for item in rest)
        call.note(R3 if gone else R2, "cloud.secret", "shows, changes or removes a credential", None, "law 4")
        call.effect("secret-read", call.name)
        return
    first = rest[0].replace(":", " ").replace(".", " ").split()
    if len(first) > 1:
        # heroku's and firebase's `apps:info`, govc's `vm.destroy`.
        rest = [first[0], first[-1], *rest[1:]]
    elif call.name not in _GROUPED and rest[0] in _CHANGE_VERBS and rest[0] not in ("auth", "addons"):
        call.note(R2, "cloud.change", f"{call.name} {rest[0]} changes something")
        return
    for item in rest[1:6]:
        if item in _CHANGE_VERBS or item.startswith(
            (
                "create-",
                "update-",
                "set-",
                "add-",
                "start-",
                "stop-",
                "import-",
                "export-",
                "attach-",
                "detach-",
                "enable-",
                "disable-",
                "ssh",
                "run-",
                "reset-",
                "rolling-",
                "execute-",
                "apply-",
                "move-",
                "resize-",
                "replace-",
                "restart-",
                "suspend-",
                "resume-",
                "rotate-",
                "restore-",
                "send-",
                "write-",
                "publish-",
                "cancel-",
                "failover-",
                "switch-",
                "promote-",
                "migrate-",
                "upgrade-",
                "simulate-",
                "recreate-",
                "abandon-",
                "invalidate-",
                "trigger-",
                "retry-",
                "patch-",
                "sign-",
                "generate-",
                "login-",
                "connect-",
                "clone-",
                "copy-",
                "rename-",
                "undelete",
                "invoke",
                "approve-",
                "reject-",
                "deploy-",
                "kill",
                "seek",
                "ack",
                "ingest",
                "insert",
            )
        ):
            break
        if item in _GONE_VERBS or item.startswith(("delete-", "remove-", "purge-")):
            call.note(R3, "cloud.delete", f"{call.name} {item} removes something", None, f"{call.name} reference")
            return
        if item in _READ_VERBS or item.startswith(("list-", "get-", "describe-", "show-")):
            return
    if call.name in ("aliyun", "tccli") and len(rest) > 1:
        verb = rest[1]
        if verb.startswith(("Describe", "List", "Get", "Query")) and not any(
            item in verb for item in ("Secret", "Token", "Password", "Credential", "AccessKey", "Kubeconfig")
        ):
            return
        if verb.startswith(("Delete", "Terminate", "Release", "Remove", "Destroy", "Purge")):
            call.note(R3, "cloud.delete", f"{call.name} {verb} removes something", None, f"{call.name} reference")
            return
    if rest[0] in (
        "ls",
        "list",
        "du",
        "stat",
        "hash",
        "status",
        "whoami",
        "show",
        "logs",
        "ps",
        "releases",
        "regions",
    ) and call.name not in ("gcloud",):
        return
    if rest[0] in _GONE_VERBS:
        call.note(R3, "cloud.delete", f"{call.name} {rest[0]} removes something", None, f"{call.name} reference")
        return
    call.note(R2, "cloud.change", f"{call.name} {' '.join(rest[:3])} changes something or is not known")


def _gsutil(call: Call) -> None:
    call.flag("helper")
    call.peer("", 443, "gcloud")
    verb = next((word.value for word in call.args if word.value is not None and not word.value.startswith("-")), "")
    if verb in ("ls", "du", "stat", "version", "help", "hash", ""):
        return
    gone = verb in ("rm", "rb") or (verb == "rsync" and any(word.value == "-d" for word in call.args))
    call.note(R3 if gone else R2, f"cloud.gsutil.{verb}", "removes objects" if gone else "copies or changes objects")


PROGRAMS: dict[str, Program] = {
    "aws": custom(_aws),
    "awslocal": custom(_aws),
    **many("gcloud az doctl oci aliyun tccli hcloud linode-cli scw civo exo ibmcloud openstack heroku fly "
        "flyctl vercel netlify railway render wrangler firebase sfdx cf eb sam "
        "copilot cloudflared vultr-cli upctl ovhcloud govc snyk sentry-cli datadog " "newrelic pd",
        custom(_cloud)),
    "gsutil": custom(_gsutil),
    "bq": verbs("--project_id: --location: --format: -q,--quiet -h,--help --dataset_id: --headless "
    "--max_rows_per_request:",
        "R0 ls|show|head|version|help|info|get-iam-policy\nR3 rm|remove", flags=("helper",), protocol="gcloud"),
    **many("s3cmd mc rclone azcopy b2 s4cmd s5cmd", custom(lambda call: _objects(call))),
}  # fmt: skip


def _objects(call: Call) -> None:
    call.flag("helper")
    call.peer("", 443, call.name)
    rest = [word.value or "?" for word in call.args if not (word.value or "x").startswith("-")]
    options = [word.value or "?" for word in call.args if (word.value or "?").startswith(("-", "?"))]
    if not rest:
        if not options or any(item not in ("--version", "--help", "-h", "-V") for item in options):
            call.note(R2, "cloud.objects.bare", f"{call.name} without a verb")
        return
    found = suspicious(call.args)
    if found is not None or any(
        item.startswith(("--rc", "--sftp-ssh", "--dump-config", "--configure")) for item in options
    ):
        call.note(R2, "cloud.objects.option", "an option that runs, writes or shows more than a listing")
    if any(item.startswith(":") for item in rest):
        call.note(R2, "cloud.objects.remote", "a remote that is described on the spot can name programs", None, "law 8")
    if call.name == "rclone" and any(item.startswith(("--combined", "--missing-on", "--match", "--differ", "--error"))
                                     for item in options):  # fmt: skip
        call.note(R1, "cloud.objects.report", "writes a report")
    verb = rest[0]
    if verb in (
        "ls",
        "lsd",
        "lsl",
        "lsf",
        "lsjson",
        "la",
        "du",
        "size",
        "info",
        "version",
        "stat",
        "tree",
        "about",
        "listremotes",
        "list",
        "check",
        "cryptcheck",
        "find_",
        "help",
        "alias_",
        "md5sum",
        "sha1sum",
        "hashsum",
        "ping",
        "ready",
        "diff",
    ):
        return
    gone = verb in (
        "rm",
        "rb",
        "del",
        "delete",
        "purge",
        "sync",
        "mirror",
        "remove",
        "rmdirs",
        "deletefile",
        "cleanup",
        "dedupe",
        "delete-bucket",
        "expire",
    )
    call.note(R3 if gone else R2, f"cloud.objects.{verb}", "removes objects" if gone else "copies or changes objects")
