// After each drawing, since ipywidgets renders late and undoes some of this: folds that a keyboard opens, names for sliders,
// readouts that don't pretend to take text; and buttons that play a slider.

function help(root) {
  for (const header of root.querySelectorAll(".jupyter-widget-Collapse-header:not([tabindex])")) openByKey(header);
  for (const readout of root.querySelectorAll(".widget-readout[contenteditable=true]")) readout.contentEditable = "false";
  for (const handle of root.querySelectorAll(".noUi-handle")) nameSlider(handle);
  for (const button of root.querySelectorAll(".rlq-play")) if (!button.rlqPlayed) play(button);
}

function openByKey(header) {
  const contents = header.nextElementSibling;
  header.tabIndex = 0;
  header.setAttribute("role", "button");
  header.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    header.click();
  });
  const turned = () => tell(header, "aria-expanded", String(!contents.classList.contains("lm-mod-hidden")));
  new MutationObserver(turned).observe(contents, { attributes: true, attributeFilter: ["class"] });
  turned();
}

// Named by its label, read as the text beside it ("64 : 192" and not "23"), explained by the hint below.
function nameSlider(handle) {
  const slider = handle.closest(".widget-slider");
  const label = slider?.querySelector(".widget-label")?.textContent;
  if (!label) return;
  tell(handle, "aria-label", label);
  tell(handle, "aria-valuetext", slider.querySelector(".widget-readout").textContent);
  tell(handle, "aria-description", slider.parentElement.querySelector(".rlq-hint")?.textContent ?? "");
}

function tell(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

// The slider that this button stands beside goes on by one place after each drawing, and not faster than four times a second.
function play(button) {
  const handle = () => button.closest(".rlq-played").querySelector(".noUi-handle");
  const press = (key) => handle().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const stop = () => {
    clearTimeout(button.rlqTimer);
    document.removeEventListener("plots-drawn", next);
    button.rlqTimer = undefined;
    button.textContent = "Play";
    button.setAttribute("aria-pressed", "false");
  };
  const step = () => {
    const { ariaValueNow, ariaValueMax } = handle();
    if (!button.isConnected || +ariaValueNow >= +ariaValueMax) stop();
    else press("ArrowRight");
  };
  const next = () => {
    clearTimeout(button.rlqTimer);
    button.rlqTimer = setTimeout(step, 250);
  };
  button.rlqPlayed = true;
  button.setAttribute("aria-pressed", "false");
  button.addEventListener("click", () => {
    if (button.rlqTimer !== undefined) return stop();
    const { ariaValueNow, ariaValueMax } = handle();
    if (+ariaValueNow >= +ariaValueMax) press("Home");
    document.addEventListener("plots-drawn", next);
    button.textContent = "Pause";
    button.setAttribute("aria-pressed", "true");
    next();
  });
}

export default {
  render({ el }) {
    el.style.display = "none";
    const drawn = (event) => {
      const root = event.target.closest(".rlq-page");
      if (root?.contains(el)) help(root);
    };
    document.addEventListener("plots-drawn", drawn);
    document.dispatchEvent(new CustomEvent("page-there"));
    return () => document.removeEventListener("plots-drawn", drawn);
  },
};
