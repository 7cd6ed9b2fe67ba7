-- The last report of each member to the others, for displays. A dead member's row stays a while.
CREATE TABLE member_report (
  id text COLLATE "C" PRIMARY KEY,
  reported_at_ms bigint NOT NULL,
  status text NOT NULL CHECK (octet_length(status) <= 16384)
);

-- Replaces the report of a member, and returns all of them: its own first, then the newest.
-- `at_ms` is for tests; all members share the server's clock.
CREATE FUNCTION report_member(
  this_member text, this_status text, at_ms bigint, kept_ms bigint, rows_max int
) RETURNS SETOF member_report LANGUAGE plpgsql AS $$
DECLARE
  now_ms bigint := coalesce(at_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint);
BEGIN
  -- After the clock was set back: reports from the future would never grow old.
  UPDATE member_report SET reported_at_ms = now_ms WHERE reported_at_ms > now_ms;
  INSERT INTO member_report VALUES (this_member, now_ms, this_status)
    ON CONFLICT (id) DO UPDATE SET reported_at_ms = now_ms, status = this_status;
  DELETE FROM member_report WHERE reported_at_ms < now_ms - kept_ms;
  RETURN QUERY SELECT * FROM member_report
    ORDER BY id <> this_member, reported_at_ms DESC, id LIMIT rows_max;
END $$;
