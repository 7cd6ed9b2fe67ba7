// Writes docs/demo.svg: the demo as it runs, a line at a time, as an animated picture of a terminal.
// Ports and folders, which differ from run to run, become fixed ones.

const COMMAND = "scripts/deno task demo";
const [COLUMN_PX, LINE_PX, MARGIN_PX] = [7.8, 20, 20];
const [FIRST_MS, LINE_MS] = [1_200, 350];

const STYLE = `
svg { color-scheme: light dark; --ground: #fff; --ink: #1c1e21; --hit: #1a6b34; --miss: #1f5fa8;
  --joined: #7a5200 }
@media (prefers-color-scheme: dark) {
  svg { --ground: #1d2024; --ink: #e8e9eb; --hit: #7fd394; --miss: #8ab8f0; --joined: #e6bd63 }
}
rect { fill: var(--ground); stroke: #888 }
text { font: 13px ui-monospace, Menlo, Consolas, monospace; fill: var(--ink); white-space: pre }
.HIT { fill: var(--hit); font-weight: 700 }
.MISS { fill: var(--miss); font-weight: 700 }
.JOINED { fill: var(--joined); font-weight: 700 }
@media (prefers-reduced-motion: no-preference) {
  text { animation: show ${LINE_MS}ms backwards }
}
@keyframes show { from { opacity: 0 } }
`;

const { code, stdout } = await new Deno.Command(Deno.execPath(), {
  args: ["task", "--quiet", "demo"],
}).output();
if (code !== 0) Deno.exit(code);
const output = new TextDecoder().decode(stdout).trimEnd();
const ports = [...new Set(output.match(/(?<=127\.0\.0\.1:)\d+/g))];
const text = ports.reduce(
  (all, port, at) => all.replaceAll(`127.0.0.1:${port}`, `127.0.0.1:${at === 0 ? 8080 : 8501}`),
  output,
).replaceAll(/\/\S+\/larder-test-\w+/g, "/tmp/larder-demo");

const lines = [`$ ${COMMAND}`, ...text.split("\n")];
const width = Math.ceil(Math.max(...lines.map(({ length }) => length)) * COLUMN_PX) + 2 * MARGIN_PX;
const height = lines.length * LINE_PX + 2 * MARGIN_PX;
const texts = lines.map((line, at) => {
  const delayMs = at === 0 ? 0 : FIRST_MS + at * LINE_MS;
  const y = MARGIN_PX + (at + 1) * LINE_PX;
  const words = line.replaceAll("&", "&amp;").replaceAll("<", "&lt;")
    .replace(/^ *(HIT|MISS|JOINED)\b/, '<tspan class="$1">$&</tspan>');
  return `<text x="${MARGIN_PX}" y="${y}" style="animation-delay: ${delayMs}ms">${words}</text>\n`;
});
Deno.writeTextFileSync(
  "docs/demo.svg",
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">
<title>${COMMAND}</title>
<style>${STYLE}</style>
<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>
${texts.join("")}</svg>
`,
);
