/** The absolute path in `file:///DIR`; `undefined` for any other URL or text. */
export function folderOfUrl(text: string): string | undefined {
  if (!text.startsWith("file:///")) return undefined;
  try {
    const path = decodeURIComponent(new URL(text).pathname).replace(/(?<=.)\/+$/, "");
    return path.includes("\0") ? undefined : path;
  } catch {
    return undefined;
  }
}
