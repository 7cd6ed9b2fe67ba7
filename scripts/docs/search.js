// Search in the sections of the site. Without scripts the field stays hidden.
const HITS_MAX = 12;

const area = document.querySelector("search");
const field = area.querySelector("input");
const list = area.querySelector("ol");
let loading;

area.hidden = false;
field.addEventListener("focus", load, { once: true });
field.addEventListener("input", async () => show(await load()));
document.addEventListener("keydown", (event) => {
  const isTyping = event.target instanceof HTMLInputElement;
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    field.focus();
  }
  if (event.key === "Escape") {
    field.value = "";
    list.replaceChildren();
  }
});

function load() {
  loading ??= fetch("search.json").then((answer) => answer.json());
  return loading;
}

function show(entries) {
  const words = field.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const hits = words.length === 0 ? [] : entries
    .map((entry) => ({ entry, score: scoreOf(entry, words) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, HITS_MAX);
  list.replaceChildren(...hits.map(({ entry }) => item(entry, words[0])));
}

/** 0 unless every word is there. A title counts more than the text below it. */
function scoreOf({ title, page, text }, words) {
  let score = 0;
  for (const word of words) {
    const found = (title.toLowerCase().includes(word) ? 10 : 0) +
      (page.toLowerCase().includes(word) ? 3 : 0) + (text.toLowerCase().includes(word) ? 1 : 0);
    if (found === 0) return 0;
    score += found;
  }
  return score;
}

function item({ page, title, url, text }, word) {
  const link = document.createElement("a");
  link.href = url;
  const name = document.createElement("b");
  name.textContent = title === page ? page : `${page}: ${title}`;
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 30);
  const excerpt = document.createElement("span");
  excerpt.textContent = text.slice(at, at + 110);
  link.append(name, excerpt);
  const entry = document.createElement("li");
  entry.append(link);
  return entry;
}
