"""A redirection behind a list, a pipeline or a negation is that of its last command, where that one runs.

Found: the tree hangs it on the whole list, so `cd /etc && echo x > passwd` was judged in the folder before the `cd`.
"""

from constitution import Level, judge_command

DENIED = r"""
cd / && echo x > etc/cron.d/x
cd /etc && echo x > passwd
cd /etc && echo x >> passwd
cd /etc && echo x &> passwd
cd /etc && echo x >| passwd
cd /etc && echo x 2> passwd
cd /etc; echo x > passwd
true && cd /etc && cat x > passwd
true && { cd /etc && echo x > passwd; }
(cd /etc && echo x > passwd)
! cd /etc && echo x > passwd
cd /etc && ! echo x > passwd
cd /etc && { echo x; } > passwd
cd /etc && (echo x) > passwd
cd /etc && echo x | cat > passwd
cd /etc && echo x | tee b > passwd
cd /etc && echo a && echo b > passwd && ls
cd /etc && echo a > passwd || true
if cd /etc && echo x > passwd; then ls; fi
for i in 1 2; do cd /etc && echo x > passwd; done
f() { cd /etc && echo x > passwd; }; f
sh -c 'cd /etc && echo x > passwd'
cd /usr && cd bin && echo x > ls
true && cat <<END > /etc/x\nhi\nEND\n
""".strip().splitlines()

ALLOWED = r"""
cd sub && echo x > a
mkdir -p x && cd x && echo y >> z 2>&1
ls && echo x > a | cat
echo a | tee b > c
! echo a > b
cd sub && echo a > b && cat < b
ls | sort > out.txt
""".strip().splitlines()


def level(command: str) -> Level:
    return judge_command(command.replace("\\n", "\n"), "/ws", home="/home/me").level


def test_a_redirection_is_judged_where_its_command_runs() -> None:
    assert [command for command in DENIED if level(command) is not Level.deny] == []
    assert [command for command in ALLOWED if level(command) is not Level.allow] == []
