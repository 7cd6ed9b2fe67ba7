-- The original of this copy. A larder that opens it for its own use removes the row. From then on
-- rows may differ for another reason than a change of the original.
CREATE TABLE copy_mark (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  original TEXT NOT NULL
) STRICT;
