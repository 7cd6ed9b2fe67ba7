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
  -- How many protected narinfos lead to the file.
  protected_by INTEGER NOT NULL DEFAULT 0,
  -- A stored object has a name of its own: the NAR's name and the id of its publishing, which is
  -- empty for imported files.
  kept_id TEXT NOT NULL DEFAULT '',
  -- Only the store reads the text. NULL: the first request for the file hashes it.
  kept_seal TEXT,
  -- For explanations. When the kept file was stored; NULL where nobody knows.
  kept_at_ms INTEGER,
  -- When an upstream's narinfo last named the NAR file. NULL: none ever did.
  seen_at_ms INTEGER
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
-- Tells which paths nothing refers to any more.
CREATE INDEX reference_by_dst ON reference (dst);

-- Paths with references that no stored narinfo has: those that come in slices before their narinfo,
-- and those that a narinfo with many leaves behind. Nothing reads them but their removal.
CREATE TABLE reference_rest (
  path_id INTEGER PRIMARY KEY REFERENCES path (id)
) STRICT;

-- Narrow and apart from the text: it is written all the time, and sorted when space is needed.
CREATE TABLE narinfo_use (
  path_id INTEGER PRIMARY KEY REFERENCES path (id),
  used_at_ms INTEGER NOT NULL,
  -- Whether the path is in protected_path: eviction reads the rest in the order of age.
  protected INTEGER NOT NULL DEFAULT 0,
  -- Whether the narinfo's NAR file is kept: only then eviction frees bytes.
  kept INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX narinfo_use_by_age ON narinfo_use (protected, kept, used_at_ms);

-- Every NAR that no narinfo names, kept or not, by its last use: eviction takes the kept ones,
-- retention the others.
CREATE TABLE loose_nar (
  nar_id INTEGER PRIMARY KEY REFERENCES nar (id),
  used_at_ms INTEGER NOT NULL,
  kept INTEGER NOT NULL DEFAULT 1,
  -- An uploaded NAR whose narinfo has not come stays until then; 0 for every other one. Eviction
  -- spares it, and it goes by its time.
  staged_until_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX loose_nar_by_age ON loose_nar (kept, used_at_ms);
CREATE INDEX loose_nar_by_stage ON loose_nar (staged_until_ms) WHERE staged_until_ms > 0;

-- NAR files that a crash may leave behind. A row is written before a file gets its name (size 0).
-- Another is written when larder gives a file up: its size counts until the file is gone. By
-- object: one may go while another of the same NAR comes.
CREATE TABLE pending_file (
  nar_id INTEGER NOT NULL REFERENCES nar (id),
  publish_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  size INTEGER NOT NULL,
  PRIMARY KEY (nar_id, publish_id)
) STRICT, WITHOUT ROWID;

-- By hash, not by path: a pin outlasts the eviction of its root, and protects it again when it
-- comes back. Ids grow in the order of pinning.
CREATE TABLE pin_root (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  hash TEXT NOT NULL UNIQUE,
  pinned_at_ms INTEGER NOT NULL
) STRICT;

-- Every path that a pin reaches, stored or not. `expanded` is 0 until its references are here too.
-- An unpinning starts a new generation from the pins that are left; what only older generations
-- reached goes when the new one is complete. Until then too much is protected, never too little.
CREATE TABLE protected_path (
  path_id INTEGER PRIMARY KEY REFERENCES path (id),
  generation INTEGER NOT NULL,
  expanded INTEGER NOT NULL,
  -- The last reference that the walk over the pins has visited, where it takes a path with many in
  -- slices.
  visited INTEGER NOT NULL DEFAULT -1
) STRICT;
CREATE INDEX protected_path_to_expand ON protected_path (path_id) WHERE expanded = 0;
CREATE INDEX protected_path_by_generation ON protected_path (generation);

-- One row: sums of the kept files, the paths that pins protect, and the files that are being
-- written or removed. The writes themselves keep all of it up to date: no scan ever counts.
CREATE TABLE stock (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  kept_bytes INTEGER NOT NULL,
  kept_files INTEGER NOT NULL,
  pending_bytes INTEGER NOT NULL,
  protected_bytes INTEGER NOT NULL,
  -- Numbers the walks over all pins, see protected_path.
  generation INTEGER NOT NULL,
  -- Counts the transactions that wrote more than uses, heartbeats, reservations and the history.
  -- When it has changed, other processes drop the rows that they hold in memory.
  revision INTEGER NOT NULL DEFAULT 0,
  -- The rows of both kinds of signed paths: a kind that is full takes no further one.
  uploaded_paths INTEGER NOT NULL DEFAULT 0,
  upstream_paths INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO stock (id, kept_bytes, kept_files, pending_bytes, protected_bytes, generation)
  VALUES (1, 0, 0, 0, 0, 1);

CREATE TRIGGER path_protected AFTER INSERT ON protected_path BEGIN
  UPDATE narinfo_use SET protected = 1 WHERE path_id = NEW.path_id;
END;
CREATE TRIGGER path_unprotected AFTER DELETE ON protected_path BEGIN
  UPDATE narinfo_use SET protected = 0 WHERE path_id = OLD.path_id;
END;

CREATE TRIGGER protected_use_changed AFTER UPDATE OF protected ON narinfo_use
WHEN OLD.protected <> NEW.protected BEGIN
  UPDATE nar SET protected_by = protected_by + NEW.protected - OLD.protected
  WHERE id = (SELECT nar_id FROM narinfo WHERE path_id = NEW.path_id);
END;
CREATE TRIGGER protected_use_added AFTER INSERT ON narinfo_use WHEN NEW.protected = 1 BEGIN
  UPDATE nar SET protected_by = protected_by + 1
  WHERE id = (SELECT nar_id FROM narinfo WHERE path_id = NEW.path_id);
END;
-- The narinfo is removed after its use.
CREATE TRIGGER protected_use_removed AFTER DELETE ON narinfo_use WHEN OLD.protected = 1 BEGIN
  UPDATE nar SET protected_by = protected_by - 1
  WHERE id = (SELECT nar_id FROM narinfo WHERE path_id = OLD.path_id);
END;
CREATE TRIGGER protected_narinfo_moved AFTER UPDATE OF nar_id ON narinfo
WHEN OLD.nar_id <> NEW.nar_id
  AND EXISTS (SELECT 1 FROM narinfo_use WHERE path_id = NEW.path_id AND protected = 1) BEGIN
  UPDATE nar SET protected_by = protected_by - 1 WHERE id = OLD.nar_id;
  UPDATE nar SET protected_by = protected_by + 1 WHERE id = NEW.nar_id;
END;

CREATE TRIGGER nar_kept_changed AFTER UPDATE OF kept_size ON nar
WHEN OLD.kept_size IS NOT NEW.kept_size BEGIN
  UPDATE stock SET
    kept_bytes = kept_bytes + ifnull(NEW.kept_size, 0) - ifnull(OLD.kept_size, 0),
    kept_files = kept_files + (NEW.kept_size IS NOT NULL) - (OLD.kept_size IS NOT NULL),
    protected_bytes = protected_bytes
      + (NEW.protected_by > 0) * (ifnull(NEW.kept_size, 0) - ifnull(OLD.kept_size, 0));
END;
CREATE TRIGGER nar_protected_changed AFTER UPDATE OF protected_by ON nar
WHEN NEW.kept_size IS NOT NULL AND (OLD.protected_by > 0) <> (NEW.protected_by > 0) BEGIN
  UPDATE stock SET protected_bytes = protected_bytes
    + ((NEW.protected_by > 0) - (OLD.protected_by > 0)) * NEW.kept_size;
END;

CREATE TRIGGER nar_kept_or_gone AFTER UPDATE OF kept_size ON nar
WHEN (OLD.kept_size IS NULL) <> (NEW.kept_size IS NULL) BEGIN
  UPDATE narinfo_use SET kept = NEW.kept_size IS NOT NULL
  WHERE path_id IN (SELECT path_id FROM narinfo WHERE nar_id = NEW.id);
END;
CREATE TRIGGER loose_nar_kept_or_gone AFTER UPDATE OF kept_size ON nar
WHEN (OLD.kept_size IS NULL) <> (NEW.kept_size IS NULL) BEGIN
  UPDATE loose_nar SET kept = NEW.kept_size IS NOT NULL WHERE nar_id = NEW.id;
END;
CREATE TRIGGER narinfo_moved AFTER UPDATE OF nar_id ON narinfo WHEN OLD.nar_id <> NEW.nar_id BEGIN
  UPDATE narinfo_use SET kept = (SELECT kept_size IS NOT NULL FROM nar WHERE id = NEW.nar_id)
  WHERE path_id = NEW.path_id;
END;

CREATE TRIGGER pending_file_added AFTER INSERT ON pending_file BEGIN
  UPDATE stock SET pending_bytes = pending_bytes + NEW.size;
END;
CREATE TRIGGER pending_file_changed AFTER UPDATE OF size ON pending_file BEGIN
  UPDATE stock SET pending_bytes = pending_bytes + NEW.size - OLD.size;
END;
CREATE TRIGGER pending_file_removed AFTER DELETE ON pending_file BEGIN
  UPDATE stock SET pending_bytes = pending_bytes - OLD.size;
END;

-- The documents of a binary cache beside narinfos and NARs: listings, logs, realisations, debuginfo.
-- An id is never used again, so that a reader of pieces cannot run into another document.
CREATE TABLE document (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  -- Relative to a binary cache's URL.
  path TEXT NOT NULL UNIQUE,
  upstream TEXT NOT NULL,
  content_type TEXT NOT NULL,
  content_encoding TEXT,
  tag TEXT NOT NULL,
  size INTEGER NOT NULL,
  -- 1 where the upstream is asked again from time to time.
  may_change INTEGER NOT NULL,
  checked_at_ms INTEGER NOT NULL,
  used_at_ms INTEGER NOT NULL,
  -- The NAR that a debuginfo document leads to.
  nar_name TEXT
) STRICT;
CREATE INDEX document_by_age ON document (used_at_ms);
CREATE INDEX document_by_nar ON document (nar_name) WHERE nar_name IS NOT NULL;

-- In pieces, so that a slow reader of a large one holds little memory.
CREATE TABLE document_piece (
  document_id INTEGER NOT NULL REFERENCES document (id),
  number INTEGER NOT NULL,
  bytes BLOB NOT NULL,
  PRIMARY KEY (document_id, number)
) STRICT;

-- One row: the bytes of all documents, kept up by the writes themselves.
CREATE TABLE document_stock (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  bytes INTEGER NOT NULL
) STRICT;
INSERT INTO document_stock VALUES (1, 0);

CREATE TRIGGER document_added AFTER INSERT ON document BEGIN
  UPDATE document_stock SET bytes = bytes + NEW.size;
END;
CREATE TRIGGER document_removed AFTER DELETE ON document BEGIN
  DELETE FROM document_piece WHERE document_id = OLD.id;
  UPDATE document_stock SET bytes = bytes - OLD.size;
END;

-- The signed facts of each path that larder has signed, by the SHA-256 of their fingerprint. A row
-- outlives its narinfo: an upload must not replace what larder has signed before. Nothing evicts
-- it. `uploaded` is 1 where no upstream has signed the path, only an uploader's token vouches.
CREATE TABLE signed_path (
  hash TEXT PRIMARY KEY,
  digest TEXT NOT NULL,
  uploaded INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TRIGGER signed_path_added AFTER INSERT ON signed_path BEGIN
  UPDATE stock SET uploaded_paths = uploaded_paths + NEW.uploaded,
    upstream_paths = upstream_paths + 1 - NEW.uploaded;
END;
CREATE TRIGGER signed_path_moved AFTER UPDATE OF uploaded ON signed_path
WHEN OLD.uploaded <> NEW.uploaded BEGIN
  UPDATE stock SET uploaded_paths = uploaded_paths + NEW.uploaded - OLD.uploaded,
    upstream_paths = upstream_paths - NEW.uploaded + OLD.uploaded;
END;
CREATE TRIGGER signed_path_forgotten AFTER DELETE ON signed_path BEGIN
  UPDATE stock SET uploaded_paths = uploaded_paths - OLD.uploaded,
    upstream_paths = upstream_paths - 1 + OLD.uploaded;
END;

-- The newest evictions of narinfos. Ids grow, and a lookup scans it: an index costs each eviction.
CREATE TABLE evicted_path (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  hash TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) STRICT;

-- The history of the cache: an amount for each figure and slot of time. larder deletes slots of a
-- tier that are too old, so the table stays at some three thousand rows.
CREATE TABLE history (
  tier TEXT NOT NULL,
  -- The slot's begin; 0 for the whole life.
  at_ms INTEGER NOT NULL,
  figure TEXT NOT NULL,
  amount INTEGER NOT NULL,
  PRIMARY KEY (tier, at_ms, figure)
) STRICT, WITHOUT ROWID;

-- Each process that shares the storage, with the bytes that it has reserved and not yet stored. A
-- member without a heartbeat is dead: another one removes its row, and so gives its bytes back.
CREATE TABLE member (
  id TEXT PRIMARY KEY,
  heartbeat_at_ms INTEGER NOT NULL,
  reserved_bytes INTEGER NOT NULL CHECK (reserved_bytes >= 0),
  -- Where the other members reach it; NULL: nowhere. They send their token to no other address.
  url TEXT
) STRICT, WITHOUT ROWID;

-- The last report of each member to the others, for displays. A dead member's row stays a while.
CREATE TABLE member_report (
  id TEXT PRIMARY KEY,
  reported_at_ms INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (octet_length(status) <= 16384)
) STRICT, WITHOUT ROWID;

-- The id that the store of NAR files has too: in another store, no object belongs to these rows.
CREATE TABLE storage_id (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL
) STRICT;

-- The original of this copy. A larder that opens it for its own use removes the row. From then on
-- rows may differ for another reason than a change of the original.
CREATE TABLE copy_mark (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  original TEXT NOT NULL
) STRICT;
