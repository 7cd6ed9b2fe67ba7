-- False for a root that names alone hold: it goes with the last of them.
ALTER TABLE pin_root ADD COLUMN by_hand boolean NOT NULL DEFAULT true;

-- The roots that names hold. The newest root of a name has the greatest id. A root that is unpinned
-- leaves all its names.
CREATE TABLE pin_name (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hash text COLLATE "C" NOT NULL REFERENCES pin_root (hash) ON DELETE CASCADE,
  name text COLLATE "C" NOT NULL,
  pinned_at_ms bigint NOT NULL,
  -- The number of roots that the name keeps, as it was last given.
  keep bigint NOT NULL,
  UNIQUE (hash, name)
);
CREATE INDEX pin_name_by_name ON pin_name (name, id);

-- The name gives up all but its newest roots. Those that nothing else holds are unpinned.
CREATE FUNCTION roll_off(this_name text, keep_count bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  left_hashes text[];
BEGIN
  WITH rolled AS (
    DELETE FROM pin_name WHERE id IN (
      SELECT id FROM pin_name WHERE name = this_name ORDER BY id DESC OFFSET keep_count)
    RETURNING hash
  )
  SELECT array_agg(hash) INTO left_hashes FROM rolled;
  DELETE FROM pin_root r WHERE r.hash = ANY(left_hashes) AND NOT r.by_hand
    AND NOT EXISTS (SELECT FROM pin_name n WHERE n.hash = r.hash);
  IF FOUND THEN PERFORM protect_again(); END IF;
END $$;

CREATE FUNCTION put_pin(root_hash text, at_ms bigint, hand boolean) RETURNS void LANGUAGE sql AS $$
  INSERT INTO pin_root (hash, pinned_at_ms, by_hand) VALUES (root_hash, at_ms, hand)
    ON CONFLICT (hash) DO UPDATE SET by_hand = pin_root.by_hand OR excluded.by_hand;
  SELECT protect_root(root_hash);
$$;

CREATE FUNCTION change_pin(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  root_hash text := c->>'storePathHash';
BEGIN
  CASE c->>'kind'
    WHEN 'put-pin' THEN
      PERFORM put_pin(c->'pin'->>'storePathHash', (c->'pin'->>'pinnedAtMs')::bigint,
        NOT coalesce((c->'pin'->>'rolls')::boolean, false));
    WHEN 'remove-pin' THEN
      DELETE FROM pin_root WHERE hash = root_hash;
      IF FOUND THEN PERFORM protect_again(); END IF;
    WHEN 'roll-pin' THEN
      PERFORM put_pin(root_hash, (c->>'pinnedAtMs')::bigint, false);
      -- Anew, as the newest one.
      DELETE FROM pin_name WHERE hash = root_hash AND name = c->>'name';
      INSERT INTO pin_name (hash, name, pinned_at_ms, keep)
        VALUES (root_hash, c->>'name', (c->>'pinnedAtMs')::bigint, (c->>'keep')::bigint);
      UPDATE pin_name SET keep = (c->>'keep')::bigint
        WHERE name = c->>'name' AND keep <> (c->>'keep')::bigint;
      PERFORM roll_off(c->>'name', (c->>'keep')::bigint);
    WHEN 'unpin-name' THEN
      PERFORM roll_off(c->>'name', 0);
  END CASE;
END $$;

CREATE OR REPLACE FUNCTION apply_change(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
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
    WHEN 'put-pin', 'remove-pin', 'roll-pin', 'unpin-name' THEN
      PERFORM change_pin(c);
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
