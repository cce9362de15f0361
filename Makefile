# `make check` is what CI runs. The first call makes ./.venv-test from the committed lock; nothing else is installed.

PYTHON = $$(sh launch/setup.sh test-environment)
# Neighbours mostly stay on one worker, and a worker that is done takes from the other.
PYTEST = "$(PYTHON)" -m pytest -n $(WORKERS) --dist worksteal
WORKERS ?= 2
CODE = .

.PHONY: check lint types docs-check test slow dangerous hosts inspector acp-sdk bench bench-hosts docs lock format

check: lint types docs-check test

lint: environment
	"$(PYTHON)" -m ruff format --check $(CODE)
	"$(PYTHON)" -m ruff check $(CODE)

types: environment
	"$(PYTHON)" -m mypy

docs-check: environment
	"$(PYTHON)" tools/generate_docs.py --check

# What failed beside a hundred other tests is tried once more alone, aloud: a busy machine is no fault of the code, but a
# test that needs quiet is one of the test.
test: environment
	$(PYTEST) $(TESTS) || { status=$$?; [ $$status -eq 1 ] || exit $$status; \
		echo "FAILED ABOVE: once more, alone; whatever passes only now has to be made to stand company"; \
		"$(PYTHON)" -m pytest -v --last-failed --last-failed-no-failures none $(TESTS); }

# With machines of their own that boot a real systemd (root, and the programs that tests/slow/box.py names).
slow: environment
	"$(PYTHON)" -m pytest -o python_files='slow_*.py' tests/slow

# With the probes that set clocks and load modules: on a machine that may be thrown away.
dangerous: environment
	OPSAGENT_DANGEROUS_TESTS=1 $(PYTEST)

# Other people's clients, fetched from their registries; not part of `make check`. RECORD=1 keeps what they say to our
# server as the frames that the suite replays.
hosts: environment
	./opsagent --version
	"$(PYTHON)" -m tests.hosts.mcp_inspector
	"$(PYTHON)" -m tests.hosts.mcp_conformance
	"$(PYTHON)" -m tests.hosts.mcp_fuzz
	"$(PYTHON)" -m tests.hosts.claude_code
	"$(PYTHON)" -m tests.hosts.claude_code_hook
	"$(PYTHON)" -m tests.hosts.agent_sdk
	"$(PYTHON)" -m tests.hosts.codex
	"$(PYTHON)" -m tests.hosts.gemini_cli
	"$(PYTHON)" -m tests.hosts.opencode
	"$(PYTHON)" -m tests.hosts.install_round
	"$(PYTHON)" -m tests.hosts.acp_sdk
	"$(PYTHON)" -m tests.hosts.acpx

# The MCP server as the official Inspector's command line sees it, in both eras of the protocol.
inspector: environment
	./opsagent --version
	"$(PYTHON)" -m tests.hosts.mcp_inspector

# The editor's side as the official SDK of the Agent Client Protocol plays it, every frame against its schema.
acp-sdk: environment
	./opsagent --version
	"$(PYTHON)" -m tests.hosts.acp_sdk

# Ratios against a bare interpreter and other measures; prints, never fails.
bench: environment
	./opsagent --version
	for file in benchmarks/*.py; do [ "$$file" = benchmarks/hosts.py ] || "$(PYTHON)" "$$file" || exit; done

# The same beside other people's agents, which are fetched first.
bench-hosts: environment
	./opsagent --version
	"$(PYTHON)" benchmarks/hosts.py

# Pages that are generated from the code.
docs: environment
	"$(PYTHON)" tools/generate_docs.py

# The locks from pyproject.toml; `make lock UPGRADE=--upgrade` takes newer versions.
lock: environment
	python="$(PYTHON)" && "$$python" launch/lock.py --uv "$$(dirname "$$python")/uv" $(UPGRADE)

format: environment
	"$(PYTHON)" -m ruff format $(CODE)
	"$(PYTHON)" -m ruff check --fix $(CODE)

# A target of its own so that a set-up that fails stops make with its sentence instead of an empty command.
.PHONY: environment
environment:
	@sh launch/setup.sh test-environment >/dev/null
