-- When an upstream's narinfo last named the NAR file. NULL: none ever did.
ALTER TABLE nar ADD COLUMN seen_at_ms bigint;
UPDATE nar SET seen_at_ms = 0 WHERE id IN (SELECT nar_id FROM nar_source);

CREATE OR REPLACE FUNCTION claim_nar(n jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
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

ALTER FUNCTION change_file(jsonb) RENAME TO change_stored_file;

CREATE FUNCTION change_file(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM change_stored_file(c);
  IF c->>'kind' = 'nar-marked' AND (c->>'isLost')::boolean THEN
    UPDATE nar SET seen_at_ms = 0
      WHERE name = c->>'nar' AND kept_size IS NULL AND seen_at_ms IS NOT NULL;
  END IF;
END $$;
