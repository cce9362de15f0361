"""docker, podman, kubectl, helm and their kin. Source: the reference pages of each tool."""

from guard.judge import paths
from guard.judge.engine import R2, R3, Call, Program
from guard.judge.options import Grammar, Parsed
from guard.judge.rules import custom, many, reader, verbs
from guard.judge.shell.syntax import Word

EXAMPLES = {
    "R0": ("docker ps -a", "docker images", "docker logs -f --tail 10 web", "docker inspect web",
        "docker stats --no-stream", "docker exec web ps aux", "docker exec -it web cat /etc/os-release",
        "docker compose ps", "docker compose logs -f web", "docker-compose -f x.yml config" , "kubectl get pods -A",
        "kubectl -n prod get pods -o wide", "kubectl describe pod x", "kubectl logs -f deploy/web",
        "kubectl rollout status deploy/web", "kubectl top nodes", "kubectl config get-contexts",
        "kubectl exec web -- ls /srv", "kubectl config view", "kubectl auth can-i get pods", "helm list -A",
        "helm status web", "helm history web", "docker volume ls", "podman ps", "crictl ps", "kubectl get secrets",
        "docker version", "kubectl explain pod", "docker network inspect x", "docker system df", "docker info",
        "kubectl cluster-info", "docker top web", "docker port web", "helm version",),
    "R1": ("docker start web", "docker exec web sh -c 'touch /x'", "docker restart web", "docker pause web"),
    "R2": ("docker stop web", "docker run alpine ls", "docker pull alpine", "docker build .",
        "docker exec -it web bash", "kubectl apply -f x.yml", "kubectl scale deploy/x --replicas=0",
        "kubectl edit deploy x", "kubectl exec -it web -- bash", "kubectl get secret x -o yaml",
        "kubectl get secrets -o json", "kubectl config view --raw", "kubectl cp a web:/b",
        "kubectl rollout restart deploy/x", "kubectl delete pod x", "helm upgrade x y", "helm install x y",
        "docker compose up -d", "kubectl port-forward x 80", "kubectl foo", "docker foo",
        "kubectl --kubeconfig /tmp/x get pods", "kubectl get pods --server http://x", "kubectl get pods --token=x",
        "helm list --kubeconfig=/tmp/x", "docker -H tcp://x ps", "docker cp a web:/b", "kubectl debug x",
        "kubectl config use-context x", "docker compose exec web foo", "kubectl get secret -ojsonpath={.data}",),
    "R3": ("docker rm -f web", "docker volume rm x", "docker system prune -f", "docker volume prune", "docker rmi x",
        "docker compose down -v", "docker exec web rm -rf /srv", "kubectl delete ns x", "kubectl delete pods --all",
        "kubectl delete -f x.yml", "kubectl drain n", "kubectl delete pvc x", "helm uninstall x",
        "kubectl exec web -- rm -rf /srv", "kubectl delete crd x", "kubectl delete node n",
        "docker run -v /:/m alpine rm -rf /m", "kubectl replace --force -f x", "docker image prune -a",
        "kubectl -n prod delete namespace x", "docker swarm leave --force", "docker compose rm -f",
        "kubectl exec web -c a -- sh -c 'rm -rf /x'",),
}  # fmt: skip


def inner(call: Call, words: "list[Word]") -> None:
    """A command that runs inside a container or on a node: nothing is enforced there."""
    call.judge.elsewhere(lambda: call.argv(words))


