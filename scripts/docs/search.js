// The search field of the site. Without scripts it stays hidden.
const area = document.querySelector("search");
const field = area.querySelector("input");
const list = area.querySelector("ol");
let loading;

area.hidden = false;
field.addEventListener("focus", load, { once: true });
field.addEventListener("input", show);
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

/** Resolves to a finder. A page from a folder may load scripts, and no JSON. */
function load() {
  loading ??= ["minisearch.js", "find.js", "sections.js"]
    .reduce((former, name) => former.then(() => run(name)), Promise.resolve())
    .then(() => finderOf(sections));
  return loading;
}

function run(name) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = name;
    script.addEventListener("load", resolve);
    script.addEventListener("error", () => reject(new Error(`Cannot load ${name}`)));
    document.head.append(script);
  });
}

async function show() {
  const find = await load();
  const question = field.value.trim();
  if (question === "") return list.replaceChildren();
  const hits = find(question);
  list.replaceChildren(...(hits.length > 0 ? hits.map(itemOf) : [nothing()]));
}

function itemOf({ page, title, url, excerpt }) {
  const link = document.createElement("a");
  link.href = url;
  const name = document.createElement("b");
  name.textContent = title === page ? page : `${page}: ${title}`;
  const text = document.createElement("span");
  text.textContent = excerpt;
  link.append(name, text);
  const entry = document.createElement("li");
  entry.append(link);
  return entry;
}

function nothing() {
  const entry = document.createElement("li");
  entry.className = "nothing";
  entry.textContent = "Nothing found";
  return entry;
}
