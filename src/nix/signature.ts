import {
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from "node:crypto";
import { Failure } from "../base/failure.ts";
import { dice } from "../runtime/current.ts";
import { excerpt } from "./excerpt.ts";

const SIGNATURE_BYTES = 64;
const KEY_BYTES = 32;
// The DER prefix of a raw Ed25519 key of 32 bytes (RFC 8410).
const SPKI_PREFIX = Uint8Array.fromHex("302a300506032b6570032100");
const PKCS8_PREFIX = Uint8Array.fromHex("302e020100300506032b657004220420");
const KEY_NAME_REGEXP = /^[^\s:\p{Cc}]{1,255}$/u;
const ENCODER = new TextEncoder();

/** One `Sig` of a narinfo: `<key name>:<base64>`. */
export interface Signature {
  readonly keyName: string;
  readonly bytes: Uint8Array;
  readonly text: string;
}

/** A parsed signature; `undefined` unless the text is a key name and 64 bytes of base64. */
export function signatureOf(text: string): Signature | undefined {
  const pair = readPair(text, SIGNATURE_BYTES);
  return pair && { keyName: pair.name, bytes: pair.bytes, text };
}

/** A key that verifies signatures. `text` is `<name>:<base64 of 32 bytes>`. */
export class PublicKey {
  readonly name: string;
  readonly text: string;
  readonly #key: KeyObject;

  /** `bytes`: the 32 raw bytes. Throws "bad-request" if they are no point of the curve. */
  constructor(name: string, bytes: Uint8Array) {
    this.name = name;
    this.text = `${name}:${bytes.toBase64()}`;
    try {
      this.#key = createPublicKey(pem("PUBLIC KEY", SPKI_PREFIX, bytes));
    } catch (cause) {
      const message = `Cannot use public key ${excerpt(this.text)}: it is not an Ed25519 key`;
      throw new Failure("bad-request", message, {}, cause);
    }
  }

  /** True if this key made `signature` over `fingerprint`. Ignores the signature's key name. */
  verify(fingerprint: string, signature: Signature): boolean {
    return verifyBytes(null, ENCODER.encode(fingerprint), this.#key, signature.bytes);
  }
}

/** Throws "bad-request" for anything but `<name>:<base64 of exactly 32 bytes>`. */
export function parsePublicKey(text: string): PublicKey {
  const pair = readPair(text.trim(), KEY_BYTES);
  if (pair !== undefined) return new PublicKey(pair.name, pair.bytes);
  throw new Failure(
    "bad-request",
    `Cannot read ${excerpt(text)} as a public key: it is not "name:base64 of 32 bytes"`,
  );
}

/** A key that makes signatures. Printing it does not reveal the secret. */
export class SecretKey {
  readonly name: string;
  readonly publicKey: PublicKey;
  readonly #seed: Uint8Array;
  readonly #publicBytes: Uint8Array;
  readonly #key: KeyObject;

  /** `seed`: the 32 secret bytes of an Ed25519 key. */
  constructor(name: string, seed: Uint8Array) {
    this.name = name;
    this.#seed = seed;
    this.#key = createPrivateKey(pem("PRIVATE KEY", PKCS8_PREFIX, seed));
    const spki = createPublicKey(this.#key).export({ format: "der", type: "spki" });
    this.#publicBytes = spki.subarray(SPKI_PREFIX.length);
    this.publicKey = new PublicKey(name, this.#publicBytes);
  }

  /** The secret in Nix's file format: `<name>:<base64 of seed and public key>`. */
  get text(): string {
    return `${this.name}:${concat(this.#seed, this.#publicBytes).toBase64()}`;
  }

  sign(fingerprint: string): Signature {
    const bytes = new Uint8Array(signBytes(null, ENCODER.encode(fingerprint), this.#key));
    return { keyName: this.name, bytes, text: `${this.name}:${bytes.toBase64()}` };
  }
}

/**
 * Parses the output of `nix-store --generate-binary-cache-key`. Throws "bad-request" for another
 * form, or a public half of another secret. The message never contains the text.
 */
export function parseSecretKey(text: string): SecretKey {
  const pair = readPair(text.trim(), 2 * KEY_BYTES);
  if (pair === undefined) {
    throw new Failure(
      "bad-request",
      `Cannot read secret key: it is not "name:base64 of 64 bytes"`,
    );
  }
  const key = new SecretKey(pair.name, pair.bytes.slice(0, KEY_BYTES));
  if (key.publicKey.text !== `${pair.name}:${pair.bytes.subarray(KEY_BYTES).toBase64()}`) {
    throw new Failure("bad-request", "Cannot read secret key: its public half is another key's", {
      name: pair.name,
    });
  }
  return key;
}

/** A new random key. Throws "bad-request" if `name` is empty, or has ":" or white space. */
export function generateSecretKey(name: string): SecretKey {
  if (!KEY_NAME_REGEXP.test(name)) {
    throw new Failure("bad-request", `Cannot use ${excerpt(name)} as a key name`);
  }
  return new SecretKey(name, dice.bytes(KEY_BYTES));
}

interface NamedBytes {
  readonly name: string;
  readonly bytes: Uint8Array;
}

function readPair(text: string, byteLength: number): NamedBytes | undefined {
  const colon = text.indexOf(":");
  // The decoder skips white space, so only the exact length rules it out.
  if (text.length - colon - 1 !== 4 * Math.ceil(byteLength / 3)) return undefined;
  const name = text.slice(0, Math.max(colon, 0));
  if (!KEY_NAME_REGEXP.test(name)) return undefined;
  try {
    const base64 = text.slice(colon + 1);
    const bytes = Uint8Array.fromBase64(base64, { lastChunkHandling: "strict" });
    return bytes.length === byteLength ? { name, bytes } : undefined;
  } catch {
    return undefined;
  }
}

function pem(label: string, prefix: Uint8Array, bytes: Uint8Array): string {
  const base64 = concat(prefix, bytes).toBase64();
  return `-----BEGIN ${label}-----\n${base64}\n-----END ${label}-----\n`;
}

function concat(first: Uint8Array, second: Uint8Array): Uint8Array {
  const both = new Uint8Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
}
