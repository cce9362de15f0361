"""Chinese and other wide characters on the command line: shown as they are, and measured by the columns they take."""

from __future__ import annotations

import pytest

from cli import opsagent, opsx
from cli.ask import _rows_of
from guard import render


@pytest.mark.parametrize(
    ("line", "columns", "rows"),
    [
        ("", 80, 1),
        ("x" * 80, 80, 1),
        ("x" * 81, 80, 2),
        ("一" * 40, 80, 1),
        ("一" * 40, 79, 2),
        ("一" * 10, 5, 5),
        ("x" + "一" * 40, 80, 2),
        ("é" * 80, 80, 1),
    ],
)
def test_a_page_counts_the_rows_that_a_terminal_really_takes(line, columns, rows):
    assert _rows_of(line, columns) == rows


@pytest.mark.parametrize(
    ("main", "argv"),
    [
        (opsagent.main, ["磁盘"]),
        (opsagent.main, ["sessions", "show", "会话"]),
        (opsagent.main, ["usage", "磁盘"]),
        (opsagent.main, ["-p", "x", "--brain", "模型"]),
        (opsagent.main, ["runbook", "show", "磁盘"]),
        (opsx.main, ["查看"]),
        (opsx.main, ["check", "--选项", "ls"]),
        (opsx.main, ["show", "编号"]),
        (opsx.main, ["edit", "没有.conf", "--old", "a", "--new", "b"]),
        (opsx.main, ["check", "-f", "没有.sh"]),
        (opsx.main, ["exec", "--cwd", "/没有", "ls"]),
        (opsx.main, ["show", "编\u202e号"]),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_an_error_shows_what_was_typed_as_it_was_typed(main, argv, capsys):
    main(argv)
    out, err = capsys.readouterr()
    said = out + err
    typed = next(word for word in argv if not word.isascii())
    assert typed.strip("-/").replace("\u202e", "\\u202e") in said and "\\u" not in said.replace("\\u202e", "")
    assert "\u202e" not in said


def test_files_with_chinese_names_are_named_so_by_the_read_tool(tmp_path):
    from capabilities.files import read_tool
    from capabilities.jobs import Jobs
    from guard.errors import GuardError
    from tests.capabilities.world import asked, call_in, guard_in

    (tmp_path / "目录").mkdir()
    for path in ("没有.conf", "目录"):
        with pytest.raises(GuardError, match=path):
            asked(read_tool(guard_in(tmp_path), call_in(tmp_path), Jobs()), path=path)


def test_lists_cut_chinese_commands_by_columns():
    from cli.report import command_row

    row = command_row("a-1  ", "echo " + "数据库" * 60, 90)
    assert render.width(row) <= len("a-1  ") + 90 and row.endswith(render.CLIPPED)
