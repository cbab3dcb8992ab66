// What Voila's front end leaves open: the time before the first drawing, the kernel's end, names for sliders.

// The lab template reports its progress to these; this page shows one skeleton until something is drawn.
window.voila_process = window.voila_finish = window.voila_heartbeat = () => {};

const state = (name) => {
  document.body.dataset.state = name;
};
const starting = () => document.body.dataset.state === "starting";

document.addEventListener("plots-drawn", () => starting() && state("ready"));
// A page may open with its plots hidden: then nothing will be drawn.
document.addEventListener("page-there", () =>
  setTimeout(() => starting() && [...document.querySelectorAll(".rlq-plots")].every((plots) => !plots.clientWidth) && state("ready"), 1000),
);
document.addEventListener("kernel-lost", () => state("lost"));
// The back button brings back a page whose kernel ended when it was left.
window.addEventListener("pageshow", (event) => event.persisted && location.reload());

document.addEventListener("DOMContentLoaded", () => {
  // A page without plots, or whose notebook raised, has to be shown as well.
  const failed = /There was an error when executing cell|ExecutionError/.test(document.getElementById("rendered_cells").textContent);
  setTimeout(() => starting() && state("ready"), failed ? 0 : 15000);
  new MutationObserver(nameSliders).observe(document.getElementById("rendered_cells"), { childList: true, subtree: true });
});

// noUiSlider's handle is what a keyboard and a screen reader meet, and ipywidgets gives it no name. Its value is read as the
// text beside it ("48 GPUs"), not as a bare number.
function nameSliders() {
  for (const handle of document.querySelectorAll(".noUi-handle:not([aria-label])")) {
    const box = handle.closest(".widget-slider, .widget-inline-hbox");
    const label = box?.querySelector(".widget-label");
    const readout = box?.querySelector(".widget-readout");
    if (!label?.textContent) continue;
    handle.setAttribute("aria-label", label.textContent);
    if (!readout) continue;
    const read = () => handle.setAttribute("aria-valuetext", readout.textContent);
    new MutationObserver(read).observe(readout, { childList: true, characterData: true, subtree: true });
    read();
  }
}
