-- The compression of the kept object, where larder has recompressed it. NULL: as the name says.
ALTER TABLE nar ADD COLUMN kept_form TEXT;
-- When a transfer last ended before its end, of the form that the name says. Its client may come
-- back for the rest.
ALTER TABLE nar ADD COLUMN broken_at_ms INTEGER;
