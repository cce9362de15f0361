"""docker, podman and their kin. Source: the reference pages of each tool."""

from guard.judge.levels import R2
from guard.judge.options import Grammar
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, verbs
from guard.judge.shell.syntax import Word

EXAMPLES = {
    "R0": ("docker compose logs -fn 5 web", "docker compose ps -aq", "docker compose exec -T web ls",
        "docker ps -a", "docker images", "docker logs -f --tail 10 web", "docker inspect web",
        "docker stats --no-stream", "docker exec web ps aux", "docker exec -it web cat /etc/os-release",
        "docker compose ps", "docker compose logs -f web", "docker-compose -f x.yml config",
        "docker volume ls", "podman ps", "crictl ps", "docker version", "docker network inspect x",
        "docker system df", "docker info", "docker top web", "docker port web", "docker compose config -q",),
    "R1": ("docker start web", "docker exec web sh -c 'touch /x'", "docker restart web", "docker pause web",
        "docker compose config -qo f",),
    "R2": ("docker stop web", "docker run alpine ls", "docker pull alpine", "docker build .",
        "docker exec -it web bash", "docker compose up -d", "docker foo", "docker -H tcp://x ps",
        "docker cp a web:/b", "docker compose ps -z", "docker compose logs -Z web",
        "docker compose exec web foo", "DOCKER_CONFIG=/tmp/x docker ps",),
    "R3": ("docker rm -f web", "docker volume rm x", "docker system prune -f", "docker volume prune",
        "docker rmi x", "docker compose down -v", "docker exec web rm -rf /srv",
        "docker run -v /:/m alpine rm -rf /m", "docker image prune -a", "docker swarm leave --force",
        "docker compose rm -f",),
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
    danger="--host:!R2 --url:!R2 --connection:!R2 --conmon:!exec --hooks-dir:!exec --network-cmd-path:!exec",
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
    need="bus", env=("DOCKER_HOST",), details={"exec": _exec, "run": _run},
    danger="-q,--quiet -o:!write --output:!write -f,--follow -t,--timestamps -a,--all -n,--tail: -h,--help",
    closed=True,
)  # fmt: skip
_HEAD = Grammar("posix " + _CONTAINER_OPTIONS)


def _docker(call: Call) -> None:
    """`docker compose` has options of its own between its two words."""
    words = list(call.args)
    at = _HEAD.parse(words).rest
    if at < len(words) and words[at].value == "compose":
        word = words[at]
        inner_call = Call(call.judge, "docker compose", word, words[at + 1 :], call.span, call.stdin)
        head = Call(call.judge, call.name, call.word, [*words[:at], Word(word.span, "version")], call.span)
        DOCKER.judge(head)
        COMPOSE.judge(inner_call)
        return
    DOCKER.judge(call)


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
}  # fmt: skip
