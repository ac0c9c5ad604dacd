"""What the PostgreSQL store says to its server: the schema, step by step, and every statement.

Keys are kept as BLAKE2b digests of 32 bytes: a key of any length and of any characters fits an
index, and the record, which holds the key itself, is compared after it was read. A row that is
replaced gets a new number, so a higher number is a newer answer.

Vectors of all embedders share one column without a dimension. A *space* is one scope's vectors by
one embedder: a small number that entries carry. Small spaces are scanned, which is exact and needs
an index on that number only. A space that grew large gets an HNSW index of its own, partial and
cast to its dimension: no vector of another scope or embedder is in it, so no filter costs it
recall.
"""

# ruff: noqa: S608 - what is put into the text is a checked name, or a whole number

from __future__ import annotations

import re
from hashlib import blake2b

from stepcache._errors import ConfigurationError

__all__ = ["MAX_INDEXED_DIMENSION", "MIGRATIONS", "TRIGGERS", "Statements", "digest"]

MAX_INDEXED_DIMENSION = 2000
"""The most that pgvector's HNSW takes for single precision."""

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}")

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE {s}.spaces (
            id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            scope bytea NOT NULL,
            fingerprint bytea NOT NULL,
            dimension integer NOT NULL,
            indexed boolean NOT NULL DEFAULT false,
            UNIQUE (scope, fingerprint, dimension)
        )""",
        "CREATE SEQUENCE {s}.numbers",
        """CREATE TABLE {s}.entries (
            number bigint PRIMARY KEY DEFAULT nextval('{s}.numbers'),
            scope bytea NOT NULL,
            exact_key bytea NOT NULL,
            canonical_key bytea,
            entry_id bytea NOT NULL,
            created double precision NOT NULL,
            expires double precision,
            checksum bigint NOT NULL,
            record bytea NOT NULL,
            space integer,
            embedding vector,
            UNIQUE (scope, exact_key)
        )""",
        # A scan reads vectors, not records: the records leave the row first.
        "ALTER TABLE {s}.entries ALTER embedding SET STORAGE MAIN",
        "CREATE INDEX entries_by_canonical_key ON {s}.entries (scope, canonical_key, number)"
        " WHERE canonical_key IS NOT NULL",
        "CREATE INDEX entries_by_id ON {s}.entries (entry_id)",
        "CREATE INDEX entries_by_space ON {s}.entries (space) WHERE space IS NOT NULL",
        "CREATE INDEX entries_by_deadline ON {s}.entries (expires) WHERE expires IS NOT NULL",
        "CREATE SEQUENCE {s}.tokens",
        """CREATE TABLE {s}.leases (
            key bytea PRIMARY KEY,
            token bigint NOT NULL,
            holder text NOT NULL,
            until timestamptz NOT NULL
        )""",
        "CREATE TABLE {s}.upkeep (single boolean PRIMARY KEY DEFAULT true CHECK (single),"
        " last timestamptz NOT NULL)",
        "INSERT INTO {s}.upkeep (last) VALUES ('-infinity')",
        # Above so many changes of one statement, one word to forget everything is kinder.
        """CREATE FUNCTION {s}.tell() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF (SELECT count(*) FROM changed) > 100 THEN
                PERFORM pg_notify('{s}_changes', '*');
            ELSE
                PERFORM pg_notify('{s}_changes', encode(scope, 'hex') || encode(exact_key, 'hex')
                    || coalesce(encode(canonical_key, 'hex'), '')) FROM changed;
            END IF;
            RETURN NULL;
        END $$""",
    ),
    # Whose an entry is, for what one namespace may keep. Records are sealed from this version on.
    (
        "ALTER TABLE {s}.entries ADD COLUMN tenant bytea",
        "CREATE INDEX entries_by_tenant ON {s}.entries (tenant, number) WHERE tenant IS NOT NULL",
    ),
)
"""The schema's versions: the statements that lead from each to the next."""

TRIGGERS = (
    "CREATE TRIGGER tell_insert AFTER INSERT ON {s}.entries"
    " REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {s}.tell()",
    "CREATE TRIGGER tell_delete AFTER DELETE ON {s}.entries"
    " REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {s}.tell()",
    "CREATE TRIGGER tell_before AFTER UPDATE ON {s}.entries"
    " REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {s}.tell()",
    "CREATE TRIGGER tell_after AFTER UPDATE ON {s}.entries"
    " REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {s}.tell()",
)

# A clock given to the store counts; else the server's, which all hosts share.
_NOW = "coalesce(%(now)s::float8, extract(epoch FROM statement_timestamp())::float8)"
_LIVE = f"(expires IS NULL OR expires > {_NOW})"
_LATER = "clock_timestamp() + %(seconds)s::float8 * interval '1 s'"
_ROW = "number, checksum, record"
_READ = f"{_ROW}, {_NOW}"


