"""The pages: the only code that knows plotly, ipywidgets and Voila."""
