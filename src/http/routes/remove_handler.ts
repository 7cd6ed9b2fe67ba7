import { statusAnswer, textAnswer } from "../message/answer.ts";
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
    const parts = { status: 200, type: "text/plain", lifetime: "never", headers } as const;
    return textAnswer(`removed ${name}\n`, false, parts);
  };
}
