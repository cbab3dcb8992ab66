// A field that takes files: what is dropped or chosen goes to the kernel in pieces, each after the last one has arrived. What is
// too large is refused before anything is sent.

function render({ model, el }) {
  el.classList.add("rlq-drop");
  const field = document.createElement("label");
  const input = Object.assign(document.createElement("input"), { type: "file", multiple: true });
  const title = Object.assign(document.createElement("b"), { textContent: model.get("label") });
  const hint = Object.assign(document.createElement("span"), { textContent: model.get("hint") });
  const bar = document.createElement("progress");
  const state = Object.assign(document.createElement("span"), { className: "rlq-drop-state" });
  state.setAttribute("role", "status");
  bar.max = 1;
  bar.hidden = true;
  bar.setAttribute("aria-label", "sending");
  field.append(input, title, hint);
  el.append(field, bar, state);

  const waiting = [];
  let current = null;

  const refuse = (why) => model.send({ kind: "refused", why });
  const take = (files) => {
    const all = [...files];
    if (all.length > model.get("most_files")) return refuse(`${all.length} files at once, must be at most ${model.get("most_files")}`);
    for (const file of all) {
      const largest = model.get("largest");
      if (file.size > largest)
        return refuse(
          `${file.name} has ${Math.round(file.size / 1e6)} MB, must be at most ${largest >> 20} MB here; of any size in a terminal: rlqueue diagnose LOG`,
        );
    }
    waiting.push(...all);
    if (!current) next();
  };
  const next = () => {
    current = waiting.shift() ?? null;
    bar.hidden = !current;
    if (current) {
      state.textContent = `Sending ${current.name} to your own kernel`;
      model.send({ kind: "begin", name: current.name.slice(-200), size: current.size });
    }
  };
  const send = async (at) => {
    if (!current) return;
    const piece = await current.slice(at, at + model.get("piece")).arrayBuffer();
    bar.value = (at + piece.byteLength) / current.size;
    model.send({ kind: "piece" }, undefined, [piece]);
  };
  const heard = (message) => {
    if (message.kind === "more") send(message.at);
    else if (message.kind === "reading") state.textContent = `Reading ${current?.name ?? ""}`;
    else if (message.kind === "done" || message.kind === "stop") {
      state.textContent = "";
      if (message.kind === "stop") waiting.length = 0;
      next();
    }
  };
  model.on("msg:custom", heard);

  input.addEventListener("change", () => {
    take(input.files);
    input.value = ""; // the same file may be chosen again
  });
  const over = (event, on) => {
    event.preventDefault();
    field.classList.toggle("rlq-over", on);
  };
  field.addEventListener("dragover", (event) => over(event, true));
  field.addEventListener("dragleave", (event) => over(event, false));
  field.addEventListener("drop", (event) => {
    over(event, false);
    take(event.dataTransfer.files);
  });
  return () => model.off("msg:custom", heard);
}

export default { render };
