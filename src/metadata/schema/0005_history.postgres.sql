-- An amount for each figure and slot of time, over restarts and for all members together.
CREATE TABLE history (
  tier text NOT NULL,
  -- The slot's begin; 0 for the whole life.
  at_ms bigint NOT NULL,
  figure text NOT NULL,
  amount bigint NOT NULL,
  PRIMARY KEY (tier, at_ms, figure)
);

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
