"""Programs that change what waits in line, for machines or for programs, and what many read from there."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["QUEUES"]

JOBS = "add, change or end jobs that many share"

QUEUES = (
    Program(
        "packer",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words="^build$",
                unless="--help -h",
                says="make an image in the cloud",
                match=("packer build x.pkr.hcl",),
                not_match=("packer validate x.pkr.hcl", "packer fmt ."),
            )
        ],
    ),
    Program(
        "qalter|qhold|qrls|qmove|qsig|qmod|qconf|qresub|qrerun|bstop|bresume|bmod|bswitch|brequeue|btop|bbot"
        "|condor_hold|condor_release|condor_qedit|condor_vacate|condor_drain|oarhold|oarresume|mjobctl|strigger",
        [
            Does(
                Effect.CLOUD_CHANGE,
                unless="--help -h --version",
                says=JOBS,
                match=("qalter -l x 1", "bstop 1", "condor_hold me"),
                not_match=("qstat", "bjobs", "qhold --help"),
            )
        ],
    ),
    Program(
        "sbatch|qsub|bsub|condor_submit|msub|oarsub",
        [
            Does(
                Effect.CLOUD_CHANGE,
                given="-a --array --wrap -J",
                values=r"^\d+-\d{2,}|\[\d+-\d{2,}|^\d+(-\d+)?:|\s",
                unless="--help -h --test-only",
                says=JOBS,
                match=("sbatch --array=0-999 x.sh", "sbatch --wrap='python x.py'", "bsub -J 'x[1-500]' ./y"),
                not_match=("sbatch x.sh", "sbatch --array=0-3 x.sh", "bsub -J x ./y"),
            )
        ],
        takes="-a --array --wrap -J",
    ),
    Program(
        "bkill|qdel|oardel",
        [
            Does(
                Effect.CLOUD_CHANGE,
                given="-J -m -g -P -app --sql",
                says=JOBS,
                match=("bkill -J train",),
                not_match=("bkill 12",),
            )
        ],
        long_style=True,
    ),
    Program(
        "qconf",
        [
            Does(
                Effect.CLOUD_LOSS,
                given="-dq -dm -du -dp -de -dh -ks -ke -km",
                says="take accounts or queues from others",
                match=("qconf -dq all.q",),
                not_match=("qconf -sql",),
            )
        ],
        long_style=True,
    ),
    Program(
        "celery|rq|sidekiqctl|resque|dramatiq|huey|faktory|bull|bullmq|arq|zmq|nats|rabbitmqadmin|rabbitmqctl|kafkactl"
        "|pulsar-client|pulsar-admin|kaf|rpk|hermes|beanstalkd-cli|sqs|nsqadmin|to_nsq|solace|kcctl",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(control|empty|requeue|suspend|resume|stop|quiet|pub|publish|request|req|produce|purge|revoke"
                r"|shutdown|terminate|cancel|retry|drain|flush|migrate|move|delete|add|edit|reset|skip|unload|kv|restart"
                r"|graph-reset|rate_limit)$",
                unless="--help -h --version",
                says=JOBS,
                match=("celery -A app control shutdown", "celery -A app purge -f", "rq empty default", "nats pub x y"),
                not_match=("celery -A app worker", "rq info", "celery -A app inspect active"),
            )
        ],
        takes="-A --app -b --broker -l --loglevel -Q -c -u --url -s --server -q",
        not_match=("celery -A app worker -l info", "rq worker high"),
    ),
    Program(
        "kafka-console-producer|kafka-console-producer.sh|kafka-avro-console-producer|kafka-producer-perf-test"
        "|kafka-reassign-partitions|kafka-reassign-partitions.sh|kafka-leader-election|kafka-acls|kafka-acls.sh|redis-benchmark"
        "|kafka-mirror-maker|pgbench|amqp-publish|stomp-send|rdkafka-producer",
        [
            Does(
                Effect.CLOUD_CHANGE,
                unless="--help -h --version --list --verify --generate",
                says="change what others read",
                match=("kafka-console-producer --topic x --bootstrap-server b:9092",),
                not_match=("kafka-acls --list", "kafka-console-consumer --topic x"),
            )
        ],
    ),
    Program(
        "kcat|kafkacat|kafka-topics|kafka-topics.sh|kafka-configs|kafka-configs.sh",
        [
            Does(
                Effect.CLOUD_CHANGE,
                given="-P --alter --create --add-config",
                unless="--help",
                says="change what others read",
                match=("kcat -P -t x -b b:9092", "kafka-topics --alter --topic x --partitions 3"),
                not_match=("kcat -C -t x -b b:9092", "kafka-topics --list"),
            )
        ],
        takes="-t -b --topic --bootstrap-server",
    ),
)
