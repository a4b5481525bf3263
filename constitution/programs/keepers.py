"""Programs that show keys, tokens and passwords in clear: who reads the screen, or a transcript of it, has them."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["KEEPERS"]

SHOWS = "show a secret in clear"
STORE = "op|vault|bao|bw|lpass|gopass|infisical|chamber|doppler|keyring|keepassxc-cli|rbw|credstash|teller|berglas|akv"
NO_VERB = (
    r"^(?!(ls|list|find|search|git|init|insert|add|generate|edit|rm|delete|mv|cp|help|version|grep|sync|setup|config)$)"
)

KEEPERS = (
    Program(
        STORE,
        [
            Does(
                Effect.TAKE_KEYS,
                words=r"^(read|get|show|clip|export|dump|password|otp|totp|fields?)$",
                says=SHOWS,
                match=(
                    "vault read secret/x",
                    "vault kv get secret/x",
                    "op read op://vault/x/password",
                    "bw get password x",
                    "keyring get system me",
                    "chamber export prod",
                ),
                not_match=("vault status", "vault kv list secret", "op vault list", "bw sync"),
            )
        ],
        takes="--vault --account --session",
    ),
    Program(
        "vault|bao",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^(write|put|patch|enable|tune|move)$",
                says="change what a store of secrets holds",
                match=("vault write secret/x a=b", "vault kv put secret/x a=b", "vault auth enable github"),
                not_match=("vault status", "vault path-help sys"),
            )
        ],
    ),
    Program(
        "doppler secrets|infisical secrets",
        [
            Does(
                Effect.TAKE_KEYS,
                unless="--only-names",
                words=r"^(download|get)$",
                says=SHOWS,
                match=("doppler secrets download --no-file", "infisical secrets get X"),
                not_match=("doppler secrets download --only-names", "doppler secrets set X"),
            ),
            Does(
                Effect.TAKE_KEYS,
                unless="--only-names",
                bare=True,
                says=SHOWS,
                match=("doppler secrets",),
                not_match=("doppler secrets --only-names",),
            ),
        ],
    ),
    Program(
        "pass|passage",
        [
            Does(
                Effect.TAKE_KEYS,
                first=NO_VERB,
                says=SHOWS,
                match=("pass show x", "pass -c bank", "pass email/work"),
                not_match=("pass ls", "pass git log", "pass find x"),
            )
        ],
    ),
    Program(
        "gh auth|glab auth|doctl auth|flyctl auth|fly auth",
        [
            Does(
                Effect.TAKE_KEYS,
                words="^token$",
                says=SHOWS,
                match=("gh auth token", "doctl auth token", "fly auth token"),
                not_match=("gh auth status", "doctl auth list"),
            ),
            Does(
                Effect.TAKE_KEYS,
                given="-t --show-token",
                says=SHOWS,
                match=("gh auth status -t", "glab auth status --show-token"),
                not_match=("gh auth status", "glab auth status"),
            ),
        ],
    ),
    Program(
        "gcloud|az|aws|ibmcloud|oci|firebase|yc|aliyun",
        [
            Does(
                Effect.TAKE_KEYS,
                words=r"^(print-(access|identity|refresh)-token|get-access-token|functions:secrets:access"
                r"|oauth-tokens|create-access-key|create-service-specific-credential|export-credentials)$",
                says=SHOWS,
                match=(
                    "gcloud auth print-access-token",
                    "gcloud auth application-default print-access-token",
                    "az account get-access-token",
                    "aws iam create-access-key --user-name x",
                    "aws configure export-credentials",
                ),
                not_match=("gcloud auth list", "az account show", "aws iam list-access-keys"),
            ),
            Does(
                Effect.TAKE_KEYS,
                first=r"^(secrets|keyvault|storage|cosmosdb|acr|redis)$",
                words=r"^(access|show|download|keys|list-keys)$",
                also=r"^(versions|secret|keys|list-keys|credential)$",
                says=SHOWS,
                match=(
                    "gcloud secrets versions access latest --secret=db",
                    "az keyvault secret show -n x",
                    "az storage account keys list -n x",
                    "az acr credential show -n x",
                ),
                not_match=(
                    "gcloud secrets versions list x",
                    "az acr show -n x",
                    "az vm show -n x",
                    "gcloud kms keys list",
                ),
            ),
            Does(
                Effect.TAKE_KEYS,
                words=r"^service-accounts$",
                also=r"^create$",
                first="^iam$",
                says="make a key that works from anywhere",
                match=("gcloud iam service-accounts keys create key.json --iam-account=x",),
                not_match=(
                    "gcloud kms keys create x",
                    "gcloud iam service-accounts keys list",
                    "gcloud iam roles create x",
                ),
            ),
            Does(
                Effect.TAKE_KEYS,
                words=r"(?i)^(aws_)?(secret_access_key|session_token)$",
                also="^get$",
                says=SHOWS,
                match=("aws configure get aws_secret_access_key",),
                not_match=("aws configure get region", "aws configure list"),
            ),
        ],
        takes="--project --profile --region -g -n --name --output --query --user-name",
    ),
    Program(
        "aws secretsmanager|aws ssm",
        [
            Does(
                Effect.TAKE_KEYS,
                words=r"^(batch-)?get-secret-value$",
                says=SHOWS,
                match=("aws secretsmanager get-secret-value --secret-id x",),
                not_match=("aws secretsmanager list-secrets",),
            ),
            Does(
                Effect.TAKE_KEYS,
                given="--with-decryption",
                says=SHOWS,
                match=("aws ssm get-parameter --name x --with-decryption",),
                not_match=("aws ssm describe-parameters",),
            ),
        ],
    ),
    Program(
        "heroku|railway|vercel env|netlify|eas|dokku",
        [
            Does(
                Effect.TAKE_KEYS,
                words=r"^(config|config:show|variables?|vars|pull|env:(list|get|pull|export)|config:export|auth:token)$",
                unless="--set",
                says="show every setting, with the keys among them",
                match=(
                    "heroku config -a x",
                    "heroku auth:token",
                    "railway variables",
                    "vercel env pull",
                    "netlify env:list",
                ),
                not_match=("heroku ps", "vercel env ls", "railway status", "railway variables --set A=b"),
            )
        ],
    ),
    Program(
        "kubectl|oc|k",
        [
            Does(
                Effect.TAKE_KEYS,
                words=r"^secrets?(/.*)?$",
                also="^get$",
                given="-o --output --template",
                values=r"^(?!name$|wide$|custom-columns)",
                says=SHOWS,
                match=("kubectl get secret x -o yaml", "kubectl get secret/x -o jsonpath='{.data.a}'"),
                not_match=(
                    "kubectl get secrets",
                    "kubectl get secrets -o name",
                    "kubectl get pods -o yaml",
                    "kubectl delete secret x -o yaml",
                ),
            ),
            Does(
                Effect.TAKE_KEYS,
                words="^token$",
                also="^create$",
                says=SHOWS,
                match=("kubectl create token default",),
                not_match=("kubectl auth whoami", "kubectl describe token x", "kubectl create role x"),
            ),
            Does(
                Effect.TAKE_KEYS,
                given="--raw --flatten",
                words="^config$",
                says=SHOWS,
                match=("kubectl config view --raw", "kubectl config view --flatten"),
                not_match=("kubectl config view", "kubectl get --raw /healthz"),
            ),
        ],
        takes="-n --namespace --context -o --output --template -l --selector",
    ),
    Program(
        "npm config|pnpm config|yarn config|composer config|pip config|git config|poetry config|bundle config",
        [
            Does(
                Effect.TAKE_KEYS,
                words=r"(?i)_authtoken$|_password$|npmAuthToken|\.extraheader$|^(http|github)-?(basic|oauth|token)",
                unless="--unset --unset-all",
                says=SHOWS,
                match=("npm config get //r.example.com/:_authToken", "git config --get http.extraheader"),
                not_match=(
                    "npm config get registry",
                    "git config --get user.email",
                    "git config --unset http.extraheader",
                    "git config --unset-all http.extraheader",
                ),
            )
        ],
    ),
    Program(
        "pulumi|terraform|tofu",
        [
            Does(
                Effect.TAKE_KEYS,
                given="--show-secrets",
                says=SHOWS,
                match=("pulumi config --show-secrets", "pulumi stack output --show-secrets"),
                not_match=("pulumi config", "pulumi stack output"),
            ),
            Does(
                Effect.SHOW_SECRETS,
                words=r"(?i)passw|secret|token|private_?key|kubeconfig|credential",
                also="^output$",
                says="show a secret",
                match=("terraform output -raw db_password", "tofu output kubeconfig"),
                not_match=("terraform output", "terraform output vpc_id", "terraform state show token"),
            ),
        ],
    ),
    Program(
        "ansible-vault|eyaml|git-crypt|transcrypt|git-secret|blackbox_cat|ejson|sops|age|rage|dotenvx",
        [
            Does(
                Effect.SHOW_SECRETS,
                words=r"^(view|decrypt|unlock|reveal|cat|get)$",
                says="take the encryption off secrets",
                match=(
                    "ansible-vault view x.yml",
                    "ansible-vault decrypt x.yml",
                    "git-crypt unlock",
                    "ejson decrypt x",
                ),
                not_match=("ansible-vault encrypt x.yml", "git-crypt status"),
            ),
            Does(
                Effect.SHOW_SECRETS,
                given="-d --decrypt",
                says="take the encryption off secrets",
                match=("age -d -i k x.age", "sops -d x"),
                not_match=("age -e -r r x", "sops -e x"),
            ),
        ],
    ),
    Program(
        "kwallet-query|docker-credential-desktop|docker-credential-osxkeychain|docker-credential-pass"
        "|docker-credential-secretservice",
        [
            Does(
                Effect.TAKE_KEYS,
                given="-r",
                says=SHOWS,
                match=("kwallet-query -r x kdewallet",),
                not_match=("kwallet-query -l kdewallet",),
            ),
            Does(
                Effect.TAKE_KEYS,
                words="^get$",
                says=SHOWS,
                match=("docker-credential-desktop get",),
                not_match=("docker-credential-desktop list",),
            ),
        ],
    ),
)
