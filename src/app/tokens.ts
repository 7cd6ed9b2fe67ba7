import type { Settings } from "../config/options.ts";
import type { NamedToken } from "../config/kinds/token.ts";
import type { Role } from "../http/message/role.ts";
import type { Token } from "../http/access/tokens.ts";
import type { Logger } from "../telemetry/logger.ts";

/** A shorter token may be guessed, however late the answers are. */
const SHORT_CHARS = 16;

/** Warns of each token that an attacker could guess. */
export function warnOfShortTokens(tokens: readonly Token[], log: Pick<Logger, "warn">): void {
  for (const { name, role, secret } of tokens) {
    if (secret.length >= SHORT_CHARS) continue;
    const hint = "make a longer one with larder token create";
    log.warn("token is short", { token: name, role, hint });
  }
}

/** The configured tokens of clients. One without a name has that of its role. */
export function tokensOf(settings: Settings): readonly Token[] {
  const named = (role: Role, given: readonly NamedToken[] = []) =>
    given.map(({ name = role, secret }): Token => ({ name, role, secret }));
  return [
    ...named("read", settings["cache.get-token"]),
    ...named("write", settings["cache.put-token"]),
    ...named("admin", settings["cache.admin-token"]),
  ];
}

/** Warns of each secret that several roles have: its holder has the strongest one. */
export function warnOfSharedTokens(tokens: readonly Token[], log: Pick<Logger, "warn">): void {
  const bySecret = Map.groupBy(tokens, ({ secret }) => secret);
  for (const holders of bySecret.values()) {
    const roles = new Set(holders.map(({ role }) => role));
    if (roles.size < 2) continue;
    log.warn("token has several roles", {
      tokens: holders.map(({ name, role }) => `${name} (${role})`).join(", "),
      hint: "each of its holders has the strongest role: give each role a token of its own",
    });
  }
}
