"""Where a signer is configured, an approval without a signature that holds does not exist. Real ssh-keygen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guard.bound import UNSIGNED, USED, Consent, Stamp
from guard.errors import ApprovalUnsigned
from guard.hands.signing import NAMESPACE, SshSignatures, keys_of
from guard.keeping import Keeping
from guard.ledger.formats import encoded, sha256_of
from guard.ledger.house import House
from tests.approvals.signer import PRINCIPAL, Agent, made_key
from tests.ledger.world import approved, asked, bound, change_of, ledger_in, segment

COMMAND = "systemctl restart nginx"


@pytest.fixture
def key(tmp_path):
    (tmp_path / "keys").mkdir(mode=0o700)
    return tmp_path / "keys" / "alice"


@pytest.fixture
def signatures(key):
    public = made_key(key)
    allowed = f'{PRINCIPAL} namespaces="{NAMESPACE}" {public}\n'
    return SshSignatures(Keeping(signer=PRINCIPAL, allowed_signers=allowed, signing_key=str(key)))


@pytest.fixture
def ledger(tmp_path, signatures):
    return ledger_in(tmp_path / "state", house=House(signatures=signatures))


def begin(ledger, stamp):
    return ledger.begin(
        asked(COMMAND), change_of(COMMAND), profile="none", enforced="none", stamp=stamp, binding=bound()
    )


def rewritten(tmp_path, kind, change):
    """The log with one entry changed and the chain made whole again: what somebody with our uid could do."""
    path = Path(segment(tmp_path / "state"))
    lines, prev = [], "0" * 64
    for line in path.read_bytes().splitlines(keepends=True):
        entry = json.loads(line)
        if entry["kind"] == kind:
            change(entry)
        entry["prev"] = prev
        lines.append(encoded(entry))
        prev = sha256_of(lines[-1])
    path.write_bytes(b"".join(lines))
    (path.parent / "head").unlink()


@pytest.mark.guarantee("G-SIGNED")
def test_signed_approval_is_found_and_used_once(ledger):
    stamp = approved(ledger)
    assert (stamp.state, stamp.signer) == ("live", PRINCIPAL)
    assert ledger.stamps.find(bound()).id == stamp.id
    begin(ledger, stamp.id)
    assert ledger.stamps.find(bound()).code == USED


@pytest.mark.guarantee("G-SIGNED")
def test_approval_from_before_the_signer_was_named_does_not_exist(tmp_path, signatures):
    stamp = approved(ledger_in(tmp_path / "state"))
    strict = ledger_in(tmp_path / "state", house=House(signatures=signatures))
    assert (strict.stamps.find(bound()).code, strict.stamps.find(bound()).text) == (
        UNSIGNED,
        f"the approval {stamp.id} does not count: it is not signed",
    )
    assert [(one.id, one.state) for one in strict.stamps.listed()] == [(stamp.id, "unsigned")]
    assert strict.stamps.uses_left(bound()) == 0
    with pytest.raises(ApprovalUnsigned):
        begin(strict, stamp.id)
    assert [entry["kind"] for entry in strict.entries()] == ["approved"]


@pytest.mark.guarantee("G-SIGNED")
@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry.update(ttl_s=86_400),
        lambda entry: entry.update(uses=100),
        lambda entry: entry.update(forced=True),
        lambda entry: entry.update(issued_boot_s=entry["issued_boot_s"] + 600),
        lambda entry: entry.update(digest="0" * 64),
        lambda entry: entry.update(boot="another"),
        lambda entry: entry.update(stamp="t-other"),
        lambda entry: entry.pop("signature"),
        lambda entry: entry.update(signature=entry["signature"].replace("A", "B", 3)),
        lambda entry: entry.update(signed=[]),
        lambda entry: entry.update(signed="0" * 64),
    ],
)
def test_approval_that_was_rewritten_is_unsigned(tmp_path, ledger, change):
    approved(ledger, ttl_s=60)
    rewritten(tmp_path, "approved", change)
    assert [one.state for one in ledger.stamps.listed(every=True)] in (["unsigned"], ["expired"])
    assert not isinstance(ledger.stamps.find(bound()), Stamp)


@pytest.mark.guarantee("G-SIGNED")
def test_signature_for_another_purpose_or_by_another_key_is_none(tmp_path, key, signatures):
    other = tmp_path / "keys" / "mallory"
    made_key(other)
    text = b"opsagent approvals, version 1\n"
    good = signatures.sign(text)
    assert signatures.fault(text, good) == ""
    assert "not one of" in signatures.fault(text + b"x", good)
    with pytest.raises(ApprovalUnsigned, match="not one of"):
        SshSignatures(Keeping(signer=PRINCIPAL, allowed_signers=signatures.allowed, signing_key=str(other))).sign(text)
    elsewhere = signatures.allowed.replace(NAMESPACE, "git")
    assert "not one of" in SshSignatures(Keeping(signer=PRINCIPAL, allowed_signers=elsewhere)).fault(text, good)
    assert SshSignatures(Keeping(signer=PRINCIPAL)).fault(text, good) == "no list of allowed signers can be used"
    assert SshSignatures(Keeping(signer="bob", allowed_signers=signatures.allowed)).fault(text, good)


@pytest.mark.guarantee("G-SIGNED")
def test_answer_that_came_from_no_terminal_approves_nothing(ledger):
    for how in ("elicitation", "rpc", "acp", "host"):
        from guard.ledger.answers import ToApprove

        item = ToApprove(asked(COMMAND), change_of(COMMAND), bound())
        with pytest.raises(ApprovalUnsigned, match="signed this way"):
            ledger.answers.approve([item], Consent(how, "0" * 64))
    assert list(ledger.entries()) == []


def test_plan_of_many_steps_is_signed_once(tmp_path, ledger, signatures, monkeypatch):
    from guard.ledger.answers import ToApprove
    from tests.ledger.world import CONSENT

    made = []
    sign = signatures.sign
    monkeypatch.setattr(signatures, "sign", lambda text: made.append(text) or sign(text))
    commands = [f"systemctl restart web{number}" for number in range(12)]
    items = [ToApprove(asked(one), change_of(one), bound(one)) for one in commands]
    stamps = ledger.answers.approve(items, CONSENT)
    assert len(made) == 1
    assert [stamp.state for stamp in stamps] == ["live"] * 12
    # One of them under another's signature is none: each is held by its own hash.
    rewritten(tmp_path, "approved", lambda entry: entry["stamp"] == stamps[3].id and entry.update(uses=2))
    states = {one.id: one.state for one in ledger.stamps.listed(every=True)}
    assert states.pop(stamps[3].id) == "unsigned"
    assert set(states.values()) == {"live"}


def test_key_in_an_agent_signs_without_a_file(tmp_path, key, signatures):
    agent = Agent(tmp_path / "keys", key)
    try:
        by_agent = SshSignatures(Keeping(signer=PRINCIPAL, allowed_signers=signatures.allowed))
        environ = {"SSH_AUTH_SOCK": agent.socket}
        assert by_agent.fault(b"text", by_agent.sign(b"text", environ)) == ""
        with pytest.raises(ApprovalUnsigned, match="needs a signature of alice"):
            by_agent.sign(b"text", {"SSH_AUTH_SOCK": str(tmp_path / "nothing")})
    finally:
        agent.stop()


@pytest.mark.parametrize("kind", ["ecdsa", "rsa"])
def test_other_kinds_of_keys_sign_too(tmp_path, kind):
    (tmp_path / "keys").mkdir(mode=0o700)
    public = made_key(tmp_path / "keys" / kind, kind=kind)
    one = SshSignatures(
        Keeping(signer="b", allowed_signers=f"a,b {public}\n", signing_key=str(tmp_path / "keys" / kind))
    )
    assert one.fault(b"text", one.sign(b"text")) == ""


def test_who_has_to_sign_is_on_record_when_it_changes(tmp_path, signatures):
    """Switched on, used, switched off: an approval that needed no signature comes behind a line that says so."""
    strict = ledger_in(tmp_path / "state", house=House(signatures=signatures))
    approved(strict)
    approved(strict)
    free = ledger_in(tmp_path / "state")
    begin(free, approved(free).id)
    told = [(entry["signer"], entry["signer_before"]) for entry in free.entries() if entry["kind"] == "signing"]
    assert told == [(PRINCIPAL, None), (None, PRINCIPAL)]
    assert free.verify().ok


def test_switching_off_is_recorded_by_the_run_that_makes_use_of_it(tmp_path, signatures):
    strict = ledger_in(tmp_path / "state", house=House(signatures=signatures))
    stamp = approved(strict)
    begin(ledger_in(tmp_path / "state"), stamp.id)
    assert [entry["kind"] for entry in strict.entries()] == ["signing", "approved", "signing", "started"]


def test_keys_are_read_from_all_forms_of_lines():
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"
    lines = [
        "# a comment",
        "",
        f"bob {key}bob",
        f'alice,carol namespaces="git,{NAMESPACE}",valid-after="20200101" {key}two comment',
        f"*@example.org cert-authority {key}authority",
        f"al* sk-{key.replace('ed25519 ', 'ed25519@openssh.com ')}token",
    ]
    found = keys_of("alice", "\n".join(lines))
    assert found == [f"{key}two", "sk-ssh-ed25519@openssh.com AAAAC3NzaC1lZDI1NTE5token"]
    assert keys_of("dave@example.org", "\n".join(lines)) == []


def test_client_over_a_wire_is_sent_to_a_terminal_and_nobody_is_asked_in_vain(tmp_path, signatures):
    import dataclasses

    from capabilities.approvals import approve_tool
    from tests.capabilities.world import asked as answer_of
    from tests.capabilities.world import call_in, guard_in

    class Never:
        def ask(self, ask, **more):
            raise AssertionError("asked in vain")

    guard = guard_in(tmp_path)
    guard = dataclasses.replace(guard, ledger=ledger_in(tmp_path / "signed", house=House(signatures=signatures)))
    told = answer_of(approve_tool(guard, call_in(tmp_path, confirm=Never())), command="touch a")
    assert (told["status"], told["next"]) == ("needs_stamp", f"opsx approve {told['request']}")
    assert f"needs a signature of {PRINCIPAL}" in told["because"]


def test_plan_over_a_wire_is_sent_to_a_terminal_too(tmp_path, signatures):
    import dataclasses

    from capabilities.plans import plan_tool
    from tests.capabilities.world import asked as answer_of
    from tests.capabilities.world import call_in, guard_in

    class Never:
        def ask(self, ask, **more):
            raise AssertionError("asked in vain")

    guard = guard_in(tmp_path)
    guard = dataclasses.replace(guard, ledger=ledger_in(tmp_path / "signed", house=House(signatures=signatures)))
    steps = [{"command": "touch a"}, {"command": "touch b"}]
    told = answer_of(plan_tool(guard, call_in(tmp_path, confirm=Never())), steps=steps)
    assert told["status"] == "needs_stamp" and f"needs a signature of {PRINCIPAL}" in told["because"]
