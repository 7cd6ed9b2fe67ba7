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
