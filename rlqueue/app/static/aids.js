// After each drawing, since ipywidgets renders late and undoes some of this: folds that a keyboard opens, names for sliders,
// readouts that don't pretend to take text.

function help(root) {
  for (const header of root.querySelectorAll(".jupyter-widget-Collapse-header:not([tabindex])")) openByKey(header);
  for (const readout of root.querySelectorAll(".widget-readout[contenteditable=true]")) readout.contentEditable = "false";
  for (const handle of root.querySelectorAll(".noUi-handle")) nameSlider(handle);
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
