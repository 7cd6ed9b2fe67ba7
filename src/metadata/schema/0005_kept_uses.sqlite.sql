-- Whether the narinfo's NAR file is kept: eviction reads the entries that free bytes, in the order of
-- age. It does not walk over the narinfos whose NAR no client has requested.
ALTER TABLE narinfo_use ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
UPDATE narinfo_use SET kept = 1 WHERE path_id IN (
  SELECT i.path_id FROM narinfo i JOIN nar n ON n.id = i.nar_id WHERE n.kept_size IS NOT NULL);
DROP INDEX narinfo_use_by_age;
CREATE INDEX narinfo_use_by_age ON narinfo_use (protected, kept, used_at_ms);

CREATE TRIGGER nar_kept_or_gone AFTER UPDATE OF kept_size ON nar
WHEN (OLD.kept_size IS NULL) <> (NEW.kept_size IS NULL) BEGIN
  UPDATE narinfo_use SET kept = NEW.kept_size IS NOT NULL
  WHERE path_id IN (SELECT path_id FROM narinfo WHERE nar_id = NEW.id);
END;
CREATE TRIGGER narinfo_moved AFTER UPDATE OF nar_id ON narinfo WHEN OLD.nar_id <> NEW.nar_id BEGIN
  UPDATE narinfo_use SET kept = (SELECT kept_size IS NOT NULL FROM nar WHERE id = NEW.nar_id)
  WHERE path_id = NEW.path_id;
END;
