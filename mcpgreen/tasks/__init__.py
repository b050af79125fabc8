"""Tasks: calls that outlive their request. Their life, and the store that keeps them."""
