"""One module per dialect: how its table is read and edited (``face``), and its clauses."""
