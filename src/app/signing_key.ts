import { dirname } from "node:path";
import { Failure, reasonOf } from "../base/failure.ts";
import { removeIfPresent } from "../base/files.ts";
import { answerInTime, readNamedFile } from "../base/named_file.ts";
import { generateSecretKey, parseSecretKey, type SecretKey } from "../nix/signature.ts";
import { dice } from "../runtime/current.ts";

export interface SigningKeyPlace {
  readonly path: string;
  /** Names a generated key. */
  readonly hostname: string;
  /** False if a missing file is an error, as clients trust the earlier key. */
  readonly mayMake: boolean;
}

/**
 * The key that signs narinfos: the one at `path`, else a new one, written there with permissions
 * for this user alone. Throws a Failure for an invalid file.
 */
export async function signingKey(place: SigningKeyPlace): Promise<SecretKey> {
  const { path, hostname, mayMake } = place;
  const existing = await existingKey(path);
  if (existing !== undefined) return existing;
  if (mayMake) return await writeKey(path, generateSecretKey(hostname));
  throw missing(place);
}

/**
 * Throws the Failure that `signingKey` would throw, without writing a key: a start that fails later
 * leaves no key behind.
 */
export async function checkKeyPlace(place: SigningKeyPlace): Promise<void> {
  const { path, mayMake } = place;
  if (await existingKey(path) !== undefined) return;
  if (!mayMake) throw missing(place);
  try {
    Deno.removeSync(Deno.makeTempFileSync({ dir: dirname(path), prefix: ".writable-" }));
  } catch (error) {
    throw notMade(path, error);
  }
}

/**
 * Makes another cache's key the one at `path`, if there is none yet. Returns the one that is there
 * then: larder never replaces a key that clients trust.
 */
export async function adoptSigningKey(path: string, key: SecretKey): Promise<SecretKey> {
  return await existingKey(path) ?? await writeKey(path, key);
}

/** `undefined` for a missing file. Throws a Failure for one that is invalid or does not answer. */
export async function existingKey(path: string): Promise<SecretKey | undefined> {
  try {
    return parseSecretKey(await answerInTime(readNamedFile(path)));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    const reason = reasonOf(error);
    throw new Failure("broken", `Cannot use secret key file ${path}: ${reason}`, {}, error);
  }
}

/** Writes the key unless `path` has one. Returns the key at `path`. */
async function writeKey(path: string, key: SecretKey): Promise<SecretKey> {
  const temporary = `${path}.${dice.uuid()}`;
  try {
    writeDurably(temporary, `${key.text}\n`);
    // Unlike a rename, a link never replaces a file, and never shows half a key.
    Deno.linkSync(temporary, path);
    return key;
  } catch (error) {
    // Another server of this storage may have been quicker.
    const quicker = error instanceof Deno.errors.AlreadyExists
      ? await existingKey(path)
      : undefined;
    if (quicker !== undefined) return quicker;
    throw notMade(path, error);
  } finally {
    removeIfPresent(temporary);
  }
}

function missing({ path, hostname }: SigningKeyPlace): Failure {
  return new Failure(
    "broken",
    `Cannot use secret key file ${path}: it is missing, and this storage has data; make one ` +
      `with "nix key generate-secret --key-name ${hostname}", or leave out ` +
      "--cache-secret-key-path for its key",
  );
}

function notMade(path: string, error: unknown): Failure {
  const reason = reasonOf(error);
  return new Failure("broken", `Cannot make secret key file ${path}: ${reason}`, {}, error);
}

function writeDurably(path: string, text: string): void {
  Deno.writeTextFileSync(path, text, { createNew: true, mode: 0o600 });
  using file = Deno.openSync(path);
  file.syncSync();
}
