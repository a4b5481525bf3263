"""Programs that hold what people need: databases, queues, backups, snapshots, secrets."""

from constitution.effects import Effect
from constitution.programs.program import Does, Program

__all__ = ["STORES"]

LOSES = "delete from a database"

STATEMENTS = (
    r"(?i)\b(drop\s+(table|database|schema|keyspace|index|view|user|role|collection|column|type|function|owned"
    r"|tablespace|extension|sequence|trigger|materialized)|truncate\b|delete\s+from|flushall|flushdb|dropdatabase"
    r"|deletemany|alter\s+table.*\bdrop\b|reset\s+master|purge\s+binary"
    r"|update\s+[\w.\"`]+\s+set(?!.*\bwhere\b))"
    r"|\.(drop|remove|dropIndexes)\(|detach\s+delete|\bdropUser\(|^\s*drop\b|\bshutdown\b"
)
"""What loses rows, tables and more, in the languages of databases."""

GRANTS = r"(?i)\bgrant\s+all\b.*\bto\b|\bwith\s+superuser|alter\s+(user|role)\s+\w+\s+.*(superuser|password|identified)"
RUNS = r"(?i)\bto\s+program\b|\bfrom\s+program\b|xp_cmdshell|sys_exec|into\s+(out|dump)file|lo_export|pg_read_file"

BACKUPS = (
    r"^(forget|prune|delete|purge|destroy|rm|remove|remove-.*|cleanup|rollback|unlock|recreate|key|compact"
    r"|expire|wipe|clean"
    r"|obliterate|del)$"
)

