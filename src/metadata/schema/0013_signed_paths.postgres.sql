-- The signed facts of each path that larder has signed, by the SHA-256 of their fingerprint. A row
-- outlives its narinfo: an upload must not replace what larder has signed before. Nothing evicts
-- it. `uploaded` is true where no upstream has signed the path, only an uploader's token vouches.
CREATE TABLE signed_path (
  hash text COLLATE "C" PRIMARY KEY,
  digest text NOT NULL,
  uploaded boolean NOT NULL
);

-- The rows of both kinds, as sums of these changes: no writer waits for another at one row.
CREATE TABLE signed_path_change (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  uploaded_paths bigint NOT NULL,
  upstream_paths bigint NOT NULL
);

CREATE FUNCTION count_signed_path() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  uploaded bigint := CASE TG_OP WHEN 'DELETE' THEN 0 ELSE NEW.uploaded::int END
    - CASE TG_OP WHEN 'INSERT' THEN 0 ELSE OLD.uploaded::int END;
  all_paths bigint := CASE TG_OP WHEN 'INSERT' THEN 1 WHEN 'DELETE' THEN -1 ELSE 0 END;
BEGIN
  IF uploaded <> 0 OR all_paths <> 0 THEN
    INSERT INTO signed_path_change (uploaded_paths, upstream_paths)
      VALUES (uploaded, all_paths - uploaded);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER signed_path_counted AFTER INSERT OR UPDATE OR DELETE ON signed_path FOR EACH ROW
  EXECUTE FUNCTION count_signed_path();

CREATE VIEW signed_path_count AS
  SELECT coalesce(sum(uploaded_paths), 0)::bigint AS uploaded,
    coalesce(sum(upstream_paths), 0)::bigint AS upstream
  FROM signed_path_change;

-- Folds these changes too.
ALTER FUNCTION fold_stock() RENAME TO fold_stock_changes;
CREATE FUNCTION fold_stock() RETURNS void LANGUAGE sql AS $$
  SELECT fold_stock_changes();
  WITH folded AS (
    DELETE FROM signed_path_change WHERE id IN (
      SELECT id FROM signed_path_change ORDER BY id FOR UPDATE SKIP LOCKED)
    RETURNING *
  )
  INSERT INTO signed_path_change (uploaded_paths, upstream_paths)
    SELECT sum(uploaded_paths), sum(upstream_paths) FROM folded HAVING count(*) > 0
$$;

-- The caller has the lock of the path.
CREATE FUNCTION put_signed(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  path_hash text := c->>'storePathHash';
  known text;
BEGIN
  SELECT digest INTO known FROM signed_path WHERE hash = path_hash;
  IF (c->>'unlessOther')::boolean AND known <> c->>'digest' THEN
    PERFORM refuse('outdated', path_hash);
  END IF;
  IF known = c->>'digest' THEN RETURN; END IF;
  -- NULL: no bound.
  IF known IS NULL AND (c->>'countMax')::bigint <= (
    SELECT CASE WHEN (c->>'isUploaded')::boolean THEN uploaded ELSE upstream END
      FROM signed_path_count)
  THEN
    RETURN;
  END IF;
  INSERT INTO signed_path (hash, digest, uploaded)
    VALUES (path_hash, c->>'digest', (c->>'isUploaded')::boolean)
    ON CONFLICT (hash) DO UPDATE SET digest = excluded.digest, uploaded = excluded.uploaded;
END $$;

ALTER FUNCTION apply_change(jsonb) RENAME TO apply_row_change;

CREATE FUNCTION apply_change(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  CASE c->>'kind'
    WHEN 'put-signed' THEN
      PERFORM put_signed(c);
    WHEN 'forget-signed' THEN
      DELETE FROM signed_path WHERE hash = c->>'storePathHash';
    ELSE
      PERFORM apply_row_change(c);
  END CASE;
END $$;
