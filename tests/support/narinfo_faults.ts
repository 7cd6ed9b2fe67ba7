import type { Fault } from "./faults.ts";

/** A narinfo whose text the test changes; nothing is signed again. */
export function rewritten(change: (text: string) => string): Fault {
  return (answer) => {
    if (!(answer.body instanceof Uint8Array) || answer.status !== 200) return answer;
    const body = new TextEncoder().encode(change(new TextDecoder().decode(answer.body)));
    return { ...answer, body, framing: body.length };
  };
}

/** A page for people in place of a narinfo, as proxies and log-in walls send it. */
export function garbage(): Fault {
  return rewritten(() => "<!DOCTYPE html>\n<title>Welcome</title>\n");
}

/** Well-formed signatures that verify nothing. */
export function badSignature(): Fault {
  return rewritten((text) =>
    text.replace(/^(Sig: [^:]+:)(.)/gm, (_, start, first) => start + (first === "A" ? "B" : "A"))
  );
}

/** No signature at all. */
export function unsigned(): Fault {
  return rewritten((text) => text.replace(/^Sig: .*\n/gm, ""));
}

/** A FileSize that is off by `byBytes`. A narinfo without one stays as it is. */
export function wrongFileSize(byBytes = 1): Fault {
  return rewritten((text) =>
    text.replace(/^FileSize: (.*)$/m, (_, bytes) => `FileSize: ${Number(bytes) + byBytes}`)
  );
}

/** A FileHash of other bytes. A narinfo without one stays as it is. */
export function wrongFileHash(): Fault {
  return rewritten((text) => text.replace(/^FileHash: .*$/m, `FileHash: sha256:${"0".repeat(52)}`));
}

/** A narinfo without one of its lines, e.g. `withoutLine("Compression")`. */
export function withoutLine(key: string): Fault {
  return rewritten((text) => text.replace(new RegExp(`^${key}: .*\n`, "m"), ""));
}
