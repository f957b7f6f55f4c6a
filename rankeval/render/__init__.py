"""Render: frames to text, HTML, LaTeX, Markdown and figures. Knows no result class."""
