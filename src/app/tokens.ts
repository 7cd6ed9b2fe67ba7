import type { Settings } from "../config/options.ts";
import type { NamedToken } from "../config/kinds/token.ts";
import type { Role } from "../http/message/role.ts";
import type { Token } from "../http/access/tokens.ts";

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
