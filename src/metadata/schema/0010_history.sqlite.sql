-- The history of the cache: an amount for each figure and slot of time. larder deletes slots of a
-- tier that are too old, so the table stays at some three thousand rows.
CREATE TABLE history (
  tier TEXT NOT NULL,
  -- The slot's begin; 0 for the whole life.
  at_ms INTEGER NOT NULL,
  figure TEXT NOT NULL,
  amount INTEGER NOT NULL,
  PRIMARY KEY (tier, at_ms, figure)
) STRICT, WITHOUT ROWID;
