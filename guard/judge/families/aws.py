"""The AWS command line by the grammar of its actions: describe, list and get read; delete removes. Source: the AWS CLI
reference."""

from guard.judge.levels import R2, R3
from guard.judge.program import Call, Program
from guard.judge.rules import custom
from guard.judge.shell.syntax import Word
from guard.judge.tables import names, starts

EXAMPLES = {
    "R0": ("aws ec2 describe-instances", "aws s3 ls s3://b", "aws sts get-caller-identity",
        "aws --profile p --region r ec2 describe-vpcs --output json", "aws s3api list-buckets", "aws logs tail g",
        "aws configure list", "aws help", "aws cloudformation describe-stacks",
        "aws sns check-if-phone-number-is-opted-out --phone-number 1",),
    "R2": ("aws ec2 start-instances --instance-ids i", "aws s3 cp a s3://b",
        "aws secretsmanager get-secret-value --secret-id x", "aws ssm get-parameter --with-decryption --name x",
        "aws iam create-user --user-name x", "aws configure set a b", "aws foo bar", "aws sts get-session-token",
        "aws --endpoint-url http://x s3 ls", "aws s3 mv a s3://b", "aws ecr get-login-password",
        "aws kms decrypt --x y", "aws lambda invoke --function-name x out",),
    "R3": ("aws ec2 terminate-instances --instance-ids i", "aws s3 rm s3://b/k", "aws s3 rb s3://b --force",
        "aws rds delete-db-instance --x y", "aws s3 sync a s3://b --delete",
        "aws --region r ec2 delete-vpc --vpc-id x", "aws cloudformation delete-stack --stack-name x",),
}  # fmt: skip

_READ = starts("""
    describe- list- get- head- batch-get- lookup- search- filter- scan query tail wait check-domain check-dns check-if
    check-document check-schema validate- estimate- simulate- preview- view- test-dns-answer test-event-pattern
""")
_SECRET = starts("""
    get-secret-value get-password-data get-session-token get-federation-token get-authorization-token
    get-login-password get-login get-credential-report get-role-credentials get-credentials-for-identity
    get-cluster-credentials get-token get-id get-object get-random-password batch-get-secret-value get-open-id-token
    get-instance-access-details get-key-pair get-bucket-access-key get-relational-database-master-user-password
    get-workload-access-token get-connection-token get-export get-data-key get-credentials get-object-torrent
    get-job-output get-sdk get-media get-clip get-thing-shadow get-snapshot-block get-raw-message-content
    get-media-for-fragment-list get-images
""")
_SECRET_PARTS = starts("""
    credential auth-token access-token embed-url signed-url data-access api-keys private-key session-token bearer-token
    secret-value
""")
"""Parts of the names of reads that show a credential."""
_GONE = starts("""
    delete- terminate- destroy- purge- remove- deregister- batch-delete- revoke- release- detach- disable- cancel-
    schedule-key-deletion empty- reset- abort- drop- force- stop-db wipe-
""")
_FILES = names("""
    get-package-version-asset get-tile get-map-tile get-map-glyphs get-map-sprites get-map-style-descriptor get-read-set
    get-reference get-static-map get-sprites get-glyphs get-style-descriptor get-export get-sdk get-bucket-object
""")
"""Reads whose last operand is a file that they write (AWS CLI reference, `outfile`)."""
_VALUES = names("""
    --profile --region --output --query --endpoint-url --color --ca-bundle --cli-read-timeout --cli-connect-timeout
    --cli-binary-format
""")
"""Options before service and action whose value is the next word."""


def _aws(call: Call) -> None:
    call.flag("helper")
    call.env("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
    found = _split(call)
    if found is None:
        return
    path, tail = found
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
        if verb not in ("list", "list-profiles"):
            call.note(R2, "cloud.configure", "changes or shows the credentials' configuration")
    elif service == "s3":
        _s3(call, verb, flags)
    elif service in ("sso", "ec2-instance-connect", "ssm") and verb in ("login", "start-session", "ssh"):
        call.note(R2, "cloud.session", "opens a session")
    elif not _shows_secret(call, service, verb, flags):
        _action(call, service, verb, tail, flags)


def _split(call: Call) -> "tuple[list[str], list[Word]] | None":
    """Service and action, as far as they are given, and all other words; None when the text does not tell them."""
    words = call.args
    path: list[str] = []
    tail: list[Word] = []
    at = 0
    while at < len(words):
        value = words[at].value
        if value is None:
            tail.append(words[at])
            if len(path) < 2:
                call.opaque("a service or action that the text does not tell", words[at])
                return None
        elif value.startswith("-"):
            name = value.partition("=")[0]
            if name == "--endpoint-url":
                call.note(
                    R2, "cloud.endpoint", "sends the credentials' signature to another address", words[at], "law 10"
                )
            if name == "--profile" and at + 1 < len(words):
                call.points("aws context", call.value(words[at + 1]) or "?")
            tail.append(words[at])
            if len(path) < 2 and name in _VALUES and "=" not in value:
                at += 1
        elif len(path) < 2:
            path.append(value)
        else:
            tail.append(words[at])
        at += 1
    return path, tail


def _s3(call: Call, verb: str, flags: "set[str]") -> None:
    if verb == "ls" or "--dryrun" in flags:
        return
    gone = verb in ("rm", "rb") or (verb == "sync" and "--delete" in flags)
    call.note(R3 if gone else R2, f"cloud.s3.{verb or 'none'}", "removes objects" if gone else "copies objects")


def _shows_secret(call: Call, service: str, verb: str, flags: "set[str]") -> bool:
    if verb in _SECRET or (service == "ssm" and verb.startswith("get-parameter") and "--with-decryption" in flags):
        call.note(R2, "cloud.secret", "shows or fetches a credential or stored content", None, "law 4")
    elif verb.startswith(("get-", "list-", "describe-", "batch-get-")) and (
        any(part in verb for part in _SECRET_PARTS) or not flags.isdisjoint(("--include-values", "--include-value"))
    ):
        call.note(R2, "cloud.secret", "shows or fetches a credential", None, "law 4")
    else:
        return False
    call.effect("secret-read", f"{service} {verb}")
    return True


def _action(call: Call, service: str, verb: str, tail: "list[Word]", flags: "set[str]") -> None:
    dry = "--dry-run" in flags and service == "ec2" and not any(flag.startswith("--no-d") for flag in flags)
    if verb.startswith(("get-", "describe-", "list-")) and (
        (tail and not (tail[0].value or "-").startswith("-")) or verb in _FILES
    ):
        call.note(R2, "cloud.outfile", "writes what it fetches to a file")
    elif dry or (verb.startswith(_READ) and not verb.startswith("get-or-create")):
        return
    elif verb.startswith(_GONE):
        call.note(R3, "cloud.delete", f"aws {service} {verb} removes something", None, "aws reference")
    else:
        call.note(R2, "cloud.change", f"aws {service} {verb}".rstrip() + " changes something or is not known")


PROGRAMS: dict[str, Program] = {
    "aws": custom(_aws),
    "awslocal": custom(_aws),
}
