"""How a lab is written: YAML within limits, the small notations inside it, quantities, and words for mistakes."""
