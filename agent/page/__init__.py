"""A run as one HTML page: what was said, and what every b-thread did at every step."""
