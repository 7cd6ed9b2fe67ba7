-- The id that the store of NAR files has too: in another store, no object belongs to these rows.
CREATE TABLE storage_id (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL
) STRICT;
