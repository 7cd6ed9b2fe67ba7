-- The signed facts of each path that larder has signed, by the SHA-256 of their fingerprint. A row
-- outlives its narinfo: an upload must not replace what larder has signed before. Nothing evicts
-- it. `uploaded` is 1 where no upstream has signed the path, only an uploader's token vouches.
CREATE TABLE signed_path (
  hash TEXT PRIMARY KEY,
  digest TEXT NOT NULL,
  uploaded INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The rows of both kinds: a kind that is full takes no further one.
ALTER TABLE stock ADD COLUMN uploaded_paths INTEGER NOT NULL DEFAULT 0;
ALTER TABLE stock ADD COLUMN upstream_paths INTEGER NOT NULL DEFAULT 0;

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
