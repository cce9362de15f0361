"""Which files are saved before they change: patterns, folders that a command goes to, what is made beside a file."""

from __future__ import annotations

import pytest

from guard.judge.classify import check
from guard.types import Level

CWD = "/srv/w"
WHOLE = {
    "rm f": ["file /srv/w/f"],
    "rm ./*.log": ["file-glob /srv/w/*.log"],
    "rm /var/tmp/a*.gz b": ["file-glob /var/tmp/a*.gz", "file /srv/w/b"],
    "sed -i s/a/b/ ./*.conf": ["file-glob /srv/w/*.conf"],
    "sed -i.bak s/a/b/ f": ["file /srv/w/f", "file /srv/w/f.bak"],
    "gzip f": ["file /srv/w/f", "file /srv/w/f.gz"],
    "xz -9 f": ["file /srv/w/f", "file /srv/w/f.xz"],
    "gunzip f.gz": ["file /srv/w/f", "file /srv/w/f.gz"],
    "zstd -d f.zst": ["file /srv/w/f", "file /srv/w/f.zst"],
    "env -C /opt rm x": ["file /opt/x", "file /srv/w/x"],
    "env --chdir=sub rm x": ["file /srv/w/sub/x", "file /srv/w/x"],
    "sudo -D /opt rm x": ["file /opt/x", "file /srv/w/x"],
    "sudo --chdir /opt env -C sub rm x": [
        "file /opt/sub/x", "file /opt/x", "file /srv/w/sub/x", "file /srv/w/x"],
    "parallel --wd /opt rm ::: x": ["file /opt/x", "file /srv/w/x"],
    "cd /opt; cd -; rm x": ["file /opt/x", "file /srv/w/x"],
    "su - bob -c 'rm /opt/x'": ["file /opt/x"],
    "cp a d/b sub": ["file /srv/w/sub/a", "file /srv/w/sub/b"],
    "cp a ~/": ["file ~/a"],
    "mv a /etc": ["file /etc/a", "file /srv/w/a"],
    "cp -t sub a": ["file /srv/w/sub/a"],
    "cp a sub": ["file /srv/w/sub"],
    "cp -T a b": ["file /srv/w/b"],
    "cp --parents a/b c sub": ["file /srv/w/sub"],
    "cp ./*.c sub": ["file /srv/w/sub"],
    "ln -s /x/a /x/b sub": ["file /srv/w/sub/a", "file /srv/w/sub/b"],
    "install -d a b": ["file /srv/w/a", "file /srv/w/b"],
    "tar xf a.tar -C sub": ["file /srv/w/sub"],
    "unzip a.zip -d sub": ["file /srv/w/sub"],
    "7z x a.7z -osub": ["file /srv/w/sub"],
    "unrar x a.rar sub/": ["file /srv/w/sub"],
    "find . | cpio -p sub": ["file /srv/w/sub"],
    "7z a a.7z x": ["file /srv/w/a.7z"],
    "ar r lib.a x.o": ["file /srv/w/lib.a"],
}  # fmt: skip
PARTIAL = (
    *('cd "$D" && rm x', "cd - && rm x", "sudo -i rm x", "su - bob -c 'rm x'", "su -l bob -c 'rm x'"),
    *("runuser -l bob -c 'rm x'", "find /opt -execdir rm x \\;", "systemd-run rm x", "unshare -w /opt rm x"),
    *("nsenter -t 1 -w/opt rm x", "rm *", "rm *.log", "shopt -s dotglob; rm ./*", "gzip ./*.log", "gzip -S .z f"),
    *("gzip -r d", "gunzip f", "sed -i.bak s/a/b/ ./*.conf", "sed -i'bak/*' s/a/b/ f", 'rm f "/srv/$X/"*.log'),
)


@pytest.mark.parametrize("command", WHOLE)
def test_all_that_changes_is_saved(command):
    judged = check(command, cwd=CWD)
    assert sorted(f"{item.kind} {item.object}" for item in judged.snapshot_plan) == sorted(WHOLE[command])
    assert judged.reversible == "yes"


@pytest.mark.parametrize("command", PARTIAL)
def test_what_the_text_does_not_tell_is_no_whole_way_back(command):
    assert check(command, cwd=CWD).reversible != "yes"


UNPACKED = (
    *("tar xf a.tar", "tar -xkf a.tar", "bsdtar -xf a.tar", "tar xf a.tar -C b -C c", "unzip a.zip", "unzip -n a.zip"),
    *("cpio -i < a", "cpio -id -D sub < a", "7z x a.7z", "7z x a.7z -oa -ob", "unrar x a.rar", "rar e a.rar f"),
    *("ar x lib.a", "split f", "split -b 1M f part_", "csplit f 10 20", "csplit -f part_ f 10"),
)


