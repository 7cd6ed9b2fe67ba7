-- When the file came that the kept one was made of, where larder has recompressed it.
ALTER TABLE nar ADD COLUMN came_at_ms bigint;

CREATE FUNCTION note_recompressed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.came_at_ms := OLD.kept_at_ms;
  RETURN NEW;
END $$;
CREATE TRIGGER nar_recompressed BEFORE UPDATE OF kept_form ON nar
  FOR EACH ROW WHEN (NEW.kept_form IS NOT NULL AND OLD.kept_form IS NULL)
  EXECUTE FUNCTION note_recompressed();
