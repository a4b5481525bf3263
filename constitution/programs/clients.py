"""Clients of databases and warehouses that many share: what they change, whom they cut off, where files come from."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program
from constitution.programs.stores import STATEMENTS

__all__ = ["CLIENTS"]

DATABASES = (
    "psql|mysql|mariadb|mongosh|mongo|redis-cli|valkey-cli|clickhouse-client|clickhouse|cqlsh|sqlcmd|cockroach|bq|usql"
    "|pgcli|mycli|sqlplus|cypher-shell|trino|presto|snowsql|spark-sql|snow|beeline|hive|impala-shell|pymssql|sql|ysqlsh"
    "|ksql|athenacli|databricks|vsql|isql|duckdb|osqueryi-remote|steampipe|tidb|questdb|exaplus|nzsql|dbisql|db2|hdbsql"
)
WAREHOUSES = (
    "bq|snowsql|snow|trino|presto|beeline|hive|impala-shell|spark-sql|athenacli|databricks|vsql|ksql|sqlplus|hdbsql"
)
CHANGES = (
    r"(?is)^\W*(insert|update|merge|alter|create|replace|copy\s+into|put|remove|grant|revoke|call|undrop|optimize|load"
    r"|msck|refresh|kill|set\s+role|use\s+role|begin)\b"
)
OTHERS = (
    r"^\0|(?<![A-Za-z])(prod|production|staging|PROD|PRODUCTION|STAGING)(?![A-Za-z])"
    r"|^\w+://(?:[^/@]*@)?(?!localhost|127\.|db[:/])[\w-]+\."
)
TAKES = "-h --host -d --dbname -S --server -f --file"

CLIENTS = (
    Program(
        "spark-sql|snow|databricks|ksql|athenacli|vsql|ysqlsh|hdbsql|sql|exaplus|nzsql|pyspark|spark-shell|flink-sql"
        "|dbt|steampipe|sqlite-utils|osm2pgsql|mdb-sql|sqlline|phoenix-sqlline|questdb|supabase|neonctl|pscale|turso",
        [
            Does(
                Effect.DATABASE_LOSS,
                texts=STATEMENTS,
                unless="--dry-run",
                says="delete from a database",
                match=("spark-sql -e 'DROP TABLE x'", "snow sql -q 'TRUNCATE TABLE x'"),
                not_match=("spark-sql -e 'SELECT 1'", "snow sql -q 'SHOW TABLES'"),
            )
        ],
    ),
    Program(
        WAREHOUSES,
        [
            Does(
                Effect.CLOUD_CHANGE,
                texts=CHANGES,
                unless="--dry_run --dry-run",
                says="change a warehouse that others use",
                match=("bq query 'UPDATE d.t SET a=1 WHERE b'", "snowsql -q 'ALTER TABLE x ADD y INT'"),
                not_match=("bq query 'SELECT 1'", "bq query --dry_run 'UPDATE d.t SET a=1 WHERE b'"),
            )
        ],
    ),
    Program(
        "bq",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words="^(load|mk|cp|insert|extract|update|cancel|partition|add-iam-policy-binding|set-iam-policy|undelete)$",
                unless="--help --dry_run",
                says="change a warehouse that others use",
                match=("bq load d.t gs://b/x.csv", "bq mk d", "bq cp a b"),
                not_match=("bq ls", "bq show d.t"),
            )
        ],
    ),
    Program(
        DATABASES,
        [
            Does(
                Effect.CLOUD_CHANGE,
                texts=r"(?i)\bpg_(terminate|cancel)_backend\b|(^|;)\s*kill\s+(query\s+|connection\s+)?\d|\bkillOp\("
                r"|^kill$|\bkill\s+query\b|alter\s+system\b|\bpg_reload_conf\b|\breindex\b|\bvacuum\s+full\b"
                r"|\boptimize\s+table\b|\bkillAllSessions|\brs\.(stepDown|reconfig|remove)\b|\bset\s+global\b",
                says="cut off others, or change the server",
                match=(
                    "psql -c 'SELECT pg_terminate_backend(1)'",
                    "mysql -e 'KILL 12'",
                    "mongosh --eval 'db.killOp(1)'",
                ),
                not_match=("psql -c 'SELECT 1'", "mysql -e 'SHOW PROCESSLIST'"),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                given="-f --file",
                words=OTHERS,
                says="change a database of another machine",
                match=("psql $PROD_URL -f x.sql", "psql postgres://a@db.example.com/x -f x.sql"),
                not_match=("psql app_dev -f x.sql", "psql postgres://localhost/x -f x.sql"),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                given="-h --host -d --dbname -S --server",
                values=r"(^\0)|(?<![A-Za-z])(prod|production|staging|PROD)(?![A-Za-z])|^(?!localhost|127\.)[\w-]+\.[\w-]+\.",
                besides="-f --file -i --input",
                says="change a database of another machine",
                match=("psql -h prod-db -f x.sql", "psql -h db.example.com -f x.sql"),
                not_match=("psql -h localhost -f x.sql", "psql -h prod-db -c 'SELECT 1'"),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                texts=r"\.(updateMany|updateOne|insertOne|insertMany|replaceOne|bulkWrite|findAndModify|findOneAndUpdate"
                r"|createIndex|renameCollection|deleteOne|findOneAndDelete|update|insert|save)\(",
                words=r"^\0|^mongodb(\+srv)?://(?!localhost|127\.|mongo[:/])",
                says="change a database of another machine",
                match=("mongosh $MONGO_URL --eval 'db.x.insertOne({})'",),
                not_match=("mongosh --eval 'db.x.insertOne({})'", "mongosh $MONGO_URL --eval 'db.x.find()'"),
            ),
            Does(
                Effect.DATABASE_RESET,
                texts=r"\.(updateMany|deleteMany)\(\s*\{\s*\}|(?i:alter\s+table\s+\S+\s+delete\b)",
                says="change every row",
                match=("mongosh --eval 'db.x.updateMany({}, {$set: {a: 1}})'",),
                not_match=("mongosh --eval 'db.x.updateMany({a: 1}, {$set: {b: 1}})'",),
            ),
        ],
        takes=TAKES,
    ),
    Program(
        "redis-cli|valkey-cli",
        [
            Does(
                Effect.CLOUD_CHANGE,
                words="(?i)^(kill|pause|failover|bgrewriteaof|acl|cluster|migrate|restore|script)$",
                unless="--help",
                says="cut off others, or change the server",
                match=("redis-cli CLIENT KILL TYPE normal", "redis-cli CLUSTER FAILOVER"),
                not_match=("redis-cli CLIENT LIST", "redis-cli INFO"),
            )
        ],
        takes="-h -p -n -a",
    ),
)
