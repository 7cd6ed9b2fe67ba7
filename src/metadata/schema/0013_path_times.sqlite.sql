-- For explanations. When the kept file was stored; NULL for one of an older larder.
ALTER TABLE nar ADD COLUMN kept_at_ms INTEGER;

-- The newest evictions of narinfos. Ids grow, and a lookup scans it: an index costs each eviction.
CREATE TABLE evicted_path (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  hash TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) STRICT;
