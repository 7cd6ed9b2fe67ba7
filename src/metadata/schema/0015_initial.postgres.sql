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
  protected boolean NOT NULL DEFAULT false,
  -- For explanations. When the kept file was stored; NULL where nobody knows.
  kept_at_ms bigint,
  -- When an upstream's narinfo last named the NAR file. NULL: none ever did.
  seen_at_ms bigint
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
  reserved_bytes bigint NOT NULL CHECK (reserved_bytes >= 0),
  -- Where the other members reach it; NULL: nowhere. They send their token to no other address.
  url text
);

-- The newest evictions of narinfos. Ids grow, and a lookup scans it: an index costs each eviction.
CREATE TABLE evicted_path (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hash text COLLATE "C" NOT NULL,
  at_ms bigint NOT NULL
);

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

-- An amount for each figure and slot of time, over restarts and for all members together.
CREATE TABLE history (
  tier text NOT NULL,
  -- The slot's begin; 0 for the whole life.
  at_ms bigint NOT NULL,
  figure text NOT NULL,
  amount bigint NOT NULL,
  PRIMARY KEY (tier, at_ms, figure)
);

-- The last report of each member to the others, for displays. A dead member's row stays a while.
CREATE TABLE member_report (
  id text COLLATE "C" PRIMARY KEY,
  reported_at_ms bigint NOT NULL,
  status text NOT NULL CHECK (octet_length(status) <= 16384)
);

-- One row at most: the secret key of all members that have no key file of their own.
CREATE TABLE signing_key (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  secret text NOT NULL
);

-- The id that the store of NAR files has too: in another store, no object belongs to these rows.
CREATE TABLE storage_id (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id text NOT NULL
);

