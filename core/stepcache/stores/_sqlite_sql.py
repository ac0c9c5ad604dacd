"""The SQLite store's statements."""

# ruff: noqa: S608 - put together from constants of this module

from __future__ import annotations

# Not invalid by its namespace; a table of the few that are being emptied.
_CURRENT = "number > coalesce((SELECT epoch FROM epochs WHERE tenant = entries.tenant), 0)"
_LIVE = f"(expires IS NULL OR expires > ?) AND number > (SELECT epoch FROM totals) AND {_CURRENT}"

GET_EXACT = (
    f"SELECT number, checksum, record FROM entries WHERE scope = ? AND exact_key = ? AND {_LIVE}"
)
GET_CANONICAL = (
    "SELECT number, checksum, record FROM entries WHERE scope = ? AND canonical_key = ?"
    f" AND {_LIVE} ORDER BY number DESC"
)
FIND = (
    "SELECT scope, number, checksum, record FROM entries WHERE entry_id = ?"
    f" AND {_LIVE} ORDER BY number DESC"
)
# One lower bound: of two, SQLite seeks by the one it likes and walks to the other.
_BEYOND = (
    "number > max(?, (SELECT epoch FROM totals)) AND (expires IS NULL OR expires > ?)"
    f" AND {_CURRENT}"
)
ALL_ROWS = (
    "SELECT number, scope, checksum, record, fingerprint, vector FROM entries"
    f" WHERE {_BEYOND} ORDER BY number LIMIT ?"
)
GET_NUMBER = (
    "SELECT number, checksum, record, vector FROM entries"
    " WHERE number = ? AND scope = ? AND fingerprint = ?"
    f" AND {_LIVE}"
)
PUT = (
    "INSERT OR REPLACE INTO entries (scope, exact_key, canonical_key, entry_id, fingerprint,"
    " expires, checksum, record, vector, tenant) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
# A record may have been put anew, or prolonged, since it was read.
DROP = "DELETE FROM entries WHERE number = ? AND checksum IS ?"
RESEAL = "UPDATE entries SET checksum = ?, record = ?, vector = ? WHERE number = ? AND checksum = ?"
CROWD = (
    "DELETE FROM entries WHERE number IN (SELECT number FROM entries WHERE tenant = ?"
    " ORDER BY number DESC LIMIT -1 OFFSET ?)"
)
LENGTHS = (
    "SELECT length(vector), (SELECT count(*) FROM entries WHERE scope = ?1 AND fingerprint = ?2)"
    " FROM (SELECT vector FROM entries WHERE scope = ?1 AND fingerprint = ?2 LIMIT 101)"
    " GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
)
BEYOND = (
    "SELECT number, vector FROM entries WHERE scope = ? AND fingerprint = ?"
    f" AND {_BEYOND} ORDER BY number"
)
NUMBERS = f"SELECT number FROM entries WHERE scope = ? AND fingerprint = ? AND {_LIVE}"
# Reads an index only; some of them may be dead.
ALL_NUMBERS = "SELECT number FROM entries WHERE scope = ? AND fingerprint = ? ORDER BY number"
VECTOR = "SELECT vector FROM entries WHERE number = ?"
LIVE_VECTOR = f"SELECT number, vector FROM entries WHERE number = ? AND {_LIVE}"
# The order is forced: the few that are being emptied first, then their rows by an index.
_INVALID_OF_ONE = (
    "SELECT number FROM epochs CROSS JOIN entries"
    " ON entries.tenant = epochs.tenant AND number <= epochs.epoch"
)
_DEAD = (
    "SELECT number FROM entries WHERE expires <= ?1"
    " UNION SELECT number FROM entries WHERE number <= (SELECT epoch FROM totals)"
    f" UNION {_INVALID_OF_ONE}"
)
# All minus dead: what is kept of all, and the rows that are dead.
COUNT = f"SELECT entries - (SELECT count(*) FROM ({_DEAD})) FROM totals"
COUNT_SCOPE = (
    "SELECT (SELECT count(*) FROM entries WHERE scope = ?2)"
    f" - (SELECT count(*) FROM ({_DEAD}) JOIN entries USING (number) WHERE +scope = ?2)"
)
SOME_DEAD = (
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM entries WHERE expires <= ?)"
    " OR EXISTS (SELECT 1 FROM entries WHERE number <= (SELECT epoch FROM totals))"
    " OR EXISTS (SELECT 1 FROM epochs)"
)
DROP_EXPIRED = (
    "DELETE FROM entries WHERE number IN (SELECT number FROM entries WHERE expires <= ? LIMIT ?)"
)
DROP_INVALID = (
    "DELETE FROM entries WHERE number IN"
    " (SELECT number FROM entries WHERE number <= (SELECT epoch FROM totals) LIMIT ?)"
)
DROP_INVALID_OF_ONE = f"DELETE FROM entries WHERE number IN ({_INVALID_OF_ONE} LIMIT ?)"
# Numbers only rise, so what holds of nothing now holds of nothing later.
DROP_EPOCHS = (
    "DELETE FROM epochs WHERE NOT EXISTS (SELECT 1 FROM entries"
    " WHERE entries.tenant = epochs.tenant AND number <= epochs.epoch)"
)
INVALIDATE = "UPDATE totals SET epoch = coalesce((SELECT max(number) FROM entries), epoch)"
INVALIDATE_ONE = (
    "INSERT OR REPLACE INTO epochs (tenant, epoch)"
    " SELECT ?, coalesce((SELECT max(number) FROM entries), 0)"
)
PROLONG = (
    "UPDATE entries SET expires = ?, checksum = ?, record = ? WHERE number = ? AND checksum = ?"
)
RANK_ALL = "INSERT OR IGNORE INTO uses SELECT number, 0, 0 FROM entries"
RANK_NEW = "INSERT OR REPLACE INTO uses (number, rank, uses) VALUES (?, ?, 0)"
RANK_NEW_BY_SIZE = (
    "INSERT OR REPLACE INTO uses (number, rank, uses)"
    " SELECT ?1, inflation + 1e6 / ?2, 0 FROM totals"
)
RANK_USED = "UPDATE uses SET uses = uses + ?1, rank = max(rank, ?2) WHERE number = ?3"
RANK_USED_BY_SIZE = (
    "UPDATE uses SET uses = uses + ?1, rank = (SELECT inflation FROM totals)"
    " + (uses + ?1 + 1) * 1e6 / (SELECT length(record) + coalesce(length(vector), 0)"
    " FROM entries WHERE entries.number = uses.number) WHERE number = ?3 AND ?2 IS NOT NULL"
)
WORST = "SELECT number, rank FROM uses WHERE number != ? ORDER BY rank, number LIMIT ?"
OLDEST = "SELECT number, 0 FROM entries WHERE number != ? ORDER BY number LIMIT ?"
RECOUNT = (
    "UPDATE totals SET (entries, bytes) = (SELECT count(*),"
    " coalesce(sum(length(record) + coalesce(length(vector), 0)), 0) FROM entries)"
)
INFLATE = "UPDATE totals SET inflation = max(inflation, ?)"
