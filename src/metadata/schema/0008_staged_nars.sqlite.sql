-- An uploaded NAR whose narinfo has not come stays until then; 0 for every other one. Eviction
-- spares it, and it goes by its time.
ALTER TABLE loose_nar ADD COLUMN staged_until_ms INTEGER NOT NULL DEFAULT 0;
CREATE INDEX loose_nar_by_stage ON loose_nar (staged_until_ms) WHERE staged_until_ms > 0;
