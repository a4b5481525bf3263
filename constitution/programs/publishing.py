"""Programs by which something reaches others: registries, stores of applications, sites, reports."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["PUBLISHING"]

PUBLISHES, DRY = "publish", "--dry-run --dryrun --dry -n -h --help --version --print --no-push"
FETCHES = "take something from another machine"

REGISTRIES = (
    Program(
        "semantic-release|release-it|np|gh-pages|shipjs|auto shipit|lerna version|release-please|multi-semantic-release"
        "|changelogithub|bumpp|ko apply|ko resolve|ko publish|cargo-release|zest.releaser|fullrelease|vercel-deploy",
        [
            Does(
                Effect.PUBLISH,
                unless=f"{DRY} --no-release --skip-push",
                says=PUBLISHES,
                match=("npx semantic-release", "npx np", "gh-pages -d dist", "lerna version minor", "ko apply -f x"),
                not_match=("npx semantic-release --dry-run", "release-it --dry-run", "lerna run build"),
            )
        ],
    ),
    Program(
        "gem owner|cargo owner|npm access|npm team|npm hook|npm org|yarn npm|pnpm owner|npm star|singularity|apptainer",
        [
            Does(
                Effect.PUBLISH,
                words=r"^(public|private|restricted|grant|revoke|create|destroy|add|rm|set|tag|publish|push|sign|edit)$",
                unless="--help -h",
                says="change what is published, or who may",
                match=("npm access public x", "npm team add a:b c", "yarn npm tag add x@1 y", "apptainer push x.sif y"),
                not_match=("npm access list packages", "yarn npm info x", "apptainer inspect x.sif"),
            ),
            Does(
                Effect.PUBLISH,
                given="-a --add -r --remove",
                says="change who may publish",
                match=("gem owner --add a@b.c x", "cargo owner --add me x"),
                not_match=("cargo owner --list x",),
            ),
        ],
    ),
    Program(
        "mvn|mvnw",
        [
            Does(
                Effect.PUBLISH,
                words=r"^(release:(prepare|branch|rollback)|site:deploy|scm:\w+|versions:commit-remote)$",
                unless="-DdryRun",
                says="publish",
                match=("mvn -B release:prepare", "mvn release:branch"),
                not_match=("mvn release:clean", "mvn verify"),
            )
        ],
        long_style=True,
    ),
    Program(
        "cargo release",
        [
            Does(
                Effect.PUBLISH,
                given="-x --execute",
                says=PUBLISHES,
                match=("cargo release patch --execute",),
                not_match=("cargo release patch",),
            )
        ],
    ),
    Program(
        "crane|regctl|oras|skopeo|imgpkg|gcrane|wasm-to-oci|cosign|notation|podman manifest|buildah manifest"
        "|docker manifest|docker trust|docker buildx imagetools",
        [
            Does(
                Effect.PUBLISH,
                words=r"^(push|copy|cp|sync|append|mutate|tag|attach|sign|attest|import|mod|put|clean|index|rebase|create)$",
                unless="--help -h",
                says="change what a registry holds",
                match=("crane copy a b", "oras push r/x:1 f", "skopeo copy docker://a docker://b", "cosign sign r/x"),
                not_match=("crane manifest x", "skopeo inspect docker://x", "cosign verify r/x"),
            )
        ],
    ),
    Program(
        "earthly|pack build|depot build|nixpacks build|jib build|buildctl|docker compose build",
        [
            Does(
                Effect.PUBLISH,
                given="--push --publish",
                says=PUBLISHES,
                match=("earthly --push +all", "pack build x --publish", "docker compose build --push"),
                not_match=("earthly +test", "pack build x"),
            )
        ],
    ),
    Program(
        "hf|huggingface-cli|modelscope",
        [
            Does(
                Effect.PUBLISH,
                words="^(upload|upload-large-folder|create|move|update|settings|tag|branch|run|push|commit)$",
                unless="--help -h",
                says="change what a hub holds",
                match=("hf upload me/x .", "hf repo create x", "hf jobs run x python y"),
                not_match=("hf cache scan", "hf auth whoami"),
            ),
        ],
        takes="--repo-type --revision --token --model --dataset --local-dir",
    ),
    Program(
        "kaggle|wandb|dvc|mlflow|clearml-task|clearml-data|neptune|comet|aim|zenml|bentoml|cog|replicate|roboflow|lakectl"
        "|label-studio|polyaxon|dagshub|osf|zenodo_upload|quilt3|truss|gradio|spaces|tensorboard",
        [
            Does(
                Effect.PUBLISH,
                words=r"^(submit|push|upload|sync|deployments|launch|publish|deploy|share)$",
                unless="--help -h --dry-run",
                says="hand data or models to others",
                match=("kaggle kernels push", "wandb sync x", "dvc push", "mlflow deployments create -n x -t y"),
                not_match=("kaggle competitions list", "dvc status", "mlflow ui"),
            ),
            Does(
                Effect.PUBLISH,
                words=r"^(create|version|put|update|register)$",
                also=r"^(datasets|kernels|models|dataset|artifact|artifacts|model|notebooks|d|k)$",
                says="hand data or models to others",
                match=("kaggle datasets version -p . -m x", "wandb artifact put x"),
                not_match=("kaggle datasets list",),
            ),
            Does(
                Effect.NETWORK,
                words=r"^(download|get|get-url|import|import-url|pull|files|output)$",
                also=r"^(download|competitions|datasets|kernels|models|artifact|get|get-url|import|import-url|output|d|c|k)$",
                unless="--help -h --dry-run",
                says=FETCHES,
                match=("kaggle datasets download x/y", "dvc get https://x y", "wandb artifact get x"),
                not_match=("dvc pull", "kaggle datasets list"),
            ),
        ],
        takes="-c -d -p -m -f -r -n -t -k",
    ),
    Program(
        "dvc",
        [
            Does(
                Effect.CLOUD_LOSS,
                words="^gc$",
                given="-c --cloud -r --remote",
                unless="--dry",
                says="delete data that others use",
                match=("dvc gc -w --cloud -f", "dvc gc -w -c"),
                not_match=("dvc gc -w", "dvc gc -w -c --dry"),
            ),
            Does(
                Effect.CONFIGURE_TOOL,
                words="^remote$",
                also="^(add|modify|remove|default|rename)$",
                says="change where data goes",
                match=("dvc remote add -d x s3://b",),
                not_match=("dvc remote list",),
            ),
        ],
    ),
)

STORES_AND_SITES = (
    Program(
        "xcrun altool|xcrun notarytool|altool|notarytool|iTMSTransporter|asc|pilot|deliver|supply|bundletool-upload",
        [
            Does(
                Effect.PUBLISH,
                given="--upload-app --upload-package --notarize-app -upload",
                says="hand an application to a store",
                match=("xcrun altool --upload-app -f x.ipa",),
                not_match=("xcrun altool --validate-app -f x.ipa",),
            ),
        ],
        long_style=True,
    ),
    Program(
        "fastlane",
        [
            Does(
                Effect.PUBLISH,
                words=r"(?i)^(\w*_)?(beta|alpha|release|supply|deliver|pilot|upload\w*|testflight|app_?store|production"
                r"|internal|distribute\w*|publish\w*|ship|hotfix|staging|nightly|submit\w*|deploy\w*|firebase\w*"
                r"|play_?store\w*|promote\w*|register\w*|match|produce|pem|sigh|cert)$",
                says="hand an application to others",
                match=("fastlane beta", "bundle exec fastlane ios release", "fastlane supply --track production"),
                not_match=("fastlane test", "fastlane lanes", "fastlane scan"),
            )
        ],
    ),
    Program(
        "vercel|now",
        [
            Does(
                Effect.PUBLISH,
                given="--prod --prebuilt --target",
                unless="--help -h",
                words=r"^(?!build$|pull$|dev$|env$|ls$|list$|inspect$|logs$)|^$",
                says=PUBLISHES,
                match=("vercel dist --prod",),
                not_match=("vercel build --prod", "vercel pull --environment=production"),
            ),
            Does(
                Effect.PUBLISH,
                bare=True,
                unless="--help -h --version -v",
                says=PUBLISHES,
                match=("vercel", "vercel --prod", "now --yes"),
                not_match=("vercel ls", "vercel --version"),
            ),
            Does(
                Effect.PUBLISH,
                words=r"^(\.|\./.*|alias|promote|rollback|redeploy|rolling-release)$",
                says=PUBLISHES,
                match=("vercel .", "vercel promote x"),
                not_match=("vercel inspect x",),
            ),
        ],
        takes="-t --token -S --scope --cwd -A --local-config -e -b",
    ),
    Program(
        "surge",
        [
            Does(
                Effect.PUBLISH,
                unless="--help -h --version",
                words=r"^(?!list$|whoami$|login$)",
                says=PUBLISHES,
                match=("surge dist x.surge.sh",),
                not_match=("surge list",),
            ),
            Does(Effect.PUBLISH, bare=True, unless="-h --version", says=PUBLISHES, match=("surge",)),
        ],
    ),
    Program(
        "clasp|appcenter|code-push|web-ext|sentry-cli|bit|expo|eas|ng|firebase|shopify|wp|netlify|amplify|sf|sfdx",
        [
            Does(
                Effect.PUBLISH,
                words=r"^(push|deploy|release-react|release-cordova|sign|finalize|new|set-commits|deploys|export|submit"
                r"|upload-\w+|send-event|channel:\w+|update|redeploy|create-version|appdistribution:.*|hosting:clone"
                r"|ext:(install|update)|functions:delete|target:apply)$",
                unless="--help -h --dry-run --local --no-upload",
                says=PUBLISHES,
                match=("clasp push", "sentry-cli releases finalize 1", "web-ext sign", "bit export", "eas update"),
                not_match=("clasp status", "sentry-cli info", "web-ext lint", "eas build --local"),
            ),
        ],
        takes="-m --message -p --platform -o --org -t -e",
    ),
    Program(
        "codecov|codecovcli|coveralls|chromatic|percy|codeclimate-test-reporter|cc-test-reporter|codacy-coverage-reporter"
        "|datadog-ci|snyk monitor|fossa analyze|deepsource report|sonar-scanner|bugsnag-cli|lhci upload|argos upload"
        "|backtrace-morgue|newrelic deployment|honeycomb-upload|allurectl",
        [
            Does(
                Effect.PUBLISH,
                unless="--help -h --version --dry-run -d",
                says="hand a report to another machine",
                match=("codecov -f x.xml", "npx chromatic", "coveralls", "snyk monitor"),
                not_match=("codecov --help", "snyk test"),
            )
        ],
    ),
    Program(
        "git push",
        [
            Does(
                Effect.PUBLISH,
                given="--tags --follow-tags",
                says="publish releases",
                match=("git push --tags", "git push origin main --follow-tags"),
                not_match=("git push", "git fetch --tags"),
            ),
            Does(
                Effect.PUBLISH,
                words=r"(^|:)\+?refs/tags/|^tag$",
                says="publish a release",
                match=("git push origin refs/tags/v1", "git push origin tag x"),
                not_match=("git push origin topic",),
            ),
            Does(
                Effect.PUBLISH,
                words=r"^(heroku|dokku|piku|gigalixir|scalingo|clever|azure|kamal|deploy|production|prod|staging|live"
                r"|caprover|space|huggingface|hf)(-\w+)?$",
                says="deploy",
                match=("git push heroku main", "git push dokku HEAD:main", "git push staging"),
                not_match=("git push origin main", "git push upstream topic"),
            ),
        ],
        takes="-o --push-option --repo --receive-pack",
        unless="-n --dry-run",
    ),
    Program(
        "git send-email|git svn dcommit|git p4 submit|p4 submit|cvs commit|b4 send|patman send|dput|dupload"
        "|osc commit|osc submitrequest|copr-cli build|fedpkg update|fedpkg push|brew bump-formula-pr|bower register"
        "|jf rt|jfrog rt|gh attestation|ansible-pull|shorebird patch|ncftpput|gbp push",
        [
            Does(
                Effect.PUBLISH,
                unless="--dry-run -n --help",
                says="send changes to others",
                match=("git send-email x.patch", "git svn dcommit", "p4 submit -d x"),
                not_match=("git send-email --dry-run x.patch", "git svn log"),
            )
        ],
    ),
)

TASKS = (
    Program(
        "make|gmake|just|task|rake|gradle|gradlew|mvn|mvnw|cap|fab|invoke|inv|nox|doit|ant|wp|hexo|gatsby|mike|mkdocs"
        "|capistrano|deployer|dep|ember|turbo|nx|lerna|composer|bundle|mix|mage|bazel|bazelisk|pants|dagger|earthly|rush"
        "|grunt|gulp|poe|thor|manage.py|artisan|torchrun"
        "|accelerate|deepspeed|horovodrun"
    ),
)
"""What runs tasks of a project: see `outward`."""

PUBLISHING = (*TASKS, *REGISTRIES, *STORES_AND_SITES)
