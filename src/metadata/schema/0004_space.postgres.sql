-- The functions about kept bytes and eviction.

-- The sums over all rows, by a scan.
CREATE VIEW counted_stock AS
  SELECT coalesce(sum(kept_size), 0)::bigint AS kept_bytes, count(kept_size) AS kept_files,
    coalesce(sum(kept_size) FILTER (WHERE protected), 0)::bigint AS protected_bytes,
    (SELECT coalesce(sum(size), 0) FROM pending_file)::bigint AS pending_bytes
  FROM nar;

CREATE VIEW stock AS
  SELECT coalesce(sum(kept_bytes), 0)::bigint AS kept_bytes,
    coalesce(sum(kept_files), 0)::bigint AS kept_files,
    coalesce(sum(protected_bytes), 0)::bigint AS protected_bytes,
    coalesce(sum(pending_bytes), 0)::bigint AS pending_bytes,
    coalesce(sum(document_bytes), 0)::bigint AS document_bytes
  FROM stock_change;

-- Makes one row of all that no other function folds.
CREATE FUNCTION fold_stock() RETURNS void LANGUAGE sql AS $$
  WITH folded AS (
    DELETE FROM stock_change WHERE id IN (
      SELECT id FROM stock_change ORDER BY id FOR UPDATE SKIP LOCKED)
    RETURNING *
  )
  INSERT INTO stock_change
      (kept_bytes, kept_files, pending_bytes, protected_bytes, document_bytes)
    SELECT sum(kept_bytes), sum(kept_files), sum(pending_bytes), sum(protected_bytes),
      sum(document_bytes) FROM folded HAVING count(*) > 0
$$;

CREATE FUNCTION recount() RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lock_all();
  INSERT INTO stock_change (kept_bytes, kept_files, protected_bytes, pending_bytes)
    SELECT c.kept_bytes - s.kept_bytes, c.kept_files - s.kept_files,
        c.protected_bytes - s.protected_bytes, c.pending_bytes - s.pending_bytes
      FROM counted_stock c, stock s
      WHERE (c.kept_bytes, c.kept_files, c.protected_bytes, c.pending_bytes)
        <> (s.kept_bytes, s.kept_files, s.protected_bytes, s.pending_bytes);
  RETURN jsonb_build_object('right', NOT FOUND);
END $$;

-- Kept files of unprotected narinfos, and of no narinfo, the coldest first; at the same age
-- narinfos come first. Each list begins after its own time and id.
CREATE FUNCTION coldest(
  count_max bigint, spared text[],
  narinfo_after_ms bigint, narinfo_after_id bigint, nar_after_ms bigint, nar_after_id bigint
) RETURNS TABLE (
  hash text, id bigint, used_at_ms bigint, nar_id bigint, name text, kept_id text,
  kept_bytes bigint, sharers bigint
) LANGUAGE sql STABLE AS $$
  SELECT * FROM (
  (SELECT p.hash, u.path_id, u.used_at_ms, n.id, n.name, n.kept_id, n.kept_size,
      (SELECT count(*) FROM narinfo s WHERE s.nar_id = n.id)
    FROM narinfo_use u JOIN path p ON p.id = u.path_id
      JOIN narinfo i ON i.path_id = u.path_id JOIN nar n ON n.id = i.nar_id
    WHERE NOT u.protected AND u.kept
      AND (u.used_at_ms, u.path_id) > (narinfo_after_ms, narinfo_after_id)
      AND NOT n.name = ANY(spared)
    ORDER BY u.used_at_ms, u.path_id LIMIT count_max)
  UNION ALL
  (SELECT NULL, l.nar_id, l.used_at_ms, n.id, n.name, n.kept_id, n.kept_size, 0
    FROM loose_nar l JOIN nar n ON n.id = l.nar_id
    WHERE l.kept AND l.staged_until_ms = 0
      AND (l.used_at_ms, l.nar_id) > (nar_after_ms, nar_after_id)
      AND NOT n.name = ANY(spared)
    ORDER BY l.used_at_ms, l.nar_id LIMIT count_max)
  ) AS both_lists (hash, id, used_at_ms, nar_id) ORDER BY used_at_ms, hash IS NULL, id LIMIT count_max
