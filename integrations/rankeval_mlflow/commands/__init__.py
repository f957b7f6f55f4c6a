"""The commands of ``rankeval mlflow``."""
