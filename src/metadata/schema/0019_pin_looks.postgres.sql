-- True: larder fetches what is missing of the closure.
ALTER TABLE pin_root ADD COLUMN keep_complete boolean NOT NULL DEFAULT false;
-- The last look at the closure, in JSON. NULL: nobody has looked yet.
ALTER TABLE pin_root ADD COLUMN look text;