STORES = (
    Program(
        "psql|mysql|mariadb|sqlite3|mongosh|mongo|redis-cli|valkey-cli|keydb-cli|clickhouse-client|clickhouse"
        "|cqlsh|sqlcmd|duckdb|cockroach"
        "|bq|influx|usql|pgcli|mycli|litecli|isql|sqlplus|db2|cypher-shell|arangosh|couchbase-cli|cbq"
        "|tarantoolctl|surreal"
        "|impala-shell|hive|beeline|presto|trino|snowsql|mssql-cli|iredis|edgedb|dolt|memcached-tool|turso|rethinkdb",
        [
            Does(
                Effect.DATABASE_LOSS,
                texts=STATEMENTS,
                says=LOSES,
                match=(
                    "psql -c 'DROP TABLE x'",
                    "mysql --execute='TRUNCATE TABLE x' y",
                    "redis-cli FLUSHALL",
                    "mongo --eval 'db.x.remove({})'",
                    "clickhouse client --query 'DROP DATABASE x'",
                ),
                not_match=("psql -c 'SELECT 1'", "redis-cli GET x", "sqlite3 x.db .schema"),
            ),
            Does(
                Effect.RISKY_CODE,
                texts=RUNS,
                says="have the database run programs or touch files",
                match=("psql -c \"COPY x TO PROGRAM 'sh'\"",),
                not_match=("psql -c 'COPY x TO STDOUT'",),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                given="-h --host",
                values=r"^(?!localhost|127\.|/|::1|db$|postgres$|mysql$|redis$|mongo$)",
                texts=r"(?i)\b(insert\s+into|update\s+\S+\s+set|alter\s+table|create\s+(table|index|role|user)"
                r"|set\s+\S)",
                says="change a database of another machine",
                match=("psql -h db.prod -c 'UPDATE x SET a=1 WHERE b=2'",),
                not_match=("psql -h localhost -c 'UPDATE x SET a=1 WHERE b=2'", "psql -h db.prod -c 'SELECT 1'"),
            ),
            Does(
                Effect.CLOUD_CHANGE,
                words=r"^\0|^\w+://(?![^/]*(localhost|127\.))",
                texts=r"(?i)\b(insert\s+into|update\s+\S+\s+set|alter\s+table|create\s+(table|index|role|user))",
                says="change a database of another machine",
                match=("psql $STAGING_URL -c 'UPDATE x SET a=1 WHERE b=2'",),
                not_match=("psql app_dev -c 'UPDATE x SET a=1 WHERE b=2'", "psql $STAGING_URL -c 'SELECT 1'"),
            ),
            Does(
                Effect.DATABASE_LOSS,
                texts=GRANTS,
                says="give somebody the whole database",
                match=("psql -c 'ALTER USER x WITH SUPERUSER'",),
                not_match=("psql -c 'SELECT * FROM grants'",),
            ),
        ],
        takes="-h -U -P -d --host --port --username --dbname -u -c --command",  # -p is a flag to mysql
    ),
    Program(
        "pg_restore|mongorestore|redis-cli|valkey-cli|mysqlimport",
        [
            Does(
                Effect.CLOUD_CHANGE,
                given="-h --host -u --uri",
                values=r"^(?!localhost|127\.|/|::1|redis$|db$|mongo$|(\w+://)?([^/@]*@)?(localhost|127\.))",
                words=r"(?i)^(set|hset|lpush|rpush|sadd|zadd|incr|expire|rename)$|\.(dump|pgc|sql|gz|bson|csv)$|/$",
                says="change a database of another machine",
                match=(
                    "redis-cli -h prod SET x y",
                    "pg_restore -h prod -d app x.dump",
                    "mongorestore --host prod dump/",
                    "mongorestore --uri mongodb://prod/x dump/",
                    "redis-cli -u redis://prod SET x y",
                ),
                not_match=("redis-cli SET x y", "pg_restore -d app x.dump", "redis-cli -h prod GET x"),
            )
        ],
        takes="-h --host -u --uri -p -n -a -d -U",
    ),
    Program(
        "redis-cli|valkey-cli|iredis|influx|bq",
        [
            Does(
                Effect.DATABASE_LOSS,
                words=r"(?i)^(del|unlink|rm|delete|flush.*|config|debug|shutdown|slaveof|replicaof|eval|module)$",
                says=LOSES,
                match=("redis-cli DEL x", "redis-cli CONFIG SET dir /x", "bq rm -r x", "influx delete --bucket x"),
                not_match=("redis-cli GET x", "redis-cli --scan"),
            )
        ],
        takes="-h",
    ),
    Program(
        "sqlite3|duckdb",
        [Does(Effect.READ, "first", match=("sqlite3 wallet.dat .dump",))],
        takes="-cmd -init -separator",
        long_style=True,
    ),
    Program(
        "dropdb",
        [
            Does(
                Effect.DATABASE_RESET,
                words=r"(?i)(^|[_-])(test|dev|tmp|local)([_-]|$)",
                says="empty a database",
                match=("dropdb --if-exists app_test", "dropdb dev-x"),
                not_match=("createdb app_test",),
            ),
            Does(
                Effect.DATABASE_LOSS,
                words=r"(?i)^(?!(.*[_-])?(test|dev|tmp|local)([_-]|$))",
                says="delete a database",
                match=("dropdb x", "dropdb latest", "dropdb -h db devices"),
                not_match=("dropdb app_test",),
            ),
        ],
        takes="-h -U -p -u --maintenance-db",
    ),
    Program(
        "dropuser|pg_resetwal|pg_dropcluster|mongodrop",
        [Does(Effect.DATABASE_LOSS, words=r".", says="delete a database", match=("dropuser x", "pg_resetwal -f /x"))],
    ),
    Program(
        "mysqladmin|mariadb-admin",
        [
            Does(
                Effect.DATABASE_LOSS,
                words=r"^(drop|shutdown|password|flush-.*|kill|reload)$",
                says=LOSES,
                match=("mysqladmin -u root drop x",),
                not_match=("mysqladmin status", "mysqladmin ping"),
            )
        ],
    ),
    Program(
        "pg_ctl|pg_ctlcluster",
        [
            Does(
                Effect.SERVICES,
                words=r"^(stop|restart|kill|promote|initdb)$",
                says="stop a database",
                match=("pg_ctl stop -m immediate",),
                not_match=("pg_ctl status",),
            )
        ],
    ),
    Program(
        "pg_restore|mongorestore",
        [
            Does(
                Effect.DATABASE_RESET,
                given="-c --clean --drop",
                says="empty a database",
                match=("pg_restore --clean -d x y.dump", "mongorestore --drop d"),
                not_match=("pg_restore -l y.dump",),
            )
        ],
    ),
    Program(
        "etcdctl|consul kv|kafka-topics|kafka-topics.sh|kafka-delete-records|kafka-delete-records.sh|kafka-configs"
        "|kafka-configs.sh|kafka-consumer-groups|kafka-consumer-groups.sh|zkCli.sh|zookeeper-shell|rabbitmqadmin|kcat",
        [
            Does(
                Effect.DATABASE_LOSS,
                words=r"^(del|delete|deleteall|rmr|purge|defrag)$",
                says=LOSES,
                match=("etcdctl del --prefix ''", "consul kv delete -recurse ''", "zkCli.sh deleteall /x"),
                not_match=("etcdctl get x", "consul kv get x"),
            ),
            Does(
                Effect.DATABASE_LOSS,
                given="--reset-offsets --delete-offsets --delete-config",
                says=LOSES,
                match=("kafka-topics --delete --topic x",),
                not_match=("kafka-topics --list",),
            ),
        ],
        takes="--topic",
    ),
    Program(
        "hdfs dfs|hadoop fs|hdfs",
        [
            Does(
                Effect.CLOUD_LOSS,
                given="-rm -rmr -rmdir -expunge -truncate -skipTrash -deleteSnapshot -format",
                says="delete from the file system of a cluster",
                match=("hdfs dfs -rm -r /data", "hadoop fs -rmr /x", "hdfs namenode -format"),
                not_match=("hdfs dfs -ls /",),
            )
        ],
        long_style=True,
    ),
    Program(
        "restic|borg|borgmatic|duplicity|duplicacy|kopia|bup|rdiff-backup|tarsnap|rsnapshot|attic|snapper"
        "|timeshift|bacula|bconsole"
        "|vssadmin|wbadmin|velero|barman|pgbackrest|wal-g|sanoid|syncoid|btrbk|proxmox-backup-client|duply"
        "|burp|urbackupclientctl",
        [
            Does(
                Effect.CLOUD_LOSS,
                words=BACKUPS,
                unless="--dry-run -n",
                says="delete backups",
                match=("restic forget latest", "borg prune r", "vssadmin delete shadows", "snapper delete 1"),
                not_match=("restic snapshots", "borg list r", "restic forget --dry-run latest"),
            ),
            Does(
                Effect.CLOUD_LOSS,
                given="--delete-all --prune --remove-older-than",
                unless="--dry-run -n",
                says="delete backups",
                match=("timeshift --delete-all", "rdiff-backup --remove-older-than 1D x"),
                not_match=("timeshift --list",),
            ),
        ],
        takes="-r",
    ),
    Program(
        "zfs|zpool|btrfs|bcachefs|lvm|stratis|vdo|xfs_admin|xfs_repair|mdadm|multipath",
        [
            Does(
                Effect.FORMAT,
                words=r"^(destroy|rollback|delete|remove|detach|offline|labelclear|create|replace|promote"
                r"|rename|import|export"
                r"|add|attach|split|receive|recv|set|lvremove|vgremove|pvremove|lvreduce|rescue|check|restore|device)$",
                says="change or destroy file systems or snapshots",
                match=(
                    "zfs destroy -r tank/x",
                    "btrfs subvolume delete /mnt/x",
                    "zfs rollback tank@x",
                    "zpool export tank",
                ),
                not_match=("zfs list", "btrfs filesystem usage /", "zpool status"),
            )
        ],
    ),
    Program(
        "op|vault|bao|pass|bw|lpass|security|secret-tool|gopass|chamber|doppler|keyring|infisical|sops"
        "|keepassxc-cli|rbw|dashlane"
        "|credstash|envchain|teller|kpcli|nordpass|protonpass|berglas",
        [
            Does(
                Effect.CLOUD_LOSS,
                words=r"^(delete|rm|remove|destroy|purge|disable|seal|revoke|metadata-delete|step-down|rekey"
                r"|rotate|undelete"
                r"|generate-root|unseal)$",
                says="delete secrets, or lock everybody out",
                match=("vault secrets disable x", "vault operator seal", "vault kv metadata delete x", "pass rm x"),
                not_match=("vault status",),
            ),
            Does(
                Effect.SHOW_SECRETS,
                words=r"^(item|kv|find-.*|dump-keychain|lookup|secrets|run|ls|list|unlock|token|login|search)$",
                says="show what secrets there are",
                match=("vault kv list secret", "op item list", "pass ls", "vault token lookup", "bw unlock"),
                not_match=("vault status",),
            ),
        ],
    ),
    Program(
        "security|secret-tool|ksecretpass|kwallet-query|mimipenguin|lazagne|hashdump",
        [
            Does(
                Effect.TAKE_KEYS,
                words=r"^(find-\w+-password|dump-keychain|export|lookup|search|dump)$",
                says="show secrets",
                match=("security find-generic-password -w", "secret-tool lookup a b"),
                not_match=("security list-keychains",),
            )
        ],
    ),
    Program(
        "gpg|gpg2",
        [
            Does(
                Effect.CONFIGURE_TOOL,
                given="--delete-keys --edit-key --sign-key --lsign-key --generate-key"
                " --gen-key --recv-keys"
                " --quick-generate-key --full-generate-key --import-ownertrust --send-keys --keyserver",
                says="change whom gpg knows",
                match=("gpg --import x.asc", "gpg --recv-keys 1"),
                not_match=("gpg --verify x.sig", "gpg --list-keys"),
            ),
            Does(
                Effect.TAKE_KEYS,
                given="--export-secret-keys --export-secret-subkeys --export-ssh-key",
                unless="--export",  # which would be read as short for the others
                says="show secret keys",
                match=("gpg --export-secret-keys",),
                not_match=("gpg --export me",),
            ),
            Does(
                Effect.TAKE_KEYS,
                given="--delete-secret-keys --delete-secret-and-public-key",
                says="delete secret keys",
                match=("gpg --delete-secret-keys me",),
                not_match=("gpg --list-secret-keys",),
            ),
        ],
    ),
)
