"""Programs by which something comes from elsewhere: files, models, images, programs."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["FETCHING"]

FETCHES = "take something from another machine"

FETCHING = (
    Program(
        "locust|artillery|k6",
        [
            Does(
                Effect.NETWORK,
                given="-H --host --target -t --out",
                values=r"^https?://(?!localhost|127\.|\[::1\]|0\.0\.0\.0)|^cloud$",
                says="put load on another machine",
                match=("locust --headless -H https://example.com", "k6 run --out cloud x.js"),
                not_match=("locust -H http://localhost:8000",),
            ),
        ],
        takes="-H --host --target -t --out",
    ),
    Program(
        "yt-dlp|youtube-dl|gallery-dl|gdown|ollama pull"
        "|annie|lux|you-get|spotdl|streamlink|wormhole receive|croc receive|megadl|mega-get|zenodo_get"
        "|fasterq-dump|prefetch|fastq-dump|ncbi-genome-download|esearch|efetch|instaloader|httrack|monolith|curlie"
        "|transmission-cli|transmission-remote|deluge-console|rtorrent|webtorrent|degit|tiged|giget|svn export"
        "|svn checkout|svn co|datalad get|datalad install|datasets download|cookiecutter|copier copy"
        "|nix-prefetch-url|git annex get|lms get|go-getter|s3fs|ollama run|llm install|gpt4all|spacy download"
        "|conan download",
        [
            Does(
                Effect.NETWORK,
                words=".",
                unless="--help -h --version --list-formats -F --simulate --dump-json",
                says=FETCHES,
                match=("yt-dlp https://x.com/y", "gdown 1", "ollama pull x", "ncbi-genome-download bacteria"),
                not_match=("yt-dlp --version", "ollama list", "yt-dlp -F https://x.com/y"),
            )
        ],
        takes="-o -f -O -P",
    ),
    Program(
        "gh release download|gh run download|glab release download",
        [
            Does(
                Effect.NETWORK,
                unless="--help -h",
                says=FETCHES,
                match=("gh release download", "gh run download"),
                not_match=("gh release list",),
            )
        ],
    ),
    Program(
        "docker pull|podman pull|nerdctl pull|docker image pull|crane pull|skopeo copy|oras pull|helm pull|helm fetch",
        [
            Does(
                Effect.NETWORK,
                words=r"^(?!localhost|127\.|docker\.io/library/)(\w+://)?[\w-]+(\.[\w-]+)+(:\d+)?/",
                says=FETCHES,
                match=("docker pull ghcr.io/x/y", "docker pull quay.io/x", "helm pull oci://ghcr.io/x/y"),
                not_match=("docker pull postgres:16", "docker pull localhost:5000/x"),
            ),
            Does(
                Effect.NETWORK,
                given="-a --all-tags",
                says=FETCHES,
                match=("docker pull -a x",),
                not_match=("docker pull x",),
            ),
        ],
    ),
    Program(
        "az storage blob|azcopy|s3cmd|mc|b2|rclone|s5cmd|gsutil|ossutil|swift|aws s3api|gcloud storage|oci os|dx|iget"
        "|icp|globus transfer|databricks fs|hdfs dfs|hadoop fs|synapse",
        [
            Does(
                Effect.NETWORK,
                words=r"^(download\S*|get|get-object|cp|copy|sync|rsync|mirror|bulk-download|iget|download-file-by-name)$",
                unless="--dry-run --dryrun --help -h",
                says=FETCHES,
                match=("az storage blob download -c x -n y", "s3cmd get s3://b/x", "databricks fs cp dbfs:/x ."),
                not_match=("s3cmd ls s3://b", "rclone lsd r:"),
            )
        ],
        takes="-c -n -f --name --file --container-name",
    ),
    Program(
        "terraform get|ansible-galaxy install"
        "|ansible-galaxy collection|ansible-galaxy role|gh extension install|helm plugin install|krew install"
        "|kubectl krew install|vagrant box add|vagrant plugin install|az extension add|gcloud components install"
        "|gcloud components update|code --install-extension|apm install|jupyter labextension install|sdkmanager"
        "|nextflow pull|apptainer pull|singularity pull|ghcup install",
        [
            Does(
                Effect.FOREIGN_PACKAGES,
                unless="--list -l --help -h --installed",
                words=r"^(?!list$|info$|validate$|verify$|search$|init$)",
                says="take programs or data from another machine",
                match=("ansible-galaxy install x.y", "vagrant box add x", "gh extension install a/b"),
                not_match=("ansible-galaxy collection list", "gh extension list"),
            )
        ],
        takes="-p --roles-path",
    ),
)
