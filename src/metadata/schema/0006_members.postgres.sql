-- The functions of the members: their reserved bytes, and their transactions, each run once.

-- The limit less all that is stored and all that others have reserved.
CREATE FUNCTION room_for(this_member text, limit_bytes float8) RETURNS float8 LANGUAGE sql AS $$
  SELECT limit_bytes - s.kept_bytes - s.pending_bytes
      - (SELECT coalesce(sum(reserved_bytes), 0) FROM member WHERE id <> this_member)
    FROM stock s
$$;

-- Reservations wait for each other, so that two never take the same room. A file that is kept
-- meanwhile moves its bytes within one transaction, and the lock of the row keeps our own still.
CREATE FUNCTION lock_ledger(this_member text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  bytes bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(5, 0);
  SELECT reserved_bytes INTO bytes FROM member WHERE id = this_member FOR UPDATE;
  RETURN bytes;
END $$;

CREATE FUNCTION reserve(this_member text, limit_bytes float8, needed bigint, wanted bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  reserved bigint := lock_ledger(this_member);
  room float8 := room_for(this_member, limit_bytes);
BEGIN
  IF reserved IS NULL OR needed > greatest(reserved, room) THEN RETURN NULL; END IF;
  reserved := greatest(reserved, needed, least(wanted, room));
  UPDATE member SET reserved_bytes = reserved WHERE id = this_member;
  RETURN reserved;
END $$;

-- `at_ms` is for tests; all members share the server's clock.
CREATE FUNCTION beat(this_member text, limit_bytes float8, held bigint, at_ms bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  reserved bigint := lock_ledger(this_member);
  now_ms bigint := coalesce(at_ms, extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
  IF held <= greatest(reserved, room_for(this_member, limit_bytes)) THEN
    reserved := held;
  ELSE
    reserved := coalesce(reserved, 0);
  END IF;
  -- After the clock was set back: heartbeats from the future would never grow old.
  UPDATE member SET heartbeat_at_ms = now_ms WHERE heartbeat_at_ms > now_ms;
  INSERT INTO member (id, heartbeat_at_ms, reserved_bytes) VALUES (this_member, now_ms, reserved)
    ON CONFLICT (id) DO UPDATE SET heartbeat_at_ms = now_ms, reserved_bytes = reserved;
  PERFORM fold_stock();
  RETURN reserved;
END $$;

CREATE FUNCTION members(asker text, at_ms bigint) RETURNS TABLE (id text, silent_ms bigint)
LANGUAGE sql AS $$
  SELECT m.id, greatest(0, least(now_ms, coalesce(
      (SELECT heartbeat_at_ms FROM member WHERE member.id = asker), now_ms)) - m.heartbeat_at_ms)
    FROM member m,
      (SELECT coalesce(at_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) t (now_ms)
    ORDER BY m.id
$$;

-- Tells the others which rows they must not have in memory any more, in notices of a size that
-- PostgreSQL takes.
CREATE FUNCTION notify_members(this_writer uuid, paths jsonb, nars jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  -- 100 hashes of 32 characters and 50 names of up to 70 are below 8,000 bytes.
  pages int := greatest(ceil(jsonb_array_length(paths) / 100.0),
    ceil(jsonb_array_length(nars) / 50.0));
BEGIN
  IF pages > 10 THEN
    PERFORM pg_notify('larder', jsonb_build_object('from', this_writer, 'all', true)::text);
    RETURN;
  END IF;
  FOR page IN 0..pages - 1 LOOP
    PERFORM pg_notify('larder', jsonb_build_object('from', this_writer,
      'storePaths', jsonb_path_query_array(paths, '$[$a to $b]',
        jsonb_build_object('a', page * 100, 'b', page * 100 + 99)),
      'nars', jsonb_path_query_array(nars, '$[$a to $b]',
        jsonb_build_object('a', page * 50, 'b', page * 50 + 49)))::text);
  END LOOP;
END $$;

-- Runs an operation, unless it is the one that this process has run last: then it has lost the
-- answer, and gets it again.
CREATE FUNCTION run_once(this_writer uuid, this_sequence bigint, operation text, argument jsonb)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  last writer;
  result jsonb;
BEGIN
  INSERT INTO writer VALUES (this_writer, 0, NULL, now()) ON CONFLICT DO NOTHING;
  -- A former try may still run: this waits for its end.
  SELECT * INTO last FROM writer WHERE id = this_writer FOR UPDATE;
  IF last.sequence >= this_sequence THEN RETURN last.outcome; END IF;
  CASE operation
    WHEN 'apply' THEN
      result := apply_changes(argument);
      PERFORM notify_members(this_writer, argument->'paths', argument->'nars');
    WHEN 'touch' THEN result := touch(argument);
    WHEN 'protect' THEN result := protect(argument);
    WHEN 'recount' THEN result := recount();
    WHEN 'record_history' THEN result := record_history(argument);
    ELSE
      CASE operation
        WHEN 'evict' THEN result := evict(argument);
        WHEN 'expire' THEN result := expire(argument);
        WHEN 'sweep_rows' THEN result := sweep_rows(argument);
      END CASE;
      PERFORM notify_members(this_writer, coalesce(result->'narinfos', '[]'),
        coalesce(result->'nars', '[]')
          || coalesce(jsonb_path_query_array(result, '$.files[*].name'), '[]'));
  END CASE;
  UPDATE writer SET sequence = this_sequence, outcome = result, at = now() WHERE id = this_writer;
  RETURN result;
END $$;
