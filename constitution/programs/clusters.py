"""Programs that change what runs on many machines: infrastructure as code, clusters, configuration management."""

from constitution.effects import Effect
from constitution.programs.clouds import EXPOSES, OPENS
from constitution.programs.program import Does, Program

__all__ = ["CLUSTERS"]

CLUSTERS = (
    Program(
        "terraform|tofu|terragrunt|pulumi|cdk|cdktf|serverless|sls|copilot|crossplane|sst|arc|chalice|zappa|kapitan",
        [
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(destroy|remove|rm|taint|force-unlock|delete|undeploy)$",
                says="destroy infrastructure",
                match=("terraform destroy", "terraform state rm x", "pulumi stack rm prod", "sls remove"),
                not_match=("terraform state list",),
            ),
            Does(
                Effect.CLOUD_LOSS,
                given="-destroy --destroy",
                words=r"^(apply|run|up|deploy|run-all)$",
                says="destroy infrastructure",
                match=("terraform apply -destroy",),
                not_match=("terraform plan -destroy",),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(apply|up|deploy|import|run-all|push|refresh|untaint|cancel|mv|replace-provider|login)$",
                says="change infrastructure",
                match=("terraform apply", "pulumi up", "cdk deploy"),
                not_match=("terraform init", "pulumi preview"),
            ),
        ],
        long_style=True,
        unless="-help --help",
    ),
    Program(
        "kubectl|oc|k|helm|k9s|argocd|flux|kubectx|kustomize|helmfile",
        [
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(delete|drain|uninstall|del|rollback|evict|destroy|purge)$",
                says="delete from the cluster",
                match=("kubectl delete ns x", "kubectl drain n", "helm uninstall x"),
                not_match=("kubectl get ns", "helm list"),
            ),
            Does(
                Effect.CLOUD_LOSS,
                words="^replace$",
                given="--force",
                says="delete from the cluster",
                match=("kubectl replace --force -f x",),
            ),
            Does(
                Effect.CLOUD_LOSS,
                words="^scale$",
                given="--all",
                says="stop whatever runs in the cluster",
                match=("kubectl scale deploy --all --replicas=0",),
                not_match=("kubectl scale deploy x --replicas=3", "kubectl get pods --all"),
            ),
            Does(
                Effect.CLOUD_EXPOSURE,
                texts=rf"{EXPOSES}|hostPID|hostNetwork|\"privileged\":\s*true",
                says=OPENS,
                match=("kubectl create clusterrolebinding x --clusterrole=cluster-admin --user=y",),
                not_match=("kubectl get clusterroles",),
            ),
            Does(
                Effect.CLOUD_EXPOSURE,
                words="^debug$",
                also="^node/",
                says="get a shell on a machine of the cluster",
                match=("kubectl debug node/n1 -it --image=x",),
                not_match=("kubectl describe node n1",),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(apply|create|replace|patch|edit|scale|set|restart|undo|pause|resume|cordon|taint"
                r"|exec|cp|run|expose"
                r"|annotate|label"
                r"|install|upgrade|attach|debug|autoscale|sync|uncordon|approve)$",
                first="^(?!diff$)",
                says="change the cluster",
                match=(
                    "kubectl apply -f x",
                    "kubectl rollout restart deploy/x",
                    "helm upgrade x y",
                    "kubectl exec -it p -- sh",
                ),
                not_match=(
                    "helm diff upgrade x y",
                    "kubectl port-forward svc/x 80",
                    "kubectl rollout status deploy/x",
                    "kubectl logs x",
                ),
            ),
            Does(
                Effect.LISTEN,
                given="--address",
                values=r"0\.0\.0\.0|^::$",
                words="^(port-forward|proxy)$",
                says="open a service of the cluster to others",
                match=("kubectl port-forward svc/db 5432 --address 0.0.0.0", "kubectl proxy --address=0.0.0.0"),
                not_match=("kubectl port-forward svc/db 5432", "kubectl port-forward --address 127.0.0.1 svc/db 5432"),
            ),
            Does(Effect.READ, "rest", words="^cp$", match=("kubectl cp .env p:/x",), not_match=("kubectl get pods",)),
        ],
        takes="-n --namespace --context -f -l -o --output --kubeconfig -c --selector --template --clusterrole"
        " --overrides "
        "--image --user --address",
        unless="--dry-run",
    ),
    Program(
        "ansible|ansible-playbook|puppet|chef-client|cap|knife|bolt|mina",
        [
            Does(
                Effect.CLOUD_CHANGE,
                unless="--check -C --list-hosts --syntax-check --version --list-tasks",
                says="change other machines",
                match=("ansible-playbook x.yml", "knife bootstrap x"),
                not_match=("ansible-playbook x.yml --check",),
            ),
        ],
    ),
    Program(
        "ansible",
        takes="-a --args",
        runs="-a --args",
        match=("ansible all -m shell -a 'rm -rf /'",),
        not_match=("ansible all --list-hosts",),
    ),
)
