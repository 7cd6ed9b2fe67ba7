import type { Kind } from "./option.ts";

/** A token that clients send, with the name that the log shows. */
export interface NamedToken {
  /** `undefined`: the log shows the role. */
  readonly name?: string;
  readonly secret: string;
}

/** Visible ASCII, as valid in a header and a netrc file, without the separators of lists. */
const SECRET_REGEXP = /^(?!#)(?:(?![,:])[!-~])+$/;
const NAME_REGEXP = /^[A-Za-z0-9._@-]{1,64}$/;

/** `TOKEN` or `NAME:TOKEN`. */
export const namedToken: Kind<NamedToken> = {
  placeholder: "[NAME:]TOKEN",

  parse(given) {
    const colon = given.indexOf(":");
    const name = colon < 0 ? undefined : given.slice(0, colon);
    const secret = given.slice(colon + 1);
    const fault = faultOf(name, secret);
    if (fault !== undefined) throw new Error(`TOKEN or NAME:TOKEN, ${fault}`);
    return name === undefined ? { secret } : { name, secret };
  },

  print: ({ name, secret }) => name === undefined ? secret : `${name}:${secret}`,
};

/** The expected form that an invalid token breaks; it contains no part of the token. */
function faultOf(name: string | undefined, secret: string): string | undefined {
  if (name !== undefined && secret === "") return "with a token behind the colon";
  if (secret.includes(":")) return "without a second colon";
  if (!SECRET_REGEXP.test(secret)) return "of visible characters without commas";
  if (name === undefined || NAME_REGEXP.test(name)) return undefined;
  return "with a name of up to 64 letters, digits and ._@-";
}

/** Any number of them: separated by commas, or one on each line. `#` begins a comment line. */
export const namedTokens: Kind<readonly NamedToken[]> = {
  placeholder: namedToken.placeholder,
  item: namedToken,
  split: splitTokens,
  parse: (text) => splitTokens(text).map((part) => namedToken.parse(part)),
  print: (values) => values.map((value) => namedToken.print(value)).join(","),
};

/** Blanks separate nothing: a word of a sentence must not become a token. */
function splitTokens(text: string): readonly string[] {
  return text.split(/\r?\n/).filter((line) => !line.trimStart().startsWith("#"))
    .flatMap((line) => line.split(",")).map((part) => part.trim()).filter((part) => part !== "");
}
