-- Names under which clients of another larder remember a NAR of ours, without their endings: its
-- file came from there. A row of `nar` that has such a name comes first.
CREATE TABLE former_name (
  stem text COLLATE "C" PRIMARY KEY,
  nar_id bigint NOT NULL
);
CREATE INDEX former_name_by_nar ON former_name (nar_id);

CREATE FUNCTION forget_former_names() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM former_name WHERE nar_id = OLD.id;
  RETURN NULL;
END $$;
CREATE TRIGGER nar_removed AFTER DELETE ON nar
  FOR EACH ROW EXECUTE FUNCTION forget_former_names();
