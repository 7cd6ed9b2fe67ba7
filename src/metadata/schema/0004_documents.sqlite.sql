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
