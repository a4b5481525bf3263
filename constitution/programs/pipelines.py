"""Programs that set off, stop or change work elsewhere: orchestrators, build services."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["PIPELINES"]

SETS_OFF = "set off or change work elsewhere"
HELP = "--help -h --dry-run"

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
        "dbt",
        [
            Does(
                Effect.CLOUD_CHANGE,
                given="-t --target --profile",
                values=r"(?i)(^|[^a-z])(prod|production|staging|live)([^a-z]|$)",
                words=r"^(run|build|seed|snapshot|clone|retry|run-operation)$",
                says="work on what people use",
                match=("dbt build -t production", "dbt seed --target prod"),
                not_match=("dbt run --target dev", "dbt compile --target prod"),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words="^cloud$",
                also="^(run|trigger|create|update|cancel)$",
                says=SETS_OFF,
                match=("dbt cloud job run --job-id 1",),
                not_match=("dbt cloud job list",),
            ),
        ],
        takes="-t --target --profile",
    ),
    Program(
        "databricks|dbfs|snow|hdfs",
        [
            Does(
                Effect.CLOUD_LOSS,
                words="^rm$",
                says="delete what others use",
                match=("databricks fs rm -r dbfs:/x",),
                not_match=("databricks fs ls dbfs:/",),
            )
        ],
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
                given="--deploy-mode --cluster --executor --profile --master",
                values=r"^(cluster|yarn.*|k8s.*|spark://.*|mesos.*|slurm.*|kubernetes.*|lsf.*|pbs.*|sge.*|aws.*|google.*"
                r"|sbatch.*|qsub.*|bsub.*|.*batch)$",
                unless=HELP,
                says=SETS_OFF,
                match=("spark-submit --master yarn x.py", "snakemake --executor slurm", "snakemake --cluster sbatch"),
                not_match=("spark-submit --master local x.py", "snakemake -j 4"),
            )
        ],
        takes="--cluster --executor --master --deploy-mode --profile",
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

CLOUDS_SET_OFF = (
    Program(
        "gcloud scheduler|gcloud dataflow|gcloud composer|gcloud workflows|gcloud functions|gcloud transfer|gcloud ai"
        "|gcloud dataproc|gcloud batch|gcloud tasks|gcloud run jobs|gcloud builds triggers|az vm|az acr|az ml|az aks"
        "|az functionapp|az webapp|az containerapp|az synapse|az datafactory|az batch|az container|az logic"
        "|az automation"
        "|gcloud data-fusion|gcloud spanner|gcloud sql|oci compute|oci functions|doctl compute|ibmcloud fn|ibmcloud ce",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(run|cancel|execute|invoke|call|drain|start|build|run-command|create-run|stop|reset|submit|failover"
                r"|import|restore\S*|simulate-eviction|power-cycle|reboot|deallocate|redeploy|actions|clone|patch|task)$",
                unless=HELP,
                says=SETS_OFF,
                match=("gcloud scheduler jobs run x", "gcloud dataflow jobs cancel x", "az acr build -t x ."),
                not_match=("gcloud scheduler jobs list", "az vm list", "gcloud dataflow jobs describe x"),
            )
        ],
        takes="--project --region --zone -g -n --name --location",
    ),
    Program(
        "docker service|docker stack|docker swarm|docker node",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(update|scale|rollback|create|init|join|leave|up|promote|demote|unlock|ca)$",
                says="change what runs on many machines",
                match=("docker service update --image x:2 web", "docker service scale web=0", "docker swarm init"),
                not_match=("docker service ls", "docker stack ps x", "docker node ls"),
            )
        ],
    ),
    Program(
        "flink|hadoop|oozie|storm|wandb|clearml-task|sagemaker|istioctl|rabbitmqadmin|newrelic|linkerd"
        "|cilium|tea|hub|consul-template|drush|railway|wrangler|gh repo|launchctl|drizzle-kit",
        [
            Does(
                Effect.CLOUD_CHANGE,
                first=r"^(run|run-application|jar|savepoint|sweep|launch|train|install|upgrade|uninstall|kill|rebalance"
                r"|declare|fork|rename|sync|kickstart|bootstrap|updb|cim|sql:sync|sql-sync|rsync|cim|config:import)$",
                unless="--help -h --version",
                says=SETS_OFF,
                match=("flink run -d x.jar", "hadoop jar x.jar", "wandb sweep x.yaml", "drush updb -y"),
                not_match=("flink list", "drush status", "gh repo view"),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                given="-run --set --remote -rerun",
                unless="--help -h --local --dry-run",
                says=SETS_OFF,
                match=("oozie job -run -config x", "railway variables --set A=b", "wrangler d1 execute x --remote"),
                not_match=("railway variables", "wrangler d1 execute x --local"),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^@(?!self$|local|dev)",
                says="work on what people use",
                match=("drush @prod cr",),
                not_match=("drush @self cr",),
            ),
        ],
        long_style=True,
        takes="-config -oozie -c -n --name",
        not_match=("wandb status",),
    ),
    Program(
        "yarn application|yarn app|mapred job|hadoop job",
        [
            Does(
                Effect.CLOUD_CHANGE,
                given="-kill -movetoqueue -changeQueue -stop -kill-task -fail-task -set-priority",
                says=SETS_OFF,
                match=("yarn application -kill application_1", "mapred job -kill job_1"),
                not_match=("yarn application -list", "mapred job -status job_1"),
            )
        ],
        long_style=True,
    ),
    Program(
        "aws",
        [
            Does(
                Effect.CLOUD_LOSS,
                words="^batch-(delete|disassociate|stop|disable)",
                says="delete in the cloud",
                match=("aws ecr batch-delete-image --repository-name x",),
                not_match=("aws ecr batch-get-image --repository-name x",),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^((cancel|abort|pause|resume|retry|redrive|rerun|rollback|submit|batch-(put|write|update))-.*|website)$",
                says="change the cloud",
                match=("aws dynamodb batch-write-item --request-items x", "aws batch submit-job --job-name x"),
                not_match=("aws batch list-jobs",),
            ),
        ],
    ),
    Program(
        "mlflow",
        [
            Does(
                Effect.CLOUD_CHANGE,
                given="-b --backend",
                values="^(databricks|kubernetes|sagemaker)",
                says=SETS_OFF,
                match=("mlflow run . --backend databricks",),
                not_match=("mlflow run .", "mlflow run . --backend local"),
            ),
            Does(
                Effect.NETWORK,
                first="^run$",
                words=r"^(https?://|git@|git\+)",
                says="take a program from another machine",
                match=("mlflow run https://github.com/x/y",),
                not_match=("mlflow run .",),
            ),
        ],
        takes="-b --backend -P -e",
    ),
    Program(
        "cf|oc|sst|amplify|sam|spin|jenkins-jobs|netlify|firebase|rabbitmqctl|dagster-cloud|spinnaker|glab schedule"
        "|glab variable|gh ruleset|nix copy|cachix|attic",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(restage|start-build|new-app|new-project|import|checkout|sync|execute|stop_app|start_app|reset|set"
                r"|\w+:(import|set|clone)|cups|bind-service|set-env|unset-env|map-route|run|update|push|create)$",
                unless=f"{HELP} --local",
                says=SETS_OFF,
                match=("cf restage x", "oc start-build x", "sst secret set X y", "glab schedule run 1"),
                not_match=("cf apps", "oc get pods", "sst dev", "glab variable list"),
            ),
            Does(
                Effect.PUBLISH,
                given="--to",
                says="copy files to another machine",
                match=("nix copy --to s3://x ./result",),
                not_match=("nix copy --from s3://x ./result",),
            ),
        ],
    ),
    Program(
        "wp",
        [
            Does(
                Effect.DATABASE_RESET,
                words="^(search-replace|reset|drop|import|clean|empty)$",
                unless="--dry-run",
                says="change every row",
                match=("wp search-replace a b --all-tables", "wp db import x.sql"),
                not_match=("wp search-replace a b --dry-run", "wp plugin list"),
            )
        ],
    ),
    Program(
        "nixos-rebuild|home-manager|darwin-rebuild|nh os|nh home|guix system|guix home",
        [
            Does(
                Effect.SERVICES,
                words=r"^(switch|boot|test|activate|rollback|reconfigure|init|expire-generations|remove-generations)$",
                says="change the machine",
                match=("nixos-rebuild switch", "home-manager switch"),
                not_match=("nixos-rebuild build", "home-manager generations"),
            )
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

PIPELINES = (*ORCHESTRATORS, *CLOUDS_SET_OFF, *BUILD_SERVICES)
