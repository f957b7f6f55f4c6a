"""How a comparison is read: in sentences, tables and figures."""
