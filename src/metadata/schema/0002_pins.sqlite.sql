-- By hash, not by path: a pin outlasts the eviction of its root, and protects it again when it
-- comes back. Ids grow in the order of pinning.
CREATE TABLE pin_root (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  hash TEXT NOT NULL UNIQUE,
  pinned_at_ms INTEGER NOT NULL
) STRICT;
