-- The newest pulls of clients: what each took, and where its time went. larder keeps 200 of them,
-- so the table stays below 1.1 MB.
CREATE TABLE pull (
  -- The order of their ends: no clock that is set back disturbs it.
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  client TEXT NOT NULL,
  summary TEXT NOT NULL CHECK (length(CAST(summary AS BLOB)) <= 1500),
  paths TEXT NOT NULL CHECK (length(CAST(paths AS BLOB)) <= 3700)
) STRICT;
