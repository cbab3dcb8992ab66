// Buttons that take a page's content elsewhere, and the address that brings it back.

const here = () => document.body.dataset.voila !== undefined; // JupyterLab's address is its own

function save(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function say(button, words) {
  const before = button.dataset.label;
  button.textContent = words;
  setTimeout(() => (button.textContent = before), 1500);
}

// The address follows the scenario, and the links to the other pages carry it along.
function follow(query, elsewhere) {
  history.replaceState(null, "", `?${query}`);
  carry(elsewhere || query);
}

function carry(query) {
  for (const link of document.querySelectorAll(".rlq-pages a")) link.search = query;
}

async function copy(button, query) {
  const link = `${location.origin}${location.pathname}?${query}`;
  try {
    await navigator.clipboard.writeText(link);
    say(button, "Link copied");
  } catch {
    prompt("The link to this scenario:", link); // no clipboard without a secure address
  }
}

// Everything that is drawn, one below the other, as one picture.
async function pictures(root, stem) {
  const Plotly = globalThis.Plotly;
  const images = [];
  for (const figure of root.querySelectorAll("figure[data-plot]")) {
    const canvas = figure.querySelector(".rlq-canvas");
    if (!canvas.data) continue;
    const url = await Plotly.toImage({ data: canvas.data, layout: titled(figure, canvas.layout) }, { format: "png", width: 1000, height: 560, scale: 2 });
    const image = new Image();
    image.src = url;
    await image.decode();
    images.push(image);
  }
  const sheet = document.createElement("canvas");
  sheet.width = Math.max(...images.map((each) => each.width));
  sheet.height = images.reduce((sum, each) => sum + each.height, 0);
  const pen = sheet.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, sheet.width, sheet.height);
  let top = 0;
  for (const image of images) {
    pen.drawImage(image, 0, top);
    top += image.height;
  }
  sheet.toBlob((blob) => save(`${stem}.png`, blob));
}

// Heading and key of a figure are HTML on the page; a picture of it has them as plotly's own.
function titled(figure, layout) {
  const title = `${figure.querySelector("h3").textContent}<br><sup>${figure.querySelector("figcaption p").textContent}</sup>`;
  const room = { ...layout.margin, t: 110 };
  return { ...layout, width: undefined, height: undefined, title: { text: title, x: 0.02, xanchor: "left" }, showlegend: true, margin: room };
}

const TYPES = { toml: "application/toml", csv: "text/csv" };
const typeOf = (name) => TYPES[name.split(".").pop()] ?? "text/plain";

// A file that the kernel makes. It answers at once, or says in the status line why not; a dead one never does.
function asked(model, which) {
  return new Promise((resolve, reject) => {
    const came = (message) => {
      if (message.kind !== "file" || message.which !== which) return;
      done();
      resolve(message);
    };
    const late = setTimeout(() => (done(), reject(new Error(`no answer for ${which}`))), 20000);
    const done = () => (clearTimeout(late), model.off("msg:custom", came));
    model.on("msg:custom", came);
    model.send({ kind: "file", which });
  });
}

