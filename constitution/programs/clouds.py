"""Programs that change what others host: clouds, hosting, object stores, virtual machines, forges."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["CLOUDS", "EXPOSES", "OPENS", "SHOWS"]

CHANGES_HOST = "change what others see"
NO_SEARCH = "^(?!search$)"  # what is looked for may be any word
DELETES, CHANGES, SHOWS = "delete in the cloud", "change the cloud", "show secrets"

DESTROYS = (
    r"^(delete|destroy|remove|rm|rb|purge|terminate|wipe|erase|drop|nuke|undefine|unregister|unregistervm|uninstall|del"
    r"|decommission|teardown|deprovision|cleanup|obliterate|deallocate|prune|unlink)([-_].*)?$"
    r"|[-_:](destroy|delete|remove|reset|wipe|rm|undefine)$"
)
"""Words by which the clients of most services delete."""

EXPOSES = (
    r"AdministratorAccess|(^|[=,:])(0\.0\.0\.0/0|::/0)|^public-read|public-read-write|allUsers|allAuthenticatedUsers"
    r"|roles/owner|roles/editor|(?i:^owner$)|cluster-admin|\"Principal\":\s*\"\*\""
)
"""Everybody may come in, or somebody may do everything."""

OPENS = "give others access"

CLOUD = (
    "gcloud|gsutil|az|doctl|linode-cli|hcloud|oci|ibmcloud|flyctl|fly|heroku|vercel|netlify|firebase|supabase|wrangler"
    "|render|railway|eksctl|kops|rosa|scw|vultr-cli|exo|civo|cf|eb|amplify|ecs-cli|sam|aliyun|tccli|upcloud"
    "|packet|metal"
    "|stripe|twilio|auth0|okta|algolia|sentry-cli|planetscale|pscale|turso|neon|neonctl|upstash|convex|appwrite|ns1"
    "|dnscontrol|octodns|mongocli|atlas|confluent|rpk|shopify|sfdx|sf|datadog-ci|surge|deta|now|eas|expo|fastlane"
    "|appcenter|circleci|buildkite-agent|drone|cloudflared"
)
CLOUD_TAKES = "--project --region --zone -p -g -n --name -R --repo --format -a --app --role --member --command"

CLOUDS = (
    Program(
        "aws",
        [
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(rm|rb|(delete|terminate|remove|purge|deregister|destroy|release|revoke|detach"
                r"|schedule-key|empty|leave|close-account"
                r"|cancel|disassociate|deactivate)-.*|destroy|nuke)$",
                says=DELETES,
                match=(
                    "aws ec2 terminate-instances --instance-ids i",
                    "aws s3 rb s3://b",
                    "aws kms schedule-key-deletion x",
                ),
                not_match=("aws ec2 describe-instances", "aws s3 ls"),
            ),
            Does(
                Effect.CLOUD_LOSS,
                given="--delete",
                says=DELETES,
                match=("aws s3 sync a s3://b --delete",),
                not_match=("aws s3 sync a s3://b --delete --dryrun",),
            ),
            Does(
                Effect.DISARM,
                words=r"^(stop-logging|delete-trail|disable-.*|stop-configuration-recorder|delete-detector"
                r"|delete-flow-logs)$",
                says="switch off what guards the cloud",
                match=("aws cloudtrail stop-logging --name x", "aws guardduty delete-detector x"),
                not_match=("aws cloudtrail lookup-events",),
            ),
            Does(
                Effect.CLOUD_EXPOSURE,
                words=r"^modify-(db-)?(cluster-)?(snapshot|image)-attribute$",
                texts=r"(?i)^add$|^Add=|^\[?\{?\"?Add",
                says=OPENS,
                match=("aws ec2 modify-snapshot-attribute --snapshot-id s --operation-type add --user-ids 1",),
                not_match=("aws ec2 modify-snapshot-attribute --operation-type remove --user-ids 1",),
            ),
            Does(
                Effect.CLOUD_EXPOSURE,
                texts=EXPOSES,
                says=OPENS,
                match=(
                    "aws iam attach-user-policy --policy-arn arn:aws:iam::aws:policy/AdministratorAccess",
                    "aws ec2 authorize-security-group-ingress --cidr 0.0.0.0/0",
                    "aws s3api put-bucket-acl --acl public-read",
                ),
                not_match=("aws iam list-users", "aws ec2 authorize-security-group-ingress --cidr 10.0.0.0/8"),
            ),
            Does(
                Effect.CLOUD_EXPOSURE,
                given="--publicly-accessible",
                says=OPENS,
                match=("aws rds modify-db-instance --db-instance-identifier x --publicly-accessible",),
                not_match=("aws rds modify-db-instance --no-publicly-accessible",),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^((create|put|update|modify|attach|run|stop|reboot|start|authorize|restore|register"
                r"|enable|import"
                r"|add|set|associate|send|reset|replace|invoke|execute)-.*|cp|mv|sync|invoke)$",
                says=CHANGES,
                match=("aws s3 cp a s3://b", "aws iam create-user x", "aws ssm send-command --parameters x"),
                not_match=("aws iam list-users",),
            ),
            Does(
                Effect.SHOW_SECRETS,
                words=r"^(get-session-token|get-login-password|get-parameters?(-by-path)?|assume-role.*"
                r"|get-federation-token|get-authorization-token|decrypt)$",
                says=SHOWS,
                match=("aws ssm get-parameter --name x", "aws sts get-session-token", "aws kms decrypt"),
                not_match=("aws sts get-caller-identity",),
            ),
        ],
        takes="--profile --region --output --query",
        unless="--dryrun --dry-run",
    ),
    Program(
        "aws s3",
        [
            Does(
                Effect.READ,
                "rest",
                words=r"^(cp|mv|sync)$",
                match=("aws s3 cp .env s3://b",),
            ),
            Does(
                Effect.UPLOAD,
                words="^s3://",
                also=r"^(cp|mv|sync)$",
                says="copy files to the cloud",
                match=("aws s3 cp a s3://b",),
                not_match=("aws s3 ls s3://b",),
            ),
        ],
    ),
    Program(
        "gsutil|gcloud storage|s3cmd|s5cmd|mc|azcopy|b2|ossutil|rclone|swift|az storage blob|gh gist|glab"
        " snippet|doctl spaces",
        [
            Does(
                Effect.READ,
                "rest",
                words=r"^(cp|mv|rsync|put|copy|upload|sync|create|upload-file|upload-batch|mirror|copyto"
                r"|moveto|upload_file)$",
                match=("gsutil cp .env gs://b", "gh gist create .env", "rclone copy .env r:b"),
                not_match=("gsutil ls gs://b",),
            ),
            Does(Effect.READ, "--file", match=("az storage blob upload --file=.env -n x",)),
            Does(
                Effect.UPLOAD,
                words=r"^(cp|mv|rsync|put|copy|upload|sync|create|upload-file|upload-batch|mirror|copyto"
                r"|moveto|rcat|upload_file)$",
                says="copy files to another machine",
                match=("gsutil cp a gs://b", "s3cmd put a s3://b", "rclone copy a r:b", "gh gist create a"),
                not_match=("s3cmd ls", "gsutil ls"),
            ),
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(rm|rb|del|delete.*|purge|deletefile|cleanup|remove|sync|move|rmdirs?)$",
                says=DELETES,
                match=("gsutil -m rm -r gs://b", "mc rb --force s/b", "s3cmd del s3://b/x", "rclone purge r:b"),
                not_match=("mc ls s", "rclone lsd r:"),
            ),
            Does(
                Effect.CLOUD_LOSS,
                given="-d --remove",
                says=DELETES,
                match=("gsutil rsync -d a gs://b",),
                not_match=("gsutil rsync a gs://b",),
            ),
        ],
        unless="--dry-run",
    ),
    Program(
        "kind|minikube|k3d|vmrun|prlctl|VBoxManage|vboxmanage|virsh|virt-clone|qm|pct|pvesh|xe|lxc|incus|lxd"
        "|multipass|limactl"
        "|colima|vagrant|docker-machine|podman-machine|machinectl|homectl|portablectl|rancher|juju|etcdctl|consul|nomad"
        "|rabbitmqctl|rabbitmqadmin|pulsar-admin|kafkactl|nats|emqx_ctl|elasticdump|curator_cli|dokku|caprover|balena"
        "|openstack|govc|temporal|tctl|airflow|dagster|velero|argo|tkn|istioctl|linkerd|kn|" + CLOUD,
        [
            Does(
                Effect.CLOUD_LOSS,
                words=DESTROYS,
                says=DELETES,
                match=(
                    "gcloud sql instances delete x",
                    "virsh undefine x",
                    "heroku apps:destroy x",
                    "kind delete cluster",
                ),
                not_match=("gcloud sql instances list", "virsh list", "kind get clusters"),
            ),
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(reset|pg:reset|force_reset|factory_reset|reset-hard|down|halt|leave|stop-.*)$",
                also=r"^(db|pg:reset|force_reset|reset|factory_reset|down|leave|.*-reset)$",
                says=DELETES,
                match=("supabase db reset --linked", "rabbitmqctl force_reset", "railway down"),
                not_match=("supabase db diff",),
            ),
            Does(
                Effect.CLOUD_LOSS,
                given="--purge --remove-all-storage --delete",
                says=DELETES,
                match=("nomad job stop -purge web",),
                not_match=("nomad status",),
            ),
        ],
        takes=CLOUD_TAKES,
        unless="--dry-run --help -h",
    ),
    Program(
        "nomad|consul|vault",
        [
            Does(
                Effect.CLOUD_LOSS,
                given="-purge -force",
                words=r"^(stop|delete|destroy|leave|force-leave|disable|remove)$",
                says=DELETES,
                match=("nomad job stop -purge web",),
                not_match=("nomad status",),
            )
        ],
        long_style=True,
    ),
    Program(
        "nomad|consul|etcdctl|virsh|qm|pct|rabbitmqctl|openstack|govc|xe|pvesh",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(put|set|start|stop|restart|run|reload|apply|shutdown|reboot|suspend|migrate|restore"
                r"|import|scale|plan-apply"
                r"|move|lock|compact|(set|change|add|clear)_.*|.*-(create|define|attach|detach))$",
                says=CHANGES,
                match=(
                    "nomad job run x",
                    "consul kv put a b",
                    "etcdctl put a b",
                    "virsh shutdown x",
                    "rabbitmqctl set_policy x",
                ),
                not_match=("nomad status", "consul kv get a", "virsh list"),
            )
        ],
    ),
    Program(
        CLOUD,
        [
            Does(
                Effect.CLOUD_EXPOSURE,
                texts=EXPOSES,
                says=OPENS,
                match=(
                    "gcloud projects add-iam-policy-binding p --role=roles/owner",
                    "az ad sp create-for-rbac --role owner",
                ),
                not_match=("gcloud projects list",),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^((create|deploy|update|set|add|put|import|push|attach|detach|restore|migrate|reset"
                r"|patch|replace|move"
                r"|rotate|grant|revoke|assign|enable|disable|resize|scale|register|promote|rollback|stop"
                r"|restart|apply)(-.*)?"
                r"|ssh|merge|close|edit|publish|up|secret|kill|exec"
                r"|.*:(add|set|create|restart|promote|rollback|unset|scale|copy|stop))$",
                says=CHANGES,
                match=("gcloud run deploy x", "az vm restart -n x", "heroku config:set A=b"),
                not_match=("gcloud config list", "heroku logs"),
            ),
            Does(
                Effect.SHOW_SECRETS,
                words=r"^(token|config:get|secrets?|secret:.*|get-credentials|list-keys|keys|show-connection-string)$",
                says=SHOWS,
                match=("fly secrets list", "heroku config:get X", "gcloud container clusters get-credentials x"),
                not_match=("gcloud compute instances list",),
            ),
            Does(
                Effect.DATABASE_LOSS,
                texts=r"(?i)\b(drop\s+(table|database|schema)|truncate\s+table|delete\s+from)\b",
                says="delete from a database",
                match=("wrangler d1 execute db --command 'DROP TABLE users'",),
                not_match=("wrangler d1 execute db --command 'SELECT 1'",),
            ),
        ],
        takes=CLOUD_TAKES,
        unless="--dry-run --help -h --local",
    ),
    Program(
        "vercel|now",
        [
            Does(
                Effect.CLOUD_CHANGE,
                given="--prod",
                says="change what others use",
                match=("vercel --prod", "now --prod"),
                not_match=("vercel ls", "vercel dev"),
            )
        ],
    ),
    Program(
        "gh|glab|hub|tea",
        [
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(delete|remove|archive|delete-.*)$",
                first=NO_SEARCH,
                says="delete what others see",
                match=("gh repo delete x", "gh release delete v1"),
                not_match=("gh repo view x", "gh search issues delete"),
            ),
            Does(
                Effect.CLOUD_LOSS,
                words="^api$",
                given="-X --method",
                values="(?i)^DELETE$",
                says="delete what others see",
                match=("gh api -X DELETE repos/o/x", "glab api --method DELETE projects/1"),
                not_match=("gh api repos/o/x",),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(merge|rename|deploy|enable|disable|ssh-key|gpg-key|transfer|close|lock|review"
                r"|approve|rerun|cancel|revert)$",
                first=NO_SEARCH,
                says=CHANGES_HOST,
                match=("gh pr merge 1", "gh ssh-key add x"),
                not_match=("gh pr view 1", "gh search code deploy"),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                given="-X --method -f -F --field --raw-field --input",
                words="^api$",
                says=CHANGES_HOST,
                match=("gh api -X POST repos/o/x/issues", "gh api repos/o/x -f a=b"),
                not_match=("gh api repos/o/x/pulls",),
            ),
            Does(
                Effect.CLOUD_EXPOSURE,
                given="--visibility",
                values="^public$",
                says="make a repository public",
                match=("gh repo edit o/x --visibility public",),
                not_match=("gh repo view",),
            ),
        ],
        takes="-R --repo -t --title -b -F --body-file -X --method -f --field --input --raw-field -q --jq -L "
        "--label --visibility",
    ),
    Program(
        "gh release|gh repo|gh gist|gh secret|gh variable|gh workflow|gh cache|gh ruleset|glab release|glab repo"
        "|glab variable",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(create|edit|set|run|upload|sync)$",
                says=CHANGES_HOST,
                match=("gh release create v1", "gh secret set X"),
                not_match=("gh release list",),
            )
        ],
    ),
)
