import { Failure, messageOf } from "../base/failure.ts";
import { generateSecretKey, parseSecretKey, type SecretKey } from "../nix/signature.ts";

export interface SigningKeyPlace {
  readonly path: string;
  /** Names a key that is made. */
  readonly hostname: string;
}

/**
 * The key that narinfos are signed with: the one at `path`, else a new one that is put there,
 * readable by this user alone. Throws a Failure that names the file when it holds no key.
 */
export function signingKey({ path, hostname }: SigningKeyPlace): SecretKey {
  try {
    return parseSecretKey(Deno.readTextFileSync(path));
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) {
      const reason = messageOf(error);
      throw new Failure("broken", `Cannot use secret key file ${path}: ${reason}`, {}, error);
    }
  }
  return makeKey({ path, hostname });
}

function makeKey({ path, hostname }: SigningKeyPlace): SecretKey {
  const key = generateSecretKey(hostname);
  try {
    Deno.writeTextFileSync(path, `${key.text}\n`, { createNew: true, mode: 0o600 });
  } catch (error) {
    // Another server of this storage may have been quicker.
    if (error instanceof Deno.errors.AlreadyExists) return signingKey({ path, hostname });
    const reason = messageOf(error);
    throw new Failure("broken", `Cannot make secret key file ${path}: ${reason}`, {}, error);
  }
  return key;
}
