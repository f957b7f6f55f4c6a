"""MLflow plugin of rankeval."""
