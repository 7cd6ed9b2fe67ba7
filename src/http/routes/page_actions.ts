import { decimalNumber, wholeNumber } from "../../base/plain_number.ts";
import type { PinReads, Pins } from "../../pins/pins.ts";
import { type Answer, type ClientRequest, statusAnswer, textAnswer } from "../message/message.ts";
import { markup } from "../page/markup.ts";
import type { GcRouteDeps } from "./gc.ts";
import type { Route } from "./router.ts";
import type { StorePathHash } from "../../nix/store_path.ts";
import { storePathHashIn } from "./store_path_text.ts";

export interface PageActionsDeps {
  readonly pins: Pick<Pins, "pin" | "unpin">;
  /** The pins, the oldest first. */
  readonly pinReads: Pick<PinReads, "pins">;
  readonly gc: GcRouteDeps["gc"];
}

const FORM_BYTES_MAX = 1_024;
const GIBIBYTE = 2 ** 30;

/** The forms of the page. They work without JavaScript, and lead back to the page. */
export function pageActionRoutes({ pins, pinReads, gc }: PageActionsDeps): readonly Route[] {
  return [
    action("/page/pin", async (form) => {
      const root = storePathHashIn(form.get("path") ?? "");
      if (root === undefined) return notPinned("This is no store path, and no hash of one.");
      if (await pins.pin(root)) return back("packages");
      return notPinned(
        `larder has not stored ${root}. A pin protects stored paths: fetch it first, as with ` +
          `larder warm ${root} --pin.`,
      );
    }),
    action("/page/unpin", async (form, { headers }) => {
      const root = storePathHashIn(form.get("path") ?? "");
      if (root === undefined) return statusAnswer(400, false);
      const roots = (await pinReads.pins()).map(({ storePathHash }) => storePathHash);
      await pins.unpin(root);
      const at = roots.indexOf(root);
      // The list of the page has the newest first.
      const next = at < 0 ? undefined : roots[at - 1] ?? roots[at + 1];
      const unpinned = (form.get("path") ?? "").trim().replace(/^.*\//, "").replace(`${root}-`, "");
      return backTo(headers.get("referer"), unpinned, next);
    }),
    action("/page/evict", async (form) => {
      const target = targetIn(form);
      const events = target === "invalid" ? undefined : gc({ dryRun: false, ...target });
      if (events === undefined) return statusAnswer(400, false);
      for await (const { event } of events) if (event === "done") break;
      return back("space-title");
    }),
  ];
}

function action(
  path: string,
  run: (form: URLSearchParams, request: ClientRequest) => Promise<Answer>,
): Route {
  return {
    name: path,
    path,
    audience: "own-names",
    query: {},
    methods: {
      async POST({ request }) {
        const form = await formOf(request);
        return form === undefined ? statusAnswer(400, false) : await run(form, request);
      },
    },
  };
}

/** `undefined` for a body that is no short form. */
async function formOf({ headers, body }: ClientRequest): Promise<URLSearchParams | undefined> {
  if (headers.get("content-type") !== "application/x-www-form-urlencoded") return undefined;
  // Browsers announce the length of a form, and the server takes no more bytes than that.
  const byteLength = wholeNumber(headers.get("content-length"));
  if (byteLength === undefined || byteLength > FORM_BYTES_MAX) return undefined;
  return new URLSearchParams(await new Response(body).text());
}

/** Target of the form. Without a number, the size limit is the target. */
function targetIn(form: URLSearchParams): { readonly targetBytes?: number } | "invalid" {
  const text = (form.get("gib") ?? "").trim();
  if (text === "") return {};
  const targetBytes = Math.floor((decimalNumber(text) ?? NaN) * GIBIBYTE);
  return Number.isSafeInteger(targetBytes) ? { targetBytes } : "invalid";
}

/** Relative, so that it holds below the path of a proxy, too. */
function back(section: "packages" | "space-title"): Answer {
  return statusAnswer(303, false, { location: `../#${section}` });
}

/** What the page's query may keep. */
const PLACE_PARAMETERS = ["all", "pins", "range", "q"];
const NAME_REGEXP = /^[\w+.?=-]{1,211}$/;

/** Back to the page that sent the form: it says what was unpinned, and shows the next pin. */
function backTo(
  referrer: string | null,
  unpinned: string,
  next: StorePathHash | undefined,
): Answer {
  const query = new URLSearchParams();
  const given = URL.parse(referrer ?? "")?.searchParams ?? [];
  for (const [name, value] of given) {
    if (PLACE_PARAMETERS.includes(name)) query.set(name, value);
  }
  query.set("unpinned", unpinned);
  const place = next === undefined || query.has("q") ? "packages" : `pin-of-${next}`;
  return statusAnswer(303, false, { location: `../?${query}#${place}` });
}

/** The name that the page shall say was unpinned. Nothing but a name gets through. */
export function unpinnedIn(query: URLSearchParams): string | undefined {
  const name = query.get("unpinned") ?? "";
  return NAME_REGEXP.test(name) ? name : undefined;
}

/** A page for people, as only the form of the page comes here. */
function notPinned(sentence: string): Answer {
  const html = markup`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>larder: not pinned</title>
<h1>Nothing was pinned</h1><p>${sentence}</p><p><a href="../#packages">Back to the page</a></p></html>
`;
  const policy = { "content-security-policy": "default-src 'none'" };
  const type = "text/html; charset=utf-8";
  return textAnswer(html.text, false, { status: 404, type, lifetime: "never", headers: policy });
}