_EXEC = Grammar(
    "posix -d,--detach!R2 --detach-keys: -e,--env: --env-file: -i,--interactive -t,--tty -u,--user: "
    "-w,--workdir: --privileged!R2 -T,--no-TTY --index: --no-tty -it -l,--latest"
)  # fmt: skip
_RUN = Grammar(
    "posix -d,--detach -e,--env: --env-file:!read -i,--interactive -t,--tty -u,--user: -w,--workdir: "
    "--privileged!R2 --rm --name: -v,--volume: --mount: --network,--net: -p,--publish: -P "
    "--entrypoint: -h,--hostname: --restart: -m,--memory: --cpus: --cap-add:!R2 --cap-drop: "
    "--device:!R2 --pid: --ipc: --security-opt: -l,--label: --log-driver: --log-opt: --link: --dns: "
    "--platform: --pull: --gpus: "
    "--shm-size: --ulimit: --init --read-only --tmpfs: --volumes-from:!R2 --add-host: -q,--quiet "
    "-a,--attach: --cidfile:!write --expose: --group-add: --health-cmd: --ip: --memory-swap: "
    "--runtime: --stop-signal: --sysctl: --userns: --uts: --cgroupns: --cpuset-cpus: --no-deps "
    "--service-ports --use-aliases -T --pod: --network-alias: --mac-address:"
)  # fmt: skip


