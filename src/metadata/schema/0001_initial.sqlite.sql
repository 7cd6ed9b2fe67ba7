-- Every store path that was ever heard of, kept or only referred to. Integer ids keep the edges
-- small, and paths of one closure near each other.
CREATE TABLE path (
  id INTEGER PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE
) STRICT;

-- Every NAR file that a narinfo of ours ever named. Rows outlive the file and the narinfo: a
-- client may hold our narinfo for a month and ask for the NAR then.
CREATE TABLE nar (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  nar_hash TEXT NOT NULL,
  nar_size INTEGER NOT NULL,
  file_hash TEXT,
  file_size INTEGER,
  -- The kept file; NULL if there is none.
  kept_hash TEXT,
  kept_size INTEGER,
  heard_at_s INTEGER NOT NULL
) STRICT;

CREATE TABLE nar_source (
  nar_id INTEGER NOT NULL REFERENCES nar (id),
  upstream TEXT NOT NULL,
  location TEXT NOT NULL,
  PRIMARY KEY (nar_id, upstream)
) STRICT, WITHOUT ROWID;

CREATE TABLE narinfo (
  path_id INTEGER PRIMARY KEY REFERENCES path (id),
  nar_id INTEGER NOT NULL REFERENCES nar (id),
  body TEXT NOT NULL,
  trusted INTEGER NOT NULL,
  own_public_key TEXT,
  own_signature TEXT
) STRICT;
CREATE INDEX narinfo_by_nar ON narinfo (nar_id);

CREATE TABLE reference (
  src INTEGER NOT NULL REFERENCES path (id),
  dst INTEGER NOT NULL REFERENCES path (id),
  PRIMARY KEY (src, dst)
) STRICT, WITHOUT ROWID;

-- Narrow and apart from the text: it is written all the time, and sorted when space is needed.
CREATE TABLE narinfo_use (
  path_id INTEGER PRIMARY KEY REFERENCES path (id),
  used_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX narinfo_use_by_age ON narinfo_use (used_at_ms);
