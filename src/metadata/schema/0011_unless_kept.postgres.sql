-- A narinfo of an upstream does not replace one whose NAR is kept: a client has uploaded it.
ALTER FUNCTION put_narinfo(jsonb) RENAME TO write_narinfo;

CREATE FUNCTION put_narinfo(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF (c->>'unlessKept')::boolean AND EXISTS (
    SELECT FROM path p JOIN narinfo i ON i.path_id = p.id JOIN nar n ON n.id = i.nar_id
      WHERE p.hash = c->'row'->>'storePathHash' AND n.kept_size IS NOT NULL)
  THEN
    PERFORM refuse('outdated', c->'row'->>'storePathHash');
  END IF;
  PERFORM write_narinfo(c);
END $$;
