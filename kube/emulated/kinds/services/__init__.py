"""Services, and the endpoints behind them."""
