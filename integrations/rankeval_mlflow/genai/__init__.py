"""Retrieval measures for mlflow.genai.evaluate."""
