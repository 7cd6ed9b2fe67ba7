-- One row at most: the secret key of all members that have no key file of their own.
CREATE TABLE signing_key (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  secret text NOT NULL
);
