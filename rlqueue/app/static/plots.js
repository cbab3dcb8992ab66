// One anywidget model holds every figure of a page; a kernel message carries only what changed.
//
// State and messages share one shape: {revision, stamp, figures: {name: {title, subtitle, traces, layout}}} in which an array
// is {"@": index of its buffer, dtype, shape}. A patch whose `base` is not the revision held here means that a message
// was missed (the page opened while the kernel computed): then everything is asked for again, so nothing is ever stale.

const ARRAYS = { f4: Float32Array, f8: Float64Array, i4: Int32Array, u1: Uint8Array, i1: Int8Array, i2: Int16Array, u2: Uint16Array, u4: Uint32Array };

function decode(value, buffers) {
  if (Array.isArray(value)) return value.map((item) => decode(item, buffers));
  if (value === null || typeof value !== "object") return value;
  if (!("@" in value)) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, decode(item, buffers)]));
  const view = buffers[value["@"]];
  const bytes = view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength); // a copy: typed arrays must be aligned
  const flat = new ARRAYS[value.dtype](bytes);
  if (value.shape.length === 1) return flat;
  const [rows, columns] = value.shape;
  return Array.from({ length: rows }, (_, row) => flat.subarray(row * columns, (row + 1) * columns));
}

// Voila's page loads the served bundle by a script tag. JupyterLab serves files under another prefix, so there the kernel
// sends the installed bundle, gzipped, once per page.
function plotly(model) {
  if (globalThis.Plotly) return Promise.resolve(globalThis.Plotly);
  globalThis.rlqueuePlotly ??= new Promise((resolve, reject) => {
    const loaded = () => (globalThis.Plotly ? resolve(globalThis.Plotly) : reject(new Error("plotly.js did not load")));
    const tag = document.querySelector("script[data-plotly]");
    if (tag) {
      tag.addEventListener("load", loaded);
      tag.addEventListener("error", loaded);
      return;
    }
    const receive = async (message, buffers) => {
      if (message.kind !== "bundle") return;
      model.off("msg:custom", receive);
      const unzipped = new Blob(buffers).stream().pipeThrough(new DecompressionStream("gzip"));
      const script = document.createElement("script");
      script.dataset.plotly = ""; // the saved page takes the bundle from here
      script.src = URL.createObjectURL(new Blob([await new Response(unzipped).arrayBuffer()], { type: "text/javascript" }));
      script.onload = script.onerror = loaded;
      document.head.append(script);
    };
    model.on("msg:custom", receive);
    model.send({ kind: "bundle" });
  });
  return globalThis.rlqueuePlotly;
}

function apply(held, patch) {
  held.revision = patch.revision;
  held.stamp = patch.stamp;
  const changed = [];
  for (const [name, change] of Object.entries(patch.figures)) {
    const figure = held.figures[name];
    changed.push([name, figure !== undefined && !change.data && !change.traces && marksOnly(figure.layout, change.layout)]);
    if (!figure || change.data) {
      held.figures[name] = change;
    } else {
      for (const [index, keys] of Object.entries(change.traces ?? {})) Object.assign(figure.data[index], keys);
      for (const key of ["layout", "title", "subtitle"]) if (key in change) figure[key] = change[key];
    }
  }
  return changed;
}

// Whether a figure differs by its lines and boxes alone (an upright that is moved along): these are redrawn without the rest.
function marksOnly(before, after) {
  const rest = (layout) => JSON.stringify({ ...layout, shapes: null });
  return after === undefined || rest(before) === rest(after);
}

// The key to a figure, from `layout.meta.key`: plotly's own legend costs 3 ms a redraw and its colour bar 6, and they don't wrap.
function explain(slot, key) {
  const wanted = JSON.stringify(key);
  if (slot.keyed === wanted) return;
  slot.keyed = wanted;
  slot.key.replaceChildren(
    ...key.map(({ name, shape, colour }) => {
      const item = document.createElement("li");
      const mark = document.createElement("i");
      mark.className = `rlq-mark-${shape}`;
      mark.style.setProperty("--colour", colour);
      item.append(mark, name);
      return item;
    }),
  );
}

class View {
  constructor(el, held, Plotly) {
    Object.assign(this, { el, held, Plotly, slots: new Map(), dirty: new Set(Object.keys(held.figures)), marks: new Set(), drawn: 0 });
    this.channel = new MessageChannel();
    this.channel.port1.onmessage = () => {
      this.scheduled = false;
      this.draw();
    };
    el.classList.add("rlq-plots");
    this.observer = new ResizeObserver((entries) => {
      for (const { target } of entries) this.measure(this.slots.get(target.parentElement.dataset.plot));
    });
    for (const name of this.dirty) this.add(name);
    this.schedule();
  }