// The page as one file that needs nothing else: numbers, texts and live figures, without the controls that would need a kernel.
async function standalone(root, stem, query, scenarios) {
  const figures = [...root.querySelectorAll("figure[data-plot] .rlq-canvas")].filter((each) => each.data).map(({ data, layout }) => ({ data, layout }));
  const copied = root.cloneNode(true);
  const originals = root.querySelectorAll(CONTROLS);
  for (const [place, control] of copied.querySelectorAll(CONTROLS).entries()) {
    const line = document.createElement("p");
    line.innerHTML = "<b></b> <span></span>";
    line.firstChild.textContent = control.querySelector(".widget-label, label")?.textContent ?? "";
    line.lastChild.textContent = chosen(originals[place]);
    control.replaceWith(line);
  }
  for (const gone of copied.querySelectorAll("button, .rlq-share, .rlq-status, style, .lm-mod-hidden, progress")) gone.remove();
  let place = 0;
  for (const canvas of copied.querySelectorAll("figure[data-plot] .rlq-canvas")) {
    if (!canvas.querySelector("svg")) continue;
    canvas.replaceChildren();
    canvas.className = "rlq-canvas";
    canvas.id = `figure-${place++}`;
  }
  const plain = (_, value) => (ArrayBuffer.isView(value) ? Array.from(value) : value);
  const held = JSON.stringify(figures, plain).replaceAll("<", "\\u003c");
  const source = await (await fetch(document.querySelector("script[data-plotly]").src)).text();
  const notebook = root.closest(".jp-Notebook") ?? document; // JupyterLab may have several open
  const heading = notebook.querySelector("h1")?.cloneNode(true) ?? document.createElement("h1");
  for (const anchor of heading.querySelectorAll("a")) anchor.remove();
  const title = here() ? document.title : heading.textContent.trim();
  const about = query ? `; scenario: <code>${escaped(query)}</code>` : "";
  const links = scenarios.map(({ name, text }) => ` · <a download="${escaped(name)}" href="data:${typeOf(name)};charset=utf-8,${encodeURIComponent(text)}">${escaped(name)}</a>`);
  const draw = `${held}.forEach(({ data, layout }, k) => Plotly.newPlot("figure-" + k, data, { ...layout, autosize: true, width: undefined, height: undefined }, { displaylogo: false, responsive: true }));`;
  const parts = [
    `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">`,
    `<title>${title.replaceAll("<", "")}</title><style>${styles()} body { max-width: 1320px; margin: 0 auto; padding: 1rem; } .rlq-about code { overflow-wrap: anywhere; }</style></head><body>`,
    heading.outerHTML,
    `<p class="rlq-about">Saved ${new Date().toISOString().slice(0, 10)}${about}${links.join("")}</p>`,
    copied.outerHTML,
    `<script>${source.replaceAll("</script", "<\\/script")}</script><script>${draw}</script></body></html>`,
  ];
  save(`${stem}.html`, new Blob(parts, { type: "text/html" }));
}

const CONTROLS = ".widget-slider, .widget-dropdown, .widget-text, .widget-checkbox";

// What a control stands at: a copy of it knows neither what was typed nor what was picked.
function chosen(control) {
  const readout = control.querySelector(".widget-readout");
  if (readout) return readout.textContent;
  const field = control.querySelector("select, input");
  if (!field) return "";
  if (field.type === "checkbox") return field.checked ? "yes" : "no";
  return field.selectedOptions?.[0]?.textContent ?? field.value;
}

function escaped(text) {
  const holder = document.createElement("i");
  holder.textContent = text;
  return holder.innerHTML;
}

// In JupyterLab the rules for the whole document are its own: they would keep the saved page from scrolling.
function styles() {
  const wanted = here() ? /rlq-|:root|^body|^\*/ : /rlq-/;
  const rules = here() ? [] : ["body { font-family: system-ui, sans-serif; }"];
  for (const sheet of document.styleSheets) {
    try {
      for (const rule of sheet.cssRules) if (wanted.test(rule.selectorText ?? rule.cssText)) rules.push(rule.cssText);
    } catch {
      // a sheet from elsewhere; there is none
    }
  }
  return rules.join("\n").replaceAll("</style", "");
}

export default {
  render({ model, el }) {
    el.classList.add("rlq-share");
    const root = () => el.closest(".rlq-page");
    const stem = () => model.get("stem");
    const made = (label, title, does) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "jupyter-button", textContent: label, title });
      button.dataset.label = label;
      button.addEventListener("click", async () => {
        button.disabled = true;
        try {
          await does(button);
        } catch (error) {
          console.warn(error);
          say(button, "Failed");
        } finally {
          button.disabled = false;
        }
      });
      el.append(button);
    };
    const file = async (which) => {
      const { name, text } = await asked(model, which);
      save(name, new Blob([text], { type: typeOf(name) }));
    };
    const scenarios = () => Promise.all(model.get("files").filter(([key]) => key.startsWith("toml")).map(([key]) => asked(model, key)));
    const draw = () => {
      el.replaceChildren();
      if (here() && model.get("query")) made("Copy link", "An address that opens this page with exactly this scenario", (button) => copy(button, model.get("query")));
      for (const [key, label, title] of model.get("files")) made(label, title, () => file(key));
      made("PNG", "The figures of this page as one picture", () => pictures(root(), stem()));
      made("Page", "This page as one HTML file that needs no network", async () => standalone(root(), stem(), model.get("query"), await scenarios()));
    };
    draw();
    const changed = () => here() && model.get("query") && follow(model.get("query"), model.get("elsewhere"));
    model.on("change:query", changed);
    model.on("change:files", draw);
    if (here() && location.search.length > 1) {
      carry(model.get("elsewhere") || location.search.slice(1));
      model.send({ kind: "open", query: location.search });
    }
    return () => {
      model.off("change:query", changed);
      model.off("change:files", draw);
    };
  },
};
