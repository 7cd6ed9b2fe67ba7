-- The id that the store of NAR files has too: in another store, no object belongs to these rows.
CREATE TABLE storage_id (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id text NOT NULL
);
