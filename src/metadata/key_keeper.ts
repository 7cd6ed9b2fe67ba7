/** The signing key that all members of a database share. */
export interface KeyKeeper {
  /** The text of the secret key; `undefined`: there is none. */
  signingKey(): Promise<string | undefined>;
  /** Adds the key unless the database has one. Resolves to the key of the database. */
  adoptSigningKey(text: string): Promise<string>;
}
