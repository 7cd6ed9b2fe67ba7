-- A stored object has a name of its own: the NAR's name and the id of its publishing, which is
-- empty for files from before. Only the store reads the text of a seal. It is NULL if larder has not
-- read the file since there are seals: the first request for the file hashes it.
ALTER TABLE nar ADD COLUMN kept_id TEXT NOT NULL DEFAULT '';
ALTER TABLE nar ADD COLUMN kept_seal TEXT;

-- By object: one may go while another of the same NAR comes.
CREATE TABLE pending_object (
  nar_id INTEGER NOT NULL REFERENCES nar (id),
  publish_id TEXT NOT NULL,
  owner TEXT NOT NULL,
  size INTEGER NOT NULL,
  PRIMARY KEY (nar_id, publish_id)
) STRICT, WITHOUT ROWID;
-- A kept file that was about to be replaced stays as it is: then its name was the new one's too.
INSERT INTO pending_object
  SELECT f.nar_id, '', f.owner, f.size FROM pending_file f CROSS JOIN nar n ON n.id = f.nar_id
  WHERE n.kept_size IS NULL;
DROP TABLE pending_file;
ALTER TABLE pending_object RENAME TO pending_file;

CREATE TRIGGER pending_file_added AFTER INSERT ON pending_file BEGIN
  UPDATE stock SET pending_bytes = pending_bytes + NEW.size;
END;
CREATE TRIGGER pending_file_changed AFTER UPDATE OF size ON pending_file BEGIN
  UPDATE stock SET pending_bytes = pending_bytes + NEW.size - OLD.size;
END;
CREATE TRIGGER pending_file_removed AFTER DELETE ON pending_file BEGIN
  UPDATE stock SET pending_bytes = pending_bytes - OLD.size;
END;
