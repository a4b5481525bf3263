"""Programs of everyday development: build tools, test runners, migrations."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["DEVELOPMENT"]

DEVELOPMENT = (
    Program(
        "rails|rake|artisan|prisma|sequelize|knex|alembic|mix|typeorm|sequelize-cli|drizzle-kit|flyway"
        "|liquibase|dbmate|goose"
        "|migrate|atlas|sqitch|diesel|sea-orm-cli|sqlx|sqlx-cli|django-admin|ecto",
        [
            Does(
                Effect.DATABASE_RESET,
                words=r"^(db:(drop|reset|purge|wipe|rollback|schema:load)|migrate:(fresh|reset|refresh)|db:wipe|reset"
                r"|ecto\.(drop|reset)"
                r"|schema:drop|drop|drop-all|downgrade|down|clean|revert|flush|redo)$",
                says="empty a database",
            )
        ],
    ),
    Program(
        "rails|rake|python|php|artisan|drush|wp|bundle",
        [
            Does(
                Effect.DATABASE_LOSS,
                texts=r"(?i)\b(drop\s+(table|database|schema)|truncate\s+(table\s+)?\w|delete\s+from\s+\w+)|\b(delete|destroy)_all\b"
                r"|::truncate\(|->truncate\(|\.objects\.all\(\)\.delete\(",
                words=r"^(runner|r|dbconsole|db|dbshell|shell|shell_plus|tinker|sql-query|sqlq|db:query|query|console)$",
                says="delete from a database",
                match=(
                    "rails runner 'User.delete_all'",
                    "python manage.py dbshell -- -c 'DROP TABLE users'",
                    "python manage.py shell -c 'User.objects.all().delete()'",
                    "php artisan tinker --execute='User::truncate()'",
                    "wp db query 'DROP TABLE x'",
                ),
                not_match=(
                    "rails runner 'puts User.count'",
                    "python manage.py shell -c 'print(1)'",
                    "rails test 'delete_all'",
                ),
            )
        ],
    ),
    Program(
        "rails|rake|python|php|artisan|knex|sequelize|sequelize-cli|flask|alembic|prisma|mix|typeorm|npm run",
        [
            Does(
                Effect.CLOUD_CHANGE,
                given="--force --accept-data-loss",
                words=r"^(migrate|push)(:\w+)?$",
                says="change a database without asking",
                match=("php artisan migrate --force", "prisma db push --accept-data-loss"),
                not_match=("php artisan migrate", "prisma db push"),
            ),
            Does(
                Effect.DATABASE_RESET,
                words=r"^(migrate:rollback|migrate:down|downgrade|migration:revert)$",
                says="take back migrations",
                match=("knex migrate:rollback --all", "flask db downgrade", "typeorm migration:revert"),
                not_match=("knex migrate:latest", "flask db upgrade"),
            ),
        ],
    ),
    Program(
        "python|php",
        [
            Does(
                Effect.DATABASE_RESET,
                words=r"^(flush|reset_db|sqlflush|migrate:(fresh|reset|refresh)|db:wipe)$",
                also=r"(^|/)(manage\.py|artisan)$",
                says="empty a database",
            )
        ],
    ),
    Program(
        "make|gmake|ninja|cmake|bazel|gradle|gradlew|mvn|ant|just|task|rake|tox|nox|meson|scons|msbuild|cargo"
        "|rustc|rustup|go"
        "|gofmt|gcc|g++|cc|c++|clang|clang++|ld|as|javac|tsc|esbuild|vite|webpack|rollup|swc|babel|dotnet"
        "|swift|xcodebuild"
        "|flutter|dart|mix|elixirc|ghc|cabal|stack|sbt|lein|zig|nim|crystal|bundle|gem|composer|poetry|pdm|hatch|uv|rye"
        "|pipenv|virtualenv|turbo|nx|lerna|deno|protoc|buf|sam|ocamlfind|dune|opam|kotlinc|scalac|nvcc|configure",
        [
            Does(
                Effect.WRITE,
                "PREFIX=",
                words="^install",
                match=("make install PREFIX=/usr/local",),
                not_match=("make PREFIX=/usr/local",),
            ),
            Does(
                Effect.WRITE,
                "DESTDIR=",
                words="^install",
                match=("make install DESTDIR=/",),
                not_match=("make DESTDIR=/",),
            ),
            Does(Effect.WRITE, "-o --output"),
            Does(Effect.READ, "-C --directory -f --file"),
        ],
        takes="-o --output -C --directory -f --file -I -L -D -l",
    ),
    Program(
        "jupyter|jupyter-lab|jupyter-notebook",
        [
            Does(
                Effect.LISTEN,
                given="--ip --ServerApp.ip --NotebookApp.ip",
                values=r"^(0\.0\.0\.0|\*|::)?$",
                says="open this machine to others",
                match=(
                    "jupyter lab --ip=0.0.0.0",
                    "jupyter notebook --NotebookApp.ip=*",
                    "jupyter lab --ServerApp.ip=*",
                ),
                not_match=("jupyter lab", "jupyter lab --ip=127.0.0.1"),
            )
        ],
        takes="--ip",
    ),
    Program(
        "pytest|py.test|unittest|mypy|pyright|ruff|black|isort|flake8|pylint|bandit|coverage|pre-commit|eslint"
        "|prettier|jest|vitest"
        "|mocha|playwright|cypress|rspec|rubocop|phpunit|ctest|golangci-lint|clippy|rustfmt|shellcheck|shfmt"
        "|clang-format"
        "|clang-tidy|cppcheck|valgrind|gdb|lldb|perf|hyperfine|sphinx-build|mkdocs|pandoc|pdflatex|latexmk"
        "|doxygen|dot|convert"
        "|magick|ffmpeg|ffprobe|identify|codespell|yamllint|hadolint|actionlint|stylelint|biome|ava|tap|c8|nyc"
        "|tsx|ts-node"
        "|alembic|django-admin|flask|uvicorn|gunicorn|celery|jupyter|ipython|streamlit|nodemon|pm2|serve"
        "|locust|mutmut|vulture",
        [Does(Effect.WRITE, "-o --output --basetemp --junitxml"), Does(Effect.READ, "-c --config --rootdir")],
        takes="-o --output -k -m -p -c --config --rootdir --basetemp --junitxml",
    ),
)
