import type { Narinfo } from "./narinfo.ts";

export interface NarinfoFormat {
  /** Our URL of the NAR; takes the place of the one read. */
  readonly url: string;
  /** Signatures of this key are left out, so that the caller's own is there once. */
  readonly ownSignatureName?: string;
}

/**
 * The narinfo's text with our URL and the compression always said, since clients take a
 * missing one for bzip2. Every other line stays byte for byte as it was read.
 */
export function formatNarinfo(narinfo: Narinfo, format: NarinfoFormat): string {
  const hasCompression = narinfo.lines.some((line) => line.key === "Compression");
  const { ownSignatureName } = format;
  const isOwn = (signature: string) =>
    ownSignatureName !== undefined && signature.startsWith(`${ownSignatureName}:`);
  const compression = `Compression: ${narinfo.compression}\n`;
  let text = "";
  for (const { key, value } of narinfo.lines) {
    if (key === "URL") {
      text += `URL: ${format.url}\n`;
      if (!hasCompression) text += compression;
    } else if (key === "Compression") {
      text += compression;
    } else if (key !== "Sig" || !isOwn(value)) {
      text += `${key}: ${value}\n`;
    }
  }
  return text;
}
