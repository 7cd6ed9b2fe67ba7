-- The last report of each member to the others, for displays. A dead member's row stays a while.
CREATE TABLE member_report (
  id TEXT PRIMARY KEY,
  reported_at_ms INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (octet_length(status) <= 16384)
) STRICT, WITHOUT ROWID;
