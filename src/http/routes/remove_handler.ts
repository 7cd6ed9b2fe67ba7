import { lineAnswer, statusAnswer } from "../message/message.ts";
import type { Handler } from "./router.ts";

/** DELETE of a cached entry: 200 if it existed, else 404. */
export function removeHandler<Name extends string>(
  parse: (text: string) => Name | undefined,
  remove: (name: Name) => Promise<boolean>,
): Handler {
  return async ({ params: [text = ""] }) => {
    const headers = { "x-cache": "MISS" };
    const name = parse(text);
    if (name === undefined || !await remove(name)) return statusAnswer(404, false, headers);
    return lineAnswer(200, `removed ${name}`, false, headers);
  };
}
