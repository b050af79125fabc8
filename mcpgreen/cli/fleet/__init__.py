"""Workers of a fleet, and what people see of a fleet."""