def digest(text: str) -> bytes:
    """What a text is kept and compared as; any text, unpaired surrogates included."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


class Statements:
    """The statements for one schema's name, which is part of their text.

    Raises:
        ConfigurationError: A name that would need quoting.
    """

    def __init__(self, schema: str) -> None:
        if not isinstance(schema, str) or not _NAME.fullmatch(schema):
            raise ConfigurationError(
                f"schema is {schema!r}: use up to 40 small letters, digits and underscores"
            )
        s = self.schema = schema
        self.version = f"SELECT coalesce(max(version), 0) FROM {s}.migrations"
        self.migrated = f"INSERT INTO {s}.migrations (version) VALUES (%(version)s)"
        self.get = (
            f"SELECT {_READ} FROM ("
            f"(SELECT 0 AS tier, {_ROW} FROM {s}.entries"
            f" WHERE scope = %(scope)s AND exact_key = %(key)s AND {_LIVE})"
            f" UNION ALL (SELECT 1, {_ROW} FROM {s}.entries"
            f" WHERE scope = %(scope)s AND canonical_key = %(key)s AND {_LIVE}"
            f" ORDER BY number DESC LIMIT %(limit)s)"
            f") AS found ORDER BY tier, number DESC LIMIT %(limit)s"
        )
        self.spaces = (
            f"SELECT id, dimension, indexed, EXISTS (SELECT FROM {s}.entries"
            f" WHERE space = spaces.id AND {_LIVE}) FROM {s}.spaces"
            " WHERE scope = %(scope)s AND fingerprint = %(fingerprint)s"
        )
        self.add_space = (
            f"INSERT INTO {s}.spaces (scope, fingerprint, dimension)"
            " VALUES (%(scope)s, %(fingerprint)s, %(dimension)s) ON CONFLICT DO NOTHING"
        )
        self.now = "SELECT extract(epoch FROM clock_timestamp())::float8"
        self.put = self._put("")
        self.put_fenced = self._put(
            f" FROM (SELECT FROM {s}.leases WHERE key = %(lease)s AND token = %(token)s"
            " FOR SHARE) AS held"
        )
        self.drop_expired = (
            f"DELETE FROM {s}.entries WHERE number IN (SELECT number FROM {s}.entries"
            f" WHERE expires <= {_NOW} ORDER BY expires LIMIT %(limit)s FOR UPDATE SKIP LOCKED)"
        )
        self.remove = (
            f"WITH gone AS (DELETE FROM {s}.entries WHERE entry_id = %(id)s RETURNING expires)"
            f" SELECT count(*) FROM gone WHERE {_LIVE}"
        )
        self.newest = f"SELECT max(number) FROM {s}.entries"
        self.clear = (
            f"WITH gone AS (DELETE FROM {s}.entries WHERE number IN (SELECT number"
            f" FROM {s}.entries WHERE (%(scope)s::bytea IS NULL OR scope = %(scope)s)"
            " AND number <= %(newest)s LIMIT %(limit)s) RETURNING expires)"
            f" SELECT count(*), count(*) FILTER (WHERE {_LIVE}) FROM gone"
        )
        self.count = f"SELECT count(*) FROM {s}.entries WHERE {_LIVE}"
        self.size = (
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c"
            f" WHERE c.relnamespace = '{s}'::regnamespace AND c.relkind = 'r'"
        )
        self.count_scope = f"{self.count} AND scope = %(scope)s"
        self.find = (
            f"SELECT {_READ} FROM {s}.entries WHERE entry_id = %(id)s AND {_LIVE}"
            " ORDER BY number DESC LIMIT 16"
        )
        self.page = (
            f"SELECT {_READ} FROM {s}.entries WHERE number > %(after)s AND {_LIVE}"
            " ORDER BY number LIMIT %(limit)s"
        )
        # A record may have been put anew since it was read: then it has another number.
        self.drop = f"DELETE FROM {s}.entries WHERE number = ANY(%(numbers)s)"
        self.reseal = (
            f"UPDATE {s}.entries SET checksum = %(checksum)s::bigint, record = %(record)b::bytea,"
            " embedding = CASE WHEN %(bare)s THEN NULL ELSE embedding END,"
            " space = CASE WHEN %(bare)s THEN NULL ELSE space END"
            " WHERE number = %(number)s AND checksum = %(old)s RETURNING 1"
        )
        self.crowd = (
            f"DELETE FROM {s}.entries WHERE number IN (SELECT number FROM {s}.entries"
            " WHERE tenant = %(tenant)s ORDER BY number DESC OFFSET %(most)s"
            " FOR UPDATE SKIP LOCKED)"
        )
        self.acquire = (
            f"INSERT INTO {s}.leases AS held (key, token, holder, until) VALUES (%(key)s,"
            f" nextval('{s}.tokens'), %(holder)s, {_LATER})"
            f" ON CONFLICT (key) DO UPDATE SET token = excluded.token, holder = excluded.holder,"
            " until = excluded.until"
            " WHERE held.until <= clock_timestamp() OR held.holder = excluded.holder"
            " RETURNING token"
        )
        self.renew = (
            f"UPDATE {s}.leases SET until = {_LATER}"
            " WHERE key = %(key)s AND token = %(token)s AND until > '-infinity' RETURNING 1"
        )
        self.release = (
            f"UPDATE {s}.leases SET until = '-infinity'"
            " WHERE key = %(key)s AND token = %(token)s RETURNING 1"
        )
        self.old_leases = (
            f"DELETE FROM {s}.leases WHERE key IN (SELECT key FROM {s}.leases"
            " WHERE until < clock_timestamp() - interval '1 hour' LIMIT 10000"
            " FOR UPDATE SKIP LOCKED)"
        )
        self.turn = (
            f"UPDATE {s}.upkeep SET last = clock_timestamp()"
            " WHERE last < clock_timestamp() - %(seconds)s::float8 * interval '1 s' RETURNING 1"
        )
        self.beyond = (
            f"DELETE FROM {s}.entries WHERE number IN (SELECT number FROM {s}.entries"
            f" ORDER BY number LIMIT least(10000, greatest(0, (SELECT count(*) FROM {s}.entries)"
            " - %(most)s)) FOR UPDATE SKIP LOCKED)"
        )
        self.large_spaces = (
            f"SELECT id, dimension FROM {s}.spaces JOIN (SELECT space, count(*) AS size"
            f" FROM {s}.entries WHERE space IS NOT NULL GROUP BY space HAVING count(*) > %(above)s)"
            " AS large ON space = id WHERE NOT indexed AND dimension <= %(widest)s"
            f" ORDER BY size DESC LIMIT greatest(0, %(most)s -"
            f" (SELECT count(*) FROM {s}.spaces WHERE indexed))"
        )
        self.mark_indexed = f"UPDATE {s}.spaces SET indexed = true WHERE id = %(id)s"
        self.has_triggers = (
            "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal"
            f" AND tgrelid = '{s}.entries'::regclass"
        )

    def search(self, space: int, dimension: int, indexed: bool) -> str:
        """Nearest first. A partial index is recognised by the space's number in the text only."""
        where = f"space = {space:d}" if indexed else "space = %(space)s"
        column = f"embedding::vector({dimension:d})" if indexed else "embedding"
        return (
            f"SELECT {_READ}, embedding, -(embedding <#> %(vector)b)"
            f" FROM {self.schema}.entries WHERE {where}"
            f" AND {_LIVE} ORDER BY {column} <#> %(vector)b LIMIT %(limit)s"
        )

    def build_index(self, space: int, dimension: int) -> tuple[str, ...]:
        """A space's own HNSW index, built while others read and write; inner products of unit
        vectors are cosines."""
        name = f"entries_hnsw_{space:d}"
        return (
            # What an interrupted build left behind is not valid and would be in the way.
            f"DROP INDEX CONCURRENTLY IF EXISTS {self.schema}.{name}",
            f"CREATE INDEX CONCURRENTLY {name} ON {self.schema}.entries"
            f" USING hnsw ((embedding::vector({dimension:d})) vector_ip_ops)"
            f" WITH (m = 16, ef_construction = 64) WHERE space = {space:d}",
        )

    def _put(self, fence: str) -> str:
        columns = (
            *("canonical_key", "entry_id", "created", "expires", "checksum", "record"),
            *("space", "embedding", "tenant"),
        )
        changes = ", ".join(f"{column} = excluded.{column}" for column in columns)
        return (
            f"INSERT INTO {self.schema}.entries (scope, exact_key, {', '.join(columns)})"
            f" SELECT %(scope)s::bytea, %(key)s::bytea, %(canonical)s::bytea, %(id)s::bytea,"
            f" %(created)s::float8, %(expires)s::float8, %(checksum)s::bigint, %(record)b::bytea,"
            f" %(space)s::integer, %(vector)b::vector, %(tenant)b::bytea{fence}"
            f" ON CONFLICT (scope, exact_key) DO UPDATE SET"
            f" number = nextval('{self.schema}.numbers'), {changes} RETURNING 1"
        )
