// Draws each figure when it comes near the screen: forty plots at once would keep a small machine busy for seconds.
const content = JSON.parse(document.getElementById("figures").textContent);
const narrow = () => document.documentElement.clientWidth < 600;

function draw(place) {
  const figure = content.figures[place.dataset.plot];
  const layout = { template: content.template, hovermode: "closest", ...figure.layout, autosize: true };
  if (narrow()) {
    layout.margin = { ...layout.margin, l: Math.min(layout.margin?.l ?? 56, 52), r: 8 };
    layout.legend = { ...layout.legend, font: { size: 11 } };
    // One name a line there: the plot keeps its height, and the place grows by what the names take.
    const names = figure.data.filter((trace) => trace.showlegend !== false).length;
    place.style.height = `${place.offsetHeight + 17 * Math.max(0, names - 2)}px`;
  }
  const options = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"], displayModeBar: narrow() ? false : "hover" };
  Plotly.newPlot(place, figure.data, layout, options).then(() => { place.dataset.drawn = "yes"; });
}

const near = new IntersectionObserver((seen) => {
  for (const one of seen) {
    if (one.isIntersecting) {
      near.unobserve(one.target);
      draw(one.target);
    }
  }
}, { rootMargin: "600px" });
const places = [...document.querySelectorAll(".plot")];
places.forEach((place) => near.observe(place));
window.addEventListener("beforeprint", () => places.filter((place) => !place.dataset.drawn).forEach(draw));
