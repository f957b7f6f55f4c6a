"""Retrieval measures for mlflow.genai.evaluate, and its runs as evaluations."""
