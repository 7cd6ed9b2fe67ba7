-- Where the other members reach it; NULL: nowhere. They send their token to no other address.
ALTER TABLE member ADD COLUMN url TEXT;
