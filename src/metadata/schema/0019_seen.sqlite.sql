-- When an upstream's narinfo last named the NAR file. NULL: none ever did.
ALTER TABLE nar ADD COLUMN seen_at_ms INTEGER;
UPDATE nar SET seen_at_ms = 0 WHERE id IN (SELECT nar_id FROM nar_source);
