"""Rules about losing work that others, or other machines, hold: version control, clouds, databases, packages."""

from constitution.effects import Effect
from constitution.rule import Rule
from constitution.verdict import Level

__all__ = ["LOSS"]

ask, deny = Level.ask, Level.deny

LOSS = (
    Rule(
        "lose_work",
        "version_control",
        Effect.HISTORY_LOSS,
        (),
        ask,
        match=(
            "git reset --hard",
            "git clean -fdx",
            "git checkout .",
            "git branch -D x",
            "git stash drop",
            "git -C . reset --hard HEAD~3",
        ),
        near_miss=(
            "git status",
            "git reset HEAD x",
            "git clean -n",
            "git checkout -b x",
            "git stash",
            "git branch -d x",
        ),
    ),
    Rule(
        "lose_shared_work",
        "version_control",
        Effect.SHARED_HISTORY_LOSS,
        (),
        ask,
        match=(
            "git push --force",
            "git push -f origin main",
            "git push origin +main",
            "git push origin :x",
            "git push --mirror",
        ),
        near_miss=(
            "git push",
            "git push origin main",
            "git push -u origin x",
            "git push --dry-run --force",
            "git commit -m 'push --force'",
        ),
    ),
    Rule(
        "configure_tool",
        "evasion",
        Effect.CONFIGURE_TOOL,
        (),
        ask,
        match=(
            "git config core.hooksPath /tmp/x",
            "git -c core.pager='x' log",
            "git config --global alias.x '!rm'",
            "git remote set-url origin x",
        ),
        near_miss=("git config user.name me", "git config --get core.pager", "git remote -v"),
    ),
    Rule(
        "publish",
        "publishing",
        Effect.PUBLISH,
        (),
        ask,
        match=("npm publish", "twine upload dist/*", "docker push x"),
        near_miss=("npm pack", "npm publish --dry-run", "docker build ."),
    ),
    Rule(
        "foreign_packages",
        "packages",
        Effect.FOREIGN_PACKAGES,
        (),
        ask,
        match=("npm install -g x", "pip install git+https://example.com/x", "pip install --index-url http://x y"),
        near_miss=("npm install", "pip install -r requirements.txt", "pip install -e ."),
    ),
    Rule(
        "lose_containers",
        "containers",
        Effect.CONTAINER_LOSS,
        (),
        ask,
        match=(
            "docker system prune -af",
            "docker rm -f x",
            "docker volume rm x",
            "docker compose down -v",
            "podman rmi x",
        ),
        near_miss=("docker run --rm img", "docker ps", "docker compose down", "docker build .", "docker logs rm"),
    ),
    Rule(
        "lose_cloud",
        "cloud",
        Effect.CLOUD_LOSS,
        (),
        deny,
        match=(
            "terraform destroy",
            "kubectl delete ns x",
            "aws s3 rm s3://b --recursive",
            "gcloud projects delete x",
            "gh repo delete x",
        ),
        near_miss=("terraform plan", "kubectl get pods", "aws s3 ls", "gcloud projects list", "gh repo view"),
    ),
    Rule(
        "change_cloud",
        "cloud",
        Effect.CLOUD_CHANGE,
        (),
        ask,
        match=("terraform apply", "kubectl apply -f x", "aws s3 cp a s3://b/", "ansible-playbook x.yml"),
        near_miss=("terraform validate", "kubectl describe pod x", "aws sts get-caller-identity", "gh pr view 1"),
    ),
    Rule(
        "lose_database",
        "database",
        Effect.DATABASE_LOSS,
        (),
        deny,
        match=("dropdb prod", "redis-cli FLUSHALL", "sqlite3 x.db 'DROP TABLE y'"),
        near_miss=("sqlite3 x.db 'SELECT 1'", "redis-cli GET x", "psql --list"),
    ),
)
