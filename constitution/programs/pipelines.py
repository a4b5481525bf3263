"""Programs that set off, stop or change work elsewhere: orchestrators, build services, queues."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["PIPELINES"]

SETS_OFF, JOBS = "set off or change work elsewhere", "add, change or end jobs that many share"
HELP = "--help -h --dry-run --version"

ORCHESTRATORS = (
    Program(
        "airflow|dagster|prefect|argo|argocd|tkn|databricks|dbt|sqlmesh|spark-submit|flyte|pyflyte|flytectl|kfp|kedro"
        "|metaflow|luigi|mage-ai|astro|kestra|temporal|tctl|cadence|zeebe|zbctl|conductor|digdag|azkaban|nifi|snakemake"
        "|nextflow|tower|tw|meltano|airbyte|abctl|fivetran|hightouch|coalesce|dataform|soda|great_expectations|cromwell"
        "|oozie|yarn-application|ray|modal|sky|dstack|runpodctl|vastai|beam|lightning|coiled|anyscale|flink|gcloud run",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(trigger|backfill|pause|unpause|clear|launch|deploy|submit|resubmit|terminate|suspend|resume"
                r"|retry|cancel|cancel-\w+|run-now|reset|restart|run-operation|promote|rollback|reconcile|signal|sync"
                r"|apply|stop|rerun|replay|requeue|kill|exec|push|start-\w+|abort|clone-job)$",
                unless=f"{HELP} --local",
                says=SETS_OFF,
                match=("airflow dags trigger x", "dagster job launch -j x", "argo cron suspend x", "sqlmesh apply"),
                not_match=("airflow dags list", "argo logs x", "dbt run", "prefect flow-run ls"),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(variables|connections|pools|users|roles|secrets|jobs|clusters|workspace|fs|libraries|pipelines"
                r"|bundle|instance-pools|permissions|tokens|warehouses|schedule|sensor|cron|deployment|work-queue"
                r"|work-pool|variable|block|automation|cluster|clustertask|pipeline|task|app|proj|repo|cert|account"
                r"|concurrency-limit|global-concurrency-limit|volume|secret|environment|dbfs|workflow|workflows)$",
                also=r"^(set|import|add|create|update|edit|run|start|stop|put|put-\w+|cp|install|uninstall|inspect-set"
                r"|resize|patch|grant|register|migrate|mkdirs?|import-dir|actions|set-\w+|add-\w+|permanent-delete)$",
                unless=HELP,
                says=SETS_OFF,
                match=("airflow variables set k v", "prefect deployment run a/b", "databricks clusters start 1"),
                not_match=("airflow variables get k", "prefect deployment ls", "databricks clusters list"),
            ),
        ],
        takes="-n --namespace -c -j -m -w -f --profile -p -t --target",
    ),
    Program(
        "airflow db",
        [
            Does(
                Effect.DATABASE_LOSS,
                words="^(reset|clean|drop-archived|downgrade)$",
                unless=HELP,
                says="empty a database",
                match=("airflow db reset -y",),
                not_match=("airflow db check", "airflow db migrate"),
            )
        ],
    ),
    Program(
        "spark-submit|snakemake|nextflow|dbt|python",
        [
            Does(
                Effect.CLOUD_CHANGE,
                given="--deploy-mode --cluster --executor --slurm --kubernetes -cloud --profile --master",
                values=r"^(cluster|yarn.*|k8s.*|spark://.*|mesos.*|slurm.*|kubernetes.*|lsf.*|pbs.*|sge.*|aws.*|google.*"
                r"|sbatch.*|qsub.*|bsub.*|.*batch)$",
                unless=HELP,
                says=SETS_OFF,
                match=("spark-submit --master yarn x.py", "snakemake --executor slurm", "snakemake --cluster sbatch"),
                not_match=("spark-submit --master local x.py", "snakemake -j 4"),
            )
        ],
        takes="--deploy-mode --cluster --executor --profile --master -c -m",
        long_style=True,
    ),
    Program(
        "modal|ray|sky|dstack|runpodctl|vastai|beam|anyscale|coiled|lightning",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(run|up|launch|create|apply|exec|send|attach|start|remove|scale|volume)$",
                unless=HELP,
                says=SETS_OFF,
                match=("modal run x.py", "ray up x.yaml", "sky launch x.yaml", "runpodctl create pod"),
                not_match=("modal app list", "ray status", "sky status"),
            ),
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(down|terminate|destroy|delete|stop-all|teardown)$",
                unless=HELP,
                says="delete in the cloud",
                match=("ray down x.yaml", "sky down -a"),
                not_match=("ray stop", "sky queue"),
            ),
        ],
    ),
)

BUILD_SERVICES = (
    Program(
        "gh run|glab ci|glab pipeline|gh cache|gh workflow",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(run|rerun|cancel|retry|trigger|delete|enable|disable|play)$",
                unless=HELP,
                says=SETS_OFF,
                match=("glab ci run", "glab ci retry 1", "glab ci trigger x", "gh workflow run x"),
                not_match=("glab ci status", "gh run list", "glab ci view"),
            )
        ],
        takes="-R --repo -b --branch -r --ref -f -F",
    ),
    Program(
        "bk|buildkite|circleci|jenkins-cli|jcli|jenkins|travis|drone|woodpecker-cli|az pipelines|az repos|az boards"
        "|octo|octopus|spacelift|spacectl|teamcity|appveyor|semaphore|sem-cli|codeship|bitrise|codefresh|gocd|harness|buddy"
        "|cirrus|concourse|fly-ci|buildkite-agent|env0|scalr|terraform-cloud|tfe|tfcloud|atlantis|screwdriver|vela"
        "|earthly-ci|depot|nx-cloud|trunk-merge|mergify|gitpod|coder|devpod|render|railway|doctl|northflank|qovery|porter"
        "|platform|upsun|clever|scalingo|gigalixir|pantheon|terminus|acli-acquia|wpe|lando-push|aptible|zeabur|koyeb|kinsta",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(build|run|rerun|trigger|create|create-\w+|deploy|deploy-\w+|redeploy|promote\S*|cancel|retry"
                r"|restart|start|stop|rebuild|approve|unblock|upload|enable|disable|set|set-\w+|apply"
                r"|merge|push|publish|up|scale|rollback|resume|pause|exec|ssh|import|update|add|edit"
                r"|\w+:(push|create|deploy|activate|redeploy|merge|sync|update|set|delete|restart|resize|backup|restore))$",
                unless=f"{HELP} --local",
                says=SETS_OFF,
                match=("bk build create -b x", "jenkins-cli build x", "circleci pipeline run x", "buddy exec x"),
                not_match=("circleci config validate", "bk whoami", "travis logs"),
            )
        ],
        takes="-s -b -m --project --org -a --app -e -p",
    ),
    Program(
        "fly",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(set-pipeline|sp|trigger-job|tj|pause-\w+|unpause-\w+|pp|up|execute|abort-build|ab|hijack"
                r"|intercept|i|rerun-build|rb|set-team|check-resource|cr|expose-pipeline|rename-pipeline|restart|move"
                r"|launch|resume|suspend|redeploy|console|extend|failover|fork|renew|allocate\S*|release|connect)$",
                unless=HELP,
                says=SETS_OFF,
                match=("fly -t ci set-pipeline -p x -c y", "fly -t ci trigger-job -j x/y", "fly machine restart 1"),
                not_match=("fly status", "fly logs"),
            )
        ],
        takes="-t --target -p -c -j -a --app -b -n -l -v",
    ),
    Program(
        "heroku",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r":(release|on|off|push|upgrade|kill|reset|attach|detach|provision|rotate|restore|capture|transfer"
                r"|lock|unlock|clear|resize|type|autoscale:\w+|rename|disable|enable|fork|follow|unfollow|join|leave"
                r"|update|generate|invite|exec|run|import|write|install)$",
                unless=HELP,
                says="change what others see",
                match=("heroku container:release web", "heroku maintenance:on", "heroku pg:push a b"),
                not_match=("heroku ps", "heroku pg:info"),
            )
        ],
        takes="-a --app",
    ),
    Program(
        "eb|zappa|cdk|kamal|mrsk|dokku|skaffold|werf|waypoint|garden|okteto|devspace|kapp|helmwave|tanka|tk|nixops|colmena"
        "|deploy-rs|morph|chalice|jets|copilot|apex|architect|nitric|encore|shuttle|spin|fermyon|encr|deployctl"
        "|edgio|layer0|begin|genezio|zeet|porter|kubero|coolify|piku|nomad-pack|levant|kluctl|timoni|devtron|stackctl"
        "|cdk8s|rain|stacker|sceptre|cfn|cumulus|waypoint|draft|kompose|func|flightctl|balena|particle|mender-cli|pio-remote",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(setenv|scale|swap|restart|create|clone|abort|upgrade|update|rollback|certify|invoke|schedule"
                r"|unschedule|bootstrap|import|deploy|redeploy|run|apply|converge|up|push|setup|remove"
                r"|publish|launch|prod|release|boot|reboot|exec|enable|disable|ps:\w+|config:\w+|domains:\w+|apps:create"
                r"|letsencrypt:\w+|proxy:\w+|storage:mount|git:sync|execute|rollback-\w+|ota)$",
                unless=f"{HELP} --local",
                says=SETS_OFF,
                match=("eb setenv A=b", "zappa update prod", "cdk bootstrap", "kamal deploy"),
                not_match=("eb status", "cdk synth", "kamal details", "skaffold dev"),
            )
        ],
        takes="-f --file -n -p --profile -d --destination",
        not_match=("kamal config", "cdk list"),
    ),
)

QUEUES = (
    Program(
        "packer",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words="^build$",
                unless=HELP,
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
                unless="--help -h --version -sql",
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
        long_style=True,
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

PIPELINES = (*ORCHESTRATORS, *BUILD_SERVICES, *QUEUES)
