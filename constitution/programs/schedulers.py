"""Programs that give work to machines that many share, and take it away: jobs, nodes, accounts."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["SCHEDULERS"]

ENDS_ALL = "end every job that fits"
HARMS = "take machines, or people, out of the cluster"

SCHEDULERS = (
    Program(
        "scancel",
        [
            Does(
                Effect.KILL_ALL,
                given="-u --user -t --state --me -A --account -p --partition -w --nodelist -q --qos",
                says=ENDS_ALL,
                match=(
                    "scancel -u me",
                    "scancel --user=me",
                    "scancel -t RUNNING",
                    "scancel --state=RUNNING",
                    "scancel --me",
                    "scancel -A lab",
                    "scancel --account=lab",
                    "scancel -p gpu",
                    "scancel --partition=gpu",
                    "scancel -w n1",
                    "scancel --nodelist=n1",
                    "scancel -q high",
                    "scancel --qos=high",
                ),
                not_match=("scancel 12345", "squeue -u me"),
            ),
            Does(
                Effect.KILL_MATCHING,
                given="-n --name --jobname",
                says=ENDS_ALL,
                match=("scancel -n train", "scancel --name=train", "scancel --jobname=train"),
                not_match=("scancel 12345",),
            ),
        ],
        takes="-n",
    ),
    Program(
        "qdel|bkill|condor_rm|canceljob|oardel|llcancel|flux cancel",
        [
            Does(
                Effect.KILL_ALL,
                words=r"^(all|0|-1|\*)$|^\0",
                says=ENDS_ALL,
                match=("qdel all", "bkill 0", "qselect -u me | xargs qdel"),
                not_match=("qdel 1234", "bkill 99"),
            ),
            Does(
                Effect.KILL_ALL,
                given="-u -a --all -q",
                says=ENDS_ALL,
                match=("qdel -u me", "condor_rm -all", "condor_rm -a", "bkill -q short", "flux cancel --all"),
                not_match=("condor_rm 12", "qstat -u me"),
            ),
        ],
    ),
    Program(
        "scontrol",
        [
            Does(
                Effect.POWER,
                first=r"^(shutdown|reboot|reboot_nodes|takeover|power)$",
                says="stop machines that many share",
                match=("scontrol shutdown", "scontrol reboot n1", "scontrol power down n1"),
                not_match=("scontrol show job 1", "scontrol ping"),
            ),
            Does(
                Effect.CLOUD_LOSS,
                words=r"(?i)^state=(down|drain|fail)",
                first="^update$",
                says=HARMS,
                match=("scontrol update nodename=n1 state=down reason=x",),
                not_match=("scontrol update jobid=1 timelimit=2:00", "scontrol show node n1 state=down"),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                first=r"^(update|hold|uhold|release|suspend|requeue|reconfigure|delete|create|write)$",
                says="change what the cluster does",
                match=("scontrol update jobid=1 timelimit=2:00", "scontrol requeue 1"),
                not_match=("scontrol show job 1",),
            ),
        ],
    ),
    Program(
        "sacctmgr|qmgr|badmin",
        [
            Does(
                Effect.CLOUD_LOSS,
                words=r"(?i)^(delete|remove|hclose|qclose)\b",
                says=HARMS,
                match=("sacctmgr delete user x", "qmgr -c 'delete queue x'", "badmin hclose n1"),
                not_match=("sacctmgr show user x", "qmgr -c 'list server'"),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"(?i)^(add|create|modify|set|hopen|qopen|reconfig)\b",
                says="change what the cluster does",
                match=("sacctmgr add user x", "qmgr -c 'set server x=y'"),
                not_match=("sacctmgr list user",),
            ),
        ],
    ),
)