def _exec(call: Call, verb: str, rest: "list[Word]") -> None:
    from guard.judge.rules import perform

    parsed = _EXEC.parse(rest)
    perform(call, parsed)
    for word in parsed.unknown:
        call.note(R2, f"{call.name}.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    words = rest[parsed.rest :]
    if len(words) < 2:
        call.note(R2, f"{call.name}.exec", "opens something in a container")
        return
    call.peer("", 0, "docker")
    call.judge.needs.discard("net")
    inner(call, list(words[1:]))


def _run(call: Call, verb: str, rest: "list[Word]") -> None:
    from guard.judge.rules import perform

    parsed = _RUN.parse(rest)
    perform(call, parsed)
    words = rest[parsed.rest :]
    entry = parsed.value("--entrypoint")
    tail = list(words[1:])
    if entry is not None:
        tail = [entry, *tail]
    call.note(R2, f"{call.name}.run", "starts a container from an image whose code is not read")
    for option in parsed.options:
        if option.name in ("-v", "--mount"):
            value = call.value(option.value) if option.value is not None else None
            if value is None or value.startswith(("/", "~", "type=bind", "$")) or "docker.sock" in value:
                call.effect("write", value or "?")
                call.note(R2, "container.mount", "gives the container this machine's files", option.word, "law 1")
    if tail and (tail[0].value is None or not tail[0].value.startswith("-")):
        inner(call, tail)


def _delete_kube(call: Call, verb: str, rest: "list[Word]") -> None:
    text = [word.value or word.shape for word in rest]
    kinds = " ".join(item for item in text if not item.startswith("-")).lower()
    first = next((item.lower() for item in text if not item.startswith("-")), "")
    whole = (
        "ns",
        "namespace",
        "namespaces",
        "pv",
        "pvc",
        "persistentvolume",
        "persistentvolumes",
        "persistentvolumeclaim",
        "persistentvolumeclaims",
        "crd",
        "crds",
        "customresourcedefinition",
        "customresourcedefinitions",
        "node",
        "nodes",
        "no",
        "all",
        "statefulset",
        "statefulsets",
        "sts",
        "storageclass",
        "sc",
        "volumesnapshot",
        "volumeattachment",
        "secret",
        "secrets",
        "clusterrole",
        "apiservice",
        "deployment",
        "deployments",
        "deploy",
        "daemonset",
    )
    names = {piece.split("/")[0].split(".")[0] for piece in first.split(",")}
    broad = any(
        item.split("=")[0]
        in (
            "--all",
            "-l",
            "--selector",
            "--all-namespaces",
            "-A",
            "-f",
            "--filename",
            "-k",
            "--kustomize",
            "--force",
            "--now",
            "--field-selector",
        )
        or item.startswith(("-l", "-f", "-k", "-R"))
        or item == "--grace-period=0"
        for item in text
        if item.startswith("-")
    )
    if (
        broad
        or names & set(whole)
        or any("$" in (item or "") or "*" in item for item in text)
        or any(word.value is None for word in rest)
        or not kinds
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
        elif value.startswith("-o") and len(value) > 2 and not value.startswith("--"):
            form = value[2:].lstrip("=")
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


def _apply(call: Call, verb: str, rest: "list[Word]") -> None:
    values = [word.value or "" for word in rest]
    for at, value in enumerate(values):
        if value.startswith(("--from-file", "--from-env-file")):
            text = value.partition("=")[2] or (values[at + 1] if at + 1 < len(values) else "")
            call.reads(Word(rest[at].span, text.rpartition("=")[2], (), True))
    dry = any(value.startswith("--dry-run") and value != "--dry-run=none" for value in values)
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


def _kube_check(call: Call, verb: str, rest: "list[Word]", level: int) -> None:
    for at, word in enumerate(call.args):
        value = word.value or ""
        if value == "--context" and at + 1 < len(call.args):
            call.judge.ambient["kubernetes context"] = call.value(call.args[at + 1]) or "?"
        elif value.startswith("--context="):
            call.judge.ambient["kubernetes context"] = value[10:]
        elif value == "--":
            break
        elif value.startswith(("--token", "--password")):
            call.effect("secret", "on the command line")
        elif (value.startswith(("--kubeconfig", "--cache-dir"))) and at:
            target = (
                value.partition("=")[2] or (call.value(call.args[at + 1]) if at + 1 < len(call.args) else None) or ""
            )
            if target.startswith(paths.SHARED_FOLDERS) or not target:
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

_CONTAINER_OPTIONS = (
    "-H,--host:!R2 -c,--context: --config:!config -D,--debug -l,--log-level: --tls --tlscacert: "
    "--tlscert: --tlskey: --tlsverify -v,--version -h,--help --url:!R2 --connection: --remote --root: "
    "--runroot: -r --namespace: -n: --address: -a: -R: --identity: --storage-driver: --log-level: "
    "--cgroup-manager: --noout --out:!write --syslog"
)
_DOCKER = """R0 ps|images|logs|inspect|stats|top|port|version|info|diff|history|events|container ls|container list|
        container ps|container inspect|container logs|container stats|container top|container port|container diff|
        image ls|image list|image inspect|image history|volume ls|volume list|volume inspect|network ls|network list|
        network inspect|system df|system info|system events|context ls|context list|context inspect|context show|
        node ls|node ps|node inspect|service ls|service ps|service logs|service inspect|stack ls|stack ps|
        stack services|stack config|plugin ls|plugin list|plugin inspect|manifest inspect|buildx ls|buildx inspect|
        buildx du|buildx version|config ls|config inspect|secret ls|secret inspect|trust inspect|compose ps|
        compose logs|compose ls|compose config|compose images|compose top|compose version|compose port|
        compose events|compose stats|compose volumes|wait|container wait|pod ps|pod ls|pod list|pod inspect|pod logs|
        pod stats|pod top|machine ls|machine list|machine inspect|machine info|secret list|container exists|
        image exists|volume exists|network exists|pod exists|image tree|exec|container exec|run|container run|
        compose exec|compose run|help|inspecti|inspectp|pods|imagefsinfo|statsp|system connection list|
        system connection ls|checkpoint ls|builder du|namespace ls|namespace list|namespace inspect
R1 start|restart|unpause|pause|container start|container restart|container unpause|container pause|compose start|
        compose restart|compose pause|compose unpause|pod start|pod restart|pod pause|pod unpause|tag|image tag|
        rename|container rename|create|container create|volume create|network create|network connect|compose create|
        pod create|context use|image mount
R2 stop|kill|pull|push|build|login|logout|commit|cp|load|import|save|export|attach|update|container stop|
        container kill|container commit|container cp|container update|container attach|container export|image pull|
        image push|image build|image save|image load|image import|network disconnect|compose up|compose stop|
        compose kill|compose pull|compose push|compose build|compose watch|compose cp|compose attach|service create|
        service update|service scale|service rollback|stack deploy|stack up|swarm init|swarm join|swarm update|
        swarm join-token|swarm unlock-key|node update|node promote|node demote|plugin install|plugin enable|
        plugin disable|plugin set|secret create|config create|context create|context update|buildx build|buildx bake|
        compose publish|manifest create|manifest push|trust sign|generate|generate kube|generate systemd|play kube|
        kube play|search|image search|runp|machine start|machine stop|machine ssh|unshare|
        secret inspect --showsecret
R3 rm|rmi|container rm|container remove|container prune|image rm|image remove|image prune|volume rm|volume remove|
        volume prune|network rm|network remove|network prune|system prune|builder prune|buildx prune|buildx rm|
        compose down|compose rm|stack rm|stack remove|stack down|service rm|service remove|node rm|node remove|
        swarm leave|secret rm|secret remove|config rm|plugin rm|context rm|pod rm|pod prune|system reset|kube down|
        manifest rm|rmp|machine rm|machine reset|builder rm|namespace rm|namespace remove"""


def _docker_check(call: Call, verb: str, rest: "list[Word]", level: int) -> None:
    for word in rest:
        if word.value in ("--help",):
            return
    if verb in ("secret inspect",) and any(word.value == "--showsecret" for word in rest):
        call.note(R2, "container.secret", "shows the value of a secret", None, "law 4")


DOCKER = verbs(
    _CONTAINER_OPTIONS, _DOCKER, need="bus", env=("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"),
    check=_docker_check, plain=False,
    details={"exec": _exec, "container exec": _exec, "run": _run, "container run": _run, "compose exec": _exec,
        "compose run": _run},
)  # fmt: skip
_COMPOSE_OPTIONS = (
    "-f,--file:!config -p,--project-name: --profile: --env-file:!config --project-directory:!config "
    "--ansi: --progress: --parallel: --dry-run --compatibility --verbose -v,--version -h,--help "
    "-H,--host:!R2 -c,--context: --all-resources --tls"
)
COMPOSE = verbs(
    _COMPOSE_OPTIONS,
    """R0 ps|logs|ls|config|convert|images|top|version|port|events|stats|volumes|exec|run|help
    R1 start|restart|pause|unpause|create
    R2 up|stop|kill|pull|push|build|watch|cp|attach|scale
    R3 down|rm""",
    need="bus", env=("DOCKER_HOST",), details={"exec": _exec, "run": _run}, danger="-o:!write --output:!write",
)  # fmt: skip


def _docker(call: Call) -> None:
    """`docker compose` has options of its own between its two words."""
    words = list(call.args)
    for at, word in enumerate(words):
        if word.value == "compose":
            inner_call = Call(call.judge, "docker compose", word, words[at + 1 :], call.span, call.stdin)
            head = Call(call.judge, call.name, call.word, [*words[:at], Word(word.span, "version")], call.span)
            DOCKER.judge(head)
            COMPOSE.judge(inner_call)
            return
        if word.value is None or not word.value.startswith("-"):
            break
    DOCKER.judge(call)


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
    **many("docker podman nerdctl", custom(_docker)),
    **many("docker-compose podman-compose", COMPOSE),
    **many("crictl ctr", verbs(_CONTAINER_OPTIONS + " -r,--runtime-endpoint: -i,--image-endpoint: -t,--timeout: -D",
            """R0 ps|pods|images|logs|inspect|inspecti|inspectp|stats|statsp|info|version|imagefsinfo|events|
                containers ls|
        containers list|containers info|images ls|images list|images check|tasks ls|tasks list|tasks ps|
        tasks metrics|namespaces ls|namespaces list|snapshots ls|snapshots info|content ls|plugins ls|leases ls|c ls|
        i ls|t ls|ns ls|image ls|container ls|task ls|exec
        R1 start
        R2 stop|stopp|pull|run|runp|create|update|attach|port-forward|checkpoint
        R3 rm|rmp|rmi|containers rm|containers delete|images rm|images remove|tasks rm|tasks kill|namespaces rm|
        snapshots rm|c rm|i rm""", need="bus", details={"exec": _exec})),
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
            protocol="kubernetes")),
}  # fmt: skip
