-- The newest pulls of clients: what each took, and where its time went. larder keeps 200 of them,
-- so the table stays below 1.1 MB.
CREATE TABLE pull (
  -- The order of their ends: no clock that is set back disturbs it.
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id text COLLATE "C" NOT NULL UNIQUE,
  client text COLLATE "C" NOT NULL,
  summary text NOT NULL CHECK (octet_length(summary) <= 1500),
  paths text NOT NULL CHECK (octet_length(paths) <= 3700)
);

-- May run twice: a known id stays as it is.
CREATE FUNCTION record_pulls(rows jsonb, rows_max int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  LOCK TABLE pull IN SHARE ROW EXCLUSIVE MODE;
  INSERT INTO pull (id, client, summary, paths)
    SELECT r->>'id', r->>'client', r->>'summary', r->>'paths'
      FROM jsonb_array_elements(rows) WITH ORDINALITY AS e (r, place) ORDER BY place
    ON CONFLICT (id) DO NOTHING;
  DELETE FROM pull
    WHERE number < (SELECT number FROM pull ORDER BY number DESC LIMIT 1 OFFSET rows_max - 1);
END $$;
