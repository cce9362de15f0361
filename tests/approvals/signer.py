"""Real OpenSSH keys, agents and lists of signers for tests."""

from __future__ import annotations

import os
import subprocess

PRINCIPAL = "alice@example.org"


def made_key(path, *, kind="ed25519", passphrase=""):
    """A key pair; returns the public line without its comment."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "", "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    return " ".join((path.parent / f"{path.name}.pub").read_text().split()[:2])


def configured(state, allowed, *, key="", signer=PRINCIPAL):
    """The configuration of a state folder, with the signer and the list of those who may sign."""
    folder = state / "config"
    folder.mkdir(parents=True, exist_ok=True)
    os.chmod(state, 0o700)
    os.chmod(folder, 0o700)
    lines = ["[approve]", f'signer = "{signer}"'] + ([f'key = "{key}"'] if key else [])
    for name, text in (("config.toml", "\n".join(lines) + "\n"), ("allowed_signers", allowed)):
        (folder / name).write_text(text)
        os.chmod(folder / name, 0o600)
    return folder / "config.toml"


class Agent:
    """A running ssh-agent with keys in it."""

    def __init__(self, folder, *keys):
        self.socket = str(folder / "agent.sock")
        self._process = subprocess.Popen(
            ["ssh-agent", "-D", "-a", self.socket], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it says where it listens, once it does
        for key in keys:
            subprocess.run(
                ["ssh-add", "-q", str(key)],
                check=True,
                env={**os.environ, "SSH_AUTH_SOCK": self.socket},
                stdin=subprocess.DEVNULL,
                capture_output=True,
            )

    def stop(self):
        self._process.terminate()
        self._process.communicate()
