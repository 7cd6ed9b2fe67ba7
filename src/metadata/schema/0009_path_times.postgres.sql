-- For explanations. When the kept file was stored; NULL for one of an older larder.
ALTER TABLE nar ADD COLUMN kept_at_ms bigint;

-- The newest evictions of narinfos. Ids grow, and a lookup scans it: an index costs each eviction.
CREATE TABLE evicted_path (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hash text COLLATE "C" NOT NULL,
  at_ms bigint NOT NULL
);

CREATE OR REPLACE FUNCTION unkeep_nar(this_nar bigint) RETURNS void LANGUAGE sql AS $$
  UPDATE nar SET kept_id = '', kept_seal = NULL, kept_hash = NULL, kept_size = NULL,
    kept_at_ms = NULL
    WHERE id = this_nar;
  SELECT set_kept(this_nar, false);
$$;

CREATE OR REPLACE FUNCTION keep_nar(known nar, c jsonb) RETURNS void LANGUAGE plpgsql AS $$
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

ALTER FUNCTION evict(jsonb) RENAME TO evict_entries;

CREATE FUNCTION evict(argument jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  outcome jsonb := evict_entries(argument);
BEGIN
  IF NOT argument ? 'atMs' OR coalesce(jsonb_array_length(outcome->'narinfos'), 0) = 0 THEN
    RETURN outcome;
  END IF;
  INSERT INTO evicted_path (hash, at_ms)
    SELECT hash, (argument->>'atMs')::bigint
      FROM jsonb_array_elements_text(outcome->'narinfos') AS gone (hash);
  -- Another transaction may remove the same ones: nobody waits.
  DELETE FROM evicted_path WHERE id IN (
    SELECT id FROM evicted_path
      WHERE id <= (SELECT max(id) FROM evicted_path) - (argument->>'evictedPathsMax')::bigint
      ORDER BY id FOR UPDATE SKIP LOCKED);
  RETURN outcome;
END $$;
