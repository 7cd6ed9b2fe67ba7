-- Sums of the kept files, the paths that pins protect, and the files that are being written or
-- removed. The writes themselves keep all of it up to date: no scan ever counts.

-- One row. `generation` numbers the walks over all pins, see protected_path.
CREATE TABLE stock (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  kept_bytes INTEGER NOT NULL,
  kept_files INTEGER NOT NULL,
  pending_bytes INTEGER NOT NULL,
  protected_bytes INTEGER NOT NULL,
  generation INTEGER NOT NULL
) STRICT;

-- Every path that a pin reaches, stored or not. `expanded` is 0 until its references are here too.
-- An unpinning starts a new generation from the pins that are left; what only older generations
-- reached goes when the new one is complete. Until then too much is protected, never too little.
CREATE TABLE protected_path (
  path_id INTEGER PRIMARY KEY REFERENCES path (id),
  generation INTEGER NOT NULL,
  expanded INTEGER NOT NULL
) STRICT;
CREATE INDEX protected_path_to_expand ON protected_path (path_id) WHERE expanded = 0;
CREATE INDEX protected_path_by_generation ON protected_path (generation);

-- NAR files that no narinfo names: they go by their own age.
CREATE TABLE loose_nar (
  nar_id INTEGER PRIMARY KEY REFERENCES nar (id),
  used_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX loose_nar_by_age ON loose_nar (used_at_ms);

-- NAR files that a crash may leave behind. A row is written before a file gets its name (size 0).
-- Another is written when larder gives a file up: its size counts until the file is gone.
CREATE TABLE pending_file (
  nar_id INTEGER PRIMARY KEY REFERENCES nar (id),
  owner TEXT NOT NULL,
  size INTEGER NOT NULL
) STRICT;

-- Whether the path of the row is in protected_path: eviction reads the rest in the order of age.
ALTER TABLE narinfo_use ADD COLUMN protected INTEGER NOT NULL DEFAULT 0;
DROP INDEX narinfo_use_by_age;
CREATE INDEX narinfo_use_by_age ON narinfo_use (protected, used_at_ms);

-- How many protected narinfos lead to the file.
ALTER TABLE nar ADD COLUMN protected_by INTEGER NOT NULL DEFAULT 0;

INSERT INTO stock
  SELECT 1, ifnull(sum(kept_size), 0), count(kept_size), 0, 0, 1 FROM nar;
INSERT INTO loose_nar
  SELECT id, heard_at_s * 1000 FROM nar
  WHERE kept_size IS NOT NULL AND NOT EXISTS (SELECT 1 FROM narinfo WHERE nar_id = nar.id);

CREATE TRIGGER path_protected AFTER INSERT ON protected_path BEGIN
  UPDATE narinfo_use SET protected = 1 WHERE path_id = NEW.path_id;
END;
CREATE TRIGGER path_unprotected AFTER DELETE ON protected_path BEGIN
  UPDATE narinfo_use SET protected = 0 WHERE path_id = OLD.path_id;
END;

CREATE TRIGGER protected_use_changed AFTER UPDATE OF protected ON narinfo_use
WHEN OLD.protected <> NEW.protected BEGIN
  UPDATE nar SET protected_by = protected_by + NEW.protected - OLD.protected
  WHERE id = (SELECT nar_id FROM narinfo WHERE path_id = NEW.path_id);
END;
CREATE TRIGGER protected_use_added AFTER INSERT ON narinfo_use WHEN NEW.protected = 1 BEGIN
  UPDATE nar SET protected_by = protected_by + 1
  WHERE id = (SELECT nar_id FROM narinfo WHERE path_id = NEW.path_id);
END;
-- The narinfo is removed after its use.
CREATE TRIGGER protected_use_removed AFTER DELETE ON narinfo_use WHEN OLD.protected = 1 BEGIN
  UPDATE nar SET protected_by = protected_by - 1
  WHERE id = (SELECT nar_id FROM narinfo WHERE path_id = OLD.path_id);
END;
CREATE TRIGGER protected_narinfo_moved AFTER UPDATE OF nar_id ON narinfo
WHEN OLD.nar_id <> NEW.nar_id
  AND EXISTS (SELECT 1 FROM narinfo_use WHERE path_id = NEW.path_id AND protected = 1) BEGIN
  UPDATE nar SET protected_by = protected_by - 1 WHERE id = OLD.nar_id;
  UPDATE nar SET protected_by = protected_by + 1 WHERE id = NEW.nar_id;
END;

CREATE TRIGGER nar_kept_changed AFTER UPDATE OF kept_size ON nar
WHEN OLD.kept_size IS NOT NEW.kept_size BEGIN
  UPDATE stock SET
    kept_bytes = kept_bytes + ifnull(NEW.kept_size, 0) - ifnull(OLD.kept_size, 0),
    kept_files = kept_files + (NEW.kept_size IS NOT NULL) - (OLD.kept_size IS NOT NULL),
    protected_bytes = protected_bytes
      + (NEW.protected_by > 0) * (ifnull(NEW.kept_size, 0) - ifnull(OLD.kept_size, 0));
END;
CREATE TRIGGER nar_protected_changed AFTER UPDATE OF protected_by ON nar
WHEN NEW.kept_size IS NOT NULL AND (OLD.protected_by > 0) <> (NEW.protected_by > 0) BEGIN
  UPDATE stock SET protected_bytes = protected_bytes
    + ((NEW.protected_by > 0) - (OLD.protected_by > 0)) * NEW.kept_size;
END;

CREATE TRIGGER pending_file_added AFTER INSERT ON pending_file BEGIN
  UPDATE stock SET pending_bytes = pending_bytes + NEW.size;
END;
CREATE TRIGGER pending_file_changed AFTER UPDATE OF size ON pending_file BEGIN
  UPDATE stock SET pending_bytes = pending_bytes + NEW.size - OLD.size;
END;
CREATE TRIGGER pending_file_removed AFTER DELETE ON pending_file BEGIN
  UPDATE stock SET pending_bytes = pending_bytes - OLD.size;
END;

-- The pins that are there already: their closures are walked when larder starts.
INSERT INTO protected_path SELECT path.id, 1, 0 FROM pin_root JOIN path ON path.hash = pin_root.hash;
