-- Each process that shares the storage, with the bytes that it has reserved and not yet stored. A
-- member without a heartbeat is dead: another one removes its row, and so gives its bytes back.
CREATE TABLE member (
  id TEXT PRIMARY KEY,
  heartbeat_at_ms INTEGER NOT NULL,
  reserved_bytes INTEGER NOT NULL CHECK (reserved_bytes >= 0)
) STRICT, WITHOUT ROWID;