-- The original of this copy. A larder that opens it for its own use removes the row. From then on
-- rows may differ for another reason than a change of the original.
CREATE TABLE copy_mark (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  original text NOT NULL
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

-- The functions that find the paths that pins reach. One statement of larder calls one function,
-- which is one transaction: no lock outlasts a round trip, even if larder stops in the middle.
--
-- Advisory locks, in the order in which every function takes them:
--   (1, 0)           shared by writers of single paths and NARs, alone for writers of any
--   (2, hash)        one store path, with its narinfo, references and use
--   (3, hash)        one NAR, with its sources, objects and its use without narinfo
--   (4, 0)           new documents
--   (5, 0)           reservations of space
-- Keys are taken in the order of their hashes, then rows of uses in the order of ids. So no two
-- functions wait for each other.

CREATE FUNCTION lock_all() RETURNS void LANGUAGE sql AS 'SELECT pg_advisory_xact_lock(1, 0)';
CREATE FUNCTION lock_some() RETURNS void LANGUAGE sql AS
  'SELECT pg_advisory_xact_lock_shared(1, 0)';

CREATE FUNCTION lock_keys(class int, keys text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(class, k.number)
    FROM (SELECT DISTINCT hashtext(key) AS number FROM unnest(keys) AS key ORDER BY 1) k;
END $$;

CREATE FUNCTION texts(list jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE AS
  'SELECT ARRAY(SELECT jsonb_array_elements_text(list))';

-- Sets what follows from the protection of the narinfos that name a NAR.
CREATE FUNCTION refresh_nars(ids bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE nar SET protected = NOT nar.protected
    WHERE nar.id = ANY(ids) AND nar.protected <> EXISTS (
      SELECT FROM narinfo i JOIN narinfo_use u USING (path_id)
      WHERE i.nar_id = nar.id AND u.protected);
END $$;

CREATE FUNCTION set_protected(ids bigint[], value boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  nars bigint[];
BEGIN
  WITH changed AS (
    UPDATE narinfo_use SET protected = value WHERE path_id = ANY(ids) AND protected <> value
      RETURNING path_id
  )
  SELECT array_agg(DISTINCT nar_id) INTO nars FROM changed JOIN narinfo USING (path_id);
  PERFORM refresh_nars(nars);
END $$;

-- A path with a newer generation is visited again, for that generation.
CREATE FUNCTION protect_paths(ids bigint[], generations bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO protected_path (path_id, generation, expanded)
    SELECT id, max(generation), false FROM unnest(ids, generations) AS n (id, generation)
      GROUP BY id
    ON CONFLICT (path_id) DO UPDATE SET generation = excluded.generation, expanded = false
      WHERE excluded.generation > protected_path.generation;
  PERFORM set_protected(ids, true);
END $$;

CREATE FUNCTION protect_root(root_hash text) RETURNS void LANGUAGE sql AS $$
  SELECT protect_paths(ARRAY[p.id], ARRAY[w.generation])
    FROM path p, pin_walk w WHERE p.hash = root_hash
$$;

-- A pin, or references of a protected path, were removed: the other pins' closures stay.
CREATE FUNCTION protect_again() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE pin_walk SET generation = generation + 1;
  PERFORM protect_paths(array_agg(p.id), array_agg(w.generation))
    FROM pin_walk w, pin_root r JOIN path p USING (hash);
END $$;

CREATE FUNCTION is_settled() RETURNS boolean LANGUAGE sql STABLE AS
  'SELECT NOT EXISTS (SELECT FROM protected_path WHERE NOT expanded)';

-- Visits at most so many paths; true while more are left.
CREATE FUNCTION protect(argument jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  paths_max bigint := argument->'pathsMax';
  batch bigint[];
  found_ids bigint[];
  found_generations bigint[];
  gone bigint[];
BEGIN
  PERFORM lock_all();
  -- In order, so that the planner takes the index, whatever it knows of the table.
  batch := ARRAY(SELECT path_id FROM protected_path WHERE NOT expanded
    ORDER BY path_id LIMIT paths_max);
  IF cardinality(batch) > 0 THEN
    UPDATE protected_path SET expanded = true WHERE path_id = ANY(batch);
    SELECT array_agg(r.dst), array_agg(p.generation) INTO found_ids, found_generations
      FROM reference r JOIN protected_path p ON p.path_id = r.src WHERE r.src = ANY(batch);
    PERFORM protect_paths(found_ids, found_generations);
    RETURN jsonb_build_object('more', true);
  END IF;
  WITH swept AS (
    DELETE FROM protected_path WHERE path_id IN (
      SELECT path_id FROM protected_path
      WHERE generation < (SELECT generation FROM pin_walk) LIMIT paths_max)
    RETURNING path_id
  )
  SELECT array_agg(path_id) INTO gone FROM swept;
  PERFORM set_protected(gone, false);
  RETURN jsonb_build_object('more', coalesce(cardinality(gone), 0) = paths_max);
END $$;

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
    INSERT INTO nar (name, nar_hash, nar_size, file_hash, file_size, seen_at_ms)
      VALUES (n->>'name', n->>'narHash', (n->>'narSize')::bigint, n->>'fileHash',
        (n->>'fileSize')::bigint, (n->>'seenAtMs')::bigint)
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
  IF n ? 'seenAtMs' THEN
    UPDATE nar SET seen_at_ms = greatest(coalesce(seen_at_ms, 0), (n->>'seenAtMs')::bigint)
      WHERE id = known.id;
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
  -- A narinfo of an upstream does not replace one whose NAR is kept: a client has uploaded it.
  IF (c->>'unlessKept')::boolean AND EXISTS (
    SELECT FROM narinfo i JOIN nar n ON n.id = i.nar_id
      WHERE i.path_id = this_path AND n.kept_size IS NOT NULL)
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
  UPDATE nar SET kept_id = '', kept_seal = NULL, kept_hash = NULL, kept_size = NULL,
    kept_at_ms = NULL
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
    kept_size = (c->>'fileSize')::bigint, kept_at_ms = (c->>'keptAtMs')::bigint WHERE id = known.id;
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
      IF (c->>'isLost')::boolean THEN
        UPDATE nar SET seen_at_ms = 0 WHERE id = known.id AND seen_at_ms IS NOT NULL;
      END IF;
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

-- A NAR that no narinfo names, without an object.
CREATE FUNCTION remove_nar(nar_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  this_nar bigint;
BEGIN
  DELETE FROM nar n WHERE n.name = nar_name AND n.kept_size IS NULL
    AND NOT EXISTS (SELECT FROM narinfo WHERE nar_id = n.id)
    AND NOT EXISTS (SELECT FROM pending_file WHERE nar_id = n.id)
    RETURNING n.id INTO this_nar;
  DELETE FROM nar_source WHERE nar_id = this_nar;
  DELETE FROM loose_nar WHERE nar_id = this_nar;
END $$;

CREATE VIEW signed_path_count AS
  SELECT coalesce(sum(uploaded_paths), 0)::bigint AS uploaded,
    coalesce(sum(upstream_paths), 0)::bigint AS upstream
  FROM signed_path_change;

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
    WHEN 'remove-document' THEN
      DELETE FROM document WHERE path = c->>'path';
    WHEN 'remove-nar' THEN
      PERFORM remove_nar(c->>'narName');
    WHEN 'put-signed' THEN
      PERFORM put_signed(c);
    WHEN 'forget-signed' THEN
      DELETE FROM signed_path WHERE hash = c->>'storePathHash';
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
      sum(document_bytes) FROM folded HAVING count(*) > 0;
  WITH folded AS (
    DELETE FROM signed_path_change WHERE id IN (
      SELECT id FROM signed_path_change ORDER BY id FOR UPDATE SKIP LOCKED)
    RETURNING *
  )
  INSERT INTO signed_path_change (uploaded_paths, upstream_paths)
    SELECT sum(uploaded_paths), sum(upstream_paths) FROM folded HAVING count(*) > 0
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
  IF argument ? 'atMs' AND narinfos <> '[]' THEN
    INSERT INTO evicted_path (hash, at_ms)
      SELECT hash, (argument->>'atMs')::bigint
        FROM jsonb_array_elements_text(narinfos) AS gone (hash);
    -- Another transaction may remove the same ones: nobody waits.
    DELETE FROM evicted_path WHERE id IN (
      SELECT id FROM evicted_path
        WHERE id <= (SELECT max(id) FROM evicted_path) - (argument->>'evictedPathsMax')::bigint
        ORDER BY id FOR UPDATE SKIP LOCKED);
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

-- Merges rows into those that are there, each in its way. Members take turns, as all of them write
-- the same slots.
CREATE FUNCTION record_history(argument jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  LOCK TABLE history IN SHARE ROW EXCLUSIVE MODE;
  FOR r IN SELECT * FROM jsonb_to_recordset(argument->'rows')
    AS new_rows (tier text, "atMs" bigint, figure text, amount bigint, merge text)
  LOOP
    INSERT INTO history AS h (tier, at_ms, figure, amount)
      VALUES (r.tier, r."atMs", r.figure, r.amount)
      ON CONFLICT (tier, at_ms, figure) DO UPDATE SET amount = CASE r.merge
        WHEN 'sum' THEN h.amount + excluded.amount
        WHEN 'last' THEN excluded.amount
        ELSE h.amount END;
  END LOOP;
  DELETE FROM history h
    USING jsonb_to_recordset(argument->'expired') AS e (tier text, "beforeMs" bigint)
    WHERE h.tier = e.tier AND h.at_ms < e."beforeMs";
  RETURN '{}';
END $$;

-- The functions of the members: their reserved bytes, and their transactions, each run once.

-- The limit less all that is stored and all that others have reserved.
CREATE FUNCTION room_for(this_member text, limit_bytes float8) RETURNS float8 LANGUAGE sql AS $$
  SELECT limit_bytes - s.kept_bytes - s.pending_bytes
      - (SELECT coalesce(sum(reserved_bytes), 0) FROM member WHERE id <> this_member)
    FROM stock s
$$;

-- Reservations wait for each other, so that two never take the same room. A file that is kept
-- meanwhile moves its bytes within one transaction, and the lock of the row keeps our own still.
CREATE FUNCTION lock_ledger(this_member text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  bytes bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(5, 0);
  SELECT reserved_bytes INTO bytes FROM member WHERE id = this_member FOR UPDATE;
  RETURN bytes;
END $$;

CREATE FUNCTION reserve(this_member text, limit_bytes float8, needed bigint, wanted bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  reserved bigint := lock_ledger(this_member);
  room float8 := room_for(this_member, limit_bytes);
BEGIN
  IF reserved IS NULL OR needed > greatest(reserved, room) THEN RETURN NULL; END IF;
  reserved := greatest(reserved, needed, least(wanted, room));
  UPDATE member SET reserved_bytes = reserved WHERE id = this_member;
  RETURN reserved;
END $$;

-- `at_ms` is for tests; all members share the server's clock.
CREATE FUNCTION beat(
  this_member text, limit_bytes float8, held bigint, at_ms bigint, this_url text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  reserved bigint := lock_ledger(this_member);
  now_ms bigint := coalesce(at_ms, extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
  IF held <= greatest(reserved, room_for(this_member, limit_bytes)) THEN
    reserved := held;
  ELSE
    reserved := coalesce(reserved, 0);
  END IF;
  -- After the clock was set back: heartbeats from the future would never grow old.
  UPDATE member SET heartbeat_at_ms = now_ms WHERE heartbeat_at_ms > now_ms;
  INSERT INTO member (id, heartbeat_at_ms, reserved_bytes, url)
    VALUES (this_member, now_ms, reserved, this_url)
    ON CONFLICT (id) DO UPDATE
      SET heartbeat_at_ms = now_ms, reserved_bytes = reserved, url = this_url;
  PERFORM fold_stock();
  RETURN reserved;
END $$;

CREATE FUNCTION members(asker text, at_ms bigint)
RETURNS TABLE (id text, silent_ms bigint, url text) LANGUAGE sql AS $$
  SELECT m.id, greatest(0, least(now_ms, coalesce(
      (SELECT heartbeat_at_ms FROM member WHERE member.id = asker), now_ms)) - m.heartbeat_at_ms),
      m.url
    FROM member m,
      (SELECT coalesce(at_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) t (now_ms)
    ORDER BY m.id
$$;

-- Replaces the report of a member, and returns all of them: its own first, then the newest.
-- `at_ms` is for tests; all members share the server's clock.
CREATE FUNCTION report_member(
  this_member text, this_status text, at_ms bigint, kept_ms bigint, rows_max int
) RETURNS SETOF member_report LANGUAGE plpgsql AS $$
DECLARE
  now_ms bigint := coalesce(at_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
BEGIN
  -- After the clock was set back: reports from the future would never grow old.
  UPDATE member_report SET reported_at_ms = now_ms WHERE reported_at_ms > now_ms;
  INSERT INTO member_report VALUES (this_member, now_ms, this_status)
    ON CONFLICT (id) DO UPDATE SET reported_at_ms = now_ms, status = this_status;
  DELETE FROM member_report WHERE reported_at_ms < now_ms - kept_ms;
  RETURN QUERY SELECT * FROM member_report
    ORDER BY id <> this_member, reported_at_ms DESC, id LIMIT rows_max;
END $$;

-- Tells the others which rows they must not have in memory any more, in notices of a size that
-- PostgreSQL takes.
CREATE FUNCTION notify_members(this_writer uuid, paths jsonb, nars jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  -- 100 hashes of 32 characters and 50 names of up to 70 are below 8,000 bytes.
  pages int := greatest(ceil(jsonb_array_length(paths) / 100.0),
    ceil(jsonb_array_length(nars) / 50.0));
BEGIN
  IF pages > 10 THEN
    PERFORM pg_notify('larder', jsonb_build_object('from', this_writer, 'all', true)::text);
    RETURN;
  END IF;
  FOR page IN 0..pages - 1 LOOP
    PERFORM pg_notify('larder', jsonb_build_object('from', this_writer,
      'storePaths', jsonb_path_query_array(paths, '$[$a to $b]',
        jsonb_build_object('a', page * 100, 'b', page * 100 + 99)),
      'nars', jsonb_path_query_array(nars, '$[$a to $b]',
        jsonb_build_object('a', page * 50, 'b', page * 50 + 49)))::text);
  END LOOP;
END $$;

-- Runs an operation, unless it is the one that this process has run last: then it has lost the
-- answer, and gets it again.
CREATE FUNCTION run_once(this_writer uuid, this_sequence bigint, operation text, argument jsonb)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  last writer;
  result jsonb;
BEGIN
  INSERT INTO writer VALUES (this_writer, 0, NULL, now()) ON CONFLICT DO NOTHING;
  -- A former try may still run: this waits for its end.
  SELECT * INTO last FROM writer WHERE id = this_writer FOR UPDATE;
  IF last.sequence >= this_sequence THEN RETURN last.outcome; END IF;
  CASE operation
    WHEN 'apply' THEN
      result := apply_changes(argument);
      PERFORM notify_members(this_writer, argument->'paths', argument->'nars');
    WHEN 'touch' THEN result := touch(argument);
    WHEN 'protect' THEN result := protect(argument);
    WHEN 'recount' THEN result := recount();
    WHEN 'record_history' THEN result := record_history(argument);
    ELSE
      CASE operation
        WHEN 'evict' THEN result := evict(argument);
        WHEN 'expire' THEN result := expire(argument);
        WHEN 'sweep_rows' THEN result := sweep_rows(argument);
      END CASE;
      PERFORM notify_members(this_writer, coalesce(result->'narinfos', '[]'),
        coalesce(result->'nars', '[]')
          || coalesce(jsonb_path_query_array(result, '$.files[*].name'), '[]'));
  END CASE;
  UPDATE writer SET sequence = this_sequence, outcome = result, at = now() WHERE id = this_writer;
  RETURN result;
END $$;
