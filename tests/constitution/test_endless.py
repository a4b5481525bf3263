"""Loops that use up the machine are seen in every spelling of `true`; loops that wait, or end, are left alone."""

import pytest

from constitution import judge_command

STARTING = (
    "while :; do x & done",
    "while true; do (x &); done",
    "while true; do { x & }; done",
    "while [ 1 ]; do x & done",
    "while [[ 1 ]]; do x & done",
    "while [ 1 -eq 1 ]; do x & done",
    "while ((1)); do x & done",
    "while test 1; do x & done",
    "while ! false; do x & done",
    "while echo; do x & done",
    "until false; do x & done",
    "until ! true; do x & done",
    "for ((;;)); do x & done",
    "for ((i=0; 1; i++)); do x & done",
    "for i in {1..10000000}; do x & done",
    "for i in $(seq 10000000); do x & done",
    "yes | xargs -P 0 -n 1 sleep",
    'python3 -c \'import subprocess\nwhile True: subprocess.Popen(["sleep", "9"])\'',
    "python3 -c 'import threading\nwhile 1:\n    threading.Thread(target=f).start()'",
    'node -e \'while(true) require("child_process").spawn("sleep", ["9"])\'',
)
ENDING = (
    "while true; do x & sleep 1; done",
    "while true; do x & wait; done",
    "while true; do make; sleep 2; done",
    "while :; do :; done",
    "while [ $i -lt 10 ]; do x & done",
    'while [ "$a" = "$b" ]; do x & done',
    "while read -r line; do x & done < list",
    "until curl -s localhost:3000; do sleep 1; done",
    "for i in {1..8}; do x & done; wait",
    "for i in $(seq 8); do x & done; wait",
    "for ((i=0; i<8; i++)); do x & done",
    "seq 8 | xargs -P 4 -n 1 echo",
    "python3 -c 'import time\nwhile True: print(1); time.sleep(1)'",
    'python3 -c \'import subprocess\nfor i in range(3): subprocess.Popen(["sleep", "9"])\'',
)


@pytest.mark.parametrize("command", STARTING)
def test_a_loop_that_starts_programs_without_end_is_a_fork_bomb(command: str) -> None:
    assert judge_command(command, "/ws").rule == "fork_bomb"


@pytest.mark.parametrize("command", ENDING)
def test_a_loop_that_waits_or_ends_is_none(command: str) -> None:
    assert judge_command(command, "/ws").rule == "nothing_objects"