  add(name) {
    const figure = document.createElement("figure");
    figure.dataset.plot = name;
    figure.innerHTML = "<figcaption><h3></h3><p></p><ul class='rlq-key'></ul></figcaption><div class='rlq-canvas'></div>";
    this.el.append(figure);
    const slot = { name, figure, title: figure.querySelector("h3"), subtitle: figure.querySelector("p"), key: figure.querySelector("ul"), canvas: figure.querySelector("div"), drawn: 0 };
    this.slots.set(name, slot);
    this.observer.observe(slot.canvas);
  }

  measure(slot) {
    const { clientWidth: width, clientHeight: height } = slot.canvas;
    if (width === 0 || (width === slot.width && height === slot.height)) return; // hidden, or nothing new
    Object.assign(slot, { width, height });
    this.mark(slot.name, false);
    this.schedule();
  }

  mark(name, marksOnly) {
    if (marksOnly && !this.dirty.has(name)) this.marks.add(name);
    else if (!marksOnly) this.marks.delete(name);
    this.dirty.add(name);
  }

  // All figures are drawn in one task, so one frame shows them; messages that wait in the queue by then merge into it, so plots
  // never run behind the slider. A task, not an animation frame: waiting for one would add half a frame to every move.
  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    this.channel.port2.postMessage(null);
  }

  draw() {
    const { revision, stamp } = this.held;
    for (const name of this.dirty) {
      const slot = this.slots.get(name);
      if (!slot.width) continue; // drawn as soon as it has a size
      this.dirty.delete(name);
      const { data, layout, title, subtitle } = this.held.figures[name];
      slot.title.textContent = title;
      slot.subtitle.textContent = subtitle;
      explain(slot, layout.meta?.key ?? []);
      slot.canvas.setAttribute("aria-label", title);
      const size = { width: slot.width, height: slot.height };
      if (this.marks.delete(name) && slot.drawn) this.Plotly.relayout(slot.canvas, { shapes: structuredClone(layout.shapes ?? []) });
      else this.Plotly.react(slot.canvas, data.map((trace) => ({ ...trace })), { ...structuredClone(layout), ...size }, this.config(slot));
      slot.figure.dataset.drawn = slot.drawn += 1;
      slot.figure.dataset.revision = revision;
    }
    Object.assign(this.el.dataset, { drawn: (this.drawn += 1), revision, stamp });
    this.el.dispatchEvent(new CustomEvent("plots-drawn", { bubbles: true, detail: { revision, stamp } }));
  }

  config(slot) {
    slot.config ??= {
      displaylogo: false,
      modeBarButtons: [[{ name: "Download as PNG", icon: this.Plotly.Icons.camera, click: () => this.save(slot.name) }]],
    };
    return slot.config;
  }

  // Heading and key are HTML, so that they wrap on a phone: the picture gets them back as plotly's title, legend and colour bar.
  save(name) {
    const { data, layout, title } = this.held.figures[name];
    const titled = { ...structuredClone(layout), title: { text: title, x: 0.02, xanchor: "left" }, margin: { ...layout.margin, t: 60 } };
    if (layout.meta?.key) Object.assign(titled, { showlegend: true, margin: { ...layout.margin, t: 100 } });
    const keyed = data.map((trace) => (trace.type === "heatmap" ? { ...trace, showscale: true } : trace));
    this.Plotly.downloadImage({ data: keyed, layout: titled }, { format: "png", filename: name, width: 1000, height: 560, scale: 2 });
  }

  stop() {
    this.channel.port1.close();
    this.observer.disconnect();
    for (const { canvas } of this.slots.values()) this.Plotly.purge(canvas);
  }
}

// A restarted kernel comes back empty: nothing on the page can speak to it, so the page has to say so.
function watch(kernel) {
  const lost = (detail) => document.dispatchEvent(new CustomEvent("kernel-lost", { detail }));
  kernel?.statusChanged?.connect((_, status) => /restarting|dead/.test(status) && lost(status));
  kernel?.connectionStatusChanged?.connect((_, status) => status === "disconnected" && lost(status));
}

export default () => {
  const views = new Set();
  let held;
  return {
    initialize({ model }) {
      const { content, buffers } = model.get("state");
      held = decode(content, buffers);
      const receive = (message, buffers) => {
        if (message.kind !== "figures") return;
        if (message.content.base !== undefined && message.content.base !== held.revision) {
          model.send({ kind: "all" });
          return;
        }
        const changed = apply(held, decode(message.content, buffers));
        for (const view of views) {
          for (const [name, marksOnly] of changed) view.mark(name, marksOnly);
          view.schedule();
        }
      };
      model.on("msg:custom", receive);
      watch(model.widget_manager?.kernel);
      model.send({ kind: "opened", revision: held.revision });
      return () => model.off("msg:custom", receive);
    },
    async render({ model, el }) {
      el.setAttribute("aria-busy", "true");
      const view = new View(el, held, await plotly(model));
      views.add(view);
      el.removeAttribute("aria-busy");
      return () => {
        views.delete(view);
        view.stop();
      };
    },
  };
};
