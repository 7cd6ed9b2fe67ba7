import type { KeyKeeper } from "../../src/metadata/metadata_store.ts";

/** The signing key of a database that several larders share, in a variable. */
export class MemoryKeyKeeper implements KeyKeeper {
  text: string | undefined;

  signingKey(): Promise<string | undefined> {
    return Promise.resolve(this.text);
  }

  adoptSigningKey(text: string): Promise<string> {
    return Promise.resolve(this.text ??= text);
  }
}
