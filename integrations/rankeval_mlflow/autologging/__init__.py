"""Automatic logging of searches and cross-validations with our measures, beside ``mlflow.sklearn.autolog``."""
