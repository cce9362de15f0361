"""Which versions of other people's programs `make hosts` runs: all of them, exactly, and only here.

A new version is taken by changing its line, running `make hosts RECORD=1` and reading the difference of the frames.
"""

CLAUDE_CODE = "@anthropic-ai/claude-code@2.1.332"
CODEX = "@openai/codex@0.171.0"
GEMINI = "@google/gemini-cli@0.61.0"
OPENCODE = "opencode-ai@1.18.33"
NPM = (CLAUDE_CODE, CODEX, GEMINI, OPENCODE)
"""Installed together, with one Node."""

AGENT_SDK = "claude-agent-sdk==0.2.189"
"""From PyPI; brings a Claude Code of its own, which is not used: the one above is."""
