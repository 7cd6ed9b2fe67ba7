-- When the file came that the kept one was made of, where larder has recompressed it.
ALTER TABLE nar ADD COLUMN came_at_ms INTEGER;

CREATE TRIGGER nar_recompressed AFTER UPDATE OF kept_form ON nar
WHEN NEW.kept_form IS NOT NULL AND OLD.kept_form IS NULL BEGIN
  UPDATE nar SET came_at_ms = OLD.kept_at_ms WHERE id = NEW.id;
END;
