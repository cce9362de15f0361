"""kubectl, helm and what else speaks to clusters. Source: the reference pages of each tool."""

from guard.judge.assignments import leads_to_shared
from guard.judge.families.containers import inner
from guard.judge.levels import R2, R3
from guard.judge.options import Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import many, reader, verbs
from guard.judge.shell.syntax import Word
from guard.judge.tables import names

EXAMPLES = {
    "R0": ("kubectl get pods -A", "kubectl -n prod get pods -o wide", "kubectl describe pod x",
        "kubectl logs -f deploy/web", "kubectl rollout status deploy/web", "kubectl top nodes",
        "kubectl config get-contexts", "kubectl exec web -- ls /srv", "kubectl config view",
        "kubectl auth can-i get pods", "helm list -A", "helm status web", "helm history web",
        "kubectl get secrets", "kubectl explain pod", "kubectl cluster-info", "helm version",
        "kubectl get secrets -A -owide", "kubectl apply -f x.yml --dry-run=server",),
    "R2": ("kubectl apply -f x.yml", "kubectl scale deploy/x --replicas=0", "kubectl edit deploy x",
        "kubectl exec -it web -- bash", "kubectl get secret x -o yaml", "kubectl get secrets -o json",
        "kubectl config view --raw", "kubectl cp a web:/b", "kubectl rollout restart deploy/x",
        "kubectl delete pod x", "helm upgrade x y", "helm install x y", "kubectl port-forward x 80",
        "kubectl foo", "kubectl --kubeconfig /tmp/x get pods", "kubectl get pods --server http://x",
        "kubectl get pods --token=x", "helm list --kubeconfig=/tmp/x", "kubectl debug x",
        "kubectl config use-context x", "kubectl get secret -ojsonpath={.data}",
        "kubectl get secrets -Aojson", "kubectl get secret x -v=9",
        "kubectl apply -f x.yml --dry-run=client --dry-run=none",),
    "R3": ("kubectl delete ns x", "kubectl delete pods --all", "kubectl delete -f x.yml", "kubectl drain n",
        "kubectl delete pvc x", "helm uninstall x", "kubectl exec web -- rm -rf /srv",
        "kubectl delete crd x", "kubectl delete node n", "kubectl replace --force -f x",
        "kubectl -n prod delete namespace x", "kubectl exec web -c a -- sh -c 'rm -rf /x'",),
}  # fmt: skip


_WHOLE_KINDS = names("""
    ns namespace namespaces pv pvc persistentvolume persistentvolumes persistentvolumeclaim
    persistentvolumeclaims crd crds customresourcedefinition customresourcedefinitions node nodes no all
    statefulset statefulsets sts storageclass sc volumesnapshot volumeattachment secret secrets clusterrole
    apiservice deployment deployments deploy daemonset
""")
"""Kinds of objects on which others hang, or that hold what is nowhere else."""
_BROAD = names("""
    --all -l --selector --all-namespaces -A -f --filename -k --kustomize --force --now --field-selector
""")
"""Options that take more than the objects that are named."""


def _delete_kube(call: Call, verb: str, rest: "list[Word]") -> None:
    text = [word.value or word.shape for word in rest]
    plain = [item.lower() for item in text if not item.startswith("-")]
    kinds = {piece.split("/")[0].split(".")[0] for piece in plain[0].split(",")} if plain else {""}
    broad = any(
        item.split("=")[0] in _BROAD or item.startswith(("-l", "-f", "-k", "-R")) or item == "--grace-period=0"
        for item in text
        if item.startswith("-")
    )
    if (
        broad
        or not any(plain)
        or not _WHOLE_KINDS.isdisjoint(kinds)
        or any("$" in item or "*" in item for item in text)
        or any(word.value is None for word in rest)
    ):
        call.note(R3, "kubernetes.delete", "removes cluster objects and what hangs on them", None, "kubectl delete")
    else:
        call.note(R2, "kubernetes.delete-one", "removes a cluster object")


