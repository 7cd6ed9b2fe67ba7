-- The compression of the kept object, where larder has recompressed it. NULL: as the name says.
ALTER TABLE nar ADD COLUMN kept_form text;
-- When a transfer last ended before its end, of the form that the name says. Its client may come
-- back for the rest.
ALTER TABLE nar ADD COLUMN broken_at_ms bigint;

CREATE OR REPLACE FUNCTION unkeep_nar(this_nar bigint) RETURNS void LANGUAGE sql AS $$
  UPDATE nar SET kept_id = '', kept_seal = NULL, kept_hash = NULL, kept_size = NULL,
    kept_at_ms = NULL, kept_form = NULL
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
  IF c ? 'replaces' AND (known.kept_size IS NULL OR known.kept_id <> c->'replaces'->>'id'
    OR known.broken_at_ms >= (c->'replaces'->>'quietSinceMs')::bigint)
  THEN
    PERFORM refuse('replaced', c->>'at');
  END IF;
  IF c ? 'reservedBytes' THEN
    UPDATE member SET reserved_bytes = reserved_bytes - (c->>'reservedBytes')::bigint
      WHERE id = c->>'owner' AND reserved_bytes >= (c->>'reservedBytes')::bigint;
    IF NOT FOUND THEN PERFORM refuse('reservation', c->>'at'); END IF;
  END IF;
  IF known.kept_size IS NOT NULL AND known.kept_id <> c->>'id' THEN
    PERFORM add_pending(known.id, known.kept_id, c->>'owner', known.kept_size);
  END IF;
  UPDATE nar SET kept_id = c->>'id', kept_seal = c->>'seal', kept_hash = c->>'fileHash',
    kept_size = (c->>'fileSize')::bigint, kept_at_ms = (c->>'keptAtMs')::bigint,
    kept_form = c->>'form' WHERE id = known.id;
  PERFORM set_kept(known.id, true);
  PERFORM loosen_nar(known.id, (c->>'atMs')::bigint);
END $$;

-- Changes nothing where no narinfo ever named the NAR.
CREATE OR REPLACE FUNCTION change_file(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
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
    WHEN 'nar-broken' THEN
      UPDATE nar SET broken_at_ms = greatest(broken_at_ms, (c->>'atMs')::bigint)
        WHERE id = known.id;
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
