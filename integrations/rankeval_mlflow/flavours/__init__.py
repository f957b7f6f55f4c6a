"""A fitted ranker as an MLflow model that loads and predicts the same in a process without rankeval."""
