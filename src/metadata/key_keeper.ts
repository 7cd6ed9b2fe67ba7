/** The signing key that all members of a database share. */
export interface KeyKeeper {
  /** The text of the secret key; `undefined`: there is none. */
  signingKey(): Promise<string | undefined>;
  /** Adds the key unless there is one. Resolves to the one that is there then. */
  adoptSigningKey(text: string): Promise<string>;
}