@pytest.mark.parametrize("command", UNPACKED)
def test_what_is_written_under_names_that_nobody_knows_is_no_small_change(command):
    judged = check(command, cwd=CWD)
    assert judged.level == Level.R2
    assert judged.reversible != "yes"


def test_pieces_that_are_there_already_are_saved():
    assert [item.object for item in check("split f part_", cwd=CWD).snapshot_plan] == ["/srv/w/part_*"]


LOOPS = {
    'for f in ./*.conf; do sed -i s/a/b/ "$f"; done': ["file-glob /srv/w/*.conf"],
    'for f in ./*.conf g; do echo x >> "${f}"; done': ["file-glob /srv/w/*.conf", "file /srv/w/g"],
    'for f in /opt/*.log; do rm -- "$f"; done': ["file-glob /opt/*.log"],
    'for f in ./*.sh; do chmod +x "$f"; done': ["meta-glob /srv/w/*.sh"],
    'for f in ./*.sh; do if [ -f "$f" ]; then chown root "$f"; fi; done': ["meta-glob /srv/w/*.sh"],
    'for d in ./a* /opt/b; do chmod -R g+w "$d"; done': ["meta-tree-glob /srv/w/a*", "meta-tree /opt/b"],
    'for f in ./*; do for g in /opt/*; do touch "$f"; done; done': ["times-glob /srv/w/*"],
    "find . -type f -print0 | xargs -0 chmod 644": ["meta-tree /srv/w"],
    "find /opt a -name x -print0 | xargs -0r chown bob": ["meta-tree-links /opt", "meta-tree-links /srv/w/a"],
}
UNSURE = (
    *('for f in *.conf; do sed -i s/a/b/ "$f"; done', "for f in ./*.conf; do sed -i s/a/b/ $f; done"),
    *('for f in ./*; do f=x; rm "$f"; done', 'for f in ./*; do read f; rm "$f"; done'),
    *(
        'for f in ./*; do rm "$f"; cd d; done',
        'for f in ./*; do cd d; rm "$f"; done',
        'for f in $(ls); do rm "$f"; done',
    ),
    *('for f in ./*; do :; done; rm "$f"', "for f in ./*; do bash -c 'rm \"$f\"'; done"),
    *(
        'for f in ./*; do cp x "$f.bak"; done',
        'for f in ./*; do rm "${f%.c}"; done',
        'for f in *.c; do chmod 600 "$f"; done',
    ),
    *(
        'for f in ./*; do rm "$f"; done; for f in /opt/*; do rm "$f"; done',
        'g() { rm "$f"; }; for f in ./*; do g; done',
    ),
    *("find . -type f | xargs chmod 644", "find . -type f | xargs -0 chmod 644", "find . -print0 | xargs chmod 644"),
    *("find -L . -print0 | xargs -0 chmod 644", "find $D -print0 | xargs -0 chmod 644"),
    *("find . -print0 | sort -z | xargs -0 chmod 644", "find . -print0 -print | xargs -0 chmod 644"),
    *("find * -print0 | xargs -0 chmod 644", "find . -print0; ls | xargs -0 chmod 644"),
    *("{ find a -print0; find b -print0; } | xargs -0 chmod 644", "{ ls | cat; find a -print0; } | xargs -0 chmod 644"),
    *("(cat f; find a -print0) | xargs -0 chmod 644", "sudo find . -print0 | xargs -0 chmod 644"),
    *("find . -print0 | xargs -0 -a f chmod 644", "find . -print0 | xargs -0 -I{} chmod 644 {}"),
)


@pytest.mark.parametrize("command", LOOPS)
def test_what_a_loop_or_a_find_hands_on_is_saved(command):
    judged = check(command, cwd=CWD)
    assert sorted(f"{item.kind} {item.object}" for item in judged.snapshot_plan) == sorted(LOOPS[command])
    assert judged.reversible == "yes"


@pytest.mark.parametrize("command", UNSURE)
def test_what_it_may_hand_on_besides_is_not_said_to_be_saved(command):
    assert check(command, cwd=CWD).reversible in ("partial", "no")


def test_a_loop_is_as_high_as_its_list_written_out():
    for change in ("sed -i s/a/b/ {}", "rm -- {}", "chmod 600 {}", "touch {}", "gzip {}"):
        for pattern in ("./*.log", "/etc/pass*", "/etc/*.conf", "/opt/opsagent/*"):
            loop = f"for f in {pattern}; do {change.format(chr(34) + '$f' + chr(34))}; done"
            assert check(loop).level >= check(change.format(pattern)).level, loop
