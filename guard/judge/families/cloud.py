"""Cloud command lines by the grammar of their verbs: describe, list and get read; delete removes. Source:
each CLI's reference. What is in `families.aws` and `families.objectstores` has its own grammar."""

from guard.judge.levels import R2, R3
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, verbs
from guard.judge.tables import names, starts

EXAMPLES = {
    "R0": ("gcloud compute instances list", "gcloud config list", "gcloud projects describe p", "az vm list -o table",
        "az account show", "doctl compute droplet list",),
    "R2": ("gcloud compute instances create x", "az vm start -n x", "gcloud auth print-access-token",
        "az account get-access-token", "gcloud secrets versions access latest --secret=x",
        "az keyvault secret show -n x", "gcloud compute instances create list", "gcloud compute ssh list",),
    "R3": ("gcloud compute instances delete x", "gcloud projects delete p", "az group delete -n x", "az vm delete -n x",
        "doctl compute droplet delete 1", "gcloud sql instances delete x",),
}  # fmt: skip

_READ_VERBS = names("""
    list describe show ls get get-iam-policy list-grantable-roles get-ancestors get-server-config list-tags read
    tail search info version list-skus list-sizes list-locations list-usage exists list-instances get-health
    list-projects check-name check-health list-versions list-ip-addresses list-vm-resize-options
    get-instance-view list-defaults stat du status query test-iam-permissions get-effective-address
    get-operation get-value list-accounts usage help history
""")
_SECRET_VERBS = names("""
    print-access-token print-identity-token print-settings access get-credentials get-access-token list-keys
    show-connection-string list-credentials credential show-keys decrypt get-key reset-windows-password
    application-default print-refresh-token list-connection-strings list-publishing-profiles
    list-publishing-credentials
""")
_GONE_VERBS = names("""
    delete remove destroy purge rm terminate delete-access-config remove-iam-policy-binding delete-tags
    delete-batch reset wipe rb recreate-instances delete-instances delete-signed-url-key revoke clear failover
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
_CHANGES_BEGIN = starts("""
    create- update- set- add- start- stop- import- export- attach- detach- enable- disable- ssh run- reset- rolling-
    execute- apply- move- resize- replace- restart- suspend- resume- rotate- restore- send- write- publish- cancel-
    failover- switch- promote- migrate- upgrade- simulate- recreate- abandon- invalidate- trigger- retry- patch- sign-
    generate- login- connect- clone- copy- rename- undelete invoke approve- reject- deploy- kill seek ack ingest insert
""")
"""How verbs begin that change something."""
_SECRET_THINGS = names("""
    kubeconfig apikey apikeys api-key api-keys admin-key query-key connection docker-config get-access-token
    kubeconfig-view printenv env:list config:get credentials:show
""")
_GROUPED = names("gcloud az oci aliyun tccli doctl ibmcloud openstack exo scw civo hcloud ovhcloud upctl")
"""CLIs whose first word names a service, never an action."""
_OPTIONS = names("--flags-file --impersonate-service-account --access-token-file --log-http")
"""Options that say who asks, or show what it asks with."""
_LONG_FLAGS = names("--quiet --help --debug --verbose --no-trunc --all")
"""Long options without a value; behind any other one a word is taken for its value."""
_SHORT_VALUES = names("-n -g -o -q -p -z -f -r -t -l -c -s")
_CONFIG_READS = names("list get-value get configurations")
_TOP_READS = names("ls list du stat hash status whoami show logs ps releases regions")
"""Words that read when they stand first."""
_API_READS = ("Describe", "List", "Get", "Query")
_API_GONE = ("Delete", "Terminate", "Release", "Remove", "Destroy", "Purge")
_API_SECRETS = ("Secret", "Token", "Password", "Credential", "AccessKey", "Kubeconfig")


def _cloud(call: Call) -> None:
    """gcloud, az, doctl and their kin: the verb is the last word before the options or the first that is a verb."""
    call.flag("helper")
    call.peer("", 443, call.name)
    rest = _plain_words(call)
    words = {word.value for word in call.args}
    if not rest and words.isdisjoint(("--version", "--help", "-h", "-v", "-V")):
        call.note(R2, "cloud.bare", f"{call.name} without a verb can act (some deploy)")
        return
    if not rest or rest[0] in ("version", "help", "info") or "--help" in words or "-h" in words:
        return
    if _reads_configuration(rest) or _touches_secrets(call, rest):
        return
    first = rest[0].replace(":", " ").replace(".", " ").split()
    if len(first) > 1:
        # heroku's and firebase's `apps:info`, govc's `vm.destroy`.
        rest = [first[0], first[-1], *rest[1:]]
    elif call.name not in _GROUPED and rest[0] in _CHANGE_VERBS and rest[0] not in ("auth", "addons"):
        call.note(R2, "cloud.change", f"{call.name} {rest[0]} changes something")
        return
    _verb(call, rest)


def _plain_words(call: Call) -> "list[str]":
    """The words that are no options and no options' values. Notes options that count by themselves."""
    rest: list[str] = []
    before = ""
    for index, word in enumerate(call.args):
        value, last = word.value, before
        before = value or ""
        if value is None:
            if not rest or (
                rest[-1] not in _READ_VERBS and rest[-1] not in _GONE_VERBS and index and not last.startswith("-")
            ):
                call.opaque("what it does is not told by the text", word)
        elif value.startswith("-"):
            name = value.partition("=")[0]
            if name in _OPTIONS or (name == "--debug" and call.name == "az"):
                call.note(R2, "cloud.option", f"{name} changes who asks or shows credentials", word)
        elif not (last in _SHORT_VALUES or (last.startswith("--") and "=" not in last and last not in _LONG_FLAGS)):
            rest.append(value)
    return rest


def _reads_configuration(rest: "list[str]") -> bool:
    return (
        rest[0] == "config"
        and len(rest) > 1
        and rest[1] in _CONFIG_READS
        and not any(item in ("create", "activate", "delete") for item in rest)
    )


def _touches_secrets(call: Call, rest: "list[str]") -> bool:
    """Notes what shows, changes or removes a credential."""
    if any(item in _SECRET_VERBS for item in rest[:5]) or (
        any(item in ("secret", "secrets", "keyvault", "key", "keys") for item in rest[:3])
        and any(item in ("show", "access", "download", "list-keys") for item in rest)
    ):
        call.note(R2, "cloud.secret", "shows or fetches a credential", None, "law 4")
    elif (
        any(item in _SECRET_THINGS for item in rest[:6])
        or (
            any(item in ("secret", "secrets") for item in rest[:4])
            and not any(item in ("list", "ls", "describe", "versions", "get-iam-policy") for item in rest)
        )
        or (call.name == "az" and any(item in ("key", "keys", "appsettings", "connection-string") for item in rest))
    ):
        gone = any(item in _GONE_VERBS for item in rest)
        call.note(R3 if gone else R2, "cloud.secret", "shows, changes or removes a credential", None, "law 4")
    else:
        return False
    call.effect("secret-read", call.name)
    return True


def _verb(call: Call, rest: "list[str]") -> None:
    """Notes what the first word that is a verb does, or the first word at all."""
    for item in rest[1:6]:
        if item in _CHANGE_VERBS or item.startswith(_CHANGES_BEGIN):
            break
        if item in _GONE_VERBS or item.startswith(("delete-", "remove-", "purge-")):
            _removes(call, item)
            return
        if item in _READ_VERBS or item.startswith(("list-", "get-", "describe-", "show-")):
            return
    if call.name in ("aliyun", "tccli") and len(rest) > 1:
        verb = rest[1]
        if verb.startswith(_API_READS) and not any(item in verb for item in _API_SECRETS):
            return
        if verb.startswith(_API_GONE):
            _removes(call, verb)
            return
    if rest[0] in _TOP_READS and call.name != "gcloud":
        return
    if rest[0] in _GONE_VERBS:
        _removes(call, rest[0])
        return
    call.note(R2, "cloud.change", f"{call.name} {' '.join(rest[:3])} changes something or is not known")


def _removes(call: Call, verb: str) -> None:
    call.note(R3, "cloud.delete", f"{call.name} {verb} removes something", None, f"{call.name} reference")


PROGRAMS: dict[str, Program] = {
    **many("gcloud az doctl oci aliyun tccli hcloud linode-cli scw civo exo ibmcloud openstack heroku fly "
        "flyctl vercel netlify railway render wrangler firebase sfdx cf eb sam "
        "copilot cloudflared vultr-cli upctl ovhcloud govc snyk sentry-cli datadog newrelic pd", custom(_cloud)),
    "bq": verbs("--project_id: --location: --format: -q,--quiet -h,--help --dataset_id: --headless "
        "--max_rows_per_request:",
        "R0 ls|show|head|version|help|info|get-iam-policy\nR3 rm|remove", flags=("helper",), protocol="gcloud"),
}  # fmt: skip
