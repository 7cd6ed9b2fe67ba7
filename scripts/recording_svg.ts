const COLUMN_PX = 7.8;
const LINE_PX = 20;
const MARGIN_PX = 20;
const BAR_PX = 28;
const FIRST_MS = 1_200;
const LINE_MS = 350;
const REST_MS = 6_000;

/** Words of the output that have a colour. */
const MARKS: Readonly<Record<string, string>> = { HIT: "hit", MISS: "miss", JOINED: "joined" };

const STYLE = `
svg { color-scheme: light dark; --ground: #fff; --ink: #1c1e21; --quiet: #565b63; --line: #d5d7db;
  --hit: #1a6b34; --miss: #1f5fa8; --joined: #7a5200 }
@media (prefers-color-scheme: dark) {
  svg { --ground: #1d2024; --ink: #e8e9eb; --quiet: #a9aeb6; --line: #3a3e45;
    --hit: #7fd394; --miss: #8ab8f0; --joined: #e6bd63 }
}
rect { fill: var(--ground); stroke: var(--line) }
circle { fill: var(--line) }
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: var(--ink); white-space: pre }
.prompt { fill: var(--quiet) }
.hit { fill: var(--hit); font-weight: 700 }
.miss { fill: var(--miss); font-weight: 700 }
.joined { fill: var(--joined); font-weight: 700 }
`;

/** Media query: a viewer who wants no motion sees all lines at once. */
const QUIET_UNLESS = "@media (prefers-reduced-motion: no-preference)";

/** A terminal that shows a command and its output, a line at a time, as an animated picture. */
export function recordingSvg(command: string, lines: readonly string[]): string {
  const columns = Math.max(...lines.map(({ length }) => length), command.length + 2);
  const width = Math.ceil(columns * COLUMN_PX + 2 * MARGIN_PX);
  const height = BAR_PX + (lines.length + 1) * LINE_PX + MARGIN_PX;
  const lastMs = FIRST_MS + lines.length * LINE_MS + REST_MS;
  const shown = lines.map((line, at) => {
    const beginPercent = (100 * (FIRST_MS + at * LINE_MS)) / lastMs;
    return { line, y: BAR_PX + (at + 2) * LINE_PX, beginPercent, name: `show-${at}` };
  });
  const frames = shown.map(({ name, beginPercent }) => {
    const begin = beginPercent.toFixed(2);
    return `@keyframes ${name} { 0%, ${begin}% { opacity: 0 } ${begin}1%, 100% { opacity: 1 } }\n` +
      `.${name} { animation: ${name} ${lastMs}ms linear infinite }`;
  });
  const texts = shown.map(({ line, y, name }) =>
    `<text class="${name}" x="${MARGIN_PX}" y="${y}">${marked(line)}</text>`
  );
  const prompt = `<text x="${MARGIN_PX}" y="${BAR_PX + LINE_PX}">` +
    `<tspan class="prompt">$ </tspan>${escaped(command)}</text>`;
  const lamps = [0, 1, 2].map((at) => `<circle cx="${MARGIN_PX + at * 18}" cy="18" r="5"/>`);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(command)}</title>`,
    `<style>${STYLE}${QUIET_UNLESS} {\n${frames.join("\n")}\n}</style>`,
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>`,
    ...lamps,
    prompt,
    ...texts,
    "</svg>\n",
  ].join("\n");
}

function marked(line: string): string {
  return escaped(line).replace(/^( *)(HIT|MISS|JOINED)\b/, (_, blanks: string, word: string) => {
    return `${blanks}<tspan class="${MARKS[word]}">${word}</tspan>`;
  });
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}