def _get_kube(call: Call, verb: str, rest: "list[Word]") -> None:
    values = [word.value if word.value is not None else word.shape for word in rest]
    secret = any(
        piece.split("/")[0].split(".")[0] in ("secret", "secrets")
        for value in values
        if not value.startswith("-")
        for piece in value.lower().split(",")
    )
    shows = False
    for at, value in enumerate(values):
        form = ""
        if value in ("-o", "--output") and at + 1 < len(values):
            form = values[at + 1]
        elif value[:1] == "-" and value[1:2] != "-" and value.lstrip("-AwRhiq").startswith("o"):
            # A bundle: what stands behind -o is its value, and so is the next word when nothing does.
            form = value.partition("o")[2].lstrip("=") or (values[at + 1] if at + 1 < len(values) else "?")
        elif value.startswith("--output="):
            form = value[9:]
        elif value.startswith(("--template", "--raw=")) or value == "--raw":
            shows = shows or value.startswith("--template") or "secrets" in " ".join(values)
            secret = secret or ("secrets" in " ".join(values) and value.startswith("--raw"))
        if form and form not in ("wide", "name"):
            shows = True
    if any("/proxy/" in value or value.endswith(("/exec", "/attach")) for value in values):
        call.note(R2, "kubernetes.proxy", "asks something behind the cluster's own interface", None, "law 10")
    if secret and shows:
        call.note(R2, "kubernetes.secret", "shows the values of secrets", None, "law 4")
        call.effect("secret-read", "kubernetes secrets")


_DRY = frozenset(("--dry-run", "--dry-run=client", "--dry-run=server", "--dry-run=true"))
_BEFORE = frozenset(("-R", "--recursive", "--all", "-A", "--overwrite", "--server-side", "--force", "--rm", "--local",
    "-i", "-t", "-it", "--save-config", "--record", "--stdin", "--tty", "--quiet"))  # fmt: skip
"""Options without a value: behind any other one, `--dry-run` may be a value."""


def _dry(values: "list[str]") -> bool:
    """A dry run is asked for, each time by a form that is one, and never as another option's value."""
    found = False
    for at, value in enumerate(values):
        if value == "--":
            break
        if value.startswith("--dry"):
            before = values[at - 1] if at else ""
            if value not in _DRY or (before[:1] == "-" and "=" not in before and before not in _BEFORE | _DRY):
                return False
            found = True
    return found


def _apply(call: Call, verb: str, rest: "list[Word]") -> None:
    values = [word.value or "" for word in rest]
    for at, value in enumerate(values):
        if value.startswith(("--from-file", "--from-env-file", "--key", "--cert")) and verb == "create":
            text = value.partition("=")[2] or (values[at + 1] if at + 1 < len(values) else "")
            call.reads(Word(rest[at].span, text.rpartition("=")[2], (), True))
    dry = _dry(values)
    if dry and not any(value in ("-k", "--kustomize") or value.startswith(("-k", "--kustomize=")) for value in values):
        for at, value in enumerate(values):
            if (
                value in ("-f", "--filename")
                and at + 1 < len(values)
                and values[at + 1].startswith(("http://", "https://"))
            ):
                call.note(R2, "kubernetes.url", "fetches a manifest from a URL", rest[at + 1], "law 10")
        return
    call.note(
        R3 if any(value in ("--prune", "--force") for value in values) else R2,
        f"kubernetes.{verb.replace(' ', '-')}",
        f"kubectl {verb} changes the cluster",
    )


def _kube_exec(call: Call, verb: str, rest: "list[Word]") -> None:
    parsed_words = list(rest)
    at = 0
    target = False
    while at < len(parsed_words):
        value = parsed_words[at].value
        if value == "--":
            at += 1
            break
        if value is not None and value.startswith("-"):
            if value in (
                "-c",
                "--container",
                "-n",
                "--namespace",
                "--context",
                "-f",
                "--filename",
                "--pod-running-timeout",
                "--kubeconfig",
                "-s",
                "--server",
            ):
                at += 1
            at += 1
            continue
        if not target:
            target = True
            at += 1
            continue
        break
    words = parsed_words[at:]
    if not words:
        call.note(R2, "kubernetes.exec", "opens something in a pod")
        return
    inner(call, words)


def _whoami(call: Call, verb: str, rest: "list[Word]") -> None:
    if any((word.value or "-t").startswith(("-t", "--show-t")) for word in rest):
        call.note(R2, "kubernetes.token", "shows a token", None, "law 4")


def _config_kube(call: Call, verb: str, rest: "list[Word]") -> None:
    if any((word.value or "").startswith("--raw") for word in rest):
        call.note(R2, "kubernetes.config-raw", "shows the credentials of the cluster", None, "law 4")
        call.effect("secret-read", "kubeconfig")


