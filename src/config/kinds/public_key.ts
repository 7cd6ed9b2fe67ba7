import { parsePublicKey, type PublicKey } from "../../nix/signature.ts";
import { HIDDEN, type Kind } from "./option.ts";

/** A key such as `cache.nixos.org-1:6NCHdD59X431o0gWypbMrAURkbJ16ZPMQFGspcDShjY=`. */
export const publicKey: Kind<PublicKey> = {
  placeholder: "KEY",

  parse(given) {
    try {
      return parsePublicKey(given);
    } catch {
      throw new Error("NAME:KEY, where KEY is the base64 of the 32 bytes of a public key");
    }
  },

  print: (key) => key.text,

  // Hides a secret key given by mistake: it has the same form, only longer.
  redact: (given) => given.replace(/:.{50,}$/s, `:${HIDDEN}`),
};
