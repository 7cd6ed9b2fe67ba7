-- Every NAR that no narinfo names, kept or not, by its last use: eviction takes the kept ones,
-- retention the others. Those that are found now count as used now: a client may hold their name.
ALTER TABLE loose_nar ADD COLUMN kept INTEGER NOT NULL DEFAULT 1;
INSERT INTO loose_nar SELECT id, unixepoch() * 1000, 0 FROM nar
  WHERE kept_size IS NULL AND NOT EXISTS (SELECT 1 FROM narinfo WHERE nar_id = nar.id);
DROP INDEX loose_nar_by_age;
CREATE INDEX loose_nar_by_age ON loose_nar (kept, used_at_ms);

CREATE TRIGGER loose_nar_kept_or_gone AFTER UPDATE OF kept_size ON nar
WHEN (OLD.kept_size IS NULL) <> (NEW.kept_size IS NULL) BEGIN
  UPDATE loose_nar SET kept = NEW.kept_size IS NOT NULL WHERE nar_id = NEW.id;
END;

-- Tells which paths nothing refers to any more.
CREATE INDEX reference_by_dst ON reference (dst);

-- The last use has taken its place.
ALTER TABLE nar DROP COLUMN heard_at_s;
