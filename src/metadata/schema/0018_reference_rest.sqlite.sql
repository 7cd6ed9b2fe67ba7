-- Paths with references that no stored narinfo has: those that come in slices before their narinfo,
-- and those that a narinfo with many leaves behind. Nothing reads them but their removal.
CREATE TABLE reference_rest (
  path_id INTEGER PRIMARY KEY REFERENCES path (id)
) STRICT;

-- The last reference of the path that the walk over the pins has visited, where it takes a path with
-- many in slices.
ALTER TABLE protected_path ADD COLUMN visited INTEGER NOT NULL DEFAULT -1;
