"""The shop: its orders and refunds, and the agent that handles complaints."""
