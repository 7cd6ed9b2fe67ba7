-- The functions that apply lists of changes, each whole or not at all.

-- Ends a list. larder knows the kinds; the key tells which row.
CREATE FUNCTION refuse(kind text, key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'LD001', MESSAGE = kind, DETAIL = key;
END $$;

-- The id of the NAR, added where it is new. Refused where the row has other facts.
CREATE FUNCTION claim_nar(n jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  known nar;
BEGIN
  SELECT * INTO known FROM nar WHERE name = n->>'name';
  IF NOT FOUND THEN
    INSERT INTO nar (name, nar_hash, nar_size, file_hash, file_size)
      VALUES (n->>'name', n->>'narHash', (n->>'narSize')::bigint, n->>'fileHash',
        (n->>'fileSize')::bigint)
      RETURNING * INTO known;
    RETURN known.id;
  END IF;
  -- Uncompressed, the NAR hash and the NAR size say it all.
  IF known.nar_hash <> n->>'narHash' OR known.nar_size <> (n->>'narSize')::bigint
    OR n->>'compression' <> 'none' AND (known.file_hash IS DISTINCT FROM n->>'fileHash'
      OR known.file_size IS DISTINCT FROM (n->>'fileSize')::bigint)
  THEN
    PERFORM refuse('taken', known.name);
  END IF;
  RETURN known.id;
END $$;

-- For a NAR that no narinfo names any more.
CREATE FUNCTION loosen_nar(this_nar bigint, at_ms bigint) RETURNS void LANGUAGE sql AS $$
  INSERT INTO loose_nar (nar_id, used_at_ms, kept)
    SELECT id, at_ms, kept_size IS NOT NULL FROM nar
      WHERE id = this_nar AND NOT EXISTS (SELECT FROM narinfo WHERE nar_id = this_nar)
    ON CONFLICT (nar_id) DO UPDATE
      SET used_at_ms = greatest(loose_nar.used_at_ms, excluded.used_at_ms)
$$;

CREATE FUNCTION put_narinfo(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  path_hash text := c->'row'->>'storePathHash';
  this_path bigint;
  this_nar bigint;
  former_nar bigint;
BEGIN
  SELECT id INTO STRICT this_path FROM path WHERE hash = path_hash;
  IF c ? 'onlyIf' AND NOT EXISTS (
    SELECT FROM nar n LEFT JOIN narinfo i ON i.path_id = this_path
    WHERE n.name = c->'row'->>'narName' AND i.body IS NOT DISTINCT FROM c->'onlyIf'->>'body'
      AND n.kept_size IS NOT NULL AND n.name = c->'onlyIf'->>'nar'
      AND n.kept_id = c->'onlyIf'->>'id')
  THEN
    PERFORM refuse('outdated', path_hash);
  END IF;
  this_nar := claim_nar(c->'nar');
  -- Of two places at one upstream, the later one counts.
  INSERT INTO nar_source (nar_id, upstream, location)
    SELECT DISTINCT ON (s->>'upstream') this_nar, s->>'upstream', s->>'location'
      FROM jsonb_array_elements(c->'sources') WITH ORDINALITY AS sources (s, place)
      ORDER BY s->>'upstream', place DESC
    ON CONFLICT (nar_id, upstream) DO UPDATE SET location = excluded.location;
  SELECT nar_id INTO former_nar FROM narinfo WHERE path_id = this_path;
  INSERT INTO narinfo (path_id, nar_id, body, trusted, own_public_key, own_signature)
    VALUES (this_path, this_nar, c->'row'->>'body', (c->'row'->>'trusted')::boolean,
      c->'row'->'ownSignature'->>'publicKey', c->'row'->'ownSignature'->>'text')
    ON CONFLICT (path_id) DO UPDATE SET nar_id = excluded.nar_id, body = excluded.body,
      trusted = excluded.trusted, own_public_key = excluded.own_public_key,
      own_signature = excluded.own_signature;
  DELETE FROM reference WHERE src = this_path;
  INSERT INTO reference (src, dst)
    SELECT this_path, p.id
      FROM jsonb_array_elements_text(c->'references') AS r (hash) JOIN path p USING (hash);
  INSERT INTO narinfo_use AS u (path_id, used_at_ms, protected, kept)
    SELECT this_path, (c->>'atMs')::bigint,
        EXISTS (SELECT FROM protected_path WHERE path_id = this_path), n.kept_size IS NOT NULL
      FROM nar n WHERE n.id = this_nar
    ON CONFLICT (path_id) DO UPDATE
      SET used_at_ms = greatest(u.used_at_ms, excluded.used_at_ms), kept = excluded.kept;
  -- It may have other references than before.
  UPDATE protected_path SET expanded = false WHERE path_id = this_path;
  DELETE FROM loose_nar WHERE nar_id = this_nar;
  PERFORM refresh_nars(ARRAY[this_nar, former_nar]);
  IF former_nar <> this_nar THEN PERFORM loosen_nar(former_nar, (c->>'atMs')::bigint); END IF;
END $$;

-- Removes a narinfo with its references and its use. Call it with the keys of its path and NAR.
CREATE FUNCTION drop_narinfos(ids bigint[]) RETURNS void LANGUAGE sql AS $$
  DELETE FROM reference WHERE src = ANY(ids);
  DELETE FROM narinfo_use WHERE path_id = ANY(ids);
  DELETE FROM narinfo WHERE path_id = ANY(ids);
$$;

CREATE FUNCTION remove_narinfo(path_hash text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  it record;
BEGIN
  SELECT u.path_id, u.used_at_ms, u.protected, i.nar_id INTO it
    FROM path p JOIN narinfo i ON i.path_id = p.id JOIN narinfo_use u ON u.path_id = p.id
    WHERE p.hash = path_hash;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM drop_narinfos(ARRAY[it.path_id]);
  PERFORM refresh_nars(ARRAY[it.nar_id]);
  PERFORM loosen_nar(it.nar_id, it.used_at_ms);
  -- Paths that only its references reached are no longer protected.
  IF it.protected THEN PERFORM protect_again(); END IF;
END $$;

CREATE FUNCTION set_kept(this_nar bigint, value boolean) RETURNS void LANGUAGE sql AS $$
  UPDATE narinfo_use SET kept = value
    WHERE kept <> value AND path_id IN (SELECT path_id FROM narinfo WHERE nar_id = this_nar);
  UPDATE loose_nar SET kept = value WHERE kept <> value AND nar_id = this_nar;
$$;

CREATE FUNCTION unkeep_nar(this_nar bigint) RETURNS void LANGUAGE sql AS $$
  UPDATE nar SET kept_id = '', kept_seal = NULL, kept_hash = NULL, kept_size = NULL
    WHERE id = this_nar;
  SELECT set_kept(this_nar, false);
$$;

CREATE FUNCTION add_pending(this_nar bigint, this_id text, this_owner text, bytes bigint)
RETURNS void LANGUAGE sql AS $$
  INSERT INTO pending_file (nar_id, publish_id, owner, size)
    VALUES (this_nar, this_id, this_owner, bytes)
    ON CONFLICT (nar_id, publish_id) DO UPDATE SET owner = excluded.owner, size = excluded.size
$$;

CREATE FUNCTION keep_nar(known nar, c jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  intent_owner text;
BEGIN
  DELETE FROM pending_file WHERE nar_id = known.id AND publish_id = c->>'id'
    RETURNING owner INTO intent_owner;
  IF intent_owner IS DISTINCT FROM c->>'owner' THEN PERFORM refuse('intent', c->>'at'); END IF;
  IF c ? 'reservedBytes' THEN
    UPDATE member SET reserved_bytes = reserved_bytes - (c->>'reservedBytes')::bigint
      WHERE id = c->>'owner' AND reserved_bytes >= (c->>'reservedBytes')::bigint;
    IF NOT FOUND THEN PERFORM refuse('reservation', c->>'at'); END IF;
  END IF;
  IF known.kept_size IS NOT NULL AND known.kept_id <> c->>'id' THEN
    PERFORM add_pending(known.id, known.kept_id, c->>'owner', known.kept_size);
  END IF;
  UPDATE nar SET kept_id = c->>'id', kept_seal = c->>'seal', kept_hash = c->>'fileHash',
    kept_size = (c->>'fileSize')::bigint WHERE id = known.id;
  PERFORM set_kept(known.id, true);
  PERFORM loosen_nar(known.id, (c->>'atMs')::bigint);
END $$;

-- Changes nothing where no narinfo ever named the NAR.
CREATE FUNCTION change_file(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  known nar;
BEGIN
  SELECT * INTO known FROM nar WHERE name = c->>'nar';
  IF NOT FOUND THEN RETURN; END IF;
  CASE c->>'kind'
    WHEN 'nar-publishing' THEN
      INSERT INTO pending_file (nar_id, publish_id, owner, size)
        VALUES (known.id, c->>'id', c->>'owner', 0);
    WHEN 'nar-kept' THEN
      PERFORM keep_nar(known, c);
    WHEN 'nar-sealed' THEN
      UPDATE nar SET kept_seal = c->>'seal'
        WHERE id = known.id AND kept_size IS NOT NULL AND kept_id = c->>'id';
    WHEN 'nar-marked' THEN
      IF known.kept_size IS NULL OR known.kept_id <> c->>'id' THEN RETURN; END IF;
      PERFORM add_pending(known.id, known.kept_id, c->>'owner', known.kept_size);
      PERFORM unkeep_nar(known.id);
      UPDATE loose_nar SET staged_until_ms = 0 WHERE nar_id = known.id;
    WHEN 'nar-taken' THEN
      UPDATE pending_file SET owner = c->>'owner' WHERE nar_id = known.id AND publish_id = c->>'id';
      IF NOT FOUND THEN PERFORM refuse('intent', c->>'at'); END IF;
    WHEN 'nar-stuck' THEN
      PERFORM add_pending(known.id, c->>'id', c->>'owner', (c->>'fileSize')::bigint);
    WHEN 'nar-gone' THEN
      DELETE FROM pending_file WHERE nar_id = known.id AND publish_id = c->>'id';
  END CASE;
END $$;

CREATE FUNCTION put_document(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  d jsonb := c->'document';
  -- NULL: no limit.
  total_max bigint := c->>'totalBytesMax';
  size bigint := d->>'size';
  new_id bigint;
BEGIN
  IF size > total_max THEN RETURN; END IF;
  DELETE FROM document WHERE path = d->>'path';
  FOR gone IN 0..(c->>'goingMax')::int LOOP
    EXIT WHEN total_max IS NULL
      OR (SELECT coalesce(sum(document_bytes), 0) + size <= total_max FROM stock_change);
    IF gone = (c->>'goingMax')::int THEN RETURN; END IF;
    DELETE FROM document WHERE id = (
      SELECT id FROM document ORDER BY used_at_ms, id LIMIT 1 FOR UPDATE SKIP LOCKED);
  END LOOP;
  INSERT INTO document (path, upstream, content_type, content_encoding, tag, size, may_change,
      checked_at_ms, used_at_ms, nar_name)
    VALUES (d->>'path', d->>'upstream', d->>'type', d->>'encoding', d->>'tag', size,
      (d->>'mayChange')::boolean, (c->>'atMs')::bigint, (c->>'atMs')::bigint, d->>'narName')
    RETURNING id INTO new_id;
  INSERT INTO document_piece (document_id, number, bytes)
    SELECT new_id, place - 1, decode(piece, 'base64')
    FROM jsonb_array_elements_text(c->'pieces') WITH ORDINALITY AS pieces (piece, place);
END $$;

CREATE FUNCTION apply_change(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  at_ms bigint := c->>'atMs';
BEGIN
  CASE c->>'kind'
    WHEN 'put-narinfo' THEN
      PERFORM put_narinfo(c);
    WHEN 'put-source' THEN
      INSERT INTO nar_source (nar_id, upstream, location)
        SELECT id, c->'source'->>'upstream', c->'source'->>'location'
          FROM nar WHERE name = c->>'narName'
        ON CONFLICT (nar_id, upstream) DO UPDATE SET location = excluded.location;
    WHEN 'remove-narinfo' THEN
      PERFORM remove_narinfo(c->>'storePathHash');
    WHEN 'stage-nar' THEN
      DECLARE
        this_nar bigint := claim_nar(c->'nar');
      BEGIN
        -- Colder than every used one.
        PERFORM loosen_nar(this_nar, 0);
        UPDATE loose_nar SET staged_until_ms = (c->>'untilMs')::bigint WHERE nar_id = this_nar;
      END;
    WHEN 'touch-narinfo' THEN
      UPDATE narinfo_use SET used_at_ms = greatest(used_at_ms, at_ms)
        WHERE path_id = (SELECT id FROM path WHERE hash = c->>'storePathHash');
    WHEN 'touch-nar' THEN
      UPDATE narinfo_use SET used_at_ms = greatest(used_at_ms, at_ms)
        WHERE path_id IN (SELECT i.path_id FROM nar n JOIN narinfo i ON i.nar_id = n.id
          WHERE n.name = c->>'narName');
      UPDATE loose_nar SET used_at_ms = greatest(used_at_ms, at_ms)
        WHERE nar_id = (SELECT id FROM nar WHERE name = c->>'narName');
    WHEN 'put-pin' THEN
      INSERT INTO pin_root (hash, pinned_at_ms)
        VALUES (c->'pin'->>'storePathHash', (c->'pin'->>'pinnedAtMs')::bigint)
        ON CONFLICT (hash) DO NOTHING;
      PERFORM protect_root(c->'pin'->>'storePathHash');
    WHEN 'remove-pin' THEN
      DELETE FROM pin_root WHERE hash = c->>'storePathHash';
      IF FOUND THEN PERFORM protect_again(); END IF;
    WHEN 'put-document' THEN
      PERFORM put_document(c);
    WHEN 'check-document' THEN
      UPDATE document SET checked_at_ms = greatest(checked_at_ms, at_ms) WHERE path = c->>'path';
    WHEN 'touch-document' THEN
      UPDATE document SET used_at_ms = greatest(used_at_ms, at_ms) WHERE path = c->>'path';
    ELSE
      PERFORM change_file(c);
  END CASE;
END $$;

-- Takes every lock that the lists need, in the order above. `paths` and `nars` are the keys that
-- they change; `hashes` are those and the references; `whole`: too many keys for a lock each.
CREATE FUNCTION lock_changes(argument jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  paths text[] := texts(argument->'paths');
  nars text[] := texts(argument->'nars');
BEGIN
  IF (argument->>'whole')::boolean THEN
    PERFORM lock_all();
  ELSE
    PERFORM lock_some();
    PERFORM lock_keys(2, paths);
    -- A narinfo may leave the NAR that it names until now.
    PERFORM lock_keys(3, nars || ARRAY(
      SELECT n.name FROM path p JOIN narinfo i ON i.path_id = p.id JOIN nar n ON n.id = i.nar_id
      WHERE p.hash = ANY(paths)));
  END IF;
  IF (argument->>'documents')::boolean THEN PERFORM pg_advisory_xact_lock(4, 0); END IF;
  INSERT INTO path (hash)
    SELECT h FROM (SELECT DISTINCT unnest(texts(argument->'hashes')) COLLATE "C" AS h) AS hashes
      WHERE NOT EXISTS (SELECT FROM path WHERE hash = h) ORDER BY h
    ON CONFLICT DO NOTHING;
  PERFORM FROM narinfo_use WHERE path_id IN (
      SELECT id FROM path WHERE hash = ANY(paths)
      UNION SELECT i.path_id FROM nar n JOIN narinfo i ON i.nar_id = n.id WHERE n.name = ANY(nars))
    ORDER BY path_id FOR UPDATE;
  PERFORM FROM loose_nar WHERE nar_id IN (SELECT id FROM nar WHERE name = ANY(nars))
    ORDER BY nar_id FOR UPDATE;
END $$;

-- The error of each list, or null. A refused list leaves nothing, and the others are applied.
CREATE FUNCTION apply_changes(argument jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  list jsonb;
  one_change jsonb;
  errors jsonb := '[]';
  code text;
  message text;
  detail text;
BEGIN
  PERFORM lock_changes(argument);
  FOR list IN SELECT value FROM jsonb_array_elements(argument->'lists') LOOP
    BEGIN
      FOR one_change IN SELECT value FROM jsonb_array_elements(list) LOOP
        PERFORM apply_change(one_change);
      END LOOP;
      errors := errors || 'null'::jsonb;
    EXCEPTION WHEN SQLSTATE 'LD001' OR integrity_constraint_violation OR data_exception THEN
      GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL;
      errors := errors || jsonb_build_object('code', code, 'message', message, 'detail', detail);
    END;
  END LOOP;
  RETURN jsonb_build_object('errors', errors);
END $$;

-- Only uses, which only ever raise a time: all of them in three statements.
CREATE FUNCTION touch(argument jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  PERFORM lock_some();
  WITH uses AS (
    SELECT key, value::bigint AS at_ms FROM jsonb_each_text(argument->'narinfos')
  ), nar_uses AS (
    SELECT key, value::bigint AS at_ms FROM jsonb_each_text(argument->'nars')
  ), latest AS (
    SELECT path_id, max(at_ms) AS at_ms FROM (
      SELECT p.id AS path_id, at_ms FROM uses JOIN path p ON p.hash = key
      UNION ALL
      SELECT i.path_id, at_ms FROM nar_uses JOIN nar n ON n.name = key
        JOIN narinfo i ON i.nar_id = n.id) both_uses GROUP BY path_id
  ), locked AS (
    SELECT u.path_id, l.at_ms FROM narinfo_use u JOIN latest l USING (path_id)
      WHERE u.used_at_ms < l.at_ms ORDER BY u.path_id FOR UPDATE OF u
  )
  UPDATE narinfo_use u SET used_at_ms = greatest(u.used_at_ms, l.at_ms)
    FROM locked l WHERE u.path_id = l.path_id;
  WITH locked AS (
    SELECT l.nar_id, t.value::bigint AS at_ms FROM jsonb_each_text(argument->'nars') t
      JOIN nar n ON n.name = t.key JOIN loose_nar l ON l.nar_id = n.id
      ORDER BY l.nar_id FOR UPDATE OF l
  )
  UPDATE loose_nar n SET used_at_ms = greatest(n.used_at_ms, l.at_ms)
    FROM locked l WHERE n.nar_id = l.nar_id;
  WITH locked AS (
    SELECT d.id, t.value::bigint AS at_ms FROM jsonb_each_text(argument->'documents') t
      JOIN document d ON d.path = t.key ORDER BY d.id FOR UPDATE OF d
  )
  UPDATE document d SET used_at_ms = greatest(d.used_at_ms, l.at_ms)
    FROM locked l WHERE d.id = l.id;
  RETURN '{}';
END $$;
