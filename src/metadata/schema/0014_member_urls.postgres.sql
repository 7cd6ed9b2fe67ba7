-- Where the other members reach it; NULL: nowhere. They send their token to no other address.
ALTER TABLE member ADD COLUMN url text;

ALTER FUNCTION beat(text, float8, bigint, bigint) RENAME TO beat_ledger;

CREATE FUNCTION beat(
  this_member text, limit_bytes float8, held bigint, at_ms bigint, this_url text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  reserved bigint := beat_ledger(this_member, limit_bytes, held, at_ms);
BEGIN
  UPDATE member SET url = this_url WHERE id = this_member AND url IS DISTINCT FROM this_url;
  RETURN reserved;
END $$;

DROP FUNCTION members(text, bigint);

CREATE FUNCTION members(asker text, at_ms bigint)
RETURNS TABLE (id text, silent_ms bigint, url text) LANGUAGE sql AS $$
  SELECT m.id, greatest(0, least(now_ms, coalesce(
      (SELECT heartbeat_at_ms FROM member WHERE member.id = asker), now_ms)) - m.heartbeat_at_ms),
      m.url
    FROM member m,
      (SELECT coalesce(at_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) t (now_ms)
    ORDER BY m.id
$$;
