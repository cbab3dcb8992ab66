"""The report, regenerated: every table and figure of the source report, computed from data/, beside what was printed."""