$$;

-- Marks the kept object for removal. NULL where a narinfo names the NAR, or none is kept.
CREATE FUNCTION mark_unnamed(this_nar bigint, this_owner text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  known nar;
BEGIN
  SELECT * INTO known FROM nar WHERE id = this_nar AND kept_size IS NOT NULL
    AND NOT EXISTS (SELECT FROM narinfo WHERE nar_id = this_nar);
  IF NOT FOUND THEN RETURN NULL; END IF;
  PERFORM add_pending(this_nar, known.kept_id, this_owner, known.kept_size);
  PERFORM unkeep_nar(this_nar);
  RETURN jsonb_build_object('name', known.name, 'publish_id', known.kept_id,
    'owner', this_owner, 'size', known.kept_size);
END $$;

-- False where another transaction has the entry. Neither transaction waits for the other.
CREATE FUNCTION try_entry(path_hash text, nar_name text) RETURNS boolean LANGUAGE sql AS $$
  SELECT (path_hash IS NULL OR pg_try_advisory_xact_lock(2, hashtext(path_hash)))
    AND pg_try_advisory_xact_lock(3, hashtext(nar_name))
$$;

CREATE FUNCTION try_use(of_path boolean, this_id bigint, at_ms bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF of_path THEN
    PERFORM FROM narinfo_use WHERE path_id = this_id AND used_at_ms = at_ms AND NOT protected
      FOR UPDATE SKIP LOCKED;
  ELSE
    PERFORM FROM loose_nar WHERE nar_id = this_id AND used_at_ms = at_ms FOR UPDATE SKIP LOCKED;
  END IF;
  RETURN FOUND;
END $$;

-- Removes equally cold narinfos without a NAR file, which frees no bytes; returns their hashes.
CREATE FUNCTION remove_empties(since_ms bigint, count_max bigint, spared text[], use_ms bigint)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  it record;
  hashes jsonb := '[]';
BEGIN
  FOR it IN
    SELECT p.hash, u.path_id, u.used_at_ms, n.id AS nar_id, n.name
      FROM narinfo_use u JOIN path p ON p.id = u.path_id
        JOIN narinfo i ON i.path_id = u.path_id JOIN nar n ON n.id = i.nar_id
      WHERE NOT u.protected AND NOT u.kept AND u.used_at_ms <= since_ms
        AND NOT n.name = ANY(spared)
      ORDER BY u.used_at_ms, u.path_id LIMIT count_max FOR UPDATE OF u SKIP LOCKED
  LOOP
    CONTINUE WHEN NOT try_entry(it.hash, it.name);
    PERFORM drop_narinfos(ARRAY[it.path_id]);
    PERFORM loosen_nar(it.nar_id, coalesce(use_ms, it.used_at_ms));
    hashes := hashes || to_jsonb(it.hash);
  END LOOP;
  RETURN hashes;
END $$;

CREATE FUNCTION evict(argument jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  -- NULL: no limit.
  bytes_min bigint := argument->>'bytesMin';
  used_before_ms bigint := argument->>'usedBeforeMs';
  entries_max bigint := argument->>'entriesMax';
  spared text[] := texts(argument->'spared');
  least bigint := -9007199254740991;
  it record;
  file jsonb;
  narinfos jsonb := '[]';
  files jsonb := '[]';
  bytes bigint := 0;
  entries bigint := 0;
  youngest_ms bigint;
BEGIN
  PERFORM lock_some();
  IF NOT is_settled() THEN RETURN jsonb_build_object('settled', false); END IF;
  -- Some more candidates, for those that other transactions have.
  FOR it IN SELECT * FROM coldest(entries_max + 64, spared, least, least, least, least) LOOP
    EXIT WHEN entries >= entries_max OR bytes >= bytes_min OR it.used_at_ms >= used_before_ms;
    CONTINUE WHEN NOT try_entry(it.hash, it.name)
      OR NOT try_use(it.hash IS NOT NULL, it.id, it.used_at_ms);
    entries := entries + 1;
    youngest_ms := it.used_at_ms;
    IF it.hash IS NOT NULL THEN
      PERFORM drop_narinfos(ARRAY[it.id]);
      PERFORM loosen_nar(it.nar_id, it.used_at_ms);
      narinfos := narinfos || to_jsonb(it.hash);
    END IF;
    file := mark_unnamed(it.nar_id, argument->>'owner');
    CONTINUE WHEN file IS NULL;
    files := files || file;
    bytes := bytes + (file->>'size')::bigint;
  END LOOP;
  IF entries > 0 THEN
    narinfos := narinfos
      || remove_empties(youngest_ms, (argument->>'emptiesMax')::bigint, spared, NULL);
  END IF;
  RETURN jsonb_build_object('settled', true, 'narinfos', narinfos, 'files', files,
    'entries', entries);
END $$;

-- Marks the files of uploads whose time is over.
CREATE FUNCTION expire(argument jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  it record;
  file jsonb;
  files jsonb := '[]';
BEGIN
  PERFORM lock_some();
  FOR it IN
    SELECT l.nar_id, n.name FROM loose_nar l JOIN nar n ON n.id = l.nar_id
      WHERE l.staged_until_ms > 0 AND l.staged_until_ms <= (argument->>'atMs')::bigint
        AND n.kept_size IS NOT NULL AND NOT n.name = ANY(texts(argument->'spared'))
      FOR UPDATE OF l SKIP LOCKED
  LOOP
    CONTINUE WHEN NOT try_entry(NULL, it.name);
    file := mark_unnamed(it.nar_id, argument->>'owner');
    CONTINUE WHEN file IS NULL;
    UPDATE loose_nar SET staged_until_ms = 0 WHERE nar_id = it.nar_id;
    files := files || file;
  END LOOP;
  RETURN jsonb_build_object('files', files);
END $$;

-- Removes one batch of unused rows: narinfos, then NARs, then paths that nothing names any more.
CREATE FUNCTION sweep_rows(argument jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  since_ms bigint := argument->>'unusedSinceMs';
  rows_max bigint := argument->>'rowsMax';
  spared text[] := texts(argument->'spared');
  after_id bigint := argument->>'afterId';
  last_id bigint;
  ids bigint[];
  names jsonb;
  gone bigint;
BEGIN
  PERFORM lock_all();
  IF NOT is_settled() THEN RETURN jsonb_build_object('settled', false); END IF;
  IF after_id IS NOT NULL THEN
    SELECT max(id) INTO last_id FROM (
      SELECT id FROM path WHERE id > after_id ORDER BY id
        LIMIT (argument->>'pathsMax')::bigint) page;
    DELETE FROM path p WHERE p.id > after_id AND p.id <= last_id
      AND NOT EXISTS (SELECT FROM narinfo_use WHERE path_id = p.id)
      AND NOT EXISTS (SELECT FROM reference WHERE dst = p.id)
      AND NOT EXISTS (SELECT FROM protected_path WHERE path_id = p.id);
    GET DIAGNOSTICS gone = ROW_COUNT;
    RETURN jsonb_build_object('settled', true, 'paths', gone, 'lastId', last_id);
  END IF;
  names := remove_empties(since_ms, rows_max, spared, since_ms + (argument->>'graceMs')::bigint);
  IF names <> '[]' THEN RETURN jsonb_build_object('settled', true, 'narinfos', names); END IF;
  SELECT array_agg(id), coalesce(jsonb_agg(name), '[]') INTO ids, names FROM (
    SELECT n.id, n.name FROM loose_nar l JOIN nar n ON n.id = l.nar_id
      WHERE NOT l.kept AND l.used_at_ms <= since_ms AND NOT n.name = ANY(spared)
        AND NOT EXISTS (SELECT FROM pending_file WHERE nar_id = l.nar_id)
      ORDER BY l.used_at_ms, l.nar_id LIMIT rows_max) unused;
  DELETE FROM nar_source WHERE nar_id = ANY(ids);
  DELETE FROM loose_nar WHERE nar_id = ANY(ids);
  DELETE FROM nar WHERE id = ANY(ids);
  RETURN jsonb_build_object('settled', true, 'nars', names);
END $$;
