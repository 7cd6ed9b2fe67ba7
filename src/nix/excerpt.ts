// Messages quote their input; 2 MiB of hostile text must not become a log line of 2 MiB.
const EXCERPT_CHARS_MAX = 80;

/** At most 80 characters of untrusted text, quoted and escaped, for messages. */
export function excerpt(text: string): string {
  if (text.length <= EXCERPT_CHARS_MAX) return JSON.stringify(text);
  return `${JSON.stringify(text.slice(0, EXCERPT_CHARS_MAX))}…`;
}
