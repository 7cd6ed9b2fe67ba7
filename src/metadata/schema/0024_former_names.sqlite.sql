-- Names under which clients of another larder remember a NAR of ours, without their endings: its
-- file came from there. A row of `nar` that has such a name comes first.
CREATE TABLE former_name (
  stem TEXT PRIMARY KEY,
  nar_id INTEGER NOT NULL REFERENCES nar (id)
) STRICT, WITHOUT ROWID;
CREATE INDEX former_name_by_nar ON former_name (nar_id);

CREATE TRIGGER nar_removed AFTER DELETE ON nar BEGIN
  DELETE FROM former_name WHERE nar_id = OLD.id;
END;
