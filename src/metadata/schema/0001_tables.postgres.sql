-- The same facts as in SQLite's tables, which explain them. Texts are in the order of their bytes.

-- Store paths by integer ids, so that the edges between them stay small.
CREATE TABLE path (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hash text COLLATE "C" NOT NULL UNIQUE
);

CREATE TABLE nar (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  nar_hash text NOT NULL,
  nar_size bigint NOT NULL,
  file_hash text,
  file_size bigint,
  -- The kept object; NULL where there is none.
  kept_hash text,
  kept_size bigint,
  kept_id text NOT NULL DEFAULT '',
  kept_seal text,
  -- Whether a protected narinfo names it.
  protected boolean NOT NULL DEFAULT false
);

CREATE TABLE nar_source (
  nar_id bigint NOT NULL,
  upstream text NOT NULL,
  location text NOT NULL,
  PRIMARY KEY (nar_id, upstream)
);

CREATE TABLE narinfo (
  path_id bigint PRIMARY KEY,
  nar_id bigint NOT NULL,
  body text NOT NULL,
  trusted boolean NOT NULL,
  own_public_key text,
  own_signature text
);
CREATE INDEX narinfo_by_nar ON narinfo (nar_id);

-- No foreign keys: each would write the row of a path that thousands of others refer to.
CREATE TABLE reference (
  src bigint NOT NULL,
  dst bigint NOT NULL,
  PRIMARY KEY (src, dst)
);
CREATE INDEX reference_by_dst ON reference (dst);

-- Narrow and apart from the text, because each use writes it.
CREATE TABLE narinfo_use (
  path_id bigint PRIMARY KEY,
  used_at_ms bigint NOT NULL,
  -- Whether the path is in protected_path, and whether its NAR file is kept.
  protected boolean NOT NULL,
  kept boolean NOT NULL
);
CREATE INDEX narinfo_use_by_age ON narinfo_use (protected, kept, used_at_ms, path_id);

-- NARs that no narinfo names.
CREATE TABLE loose_nar (
  nar_id bigint PRIMARY KEY,
  used_at_ms bigint NOT NULL,
  kept boolean NOT NULL,
  -- An upload waits for its narinfo until then; 0 for every other NAR.
  staged_until_ms bigint NOT NULL DEFAULT 0
);
CREATE INDEX loose_nar_by_age ON loose_nar (kept, used_at_ms, nar_id);
CREATE INDEX loose_nar_by_stage ON loose_nar (staged_until_ms) WHERE staged_until_ms > 0;

-- Objects that are being published (size 0) or removed (their size).
CREATE TABLE pending_file (
  nar_id bigint NOT NULL,
  publish_id text NOT NULL,
  owner text NOT NULL,
  size bigint NOT NULL,
  PRIMARY KEY (nar_id, publish_id)
);

-- By hash: a pin outlasts the eviction of its root. Ids grow in the order of pinning.
CREATE TABLE pin_root (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hash text COLLATE "C" NOT NULL UNIQUE,
  pinned_at_ms bigint NOT NULL
);

-- One row: the number of the walk over all pins.
CREATE TABLE pin_walk (generation bigint NOT NULL);
INSERT INTO pin_walk VALUES (1);

-- Every path that a pin reaches. `expanded` is false until its references are here too.
CREATE TABLE protected_path (
  path_id bigint PRIMARY KEY,
  generation bigint NOT NULL,
  expanded boolean NOT NULL
);
CREATE INDEX protected_path_to_expand ON protected_path (path_id) WHERE NOT expanded;
CREATE INDEX protected_path_by_generation ON protected_path (generation);

-- The stock is the sum of these rows. Each write adds its own, so that no writer waits for
-- another at one row; heartbeats fold many into one.
CREATE TABLE stock_change (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kept_bytes bigint NOT NULL DEFAULT 0,
  kept_files bigint NOT NULL DEFAULT 0,
  pending_bytes bigint NOT NULL DEFAULT 0,
  protected_bytes bigint NOT NULL DEFAULT 0,
  document_bytes bigint NOT NULL DEFAULT 0
);

CREATE TABLE document (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  path text COLLATE "C" NOT NULL UNIQUE,
  upstream text NOT NULL,
  content_type text NOT NULL,
  content_encoding text,
  tag text NOT NULL,
  size bigint NOT NULL,
  may_change boolean NOT NULL,
  checked_at_ms bigint NOT NULL,
  used_at_ms bigint NOT NULL,
  nar_name text COLLATE "C"
);
CREATE INDEX document_by_age ON document (used_at_ms, id);
CREATE INDEX document_by_nar ON document (nar_name) WHERE nar_name IS NOT NULL;

CREATE TABLE document_piece (
  document_id bigint NOT NULL REFERENCES document ON DELETE CASCADE,
  number integer NOT NULL,
  bytes bytea NOT NULL,
  PRIMARY KEY (document_id, number)
);

CREATE TABLE member (
  id text COLLATE "C" PRIMARY KEY,
  heartbeat_at_ms bigint NOT NULL,
  reserved_bytes bigint NOT NULL CHECK (reserved_bytes >= 0)
);

-- The last transaction of each connected process, with its result. A process that lost the answer
-- of a commit sends it again, and gets that result: it does not write twice.
CREATE TABLE writer (
  id uuid PRIMARY KEY,
  sequence bigint NOT NULL,
  outcome jsonb,
  at timestamptz NOT NULL
);

CREATE FUNCTION count_nar() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO stock_change (kept_bytes, kept_files, protected_bytes) VALUES (
    coalesce(NEW.kept_size, 0) - coalesce(OLD.kept_size, 0),
    (NEW.kept_size IS NOT NULL)::int - (OLD.kept_size IS NOT NULL)::int,
    NEW.protected::int * coalesce(NEW.kept_size, 0)
      - OLD.protected::int * coalesce(OLD.kept_size, 0)
  );
  RETURN NULL;
END $$;
CREATE TRIGGER nar_counted AFTER UPDATE ON nar FOR EACH ROW
  WHEN (OLD.kept_size IS DISTINCT FROM NEW.kept_size
    OR OLD.protected <> NEW.protected AND NEW.kept_size IS NOT NULL)
  EXECUTE FUNCTION count_nar();

CREATE FUNCTION count_pending() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  bytes bigint := CASE TG_OP WHEN 'DELETE' THEN 0 ELSE NEW.size END
    - CASE TG_OP WHEN 'INSERT' THEN 0 ELSE OLD.size END;
BEGIN
  IF bytes <> 0 THEN INSERT INTO stock_change (pending_bytes) VALUES (bytes); END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER pending_counted AFTER INSERT OR UPDATE OR DELETE ON pending_file FOR EACH ROW
  EXECUTE FUNCTION count_pending();

CREATE FUNCTION count_document() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO stock_change (document_bytes)
    VALUES (CASE TG_OP WHEN 'INSERT' THEN NEW.size ELSE -OLD.size END);
  RETURN NULL;
END $$;
CREATE TRIGGER document_counted AFTER INSERT OR DELETE ON document FOR EACH ROW
  EXECUTE FUNCTION count_document();
