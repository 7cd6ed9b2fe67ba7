-- Counts the transactions that wrote more than uses, heartbeats, reservations and the history. When
-- it has changed, other processes drop the rows that they hold in memory.
ALTER TABLE stock ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
