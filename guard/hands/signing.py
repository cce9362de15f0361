"""Signatures of approvals by OpenSSH: made with a person's key or agent, checked against a list of allowed signers.

Only `ssh-keygen -Y` is run, found in the system's own folders. It asks for passphrases, PINs and touches by itself, on
the controlling terminal. Source: ssh-keygen(1), "-Y sign", "-Y verify", ALLOWED SIGNERS; PROTOCOL.sshsig.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import nullcontext
from typing import TYPE_CHECKING

from guard.errors import ApprovalUnsigned
from guard.hands.environment import PATH
from guard.lines import lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from guard.keeping import Keeping

NAMESPACE = "opsagent-stamp"
"""What the signature is for: one made for git or for a file is none (PROTOCOL.sshsig, "namespace")."""

VERIFY_S = 10.0
"""A check is arithmetic on a few hundred bytes; one that takes longer is none."""
SIGN_S = 300.0
"""A person finds the token and touches it, or types the passphrase."""
MOST_SIGNATURE_BYTES = 32 * 1024
"""An RSA key of 16,384 bits makes about 6,000 characters."""

_KEY = re.compile(r"(?:^|\s)((?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.-]+\s+[A-Za-z0-9+/]+={0,3})(?:\s|$)")
_BEGIN = "-----BEGIN SSH SIGNATURE-----"


class SshSignatures:
    """The signatures of one configured signer. Implements `guard.ports.Signatures`."""

    def __init__(self, keeping: Keeping) -> None:
        self.signer = keeping.signer
        self.allowed = keeping.allowed_signers
        self.lending: Callable[[], AbstractContextManager[None]] = nullcontext
        self._key = keeping.signing_key

    def fault(self, text: bytes, signature: str) -> str:
        """Why this is no valid signature of the text by the signer; "" when it is one. Never raises."""
        if not self.allowed.strip():
            return "no list of allowed signers can be used"
        if not signature.startswith(_BEGIN) or len(signature) > MOST_SIGNATURE_BYTES:
            return "it is not signed"
        try:
            with tempfile.TemporaryDirectory(prefix="opsagent-verify-") as folder:
                allowed = _file(folder, "allowed", self.allowed)
                signed = _file(folder, "signature", signature)
                argv = [_program(), "-Y", "verify", "-f", allowed, "-I", self.signer, "-n", NAMESPACE, "-s", signed]
                done = subprocess.run(
                    argv, input=text, capture_output=True, timeout=VERIFY_S, env={"PATH": PATH}, cwd="/", check=False
                )
        except (OSError, subprocess.TimeoutExpired, ApprovalUnsigned) as error:
            return f"the signature could not be checked: {error}"
        if done.returncode == 0:
            return ""
        return f"the signature is not one of {self.signer}: {_last_line(done.stderr + done.stdout)}"

    def sign(self, text: bytes, environ: Mapping[str, str] | None = None) -> str:
        """A signature of the text, made by the configured key or by a key of the signer in ssh-agent.

        Effects: ssh-keygen may ask on the controlling terminal, which `lending` holds for it, and waits there for five
            minutes at most.
        Raises:
            ApprovalUnsigned: there is no such key, the person did not unlock it, or what it makes is not the signer's.
        """
        environ = dict(os.environ if environ is None else environ, PATH=PATH)
        tried = []
        with tempfile.TemporaryDirectory(prefix="opsagent-sign-") as folder, self.lending():
            for key, more in self._keys(folder):
                argv = [_program(), "-Y", "sign", "-f", key, "-n", NAMESPACE, *more]
                try:
                    done = subprocess.run(
                        argv,
                        input=text,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE if more else None,
                        timeout=SIGN_S,
                        env=environ,
                        cwd="/",
                        check=False,
                    )
                except (OSError, subprocess.TimeoutExpired) as error:
                    raise self._unsigned(f"ssh-keygen did not end well: {error}") from error
                if done.returncode != 0:
                    tried.append(_last_line(done.stderr or b"") or f"ssh-keygen ended with {done.returncode}")
                    continue
                signature = done.stdout.decode("ascii", "replace")
                if fault := self.fault(text, signature):
                    raise self._unsigned(fault)
                return signature
        raise self._unsigned("; ".join(dict.fromkeys(tried)) or f"the allowed signers have no key of {self.signer}")

    def _keys(self, folder: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Files to sign with, each with ssh-keygen's further options."""
        if self._key:
            yield self._key, ()
            return
        for number, key in enumerate(keys_of(self.signer, self.allowed)):
            yield _file(folder, f"{number}.pub", key + "\n"), ("-U",)

    def _unsigned(self, why: str) -> ApprovalUnsigned:
        how = f"unlock {self._key}" if self._key else "ssh-add the signer's key, or name its file as [approve] key"
        return ApprovalUnsigned(
            f"an approval here needs a signature of {self.signer}: {why}", not_done="nothing was approved", hint=how
        )


def keys_of(signer: str, allowed: str) -> list[str]:
    """The public keys of a principal in a list of allowed signers, as `TYPE BASE64`; authorities are none."""
    found = []
    for line in lines_of(allowed):
        principals, _, rest = line.strip().partition(" ")
        if principals.startswith("#") or not rest:
            continue
        fitting = any(fnmatch.fnmatchcase(signer, shape) for shape in principals.strip('"').split(","))
        key = _KEY.search(rest)
        if fitting and key is not None and "cert-authority" not in rest[: key.start()]:
            found.append(key[1])
    return found


def _program() -> str:
    found = shutil.which("ssh-keygen", path=PATH)
    if found is None:
        raise ApprovalUnsigned(
            "there is no ssh-keygen in the system's folders",
            not_done="nothing was approved",
            hint="install the OpenSSH client",
        )
    return found


def _file(folder: str, name: str, text: str) -> str:
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
        file.write(text)
    return path


def _last_line(said: bytes) -> str:
    lines = [line.strip() for line in lines_of(said.decode("utf-8", "replace")) if line.strip()]
    return lines[-1][:200] if lines else ""
