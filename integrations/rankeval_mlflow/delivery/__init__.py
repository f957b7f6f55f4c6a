"""Bring an upload to MLflow: keep it on disk first, send it in repeatable steps, say last that it is whole."""
