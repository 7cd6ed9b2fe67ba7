-- The original of this copy. A larder that opens it for its own use removes the row. From then on
-- rows may differ for another reason than a change of the original.
CREATE TABLE copy_mark (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  original text NOT NULL
);

-- A NAR that no narinfo names, without an object.
CREATE FUNCTION remove_nar(nar_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  this_nar bigint;
BEGIN
  DELETE FROM nar n WHERE n.name = nar_name AND n.kept_size IS NULL
    AND NOT EXISTS (SELECT FROM narinfo WHERE nar_id = n.id)
    AND NOT EXISTS (SELECT FROM pending_file WHERE nar_id = n.id)
    RETURNING n.id INTO this_nar;
  DELETE FROM nar_source WHERE nar_id = this_nar;
  DELETE FROM loose_nar WHERE nar_id = this_nar;
END $$;

ALTER FUNCTION apply_change(jsonb) RENAME TO apply_server_change;

CREATE FUNCTION apply_change(c jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  CASE c->>'kind'
    WHEN 'remove-nar' THEN
      PERFORM remove_nar(c->>'narName');
    WHEN 'remove-document' THEN
      DELETE FROM document WHERE path = c->>'path';
    ELSE
      PERFORM apply_server_change(c);
  END CASE;
END $$;
