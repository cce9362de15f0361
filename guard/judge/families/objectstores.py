"""Command lines of object stores: buckets, remotes and what lies in them. Source: each program's reference."""

from guard.judge.levels import R1, R2, R3
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many
from guard.judge.suspicion import suspicious
from guard.judge.tables import names

EXAMPLES = {
    "R0": ("gsutil ls gs://b", "s3cmd ls s3://b", "rclone lsl r:b", "mc stat a/b", "rclone --version"),
    "R1": ("rclone check a r:b --combined out",),
    "R2": ("s3cmd put a s3://b", "rclone copy a r:b", "rclone", "gsutil cp a gs://b", "rclone lsf :local:/x",
        "rclone ls r:b --sftp-ssh=x",),
    "R3": ("gsutil rm -r gs://b", "gsutil rsync -d a gs://b", "s3cmd del s3://b/k", "rclone sync a r:b",),
}  # fmt: skip

_READS = names("""
    ls lsd lsl lsf lsjson la du size info version stat tree about listremotes list check cryptcheck help md5sum sha1sum
    hashsum ping ready diff
""")
_GONE = names("""
    rm rb del delete purge sync mirror remove rmdirs deletefile cleanup dedupe delete-bucket expire
""")
_REPORTS = ("--combined", "--missing-on", "--match", "--differ", "--error")
"""Options of rclone that name a file for a report."""


def _gsutil(call: Call) -> None:
    call.flag("helper")
    call.peer("", 443, "gcloud")
    verb = next((word.value for word in call.args if word.value is not None and not word.value.startswith("-")), "")
    if verb in ("ls", "du", "stat", "version", "help", "hash", ""):
        return
    gone = verb in ("rm", "rb") or (verb == "rsync" and any(word.value == "-d" for word in call.args))
    call.note(R3 if gone else R2, f"cloud.gsutil.{verb}", "removes objects" if gone else "copies or changes objects")


def _objects(call: Call) -> None:
    call.flag("helper")
    call.peer("", 443, call.name)
    rest = [word.value or "?" for word in call.args if not (word.value or "x").startswith("-")]
    options = [word.value or "?" for word in call.args if (word.value or "?").startswith(("-", "?"))]
    if not rest:
        if not options or any(item not in ("--version", "--help", "-h", "-V") for item in options):
            call.note(R2, "cloud.objects.bare", f"{call.name} without a verb")
        return
    if suspicious(call.args) is not None or any(
        item.startswith(("--rc", "--sftp-ssh", "--dump-config", "--configure")) for item in options
    ):
        call.note(R2, "cloud.objects.option", "an option that runs, writes or shows more than a listing")
    if any(item.startswith(":") for item in rest):
        call.note(R2, "cloud.objects.remote", "a remote that is described on the spot can name programs", None, "law 8")
    if call.name == "rclone" and any(item.startswith(_REPORTS) for item in options):
        call.note(R1, "cloud.objects.report", "writes a report")
    verb = rest[0]
    if verb in _READS:
        return
    gone = verb in _GONE
    call.note(R3 if gone else R2, f"cloud.objects.{verb}", "removes objects" if gone else "copies or changes objects")


PROGRAMS: dict[str, Program] = {
    "gsutil": custom(_gsutil),
    **many("s3cmd mc rclone azcopy b2 s4cmd s5cmd", custom(_objects)),
}