_FROM_FILES = frozenset(("get", "describe", "logs", "wait", "rollout status", "rollout history", "events"))


def _loud(values: "list[str]") -> bool:
    """Whether the log shows the bodies of answers, secrets' values among them (from -v=8 on)."""
    for at, value in enumerate(values):
        if value in ("-v", "--v"):
            given = values[at + 1] if at + 1 < len(values) else "9"
        elif value.startswith("--v=") or (value[1:2] != "-" and value.lstrip("-AwRhiq")[:1] == "v" and value[0] == "-"):
            given = value.partition("v")[2].lstrip("=") or (values[at + 1] if at + 1 < len(values) else "9")
        else:
            continue
        if not (given.isdigit() and int(given) < 8):
            return True
    return False


def _kube_check(call: Call, verb: str, rest: "list[Word]", level: int) -> None:
    values = [word.value if word.value is not None else word.shape for word in call.args]
    if verb != "exec" and "secret" in " ".join(values) and _loud(values):
        call.note(R2, "kubernetes.secret", "shows the values of secrets in its log", None, "law 4")
        call.effect("secret-read", "kubernetes secrets")
    for at, word in enumerate(call.args):
        value = word.value or ""
        if verb in _FROM_FILES and "://" in value and value.startswith(("http", "-f", "--filename=", "-k", "--kust")):
            call.note(R2, "kubernetes.url", "fetches a manifest from an address", word, "law 10")
        if value == "--context" and at + 1 < len(call.args):
            call.points("kubernetes context", call.value(call.args[at + 1]) or "?")
        elif value.startswith("--context="):
            call.points("kubernetes context", value[10:])
        elif value == "--":
            break
        elif value.startswith(("--token", "--password")):
            call.effect("secret", "on the command line")
        elif (value.startswith(("--kubeconfig", "--cache-dir"))) and at:
            target = (
                value.partition("=")[2] or (call.value(call.args[at + 1]) if at + 1 < len(call.args) else None) or ""
            )
            if not target or leads_to_shared(call.judge, target):
                call.note(
                    R2,
                    "kubernetes.config",
                    "a configuration from where others can write names programs to run",
                    word,
                    "law 8",
                )


_KUBE_OPTIONS = (
    "-n,--namespace: --context: --cluster: --user: --kubeconfig:!config -s,--server:!R2 --token:!R2 "
    "--as:!R2 --as-group:!R2 --as-uid:!R2 --certificate-authority: --client-certificate: "
    "--client-key: --insecure-skip-tls-verify!R2 --tls-server-name: --request-timeout: --cache-dir: "
    "-v,--v: --vmodule: --log-file:!write --log-dir:!write --logtostderr --alsologtostderr "
    "--match-server-version --password:!R2 --username: --profile:!R1 --profile-output:!write "
    "--warnings-as-errors --disable-compression -h,--help -A,--all-namespaces -o,--output: "
    "-l,--selector: --kuberc:!config"
)  # fmt: skip
_KUBE = """R0 get|describe|logs|log|top|top node|top nodes|top pod|top pods|explain|version|api-resources|api-versions|
        cluster-info|auth can-i|auth whoami|rollout status|rollout history|config view|config get-contexts|
        config current-context|config get-clusters|config get-users|events|wait|options|help|completion|plugin list|
        exec|delete|apply|create|set|scale|patch|replace|label|annotate|run|expose|autoscale|adm top|
        adm top pods|adm top nodes|status|projects|whoami
R1 uncordon|rollout pause|rollout resume
R2 edit|rollout restart|rollout undo|port-forward|proxy|cp|attach|debug|taint|cordon|convert|diff|kustomize|
        certificate approve|certificate deny|config use-context|config set-context|config set|config unset|
        config set-cluster|config set-credentials|config rename-context|config delete-context|config delete-user|
        config delete-cluster|cluster-info dump|auth reconcile|login|logout|new-app|start-build|rsh|rsync|project
R3 drain|delete-all|adm drain"""

KUBECTL = verbs(
    _KUBE_OPTIONS, _KUBE, flags=("helper",), anywhere=True, env=("KUBECONFIG",), check=_kube_check,
    protocol="kubernetes",
    details={"delete": _delete_kube, "get": _get_kube, "exec": _kube_exec, "config view": _config_kube,
        "whoami": _whoami, **dict.fromkeys(["apply", "create", "set", "scale", "patch", "replace", "label",
            "annotate", "run", "expose",
                "autoscale"], _apply),},
)  # fmt: skip

