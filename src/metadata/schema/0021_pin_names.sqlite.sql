-- 0 for a root that names alone hold: it goes with the last of them.
ALTER TABLE pin_root ADD COLUMN by_hand INTEGER NOT NULL DEFAULT 1;

-- The roots that names hold. The newest root of a name has the greatest id. A root that is unpinned
-- leaves all its names.
CREATE TABLE pin_name (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  hash TEXT NOT NULL REFERENCES pin_root (hash),
  name TEXT NOT NULL,
  pinned_at_ms INTEGER NOT NULL,
  -- The number of roots that the name keeps, as it was last given.
  keep INTEGER NOT NULL,
  UNIQUE (hash, name)
) STRICT;
CREATE INDEX pin_name_by_name ON pin_name (name, id);

CREATE TRIGGER pin_root_removed AFTER DELETE ON pin_root BEGIN
  DELETE FROM pin_name WHERE hash = old.hash;
END;
