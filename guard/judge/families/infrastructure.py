"""Infrastructure and configuration as code: terraform, pulumi, ansible and their kin. Source: each reference."""

from guard.judge.levels import R2, R3
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, reader, verbs
from guard.judge.shell.syntax import Word

EXAMPLES = {
    "R0": ("terraform show", "terraform state list", "terraform validate", "ansible --version",
        "terraform workspace list", "terraform version",),
    "R2": ("terraform apply", "terraform init", "terraform plan", "ansible all -m ping", "ansible-playbook x.yml",
        "terraform console",),
    "R3": ("terraform destroy", "terraform apply -destroy", "terraform state rm x", "pulumi destroy",
        "terraform workspace delete x", "ansible all -a 'rm -rf /x'",),
}  # fmt: skip


def _ansible(call: Call) -> None:
    values = {word.value for word in call.args}
    if values & {"--version", "--help", "-h"} and "-a" not in values:
        return
    call.note(R2, "cloud.ansible", "runs tasks on many machines")
    args = list(call.args)
    module = "command"
    for at, word in enumerate(args[:-1]):
        if word.value in ("-m", "--module-name"):
            module = call.value(args[at + 1]) or "?"
    if call.name == "ansible" and module in (
        "command",
        "shell",
        "raw",
        "?",
        "ansible.builtin.shell",
        "ansible.builtin.command",
    ):
        for at, word in enumerate(args[:-1]):
            if word.value in ("-a", "--args"):
                call.code(args[at + 1])


def _terraform_check(call: Call, verb: str, rest: "list[Word]", level: int) -> None:
    if verb in ("output", "stack output") and any(
        (word.value or "-raw").lstrip("-").startswith(("raw", "json", "show-secrets")) for word in rest
    ):
        call.note(R2, "terraform.output", "shows values that are marked as sensitive", None, "law 4")
    if verb == "show" and any((word.value or "-json").lstrip("-").startswith("json") for word in rest):
        call.note(R2, "terraform.show", "shows values that are marked as sensitive", None, "law 4")
    if verb == "apply" and any((word.value or "").lstrip("-") in ("destroy", "auto-approve -destroy") for word in rest):
        call.note(R3, "terraform.destroy", "destroys infrastructure", None, "terraform reference")


TERRAFORM = verbs(
    "single -chdir:!config -version,--version -help,--help -h,-v",
    """R0 show|output|state list|state show|validate|version|providers|graph|workspace list|workspace show|
        metadata functions|help|providers schema
    R2 providers lock|providers mirror|plan|apply|init|import|refresh|taint|untaint|console|state mv|state "
    "pull|workspace new|workspace select|login|
        logout|fmt|get|test|up|preview|run-all|stack init|stack select|stack export|config set|
        state replace-provider|import|cancel
    R3 destroy|state rm|state push|workspace delete|force-unlock|stack rm|run-all destroy|apply -destroy|
        state delete""",
    flags=("helper",), check=_terraform_check,
)  # fmt: skip


def _pulumi_config(call: Call, rest: "list[Word]") -> None:
    words = [word.value or "?" for word in rest if not (word.value or "?").startswith("-")]
    if words:
        call.note(R2, "pulumi.config", "changes the stack's configuration")


PROGRAMS: dict[str, Program] = {
    **many("cdk serverless sls chalice supabase", verbs("--version -v -h,--help", "R0 --version|version|help\nR3 "
    "destroy|remove|delete",
            none="R2", flags=("helper",))),
    **many("terraform tofu", TERRAFORM),
    "terragrunt": verbs("single -version,--version -help,--help -h,-v", "R0 version|help\nR3 destroy|run-all destroy|"
        "state rm|force-unlock|workspace delete", none="R2", flags=("helper",)),
    "pulumi": verbs("-C,--cwd:!config -s,--stack: --color: -v: --logtostderr --non-interactive -h,--help -e --emoji",
        """R0 stack ls|stack history|stack output|about|whoami|logs|version|plugin ls|help|stack tag ls|stack tag get|
            config get|config
        R3 destroy|stack rm|state delete|cancel""", flags=("helper",), danger="--show-secrets!secret",
        details={"config": lambda call, verb, rest: _pulumi_config(call, rest)}),
    **many("packer", verbs("-version -help -v -h",
            "R0 version|inspect|validate|plugins installed\nR2 build|init|console|fix|fmt", flags=("helper",))),
    **many("vagrant", verbs("--version -v -h --no-color",
            """R0 status|global-status|version|box list|plugin list|snapshot list|port|ssh-config|validate|help
        R3 destroy|box remove|snapshot delete|box prune""", flags=("helper",))),
    **many("ansible ansible-playbook ansible-pull ansible-console", custom(_ansible)),
    **many("ansible-inventory ansible-config ansible-lint",
        custom(lambda call: call.note(R2, "cloud.ansible", "runs plugins that are not read"))),
    "ansible-doc": reader("-M,--module-path:!config --playbook-dir:!config -t,--type: -l,--list -F,--list_files "
        "-s,--snippet -j,--json -v -vv -vvv --metadata-dump -r,--roles-path:!config -e,--entry-point: "
        "--no-fail-on-errors "
        "-h,--help --version", operands="data", plain=False, check=lambda call, parsed: call.flag("helper")),
    "ansible-galaxy": verbs("-h --version", "R0 list|collection list|role list|search|info", flags=("helper",)),
    "ansible-vault": verbs("-h --version", "R2 view|edit|encrypt|decrypt|create|rekey"),
    **many("salt salt-call puppet chef-client knife chef bolt salt-key saltstack", verbs(
            "--version", "R0 --version|version|node list|node show|role list|cookbook list\nR3 node "
            "delete|destroy", none="R2")),
    **many("fab capistrano mina", verbs("--version -V", "R0 --version", none="R2")),
}  # fmt: skip