HELM = verbs(
    "-n,--namespace: --kube-context: --kubeconfig:!config --debug --kube-apiserver:!R2 "
    "--kube-token:!R2 --registry-config:!config --repository-config:!config --repository-cache: "
    "-h,--help --burst-limit: --qps: --kube-as-user:!R2 --kube-insecure-skip-tls-verify!R2",
    """R0 list|ls|status|history|get notes|get hooks|get metadata|version|env|search repo|repo list|show chart|
        show readme|show values|show all|show crds|inspect chart|inspect values|dependency list|dep list|plugin list|
        verify|lint|help|completion
    R2 install|upgrade|rollback|test|repo add|repo update|pull|push|package|dependency update|dependency build|
        dep update|plugin install|registry login|create|template|get values|get manifest|get all|search hub
    R3 uninstall|delete|del|un|repo remove|repo rm|plugin uninstall""",
    flags=("helper",), env=("KUBECONFIG",), protocol="kubernetes", anywhere=True,
    danger="--post-renderer:!exec --output-dir:!write",
)  # fmt: skip


def _stern(call: Call, parsed: Parsed) -> None:
    call.flag("helper")
    call.peer("", 0, "kubernetes")


PROGRAMS: dict[str, Program] = {
    **many("kubectl oc kubecolor k", KUBECTL),
    "microk8s": verbs("", "R0 status|version", details={}),
    "helm": HELM,
    "stern": reader("-n,--namespace: --context: --kubeconfig:!config -A,--all-namespaces -c,--container: "
    "-E,--exclude-container: "
        "-e,--exclude: -i,--include: -l,--selector: --field-selector: -s,--since: --tail: -t,--timestamps? "
        "-o,--output: "
        "--template: --color: --no-follow --version -h,--help --only-log-lines --node: --max-log-requests: --timezone: "
        "--init-containers --ephemeral-containers -p,--prompt", operands="data", plain=False, unknown="R2",
check=_stern),
    **many("argocd flux istioctl linkerd cilium velero kubeadm kind minikube k3d k9s kubens kubectx "
        "kustomize skaffold tilt eksctl kops rancher nomad consul vault", verbs(
            "-n,--namespace: --context: --kubeconfig:!config --server: --grpc-web --core -o,--output: -A "
            "-h,--help --version -p,--profile: --address: --token:!R2 -v: --kube-context: -a -l: --region: "
            "--name:",
            """R0 version|status|app list|app get|app diff|app history|app logs|app resources|cluster list|
                cluster get|proj list|
        proj get|repo list|get all|get sources all|get kustomizations|get helmreleases|get sources|logs|check|events|
        tree ks|proxy-status|analyze|describe|backup get|backup describe|backup logs|restore get|
        restore describe|schedule get|get clusters|get nodes|get nodegroup|get cluster|profile list|addons list|ip|
        node list|service list|config get|config view|list|ls|info|job status|node status|alloc status|alloc logs|
        server members|agent-info|deployment list|deployment status|namespace list|members|catalog services|
        catalog nodes|catalog datacenters|operator raft list-peers|operator members|auth list|secrets list|
        policy list|policy read|audit list|proxy-config cluster|proxy-config listener|proxy-config route|
        proxy-config endpoint|proxy-config bootstrap|pc cluster|pc listener|pc route|pc endpoint|viz stat|viz "
        "top|stat|top|edges|get account|get users|
        certs check-expiration|config images list|upgrade plan|help|get routes
        R3 app delete|delete|delete cluster|uninstall|reset|uninstall-control-plane|cluster rm|proj delete|repo rm|
        backup delete|restore delete|schedule delete|kv delete|secrets disable|job stop|namespace delete|system gc|
        kv destroy|kv metadata delete|lease revoke|cluster delete|node delete|delete nodegroup|policy delete|
        auth disable|snapshot restore|operator raft remove-peer""", none="R2", flags=("helper",),
            protocol="kubernetes", danger="single -address,--address:!R2 -http-addr,--http-addr:!R2 --server:!R2 "
            "--config:!config --kubeconfig:!config --token,-token:!R2 -output-curl-string!R2 "
            "--endpoints:!R2")),
}  # fmt: skip
